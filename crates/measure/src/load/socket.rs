//! Non-blocking stream sockets: connect, send, receive.

use super::target::Address;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Starts to connect a non-blocking socket; when it becomes writable, [`outcome`] tells how that went.
///
/// # Errors
/// What the kernel says at once: refused, no route, no descriptors left, or (`WouldBlock`) a full queue at a Unix
/// socket, which only trying again later resolves.
pub(crate) fn connect(address: &Address) -> io::Result<OwnedFd> {
    match address {
        Address::Tcp(SocketAddr::V4(to)) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: to.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
                sin_zero: [0; 8],
            };
            connect_to(libc::AF_INET, &name, size_of::<libc::sockaddr_in>())
        }
        Address::Tcp(SocketAddr::V6(to)) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: to.port().to_be(),
                sin6_flowinfo: to.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: to.ip().octets() },
                sin6_scope_id: to.scope_id(),
            };
            connect_to(libc::AF_INET6, &name, size_of::<libc::sockaddr_in6>())
        }
        Address::Unix(path) => {
            // SAFETY: an all-zero address is valid.
            let mut name: libc::sockaddr_un = unsafe { std::mem::zeroed() };
            name.sun_family = libc::AF_UNIX as libc::sa_family_t;
            let bytes = path.as_os_str().as_bytes();
            if bytes.len() >= name.sun_path.len() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("the path of the socket is longer than {} bytes", name.sun_path.len() - 1),
                ));
            }
            for (to, from) in name.sun_path.iter_mut().zip(bytes) {
                *to = *from as libc::c_char;
            }
            connect_to(libc::AF_UNIX, &name, size_of::<libc::sockaddr_un>())
        }
    }
}

fn connect_to<T>(family: libc::c_int, name: &T, length: usize) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: plain system calls; `name` is a socket address of `length` bytes that outlives them, and the descriptor
    // is owned as soon as it exists.
    unsafe {
        let fd = libc::socket(family, kind, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        if family != libc::AF_UNIX {
            let on: libc::c_int = 1;
            // Without this a request in two segments would wait for the delayed acknowledgement of the first.
            libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const on).cast(), 4);
        }
        if libc::connect(fd, std::ptr::from_ref(name).cast(), length as libc::socklen_t) != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINPROGRESS) {
                return Err(error);
            }
        }
        Ok(socket)
    }
}

/// How a connect that was under way has ended.
pub(crate) fn outcome(socket: &OwnedFd) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes one integer.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &mut length,
        )
    };
    match (result, error) {
        (0, 0) => Ok(()),
        (0, error) => Err(io::Error::from_raw_os_error(error)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends what fits, without raising a signal when the other end is gone.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads `bytes.len()` bytes of a live slice.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Receives what is there; 0 is the end of the stream.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into a live slice.
    let received = unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
    };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok(received as usize) }
}

/// Closes a socket so that the other end sees a reset: thousands of closed connections would otherwise keep their
/// ports waiting for a minute and starve the next run.
pub(crate) fn abandon(socket: OwnedFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the kernel reads one `linger`.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}

/// Raises this process's limit of open descriptors to at least `wanted` if it may.
///
/// # Errors
/// The limit that holds, when it is lower than `wanted`.
pub fn allow_descriptors(wanted: u64) -> Result<(), u64> {
    // SAFETY: plain data, filled in and read by the kernel.
    unsafe {
        let mut limit: libc::rlimit = MaybeUninit::zeroed().assume_init();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur >= wanted {
            return Ok(());
        }
        let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
            return Ok(());
        }
        let within = libc::rlimit { rlim_cur: limit.rlim_max.min(wanted), rlim_max: limit.rlim_max };
        libc::setrlimit(libc::RLIMIT_NOFILE, &within);
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur >= wanted { Ok(()) } else { Err(limit.rlim_cur) }
    }
}
