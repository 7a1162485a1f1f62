//! The target of a load: a server's address and its protocol.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// An address that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Whether the address is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, with one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2, with several requests at a time on a connection; without TLS by prior knowledge.
    Http2,
}

/// Which servers are trusted if the connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Servers with a certificate from an authority in the system's list.
    System,
    /// Servers with a certificate from an authority in a PEM file, or with a certificate in it.
    File(PathBuf),
    /// All servers: the connection is encrypted, but the certificate is not checked.
    Anyone,
}

/// A server to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The possible addresses; the first one that accepts a connection is used.
    pub addresses: Vec<Address>,
    /// The `Host` of requests, and the name in the certificate.
    pub host: String,
    /// Which servers are trusted, if TLS is used; `None` without TLS.
    pub tls: Option<Trust>,
    /// The version of HTTP.
    pub protocol: Protocol,
}

/// Why a text does not name a server.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TargetError {
    /// The scheme is neither http nor https.
    #[error(
        "‘{0}’ is not a scheme that can be loaded: http, https, or unix:PATH are. ‘scruple run’ weighs a client of another \
         protocol"
    )]
    Scheme(String),
    /// The text has no host or socket path.
    #[error(
        "‘{0}’ names no server: write for instance http://localhost:8080/ or unix:/run/app.sock; the command of a server \
         stands after ‘--’"
    )]
    NoServer(String),
    /// The host is a number alone, which resolvers take for an address such as 0.0.31.144.
    #[error("‘{0}’ is a number and no host: write ‘:{0}’ for a port of this machine")]
    Number(String),
    /// The URL contains a name or a password of a user, which no request would contain.
    #[error(
        "the URL contains the name or the password of a user, which would not be sent: leave it out, and give the header \
         ‘Authorization’ with -H or in a scenario"
    )]
    Credentials,
    /// The port is invalid.
    #[error("‘{0}’ is not a port: a number from 1 to 65535 is expected")]
    Port(String),
    /// The host has no address.
    #[error("the host ‘{host}’ has no address: {why}")]
    Unknown {
        /// The host.
        host: String,
        /// The resolver's error.
        why: String,
    },
}

impl Target {
    /// Parses `http://host:port/path`, `https://…`, `host:port`, `:port`, or `unix:/path/to.sock` (optionally
    /// followed by `:/path`), and looks up the host. Returns the target, and the path with its query.
    ///
    /// # Errors
    /// Fails if the text names no server, or the host has no address.
    pub fn parse(text: &str) -> Result<(Target, String), TargetError> {
        if let Some(rest) = text.strip_prefix("unix:") {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            let (socket, path) =
                rest.split_once(":/").map_or((rest, "/".to_owned()), |(s, p)| (s, format!("/{p}")));
            if socket.is_empty() {
                return Err(TargetError::NoServer(text.to_owned()));
            }
            return Ok((Target::unix(Path::new(socket)), path));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (tls, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (None, 80),
            "https" => (Some(Trust::System), 443),
            _ => return Err(TargetError::Scheme(scheme.to_owned())),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or("");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if authority.contains('@') {
            return Err(TargetError::Credentials);
        }
        let (host, port) = split_port(authority, default_port)?;
        let host = if host.is_empty() && authority.starts_with(':') { "localhost" } else { host };
        // A path, such as ./server, is no host.
        if host.trim_matches('.').is_empty() {
            return Err(TargetError::NoServer(text.to_owned()));
        }
        if host.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TargetError::Number(host.to_owned()));
        }
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (unbracketed, port)
            .to_socket_addrs()
            .map_err(|error| TargetError::Unknown { host: host.to_owned(), why: error.to_string() })?
            .map(Address::Tcp)
            .collect();
        let shown = if port == default_port { host.to_owned() } else { format!("{host}:{port}") };
        Ok((Target { addresses, host: shown, tls, protocol: Protocol::Http1 }, path))
    }

    /// The target of a Unix socket, with HTTP/1.1 and without TLS.
    pub fn unix(path: &Path) -> Target {
        Target {
            addresses: vec![Address::Unix(path.to_owned())],
            host: "localhost".to_owned(),
            tls: None,
            protocol: Protocol::Http1,
        }
    }

    /// Whether all addresses are on this machine.
    pub fn is_local(&self) -> bool {
        self.addresses.iter().all(Address::is_local)
    }

    /// The host without its port, as a certificate names it.
    pub fn server_name(&self) -> &str {
        split_port(&self.host, 0).map_or(self.host.as_str(), |(host, _)| host).trim_matches(['[', ']'])
    }
}

fn split_port(authority: &str, default: u16) -> Result<(&str, u16), TargetError> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after_bracket..].rfind(':') {
        None => Ok((authority, default)),
        Some(colon) => {
            let (host, port) = authority.split_at(after_bracket + colon);
            match port[1..].parse() {
                Ok(0) | Err(_) => Err(TargetError::Port(port[1..].to_owned())),
                Ok(port) => Ok((host, port)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        let (target, path) = Target::parse("http://127.0.0.1:8080/a?b=c#d").expect("read");
        assert_eq!(target.addresses, [Address::Tcp(([127, 0, 0, 1], 8080).into())]);
        assert_eq!((target.host.as_str(), path.as_str()), ("127.0.0.1:8080", "/a?b=c"));
        let (target, path) = Target::parse("https://[::1]?q").expect("read");
        assert_eq!((target.host.as_str(), path.as_str()), ("[::1]", "/?q"));
        assert_eq!((target.tls.clone(), target.server_name()), (Some(Trust::System), "::1"));
        let (target, path) = Target::parse("unix:/run/app.sock:/hello").expect("read");
        assert_eq!((target.is_local(), path.as_str()), (true, "/hello"));
        assert!(Target::parse(":8080").expect("read").0.is_local());
    }

    #[test]
    fn a_text_that_names_no_server_is_refused() {
        assert_eq!(Target::parse("ftp://x/"), Err(TargetError::Scheme("ftp".into())));
        assert_eq!(Target::parse("http:///x"), Err(TargetError::NoServer("http:///x".into())));
        assert_eq!(Target::parse("localhost:99999"), Err(TargetError::Port("99999".into())));
        assert_eq!(Target::parse("unix:"), Err(TargetError::NoServer("unix:".into())));
        assert_eq!(Target::parse("http://ann:s3cret@localhost/"), Err(TargetError::Credentials));
        assert_eq!(
            Target::parse("8080").err().map(|error| error.to_string()),
            Some("‘8080’ is a number and no host: write ‘:8080’ for a port of this machine".into())
        );
    }
}
