//! The cookies of one user (RFC 6265). Domains are ignored, since there is only the server under load.

/// The cookies of a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cookies(Vec<Cookie>);

#[derive(Clone, Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    secure: bool,
}

impl Cookies {
    /// Removes all cookies.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Processes the value of a `Set-Cookie` header in the answer to a request for `path`.
    pub(crate) fn set(&mut self, text: &[u8], path: &[u8]) {
        let mut parts = text.split(|byte| *byte == b';');
        let Some((name, value)) = parts.next().and_then(pair) else { return };
        if name.is_empty() {
            return;
        }
        let mut cookie =
            Cookie { name: name.to_vec(), value: value.to_vec(), path: folder(path).to_vec(), secure: false };
        let (mut gone, mut past) = (None, false);
        for part in parts {
            let (key, value) = pair(part).unwrap_or((part.trim_ascii(), b""));
            if key.eq_ignore_ascii_case(b"max-age") {
                gone = is_over(value).or(gone);
            } else if key.eq_ignore_ascii_case(b"expires") {
                past = is_past(value);
            } else if key.eq_ignore_ascii_case(b"path") && value.first() == Some(&b'/') {
                cookie.path = value.to_vec();
            } else if key.eq_ignore_ascii_case(b"secure") {
                cookie.secure = true;
            }
        }
        self.0.retain(|other| other.name != cookie.name || other.path != cookie.path);
        // The age takes precedence over the date.
        if !gone.unwrap_or(past) {
            // Cookies with longer paths come first, because servers take the first of two with the same name.
            let at = self.0.iter().position(|other| other.path.len() < cookie.path.len());
            self.0.insert(at.unwrap_or(self.0.len()), cookie);
        }
    }

    /// The value of the `Cookie` header of a request; `None` if there is nothing to send.
    pub(crate) fn header(&self, path: &[u8], encrypted: bool) -> Option<Vec<u8>> {
        let path = path.split(|byte| *byte == b'?').next().unwrap_or(path);
        let sent = |cookie: &&Cookie| matches(&cookie.path, path) && (encrypted || !cookie.secure);
        let mut text = Vec::new();
        for cookie in self.0.iter().filter(sent) {
            if !text.is_empty() {
                text.extend_from_slice(b"; ");
            }
            text.extend_from_slice(&cookie.name);
            text.push(b'=');
            text.extend_from_slice(&cookie.value);
        }
        (!text.is_empty()).then_some(text)
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

/// The default path of a cookie: the request's path up to its last slash, or `/` (section 5.1.4).
fn folder(path: &[u8]) -> &[u8] {
    let path = path.split(|byte| *byte == b'?').next().unwrap_or(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// Whether a cookie with the path `own` is sent with a request for `path` (section 5.1.4).
fn matches(own: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || own.ends_with(b"/") || rest[0] == b'/')
}

/// Whether an age in seconds is not positive; `None` if it is not a number.
fn is_over(age: &[u8]) -> Option<bool> {
    let (digits, negative) = age.strip_prefix(b"-").map_or((age, false), |digits| (digits, true));
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| negative || digits.iter().all(|digit| *digit == b'0'))
}

/// Whether a date is in the past. Only the year is compared, which is enough because servers delete cookies with
/// dates in the distant past.
fn is_past(date: &[u8]) -> bool {
    let years = date.split(|byte| !byte.is_ascii_digit()).filter(|digits| digits.len() == 4);
    let year = years.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok()).next();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    year.is_some_and(|year| year < 1970 + now / 31_556_952)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(cookies: &Cookies, path: &str) -> String {
        let header = cookies.header(path.as_bytes(), false).unwrap_or_default();
        String::from_utf8(header).expect("text")
    }

    #[test]
    fn cookies_are_sent_by_their_path_and_deleted_on_request() {
        let mut cookies = Cookies::default();
        cookies.set(b"id=1; Path=/; HttpOnly", b"/login");
        cookies.set(b"cart = 7 ; path=/shop", b"/login");
        cookies.set(b"here=x", b"/a/b?c");
        cookies.set(b"safe=y; Secure; Path=/", b"/");
        assert_eq!(sent(&cookies, "/shop/cart?x=/"), "cart=7; id=1");
        assert_eq!(sent(&cookies, "/shopping"), "id=1");
        assert_eq!(sent(&cookies, "/a/z"), "here=x; id=1");
        assert_eq!(cookies.header(b"/", true).as_deref(), Some(&b"id=1; safe=y"[..]));
        cookies.set(b"id=2; Path=/", b"/");
        assert_eq!(sent(&cookies, "/"), "id=2");
        cookies.set(b"id=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", b"/");
        cookies.set(b"cart=; Path=/shop; Max-Age=0", b"/");
        assert_eq!(sent(&cookies, "/shop/"), "");
        cookies.set(b"late=1; Path=/; Expires=Thu, 01 Jan 2970 00:00:00 GMT", b"/");
        assert_eq!(sent(&cookies, "/"), "late=1");
        cookies.set(b"late=2; Path=/b; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", b"/");
        cookies.set(b"gone=4; Path=/; Max-Age=1h; Expires=Thu, 01 Jan 1970 00:00:00 GMT", b"/");
        cookies.set(b"gone=4; Path=/; Max-Age=00", b"/");
        cookies.set(b"next=3; Path=/", b"/");
        assert_eq!(sent(&cookies, "/b"), "late=2; late=1; next=3");
    }
}
