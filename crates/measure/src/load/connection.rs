//! One connection of the generator: its socket, its TLS layer, and the requests in flight on it.

use super::clock::{Interest, Poller};
use super::exchange::Exchange;
use super::failure::{Failed, Failure};
use super::http1;
use super::http2::Http2;
use super::socket::{self, Connecting};
use super::tls::Tls;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// There is no socket; a new attempt may be scheduled.
    Down,
    /// The kernel is connecting.
    Connecting,
    /// The TLS handshake is under way.
    Handshaking,
    /// Requests can be sent.
    Up,
}

pub(crate) struct Connection {
    pub(crate) link: ConnectionState,
    /// The number of sockets that this connection has had; it is part of the token, so that events of earlier ones
    /// are ignored.
    pub(crate) generation: u32,
    /// When the current attempt to connect started, in nanoseconds.
    pub(crate) since: u64,
    /// The number of failed attempts since the last success.
    pub(crate) failed_attempts: u32,
    /// When the connection last became free, in nanoseconds; a closed loop counts from then.
    pub(crate) freed: Option<u64>,
    /// Whether the connection is in the queue of free connections.
    pub(crate) queued: bool,
    /// Whether an answer has come on the current socket.
    pub(crate) heard: bool,
    /// The numbers of answers and of time-outs in this turn, over all sockets.
    pub(crate) outcomes: (u64, u64),
    pub(crate) exchange: Option<Exchange>,
    pub(crate) reader: http1::ResponseReader,
    pub(crate) tls: Option<Box<Tls>>,
    /// The state of HTTP/2; if it is set, `exchange` and `reader` are unused.
    pub(crate) http2: Option<Box<Http2>>,
    /// Why the connection fails, if that is known.
    pub(crate) cause: Option<Failed>,
    /// Whether frames are held back until all requests that are due now are encoded, so that they are sent together.
    pub(crate) gathers: bool,
    socket: Option<OwnedFd>,
    /// Whether the kernel notes when bytes arrive on the socket.
    notes_arrivals: bool,
    /// Whether the kernel refused to send on the socket.
    refused: bool,
    /// Whether it was found before that the server is about to close the socket.
    pub(crate) closing: bool,
    interest: Interest,
    /// Bytes that remain to be sent.
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
            link: ConnectionState::Down,
            generation: 0,
            since: 0,
            failed_attempts: 0,
            freed: None,
            queued: false,
            heard: false,
            outcomes: (0, 0),
            exchange: None,
            reader: http1::ResponseReader::default(),
            tls: None,
            http2: None,
            cause: None,
            gathers: false,
            socket: None,
            notes_arrivals: false,
            refused: false,
            closing: false,
            interest: Interest::Read,
            outgoing: Outgoing::default(),
        }
    }

    /// Registers a socket that is connecting.
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
        self.link = ConnectionState::Connecting;
        self.since = now;
        Ok(())
    }

    /// The result of the kernel's attempt to connect.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.socket.as_ref().map_or(Err(io::ErrorKind::NotConnected.into()), socket::outcome)
    }

    /// Closes the socket. If requests are in flight, the other end receives a reset.
    pub(crate) fn close(&mut self) {
        let busy = self.exchanges().next().is_some();
        if let Some(socket) = self.socket.take()
            && busy
        {
            socket::abandon(socket);
        }
        self.generation = self.generation.wrapping_add(1);
        self.link = ConnectionState::Down;
        (self.heard, self.refused, self.closing) = (false, false, false);
        self.exchange = None;
        self.tls = None;
        self.http2 = None;
        self.cause = None;
        self.reader.reset();
        self.outgoing.bytes.clear();
        self.outgoing.at = 0;
    }

    /// The token in events of the current socket.
    pub(crate) fn token(&self, index: usize) -> u64 {
        u64::from(self.generation) << 32 | index as u64
    }

    /// Whether another request can be sent now.
    pub(crate) fn is_free(&self) -> bool {
        self.link == ConnectionState::Up
            && self.exchange.is_none()
            && self.tls.as_ref().is_none_or(|tls| !tls.has_ended)
            && self.http2.as_ref().is_none_or(|http2| http2.is_free())
    }

    /// The requests in flight.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.exchange.into_iter().chain(self.http2.iter().flat_map(|http2| http2.exchanges()))
    }

    /// The class with which a request in flight fails if the connection fails with this class: the answers of some
    /// streams may have begun.
    pub(crate) fn class_of(&self, exchange: &Exchange, class: Failure) -> Failure {
        match &self.http2 {
            Some(http2) if class == Failure::ClosedEarly => http2.at_end(exchange),
            _ => class,
        }
    }

    /// Sends the waiting frames of HTTP/2, unless they are held back.
    pub(crate) fn send_frames(&mut self, index: usize, poller: &Poller) -> Result<(), Failure> {
        let Some(http2) = self.http2.as_mut().filter(|_| !self.gathers) else { return Ok(()) };
        let bytes = http2.take_outgoing();
        let sent = if bytes.is_empty() { Ok(()) } else { self.send(&bytes, index, poller) };
        if let Some(http2) = &mut self.http2 {
            http2.give_back(bytes);
        }
        sent
    }

    /// Whether a request that fails with this class can have been sent while the server was closing the connection: a
    /// server may close a connection after any answer, and does not read requests that are on their way at that moment.
    pub(crate) fn may_have_crossed(&self, class: Failure) -> bool {
        self.heard
            && self.http2.is_none()
            && matches!(class, Failure::ClosedEarly | Failure::Reset)
            && !self.reader.has_begun()
    }

    /// Whether the request in flight may have been on its way when TLS announced the end. The way in which the server
    /// then closes the connection shows whether it read the request.
    pub(crate) fn awaits_close(&self) -> bool {
        self.exchange.is_some()
            && self.tls.as_ref().is_some_and(|tls| tls.has_ended)
            && self.may_have_crossed(Failure::ClosedEarly)
    }

    /// Whether the program of the server has probably not read the request that fails with this class, as far as the kernel
    /// knows: the connection was reset, which a kernel does if there are bytes that nobody has read, or the request
    /// was sent to a connection that was closed already.
    pub(crate) fn was_unread(&self, class: Failure) -> bool {
        class == Failure::Reset
            || self.refused
            || self.socket.as_ref().is_some_and(socket::lacks_acknowledgement)
    }

    /// The cause of failure of a request in flight that is given up, as far as it is known.
    pub(crate) fn cause_of_time_out(&self, exchange: &Exchange) -> Option<Failed> {
        let lacks = match &self.http2 {
            None => self.reader.lacks(),
            Some(http2) => (http2.at_end(exchange) == Failure::HalfResponse).then_some(http1::BEGUN),
        };
        lacks.map(|lacks| Failed::Cause(Failure::TimedOut, lacks.into()))
    }

    /// Whether the socket has accepted all bytes passed to [`Connection::send`].
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

    /// Sends the application's bytes, through TLS if it is used. Bytes that the socket does not accept are kept.
    pub(crate) fn send(&mut self, bytes: &[u8], index: usize, poller: &Poller) -> Result<(), Failure> {
        if let Some(tls) = &mut self.tls {
            let sealed = tls.seal(bytes)?;
            self.send_raw(&sealed, index, poller)
        } else {
            self.send_raw(bytes, index, poller)
        }
    }

    /// Sends TLS records that the TLS layer itself produced.
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
            Err(error) => {
                self.refused = true;
                return Err(broken(&error));
            }
        };
        if sent < bytes.len() {
            self.outgoing.bytes.clear();
            self.outgoing.bytes.extend_from_slice(&bytes[sent..]);
            self.outgoing.at = 0;
            self.watch(Interest::ReadWrite, index, poller);
        }
        Ok(())
    }

    /// Continues sending when the socket has room.
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
        // The error occurs when writing to a connection that the other end has closed without answering.
        io::ErrorKind::BrokenPipe => Failure::ClosedEarly,
        _ => Failure::Reset,
    }
}

/// The class of an error while connecting.
pub(crate) fn unconnected(error: &io::Error) -> Failure {
    match error.kind() {
        // A Unix socket whose file is missing corresponds to a port without a listener.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::Refused,
        io::ErrorKind::ConnectionReset => Failure::Reset,
        _ => Failure::Unconnected,
    }
}
