//! JSON for replies; keys are written in the order of the calls.

/// An object under construction.
#[derive(Clone, Default)]
pub struct Object(String);

impl Object {
    fn key(mut self, key: &str) -> Object {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        push_string(&mut self.0, key);
        self.0.push(':');
        self
    }

    pub fn text(self, key: &str, value: &str) -> Object {
        let mut object = self.key(key);
        push_string(&mut object.0, value);
        object
    }

    pub fn integer(self, key: &str, value: u64) -> Object {
        self.raw(key, &value.to_string())
    }

    /// Adds a number, unless JSON cannot represent it.
    pub fn number(self, key: &str, value: f64) -> Object {
        if value.is_finite() { self.raw(key, &value.to_string()) } else { self }
    }

    pub fn flag(self, key: &str, value: bool) -> Object {
        self.raw(key, if value { "true" } else { "false" })
    }

    pub fn object(self, key: &str, value: Object) -> Object {
        self.raw(key, &value.done())
    }

    pub fn list(self, key: &str, items: impl IntoIterator<Item = String>) -> Object {
        let items: Vec<String> = items.into_iter().collect();
        self.raw(key, &format!("[{}]", items.join(",")))
    }

    /// Adds a value that is JSON already.
    pub fn raw(self, key: &str, value: &str) -> Object {
        let mut object = self.key(key);
        object.0.push_str(value);
        object
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn done(self) -> String {
        format!("{{{}}}", self.0)
    }
}

pub fn string(value: &str) -> String {
    let mut text = String::new();
    push_string(&mut text, value);
    text
}

fn push_string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if (c as u32) < 0x20 => text.push_str(&format!("\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_and_non_numbers_left_out() {
        let object = Object::default().text("a\"b", "\u{1}\t\\ λ").number("x", f64::NAN).number("y", 0.25);
        assert_eq!(object.done(), "{\"a\\\"b\":\"\\u0001\\t\\\\ λ\",\"y\":0.25}");
    }
}
