//! One connection, for the task that serves it and for the body of a request, which may be read by
//! another one. Between two reads it has no buffer; what came and was not asked for yet stays.

use super::head::{self, BadRequest, BodyLeft, LONGEST, RequestHead};
use crate::door::protocol::BegunStream;
use crate::door::tls::ClientStream;
use bytes::Bytes;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tollgate_wire::http1::BodySpace;

/// Read at once, to the stack.
const READ: usize = 8 << 10;
/// For a client that waits before it sends a body.
const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(super) struct Channel(Mutex<State>);

struct State {
    io: ClientStream,
    /// What came and was not asked for yet.
    read: Bytes,
    /// So much of it is known to hold no whole head.
    seen: usize,
    left: BodyLeft,
    /// Somebody has the body.
    lent: bool,
    /// How much of [`GO_ON`] is said, where it has to be.
    go_on: Option<usize>,
    /// Where a body is read into of which much comes. A length that is only declared takes none.
    space: BodySpace,
    /// Whom to wake when nobody reads the body any more.
    owner: Option<Waker>,
}

impl Channel {
    pub fn new(begun: BegunStream) -> Channel {
        let (read, io) = begun.into_parts();
        Channel(Mutex::new(State {
            io,
            read,
            seen: 0,
            left: BodyLeft::NONE,
            lent: false,
            go_on: None,
            space: BodySpace::earned(),
            owner: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of the next request; `None` when there is none.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Option<RequestHead>, BadRequest>> {
        let mut state = self.lock();
        loop {
            if let Some(head) = state.head()? {
                return Poll::Ready(Ok(Some(head)));
            }
            match ready!(state.poll_read(cx)) {
                Ok(read) if read > 0 => {}
                _ => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Whether nothing of a next request has come.
    pub fn is_silent(&self) -> bool {
        self.lock().read.is_empty()
    }

    /// The body of a request whose head was just read.
    pub fn begin_body(self: &Arc<Self>, left: BodyLeft, expects: bool) -> axum::body::Body {
        let mut state = self.lock();
        if left.is_over() {
            return axum::body::Body::empty();
        }
        match left {
            // All of it came with the head: nobody has to come back for it.
            BodyLeft::Length(length) if length <= state.read.len() as u64 => {
                let whole = usize::try_from(length).map(|length| state.take(length)).unwrap_or_default();
                axum::body::Body::from(whole)
            }
            left => {
                state.left = left;
                state.go_on = (expects && state.read.is_empty()).then_some(0);
                drop(state);
                axum::body::Body::new(RequestBody::of(self))
            }
        }
    }

    /// What is left of the body, where nobody has it and it did not come to its end.
    pub fn unread(self: &Arc<Self>) -> Option<RequestBody> {
        let state = self.lock();
        let unread = !state.lent && !state.left.is_over();
        drop(state);
        unread.then(|| RequestBody::of(self))
    }

    /// Whether the client still waits for a word before it sends the body.
    pub fn client_waits(&self) -> bool {
        self.lock().go_on.is_some()
    }

    /// Whether the next request begins where this one ended.
    pub fn is_at_end(&self) -> bool {
        self.lock().left.is_over()
    }

    /// Ready when the client has left. What it sends meanwhile is kept for later, a read of it at
    /// most.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.left.is_over() {
            // Whoever reads the body sees it.
            if !state.owner.as_ref().is_some_and(|owner| owner.will_wake(cx.waker())) {
                state.owner = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        loop {
            state.skip_empty_lines();
            if !state.read.is_empty() {
                return Poll::Pending;
            }
            match ready!(state.poll_read(cx)) {
                Ok(read) if read > 0 => {}
                _ => return Poll::Ready(()),
            }
        }
    }

    /// Writes what it can of these.
    pub fn poll_write(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        let io = Pin::new(&mut state.io);
        let written = match parts {
            [one] => io.poll_write(cx, one),
            parts => io.poll_write_vectored(cx, parts),
        };
        match ready!(written)? {
            0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            written => Poll::Ready(Ok(written)),
        }
    }

    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().io).poll_flush(cx)
    }

    /// Says all of this.
    pub async fn say(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, &[IoSlice::new(bytes)])).await?;
            bytes = &bytes[written..];
        }
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Closes our side, and with it the connection. Whoever still has a body learns that it broke
    /// off.
    pub async fn close(&self) {
        self.lock().left = BodyLeft::Unknown;
        // The connection is over either way.
        let _ = poll_fn(|cx| Pin::new(&mut self.lock().io).poll_shutdown(cx)).await;
    }

    /// The stream itself, with what came behind the last request.
    pub fn into_stream(self) -> BegunStream {
        let state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        BegunStream::new(state.read, state.io)
    }

    fn poll_data(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.lock();
        let data = ready!(state.poll_data(cx));
        if matches!(data, Some(Err(_))) {
            // Nothing behind it is read as a request.
            state.left = BodyLeft::Unknown;
        }
        Poll::Ready(data)
    }
}

impl State {
    /// The head of a request, if all of it has come.
    fn head(&mut self) -> Result<Option<RequestHead>, BadRequest> {
        self.skip_empty_lines();
        if self.read.is_empty() {
            self.seen = 0;
            return Ok(None);
        }
        // A head that comes in many small parts is not read from its beginning with each of them.
        let news = &self.read[self.seen.saturating_sub(3).min(self.read.len())..];
        let unended = self.seen > 0 && self.read.len() < LONGEST && !has_empty_line(news);
        let read = if unended { None } else { head::read(&self.read)? };
        let Some((length, head)) = read else {
            self.seen = self.read.len();
            return Ok(None);
        };
        self.seen = 0;
        self.take(length);
        Ok(Some(head))
    }

    /// RFC 9112, 2.2: empty lines before a request mean nothing.
    fn skip_empty_lines(&mut self) {
        let blank = self.read.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.take(blank);
    }

    /// The first so many bytes of what was read.
    fn take(&mut self, length: usize) -> Bytes {
        let taken = self.read.split_to(length);
        if self.read.is_empty() {
            // An empty rest would keep the memory of all of it.
            self.read = Bytes::new();
        }
        taken
    }

    /// Reads once, behind what is there; 0 at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::<u8>::uninit() }; READ];
        let mut buf = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buf))?;
        let news = buf.filled();
        self.space.read_small(news.len() == READ);
        if self.read.is_empty() {
            self.read = Bytes::copy_from_slice(news);
        } else {
            let mut all = std::mem::take(&mut self.read).try_into_mut().unwrap_or_else(|shared| shared.as_ref().into());
            all.extend_from_slice(news);
            self.read = all.freeze();
        }
        Poll::Ready(Ok(news.len()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.left.is_over() {
                return Poll::Ready(None);
            }
            if !self.read.is_empty() {
                match self.piece() {
                    Ok(data) if data.is_empty() => continue,
                    piece => return Poll::Ready(Some(piece)),
                }
            }
            if let Err(error) = ready!(self.poll_go_on(cx)) {
                return Poll::Ready(Some(Err(error)));
            }
            match ready!(self.poll_more(cx)) {
                Ok(0) => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// The next piece of the body in what was read.
    fn piece(&mut self) -> io::Result<Bytes> {
        let data = match &mut self.left {
            BodyLeft::Length(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(self.read.len());
                *left -= length as u64;
                self.take(length)
            }
            BodyLeft::Chunked(chunks) => {
                let data = chunks.take(&mut self.read).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
                self.take(0);
                data
            }
            BodyLeft::Unknown => return Err(io::ErrorKind::InvalidData.into()),
        };
        if self.left.is_over() {
            self.space.release();
            self.wake_owner();
        }
        Ok(data)
    }

    /// Tells a client that waits to send the body.
    fn poll_go_on(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(said) = self.go_on {
            let rest = &GO_ON[said..];
            if rest.is_empty() {
                ready!(Pin::new(&mut self.io).poll_flush(cx))?;
                self.go_on = None;
            } else {
                let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
                self.go_on = Some(said + written);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads more of a body, of which nothing is there: in large steps where much is to come.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ahead = match &self.left {
            BodyLeft::Length(left) => *left,
            BodyLeft::Chunked(chunks) => chunks.ahead(),
            BodyLeft::Unknown => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        };
        let Some(room) = self.space.room(ahead) else { return self.poll_read(cx) };
        let Poll::Ready(read) = tokio_util::io::poll_read_buf(Pin::new(&mut self.io), cx, room) else {
            self.space.release();
            return Poll::Pending;
        };
        self.read = self.space.take();
        Poll::Ready(read)
    }

    fn wake_owner(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.wake();
        }
    }
}

/// Whether a head may end here.
fn has_empty_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|two| two == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

/// The body of a request, while somebody has it.
pub(super) struct RequestBody(Arc<Channel>);

impl RequestBody {
    fn of(channel: &Arc<Channel>) -> RequestBody {
        channel.lock().lent = true;
        RequestBody(channel.clone())
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.lent = false;
        state.space.release();
        state.wake_owner();
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        self.0.poll_data(cx).map(|piece| piece.map(|piece| piece.map(http_body::Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_at_end()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0.lock().left {
            BodyLeft::Length(left) => http_body::SizeHint::with_exact(*left),
            BodyLeft::Chunked(_) | BodyLeft::Unknown => http_body::SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::connections::test_place;
    use crate::door::write_timeout::WriteTimeoutIo;
    use http_body_util::BodyExt as _;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    /// A connection and its client.
    async fn connection() -> (Arc<Channel>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (socket, _) = accepted.expect("accepted");
        let io = WriteTimeoutIo::new(socket, Duration::from_secs(30), test_place());
        (Arc::new(Channel::new(BegunStream::new(Bytes::new(), ClientStream::Plain(io)))), client.expect("connected"))
    }

    #[tokio::test]
    async fn a_body_that_outlives_its_connection_is_not_whole() {
        let (channel, mut client) = connection().await;
        let mut body = channel.begin_body(BodyLeft::Length(100), false);
        client.write_all(b"half").await.expect("sent");
        let data = body.frame().await.expect("a piece").expect("it came").into_data().expect("data");
        assert_eq!(data, "half");
        channel.close().await;
        assert!(!http_body::Body::is_end_stream(&body));
        assert!(body.frame().await.expect("not the end").is_err());
    }

    #[tokio::test]
    async fn a_length_alone_takes_no_memory() {
        let (channel, mut client) = connection().await;
        let mut body = channel.begin_body(BodyLeft::Length(1 << 30), false);
        for _ in 0..3 {
            client.write_all(b"little").await.expect("sent");
            body.frame().await.expect("a piece").expect("it came");
            assert_eq!(channel.lock().space.held(), 0);
        }
        // What comes quickly is read in large steps.
        let (_client, sent) = tokio::join!(
            async {
                client.write_all(&vec![0; 1 << 20]).await.expect("sent");
                client
            },
            async {
                let mut largest = 0;
                let mut read = 0;
                while read < 1 << 20 {
                    let piece = body.frame().await.expect("a piece").expect("it came").into_data().expect("data");
                    (read, largest) = (read + piece.len(), largest.max(piece.len()));
                }
                largest
            }
        );
        assert!(sent > READ, "{sent}");
        // And while nothing comes there is no memory for it.
        assert!(futures_util::poll!(body.frame()).is_pending());
        assert_eq!(channel.lock().space.held(), 0);
    }
}
