//! Non-blocking stream sockets: connect, send, receive.

use super::target::Address;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Starts to connect a non-blocking socket; when it becomes writable, [`outcome`] gives the result.
///
/// # Errors
/// The kernel's immediate error: refused, no route, no descriptors left, or (`WouldBlock`) a full queue at a Unix
/// socket, for which only trying again later helps.
pub(crate) fn connect(address: &Address) -> io::Result<OwnedFd> {
    let (domain, name) = match address {
        Address::Tcp(to) => (Domain::for_address(*to), SockAddr::from(*to)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None)?;
    if domain != Domain::UNIX {
        // Without this a request in two segments would wait for the delayed acknowledgement of the first.
        let _ = socket.set_tcp_nodelay(true);
    }
    match socket.connect(&name) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// The result of a connect that was under way.
pub(crate) fn outcome(socket: &OwnedFd) -> io::Result<()> {
    SockRef::from(socket).take_error()?.map_or(Ok(()), Err)
}

/// Sends what fits, without raising a signal when the other end is gone.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send_with_flags(bytes, libc::MSG_NOSIGNAL)
}

/// Receives what is available; 0 is the end of the stream.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    (&*SockRef::from(socket)).read(buffer)
}

/// Closes a socket so that the other end sees a reset: thousands of closed connections would otherwise keep their ports
/// for a minute and prevent the next run.
pub(crate) fn abandon(socket: OwnedFd) {
    // Where this is refused, the socket is closed in the usual way.
    let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// Raises this process's limit of open descriptors to at least `wanted` if it may.
///
/// # Errors
/// The limit, when it is lower than `wanted`.
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
