//! The messages between Scruple and its launcher: lengths, a JSON head, and zero-terminated byte strings.

use crate::launcher::{Launch, LaunchAnswer, LaunchOptions};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// A launch as the launcher receives it. `strings` are zero-terminated: path, folder, arguments, variables.
#[derive(Debug)]
pub(super) struct LaunchRequest {
    pub(super) options: LaunchOptions,
    pub(super) strings: Vec<u8>,
    pub(super) arguments: usize,
    pub(super) stdio: [OwnedFd; 3],
}

#[derive(Serialize, Deserialize)]
struct LaunchHeader {
    options: LaunchOptions,
    arguments: usize,
    strings: usize,
}

/// Encodes path, folder, arguments and `NAME=value` pairs, in this order, each ended by a zero byte.
fn strings_of(launch: &Launch) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8192);
    let mut push = |parts: &[&OsStr]| {
        for part in parts {
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.push(0);
    };
    push(&[launch.path.as_os_str()]);
    push(&[launch.folder.as_os_str()]);
    for word in &launch.argv {
        push(&[word]);
    }
    for (name, value) in &launch.env {
        push(&[name, OsStr::new("="), value]);
    }
    let expected = 2 + launch.argv.len() + launch.env.len();
    if bytes.iter().filter(|byte| **byte == 0).count() != expected {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an argument or a variable contains a zero byte",
        ));
    }
    Ok(bytes)
}

pub(super) fn send_launch(socket: BorrowedFd<'_>, launch: &Launch) -> io::Result<()> {
    let strings = strings_of(launch)?;
    let head = LaunchHeader {
        options: launch.options.clone(),
        arguments: launch.argv.len(),
        strings: strings.len(),
    };
    let head = serde_json::to_vec(&head)?;
    send_descriptors(socket, &launch.stdio, head.len())?;
    send_all(socket, &head)?;
    send_all(socket, &strings)
}

/// Waits for a request; `None` if the other end has closed the socket.
pub(super) fn receive_request(socket: BorrowedFd<'_>) -> io::Result<Option<LaunchRequest>> {
    let Some((stdio, head_length)) = receive_descriptors(socket)? else { return Ok(None) };
    let head: LaunchHeader = from_json(receive_exactly(socket, head_length)?)?;
    let strings = receive_exactly(socket, head.strings)?;
    Ok(Some(LaunchRequest { options: head.options, strings, arguments: head.arguments, stdio }))
}

pub(super) fn send_answer(socket: BorrowedFd<'_>, answer: &LaunchAnswer) -> io::Result<()> {
    let body = serde_json::to_vec(answer)?;
    send_all(socket, &(body.len() as u64).to_le_bytes())?;
    send_all(socket, &body)
}

pub(super) fn receive_answer(socket: BorrowedFd<'_>) -> io::Result<LaunchAnswer> {
    let mut length = [0; 8];
    length.copy_from_slice(&receive_exactly(socket, 8)?);
    from_json(receive_exactly(socket, u64::from_le_bytes(length) as usize)?)
}

fn from_json<T: serde::de::DeserializeOwned>(bytes: Vec<u8>) -> io::Result<T> {
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(serde_json::from_str(&text)?)
}

/// Whether data arrive on the socket within this many milliseconds.
pub(super) fn readable(socket: BorrowedFd<'_>, milliseconds: i32) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd is passed with the count 1.
    match unsafe { libc::poll(&mut poll, 1, milliseconds) } {
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(false),
        -1 => Err(io::Error::last_os_error()),
        count => Ok(count > 0),
    }
}

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: pointer and length describe `bytes`.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match sent {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            sent => bytes = &bytes[sent as usize..],
        }
    }
    Ok(())
}

fn receive_exactly(socket: BorrowedFd<'_>, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        // SAFETY: the pointer and the remaining length stay within `bytes`.
        let received = unsafe {
            libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().add(filled).cast(), length - filled, 0)
        };
        match received {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            received => filled += received as usize,
        }
    }
    Ok(bytes)
}

/// Room for one control message with three descriptors, aligned as the kernel requires.
#[repr(align(8))]
struct Control([u8; 64]);

fn message<'a>(head: &'a mut [u8; 8], vector: &'a mut libc::iovec, control: &'a mut Control) -> libc::msghdr {
    *vector = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
    // SAFETY: an all-zero msghdr is valid; its pointers are set just below to living objects.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure computation of a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(3 * size_of::<RawFd>() as u32) } as _;
    message
}

fn send_descriptors(socket: BorrowedFd<'_>, stdio: &[OwnedFd; 3], head_length: usize) -> io::Result<()> {
    let mut head = (head_length as u64).to_le_bytes();
    let mut vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut control = Control([0; 64]);
    let message = message(&mut head, &mut vector, &mut control);
    let descriptors = [stdio[0].as_raw_fd(), stdio[1].as_raw_fd(), stdio[2].as_raw_fd()];
    // SAFETY: the control buffer has room for one header and three descriptors, and is aligned.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&descriptors) as u32) as _;
        std::ptr::copy_nonoverlapping(
            descriptors.as_ptr().cast::<u8>(),
            libc::CMSG_DATA(header),
            size_of_val(&descriptors),
        );
        if libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn receive_descriptors(socket: BorrowedFd<'_>) -> io::Result<Option<([OwnedFd; 3], usize)>> {
    let mut head = [0; 8];
    let mut vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut control = Control([0; 64]);
    let mut message = message(&mut head, &mut vector, &mut control);
    loop {
        // SAFETY: every pointer in `message` refers to an object that lives beyond the call.
        match unsafe {
            libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL)
        } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            0 => return Ok(None),
            _ => break,
        }
    }
    let mut descriptors = [-1; 3];
    // SAFETY: the header is checked to carry three descriptors before they are read.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null()
            || (*header).cmsg_type != libc::SCM_RIGHTS
            || (*header).cmsg_len as u32 != libc::CMSG_LEN(size_of_val(&descriptors) as u32)
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a launch came without descriptors"));
        }
        std::ptr::copy_nonoverlapping(
            libc::CMSG_DATA(header),
            descriptors.as_mut_ptr().cast::<u8>(),
            size_of_val(&descriptors),
        );
    }
    // SAFETY: the kernel just gave us these descriptors, and nobody else owns them.
    let stdio = descriptors.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(Some((stdio, u64::from_le_bytes(head) as usize)))
}
