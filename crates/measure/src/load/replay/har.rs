//! Reads recordings of browsers: HTTP Archive 1.2.

use super::super::request::{AnswerCheck, Request};
use super::super::scenario::RequestFileContent;
use super::{RecordedRequest, expected, replayed, times};
use jiff::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
struct Archive {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    started_date_time: String,
    request: Sent,
    response: Option<HarResponse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    post_data: Option<Content>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
}

#[derive(Deserialize)]
struct HarResponse {
    status: i64,
}

/// Headers that belong to a connection or are created for each request, so that recorded ones are not sent.
const OWN: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "upgrade",
    "http2-settings",
    "proxy-connection",
];

/// Reads a recording. Requests to other servers than the first one are left out, and a note gives their number.
///
/// # Errors
/// Says what is wrong with the recording, as a sentence.
pub fn har(text: &str) -> Result<RequestFileContent, String> {
    // Some tools begin their files with a byte-order mark.
    let archive: Archive = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it is not an HTTP Archive: {error}"))?;
    let mut own: Option<String> = None;
    let (mut all, mut others) = (Vec::new(), 0);
    for (number, entry) in archive.log.entries.into_iter().enumerate() {
        let wrong = |why: String| format!("entry {}: {why}", number + 1);
        let at: Timestamp = entry.started_date_time.parse().map_err(|_| {
            wrong(format!("‘{}’ is not a time such as 2024-05-01T12:00:00.000Z", entry.started_date_time))
        })?;
        let Some((host, path)) = place(&entry.request.url) else {
            others += 1;
            continue;
        };
        if *own.get_or_insert_with(|| host.to_owned()) != host {
            others += 1;
            continue;
        }
        let headers = entry.request.headers.into_iter();
        let kept = |header: &Header| {
            !header.name.starts_with(':') && !OWN.iter().any(|own| header.name.eq_ignore_ascii_case(own))
        };
        let status = entry.response.map_or(0, |got| u16::try_from(got.status).unwrap_or(0));
        let request = Request {
            name: format!("{} {path}", entry.request.method),
            method: entry.request.method,
            headers: headers.filter(kept).map(|header| (header.name, header.value)).collect(),
            body: entry.request.post_data.and_then(|content| content.text).unwrap_or_default().into_bytes(),
            check: AnswerCheck { status: expected(status), ..AnswerCheck::default() },
            ..Request::get(path)
        };
        request.validate().map_err(wrong)?;
        all.push(RecordedRequest { at: at.as_nanosecond() as i64, request });
    }
    if all.is_empty() {
        return Err("the recording has no request to a server by http or https".to_owned());
    }
    let mut notes = Vec::new();
    if others > 0 {
        notes.push(format!(
            "left out of the recording: {} to other servers than {}",
            times(others, "request", "requests"),
            own.unwrap_or_default()
        ));
    }
    Ok(replayed(all, notes))
}

/// The server and the path of an http or https URL; `None` for other URLs.
fn place(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    match rest.find('/') {
        Some(at) => Some(rest.split_at(at)),
        None => Some((rest, "/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: &str, url: &str, more: &str) -> String {
        format!(
            r#"{{"startedDateTime":"{at}","time":1,"request":{{"method":"GET","url":"{url}","headers":[{{"name":":path","value":"/"}},{{"name":"Host","value":"h"}},{{"name":"Accept","value":"*/*"}}]{more}}},"response":{{"status":404}}}}"#
        )
    }

    #[test]
    fn requests_of_the_first_server_are_read_with_their_times() {
        let entries = [
            entry("2024-05-01T12:00:00.500Z", "https://shop.example/b?x=1#y", ""),
            entry("2024-05-01T14:00:00.000+02:00", "https://shop.example/a", r#","postData":{"text":"q=1"}"#),
            entry("2024-05-01T12:00:00.100Z", "https://ads.example/", ""),
            entry("2024-05-01T12:00:01.000Z", "https://shop.example/b?x=1", ""),
        ];
        let read = har(&format!("{{\"log\":{{\"version\":\"1.2\",\"entries\":[{}]}}}}", entries.join(",")));
        let read = read.expect("a recording");
        let shown: Vec<(&str, &[u8])> =
            read.requests.iter().map(|request| (request.path.as_str(), request.body.as_slice())).collect();
        assert_eq!(shown, [("/a", &b"q=1"[..]), ("/b?x=1", b"")]);
        assert_eq!(read.requests[0].headers, [("Accept".to_owned(), "*/*".to_owned())]);
        assert_eq!(read.requests[0].check.status, ["404"]);
        let recorded = read.scenario.expect("times").recorded;
        assert_eq!(recorded, [(0, 0), (500_000_000, 1), (1_000_000_000, 1)]);
        assert_eq!(read.notes.len(), 1, "{:?}", read.notes);
        assert!(read.notes[0].starts_with("left out of the recording: 1 request to other servers"));
    }

    #[test]
    fn a_file_that_is_not_a_recording_is_refused() {
        assert!(har("{}").expect_err("refused").contains("not an HTTP Archive"));
        let entry = entry("yesterday", "http://h/", "");
        let wrong = har(&format!("{{\"log\":{{\"entries\":[{entry}]}}}}")).expect_err("refused");
        assert!(wrong.starts_with("entry 1: ‘yesterday’"), "{wrong}");
        assert!(har("{\"log\":{\"entries\":[]}}").expect_err("refused").contains("no request"));
    }
}
