//! Reads the monotonic clock, and waits on sockets with time-outs in nanoseconds.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The monotonic clock in nanoseconds. This clock always exists.
#[inline]
pub(crate) fn now() -> u64 {
    crate::clock::read(libc::CLOCK_MONOTONIC).unwrap_or_default()
}

/// The events that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// There are bytes to read, or the stream has ended.
    Read,
    /// There are bytes to read, the stream has ended, or there is room to write.
    ReadWrite,
}

impl Interest {
    fn flags(self) -> u32 {
        (match self {
            Interest::Read => libc::EPOLLIN,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT,
        }) as u32
    }
}

/// One event of a watched descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyEvent {
    /// The token with which the descriptor was registered.
    pub(crate) token: u64,
    /// There may be something to read: bytes, the end of the stream or an error.
    pub(crate) readable: bool,
    /// There may be room to write.
    pub(crate) writable: bool,
}

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    filled: usize,
    coarse: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        // SAFETY: plain system call; the descriptor it returns is ours alone.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Poller {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 1024],
            filled: 0,
            coarse: false,
        })
    }

    pub(crate) fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    pub(crate) fn change(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.flags(), u64: token };
        // SAFETY: plain system call; the kernel copies the event.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Polls for events up to `times` times without waiting, and returns the number of events.
    pub(crate) fn poll_without_waiting(&mut self, times: u32) -> io::Result<usize> {
        for _ in 0..times {
            let found = self.wait(0)?;
            if found > 0 {
                return Ok(found);
            }
        }
        Ok(0)
    }

    /// Waits at most `timeout` nanoseconds for events, and returns their number. If a signal interrupts the wait, the
    /// number is 0; so it is if the first call shows that the kernel lacks the precise system call.
    ///
    /// Kernels before 5.11 support only whole milliseconds. The wait is then rounded down: the caller checks the clock
    /// and waits again, so it polls during the last fraction instead of being late.
    #[inline]
    pub(crate) fn wait(&mut self, timeout: u64) -> io::Result<usize> {
        let room = self.events.len() as libc::c_int;
        let result = if self.coarse {
            // SAFETY: the kernel writes at most `room` events into the buffer.
            unsafe {
                libc::epoll_wait(
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    room,
                    (timeout / 1_000_000).min(60_000) as libc::c_int,
                )
            }
        } else {
            let limit = libc::timespec {
                tv_sec: (timeout / 1_000_000_000) as libc::time_t,
                tv_nsec: (timeout % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: as above; the time limit outlives the call and no signal mask is passed. The system call is made
            // by number because older C libraries lack a wrapper.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    room,
                    &raw const limit,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                ) as libc::c_int
            }
        };
        self.filled = result.max(0) as usize;
        if result >= 0 {
            return Ok(self.filled);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            Some(libc::ENOSYS | libc::EPERM) if !self.coarse => {
                self.coarse = true;
                Ok(0)
            }
            _ => Err(error),
        }
    }

    /// The event at this index of the last wait.
    pub(crate) fn event(&self, index: usize) -> ReadyEvent {
        let event = self.events[index.min(self.filled.saturating_sub(1))];
        let flags = event.events;
        let any = |mask: libc::c_int| flags & mask as u32 != 0;
        ReadyEvent {
            token: event.u64,
            readable: any(libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP),
            writable: any(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn waits_are_finer_than_a_millisecond() {
        let mut poller = Poller::new().expect("epoll");
        let shortest = (0..50)
            .map(|_| {
                let began = now();
                assert_eq!(poller.wait(200_000).expect("wait"), 0);
                now() - began
            })
            .min()
            .expect("some");
        assert!((200_000..1_000_000).contains(&shortest) || poller.coarse, "{shortest} ns");
    }

    #[test]
    fn a_written_byte_wakes_the_reader() {
        let (mut left, right) = UnixStream::pair().expect("pair");
        let mut poller = Poller::new().expect("epoll");
        poller.add(right.as_raw_fd(), 7, Interest::Read).expect("add");
        assert_eq!(poller.wait(0).expect("wait"), 0);
        assert_eq!(poller.poll_without_waiting(3).expect("look"), 0);
        left.write_all(b"x").expect("write");
        assert_eq!(poller.wait(1_000_000_000).expect("wait"), 1);
        assert_eq!((poller.event(0).token, poller.event(0).readable), (7, true));
        assert_eq!(poller.poll_without_waiting(3).expect("look"), 1);
    }
}
