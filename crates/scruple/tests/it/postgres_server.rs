//! A PostgreSQL server for the tests, on a Unix socket and on the loopback. Its folder is removed when the tests end.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A shell script that starts a server, and stops it and removes its folder at the end of standard input, which comes
/// however the test process ends. It ignores signals to the process group.
const KEEP: &str = r#"
set -e
trap '' INT TERM HUP
as=""; if [ "$(id -u)" = 0 ]; then as="runuser -u postgres --"; chown -R postgres "$D"; fi
cd "$D"
$as "$B/initdb" -D "$D/data" -A scram-sha-256 -U owner --pwfile="$D/password" --no-sync -E UTF8 --locale=C >"$D/initdb.log" 2>&1
cat >>"$D/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $PORT
unix_socket_directories = '$D'
fsync = off
ssl = on
ssl_cert_file = '$D/cert.pem'
ssl_key_file = '$D/key.pem'
END
chmod 600 "$D/key.pem"
printf 'local all owner trust\nlocal all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n' >"$D/data/pg_hba.conf"
$as "$B/pg_ctl" -D "$D/data" -w -l "$D/log" start >/dev/null
echo ready
cat >/dev/null
$as "$B/pg_ctl" -D "$D/data" -w -m immediate stop >/dev/null 2>&1 || true
rm -rf "$D"
"#;

/// A running server.
pub struct PostgresServer {
    folder: PathBuf,
    port: String,
    /// The certificates of the authority that signed the server's certificate, and of another one, as files.
    pub authority: PathBuf,
    pub other_authority: PathBuf,
    /// The process that runs [`KEEP`], which stops the server when its standard input ends.
    keeper: Child,
}

/// An authority that signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(parameters, key), pem }
    }

    /// The certificate of a server with these names, and its key.
    fn certify(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(names).expect("names");
        (parameters.signed_by(&key, &self.issuer).expect("a certificate").pem(), key.serialize_pem())
    }
}

impl PostgresServer {
    /// The server that all tests share. Each test makes databases of its own.
    pub fn shared() -> &'static PostgresServer {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(PostgresServer::start)
    }

    /// Starts a server for one test, which may stop it.
    pub fn start() -> PostgresServer {
        let bin = newest_bin();
        // The path of a Unix socket may have at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("pg-").tempdir_in("/tmp").expect("a folder").keep();
        let authority = Authority::new();
        std::fs::write(folder.join("authority.pem"), &authority.pem).expect("a file");
        std::fs::write(folder.join("other.pem"), Authority::new().pem).expect("a file");
        let (certificate, key) = authority.certify(&["localhost", "127.0.0.1"]);
        std::fs::write(folder.join("cert.pem"), certificate).expect("a file");
        std::fs::write(folder.join("key.pem"), key).expect("a file");
        std::fs::write(folder.join("password"), "s3cret\n").expect("a file");
        let port = crate::support::free_port();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEP])
            .envs([("D", folder.as_path()), ("B", bin.as_path())])
            .env("PORT", &port)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let out = keeper.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("an answer");
        let log = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(line, "ready\n", "no server: {}{}", log("initdb.log"), log("log"));
        PostgresServer {
            authority: folder.join("authority.pem"),
            other_authority: folder.join("other.pem"),
            port,
            folder,
            keeper,
        }
    }

    /// Creates a database and returns its URL on the socket.
    pub fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("d{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.client("postgres").batch_execute(&format!("CREATE DATABASE {name}")).expect("a database");
        self.url(&name, "owner")
    }

    /// The URL of `database` on the socket for `user`.
    pub fn url(&self, database: &str, user: &str) -> String {
        format!("postgres://{user}@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// The URL of the same database over the loopback, where users need a password.
    pub fn by_network(&self, url: &str) -> String {
        let (database, _) = url.rsplit_once('/').map_or((url, ""), |_| parts(url));
        format!("postgres://owner:s3cret@127.0.0.1:{}/{database}", self.port)
    }

    /// Connects to `database` as its owner.
    pub fn client(&self, database: &str) -> postgres::Client {
        postgres::Client::connect(&self.url(database, "owner"), postgres::NoTls).expect("a connection")
    }

    /// Connects to the database in `url` as its owner.
    pub fn client_of(&self, url: &str) -> postgres::Client {
        self.client(parts(url).0)
    }

    /// Kills the server at once.
    pub fn kill(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Starts the killed server again.
    pub fn restart(&self) {
        let log = self.folder.join("log");
        self.control(&["-w", "-l", &log.display().to_string(), "start"]);
    }

    fn control(&self, words: &[&str]) {
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(newest_bin().join("pg_ctl"));
                command
            }
            false => Command::new(newest_bin().join("pg_ctl")),
        };
        let status = command
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(words)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("pg_ctl").success(), "pg_ctl {words:?}");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // A test cannot handle a failure of the keeper.
        let _ = self.keeper.wait();
    }
}

/// The name of the database in `url`, and its query.
fn parts(url: &str) -> (&str, &str) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    (path.rsplit('/').next().unwrap_or_default(), query)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// The folder of the programs of the newest PostgreSQL that Debian's packages installed.
fn newest_bin() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("the package postgresql is installed");
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().map(|entry| entry.path()).max_by_key(|path| number(path));
    newest.expect("a version of PostgreSQL").join("bin")
}
