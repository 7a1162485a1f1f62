//! Scenarios from their file to the report: sessions, stages, limits of their parts, and what is said of mistakes.

use crate::load_servers::{HELLO, answers, request, serve};
use crate::support::{Answer, Place, at};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each request for `/new` is given a number, and `/of/NUMBER` is answered only to who knows it.
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

/// The answers and failures of a row, as JSON has them.
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
    // Stored, the parts are there again.
    let shown = place.run(["show", "--json"]);
    assert_eq!(at(&shown.json(), "/arms/4/name"), "visit", "{}", shown.exchange());
}

#[test]
fn limits_hold_for_the_part_that_they_name() {
    let place = Place::new();
    let limits = "[limits]\nfirst = ['p50<1ns']\n'*' = ['errors<1%']\n";
    let more = ["-n", "60", "-c", "2", "--limit", "visit:load.p50<1h"];
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
    // The integrals of the two stages are 10 sessions each.
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
