//! Requests whose contents differ between sessions.

use super::super::request::Request;
use super::placeholders::TextPiece;

/// A request with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    pub(crate) path: Vec<TextPiece>,
    pub(crate) headers: Vec<(String, Vec<TextPiece>)>,
    pub(crate) body: Vec<TextPiece>,
}

/// Where a placeholder stands, which determines how its value is escaped: no value can add a header or another
/// request.
#[derive(Clone, Copy, PartialEq)]
enum PlaceholderPosition {
    /// A part of a path: all bytes but letters, digits and `-._~` are percent-encoded.
    Part,
    /// A whole path: bytes that cannot stand in a path are percent-encoded.
    Path,
    /// The value of a header: control characters become spaces.
    Header,
    /// The content: the value is unchanged.
    Body,
}

impl RequestTemplate {
    /// The slots of the values that it inserts.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        let headers = self.headers.iter().flat_map(|(_, value)| value);
        self.path.iter().chain(headers).chain(&self.body).filter_map(|piece| match piece {
            TextPiece::Value(slot) => Some(*slot),
            TextPiece::Plain(_) => None,
        })
    }

    /// The request with these values; a missing value is empty.
    pub(crate) fn filled(&self, base: &Request, values: &[Option<Vec<u8>>]) -> Request {
        let path = match self.path.first() {
            Some(TextPiece::Value(slot)) => {
                let mut path = Vec::new();
                put(&mut path, values[*slot].as_deref().unwrap_or_default(), PlaceholderPosition::Path);
                if path.first() != Some(&b'/') {
                    path.insert(0, b'/');
                }
                path.extend(text(&self.path[1..], values, PlaceholderPosition::Part));
                path
            }
            _ => text(&self.path, values, PlaceholderPosition::Part),
        };
        let header = |(name, pieces): &(String, Vec<TextPiece>)| {
            let value = text(pieces, values, PlaceholderPosition::Header);
            (name.clone(), String::from_utf8_lossy(&value).into_owned())
        };
        Request {
            path: String::from_utf8_lossy(&path).into_owned(),
            headers: self.headers.iter().map(header).collect(),
            body: text(&self.body, values, PlaceholderPosition::Body),
            ..base.clone()
        }
    }
}

fn text(pieces: &[TextPiece], values: &[Option<Vec<u8>>], context: PlaceholderPosition) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            TextPiece::Plain(plain) => text.extend_from_slice(plain),
            TextPiece::Value(slot) => put(&mut text, values[*slot].as_deref().unwrap_or_default(), context),
        }
    }
    text
}

fn put(text: &mut Vec<u8>, value: &[u8], context: PlaceholderPosition) {
    for byte in value.iter().copied() {
        let plain = match context {
            PlaceholderPosition::Part => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
            PlaceholderPosition::Path => byte.is_ascii_graphic() && byte != b'#',
            PlaceholderPosition::Header => !byte.is_ascii_control(),
            PlaceholderPosition::Body => true,
        };
        match (plain, context) {
            (true, _) => text.push(byte),
            (false, PlaceholderPosition::Header) => text.push(b' '),
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
        let template = RequestTemplate {
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
        let whole = RequestTemplate { path: cut("${v}"), headers: Vec::new(), body: Vec::new() };
        let path = |value: &str| whole.filled(&Request::get("/"), &[Some(value.into())]).path;
        assert_eq!(path("/items/7?x=1&y=2"), "/items/7?x=1&y=2");
        assert_eq!(path("items 7"), "/items%207");
    }
}
