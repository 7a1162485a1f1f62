//! The requests to the server, and the checks that decide which answers are good.

use super::failure::Failed;
use super::http1::KEPT;
use super::scenario::answer::KeptAnswer;
use scruple_core::harmless_text::{plain, shortened};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The name in reports.
    pub name: String,
    /// The method.
    pub method: String,
    /// The path with its query, or `*`.
    pub path: String,
    /// Header lines besides `Host`, `Content-Length` and `Connection`, which are added unless they are given here.
    pub headers: Vec<(String, String)>,
    /// The content in bytes.
    pub body: Vec<u8>,
    /// The weight with which the request is drawn, relative to the others; positive.
    pub weight: f64,
    /// The check of the answers.
    pub check: AnswerCheck,
    /// The group with whose other requests it shares a row, if there is one.
    pub group: Option<String>,
    /// Whether answers are kept until they were examined, because more than the check needs them.
    pub keep: bool,
}

/// How the next request is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// At random, with the probabilities of the weights.
    #[default]
    Weighted,
    /// In turn, and from the first again after the last. Each thread counts separately.
    InTurn,
}

/// The check of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerCheck {
    /// The good statuses, each a code (`200`) or a class (`2xx`). If there are none, 2xx and 3xx are good.
    #[serde(default, deserialize_with = "statuses")]
    pub status: Vec<String>,
    /// A text that the first MiB of the content must contain.
    #[serde(default)]
    pub contains: Option<String>,
    /// The smallest number of bytes of content.
    #[serde(default)]
    pub min_bytes: Option<u64>,
    /// The largest number of bytes of content.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Headers, each with a text that its value must contain.
    #[serde(default)]
    pub headers: SortedMap<String, String>,
    /// JSON pointers (RFC 6901) into the content, each with the expected value.
    #[serde(default)]
    pub json: SortedMap<String, Value>,
}

impl AnswerCheck {
    /// The texts that an answer is compared with.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let json = self.json.values().filter_map(|value| value.as_str().map(str::to_owned));
        self.contains.iter().chain(self.headers.values()).cloned().chain(json)
    }

    /// Whether the check examines more than the status and the length.
    pub(crate) fn looks_inside(&self) -> bool {
        self.contains.is_some() || !self.headers.is_empty() || !self.json.is_empty()
    }

    /// Judges an answer. Its head and content are only used if [`AnswerCheck::looks_inside`].
    pub(crate) fn judge(&self, answer: &KeptAnswer<'_>) -> Result<(), Failed> {
        let good = match self.status.as_slice() {
            [] => (200..400).contains(&answer.status),
            some => some.iter().any(|pattern| status_matches(pattern, answer.status)),
        };
        if !good {
            return Err(Failed::Status(answer.status));
        }
        let unmet = self.unmet(answer);
        if unmet.is_empty() { Ok(()) } else { Err(Failed::Check(unmet)) }
    }

    /// The requirements that an answer with a good status does not meet, each with what came instead.
    fn unmet(&self, answer: &KeptAnswer<'_>) -> Vec<(String, String)> {
        let mut unmet = Vec::new();
        let cut = answer.body.len() >= KEPT || answer.length > KEPT as u64;
        let came = || match answer.coding() {
            Some((coding, false)) => format!("content in the coding {}", excerpt(coding)),
            _ if cut => format!("{}, of which only the first MiB is read", excerpt(answer.body)),
            _ => excerpt(answer.body),
        };
        let bytes = |bound: &str, limit: u64| {
            (format!("{bound} {limit} bytes of content"), answer.length.to_string())
        };
        unmet.extend(self.min_bytes.filter(|least| answer.length < *least).map(|n| bytes("at least", n)));
        unmet.extend(self.max_bytes.filter(|most| answer.length > *most).map(|n| bytes("at most", n)));
        if let Some(text) = self.contains.as_ref().filter(|text| !contains(answer.body, text.as_bytes())) {
            unmet.push((format!("{} in the content", excerpt(text.as_bytes())), came()));
        }
        for (name, text) in &self.headers {
            let values = answer.head.each(name);
            if !values.iter().any(|value| contains(value, text.as_bytes())) {
                let expected = format!("{} in the header {name}", excerpt(text.as_bytes()));
                let came = match values.is_empty() {
                    true => "no such header".to_owned(),
                    false => excerpt(&values.join(&b", "[..])),
                };
                unmet.push((expected, came));
            }
        }
        if self.json.is_empty() {
            return unmet;
        }
        let content = serde_json::from_slice::<Value>(answer.body);
        unmet.extend(self.json.iter().filter_map(|(pointer, wanted)| {
            let found = content.as_ref().map(|content| content.pointer(pointer));
            let came = match found {
                Ok(Some(found)) if equal(found, wanted) => return None,
                Ok(Some(found)) => excerpt(found.to_string().as_bytes()),
                Ok(None) => "no value there".to_owned(),
                Err(_) if cut => came(),
                Err(_) => format!("{}, which is not JSON", came()),
            };
            Some((format!("{} at {pointer}", excerpt(wanted.to_string().as_bytes())), came))
        }));
        unmet
    }
}

/// The number of characters of a text that a report quotes.
const QUOTED: usize = 60;

/// The beginning of a text in quotes, made harmless.
pub(crate) fn excerpt(text: &[u8]) -> String {
    // A character has at most four bytes; one that is cut is beyond those that are quoted.
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * (QUOTED + 1))]);
    format!("‘{}’", plain(&shortened(text.trim_end(), QUOTED)))
}

fn status_matches(pattern: &str, status: u16) -> bool {
    let code = status.to_string();
    pattern.len() == code.len()
        && pattern
            .bytes()
            .zip(code.bytes())
            .all(|(wanted, found)| wanted.eq_ignore_ascii_case(&b'x') || wanted == found)
}

/// Whether two JSON values are equal. Numbers are compared by value, with or without a decimal point.
fn equal(left: &Value, right: &Value) -> bool {
    left == right || left.is_number() && right.is_number() && left.as_f64() == right.as_f64()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

impl Request {
    /// A GET request for a path.
    pub fn get(path: &str) -> Request {
        Request {
            name: format!("GET {path}"),
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            weight: 1.0,
            check: AnswerCheck::default(),
            group: None,
            keep: false,
        }
    }

    /// Whether head and content of the answers are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.keep || self.check.looks_inside()
    }

    /// Whether the request may be sent again, because its method is idempotent (RFC 9110, section 9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(&self.method.as_str())
    }

    /// The bytes of the request in HTTP/1.1.
    pub(crate) fn http1(&self, host: &str, keep_alive: bool) -> Vec<u8> {
        let given = |name: &str| self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !given("host") {
            text += &format!("Host: {host}\r\n");
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let wants_length = !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        if wants_length && !given("content-length") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        if !keep_alive && !given("connection") {
            text += "Connection: close\r\n";
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Checks whether the request can be written without breaking the framing.
    ///
    /// # Errors
    /// Says what is wrong with the request, as a sentence.
    pub fn validate(&self) -> Result<(), String> {
        let word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let name = &self.name;
        if !word(&self.method) {
            return Err(format!("the method of request ‘{name}’ is not a word"));
        }
        if !word(&self.path) {
            return Err(format!(
                "the path of request ‘{name}’ contains a space or is empty: write %20 for a space"
            ));
        }
        if !(self.path.starts_with('/') || self.path == "*") {
            return Err(format!("the path of request ‘{name}’ does not begin with ‘/’"));
        }
        let bad = |(key, value): &(String, String)| {
            !word(key) || key.contains(':') || value.bytes().any(|byte| byte == b'\r' || byte == b'\n')
        };
        if let Some((key, _)) = self.headers.iter().find(|header| bad(header)) {
            return Err(format!("the header ‘{key}’ of request ‘{name}’ is malformed"));
        }
        let malformed = |pattern: &&String| {
            pattern.len() != 3
                || pattern.bytes().any(|byte| !byte.is_ascii_digit() && !byte.eq_ignore_ascii_case(&b'x'))
        };
        if let Some(pattern) = self.check.status.iter().find(malformed) {
            return Err(format!(
                "‘{pattern}’ is not a status that an answer to request ‘{name}’ can have: give one such as 200 or 4xx; a \
                 text in the answer is --expect text:TEXT, or ‘contains’ in a scenario"
            ));
        }
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(format!("the weight of request ‘{name}’ is not a positive number"));
        }
        Ok(())
    }
}

fn statuses<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum One {
        Code(u16),
        Class(String),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Status {
        One(One),
        Several(Vec<One>),
    }
    let several = match Status::deserialize(deserializer)? {
        Status::One(one) => vec![one],
        Status::Several(several) => several,
    };
    Ok(several
        .into_iter()
        .map(|one| match one {
            One::Code(code) => code.to_string(),
            One::Class(class) => class,
        })
        .collect())
}

/// Reads a file of requests. A line `METHOD PATH` or `PATH` starts a request, lines `Name: value` after it are its
/// headers, and a line `@FILE` names its content. Empty lines and lines that start with `#` are skipped.
///
/// # Errors
/// Says what is wrong with the file, as a sentence that names the line.
pub fn request_file(text: &str, folder: &Path) -> Result<Vec<Request>, String> {
    let mut requests: Vec<Request> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if let Some(file) = line.strip_prefix('@') {
            let request = requests.last_mut().ok_or_else(|| wrong("content before any request"))?;
            request.body = read(&folder.join(file), &request.name)?;
        } else if line.starts_with('/') {
            requests.push(Request::get(line));
        } else if first.bytes().all(|byte| byte.is_ascii_uppercase()) && rest.trim().starts_with('/') {
            let path = rest.trim();
            requests.push(Request { method: first.to_owned(), name: line.to_owned(), ..Request::get(path) });
        } else if let Some((name, value)) = line.split_once(':') {
            let request = requests.last_mut().ok_or_else(|| wrong("a header before any request"))?;
            request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
        } else {
            return Err(wrong("neither ‘METHOD /path’, ‘/path’, ‘Name: value’ nor ‘@file’"));
        }
    }
    if requests.is_empty() {
        return Err("the file has no requests".to_owned());
    }
    requests.iter().try_for_each(Request::validate)?;
    Ok(requests)
}

fn read(path: &Path, request: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path)
        .map_err(|error| format!("cannot read ‘{}’ for request ‘{request}’: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::scenario::answer::AnswerHead;
    use super::*;

    #[test]
    fn a_file_of_requests_is_read() {
        let text = "# comment\n/a\nGET /b?x=1\nX-Id: 7\n\nDELETE /c\n";
        let requests = request_file(text, Path::new("/")).expect("valid");
        let shown: Vec<_> =
            requests.iter().map(|r| (r.method.as_str(), r.path.as_str(), r.headers.len())).collect();
        assert_eq!(shown, [("GET", "/a", 0), ("GET", "/b?x=1", 1), ("DELETE", "/c", 0)]);
        assert!(request_file("X: y\n/a", Path::new("/")).expect_err("order").contains("line 1"));
    }

    #[test]
    fn checks_judge_status_length_content_and_headers() {
        let judge = |check: &AnswerCheck, status, length, body: &[u8]| {
            let head = AnswerHead::Http1(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nVary: a\r\nvary: b\r\n\r\n",
            );
            match check.judge(&KeptAnswer { status, length, head, body }) {
                Ok(()) => String::new(),
                Err(Failed::Status(status)) => status.to_string(),
                Err(Failed::Cause(_, cause)) => cause.into_owned(),
                Err(Failed::Check(unmet)) => unmet
                    .iter()
                    .map(|(expected, came)| format!("{expected}: {came}"))
                    .collect::<Vec<_>>()
                    .join("; "),
            }
        };
        let any = AnswerCheck::default();
        assert_eq!(judge(&any, 304, 0, b""), "");
        assert_eq!(judge(&any, 500, 0, b""), "500");
        let strict = AnswerCheck {
            status: vec!["2xx".into()],
            contains: Some("lo".into()),
            min_bytes: Some(2),
            max_bytes: Some(6),
            ..any
        };
        assert_eq!(judge(&strict, 204, 5, b"hello"), "");
        assert_eq!(judge(&strict, 301, 5, b"hello"), "301");
        assert_eq!(judge(&strict, 200, 5, b"ho\x1b[lla"), "‘lo’ in the content: ‘ho\u{fffd}[lla’");
        let long = [b"x".repeat(58), "éé\n".repeat(9_999).into_bytes()].concat();
        assert_eq!(judge(&strict, 200, 5, &long), format!("‘lo’ in the content: ‘{}é…’", "x".repeat(58)));
        assert_eq!(judge(&strict, 200, 1, b"hello"), "at least 2 bytes of content: 1");
        assert_eq!(judge(&strict, 200, 7, b"hello"), "at most 6 bytes of content: 7");
        let both = "at least 2 bytes of content: 1; ‘lo’ in the content: ‘h’";
        assert_eq!(judge(&strict, 200, 1, b"h"), both);
        let header = |name: &str, text: &str| AnswerCheck {
            headers: SortedMap::from([(name.to_owned(), text.to_owned())]),
            ..AnswerCheck::default()
        };
        let expected = "‘json’ in the header Content-Type: ‘text/html’";
        assert_eq!(judge(&header("Content-Type", "json"), 200, 1, b""), expected);
        assert_eq!(judge(&header("Age", "json"), 200, 1, b""), "‘json’ in the header Age: no such header");
        assert_eq!(judge(&header("Vary", "b"), 200, 1, b""), "");
        assert_eq!(judge(&header("Vary", "c"), 200, 1, b""), "‘c’ in the header Vary: ‘a, b’");
        let json = |pointer: &str, value: Value| AnswerCheck {
            json: SortedMap::from([(pointer.to_owned(), value)]),
            ..AnswerCheck::default()
        };
        let body = br#"{"order":{"paid":true,"sum":7}}"#;
        assert_eq!(judge(&json("/order/paid", true.into()), 200, 1, body), "");
        assert_eq!(judge(&json("/order/sum", 7.0.into()), 200, 1, body), "");
        assert_eq!(judge(&json("/order/sum", 8.into()), 200, 1, body), "‘8’ at /order/sum: ‘7’");
        assert_eq!(judge(&json("/order/none", 8.into()), 200, 1, body), "‘8’ at /order/none: no value there");
        let expected = "‘8’ at /order: ‘no JSON’, which is not JSON";
        assert_eq!(judge(&json("/order", 8.into()), 200, 1, b"no JSON"), expected);
        let part = b"[1,".repeat(KEPT / 3 + 1);
        let came = judge(&json("/order", 8.into()), 200, 2 * KEPT as u64, &part);
        assert!(came.ends_with("…’, of which only the first MiB is read"), "{came}");
        let head = AnswerHead::Http1(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n");
        let coded = KeptAnswer { status: 200, length: 3, head, body: b"\x8b\x02\x80" };
        let contains = AnswerCheck { contains: Some("lo".into()), ..AnswerCheck::default() };
        let unmet = vec![("‘lo’ in the content".to_owned(), "content in the coding ‘br’".to_owned())];
        assert_eq!(contains.judge(&coded), Err(Failed::Check(unmet)));
    }
}
