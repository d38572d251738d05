//! One side's socket. Writing and reading go on together in one task: whatever waits to be written
//! is in a queue that is bounded in bytes, because nobody reads for it from the other side while it
//! is full.

use super::frames::{FrameKind, close_payload};
use super::incoming::IncomingFrames;
use super::outgoing::{Masks, OutgoingFrames};
use super::rooms::MessageRoom;
use crate::door::bodies::BodyShare;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tollgate_media::realtime::LiveFrame;

/// While so many bytes wait to be written, nothing is read that would add to them.
const ROOM: usize = 1 << 20;
/// A ping is answered while no more than this waits: its answer would not be read any sooner.
const BEFORE_PONG: usize = 64 << 10;
/// A side that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(30);
/// The last words are given so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What came from a side.
pub enum SocketInput {
    Text(Utf8Bytes, Option<BodyShare>),
    Binary(Bytes, Option<BodyShare>),
    /// A message that was passed on where it lay.
    Passed,
    /// A ping, a pong, or a piece of a message: nothing is said by it.
    Aside,
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
    io: T,
    incoming: IncomingFrames,
    out: OutgoingFrames,
    /// The last frame is said.
    closing: bool,
    /// When something was last written, or there was nothing to write.
    moved_at: Instant,
    heard_at: Instant,
    pinged_at: Instant,
}

impl<T: AsyncRead + AsyncWrite + Unpin> SessionSocket<T> {
    /// The side of a client.
    pub fn of_client(io: T, room: MessageRoom) -> SessionSocket<T> {
        let out = OutgoingFrames::new(room.beside(), None);
        SessionSocket::new(io, IncomingFrames::new(true, room), out)
    }

    /// The side of a provider, to which we are the client.
    pub fn of_provider(io: T, room: MessageRoom, masks: Masks) -> SessionSocket<T> {
        let out = OutgoingFrames::new(room.beside(), Some(masks));
        SessionSocket::new(io, IncomingFrames::new(false, room), out)
    }

    fn new(io: T, incoming: IncomingFrames, out: OutgoingFrames) -> SessionSocket<T> {
        let now = Instant::now();
        SessionSocket { io, incoming, out, closing: false, moved_at: now, heard_at: now, pinged_at: now }
    }

    pub fn has_room(&self) -> bool {
        self.out.waiting() < ROOM
    }

    /// Puts a message into the queue.
    pub fn say(&mut self, frame: &LiveFrame) {
        match frame {
            LiveFrame::Text(text) => self.say_text(text),
            LiveFrame::Binary(bytes) => self.put(FrameKind::Binary, bytes),
        }
    }

    pub fn say_text(&mut self, text: &str) {
        self.put(FrameKind::Text, text.as_bytes());
    }

    /// The last frame; there is one.
    fn say_close(&mut self, payload: &[u8]) {
        if !std::mem::replace(&mut self.closing, true) {
            self.put(FrameKind::Close, payload);
        }
    }

    fn put(&mut self, kind: FrameKind, payload: &[u8]) {
        if self.out.is_empty() {
            self.moved_at = Instant::now();
        }
        self.out.say(kind, payload);
    }

    /// What is said next takes this of the budget until it is written.
    pub fn adopt(&mut self, room: BodyShare) {
        self.out.adopt(room);
    }

    /// What was said took no room of what it was given.
    pub fn settle(&mut self) {
        if self.out.is_empty() {
            self.out.let_room_go();
        }
    }

    /// The next message of those that were read already, unless `passes` takes its text where it
    /// lies.
    pub fn next_read(&mut self, passes: impl FnOnce(&str) -> bool) -> Option<SocketInput> {
        let input = self.incoming.next(passes)?;
        if let SocketInput::Closed(frame) = &input {
            // Whoever does not get the answer sees a connection that broke (1006).
            let code = frame.as_ref().map(|frame| frame.code);
            let code = code.map(|code| if code.is_allowed() { code } else { CloseCode::Protocol });
            let payload = code.map(|code| close_payload(code, "")).unwrap_or_default();
            self.say_close(&payload);
        }
        Some(input)
    }

    /// The next message, while everything that waits is written.
    pub async fn heard(&mut self) -> SocketInput {
        loop {
            if let Some(input) = self.next_read(|_| false) {
                return input;
            }
            if let Err(input) = std::future::poll_fn(|cx| self.poll(cx, true)).await {
                return input;
            }
        }
    }

    /// Writes what waits and, if it may, reads what comes. Ready when something was read, after all
    /// that was read before was taken, and when the connection is over.
    pub fn poll(&mut self, cx: &mut Context<'_>, read: bool) -> Poll<Result<(), SocketInput>> {
        if let Poll::Ready(Err(_)) = self.poll_write(cx) {
            return Poll::Ready(Err(SocketInput::Gone));
        }
        if self.out.is_full() {
            return Poll::Ready(Err(SocketInput::NoRoom));
        }
        if !read {
            return Poll::Pending;
        }
        if self.incoming.is_filled() {
            return Poll::Ready(Ok(()));
        }
        match ready!(self.incoming.poll_fill(cx, &mut self.io)) {
            Ok(true) => {
                self.heard_at = Instant::now();
                Poll::Ready(Ok(()))
            }
            Ok(false) | Err(_) => Poll::Ready(Err(SocketInput::Gone)),
        }
    }

    /// Writes what goes at once.
    pub async fn flush(&mut self) {
        std::future::poll_fn(|cx| {
            // What does not go now waits; whether the side is gone is seen when it is listened to.
            let _ = self.poll_write(cx);
            Poll::Ready(())
        })
        .await;
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.waiting() < BEFORE_PONG
            && let Some(ping) = self.incoming.ping.take()
        {
            self.put(FrameKind::Pong, &ping);
        }
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut moved = false;
        let written = self.out.poll_write(cx, &mut self.io, &mut moved);
        if moved {
            self.moved_at = Instant::now();
        }
        written
    }

    /// Is it time for a ping, or is nobody there any more? `read`: it was listened to.
    pub fn look(&mut self, now: Instant, read: bool, every: Duration, silence: Duration) -> bool {
        if !read {
            self.heard_at = now;
        }
        if now - self.pinged_at >= every {
            self.pinged_at = now;
            self.put(FrameKind::Ping, &[]);
        }
        let stalled = !self.out.is_empty() && now - self.moved_at > STALLED;
        now - self.heard_at <= silence && !stalled
    }

    /// Says the last words and closes, within bounds. What the other side says meanwhile is
    /// nobody's any more.
    pub async fn close(mut self, code: CloseCode, reason: String) {
        self.out.excuse();
        self.say_close(&close_payload(code, &reason));
        let saying = async {
            // Until the other side has closed too, or cannot be understood.
            while matches!(
                self.heard().await,
                SocketInput::Text(..) | SocketInput::Binary(..) | SocketInput::Passed | SocketInput::Aside
            ) {}
            self.drain().await;
        };
        let _ = tokio::time::timeout(LAST_WORDS, saying).await;
    }

    /// Writes what waits, says that nothing follows, and throws away what still comes until the
    /// other side is done too. A connection that is cut with something unread loses its last words.
    async fn drain(&mut self) {
        let mut written = false;
        std::future::poll_fn(|cx| {
            if !written && let Poll::Ready(done) = self.poll_write(cx) {
                if done.is_err() {
                    return Poll::Ready(());
                }
                written = Pin::new(&mut self.io).poll_shutdown(cx).is_ready();
            }
            loop {
                self.incoming.forget();
                match ready!(self.incoming.poll_fill(cx, &mut self.io)) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::bodies::{Bodies, Whose};
    use futures_util::{SinkExt as _, StreamExt as _};
    use std::sync::Arc;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

    const LONGEST: usize = 1 << 20;

    fn room(bodies: &Arc<Bodies>) -> MessageRoom {
        MessageRoom::new(bodies.clone(), Whose::Penniless, LONGEST)
    }

    /// A socket of ours whose pipe holds so many bytes, and its other end.
    fn pair(pipe: usize) -> (SessionSocket<DuplexStream>, DuplexStream, Arc<Bodies>) {
        let bodies = Bodies::new(16 << 20, 4 << 20);
        let (ours, theirs) = duplex(pipe);
        (SessionSocket::of_client(ours, room(&bodies)), theirs, bodies)
    }

    fn is_bare<T>(socket: &SessionSocket<T>) -> bool {
        socket.incoming.is_bare() && socket.out.is_bare()
    }

    /// The next that says something.
    async fn said(socket: &mut SessionSocket<DuplexStream>) -> SocketInput {
        loop {
            match socket.heard().await {
                SocketInput::Aside => {}
                input => return input,
            }
        }
    }

    #[tokio::test]
    async fn messages_are_read_however_they_are_cut() {
        let long = "toll".repeat(50_000);
        for pipe in [3, 64, 5_000, 1 << 20] {
            let (mut ours, theirs, bodies) = pair(pipe);
            let texts = ["", "{}", "grün", &"x".repeat(125), &"y".repeat(126), &long[..70_000], &long];
            let sending = async {
                let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
                for text in texts {
                    client.send(Message::text(text)).await.expect("sent");
                }
                let (first, rest) = long.as_bytes().split_at(99_999);
                let data = |data: &[u8], code, last| Message::Frame(Frame::message(data.to_vec(), code, last));
                for frame in [
                    data(first, OpCode::Data(Data::Text), false),
                    Message::Ping(Bytes::from_static(b"there?")),
                    data(b"", OpCode::Data(Data::Continue), false),
                    data(rest, OpCode::Data(Data::Continue), true),
                    Message::binary(vec![7; 3]),
                ] {
                    client.send(frame).await.expect("sent");
                }
                let pong = client.next().await.expect("an answer").expect("a frame");
                assert_eq!(pong, Message::Pong(Bytes::from_static(b"there?")));
                client.close(None).await.expect("closed");
                assert!(matches!(client.next().await, Some(Ok(Message::Close(_)))), "it is answered");
            };
            let hearing = async {
                for text in texts.into_iter().chain([long.as_str()]) {
                    let SocketInput::Text(heard, _) = said(&mut ours).await else { panic!("{pipe}: no text") };
                    assert!(heard.as_str() == text, "{pipe}: {} of {}", heard.len(), text.len());
                }
                let SocketInput::Binary(heard, room) = said(&mut ours).await else { panic!("no bytes") };
                assert_eq!((heard.as_ref(), room.is_none()), (&[7, 7, 7][..], true));
                assert!(matches!(said(&mut ours).await, SocketInput::Closed(None)));
                while !ours.out.is_empty() {
                    ours.flush().await;
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(sending, hearing);
            assert!(is_bare(&ours), "a quiet socket has no buffer");
            assert_eq!(bodies.used(), 0);
        }
    }

    #[tokio::test]
    async fn what_we_say_as_a_client_is_masked_and_read() {
        let bodies = Bodies::new(16 << 20, 4 << 20);
        let (ours, theirs) = duplex(900);
        let mut ours = SessionSocket::of_provider(ours, room(&bodies), Masks::new([3; 8]));
        let mut server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        let long = "toll".repeat(20_000);
        ours.say_text("{}");
        ours.say_text(&long);
        ours.say(&LiveFrame::Binary(Bytes::from_static(b"xyz")));
        assert!(bodies.used() >= long.len(), "what waits is counted");
        let hearing = async {
            for message in [Message::text("{}"), Message::text(long), Message::binary(b"xyz".to_vec())] {
                assert_eq!(server.next().await.expect("a message").expect("whole"), message);
            }
            server.send(Message::text("done")).await.expect("sent");
        };
        let (heard, ()) = tokio::join!(said(&mut ours), hearing);
        assert!(matches!(heard, SocketInput::Text(text, None) if text == "done"));
        assert!(is_bare(&ours));
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test]
    async fn what_no_client_may_send_has_its_name() {
        let heard = async |bytes: &[u8]| {
            let (mut ours, mut theirs, _) = pair(1 << 16);
            theirs.write_all(bytes).await.expect("sent");
            said(&mut ours).await
        };
        let masked = |first: u8, payload: &[u8]| {
            let mut frame = vec![first, 0x80 | payload.len() as u8, 0, 0, 0, 0];
            frame.extend_from_slice(payload);
            frame
        };
        for (bytes, why) in [
            (vec![0x81, 1, b'x'], "not masked"),
            (masked(0xc1, b"x"), "compressed"),
            (masked(0x80, b"x"), "goes on with nothing"),
            ([masked(0x01, b"x"), masked(0x81, b"y")].concat(), "two at once"),
            (masked(0x81, &[0xff]), "no text"),
            ([masked(0x01, &[0xc3]), masked(0x80, b"x")].concat(), "no text in pieces"),
            (masked(0x88, &[3]), "half a code"),
            (masked(0x09, b""), "a ping in pieces"),
        ] {
            assert!(matches!(heard(&bytes).await, SocketInput::Garbage), "{why}");
        }
        let cut = masked(0x01, &[0xc3]);
        assert!(
            matches!(heard(&[cut, masked(0x80, &[0xbc])].concat()).await, SocketInput::Text(text, _) if text == "ü")
        );
        let endless = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
        assert!(matches!(heard(&endless).await, SocketInput::TooLarge));
    }

    #[tokio::test]
    async fn a_message_in_pieces_has_a_length_too() {
        let (mut ours, theirs, bodies) = pair(1 << 16);
        let sending = async {
            let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
            let piece = Frame::message(vec![b'x'; LONGEST / 4], OpCode::Data(Data::Text), false);
            client.send(Message::Frame(piece)).await.expect("sent");
            for _ in 0..4 {
                let piece = Frame::message(vec![b'x'; LONGEST / 4], OpCode::Data(Data::Continue), false);
                if client.send(Message::Frame(piece)).await.is_err() {
                    break;
                }
            }
        };
        let hearing = async {
            let heard = said(&mut ours).await;
            assert!(matches!(heard, SocketInput::TooLarge));
            assert!(bodies.used() >= LONGEST / 2, "{}", bodies.used());
            drop(ours);
        };
        tokio::join!(sending, hearing);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test]
    async fn whoever_does_not_read_is_not_written_to_without_end() {
        let (mut ours, mut theirs, bodies) = pair(1_000);
        let ping = [0x89, 0x80, 0, 0, 0, 0];
        for _ in 0..100 {
            theirs.write_all(&ping).await.expect("sent");
        }
        for _ in 0..100 {
            assert!(matches!(ours.heard().await, SocketInput::Aside));
        }
        ours.flush().await;
        assert!(ours.out.waiting() < 1_000, "of many pings the last is answered: {}", ours.out.waiting());
        let text = "x".repeat(10_000);
        let mut said = 0;
        while ours.has_room() {
            ours.say_text(&text);
            ours.flush().await;
            said += text.len();
        }
        assert!((ROOM..ROOM + 20_000).contains(&said), "{said}");
        assert!((ROOM..2 * ROOM + 1).contains(&bodies.used()), "{}", bodies.used());
        let now = Instant::now();
        assert!(ours.look(now, true, STALLED * 9, STALLED * 9));
        assert!(!ours.look(now + STALLED * 2, true, STALLED * 9, STALLED * 9), "it is gone");
    }

    #[tokio::test]
    async fn without_room_the_session_is_over_and_its_last_words_are_said() {
        let bodies = Bodies::new(1 << 20, 1 << 16);
        let (ours, theirs) = duplex(1 << 20);
        let mut ours = SessionSocket::of_client(ours, MessageRoom::new(bodies.clone(), Whose::Penniless, 8 << 20));
        let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        ours.say_text(&"x".repeat(900_000));
        assert!(matches!(ours.heard().await, SocketInput::NoRoom));
        let closing = ours.close(CloseCode::Again, "overloaded".to_owned());
        let hearing = async {
            let Some(Ok(Message::Close(Some(frame)))) = client.next().await else { panic!("no close") };
            assert_eq!((frame.code, frame.reason.as_str()), (CloseCode::Again, "overloaded"));
            while client.next().await.is_some_and(|message| message.is_ok()) {}
        };
        tokio::join!(closing, hearing);
        assert_eq!(bodies.used(), 0);
    }
}
