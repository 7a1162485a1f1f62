//! Determines which servers TLS trusts, and says in words why a server is not trusted.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files in which systems keep trusted authorities.
const SYSTEM_LISTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authorities that the system trusts; an error if there is no list of them.
pub(super) fn system_roots() -> Result<RootCertStore, String> {
    let list = SYSTEM_LISTS.iter().map(PathBuf::from).find(|path| path.exists()).ok_or(
        "this system has no list of trusted authorities: name the server’s certificate with --trust FILE, or trust \
         anyone with --trust anyone",
    )?;
    Ok(roots(&certificates(&list)?))
}

fn roots(certificates: &[CertificateDer<'static>]) -> RootCertStore {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        // System lists often contain old authorities that no longer parse. They are skipped.
        let _ = store.add(certificate.clone());
    }
    store
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |why: String| format!("cannot read certificates from ‘{}’: {why}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| cannot(error.to_string()))?;
    let read: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| cannot(error.to_string()))?;
    if read.is_empty() { Err(cannot("it contains none".to_owned())) } else { Ok(read) }
}

/// Verifies servers' certificates, and that servers hold the keys.
#[derive(Debug)]
pub(super) struct Verifier {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Accepted {
    /// All certificates are accepted.
    All,
    /// The certificates of a file are accepted, and those that one of them has signed.
    Named {
        certificates: Vec<CertificateDer<'static>>,
        /// The standard verifier; `None` if no certificate of the file can be an authority.
        signed: Option<Arc<WebPkiServerVerifier>>,
    },
}

impl Verifier {
    /// A verifier that accepts every certificate.
    pub(super) fn of_anyone(provider: Arc<CryptoProvider>) -> Verifier {
        Verifier { accepted: Accepted::All, provider }
    }

    /// A verifier that accepts the certificates of a file, and those that one of them has signed.
    pub(super) fn of_file(path: &Path, provider: Arc<CryptoProvider>) -> Result<Verifier, String> {
        let certificates = certificates(path)?;
        let authorities = Arc::new(roots(&certificates));
        let signed = WebPkiServerVerifier::builder_with_provider(authorities, provider.clone()).build().ok();
        Ok(Verifier { accepted: Accepted::Named { certificates, signed }, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Accepted::Named { certificates, signed } = &self.accepted else {
            return Ok(ServerCertVerified::assertion());
        };
        // Certificates that openssl makes by default claim to be an authority, and the standard verifier would reject
        // them as certificates of a server.
        if certificates.iter().any(|known| known == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match signed {
            Some(signed) => {
                signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The error in words, with possible remedies.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(reason) => certificate(reason),
        Error::NoCertificatesPresented => "the server shows no certificate".to_owned(),
        Error::AlertReceived(alert) => {
            format!("the server refused: {}", split_into_words(&format!("{alert:?}")))
        }
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => "what the server sends is not TLS".to_owned(),
        Error::PeerIncompatible(_) => {
            "the server and Scruple have no version or cipher of TLS in common".to_owned()
        }
        Error::PeerMisbehaved(how) => {
            format!("the server violates TLS: {}", split_into_words(&format!("{how:?}")))
        }
        other => other.to_string(),
    }
}

fn certificate(reason: &CertificateError) -> String {
    use CertificateError::{
        BadEncoding, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, Revoked,
    };
    let what = match reason {
        Expired | ExpiredContext { .. } => "the server’s certificate has expired",
        NotValidYet | NotValidYetContext { .. } => "the server’s certificate is not valid yet",
        NotValidForName | NotValidForNameContext { .. } => {
            "the server’s certificate is for another name than this"
        }
        Revoked => "the server’s certificate was revoked",
        BadEncoding => "the server’s certificate cannot be read",
        // A bad signature may also mean that another authority with the same name is trusted.
        _ => "the server’s certificate is not signed by a trusted authority",
    };
    format!(
        "{what}: name the certificate or its authority with --trust FILE, or trust anyone with --trust anyone"
    )
}

/// Splits a name such as `HandshakeFailure` into words.
fn split_into_words(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_described_in_words() {
        let unknown = words(&CertificateError::UnknownIssuer.into());
        assert!(
            unknown.contains("trusted authority")
                && unknown.contains("--trust FILE")
                && unknown.contains("--trust anyone")
        );
        assert!(words(&CertificateError::NotValidForName.into()).contains("another name"));
        let refused = words(&Error::AlertReceived(rustls::AlertDescription::HandshakeFailure));
        assert_eq!(refused, "the server refused: handshake failure");
    }
}
