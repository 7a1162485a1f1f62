//! Values that are carried from an answer into later requests.

use super::super::request::excerpt;
use super::answer::KeptAnswer;
use regex_lite::Regex;
use serde_json::Value;
use std::borrow::Cow;

/// A value that is taken from an answer.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// The slot of the session's values that it sets.
    pub(crate) slot: usize,
    pub(crate) from: CaptureSource,
}

/// Where a value is in an answer.
#[derive(Clone, Debug)]
pub(crate) enum CaptureSource {
    /// The value at a JSON pointer (RFC 6901) in the content.
    Json(String),
    /// The first group of a regular expression that matches in the content, or the whole match if it has no group.
    Regex(Regex),
    /// The value of a header.
    Header(String),
}

impl CaptureSource {
    /// The value in this answer; `None` if the answer has none.
    pub(crate) fn find(&self, answer: &KeptAnswer<'_>) -> Option<Vec<u8>> {
        match self {
            CaptureSource::Json(pointer) => {
                let content: Value = serde_json::from_str(std::str::from_utf8(answer.body).ok()?).ok()?;
                text_of(content.pointer(pointer)?)
            }
            CaptureSource::Regex(regex) => {
                // A content that is not UTF-8 is read byte by byte, so that what is found is sent as it was.
                let (text, encoded) = match std::str::from_utf8(answer.body) {
                    Ok(text) => (Cow::Borrowed(text), true),
                    Err(_) => (answer.body.iter().copied().map(char::from).collect(), false),
                };
                let found = regex.captures(&text)?;
                let found = found.get(1).or(found.get(0))?.as_str();
                Some(match encoded {
                    true => found.as_bytes().to_vec(),
                    false => found.chars().map(|c| c as u8).collect(),
                })
            }
            CaptureSource::Header(name) => answer.head.header(name).map(<[u8]>::to_vec),
        }
    }

    /// What is searched for in an answer, in words.
    pub(crate) fn named(&self) -> String {
        match self {
            CaptureSource::Json(pointer) => format!("JSON value at {}", excerpt(pointer.as_bytes())),
            CaptureSource::Regex(regex) => format!("match of {}", excerpt(regex.as_str().as_bytes())),
            CaptureSource::Header(name) => format!("header {name}"),
        }
    }
}

/// A JSON value as the text that is sent: a string without its quotes, other values as JSON. `null` is no value.
pub(crate) fn text_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone().into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::AnswerHead;
    use super::*;

    #[test]
    fn values_are_found_by_pointer_expression_and_header() {
        let head = b"HTTP/1.1 200 OK\r\nETag: \"x1\"\r\n\r\n";
        let answer = KeptAnswer {
            status: 200,
            length: 70,
            head: AnswerHead::Http1(head),
            body: br#"{"user":{"id":7,"name":"Ada","none":null},"html":"<a href='/items/42'>"}"#,
        };
        let find =
            |source: CaptureSource| source.find(&answer).map(|value| String::from_utf8(value).expect("text"));
        assert_eq!(find(CaptureSource::Json("/user/id".into())).as_deref(), Some("7"));
        assert_eq!(find(CaptureSource::Json("/user/name".into())).as_deref(), Some("Ada"));
        assert_eq!(find(CaptureSource::Json("/user/none".into())), None);
        let regex = |text: &str| CaptureSource::Regex(Regex::new(text).expect("an expression"));
        assert_eq!(find(regex(r"/items/(\d+)")).as_deref(), Some("42"));
        assert_eq!(find(regex(r"/items/\d")).as_deref(), Some("/items/4"));
        assert_eq!(find(regex("/orders/")), None);
        let latin = KeptAnswer { body: b"name=Andr\xe9;", ..answer };
        assert_eq!(regex("name=([^;]*)").find(&latin).as_deref(), Some(&b"Andr\xe9"[..]));
        assert_eq!(find(CaptureSource::Header("etag".into())).as_deref(), Some("\"x1\""));
    }
}
