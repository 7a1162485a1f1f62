//! Encrypted connections to PostgreSQL: TLS by rustls, bound to the server's certificate.

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Encrypts connections by one configuration, or none. Connections of one type serve both, so that the library's code
/// is compiled once.
#[derive(Clone)]
pub(super) struct Encryption(Option<Arc<ClientConfig>>);

impl Encryption {
    /// Encrypts by this configuration.
    pub(super) fn by(config: ClientConfig) -> Encryption {
        Encryption(Some(Arc::new(config)))
    }

    /// Encrypts nothing: for connections that ask for no handshake.
    pub(super) fn none() -> Encryption {
        Encryption(None)
    }
}

impl<S: Socket> MakeTlsConnect<S> for Encryption {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { host: host.to_owned(), config: self.0.clone() })
    }
}

/// The connection below the encryption.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for S {}

/// A handshake with this host.
pub(super) struct Handshake {
    host: String,
    config: Option<Arc<ClientConfig>>,
}

impl<S: Socket> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, socket: S) -> Self::Future {
        Box::pin(async move {
            let host = ServerName::try_from(self.host);
            let host = host.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let config =
                self.config.ok_or_else(|| io::Error::other("the connection is not to be encrypted"))?;
            Ok(Encrypted(TlsConnector::from(config).connect(host, socket).await?))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: Socket> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates().unwrap_or_default();
        match certificates.first().and_then(|certificate| end_point(certificate)) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: Socket> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: Socket> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// The object identifiers of signatures with RSA (RFC 8017, A.2.4) and ECDSA (RFC 5758, 3.2), without their last byte.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];

/// Returns the digest of a certificate that binds a channel to it (RFC 5929, section 4.1): by the hash of its
/// signature, or by SHA-256 in place of SHA-1; `None` if the signature has no hash of its own.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER, … }, … }
    let (parts, _) = element(certificate)?;
    let (_, signature) = element(parts)?;
    let (algorithm, _) = element(signature)?;
    let (identifier, _) = element(algorithm)?;
    let (last, family) = identifier.split_last()?;
    match (family, *last) {
        (RSA, 5 | 11) | (ECDSA, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Returns the content of the first element of DER, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [_, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match usize::from(*first) {
        short @ ..0x80 => (short, rest),
        long => {
            let (digits, rest) =
                rest.split_at_checked(long - 0x80).filter(|(digits, _)| digits.len() <= 4)?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    fn certificate(algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let names = vec!["localhost".to_owned()];
        let parameters = CertificateParams::new(names).expect("parameters");
        parameters.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn a_channel_is_bound_by_the_hash_of_the_certificate_s_signature() {
        let short = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(end_point(&short), Some(Sha256::digest(&short).to_vec()));
        let long = certificate(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(end_point(&long), Some(Sha384::digest(&long).to_vec()));
        assert_eq!(end_point(&certificate(&PKCS_ED25519)), None);
    }

    #[test]
    fn a_damaged_certificate_binds_nothing_and_does_no_harm() {
        let whole = certificate(&PKCS_ECDSA_P256_SHA256);
        for length in 0..40 {
            assert_eq!(end_point(&whole[..length]), None);
        }
        assert_eq!(end_point(&[0x30, 0xff, 0xff, 0xff]), None);
    }
}
