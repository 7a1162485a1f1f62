//! Reports a running load to other programs: in the text format of Prometheus, at an address or in a file, or through
//! OpenTelemetry.

mod otlp;
mod prometheus;

use crate::fault::Fault;
use scruple_measure::load::{LiveRecord, LoadProgress};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The destination of the reports.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// An address at which queries are answered in the text format of Prometheus.
    Address(SocketAddr),
    /// A file in the text format of Prometheus, which its node exporter reads.
    File(PathBuf),
    /// A collector of OpenTelemetry, which receives OTLP over HTTP in JSON.
    Collector {
        /// The host and port of the collector.
        host: String,
        /// The path of the HTTP request.
        path: String,
    },
}

/// The counts of one server so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerFigures {
    pub(super) server: String,
    /// The counts of earlier turns.
    before: LiveRecord,
    /// The counts of the current turn, and how long it has lasted, in seconds.
    now: LiveRecord,
    elapsed: f64,
    pub(super) backlog: u64,
}

impl ServerFigures {
    /// Returns the counts since the load started.
    pub(super) fn counts(&self) -> LiveRecord {
        let mut sum = self.before.clone();
        sum.add(&self.now);
        sum
    }

    fn update(&mut self, seen: &LoadProgress) {
        // Each turn counts from zero.
        if seen.elapsed < self.elapsed {
            self.before = self.counts();
        }
        (self.now, self.elapsed) = (seen.record.clone(), seen.elapsed);
        self.backlog = seen.backlog;
    }
}

#[derive(Default)]
struct LiveShared {
    figures: Mutex<Vec<ServerFigures>>,
    over: AtomicBool,
    /// The last error of a report.
    trouble: Mutex<Option<String>>,
}

impl LiveShared {
    fn figures(&self) -> MutexGuard<'_, Vec<ServerFigures>> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, why: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// A load that is reported while it runs.
pub struct LiveReport {
    shared: Arc<LiveShared>,
    reporter: Option<JoinHandle<()>>,
    place: String,
}

/// The interval between reports, unless the other program queries.
const EVERY: Duration = Duration::from_secs(1);

/// The time limit of a connection to another program.
const PATIENCE: Duration = Duration::from_secs(2);

impl LiveReport {
    /// Starts to report at `text`: `http://HOST:PORT/` is a collector, `HOST:PORT` an address for queries, and a name
    /// that ends in `.prom` a file.
    ///
    /// # Errors
    /// The text is none of these, or the destination cannot be used.
    pub fn begin(text: &str) -> Result<LiveReport, Fault> {
        let place = place(text)?;
        let shared = Arc::new(LiveShared::default());
        let own = Arc::clone(&shared);
        let refused = |error: std::io::Error| {
            Fault::usage(format!("cannot report the load to ‘{text}’: {error}; name another place"))
        };
        let reporter = match place {
            Destination::Address(address) => {
                let listener = TcpListener::bind(address).map_err(refused)?;
                listener.set_nonblocking(true).map_err(refused)?;
                thread::spawn(move || serve(&own, &listener))
            }
            Destination::File(path) => {
                write(&own, &path).map_err(refused)?;
                thread::spawn(move || each_second(&own, &|shared| write(shared, &path)))
            }
            Destination::Collector { host, path } => {
                let began = since_1970();
                thread::spawn(move || each_second(&own, &|shared| push(shared, &host, &path, began)))
            }
        };
        Ok(LiveReport { shared, reporter: Some(reporter), place: text.to_owned() })
    }

    /// Reports the progress of a server's turn.
    pub fn update(&self, server: &str, seen: &LoadProgress) {
        let mut figures = self.shared.figures();
        let place = figures.iter().position(|one| one.server == server);
        let place = place.unwrap_or_else(|| {
            figures.push(ServerFigures { server: server.to_owned(), ..ServerFigures::default() });
            figures.len() - 1
        });
        figures[place].update(seen);
    }

    /// Reports the end of the load. Returns a sentence about what could not be reported.
    pub fn end(mut self) -> Option<String> {
        self.stop();
        let trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map(|why| format!("not all reports reached ‘{}’ during the load: {why}", self.place))
    }

    fn stop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(reporter) = self.reporter.take() {
            // A failure is ignored, because the destination shows that a failed thread has stopped reporting.
            let _ = reporter.join();
        }
    }
}

impl Drop for LiveReport {
    fn drop(&mut self) {
        self.stop();
    }
}

fn place(text: &str) -> Result<Destination, Fault> {
    if let Some(rest) = text.strip_prefix("http://") {
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let path = if path.len() < 2 { "/v1/metrics" } else { path };
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:4318") };
        return Ok(Destination::Collector { host, path: path.to_owned() });
    }
    if text.ends_with(".prom") {
        return Ok(Destination::File(text.into()));
    }
    let address = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.map(Destination::Address).ok_or_else(|| {
        Fault::usage(format!(
            "‘{text}’ is not a place to report the load to: write http://HOST:4318 for a collector of OpenTelemetry, \
             :9464 for an address that Prometheus scrapes, or FILE.prom"
        ))
    })
}

fn since_1970() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

/// Reports each second until the load is over, and once more at the end.
fn each_second(shared: &LiveShared, send: &dyn Fn(&LiveShared) -> std::io::Result<()>) {
    let mut next = Instant::now();
    loop {
        let over = shared.over.load(Ordering::Relaxed);
        if over || Instant::now() >= next {
            next += EVERY;
            if let Err(error) = send(shared) {
                shared.failed(error.to_string());
            }
        }
        if over {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Replaces the file atomically, so that readers never see an incomplete one.
fn write(shared: &LiveShared, path: &std::path::Path) -> std::io::Result<()> {
    let beside = path.with_extension("prom.new");
    std::fs::write(&beside, prometheus::text(&shared.figures()))?;
    std::fs::rename(beside, path)
}

fn push(shared: &LiveShared, host: &str, path: &str, began: u128) -> std::io::Result<()> {
    let body = otlp::json(&shared.figures(), began, since_1970());
    let address = host.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut line = [0; 12];
    stream.read_exact(&mut line)?;
    match line.get(9) {
        Some(b'2') => Ok(()),
        _ => {
            Err(std::io::Error::other(format!("the collector answered ‘{}’", String::from_utf8_lossy(&line))))
        }
    }
}

/// Answers queries until the load is over.
fn serve(shared: &LiveShared, listener: &TcpListener) {
    while !shared.over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = answer(shared, stream) {
                    shared.failed(error.to_string());
                }
            }
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn answer(shared: &LiveShared, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") && asked.len() < 16 * 1024 {
        match stream.read(&mut piece)? {
            0 => break,
            n => asked.extend_from_slice(&piece[..n]),
        }
    }
    let body = prometheus::text(&shared.figures());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_distinguished() {
        let of = |text: &str| place(text).ok();
        let collector =
            |host: &str, path: &str| Some(Destination::Collector { host: host.into(), path: path.into() });
        assert_eq!(of("http://h"), collector("h:4318", "/v1/metrics"));
        assert_eq!(of("http://h:80/x"), collector("h:80", "/x"));
        assert_eq!(of(":9464"), Some(Destination::Address(([127, 0, 0, 1], 9464).into())));
        assert_eq!(of("a/b.prom"), Some(Destination::File("a/b.prom".into())));
        assert!(place("nowhere").is_err() && place("https://h").is_err());
    }

    #[test]
    fn counts_go_on_from_turn_to_turn() {
        let mut figures = ServerFigures::default();
        let seen = |elapsed: f64, answered: u64| {
            let record = LiveRecord { answered, sum: answered * 10, ..LiveRecord::default() };
            LoadProgress { elapsed, record, ..LoadProgress::default() }
        };
        // The second turn has more answers at once than the first had in all.
        for (elapsed, answered) in [(0.5, 5), (1.0, 9), (0.25, 12), (0.5, 14)] {
            figures.update(&seen(elapsed, answered));
        }
        assert_eq!((figures.counts().answered, figures.counts().sum), (23, 230));
    }
}
