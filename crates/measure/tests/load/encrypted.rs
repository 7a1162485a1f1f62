//! Tests of TLS with trusted and untrusted servers, and with servers that do not speak it.

use super::servers::{self, HELLO};
use super::{impatient, load, small};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use scruple_measure::load::{Arrivals, Failure, LoadError, Pace, Plan, Target, Trust};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub struct Encrypted {
    pub address: SocketAddr,
    pub certificate: PathBuf,
    pub _folder: tempfile::TempDir,
}

fn server() -> Encrypted {
    server_as(IsCa::NoCa)
}

fn server_as(authority: IsCa) -> Encrypted {
    encrypted_as(authority, &[], |mut stream| {
        while servers::request(&mut stream) {
            if stream.write_all(HELLO).and_then(|()| stream.flush()).is_err() {
                break;
            }
        }
    })
}

/// Starts a server with its own certificate that offers these protocols.
pub fn encrypted(
    protocols: &[&[u8]],
    talk: impl Fn(StreamOwned<ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> Encrypted {
    encrypted_as(IsCa::NoCa, protocols, talk)
}

/// Starts a server that offers these protocols, and whose certificate may claim to be an authority.
fn encrypted_as(
    authority: IsCa,
    protocols: &[&[u8]],
    talk: impl Fn(StreamOwned<ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> Encrypted {
    let mut wanted = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    wanted.is_ca = authority;
    let signing = KeyPair::generate().expect("a key");
    let own = wanted.self_signed(&signing).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], key)
        .expect("a configuration");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = folder.path().join("own.pem");
    std::fs::write(&certificate, own.pem()).expect("written");
    let address = servers::serve(move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        talk(StreamOwned::new(session, stream));
    });
    Encrypted { address, certificate, _folder: folder }
}

fn target(address: SocketAddr, trust: Trust) -> Target {
    let (target, _) = Target::parse(&format!("https://localhost:{}/", address.port())).expect("a target");
    Target { tls: Some(trust), ..target }
}

#[test]
fn every_connection_completes_its_handshake() {
    let (begun, answering) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&begun), Arc::clone(&answering));
    let server = encrypted(&[], move |mut stream| {
        counts.0.fetch_add(1, Ordering::SeqCst);
        if servers::request(&mut stream) {
            counts.1.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(HELLO).and_then(|()| stream.flush());
            while servers::request(&mut stream) {
                let _ = stream.write_all(HELLO).and_then(|()| stream.flush());
            }
        }
    });
    let (target, _) = Target::parse(&format!("https://{}/", server.address)).expect("a target");
    let target = Target { tls: Some(Trust::Anyone), ..target };
    assert_eq!(load(&target, &small()).expect("a run").counts.answered, 100);
    assert_eq!((begun.load(Ordering::SeqCst), answering.load(Ordering::SeqCst)), (4, 4));
}

#[test]
fn a_connection_that_the_server_ends_takes_no_more_requests() {
    let server = encrypted(&[], |mut stream| {
        if servers::request(&mut stream) {
            let _ = stream.conn.writer().write_all(HELLO);
            stream.conn.send_close_notify();
            let _ = stream.flush();
            // It waits for the end of the other side.
            servers::request(&mut stream);
        }
    });
    for pace in [Pace::Closed, Pace::Open { rate: 300.0, arrivals: Arrivals::Constant }] {
        let plan = Plan { pace, ..small() };
        let result = load(&target(server.address, Trust::Anyone), &plan).expect("a run");
        assert_eq!((result.counts.answered, result.counts.failures.total(), result.repeated), (100, 0, 0));
    }
}

#[test]
fn a_request_that_crosses_the_announced_end_is_sent_again() {
    let server = encrypted(&[], |mut stream| {
        if servers::request(&mut stream) && stream.write_all(HELLO).and_then(|()| stream.flush()).is_ok() {
            // The next request has come and is not read, so closing sends a reset.
            let _ = stream.sock.peek(&mut [0]);
            stream.conn.send_close_notify();
            let _ = stream.flush();
            thread::sleep(Duration::from_millis(5));
        }
    });
    let plan = Plan { connections: 1, max_requests: Some(20), ..small() };
    let result = load(&target(server.address, Trust::Anyone), &plan).expect("a run");
    // A server that closes much later than it said leaves open whether it has read the request.
    assert!(result.repeated >= 10, "{}, {:?}", result.repeated, result.counts.failures);
    assert_eq!(result.counts.answered + result.counts.failures.total(), 20);
}

#[test]
fn a_trusted_server_answers_all() {
    let server = server();
    for trust in [Trust::File(server.certificate.clone()), Trust::Anyone] {
        for pace in [Pace::Closed, Pace::Open { rate: 300.0, arrivals: Arrivals::Constant }] {
            let plan = Plan { pace, ..small() };
            let result = load(&target(server.address, trust.clone()), &plan).expect("a run");
            assert_eq!(
                (result.counts.answered, result.counts.failures.total(), result.counts.bytes),
                (100, 0, 1300)
            );
        }
    }
}

#[test]
fn the_servers_own_certificate_is_trusted_though_it_calls_itself_an_authority() {
    let server = server_as(IsCa::Ca(BasicConstraints::Unconstrained));
    // The address may be under any name, since this very certificate is trusted.
    let address = server.address;
    let (by_number, _) = Target::parse(&format!("https://{address}/")).expect("a target");
    let by_number = Target { tls: Some(Trust::File(server.certificate.clone())), ..by_number };
    for target in [target(address, Trust::File(server.certificate.clone())), by_number] {
        assert_eq!(load(&target, &small()).expect("a run").counts.answered, 100);
    }
}

#[test]
fn an_untrusted_server_is_named() {
    let server = server();
    let stranger = self::server();
    match load(&target(server.address, Trust::File(stranger.certificate.clone())), &small()) {
        Err(LoadError::Unreachable { class: Failure::Tls, detail, .. }) => {
            assert!(
                detail.contains("signed by a trusted authority") && detail.contains("--trust"),
                "{detail}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_port_without_tls_is_named() {
    match load(&target(servers::answers(HELLO), Trust::Anyone), &impatient()) {
        Err(LoadError::Unreachable { class: Failure::Tls, .. }) => {}
        other => panic!("{other:?}"),
    }
    for other in [servers::serve(drop), servers::answers_and_closes(b"")] {
        match load(&target(other, Trust::Anyone), &impatient()) {
            Err(LoadError::Unreachable { class: Failure::Tls | Failure::Reset, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_handshake_that_fails_after_others_says_why() {
    const REFUSAL: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
    let begun = AtomicUsize::new(0);
    let server = encrypted(&[], move |mut stream| {
        if begun.fetch_add(1, Ordering::SeqCst) > 0 {
            let _ = stream.sock.write_all(&REFUSAL);
            let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
        } else if servers::request(&mut stream) {
            let _ = stream.write_all(HELLO).and_then(|()| stream.flush());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    let plan = Plan { connections: 1, max_requests: Some(5), ..small() };
    let result = load(&target(server.address, Trust::Anyone), &plan).expect("a run");
    let failures = &result.counts.failures;
    // The first of these may have been sent while the server closed the connection.
    assert!(result.counts.answered == 1 && failures.of(Failure::Tls) >= 3, "{failures:?}");
    assert_eq!(failures.describe(Failure::Tls), "TLS failed: the server refused: internal error");
    // Nothing was sent on a connection without a handshake.
    assert_eq!((result.generator.requests, result.generator.reached), (5, 1));
}

#[test]
fn a_request_that_is_answered_by_an_alert_was_read() {
    let server = encrypted(&[], |mut stream| {
        if servers::request(&mut stream) && stream.write_all(HELLO).and_then(|()| stream.flush()).is_ok() {
            servers::request(&mut stream);
            // The next bytes are no record that the generator can decrypt.
            let _ = stream.sock.write_all(&[23, 3, 3, 0, 3, 1, 2, 3]);
            let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
        }
    });
    let plan = Plan { connections: 1, max_requests: Some(10), ..small() };
    let result = load(&target(server.address, Trust::Anyone), &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.of(Failure::Tls)), (5, 5));
    // Nor did the server close these connections after an answer.
    assert!(!result.doubts.iter().any(|doubt| doubt.code == "server-closes"), "{:?}", result.doubts);
    assert_eq!((result.generator.requests, result.generator.reached), (10, 10));
}

#[test]
fn handshakes_that_fail_in_part_are_counted_and_do_not_end_the_load() {
    let begun = AtomicUsize::new(0);
    let server = encrypted(&[], move |mut stream| {
        let number = begun.fetch_add(1, Ordering::SeqCst);
        if number % 2 == 1 {
            return;
        }
        if number < 4 {
            // Those that fail are the first that the generator knows about.
            thread::sleep(Duration::from_millis(200));
        }
        for _ in 0..5 {
            if !servers::request(&mut stream)
                || stream.write_all(HELLO).and_then(|()| stream.flush()).is_err()
            {
                return;
            }
        }
    });
    let pace = Pace::Open { rate: 100.0, arrivals: Arrivals::Constant };
    let result = load(&target(server.address, Trust::Anyone), &Plan { pace, ..small() }).expect("a run");
    assert!(result.counts.answered > 50, "{:?}", result.counts);
    assert!(result.idle_failures.total() > 0);
    let doubt = result.doubts.iter().find(|doubt| doubt.code == "idle-failures").expect("it is said");
    assert!(doubt.text.contains(" × TLS failed") || doubt.text.contains(" × the connection"), "{doubt:?}");
}
