//! Tests of HTTP/2, without TLS by prior knowledge, and with TLS.

use super::encrypted::{Encrypted, encrypted};
use super::servers::{self, HELLO};
use super::{impatient, load, small, target};
use scruple_measure::load::{
    AnswerCheck, Arrivals, Failure, LoadError, LoadResult, Pace, Plan, Protocol, Target, Trust,
};
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Adapts a blocking socket to asynchronous reading and writing.
struct Polled<S>(S);

impl<S: Read + Unpin> AsyncRead for Polled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = vec![0; buffer.remaining().min(65_536)];
        match self.0.read(&mut bytes) {
            Ok(n) => {
                buffer.put_slice(&bytes[..n]);
                Poll::Ready(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<S: Write + Unpin> AsyncWrite for Polled<S> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Determines how the server treats the request with this number.
type Habit = fn(u64) -> ServerAnswer;

enum ServerAnswer {
    Hello,
    Status(u16),
    Reset,
    /// The answer is shorter than it says, and ends as usual, with a reset, or never.
    Short,
    Broken,
    Endless,
    Refuse,
    Never,
    /// The server behaves like a shop where users log in.
    Shop,
}

/// The shop's answer to a request: the status, a cookie and the content.
fn sold(request: &http::Request<h2::RecvStream>, number: u64) -> (u16, String, String) {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match request.uri().path().strip_prefix("/cart/") {
        None => {
            let body = format!("{{\"token\":\"t {number}\",\"cart\":{{\"id\":{number}}}}}");
            (200, format!("sid={number}; Path=/"), body)
        }
        Some(n) => {
            let own =
                header("cookie") == format!("own=1; sid={n}") && header("authorization") == format!("t {n}");
            (if own { 200 } else { 403 }, String::new(), "{\"paid\":false}".to_owned())
        }
    }
}

/// Starts the shop without TLS.
pub fn shop() -> std::net::SocketAddr {
    let count = AtomicU64::new(0);
    servers::serve(move |stream| {
        let _ = (stream.set_nonblocking(true), stream.set_nodelay(true));
        talk(stream, |_| ServerAnswer::Shop, &count);
    })
}

/// Serves one connection until it is closed.
fn talk(socket: impl Read + Write + Unpin, habit: Habit, count: &AtomicU64) {
    let mut context = Context::from_waker(Waker::noop());
    let mut handshake = Box::pin(h2::server::handshake(Polled(socket)));
    let began = Instant::now();
    let patience = || {
        std::thread::sleep(Duration::from_micros(100));
        began.elapsed() < Duration::from_secs(60)
    };
    let mut connection = loop {
        match handshake.as_mut().poll(&mut context) {
            Poll::Ready(Ok(connection)) => break connection,
            Poll::Ready(Err(_)) => return,
            Poll::Pending if patience() => {}
            Poll::Pending => return,
        }
    };
    let (mut unanswered, mut endless) = (Vec::new(), Vec::new());
    loop {
        match connection.poll_accept(&mut context) {
            Poll::Ready(Some(Ok((request, mut respond)))) => {
                match habit(count.fetch_add(1, Ordering::Relaxed)) {
                    ServerAnswer::Shop => {
                        let (status, cookie, body) = sold(&request, count.load(Ordering::Relaxed));
                        let head = http::Response::builder().status(status).header("set-cookie", cookie);
                        if let Ok(mut sending) = respond.send_response(head.body(()).expect("valid"), false) {
                            let _ = sending.send_data(bytes::Bytes::from(body), true);
                        }
                    }
                    ServerAnswer::Reset => respond.send_reset(h2::Reason::INTERNAL_ERROR),
                    ServerAnswer::Refuse => respond.send_reset(h2::Reason::REFUSED_STREAM),
                    answer @ (ServerAnswer::Short | ServerAnswer::Broken | ServerAnswer::Endless) => {
                        let head = http::Response::builder().header("content-length", "99");
                        if let Ok(mut body) = respond.send_response(head.body(()).expect("valid"), false) {
                            let whole = matches!(answer, ServerAnswer::Short);
                            let _ = body.send_data(bytes::Bytes::from_static(b"Hello"), whole);
                            match answer {
                                ServerAnswer::Broken => body.send_reset(h2::Reason::INTERNAL_ERROR),
                                ServerAnswer::Endless => endless.push(body),
                                _ => {}
                            }
                        }
                    }
                    ServerAnswer::Never => unanswered.push(respond),
                    answer => {
                        let status = if let ServerAnswer::Status(status) = answer { status } else { 200 };
                        let head = http::Response::builder()
                            .status(status)
                            .header("x-version", "2")
                            .body(())
                            .expect("valid");
                        if let Ok(mut body) = respond.send_response(head, false) {
                            let _ = body.send_data(bytes::Bytes::from_static(b"Hello, world\n"), true);
                        }
                    }
                }
            }
            Poll::Ready(_) => return,
            Poll::Pending if patience() => {}
            Poll::Pending => return,
        }
    }
}

fn server(habit: Habit) -> Target {
    let count = AtomicU64::new(0);
    let address = servers::serve(move |stream: TcpStream| {
        stream.set_nonblocking(true).expect("fcntl");
        talk(stream, habit, &count);
    });
    speaking_http2(address)
}

fn speaking_http2(address: SocketAddr) -> Target {
    Target { protocol: Protocol::Http2, ..target(address) }
}

#[test]
fn requests_share_connections() {
    let target = server(|_| ServerAnswer::Hello);
    for pace in [Pace::Closed, Pace::Open { rate: 500.0, arrivals: Arrivals::Constant }] {
        let plan = Plan { connections: 2, streams: 10, max_requests: Some(500), pace, ..small() };
        let result = load(&target, &plan).expect("a run");
        assert_eq!(
            (result.counts.answered, result.counts.failures.total(), result.counts.bytes),
            (500, 0, 6500),
            "{pace:?}"
        );
        assert_eq!((result.connect.count(), result.reconnects), (2, 0));
    }
    let once = Plan { keep_alive: false, max_requests: Some(20), ..small() };
    let result = load(&target, &once).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (20, 0));
    assert!(result.connect.count() >= 20);
}

#[test]
fn faults_have_their_classes_here_too() {
    let mut plan = Plan { connections: 2, streams: 4, ..small() };
    let third =
        server(|number| if number % 3 == 0 { ServerAnswer::Status(503) } else { ServerAnswer::Hello });
    let result = load(&third, &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.of(Failure::BadStatus)), (66, 34));
    let resets = server(|number| if number % 2 == 0 { ServerAnswer::Reset } else { ServerAnswer::Hello });
    let result = load(&resets, &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.of(Failure::Reset)), (50, 50));
    let lost = server(|number| if number == 5 { ServerAnswer::Never } else { ServerAnswer::Hello });
    let hasty = Plan { timeout: Duration::from_millis(300), ..plan.clone() };
    let result = load(&lost, &hasty).expect("a run");
    assert_eq!(
        (result.counts.answered, result.counts.failures.of(Failure::TimedOut)),
        (99, 1),
        "{:?}",
        result.counts.failures
    );
    for (habit, class, why) in [
        ((|_| ServerAnswer::Short) as Habit, Failure::Garbage, "its length is not the one that it states"),
        (|_| ServerAnswer::Broken, Failure::Reset, "INTERNAL_ERROR"),
    ] {
        let failures = load(&server(habit), &plan).expect("a run").counts.failures;
        assert_eq!((failures.of(class), failures.total()), (100, 100), "{failures:?}");
        assert!(failures.describe(class).ends_with(why), "{}", failures.describe(class));
    }
    let begun =
        load(&server(|_| ServerAnswer::Endless), &Plan { max_requests: Some(8), ..hasty }).expect("a run");
    let why = begun.counts.failures.describe(Failure::TimedOut);
    assert!(why.ends_with("the answer had begun"), "{why}");
    let old = load(&speaking_http2(servers::answers(HELLO)), &impatient()).expect("a run");
    assert_eq!(old.counts.answered, 0);
    assert_eq!(old.counts.failures.total(), old.counts.due);
    for (bytes, why) in
        [(HELLO, "it is in HTTP/1, not in HTTP/2"), (NO_ID, "a frame breaks the rules of HTTP/2")]
    {
        let wrong = servers::serve(move |stream| goes_away(stream, bytes));
        let failures = load(&speaking_http2(wrong), &plan).expect("a run").counts.failures;
        let described = failures.describe(Failure::Garbage);
        assert!(described.ends_with(why), "{described}, {failures:?}");
    }
    plan.requests[0].check = AnswerCheck {
        contains: Some("world".into()),
        headers: [("X-Version".to_owned(), "2".to_owned())].into(),
        ..AnswerCheck::default()
    };
    let result = load(&server(|_| ServerAnswer::Hello), &plan).expect("a run");
    assert_eq!(result.counts.answered, 100);
}

/// SETTINGS, and GOAWAY with stream 0 as the last one that is processed.
const GOES: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// SETTINGS, and DATA of stream 0.
const NO_ID: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Answers the first requests of a connection with these bytes.
fn goes_away(mut stream: TcpStream, bytes: &[u8]) {
    // The preface has 58 bytes.
    let mut seen = 0;
    while seen <= 58 {
        match stream.read(&mut [0; 4096]) {
            Ok(0) | Err(_) => return,
            Ok(more) => seen += more,
        }
    }
    let _ = stream.write_all(bytes);
    let _ = io::copy(&mut stream, &mut io::sink());
}

#[test]
fn requests_that_the_server_says_it_did_not_process_are_sent_again() {
    let said = |result: &LoadResult| result.doubts.iter().any(|doubt| doubt.code == "sent-again");
    for pace in [Pace::Closed, Pace::Open { rate: 500.0, arrivals: Arrivals::Constant }] {
        let plan = Plan { connections: 2, streams: 4, pace, ..small() };
        let refuses = server(|number| if number < 5 { ServerAnswer::Refuse } else { ServerAnswer::Hello });
        let result = load(&refuses, &plan).expect("a run");
        assert_eq!((result.counts.answered, result.counts.failures.total()), (100, 0), "{pace:?}");
        assert_eq!((result.generator.reached, result.repeated, said(&result)), (100, 5, true));

        let (connections, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let goes_once = servers::serve(move |stream| {
            // A connection that only tries the address says nothing. Its thread may run after those of the others.
            if stream.peek(&mut [0]).is_ok_and(|length| length == 0) {
                return;
            }
            if connections.fetch_add(1, Ordering::Relaxed) == 0 {
                return goes_away(stream, GOES);
            }
            stream.set_nonblocking(true).expect("fcntl");
            talk(stream, |_| ServerAnswer::Hello, &requests);
        });
        let result = load(&speaking_http2(goes_once), &plan).expect("a run");
        assert_eq!((result.counts.answered, result.counts.failures.total()), (100, 0), "{pace:?}");
        assert_eq!((result.counts.due, result.times.response.count()), (100, 100));
        assert_eq!((result.generator.reached, result.closings, said(&result)), (100, 1, true));
        assert!((1..=4).contains(&result.repeated), "{}", result.repeated);
    }
}

#[test]
fn a_connection_on_which_a_request_is_given_up_after_the_server_went_away_is_opened_again() {
    let (connections, requests) = (AtomicU64::new(0), AtomicU64::new(0));
    let silent = servers::serve(move |stream| match connections.fetch_add(1, Ordering::Relaxed) {
        // The server says that it processes all requests, but answers none.
        0 | 1 => goes_away(stream, &[&GOES[..18], &[0, 0, 0, 127], &GOES[22..]].concat()),
        _ => {
            stream.set_nonblocking(true).expect("fcntl");
            talk(stream, |_| ServerAnswer::Hello, &requests);
        }
    });
    let plan = Plan { connections: 1, ..impatient() };
    let result = load(&speaking_http2(silent), &plan).expect("a run");
    let timed_out = result.counts.failures.of(Failure::TimedOut);
    assert!(timed_out > 0 && result.counts.answered > 0, "{:?}", result.counts);
}

#[test]
fn requests_that_the_server_says_it_did_not_process_do_not_count_for_costs() {
    let plan = Plan { connections: 2, streams: 4, ..small() };
    let result = load(&server(|_| ServerAnswer::Refuse), &plan).expect("a run");
    assert_eq!((result.generator.requests, result.generator.reached, result.repeated), (100, 0, 1000));
    let why = result.counts.failures.describe(Failure::Reset);
    assert!(why.ends_with(": REFUSED_STREAM"), "{why}");

    let goes = servers::serve(|stream| goes_away(stream, GOES));
    let result = load(&speaking_http2(goes), &impatient()).expect("a run");
    let refused = result.counts.failures.of(Failure::ClosedEarly);
    assert!(refused > 0 && refused == result.counts.due, "{:?}", result.counts.failures);
    assert_eq!((result.generator.requests, result.generator.reached), (refused, 0));
    let calm = servers::serve(|stream| goes_away(stream, &[&GOES[..25], &[11]].concat()));
    let result = load(&speaking_http2(calm), &impatient()).expect("a run");
    let why = result.counts.failures.describe(Failure::ClosedEarly);
    assert!(why.ends_with(": ENHANCE_YOUR_CALM"), "{why}");
    assert_eq!((result.repeated, result.generator.reached), (0, 0));

    // A connection ends after the head of one of two answers.
    const HALF: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x04\0\0\0\x03\x88";
    let half = servers::serve(|mut stream| {
        // The preface has 58 bytes; both requests follow it at once. A connection that only tries the address ends.
        let mut seen = 0;
        while seen <= 58 {
            match stream.read(&mut [0; 4096]) {
                Ok(0) | Err(_) => return,
                Ok(length) => seen += length,
            }
        }
        let _ = stream.write_all(HALF);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = io::copy(&mut stream, &mut io::sink());
    });
    let two = Plan { connections: 1, streams: 2, max_requests: Some(2), ..impatient() };
    let failures = load(&speaking_http2(half), &two).expect("a run").counts.failures;
    assert_eq!((failures.of(Failure::ClosedEarly), failures.of(Failure::HalfResponse)), (1, 1));
}

#[test]
fn through_tls() {
    let Encrypted { address, certificate, _folder } = encrypted(&[b"h2"], |stream| {
        stream.sock.set_nonblocking(true).expect("fcntl");
        talk(stream, |_| ServerAnswer::Hello, &AtomicU64::new(0));
    });
    let (target, _) = Target::parse(&format!("https://localhost:{}/", address.port())).expect("a target");
    let target = Target { tls: Some(Trust::File(certificate)), protocol: Protocol::Http2, ..target };
    let plan = Plan { connections: 2, streams: 5, ..small() };
    let result = load(&target, &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total(), result.counts.bytes), (100, 0, 1300));
}

#[test]
fn a_server_that_does_not_offer_it_is_named() {
    let server = encrypted(&[], |mut stream| while servers::request(&mut stream) {});
    let (target, _) =
        Target::parse(&format!("https://localhost:{}/", server.address.port())).expect("a target");
    let target = Target { tls: Some(Trust::Anyone), protocol: Protocol::Http2, ..target };
    match load(&target, &small()) {
        Err(LoadError::Unreachable { class: Failure::Tls, detail, .. }) => {
            assert!(detail.contains("HTTP/2"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
}
