//! Servers with known faults, on loopback and Unix sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 13\r\n\r\nHello, world\n";

/// Starts a server that runs `talk` in a new thread for each connection.
pub fn serve(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let talk = Arc::new(talk);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let talk = Arc::clone(&talk);
            thread::spawn(move || talk(stream));
        }
    });
    address
}

/// Reads one request without content; false if the stream has ended.
pub fn request(stream: &mut impl Read) -> bool {
    let mut text = Vec::new();
    let mut byte = [0; 512];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(0) | Err(_) => return false,
            Ok(n) => text.extend_from_slice(&byte[..n]),
        }
    }
    true
}

/// Serves until it is killed, with a thread for each connection. That thread sleeps for each request, or, with
/// `for_requests`, starts another thread that does some work for the request.
pub fn threads(port: u16, for_requests: bool) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    for mut stream in listener.incoming().flatten() {
        thread::spawn(move || {
            while request(&mut stream) {
                match for_requests {
                    true => thread::spawn(|| planted(500_000)).join().expect("it works"),
                    false => thread::sleep(Duration::from_micros(100)),
                }
                if stream.write_all(HELLO).is_err() {
                    break;
                }
            }
        });
    }
}

/// Starts a server that answers every request with the same bytes.
pub fn answers(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while request(&mut stream) && stream.write_all(bytes).is_ok() {}
    })
}

/// Starts a server that answers a request with these bytes and then closes the connection.
pub fn answers_and_closes(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut stream| {
        if request(&mut stream) {
            let _ = stream.write_all(bytes);
        }
        let _ = stream.shutdown(Shutdown::Write);
        // If bytes were left unread, the kernel would send a reset instead of the end of the stream.
        while matches!(stream.read(&mut [0; 512]), Ok(n) if n > 0) {}
    })
}

/// Starts a server that resets the connection instead of answering.
pub fn resets() -> SocketAddr {
    serve(|mut stream| {
        if request(&mut stream) {
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            // SAFETY: the kernel reads one `linger`.
            unsafe {
                libc::setsockopt(
                    stream.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_LINGER,
                    (&raw const linger).cast(),
                    size_of::<libc::linger>() as libc::socklen_t,
                )
            };
        }
    })
}

/// A server with one thread for any number of connections. It can stall and die, and records when it answered.
pub struct Loop {
    pub address: SocketAddr,
    pub answered: Arc<Mutex<Vec<u64>>>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Periodic stalls of a [`Loop`], in milliseconds: it sleeps for `length` once every `period`; with a period of 0,
/// never.
#[derive(Clone, Copy, Default)]
pub struct Stall {
    pub period: u64,
    pub length: u64,
}

impl Loop {
    pub fn tcp(stall: Stall) -> Loop {
        Loop::at(0, Habits { stall, ..Habits::default() })
    }

    /// A server with a known cost: it leaks `leak` bytes and works `work` steps per request.
    pub fn planted(port: u16, leak: usize, work: usize) -> Loop {
        Loop::at(port, Habits { stall: Stall::default(), leak, work, silent: true })
    }

    /// A server at a given port that keeps no record; for comparisons by hand.
    #[allow(dead_code)]
    pub fn stalling(port: u16, stall: Stall) -> Loop {
        Loop::at(port, Habits { stall, silent: true, ..Habits::default() })
    }

    fn at(port: u16, habits: Habits) -> Loop {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        listener.set_nonblocking(true).expect("fcntl");
        Loop::start(address, move || listener.accept().ok().map(|(stream, _)| Peer::Tcp(stream)), habits)
    }

    pub fn unix(path: &Path) -> Loop {
        let listener = UnixListener::bind(path).expect("a socket");
        listener.set_nonblocking(true).expect("fcntl");
        let accept = move || listener.accept().ok().map(|(stream, _)| Peer::Unix(stream));
        Loop::start(([127, 0, 0, 1], 1).into(), accept, Habits::default())
    }

    fn start(
        address: SocketAddr,
        accept: impl FnMut() -> Option<Peer> + Send + 'static,
        habits: Habits,
    ) -> Loop {
        let (answered, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (answered, stop) = (Arc::clone(&answered), Arc::clone(&stop));
            thread::spawn(move || poll_loop(accept, habits, &answered, &stop))
        };
        Loop { address, answered, stop, thread: Some(thread) }
    }

    /// Closes all sockets, including the listening one.
    pub fn die(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server thread ends");
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.die();
    }
}

#[derive(Clone, Copy, Default)]
struct Habits {
    stall: Stall,
    leak: usize,
    work: usize,
    /// Whether the times of answers are not recorded, because recording takes memory.
    silent: bool,
}

/// Work that a profile must show under this name.
#[inline(never)]
fn planted(steps: usize) {
    let mut state = 1_u64;
    let mut left = steps;
    while left > 0 {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005));
        left -= 1;
    }
}

enum Peer {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Peer {
    fn fd(&self) -> RawFd {
        match self {
            Peer::Tcp(stream) => stream.as_raw_fd(),
            Peer::Unix(stream) => stream.as_raw_fd(),
        }
    }

    fn configure(&self) {
        match self {
            Peer::Tcp(stream) => {
                let _ = stream.set_nodelay(true);
                let _ = stream.set_nonblocking(true);
            }
            Peer::Unix(stream) => {
                let _ = stream.set_nonblocking(true);
            }
        }
    }

    /// Reads the available bytes; `None` if the stream has ended.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let read = match self {
            Peer::Tcp(stream) => stream.read(buffer),
            Peer::Unix(stream) => stream.read(buffer),
        };
        match read {
            Ok(0) => None,
            Ok(n) => Some(n),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(0),
            Err(_) => None,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let _ = match self {
            Peer::Tcp(stream) => stream.write_all(bytes),
            Peer::Unix(stream) => stream.write_all(bytes),
        };
    }
}

fn poll_loop(
    mut accept: impl FnMut() -> Option<Peer>,
    habits: Habits,
    answered: &Mutex<Vec<u64>>,
    stop: &AtomicBool,
) {
    let stall = habits.stall;
    let mut peers: Vec<Peer> = Vec::new();
    let mut next_stall = now() + stall.period * 1_000_000;
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        if stall.period > 0 && now() >= next_stall {
            thread::sleep(Duration::from_millis(stall.length));
            next_stall += stall.period * 1_000_000;
        }
        while let Some(peer) = accept() {
            peer.configure();
            peers.push(peer);
        }
        let mut watched: Vec<libc::pollfd> = peers
            .iter()
            .map(|peer| libc::pollfd { fd: peer.fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: the kernel writes within the vector, whose length it is told.
        unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, 1) };
        let mut closed = Vec::new();
        for (index, watch) in watched.iter().enumerate().filter(|(_, watch)| watch.revents != 0) {
            debug_assert_eq!(watch.fd, peers[index].fd());
            match peers[index].read(&mut buffer) {
                None => closed.push(index),
                Some(n) if n > 0 => {
                    if habits.leak > 0 {
                        std::mem::forget(vec![1_u8; habits.leak]);
                    }
                    if habits.work > 0 {
                        planted(habits.work);
                    }
                    peers[index].write(HELLO);
                    if !habits.silent {
                        answered.lock().expect("not poisoned").push(now());
                    }
                }
                Some(_) => {}
            }
        }
        for index in closed.into_iter().rev() {
            peers.swap_remove(index);
        }
    }
}

pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in plain data.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Starts a server that answers well until `good` requests of all connections were answered, and with status 500 from
/// then on.
pub fn fails_after(good: u64) -> SocketAddr {
    let count = AtomicU64::new(0);
    serve(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while request(&mut stream) {
            let bytes = if count.fetch_add(1, Ordering::Relaxed) < good {
                HELLO
            } else {
                &b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops"[..]
            };
            if stream.write_all(bytes).is_err() {
                break;
            }
        }
    })
}
