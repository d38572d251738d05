//! One side's socket. Writing and reading go on together in one task: whatever waits to be written
//! is in a queue that is bounded in bytes, because nobody reads for it from the other side while it
//! is full.

use crate::door::bodies::BodyShare;
use crate::door::counted::Counted;
use bytes::Bytes;
use futures_util::{Sink as _, Stream as _};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// While so many bytes wait to be written, nothing is read that would add to them.
const ROOM: usize = 1 << 20;
/// What is written at once, and what the protocol's library reads at once. It is small, for most
/// sessions are quiet most of the time; the connection below reads ahead.
const WRITE_AT_ONCE: usize = 16 << 10;
const READ_AT_ONCE: usize = 2 << 10;
/// A side that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(30);
/// The last words are given so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What came from a side.
pub enum SocketInput {
    Text(Utf8Bytes, Option<BodyShare>),
    Binary(Bytes, Option<BodyShare>),
    Closed(Option<CloseFrame>),
    /// The connection is over without a word.
    Gone,
    /// A message longer than it may be.
    TooLarge,
    /// There is no room for all the messages that are coming in.
    NoRoom,
    /// Not what a WebSocket may send.
    Garbage,
}

pub struct SessionSocket<T> {
    socket: WebSocketStream<Counted<T>>,
    out: VecDeque<Message>,
    waiting: usize,
    unflushed: bool,
    /// Messages that were ever put into the queue, and taken from it.
    said: u64,
    taken: u64,
    /// What the messages in the queue take of the budget for all bodies, each with the number of
    /// the last message that it is for.
    rooms: VecDeque<(u64, BodyShare)>,
    /// When a message was last taken, or there was none.
    moved_at: Instant,
    heard_at: Instant,
    pinged_at: Instant,
}

impl<T: AsyncRead + AsyncWrite + Unpin> SessionSocket<T> {
    pub async fn new(io: Counted<T>, role: Role, longest: usize) -> SessionSocket<T> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(longest))
            .max_frame_size(Some(longest))
            .read_buffer_size(READ_AT_ONCE)
            .write_buffer_size(WRITE_AT_ONCE);
        let now = Instant::now();
        SessionSocket {
            socket: WebSocketStream::from_raw_socket(io, role, Some(config)).await,
            out: VecDeque::new(),
            waiting: 0,
            unflushed: false,
            said: 0,
            taken: 0,
            rooms: VecDeque::new(),
            moved_at: now,
            heard_at: now,
            pinged_at: now,
        }
    }

    pub fn has_room(&self) -> bool {
        self.waiting < ROOM
    }

    /// Puts a message into the queue.
    pub fn say(&mut self, message: Message) {
        if self.out.is_empty() && !self.unflushed {
            self.moved_at = Instant::now();
        }
        self.waiting += message.len();
        self.said += 1;
        self.out.push_back(message);
    }

    /// The messages that were said last take this of the budget until they are written.
    pub fn keep(&mut self, room: Option<BodyShare>) {
        if !self.out.is_empty() {
            self.rooms.extend(room.map(|room| (self.said, room)));
        }
    }

    pub fn say_text(&mut self, text: impl Into<Utf8Bytes>) {
        self.say(Message::Text(text.into()));
    }

    /// Writes what waits and, if it may, reads what comes.
    pub async fn heard(&mut self, read: bool) -> SocketInput {
        std::future::poll_fn(|cx| self.poll(cx, read)).await
    }

    pub fn poll(&mut self, cx: &mut Context<'_>, read: bool) -> Poll<SocketInput> {
        if let Poll::Ready(Err(error)) = self.poll_write(cx) {
            return Poll::Ready(self.broken(&error));
        }
        if !read {
            return Poll::Pending;
        }
        loop {
            let message = match std::task::ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                None => return Poll::Ready(SocketInput::Gone),
                Some(Err(error)) => return Poll::Ready(self.broken(&error)),
                Some(Ok(message)) => message,
            };
            self.heard_at = Instant::now();
            let mut room = self.socket.get_mut().message();
            if let Some(room) = &mut room {
                // What came with it is no more than one read.
                room.shrink(message.len().max(READ_AT_ONCE));
            }
            return Poll::Ready(match message {
                Message::Text(text) => SocketInput::Text(text, room),
                Message::Binary(bytes) => SocketInput::Binary(bytes, room),
                Message::Close(frame) => {
                    // It is answered below this too. Whoever does not get the answer sees a
                    // connection that broke (1006).
                    let _ = Pin::new(&mut self.socket).poll_flush(cx);
                    SocketInput::Closed(frame)
                }
                // A ping is answered below this; its answer goes out with the next flush.
                Message::Ping(_) => {
                    self.unflushed = true;
                    if let Poll::Ready(Err(error)) = self.poll_write(cx) {
                        return Poll::Ready(self.broken(&error));
                    }
                    continue;
                }
                Message::Pong(_) | Message::Frame(_) => continue,
            });
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut socket = Pin::new(&mut self.socket);
        while !self.out.is_empty() {
            if socket.as_mut().poll_ready(cx)?.is_pending() {
                return Poll::Pending;
            }
            // Those before this one have left, whether or not the queue is ever empty.
            while self.rooms.front().is_some_and(|(last, _)| *last <= self.taken) {
                self.rooms.pop_front();
            }
            let Some(message) = self.out.pop_front() else { break };
            self.taken += 1;
            self.waiting -= message.len();
            socket.as_mut().start_send(message)?;
            self.unflushed = true;
            self.moved_at = Instant::now();
        }
        if self.unflushed {
            if socket.as_mut().poll_flush(cx)?.is_pending() {
                return Poll::Pending;
            }
            self.unflushed = false;
            self.rooms.clear();
            self.moved_at = Instant::now();
        }
        Poll::Ready(Ok(()))
    }

    fn broken(&self, error: &Error) -> SocketInput {
        if self.socket.get_ref().is_full() {
            return SocketInput::NoRoom;
        }
        match error {
            Error::Capacity(CapacityError::MessageTooLong { .. }) => SocketInput::TooLarge,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => SocketInput::Gone,
            Error::Protocol(_) | Error::Utf8(_) | Error::Capacity(_) => SocketInput::Garbage,
            _ => SocketInput::Gone,
        }
    }

    /// Is it time for a ping, or is nobody there any more? `read`: it was listened to.
    pub fn look(&mut self, now: Instant, read: bool, every: Duration, silence: Duration) -> bool {
        if !read {
            self.heard_at = now;
        }
        if now - self.pinged_at >= every {
            self.pinged_at = now;
            self.say(Message::Ping(Bytes::new()));
        }
        let stalled = (!self.out.is_empty() || self.unflushed) && now - self.moved_at > STALLED;
        now - self.heard_at <= silence && !stalled
    }

    /// Says the last words and closes, within bounds. What the other side says meanwhile is
    /// nobody's any more.
    pub async fn close(mut self, code: CloseCode, reason: String) {
        self.say(Message::Close(Some(CloseFrame { code, reason: reason.into() })));
        let saying = async {
            // Until the other side has closed too: a connection that is cut at once may lose the
            // last words.
            while !matches!(
                self.heard(true).await,
                SocketInput::Closed(_)
                    | SocketInput::Gone
                    | SocketInput::NoRoom
                    | SocketInput::TooLarge
                    | SocketInput::Garbage
            ) {}
        };
        let _ = tokio::time::timeout(LAST_WORDS, saying).await;
    }
}
