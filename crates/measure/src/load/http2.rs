//! HTTP/2 without a runtime: h2 implements the protocol; it is fed from memory and polled by hand on input and output.

use super::failure::Failure;
use super::record::Exchange;
use super::request::Failed;
use super::target::Target;
use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::{HeaderMap, Method, Request, Uri, Version};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A request in the form that h2 takes.
pub(crate) struct Encoded {
    head: Request<()>,
    body: Bytes,
    keep: bool,
}

/// One connection.
pub(crate) struct Http2 {
    pipe: Pipe,
    sender: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    streams: Vec<Stream>,
    most: usize,
    closing: bool,
    served: bool,
}

/// An exchange that has ended.
pub(crate) struct Done {
    pub(crate) exchange: Exchange,
    pub(crate) status: u16,
    /// With this many bytes of content, or failed in this way.
    pub(crate) outcome: Result<u64, Failure>,
    /// The head and the content, where they are kept.
    pub(crate) kept: (HeaderMap, Vec<u8>),
}

struct Stream {
    exchange: Exchange,
    state: State,
    status: u16,
    headers: HeaderMap,
    length: u64,
    kept: Vec<u8>,
    keep: bool,
}

enum State {
    Waiting(ResponseFuture),
    Reading(RecvStream),
}

/// How much content is kept for a check; the rest is only counted.
const KEPT: usize = 1 << 20;

/// The receive window for content in flight, large enough that we never delay the server.
const WINDOW: u32 = 16 << 20;

/// Prepares a request.
pub(crate) fn encode(request: &super::request::Request, target: &Target) -> Result<Encoded, String> {
    let scheme = if target.tls.is_some() { "https" } else { "http" };
    let text = |what: &str, error: String| {
        format!("{what} of request ‘{}’ does not suit HTTP/2: {error}", request.name)
    };
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(target.host.as_str())
        .path_and_query(request.path.as_str())
        .build()
        .map_err(|error| text("the path", error.to_string()))?;
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|error| text("the method", error.to_string()))?;
    let mut builder = Request::builder().method(method).uri(uri).version(Version::HTTP_2);
    for (name, value) in &request.headers {
        // These headers of HTTP/1.1 are forbidden here.
        let about_connection = ["host", "connection", "keep-alive", "transfer-encoding", "upgrade"];
        if !about_connection.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden)) {
            builder = builder.header(name.as_str(), value.as_str());
        }
    }
    if !request.body.is_empty() {
        builder = builder.header("content-length", request.body.len());
    }
    let head = builder.body(()).map_err(|error| text("a header", error.to_string()))?;
    Ok(Encoded { head, body: Bytes::from(request.body.clone()), keep: request.keeps() })
}

impl Http2 {
    /// A connection that may carry up to `most` requests at a time. Its preface is waiting to be sent.
    pub(crate) fn new(most: usize) -> Result<Http2, Failure> {
        let pipe = Pipe::default();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
        let mut handshake = Box::pin(builder.handshake(pipe.clone()));
        let Poll::Ready(Ok((sender, connection))) = handshake.as_mut().poll(&mut context()) else {
            return Err(Failure::Garbage);
        };
        let mut http2 =
            Http2 { pipe, sender, connection, streams: Vec::new(), most, closing: false, served: false };
        http2.turn()?;
        Ok(http2)
    }

    /// Whether another request can be sent now.
    pub(crate) fn is_free(&self) -> bool {
        !self.closing && self.streams.len() < self.most.min(self.sender.current_max_send_streams())
    }

    /// Whether nothing is in flight and no more requests can be sent; or, with `once`, one has been answered.
    pub(crate) fn is_over(&self, once: bool) -> bool {
        self.streams.is_empty() && (self.closing || (once && self.served))
    }

    /// Requests in flight.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.streams.iter().map(|stream| stream.exchange)
    }

    /// Starts a request.
    pub(crate) fn start(&mut self, request: &Encoded, exchange: Exchange) -> Result<(), Failure> {
        let ready = self.sender.poll_ready(&mut context());
        if !matches!(ready, Poll::Ready(Ok(()))) {
            return Err(Failure::ClosedEarly);
        }
        let without_body = request.body.is_empty();
        let (response, mut sending) = self
            .sender
            .send_request(request.head.clone(), without_body)
            .map_err(|error| class(&error, false))?;
        if !without_body {
            sending.send_data(request.body.clone(), true).map_err(|error| class(&error, false))?;
        }
        self.streams.push(Stream {
            exchange,
            state: State::Waiting(response),
            status: 0,
            headers: HeaderMap::new(),
            length: 0,
            kept: Vec::new(),
            keep: request.keep,
        });
        self.turn()
    }

    /// Processes bytes. Appends the exchanges that they end to `done`, judged by the checks of `requests`.
    ///
    /// # Errors
    /// When the connection is broken; everything in flight on it has then failed.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        requests: &[super::request::Request],
        done: &mut Vec<Done>,
    ) -> Result<(), Failure> {
        self.pipe.lock().incoming.extend_from_slice(bytes);
        let turned = self.turn();
        self.poll_streams(requests, done);
        turned?;
        // The window is extended only now that content has been taken.
        self.turn()
    }

    /// Gives up requests that were sent too long ago.
    pub(crate) fn give_up(&mut self, sent_before: u64, done: &mut Vec<Done>) -> Result<(), Failure> {
        let before = self.streams.len();
        self.streams.retain(|stream| {
            let late = stream.exchange.sent <= sent_before;
            if late {
                done.push(Done {
                    exchange: stream.exchange,
                    status: 0,
                    outcome: Err(Failure::TimedOut),
                    kept: Default::default(),
                });
            }
            !late
        });
        if self.streams.len() < before { self.turn() } else { Ok(()) }
    }

    /// How requests in flight fail when the stream of bytes ends.
    pub(crate) fn at_end(&self, exchange: &Exchange) -> Failure {
        let begun = self.streams.iter().any(|stream| stream.exchange == *exchange && stream.status > 0);
        if begun { Failure::HalfResponse } else { Failure::ClosedEarly }
    }

    fn poll_streams(&mut self, requests: &[super::request::Request], done: &mut Vec<Done>) {
        let mut index = 0;
        while let Some(stream) = self.streams.get_mut(index) {
            match stream.poll() {
                Poll::Pending => index += 1,
                Poll::Ready(outcome) => {
                    let stream = self.streams.swap_remove(index);
                    self.served = true;
                    let check = &requests[stream.exchange.request as usize].check;
                    let header = |name: &str| stream.headers.get(name).map(http::HeaderValue::as_bytes);
                    let judged = outcome.and_then(|()| {
                        check.judge(stream.status, stream.length, header, &stream.kept).map_err(|failed| {
                            match failed {
                                Failed::Status => Failure::BadStatus,
                                Failed::Check => Failure::CheckFailed,
                            }
                        })
                    });
                    done.push(Done {
                        exchange: stream.exchange,
                        status: stream.status,
                        outcome: judged.map(|()| stream.length),
                        kept: (stream.headers, stream.kept),
                    });
                }
            }
        }
    }

    /// The bytes that are to be sent.
    pub(crate) fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pipe.lock().outgoing)
    }

    /// Lets the protocol process its input and produce its output.
    fn turn(&mut self) -> Result<(), Failure> {
        match Pin::new(&mut self.connection).poll(&mut context()) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.closing = true;
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(class(&error, false)),
        }
    }
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Stream {
    fn poll(&mut self) -> Poll<Result<(), Failure>> {
        if let State::Waiting(response) = &mut self.state {
            match Pin::new(response).poll(&mut context()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(class(&error, false))),
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    self.status = head.status.as_u16();
                    if self.keep {
                        self.headers = head.headers;
                    }
                    self.state = State::Reading(body);
                }
            }
        }
        let State::Reading(body) = &mut self.state else { return Poll::Pending };
        loop {
            match body.poll_data(&mut context()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(class(&error, true))),
                Poll::Ready(Some(Ok(bytes))) => {
                    self.length += bytes.len() as u64;
                    if self.keep {
                        let room = KEPT.saturating_sub(self.kept.len()).min(bytes.len());
                        self.kept.extend_from_slice(&bytes[..room]);
                    }
                    // No more than was taken is returned, so this cannot fail.
                    let _ = body.flow_control().release_capacity(bytes.len());
                }
            }
        }
    }
}

/// The class of an error; `begun` when a part of the answer had come.
fn class(error: &h2::Error, begun: bool) -> Failure {
    if error.is_io() || (error.is_go_away() && error.is_remote()) {
        return if begun { Failure::HalfResponse } else { Failure::ClosedEarly };
    }
    if error.is_reset() && error.is_remote() { Failure::Reset } else { Failure::Garbage }
}

/// The two directions of a connection in memory.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Buffers>>);

#[derive(Default)]
struct Buffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffers = self.lock();
        if buffers.incoming.is_empty() {
            return Poll::Pending;
        }
        let length = buffers.incoming.len().min(buffer.remaining());
        buffer.put_slice(&buffers.incoming[..length]);
        buffers.incoming.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.lock().outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
