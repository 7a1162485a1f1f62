//! Loads of real servers on the loopback, correct ones and ones with known faults: counts are exact, and nothing hangs.
//!
//! The tests do not check latencies: on a busy machine windows are void (exit code 3).

use crate::programs::skip;
use crate::support::{Answer, Place, at, free_port};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world\n";

/// Listens on a free port, and runs `talk` in a new thread for every connection. The threads end with the test process.
pub fn serve(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let talk = Arc::new(talk);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let talk = Arc::clone(&talk);
            thread::spawn(move || talk(stream));
        }
    });
    address
}

/// Reads one request without content. Returns `None` at the end of the stream.
pub fn request(stream: &mut impl Read) -> Option<String> {
    let mut text = Vec::new();
    let mut piece = [0; 512];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(n) => text.extend_from_slice(&piece[..n]),
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

pub fn answers(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut stream| while request(&mut stream).is_some() && stream.write_all(bytes).is_ok() {})
}

fn answers_once(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut stream| {
        if request(&mut stream).is_some() {
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while matches!(stream.read(&mut [0; 512]), Ok(n) if n > 0) {}
        }
    })
}

fn load(place: &Place, url: &str, more: &[&str]) -> Answer {
    let mut words = vec!["load", url, "--json", "--no-cost", "--warmup", "off", "--windows", "2"];
    words.extend(more);
    place.run(words)
}

fn failed(answer: &Answer, class: &str) -> u64 {
    let json = answer.json();
    json.pointer(&format!("/load/servers/0/failed/{class}")).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

#[test]
fn every_request_reaches_the_server_and_is_counted() {
    let place = Place::new();
    let seen = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&seen);
    let address = serve(move |mut stream| {
        while request(&mut stream)
            .is_some_and(|text| text.starts_with("GET /a?b=c HTTP/1.1\r\n") && text.contains("x-y: z"))
        {
            counter.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    let answer = load(&place, &format!("http://{address}/a?b=c"), &["-n", "101", "-c", "3", "-H", "x-y: z"]);
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    let json = answer.json();
    assert_eq!(at(&json, "/load/servers/0/answered"), 101);
    assert_eq!(at(&json, "/load/servers/0/bytes"), 101 * 13);
    assert_eq!(seen.load(Ordering::Relaxed), 101);
    assert_eq!(at(&json, "/arms/0/subject/kind"), "request");
    // The requests of void windows are counted, but their latencies are not.
    let counted = at(&json, "/load/servers/0/response/count").as_u64();
    assert!(answer.code == 3 || counted.is_some_and(|count| count <= 101), "{}", answer.exchange());
}

#[test]
fn each_fault_of_a_server_has_its_class() {
    let place = Place::new();
    // Closing a connection with unread bytes sends a reset.
    let reset = serve(|mut stream| drop(stream.read(&mut [0])));
    let cases = [
        (answers(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), "bad-status"),
        (answers_once(b"this is not HTTP at all\r\n\r\n"), "garbage"),
        (answers_once(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "half-response"),
        (answers_once(b""), "closed-early"),
        (reset, "reset"),
    ];
    for (address, class) in cases {
        let answer = load(&place, &format!("http://{address}/"), &["-n", "20", "-c", "2"]);
        assert_eq!((answer.code, failed(&answer, class)), (4, 20), "{class}: {}", answer.exchange());
        assert!(answer.stderr.contains("20 of 20 requests"), "{}", answer.stderr);
        let foreign = matches!(class, "garbage" | "closed-early");
        assert_eq!(answer.stdout.contains("does this server speak another protocol"), foreign, "{class}");
    }
}

#[test]
fn bad_statuses_are_named_with_their_numbers() {
    let place = Place::new();
    let count = AtomicU64::new(0);
    let address = serve(move |mut stream| {
        while request(&mut stream).is_some() {
            let status = match count.fetch_add(1, Ordering::Relaxed) {
                0..12 => "500 Internal Server Error",
                12..15 => "404 Not Found",
                15 => "503 Service Unavailable",
                _ => "200 OK",
            };
            if write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").is_err() {
                break;
            }
        }
    });
    let url = format!("http://{address}/");
    let shown =
        place.run(["load", &url, "--no-cost", "--no-store", "--warmup", "off", "-n", "40", "-c", "1"]);
    let line = "16 an answer with a bad status: 12 × 500; 3 × 404; 1 × 503 (bad-status)";
    assert!(shown.stdout.contains(line), "{}", shown.exchange());
}

#[test]
fn a_server_that_never_answers_costs_one_time_out() {
    let place = Place::new();
    let silent = serve(|mut stream| {
        let _ = request(&mut stream);
        thread::sleep(Duration::from_secs(60));
    });
    let more = ["-n", "4", "-c", "2", "--timeout", "200ms", "-i"];
    let answer = load(&place, &format!("http://{silent}/"), &more);
    assert_eq!(failed(&answer, "timed-out"), 4, "{}", answer.exchange());
}

#[test]
fn an_answer_is_compared_with_what_is_expected() {
    let place = Place::new();
    let address = answers(HELLO);
    let url = format!("http://{address}/");
    let answer = load(&place, &url, &["-n", "10", "-c", "1", "--expect", "text:Goodbye"]);
    assert_eq!((answer.code, failed(&answer, "check-failed")), (4, 10), "{}", answer.exchange());
    let checks = serde_json::json!({"‘Goodbye’ in the content": {"count": 10, "came": "‘Hello, world’"}});
    assert_eq!(at(&answer.json(), "/load/servers/0/failed_checks"), &checks);
    let answer = load(&place, &url, &["-n", "10", "-c", "1", "--expect", "404"]);
    assert_eq!((answer.code, failed(&answer, "bad-status")), (4, 10), "{}", answer.exchange());
}

#[test]
fn a_scenario_is_sent_in_turn() {
    let place = Place::new();
    let address = answers(HELLO);
    place.write(
        "shop.toml",
        "order = 'in-turn'\n\n[[request]]\nname = 'list'\npath = '/list'\n\n[[request]]\nname = 'buy'\nmethod = 'POST'\npath = '/buy'\nbody = ''\n",
    );
    let more = ["-n", "20", "-c", "1", "--scenario", "shop.toml"];
    let mut words = vec!["load".to_owned(), format!("http://{address}/"), "--windows".into(), "1".into()];
    words.extend(more.map(str::to_owned));
    let answer = place.run(words);
    assert!(answer.stdout.contains("list: 10 answered, 0 failed"), "{}", answer.exchange());
    assert!(answer.stdout.contains("buy: 10 answered, 0 failed"), "{}", answer.exchange());
}

#[test]
fn a_unix_socket_is_loaded() {
    let place = Place::new();
    let path = place.file("s");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || while request(&mut stream).is_some() && stream.write_all(HELLO).is_ok() {});
        }
    });
    let answer = load(&place, &format!("unix:{}:/x", path.display()), &["-n", "30", "-c", "2"]);
    assert_eq!(at(&answer.json(), "/load/servers/0/answered"), 30);
}

#[test]
fn without_a_listener_or_without_tls_nothing_is_loaded() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let answer = place.run(["load", &format!("http://{free}/"), "-n", "1"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("the connection was refused"), "{}", answer.stderr);
    let address = answers_once(b"HTTP/1.1 400 plain\r\nContent-Length: 0\r\n\r\n");
    let answer = load(&place, &format!("https://{address}/"), &["--trust", "anyone", "-n", "4", "-c", "1"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    // A generator that waited for a core all the time cannot tell whether the server failed.
    let causes = ["does it speak TLS there?", "the generator itself waited"];
    assert!(causes.iter().any(|causes| answer.stderr.contains(causes)), "{}", answer.stderr);
}

const SERVER: &str = "
import socket, sys, os
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
listener.listen(64)
open('pid', 'w').write(str(os.getpid()))
left = int(sys.argv[2])
while True:
    stream, _ = listener.accept()
    while True:
        text = stream.recv(4096)
        if not text:
            break
        left -= 1
        if left == 0:
            os._exit(7)
        stream.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\n\\r\\nHello, world\\n')
";

#[test]
fn a_server_is_started_weighed_and_ended() {
    let place = Place::new();
    place.write("server.py", SERVER);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let load = "load --json -c 1 --rate 500 -n 200 -d 60s --timeout 60s";
    let answer = place.run(load.split(' ').chain([&*url, "--", "python3", "server.py", &port, "-1"]));
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    let json = answer.json();
    let cpu = at(&json, "/arms/0/metrics/request.cpu/estimate").as_f64().expect("a number");
    assert!(cpu > 1000.0, "a request costs Python more than a microsecond: {cpu}");
    let bytes = at(&json, "/arms/0/metrics/request.malloc.bytes/estimate").as_f64().expect("a number");
    assert!(bytes > 1000.0, "the buffer of recv is 4 kB: {bytes}");
    let pid = place.read("pid");
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the server outlived the load");
}

#[test]
fn a_server_that_ends_under_load_is_a_failed_program() {
    let place = Place::new();
    place.write("server.py", SERVER);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let answer = place.run([
        "load",
        &url,
        "-c",
        "1",
        "-n",
        "100000",
        "-d",
        "20s",
        "--",
        "python3",
        "server.py",
        &port,
        "300",
    ]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("exited with code 7 while it was loaded"), "{}", answer.stderr);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["load", &url, "--slo", "errors<50%", "-d", "4s", "--", "python3", "server.py", &port, "300"];
    let answer = place.run(words);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("exited with code 7 while it was loaded"), "{}", answer.stderr);
}

#[test]
fn a_command_that_does_not_serve_is_named() {
    let place = Place::new();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let answer = place.run(["load", &url, "--", "sh", "-c", "exit 3"]);
    assert_eq!(answer.code, 4);
    assert!(
        answer.stderr.contains("the server exited with code 3 before it accepted a connection"),
        "{}",
        answer.stderr
    );
    let answer = place.run(["load", &url, "--", "sh", "-c", "echo one; echo ‘two’ >&2; exit 3"]);
    assert!(answer.stderr.contains("; its output:\n    one\n    ‘two’\n"), "{}", answer.stderr);
    let answer = place.run(["load", &url, "--patience", "200ms", "--", "sleep", "30"]);
    assert_eq!(answer.code, 4);
    assert!(answer.stderr.contains("accepts no connection"), "{}", answer.stderr);
}

#[test]
fn the_highest_rate_is_searched_and_stored_by_rate() {
    let place = Place::new();
    let address = answers(HELLO);
    let words = ["--slo", "p50<10s,errors<50%", "--rate", "50..200", "-d", "2s", "-c", "2", "--json"];
    let mut all = vec!["load".to_owned(), format!("http://{address}/")];
    all.extend(words.map(str::to_owned));
    let json = place.run(all).json();
    // On a busy machine the server or the generator may fall behind at this rate, and the measurement reports it.
    let measurements = at(&json, "/load/search/measurements").as_array().expect("measurements");
    if measurements.iter().any(|measurement| measurement["outcome"] != "good") {
        return skip("the machine is too busy for 200 requests a second");
    }
    assert_eq!(at(&json, "/load/search/low"), 200.0);
    assert_eq!(at(&json, "/load/search/high"), &serde_json::Value::Null);
    let rates: Vec<f64> = json["arms"]
        .as_array()
        .expect("arms")
        .iter()
        .filter_map(|arm| arm["params"]["rate"].as_f64())
        .collect();
    assert_eq!(rates, [50.0, 100.0, 200.0]);
}

/// A server that speaks TLS with the certificate in `own.pem`, except on every third connection, which gets plain text.
const ENCRYPTED: &str = "
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('own.pem')
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
listener.listen(64)
spoken = 0
while True:
    stream, _ = listener.accept()
    if not stream.recv(1, socket.MSG_PEEK):
        continue
    spoken += 1
    try:
        if spoken % 3 == 0:
            stream.recv(4096)
            stream.sendall(b'this is not TLS at all')
            stream.shutdown(socket.SHUT_WR)
            while stream.recv(4096):
                pass
            continue
        stream = context.wrap_socket(stream, server_side=True)
        stream.recv(4096)
        stream.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 13\\r\\n\\r\\nHello, world\\n')
        stream.unwrap()
    except OSError:
        pass
    finally:
        stream.close()
";

#[test]
fn failures_of_tls_are_a_class_of_their_own_and_an_untrusted_server_is_named() {
    let place = Place::new();
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    place.write("own.pem", own.signing_key.serialize_pem() + &own.cert.pem());
    place.write("server.py", ENCRYPTED);
    let port = free_port();
    let url = format!("https://localhost:{port}/");
    let server = ["--", "python3", "server.py", &port];
    let words = |more: &[&'static str]| {
        let mut words = vec!["-c", "1", "-n", "30", "--no-keep-alive"];
        words.extend(more);
        words.extend(server);
        words
    };
    let answer = load(&place, &url, &words(&["--trust", "anyone"]));
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let (answered, tls) = (at(&answer.json(), "/load/servers/0/answered").as_u64(), failed(&answer, "tls"));
    assert_eq!(answered.map(|answered| answered + tls), Some(30), "{}", answer.exchange());
    assert!((5..=15).contains(&tls), "{tls} of 30");
    let stranger = load(&place, &url, &words(&[]));
    assert_eq!(stranger.code, 4, "{}", stranger.exchange());
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
}

/// A server that accepts as many connections as the limit of file descriptors allows.
const MANY: &str = "
import resource, selectors, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
watched = selectors.DefaultSelector()
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
listener.listen(4096)
watched.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in watched.select():
        if key.fileobj is listener:
            watched.register(listener.accept()[0], selectors.EVENT_READ)
        else:
            try:
                text = key.fileobj.recv(4096)
            except OSError:
                text = b''
            if text:
                key.fileobj.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\n\\r\\nHello, world\\n')
            else:
                watched.unregister(key.fileobj)
                key.fileobj.close()
";

#[test]
fn ten_thousand_connections_are_held_or_the_limit_is_named() {
    let place = Place::new();
    place.write("server.py", MANY);
    let port = free_port();
    let words = ["-c", "10000", "-n", "20000", "-d", "300s", "--timeout", "120s"];
    let words: Vec<&str> = words.into_iter().chain(["--", "python3", "server.py", &port]).collect();
    let answer = load(&place, &format!("http://127.0.0.1:{port}/"), &words);
    if answer.code == 2 {
        assert!(
            answer.stderr.contains("open files") || answer.stderr.contains("descriptors"),
            "{}",
            answer.stderr
        );
        return skip("so many open files are not allowed here");
    }
    assert!(matches!(answer.code, 0 | 3), "{}{}", answer.code, answer.stderr);
    let json = answer.json();
    assert_eq!(at(&json, "/load/servers/0/answered"), 20_000);
    assert_eq!(at(&json, "/load/servers/0/connect/count"), 10_000, "made once, for both windows");
}

#[test]
fn a_generator_that_is_starved_of_its_core_says_that_nothing_is_known() {
    let place = Place::new();
    if std::process::Command::new("taskset").arg("-V").output().is_err() {
        return skip("there is no taskset");
    }
    let address = answers(HELLO);
    let burner =
        || std::process::Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn();
    let mut burners: Vec<_> = (0..12).map(|_| burner().expect("a shell")).collect();
    let words = ["load", &format!("http://{address}/"), "--no-cost", "--no-store", "-d", "2s"];
    let answer = place.run(words.iter().chain(&["--threads", "1@0", "--windows", "2", "--warmup", "off"]));
    for burner in &mut burners {
        let _ = burner.kill();
        let _ = burner.wait();
    }
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stdout.contains("· VOID"), "{}", answer.exchange());
    assert!(answer.stdout.contains("the generator"), "{}", answer.exchange());
    assert!(answer.stderr.contains("is void: the generator was late"), "{}", answer.exchange());
}

#[test]
fn nginx_is_a_yardstick_that_answers_as_much_and_is_not_judged() {
    let place = Place::new();
    let address = answers(HELLO);
    let url = format!("http://{address}/");
    let words = ["-n", "60", "-c", "2", "--yardstick", "nginx"];
    let answer = load(&place, &url, &words);
    if answer.stderr.contains("nginx is not installed") {
        assert_eq!(answer.code, 2);
        return skip("nginx is not installed");
    }
    assert!(matches!(answer.code, 0 | 3), "{}", answer.exchange());
    let json = answer.json();
    assert_eq!(
        (at(&json, "/arms/0/role"), at(&json, "/arms/1/role")),
        (&"subject".into(), &"yardstick".into())
    );
    assert_eq!(at(&json, "/load/servers/1/answered"), 60);
    assert_eq!(at(&json, "/load/servers/1/bytes"), 60 * 13, "as long as the server's own");
    assert!(json["comparisons"].as_array().is_none_or(Vec::is_empty), "{}", answer.exchange());
    let there = at(&json, "/arms/1/subject/url").as_str().expect("an address");
    assert!(TcpStream::connect(there).is_err(), "nginx outlived the load");
    let socket = place.file("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || while request(&mut stream).is_some() && stream.write_all(HELLO).is_ok() {});
        }
    });
    let answer = load(&place, &format!("unix:{}", socket.display()), &words);
    assert_eq!(at(&answer.json(), "/load/servers/1/bytes"), 60 * 13);
    let refused = load(&place, "https://localhost:9/", &words);
    assert!(refused.code == 2 && refused.stderr.contains("without TLS"), "{}", refused.exchange());
}
