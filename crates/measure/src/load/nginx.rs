//! A reference server for comparison: nginx, which answers every request with a file of a given length.

use super::cost::server_process::ServerCommand;
use super::{Address, Request, Target};
use crate::program::Program;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// Folders in which servers are installed, and which are rarely on users' search path.
const SERVERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// The folder of the served files, inside the server's folder.
const ROOT: &str = "root";

/// nginx with one process, configured in a folder of its own and not yet started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nginx {
    /// The command that starts nginx.
    pub command: ServerCommand,
    /// The address on this machine: a free port, or a Unix socket if the other server has one.
    pub target: Target,
    /// The path of the file that nginx serves.
    page: PathBuf,
}

/// Why there is no reference server.
#[derive(Debug, thiserror::Error)]
pub enum NginxError {
    /// nginx is not installed.
    #[error("nginx is not installed: it is neither in PATH nor in /usr/sbin or /usr/local/sbin")]
    Missing,
    /// The files of nginx could not be written, or no port was free.
    #[error("nginx cannot be set up: {0}")]
    SetUp(#[from] io::Error),
}

impl Nginx {
    /// Configures nginx in an empty folder, for comparison with a server at `other`.
    ///
    /// # Errors
    /// Fails if nginx is not installed, or its files cannot be written.
    pub fn configure_beside(other: &Target, folder: &Path) -> Result<Nginx, NginxError> {
        let program = find().ok_or(NginxError::Missing)?;
        let unix = matches!(other.addresses.first(), Some(Address::Unix(_)));
        let (target, listen) = match unix {
            true => {
                let socket = folder.join("socket");
                let listen = format!("unix:{}", socket.display());
                (Target::unix(&socket), listen)
            }
            false => {
                let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
                let target = Target {
                    addresses: vec![Address::Tcp(address)],
                    host: address.to_string(),
                    tls: None,
                    protocol: super::Protocol::Http1,
                };
                (target, address.to_string())
            }
        };
        let (page, settings) = (folder.join(ROOT).join("page"), folder.join("nginx.conf"));
        std::fs::create_dir_all(folder.join(ROOT))?;
        std::fs::write(&page, "")?;
        std::fs::write(&settings, configuration(folder, &listen))?;
        let words: [OsString; 5] = [program.into(), "-p".into(), folder.into(), "-c".into(), settings.into()];
        Ok(Nginx { command: ServerCommand::of(words.to_vec()), target, page })
    }

    /// The request that nginx answers.
    pub fn request() -> Request {
        Request::get("/page")
    }

    /// Sets the length of nginx's answers in bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn answer_with(&self, bytes: u64) -> io::Result<()> {
        std::fs::write(&self.page, vec![b'x'; bytes as usize])
    }
}

fn find() -> Option<PathBuf> {
    let name = "nginx";
    let on_path = Program::find(name.as_ref(), Path::new("/")).ok();
    let beside =
        || SERVERS.into_iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    on_path.map(|program| program.path).or_else(beside)
}

/// The configuration: one process in the foreground, which writes only to its folder and does not close connections.
fn configuration(folder: &Path, listen: &str) -> String {
    let own = |name: &str| format!("\"{}\"", folder.join(name).display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .into_iter()
        .map(|what| format!("  {what}_temp_path {};\n", own(what)))
        .collect();
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {};\nerror_log {};\n\
         events {{ worker_connections 16384; }}\n\
         http {{\n{temporary}  access_log off;\n  keepalive_requests 1000000000;\n  keepalive_timeout 1h;\n  \
         server {{ listen \"{listen}\"; root {}; }}\n}}\n",
        own("pid"),
        own("errors"),
        own(ROOT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stays_in_the_folder() {
        let text = configuration(Path::new("/a b"), "unix:/a b/socket");
        let paths: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        assert_eq!(paths.len(), 9);
        assert!(paths.iter().all(|path| path.contains("/a b/")), "{paths:?}");
    }
}
