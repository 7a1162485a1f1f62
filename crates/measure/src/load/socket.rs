//! Non-blocking stream sockets: connect, send, receive.

use super::target::Address;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A socket that is connecting.
pub(crate) struct Connecting {
    pub(crate) socket: OwnedFd,
    /// Whether the kernel notes when bytes arrive. It does so for TCP, and not for Unix sockets.
    pub(crate) notes_arrivals: bool,
}

/// Starts to connect a non-blocking socket. When the socket becomes writable, [`outcome`] returns the result.
///
/// # Errors
///
/// Fails with the kernel's immediate error: refused, no route, no descriptors left, or `WouldBlock` if the queue of a
/// Unix socket is full, so that the caller must try again later.
pub(crate) fn connect(address: &Address) -> io::Result<Connecting> {
    let (domain, name) = match address {
        Address::Tcp(to) => (Domain::for_address(*to), SockAddr::from(*to)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None)?;
    if domain != Domain::UNIX {
        // Without TCP_NODELAY, a request in two segments would wait for the delayed acknowledgement of the first.
        let _ = socket.set_tcp_nodelay(true);
    }
    match socket.connect(&name) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => {
            let notes_arrivals = domain != Domain::UNIX && note_arrivals(&socket);
            Ok(Connecting { socket: socket.into(), notes_arrivals })
        }
    }
}

/// Checks whether a server accepts connections at an address.
///
/// # Errors
///
/// Fails with the reason if it does not. A port on which nothing listens may be the one that the kernel gives the
/// client, which is then connected to itself; this counts as refused.
pub(crate) fn accepts(address: &Address, patience: Duration) -> io::Result<()> {
    match address {
        Address::Unix(path) => UnixStream::connect(path).map(drop),
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, patience)?;
            match stream.local_addr()? == stream.peer_addr()? {
                true => Err(io::ErrorKind::ConnectionRefused.into()),
                false => Ok(()),
            }
        }
    }
}

/// The result of an attempt to connect that has finished.
pub(crate) fn outcome(socket: &OwnedFd) -> io::Result<()> {
    SockRef::from(socket).take_error()?.map_or(Ok(()), Err)
}

/// Sends as many bytes as the kernel accepts, and returns their number. It raises no signal if the other end is gone.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send_with_flags(bytes, libc::MSG_NOSIGNAL)
}

/// Asks the kernel to note when bytes arrive. False where it does not.
fn note_arrivals(socket: &Socket) -> bool {
    let on: libc::c_int = 1;
    // SAFETY: plain system call; the kernel copies the number.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    result == 0
}

/// Receives the available bytes; 0 means the end of the stream.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    (&*SockRef::from(socket)).read(buffer)
}

/// The same, with the time at which the last of the bytes arrived: nanoseconds since 1970 on the kernel's clock. There
/// is none where the kernel did not note it.
pub(crate) fn receive_with_arrival(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    // Room for one message with a time, aligned as the kernel writes it.
    let mut control = [0_u64; 8];
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the message consists of plain data and points to buffers that outlive the call, with their lengths. The
    // kernel fills in the control messages, which are read with the macros made for that, and only within the length
    // that it returns.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut bytes;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        let is_time = !first.is_null()
            && (*first).cmsg_level == libc::SOL_SOCKET
            && (*first).cmsg_type == libc::SCM_TIMESTAMPNS;
        let arrived = is_time.then(|| {
            let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(first).cast());
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        });
        Ok((length as usize, arrived))
    }
}

/// Whether the other end has not acknowledged all that was written to a TCP socket, or has answered it with a reset.
/// What the kernel still holds back, because the window is full for example, is not acknowledged either.
pub(crate) fn lacks_acknowledgement(socket: &OwnedFd) -> bool {
    const CLOSED: u8 = 7;
    // SAFETY: plain data, which the kernel fills in up to the given length; and a number, which it writes.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut length = size_of_val(&info) as libc::socklen_t;
        let to = (&raw mut info).cast();
        let mut unacknowledged: libc::c_int = 0;
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) == 0
            && (info.tcpi_state == CLOSED
                || libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut unacknowledged) == 0
                    && unacknowledged > 0)
    }
}

/// Closes a socket with a reset. Thousands of connections that are closed in the usual way would keep their ports for
/// a minute and prevent the next run.
pub(crate) fn abandon(socket: OwnedFd) {
    // If the kernel refuses this option, the socket is closed in the usual way.
    let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// Raises this process's limit of open descriptors to at least `wanted` if that is permitted.
///
/// # Errors
/// Fails with the limit if it remains lower than `wanted`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn bytes_that_the_kernel_holds_back_are_not_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        client.set_nonblocking(true).expect("a mode");
        let client = OwnedFd::from(client);
        assert!(!lacks_acknowledgement(&client), "nothing was sent");

        // The server reads nothing, so its window is full at last, and no segment is on its way.
        while send(&client, &[0; 65_536]).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(lacks_acknowledgement(&client), "the queue is full");

        // What the server has read is acknowledged.
        SockRef::from(&client).shutdown(std::net::Shutdown::Write).expect("an end");
        io::copy(&mut server, &mut io::sink()).expect("all of it");
        let acknowledged = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            !lacks_acknowledgement(&client)
        });
        assert!(acknowledged, "the server has read all");
    }
}
