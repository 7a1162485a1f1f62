//! What a load exports to other programs: files of single requests, HdrHistogram's log, Prometheus, OpenTelemetry.

use crate::load::servers::{HELLO, answers};
use crate::support::{Place, at};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

fn load(place: &Place, more: &[&str]) -> crate::support::Answer {
    let url = format!("http://{}/", answers(HELLO));
    let mut words = vec!["load", &url, "--json", "--no-cost", "--timeout", "30s", "--warmup", "off"];
    words.extend(more);
    let answer = place.run(words);
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    answer
}

#[test]
fn every_request_is_written_as_lines_of_json_or_csv() {
    let place = Place::new();
    load(&place, &["-n", "5000", "-c", "3", "--export", "all.jsonl"]);
    let lines: Vec<Value> =
        place.read("all.jsonl").lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), 5000);
    for line in &lines {
        let time = |name: &str| line[name].as_i64().expect("a time");
        assert!(time("due") <= time("sent") && time("sent") < time("done"), "{line}");
        assert_eq!(
            (&line["status"], &line["bytes"], &line["result"]),
            (&200.into(), &13.into(), &"ok".into())
        );
    }
    load(&place, &["-n", "20", "-c", "1", "-i", "--expect", "404", "--export", "requests:all.csv"]);
    let text = place.read("all.csv");
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some("server,turn,request,due,sent,done,status,bytes,result"));
    assert_eq!(rows.clone().filter(|row| row.ends_with(",200,0,bad-status")).count(), 20, "{text}");
    assert_eq!(rows.count(), 20);
}

#[test]
fn credentials_of_a_load_are_neither_shown_nor_kept() {
    let place = Place::new();
    let url = format!("http://{}/?page=2&access_token=WORD1", answers(HELLO));
    let words = ["load", &url, "-n", "300", "-c", "2", "--no-cost", "--timeout", "30s", "--warmup", "off"];
    let secrets = ["-H", "Authorization: Bearer WORD2", "-HCookie: a=WORD3", "-H", "Accept: text/html"];
    let answer = place.run(words.iter().chain(&secrets).chain(&["--export", "a.json", "--export", "a.html"]));
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    let exported = place.read("a.json");
    for text in [&answer.exchange(), &exported, &place.read("a.html"), &place.run(["show", "last"]).stdout] {
        assert!(!text.contains("WORD"), "{text}");
    }
    assert!(exported.contains("?page=2&access_token=***"), "{exported}");
    assert!(exported.contains("Accept: text/html"), "{exported}");
}

#[test]
fn the_log_of_hdrhistogram_has_the_parts_of_the_load() {
    let place = Place::new();
    let answer = load(&place, &["-n", "300", "-c", "2", "--export", "load.hlog"]);
    let log = place.read("load.hlog");
    let parts = log.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(parts, at(&answer.json(), "/load/servers/0/timeline").as_array().map_or(0, Vec::len), "{log}");
    assert!(log.contains("#[BaseTime: ") && log.contains(",HISTFAAA"), "{log}");
}

#[test]
fn prometheus_finds_all_requests_in_a_file_and_at_an_address() {
    let place = Place::new();
    load(&place, &["-n", "300", "-c", "2", "--live", "load.prom"]);
    let text = place.read("load.prom");
    let value = |text: &str, start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    assert_eq!(value(&text, "scruple_load_requests_total"), Some(300), "{text}");
    assert_eq!(value(&text, "scruple_load_response_seconds_count"), Some(300), "{text}");
    let port = crate::support::free_port();
    let asked = Arc::new(Mutex::new(String::new()));
    let (found, to) = (Arc::clone(&asked), format!("127.0.0.1:{port}"));
    let asking = thread::spawn(move || {
        // Asks until an answer has counted requests. The load lasts for many attempts.
        for _ in 0..400 {
            thread::sleep(std::time::Duration::from_millis(25));
            let Ok(mut stream) = TcpStream::connect(&to) else { continue };
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            let mut text = String::new();
            if stream.read_to_string(&mut text).is_ok() && text.contains("result=\"ok\"") {
                *found.lock().expect("not poisoned") = text;
                return;
            }
        }
    });
    load(&place, &["--rate", "50", "-d", "5s", "--live", &format!(":{port}")]);
    asking.join().expect("it asked");
    let text = asked.lock().expect("not poisoned").clone();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let answered = value(&text, "scruple_load_requests_total");
    assert!(answered.is_some_and(|count| count <= 250), "{text}");
    assert_eq!(value(&text, "scruple_load_response_seconds_count"), answered, "{text}");
}

#[test]
fn a_collector_of_opentelemetry_receives_all_requests() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let received = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&received);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some(head) = request_with_content(&mut stream) else { continue };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
            all.lock().expect("not poisoned").push(head);
        }
    });
    load(&place, &["-n", "300", "-c", "2", "--live", &format!("http://{address}")]);
    let received = received.lock().expect("not poisoned");
    let (head, body) = received.last().expect("at least the end was told");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains("application/json"), "{head}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let metrics = at(&body, "/resourceMetrics/0/scopeMetrics/0/metrics");
    assert_eq!(at(metrics, "/0/name"), "scruple.load.requests");
    assert_eq!(at(metrics, "/0/sum/dataPoints/0/asInt"), "300");
    assert_eq!(at(metrics, "/1/histogram/dataPoints/0/count"), "300");
    let counts = at(metrics, "/1/histogram/dataPoints/0/bucketCounts").as_array().map_or(0, Vec::len);
    let bounds = at(metrics, "/1/histogram/dataPoints/0/explicitBounds").as_array().map_or(0, Vec::len);
    assert_eq!(counts, bounds + 1);
    // If nothing listens, the load continues, and the answer says what could not be sent.
    let answer = load(
        &place,
        &["-n", "50", "-c", "1", "--live", &format!("http://127.0.0.1:{}", crate::support::free_port())],
    );
    assert!(answer.stdout.contains("not all reports reached"), "{}", answer.exchange());
}

/// Reads a request, and returns its head and its content.
fn request_with_content(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length = head.split("Content-Length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
            if body.len() >= length {
                return Some((format!("{head}\r\n"), body.to_owned()));
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(n) => text.extend_from_slice(&piece[..n]),
        }
    }
}
