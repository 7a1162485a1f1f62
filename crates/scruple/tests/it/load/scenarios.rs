//! Scenarios from their file to the report: sessions, stages, limits on parts, and the errors for mistakes.

use crate::load::servers::{HELLO, answers, request, serve};
use crate::support::{Answer, Place, at};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that answers each request for `/new` with a new number, and `/of/NUMBER` only for a number that it gave
/// out.
fn numbered() -> SocketAddr {
    let given = AtomicU64::new(0);
    serve(move |mut stream| {
        while let Some(text) = request(&mut stream) {
            let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
            let number = path.strip_prefix("/of/").and_then(|number| number.parse::<u64>().ok());
            let (status, body) = match (path.as_str(), number) {
                ("/new", _) => {
                    ("200 OK", format!("{{\"number\":{}}}", given.fetch_add(1, Ordering::Relaxed) + 1))
                }
                (_, Some(n)) if (1..=given.load(Ordering::Relaxed)).contains(&n) => {
                    ("200 OK", "yours".to_owned())
                }
                _ => ("404 Not Found", String::new()),
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
    })
}

const SESSION: &str = "
[[session]]
name = 'visit'

[[session.request]]
name = 'first'
path = '/new'
capture = { number = { json = '/number' } }

[[session.request]]
name = 'second'
group = 'later'
path = '/of/${number}'
check = { contains = 'yours' }
";

fn load(place: &Place, address: SocketAddr, scenario: &str, more: &[&str]) -> Answer {
    place.write("s.toml", scenario);
    let url = format!("http://{address}/");
    let mut words = vec!["load", &url, "--scenario", "s.toml", "--json", "--no-cost", "--timeout", "30s"];
    words.extend(more);
    place.run(words)
}

/// The numbers of answers and of failures in a row of the JSON document.
fn row(json: &Value, of: &str, name: &str) -> (u64, u64) {
    let rows = at(json, "/load/servers/0/rows").as_array().expect("rows");
    let row = rows.iter().find(|row| row["of"] == of && row["name"] == name).expect("a row of that name");
    let failed = row["failed"].as_object().expect("classes").values().filter_map(Value::as_u64).sum();
    (row["answered"].as_u64().expect("a number"), failed)
}

#[test]
fn sessions_have_rows_for_requests_groups_and_themselves() {
    let place = Place::new();
    let answer = load(&place, numbered(), SESSION, &["-n", "60", "-c", "3"]);
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    let json = answer.json();
    let (first, second) = (row(&json, "request", "first"), row(&json, "request", "second"));
    assert_eq!((first.0 + second.0, first.1 + second.1), (60, 0), "{}", answer.exchange());
    assert_eq!((row(&json, "group", "later"), row(&json, "session", "visit")), (second, second));
    let parts = at(&json, "/arms").as_array().expect("arms").iter().filter(|arm| arm["role"] == "part");
    assert_eq!(parts.count(), 4);
    // The stored run has the parts too.
    let shown = place.run(["show", "--json"]);
    assert_eq!(at(&shown.json(), "/arms/4/name"), "visit", "{}", shown.exchange());
}

#[test]
fn limits_hold_for_the_part_that_they_name() {
    let place = Place::new();
    let limits = "[limits]\nfirst = ['p50<1ns']\n'*' = ['errors<1%']\n";
    // The load takes several seconds, because a shorter one does not tell how a median varies.
    let more = ["--rate", "60", "-d", "3s", "-c", "4", "--limit", "visit:load.p50<1h"];
    let answer = load(&place, numbered(), &format!("{SESSION}\n{limits}"), &more);
    let json = answer.json();
    let kept = |arm: &str| {
        let limits = at(&json, "/limits").as_array().expect("limits");
        let one = limits.iter().find(|limit| limit["arm"] == arm);
        one.unwrap_or_else(|| panic!("no limit of {arm}: {limits:?}"))["result"].clone()
    };
    let void = at(&json, "/load/servers/0/void").as_u64() != Some(0);
    if !void {
        assert_eq!((answer.code, kept("first")), (1, "exceeded".into()), "{}", answer.exchange());
        assert_eq!(kept("visit"), "kept", "{}", answer.exchange());
    }
    assert_ne!(answer.code, 0, "{}", answer.exchange());
    let nobody = load(&place, numbered(), SESSION, &["-n", "6", "--limit", "vist:load.p50<1h"]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.stderr.contains("‘visit’"), "{}", nobody.stderr);
}

#[test]
fn stages_say_how_long_and_how_many() {
    let place = Place::new();
    let stages = "[[stage]]\nduration = '500ms'\nrate = [0, 40]\n[[stage]]\nduration = '500ms'\nrate = 20\n";
    let answer = load(&place, numbered(), &format!("{SESSION}\n{stages}"), &[]);
    let json = answer.json();
    // The rates of the two stages integrate to 10 sessions each.
    let (begun, failed) = row(&json, "request", "first");
    assert_eq!((begun, failed), (20, 0), "{}", answer.exchange());
    let clash = load(&place, numbered(), &format!("{SESSION}\n{stages}"), &["--rate", "5"]);
    assert!(clash.code == 2 && clash.stderr.contains("leave --rate and --duration out"), "{}", clash.stderr);
    let searched = load(&place, numbered(), &format!("{SESSION}\n{stages}"), &["--slo", "p99<1s"]);
    assert!(searched.code == 2 && searched.stderr.contains("leave --slo"), "{}", searched.stderr);
    let open = load(&place, numbered(), &format!("model = 'open'\n{SESSION}"), &[]);
    assert!(open.code == 2 && open.stderr.contains("give --rate"), "{}", open.stderr);
}

#[test]
fn a_load_is_given_up_when_too_much_fails_for_a_while() {
    let place = Place::new();
    let address = answers(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
    let abort = "think = '5ms'\n[[stage]]\nduration = '60s'\nusers = 2\n[[request]]\npath = '/'\n[abort]\nerrors = '50%'\nover = '1s'\n";
    let answer = load(&place, address, abort, &["-i"]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let json = answer.json();
    let codes = at(&json, "/load/servers/0/doubts").as_array().expect("doubts");
    assert!(codes.iter().any(|doubt| doubt["code"] == "aborted"), "{}", answer.exchange());
    let span = at(&json, "/load/servers/0/span").as_u64().expect("a time");
    assert!(span < 55_000_000_000, "it went on for {span} ns");
}

#[test]
fn mistakes_in_a_scenario_say_where_and_what_to_do() {
    let place = Place::new();
    let address = answers(HELLO);
    let wrong = |text: &str| {
        let answer = load(&place, address, text, &["-n", "1"]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        answer.stderr
    };
    let unknown = wrong(&SESSION.replace("/of/${number}", "/of/${numbr}"));
    assert!(unknown.contains("line 10: there is no value ‘${numbr}’: known here are ${number}"), "{unknown}");
    let field = wrong(&SESSION.replace("check", "chekc"));
    assert!(field.contains("line 14") && field.contains("chekc") && field.contains("`check`"), "{field}");
    let data = wrong("[[data]]\nname = 'u'\nfile = 'none.csv'\n[[request]]\npath = '/'\n");
    assert!(data.contains("line 1: cannot read the data") && data.contains("none.csv"), "{data}");
    let limit = wrong(&format!("{SESSION}\n[limits]\nfirst = ['p98<1s']\n"));
    assert!(limit.contains("of ‘first’") && limit.contains("load.p98"), "{limit}");
}

/// The first lines of requests, each with the time of its arrival.
type Seen = Arc<Mutex<Vec<(Instant, String)>>>;

/// Starts a server that records each request and answers all of them.
fn listening() -> (SocketAddr, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let address = serve(move |mut stream| {
        while let Some(text) = request(&mut stream) {
            let line = text.lines().next().unwrap_or_default().to_owned();
            log.lock().expect("not poisoned").push((Instant::now(), line));
            if stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    (address, seen)
}

#[test]
fn recorded_requests_are_sent_again_at_their_times() {
    let place = Place::new();
    let entry = |at: &str, path: &str| {
        format!(
            r#"{{"startedDateTime":"2024-05-01T12:00:0{at}Z","request":{{"method":"GET","url":"http://h{path}"}}}}"#
        )
    };
    let entries = [entry("0.000", "/a"), entry("2.000", "/b"), entry("1.000", "/a")].join(",");
    place.write("r.har", format!("{{\"log\":{{\"entries\":[{entries}]}}}}"));
    let log = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 1\n\
               h - - [10/Oct/2000:13:55:37 -0700] \"-\" 408 1\n\
               h - - [10/Oct/2000:13:55:38 -0700] \"GET /b HTTP/1.0\" 200 1\n";
    place.write("access.log", log);
    for (file, requests) in [("r.har", 3), ("access.log", 2)] {
        let (address, seen) = listening();
        let url = format!("http://{address}/");
        let words =
            ["load", &url, "--scenario", file, "--rate", "4x", "--json", "--no-cost", "--timeout", "30s"];
        let answer = place.run(words);
        assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
        let json = answer.json();
        assert_eq!(at(&json, "/load/servers/0/answered"), requests, "{}", answer.exchange());
        let seen = seen.lock().expect("not poisoned");
        let (first, last) = (&seen[0], &seen[seen.len() - 1]);
        assert_eq!((first.1.as_str(), last.1.as_str()), ("GET /a HTTP/1.1", "GET /b HTTP/1.1"));
        // The two recorded seconds take half a second at four times the speed. A busy machine can only delay the last
        // request.
        assert!(last.0 - first.0 >= Duration::from_millis(300), "{:?}", last.0 - first.0);
        let noted = answer.stdout.contains("\"recording\"");
        assert_eq!(noted, file == "access.log", "{}", answer.exchange());
    }
    let (address, _) = listening();
    let wrong = place.run(["load", &format!("http://{address}/"), "--scenario", "r.har", "--rate", "100"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("--rate 2x"), "{}", wrong.stderr);
    let speed = place.run(["load", &format!("http://{address}/"), "--rate", "2x"]);
    assert!(speed.code == 2 && speed.stderr.contains("only recorded requests have"), "{}", speed.stderr);
}

#[test]
fn each_failed_check_is_named_with_what_came() {
    let place = Place::new();
    let checks = "order = 'in-turn'
request = [
  { path = '/a', check = { contains = 'Goodbye' } },
  { path = '/b', check = { contains = 'Goodbye', min_bytes = 20 } },
  { path = '/c', check = { min_bytes = 20 } },
]
";
    place.write("s.toml", checks);
    let url = format!("http://{}/", answers(HELLO));
    let words = ["load", &url, "--scenario", "s.toml", "--no-cost", "--no-store", "-n", "12", "-c", "1"];
    let shown = place.run(words);
    let text = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "12 an answer that failed a check: 8 × expected at least 20 bytes of content, got 13; \
                8 × expected ‘Goodbye’ in the content, got ‘Hello, world’ (check-failed)";
    assert!(text.contains(line), "{}", shown.exchange());
}
