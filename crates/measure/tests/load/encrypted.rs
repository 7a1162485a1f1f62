//! TLS: trusted, untrusted, and not spoken at all.

use super::servers::{self, HELLO};
use super::{load, small};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use scruple_measure::load::{Arrivals, Failure, LoadError, Pace, Plan, Target, Trust};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

pub struct Encrypted {
    pub address: SocketAddr,
    pub certificate: PathBuf,
    pub _folder: tempfile::TempDir,
}

fn server() -> Encrypted {
    encrypted(&[], |mut stream| {
        while servers::request(&mut stream) {
            if stream.write_all(HELLO).and_then(|()| stream.flush()).is_err() {
                break;
            }
        }
    })
}

/// A server with a certificate of its own that offers these protocols.
pub fn encrypted(
    protocols: &[&[u8]],
    talk: impl Fn(StreamOwned<ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> Encrypted {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a configuration");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = folder.path().join("own.pem");
    std::fs::write(&certificate, own.cert.pem()).expect("written");
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
fn a_trusted_server_answers_all() {
    let server = server();
    for trust in [Trust::File(server.certificate.clone()), Trust::Anyone] {
        for pace in [Pace::Closed, Pace::Open { rate: 300.0, arrivals: Arrivals::Constant }] {
            let plan = Plan { pace, ..small() };
            let result = load(&target(server.address, trust.clone()), &plan).expect("a run");
            assert_eq!((result.answered, result.failures.total(), result.bytes), (100, 0, 1300));
        }
    }
}

#[test]
fn an_untrusted_server_is_named() {
    let server = server();
    let stranger = self::server();
    match load(&target(server.address, Trust::File(stranger.certificate.clone())), &small()) {
        Err(LoadError::Unreachable { class: Failure::Tls, detail, .. }) => {
            assert!(detail.contains("certificate"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_port_without_tls_is_named() {
    match load(&target(servers::answers(HELLO), Trust::Anyone), &small()) {
        Err(LoadError::Unreachable { class: Failure::Tls, .. }) => {}
        other => panic!("{other:?}"),
    }
    for other in [servers::serve(drop), servers::answers_and_closes(b"")] {
        match load(&target(other, Trust::Anyone), &small()) {
            Err(LoadError::Unreachable { class: Failure::Tls | Failure::Reset, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
