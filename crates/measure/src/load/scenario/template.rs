//! Requests whose contents differ between sessions.

use super::super::request::Request;
use super::placeholders::Piece;

/// A request with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) path: Vec<Piece>,
    pub(crate) headers: Vec<(String, Vec<Piece>)>,
    pub(crate) body: Vec<Piece>,
}

/// Where a placeholder stands, which determines how its value is escaped: no value can add a header or another
/// request.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    /// A part of a path: all bytes but letters, digits and `-._~` are percent-encoded.
    Part,
    /// A whole path: bytes that cannot stand in a path are percent-encoded.
    Path,
    /// The value of a header: control characters become spaces.
    Header,
    /// The content: the value is unchanged.
    Body,
}

impl Template {
    /// The request with these values; a missing value is empty.
    pub(crate) fn filled(&self, base: &Request, values: &[Option<Vec<u8>>]) -> Request {
        let path = match self.path.first() {
            Some(Piece::Value(slot)) => {
                let mut path = Vec::new();
                put(&mut path, values[*slot].as_deref().unwrap_or_default(), Context::Path);
                if path.first() != Some(&b'/') {
                    path.insert(0, b'/');
                }
                path.extend(text(&self.path[1..], values, Context::Part));
                path
            }
            _ => text(&self.path, values, Context::Part),
        };
        let header = |(name, pieces): &(String, Vec<Piece>)| {
            let value = text(pieces, values, Context::Header);
            (name.clone(), String::from_utf8_lossy(&value).into_owned())
        };
        Request {
            path: String::from_utf8_lossy(&path).into_owned(),
            headers: self.headers.iter().map(header).collect(),
            body: text(&self.body, values, Context::Body),
            ..base.clone()
        }
    }
}

fn text(pieces: &[Piece], values: &[Option<Vec<u8>>], context: Context) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => text.extend_from_slice(plain),
            Piece::Value(slot) => put(&mut text, values[*slot].as_deref().unwrap_or_default(), context),
        }
    }
    text
}

fn put(text: &mut Vec<u8>, value: &[u8], context: Context) {
    for byte in value.iter().copied() {
        let plain = match context {
            Context::Part => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
            Context::Path => byte.is_ascii_graphic() && byte != b'#',
            Context::Header => !byte.is_ascii_control(),
            Context::Body => true,
        };
        match (plain, context) {
            (true, _) => text.push(byte),
            (false, Context::Header) => text.push(b' '),
            (false, _) => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::placeholders::pieces;
    use super::*;

    #[test]
    fn values_cannot_break_out_of_their_place() {
        let cut = |text: &str| pieces(text, &mut |_| Ok(0)).expect("well-formed");
        let template = Template {
            path: cut("/a/${v}?q=${v}"),
            headers: vec![("X".to_owned(), cut("<${v}>"))],
            body: cut("[${v}]"),
        };
        let value = vec![Some(b"1 /&\r\nHost: evil".to_vec())];
        let sent = template.filled(&Request::get("/"), &value);
        assert_eq!(sent.path, "/a/1%20%2F%26%0D%0AHost%3A%20evil?q=1%20%2F%26%0D%0AHost%3A%20evil");
        assert_eq!(sent.headers[0].1, "<1 /&  Host: evil>");
        assert_eq!(sent.body, b"[1 /&\r\nHost: evil]");
        assert_eq!(sent.validate(), Ok(()));
        let whole = Template { path: cut("${v}"), headers: Vec::new(), body: Vec::new() };
        let path = |value: &str| whole.filled(&Request::get("/"), &[Some(value.into())]).path;
        assert_eq!(path("/items/7?x=1&y=2"), "/items/7?x=1&y=2");
        assert_eq!(path("items 7"), "/items%207");
    }
}
