//! Tests with sessions of users, on a shop that knows who has logged in.

use super::{load, servers, target};
use scruple_measure::load::{
    Arrivals, Failure, GeneratorThreads, LoadResult, Pace, Plan, Protocol, Request, RowOf, Target, WarmUp,
    scenario,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as the shop receives it: the first line, the headers and the content.
fn asked(stream: &mut TcpStream) -> Option<(String, String, String)> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = text.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
            let length =
                head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if text.len() >= end + length.unwrap_or(0) {
                let whole = String::from_utf8_lossy(&text).into_owned();
                let (head, body) = whole.split_at(end);
                let (line, headers) = head.split_once("\r\n")?;
                return Some((line.to_owned(), headers.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(n) => text.extend_from_slice(&piece[..n]),
        }
    }
}

#[derive(Clone)]
struct Shop {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Starts the shop. A login returns a cookie and a token with the same number; a cart requires both.
fn shop() -> Shop {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, count) = (Arc::clone(&seen), AtomicU64::new(0));
    let address = servers::serve(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while let Some((line, headers, body)) = asked(&mut stream) {
            log.lock().expect("not poisoned").push(format!("{line} {body}"));
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let ok = |more: &str, text: &str| {
                format!("HTTP/1.1 200 OK\r\n{more}Content-Length: {}\r\n\r\n{text}", text.len())
            };
            let moved =
                |place: &str| format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n");
            let answer = if path == "/login" {
                let n = count.fetch_add(1, Ordering::Relaxed) + 1;
                let cookie = format!("Set-Cookie: theme=dark\r\nSet-Cookie: sid={n}; Path=/\r\n");
                ok(&cookie, &format!("{{\"token\":\"t {n}\",\"cart\":{{\"id\":{n}}}}}"))
            } else if let Some(n) = path.strip_prefix("/cart/") {
                let own = headers.contains(&format!("cookie: own=1; theme=dark; sid={n}\r\n"))
                    && headers.contains(&format!("Authorization: Bearer t {n}\r\n"));
                if own {
                    ok("", "{\"paid\":false}")
                } else {
                    "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".into()
                }
            } else {
                match path.as_str() {
                    "/go" => moved("/landed?x=1"),
                    "/from/here" => moved("../login/./form?next=http://here/"),
                    "/loop" => moved("/loop"),
                    "/away" => moved("http://elsewhere.example/"),
                    other => ok("", &format!("at {other}")),
                }
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
    });
    Shop { address, seen }
}

const BUY: &str = r#"
[[session]]
name = "buy"
[[session.request]]
name = "login"
group = "account"
method = "POST"
path = "/login"
body = "user=me"
capture = { token = { json = "/token" }, cart = { regex = '"id":(\d+)' } }
[[session.request]]
name = "cart"
path = "/cart/${cart}"
headers = { Authorization = "Bearer ${token}", cookie = "own=1" }
check = { json = { "/paid" = false } }
"#;

fn plan(text: &str) -> Plan {
    let read = scenario(text, Path::new("/")).expect("a scenario");
    Plan {
        requests: read.requests,
        order: read.order,
        scenario: read.scenario.map(Arc::new),
        connections: 3,
        duration: Duration::from_secs(30),
        timeout: Duration::from_secs(20),
        warm_up: WarmUp::Off,
        ..Plan::of(Request::get("/"))
    }
}

fn row(result: &LoadResult, of: RowOf, name: &str) -> (u64, u64) {
    let found = result.kinds.iter().find(|kind| kind.of == of && kind.name == name);
    found.map_or((0, 0), |kind| (kind.answered, kind.failures.total()))
}

#[test]
fn values_and_cookies_are_carried_through_a_session() {
    let shop = shop();
    let plan = Plan { max_requests: Some(100), ..plan(BUY) };
    let result = load(&target(shop.address), &plan).expect("a run");
    assert_eq!(
        (result.counts.answered, result.counts.failures.total()),
        (100, 0),
        "{:?}",
        result.counts.failures
    );
    let (logins, carts) = (row(&result, RowOf::Request, "login").0, row(&result, RowOf::Request, "cart").0);
    assert_eq!(logins + carts, 100);
    assert_eq!(row(&result, RowOf::Group, "account"), (logins, 0));
    assert_eq!((row(&result, RowOf::Session, "buy"), result.unfinished), ((carts, 0), logins - carts));
    let seen = shop.seen.lock().expect("not poisoned");
    assert!(seen.contains(&"POST /login HTTP/1.1 user=me".to_owned()), "{seen:?}");
    // The parts of each row add up to the whole.
    let parts: u64 = result.parts.iter().map(|part| part.rows[0].response.count()).sum();
    assert_eq!(parts, logins);
}

#[test]
fn a_request_that_fails_ends_its_session() {
    let shop = shop();
    let wrong = BUY.replace("Bearer ${token}", "Bearer ${token}x");
    let result =
        load(&target(shop.address), &Plan { max_requests: Some(40), ..plan(&wrong) }).expect("a run");
    let carts = row(&result, RowOf::Request, "cart");
    assert_eq!((carts.0, result.counts.failures.of(Failure::BadStatus)), (0, carts.1));
    assert_eq!(row(&result, RowOf::Session, "buy"), (0, carts.1));
    let missing = BUY.replace("\"/token\"", "\"/tokn\"");
    let result =
        load(&target(shop.address), &Plan { max_requests: Some(40), ..plan(&missing) }).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.of(Failure::ValueMissing)), (0, 40));
    let said = result.counts.failures.describe(Failure::ValueMissing);
    assert!(said.ends_with("‘login’ was answered with status 200 and no JSON value at ‘/tokn’"), "{said}");
    assert_eq!(row(&result, RowOf::Session, "buy"), (0, 40));
}

#[test]
fn redirects_are_followed_within_the_server_and_bounded() {
    let shop = shop();
    let one = |path: &str| {
        let check = if path == "/go" { "check = { contains = 'at /landed?x=1' }" } else { "" };
        let text =
            format!("redirects = 2\n[[request]]\nmethod = 'POST'\nbody = 'b'\npath = '{path}'\n{check}");
        load(&target(shop.address), &Plan { max_requests: Some(20), ..plan(&text) }).expect("a run")
    };
    let result = one("/go");
    assert_eq!(
        (result.counts.answered, result.counts.failures.total(), result.counts.due),
        (20, 0, 20),
        "{:?}",
        result.counts.failures
    );
    let landed = |text: &&String| text.as_str() == "GET /landed?x=1 HTTP/1.1 ";
    assert_eq!(shop.seen.lock().expect("not poisoned").iter().filter(landed).count(), 20);
    for cookies in ["", "cookies = false\n"] {
        let text = format!(
            "redirects = 1\n{cookies}[[request]]\npath = '/from/here'\ncheck = {{ contains = 'at /login/form?next=http://here/' }}"
        );
        let plan = Plan { max_requests: Some(2), ..plan(&text) };
        let result = load(&target(shop.address), &plan).expect("a run");
        assert_eq!(result.counts.answered, 2, "{:?}", result.counts.failures);
    }
    for (path, place) in [("/loop", "/loop"), ("/away", "http://elsewhere.example/")] {
        let failures = one(path).counts.failures;
        let said = failures.describe(Failure::Redirected);
        let cause = format!("‘POST {path}’ was answered with status 302 and the Location ‘{place}’");
        assert!(failures.of(Failure::Redirected) == 20 && said.ends_with(&cause), "{said}");
    }
    let looped = |text: &&String| text.contains("/loop ");
    assert_eq!(shop.seen.lock().expect("not poisoned").iter().filter(looped).count(), 60);
}

#[test]
fn in_the_open_model_sessions_begin_as_the_stages_say() {
    let shop = shop();
    let text = format!(
        "{BUY}\n[[stage]]\nduration = '1s'\nrate = [0, 100]\n[[stage]]\nduration = '500ms'\nrate = 20\n[[stage]]\nduration = '500ms'\nrate = [20, 0]"
    );
    let plan = Plan {
        pace: Pace::Open { rate: 30.0, arrivals: Arrivals::Constant },
        duration: Duration::from_secs(2),
        threads: GeneratorThreads::of(2),
        parts: 4,
        ..plan(&text)
    };
    let result = load(&target(shop.address), &plan).expect("a run");
    assert_eq!(result.counts.failures.total(), 0, "{:?}", result.counts.failures);
    let logins: Vec<u64> = result.parts.iter().map(|part| part.rows[0].answered).collect();
    // The numbers are the integrals of the rates over quarters of the two seconds; the threads have equal shares.
    let wanted = [12.5, 37.5, 10.0, 5.0];
    assert_eq!(logins.len(), 4);
    for (seen, wanted) in logins.iter().zip(wanted) {
        assert!((*seen as f64 - wanted).abs() <= 1.5, "{logins:?}");
    }
}

#[test]
fn in_the_closed_model_there_are_as_many_users_as_the_stages_say_and_they_think() {
    let shop = shop();
    let text = "think = '100ms'\n[[stage]]\nduration = '1s'\nusers = 4\n[[stage]]\nduration = '1s'\nusers = 1\n[[request]]\npath = '/'\n";
    let plan = Plan { duration: Duration::from_secs(2), parts: 2, connections: 4, ..plan(text) };
    let result = load(&target(shop.address), &plan).expect("a run");
    let due: Vec<u64> = result.parts.iter().map(|part| part.counts.due).collect();
    // A user sends at most one request in 100 ms, and fewer if answers take long.
    assert!(due[0] <= 40 && due[1] <= 14 && due[0] >= 4 && due[1] >= 1, "{due:?}");
    assert_eq!(result.counts.answered, due.iter().sum::<u64>());
}

#[test]
fn data_that_are_taken_once_end_the_load() {
    let shop = shop();
    let folder = tempfile::tempdir().expect("a folder");
    let names: String = (0..25).map(|n| format!("user {n}\n")).collect();
    std::fs::write(folder.path().join("names.csv"), format!("name\n{names}")).expect("written");
    let text = "[[data]]\nname = 'who'\nfile = 'names.csv'\ntake = 'once'\n[[request]]\npath = '/hello?${who.name}'\n";
    let read = scenario(text, folder.path()).expect("a scenario");
    let plan = Plan {
        scenario: read.scenario.map(Arc::new),
        requests: read.requests,
        threads: GeneratorThreads::of(2),
        ..plan(BUY)
    };
    let result = load(&target(shop.address), &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (25, 0));
    assert!(result.doubts.iter().any(|doubt| doubt.code == "data-used-up"), "{:?}", result.doubts);
    let mut seen = shop.seen.lock().expect("not poisoned").clone();
    seen.sort();
    seen.dedup();
    assert_eq!((seen.len(), seen.iter().any(|line| line.starts_with("GET /hello?user%207 "))), (25, true));
}

#[test]
fn sessions_run_over_http2_as_well() {
    let address = super::http2::shop();
    let target = Target { protocol: Protocol::Http2, ..target(address) };
    let text = BUY.replace("Bearer ${token}", "${token}");
    let plan = Plan { max_requests: Some(60), streams: 4, ..plan(&text) };
    let result = load(&target, &plan).expect("a run");
    assert_eq!(
        (result.counts.answered, result.counts.failures.total()),
        (60, 0),
        "{:?}",
        result.counts.failures
    );
}
