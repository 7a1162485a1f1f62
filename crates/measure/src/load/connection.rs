//! One connection of the generator: its socket, the layer of encryption, and the request under way on it.

use super::clock::{Interest, Poller};
use super::failure::Failure;
use super::http1;
use super::http2::Http2;
use super::record::Exchange;
use super::socket::{self, Connecting};
use super::tls::Tls;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// There is none; a retry is due at some time.
    Down,
    /// The kernel is connecting.
    Connecting,
    /// The TLS handshake is under way.
    Handshaking,
    /// Requests can be sent.
    Up,
}

pub(crate) struct Connection {
    pub(crate) link: Link,
    /// Counts the sockets that this connection has had, to recognise events of earlier ones.
    pub(crate) generation: u32,
    /// When the current attempt to connect started.
    pub(crate) since: u64,
    /// Attempts that have failed since the last success.
    pub(crate) failed_attempts: u32,
    /// When it last became free, for a closed loop.
    pub(crate) freed: Option<u64>,
    /// Whether it stands in the queue of free connections.
    pub(crate) queued: bool,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) reader: http1::Reader,
    pub(crate) tls: Option<Box<Tls>>,
    /// The streams of HTTP/2; `exchange` and `reader` are then unused.
    pub(crate) http2: Option<Box<Http2>>,
    /// Whether frames wait until all that are to be sent now are there.
    pub(crate) gathers: bool,
    socket: Option<OwnedFd>,
    /// Whether the kernel notes when bytes arrive on the socket.
    notes_arrivals: bool,
    interest: Interest,
    /// Bytes that are still to be sent.
    outgoing: Outgoing,
}

/// The rest of a message that the socket did not accept at once.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    at: usize,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            link: Link::Down,
            generation: 0,
            since: 0,
            failed_attempts: 0,
            freed: None,
            queued: false,
            exchange: None,
            reader: http1::Reader::default(),
            tls: None,
            http2: None,
            gathers: false,
            socket: None,
            notes_arrivals: false,
            interest: Interest::Read,
            outgoing: Outgoing::default(),
        }
    }

    /// Watches a socket that is connecting.
    pub(crate) fn begin(
        &mut self,
        connecting: Connecting,
        index: usize,
        poller: &Poller,
        now: u64,
    ) -> io::Result<()> {
        let Connecting { socket, notes_arrivals } = connecting;
        self.notes_arrivals = notes_arrivals;
        self.generation = self.generation.wrapping_add(1);
        self.interest = Interest::ReadWrite;
        poller.add(socket.as_raw_fd(), self.token(index), self.interest)?;
        self.socket = Some(socket);
        self.link = Link::Connecting;
        self.since = now;
        Ok(())
    }

    /// The result of the kernel's attempt.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.socket.as_ref().map_or(Err(io::ErrorKind::NotConnected.into()), socket::outcome)
    }

    /// Closes the socket. With a request in flight the other end sees a reset.
    pub(crate) fn close(&mut self) {
        let busy = self.exchanges().next().is_some();
        if let Some(socket) = self.socket.take()
            && busy
        {
            socket::abandon(socket);
        }
        self.generation = self.generation.wrapping_add(1);
        self.link = Link::Down;
        self.exchange = None;
        self.tls = None;
        self.http2 = None;
        self.reader.reset();
        self.outgoing.bytes.clear();
        self.outgoing.at = 0;
    }

    /// The token of events of the current socket.
    pub(crate) fn token(&self, index: usize) -> u64 {
        u64::from(self.generation) << 32 | index as u64
    }

    /// Whether another request can be sent now.
    pub(crate) fn is_free(&self) -> bool {
        self.link == Link::Up
            && self.exchange.is_none()
            && self.http2.as_ref().is_none_or(|http2| http2.is_free())
    }

    /// The requests in flight.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.exchange.into_iter().chain(self.http2.iter().flat_map(|http2| http2.exchanges()))
    }

    /// Sends control frames of HTTP/2.
    pub(crate) fn send_frames(&mut self, index: usize, poller: &Poller) -> Result<(), Failure> {
        let Some(http2) = self.http2.as_mut().filter(|_| !self.gathers) else { return Ok(()) };
        let bytes = http2.take_outgoing();
        let sent = if bytes.is_empty() { Ok(()) } else { self.send(&bytes, index, poller) };
        if let Some(http2) = &mut self.http2 {
            http2.give_back(bytes);
        }
        sent
    }

    /// Whether everything handed to [`Connection::send`] has left.
    pub(crate) fn all_sent(&self) -> bool {
        self.outgoing.at == self.outgoing.bytes.len()
    }

    /// Receives what is available, and when the last of it arrived, as far as the kernel has noted that (nanoseconds
    /// since 1970).
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        match &self.socket {
            None => Ok((0, None)),
            Some(socket) if self.notes_arrivals => socket::receive_with_arrival(socket, buffer),
            Some(socket) => Ok((socket::receive(socket, buffer)?, None)),
        }
    }

    /// Sends bytes of the application, through TLS where it is used; what the socket does not accept is kept.
    pub(crate) fn send(&mut self, bytes: &[u8], index: usize, poller: &Poller) -> Result<(), Failure> {
        if let Some(tls) = &mut self.tls {
            let sealed = tls.seal(bytes)?;
            self.send_raw(&sealed, index, poller)
        } else {
            self.send_raw(bytes, index, poller)
        }
    }

    /// Sends records of TLS itself.
    pub(crate) fn send_handshake(&mut self, index: usize, poller: &Poller) -> Result<(), Failure> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let bytes = tls.pending()?;
        if bytes.is_empty() { Ok(()) } else { self.send_raw(&bytes, index, poller) }
    }

    fn send_raw(&mut self, bytes: &[u8], index: usize, poller: &Poller) -> Result<(), Failure> {
        if !self.all_sent() {
            self.outgoing.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        let Some(socket) = &self.socket else { return Err(Failure::ClosedEarly) };
        let sent = match socket::send(socket, bytes) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(broken(&error)),
        };
        if sent < bytes.len() {
            self.outgoing.bytes.clear();
            self.outgoing.bytes.extend_from_slice(&bytes[sent..]);
            self.outgoing.at = 0;
            self.watch(Interest::ReadWrite, index, poller);
        }
        Ok(())
    }

    /// Continues sending when there is room.
    pub(crate) fn send_more(&mut self, index: usize, poller: &Poller) -> Result<(), Failure> {
        while !self.all_sent() {
            let Some(socket) = &self.socket else { return Err(Failure::ClosedEarly) };
            match socket::send(socket, &self.outgoing.bytes[self.outgoing.at..]) {
                Ok(sent) => self.outgoing.at += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(broken(&error)),
            }
        }
        self.watch(Interest::Read, index, poller);
        Ok(())
    }

    fn watch(&mut self, interest: Interest, index: usize, poller: &Poller) {
        if self.interest != interest
            && let Some(socket) = &self.socket
            && poller.change(socket.as_raw_fd(), self.token(index), interest).is_ok()
        {
            self.interest = interest;
        }
    }
}

/// The class of an error of an established connection.
pub(crate) fn broken(error: &io::Error) -> Failure {
    match error.kind() {
        // Writing to a connection that the other end has closed: it closed without answering.
        io::ErrorKind::BrokenPipe => Failure::ClosedEarly,
        _ => Failure::Reset,
    }
}

/// The class of an error while connecting.
pub(crate) fn unconnected(error: &io::Error) -> Failure {
    match error.kind() {
        // A Unix socket whose file is gone corresponds to a port on which nothing listens.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::Refused,
        io::ErrorKind::ConnectionReset => Failure::Reset,
        _ => Failure::Unconnected,
    }
}
