//! Reads access logs of servers, in the common and the combined format of Apache and nginx.

use super::super::request::{AnswerCheck, Request};
use super::super::scenario::RequestFileContent;
use super::{RecordedRequest, expected, replayed, times};
use jiff::fmt::strtime;
use scruple_stats::sorting;

/// A second in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// A line of a log: `host ident user [time] "METHOD path HTTP/1.1" status bytes`, with possible additions.
struct AccessLogLine<'a> {
    /// The time in seconds since 1970.
    second: i64,
    method: &'a str,
    path: &'a str,
    status: u16,
    /// The rest of the line, with `"referrer" "agent"` in the combined format.
    rest: &'a str,
}

/// Whether the first line of a text looks like one of an access log.
pub fn is_access_log(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| bracketed(line).is_some())
}

/// Reads a log. Lines without a request are left out, and a note gives their number. Times in logs are whole seconds,
/// so requests of the same second are spread evenly over it.
///
/// # Errors
/// Fails if no line contains a request.
pub fn access_log(text: &str) -> Result<RequestFileContent, String> {
    let (mut lines, mut odd, mut without) = (Vec::new(), 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match parsed(line) {
            Some(line) => lines.push(line),
            None => odd += 1,
        }
    }
    // Servers write a line when the request ends, so lines are only nearly in order.
    sorting::by_key(&mut lines, |line| line.second);
    let mut all = Vec::new();
    for second in lines.chunk_by(|left, right| left.second == right.second) {
        for (place, line) in second.iter().enumerate() {
            without += usize::from(matches!(line.method, "POST" | "PUT" | "PATCH"));
            let at = line.second * SECOND + (place as i64 * SECOND) / second.len() as i64;
            let mut quoted = line.rest.split('"').skip(1).step_by(2);
            let (referrer, agent) = (quoted.next(), quoted.next());
            let header = |name: &str, value: Option<&str>| {
                let value = value.filter(|value| !matches!(*value, "" | "-"))?;
                Some((name.to_owned(), value.chars().filter(|c| !c.is_control()).collect()))
            };
            let headers = header("Referer", referrer).into_iter().chain(header("User-Agent", agent));
            let request = Request {
                name: format!("{} {}", line.method, line.path),
                method: line.method.to_owned(),
                headers: headers.collect(),
                check: AnswerCheck { status: expected(line.status), ..AnswerCheck::default() },
                ..Request::get(line.path)
            };
            match request.validate() {
                Ok(()) => all.push(RecordedRequest { at, request }),
                Err(_) => odd += 1,
            }
        }
    }
    if all.is_empty() {
        return Err("not one line of the log holds a request".to_owned());
    }
    let mut notes = Vec::new();
    if odd > 0 {
        notes.push(format!(
            "left out of the log: {} without a request that can be sent",
            times(odd, "line", "lines")
        ));
    }
    if without > 0 {
        let what = times(without, "request", "requests");
        notes.push(format!("{what} had content, which a log does not keep and which is not sent"));
    }
    Ok(replayed(all, notes))
}

/// The time of a line in seconds since 1970, and the rest of the line after it.
fn bracketed(line: &str) -> Option<(i64, &str)> {
    let open = line.find('[')?;
    let (time, rest) = line[open + 1..].split_once(']')?;
    let time = strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).ok()?.to_timestamp().ok()?;
    // Times are in nanoseconds later, which end in 2262.
    let second = time.as_second();
    second.checked_mul(SECOND)?.checked_add(SECOND)?;
    Some((second, rest))
}

fn parsed(line: &str) -> Option<AccessLogLine<'_>> {
    let (second, rest) = bracketed(line)?;
    let (request, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    let mut words = request.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let status = rest.split_whitespace().next()?.parse().ok()?;
    // Requests to a proxy contain the whole URL. A path may contain one in its query.
    let path = match path.split_once("://").filter(|_| !path.starts_with('/')) {
        Some((_, url)) => url.find('/').map_or("/", |at| &url[at..]),
        None => path,
    };
    Some(AccessLogLine { second, method, path, status, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326
10.0.0.1 - - [10/Oct/2000:13:55:38 -0700] "POST /login HTTP/1.1" 302 0 "http://h/start" "Mozilla/5.0 (X11)"
10.0.0.1 - - [10/Oct/2000:13:55:38 -0700] "-" 408 0 "-" "-"
10.0.0.2 - - [10/Oct/2000:22:55:38 +0200] "GET /none HTTP/1.1" 404 9 "-" "-"
10.0.0.2 - - [10/Oct/2000:22:55:39 +0200] "GET http://h/all HTTP/1.1" 200 9 "-" "-"
10.0.0.2 - - [10/Oct/2000:22:55:40 +0200] "GET /go?to=http://h/all HTTP/1.1" 200 9 "-" "-"
"#;

    #[test]
    fn lines_are_read_with_their_times() {
        assert!(is_access_log(LOG) && !is_access_log("GET /a\nAccept: */*\n") && !is_access_log("/a [b]\n"));
        let read = access_log(LOG).expect("a log");
        let shown: Vec<(&str, &str)> =
            read.requests.iter().map(|request| (request.method.as_str(), request.path.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("GET", "/a.gif"),
                ("POST", "/login"),
                ("GET", "/none"),
                ("GET", "/all"),
                ("GET", "/go?to=http://h/all")
            ]
        );
        assert_eq!(read.requests[1].headers[0], ("Referer".to_owned(), "http://h/start".to_owned()));
        assert_eq!((read.requests[1].headers.len(), read.requests[2].headers.len()), (2, 0));
        assert_eq!(
            (&read.requests[0].check.status, &read.requests[2].check.status),
            (&vec![], &vec!["404".to_owned()])
        );
        let recorded = read.scenario.expect("times").recorded;
        assert_eq!(
            recorded,
            [(0, 0), (2_000_000_000, 1), (2_500_000_000, 2), (3_000_000_000, 3), (4_000_000_000, 4)]
        );
        assert_eq!(read.notes.len(), 2, "{:?}", read.notes);
        assert!(access_log("nothing\n").is_err());
    }
}
