//! TLS as a filter between bytes: rustls implements handshake and records, and the socket remains with the caller.

use super::failure::Failure;
use super::target::{Protocol, Target, Trust};
use super::tls_verifier::{self, Verifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The TLS settings that all connections of a run share.
#[derive(Clone)]
pub(crate) struct TlsSetup {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// The TLS session of one connection.
pub(crate) struct Tls {
    session: ClientConnection,
    /// Whether the server has said that it sends no more (close_notify). It may wait for the end of this side.
    pub(crate) has_ended: bool,
}

/// A configuration that trusts the authorities in a file, or those of the system if no file is given.
///
/// # Errors
/// Fails if the certificates cannot be read, with a message.
pub fn client_tls(certificates: Option<&Path>) -> Result<ClientConfig, String> {
    configuration(&certificates.map_or(Trust::System, |path| Trust::File(path.to_owned())))
}

fn configuration(trust: &Trust) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(match trust {
        Trust::Anyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier::of_anyone(provider)))
            .with_no_client_auth(),
        Trust::System => builder.with_root_certificates(tls_verifier::system_roots()?).with_no_client_auth(),
        Trust::File(path) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier::of_file(path, provider)?))
            .with_no_client_auth(),
    })
}

impl TlsSetup {
    /// Reads the authorities, and sets the versions of TLS and the protocol to offer.
    pub(crate) fn new(target: &Target, trust: &Trust) -> Result<TlsSetup, String> {
        let mut config = configuration(trust)?;
        config.alpn_protocols = match target.protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        let name = ServerName::try_from(target.server_name().to_owned())
            .map_err(|_| format!("‘{}’ is not a name that a certificate can have", target.server_name()))?;
        Ok(TlsSetup { config: Arc::new(config), name })
    }
}

impl Tls {
    pub(crate) fn new(setup: &TlsSetup) -> Result<Tls, Failure> {
        let mut session =
            ClientConnection::new(setup.config.clone(), setup.name.clone()).map_err(|_| Failure::Tls)?;
        session.set_buffer_limit(None);
        Ok(Tls { session, has_ended: false })
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Whether the server has agreed to speak HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(b"h2")
    }

    /// Encrypts bytes of the application, and returns the bytes to send.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        self.session.writer().write_all(bytes).map_err(|_| Failure::Tls)?;
        self.pending()
    }

    /// Takes the bytes that wait to be sent.
    pub(crate) fn pending(&mut self) -> Result<Vec<u8>, Failure> {
        let mut sealed = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut sealed).map_err(|_| Failure::Tls)?;
        }
        Ok(sealed)
    }

    /// Decrypts received bytes and appends the result to `plain`.
    ///
    /// # Errors
    /// Fails with a message for the user.
    pub(crate) fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        while !bytes.is_empty() {
            let taken = self.session.read_tls(&mut bytes).map_err(|error| error.to_string())?;
            let state = self.session.process_new_packets().map_err(|error| tls_verifier::words(&error))?;
            self.has_ended = state.peer_has_closed();
            let before = plain.len();
            plain.resize(before + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut plain[before..]).map_err(|error| error.to_string())?;
            if taken == 0 {
                break;
            }
        }
        Ok(())
    }
}
