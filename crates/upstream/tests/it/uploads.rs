//! Bodies that are sent while they arrive: framing, back-pressure, and everything that can break in
//! the middle.

use bytes::Bytes;
use http::{Method, Request};
use hyper::body::{Body, Frame};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tollgate_upstream::{
    BaseUrl, Blame, Client, ClientSettings, Fault, FormPayload, Outgoing, Payload, Provider, ProviderSettings,
    SpooledFile, UploadStream, kind, read_whole,
};
use tollgate_wire::error::Code;

const PIECE: usize = 64 << 10;

/// As many pieces as are asked for, and how many bytes that were.
struct Endless {
    left: u64,
    handed: Arc<AtomicU64>,
    /// Closed when nobody reads any more.
    _read: mpsc::Sender<()>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let length = self.left.min(PIECE as u64);
        self.left -= length;
        self.handed.fetch_add(length, SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; usize::try_from(length).unwrap()])))))
    }
}

fn endless(bytes: u64) -> (Endless, Arc<AtomicU64>, mpsc::Receiver<()>) {
    let handed = Arc::new(AtomicU64::new(0));
    let (read, unread) = mpsc::channel(1);
    (Endless { left: bytes, handed: handed.clone(), _read: read }, handed, unread)
}

/// Pieces that somebody else sends.
struct Channel(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Channel {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = ready!(self.0.poll_recv(cx));
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }
}

/// An upload of these pieces.
fn of(length: Option<u64>, pieces: Vec<io::Result<Bytes>>) -> UploadStream {
    let (send, receive) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        send.try_send(piece).unwrap();
    }
    UploadStream::new(length, Channel(receive))
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn provider(address: impl std::fmt::Display) -> Provider {
    let base = BaseUrl::parse(&format!("http://{address}/v1")).unwrap();
    Provider::new("test", kind("openai").unwrap(), base, None, ProviderSettings::default()).unwrap()
}

fn request(provider: &Provider, body: Payload) -> Outgoing {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = provider.base_url.join("/audio/transcriptions").unwrap();
    request
}

/// A form with one file.
fn form(provider: &Provider, upload: &UploadStream) -> Outgoing {
    let parts = [text("fields;").into(), upload.part().expect("not begun"), text(";end").into()];
    request(provider, Payload::of_parts(parts))
}

fn client() -> Client {
    Client::new(ClientSettings::default())
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reads up to the blank line.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// Reads requests until their end and answers each; tells what came.
async fn answers(mut stream: TcpStream, seen: mpsc::Sender<(String, Vec<u8>)>) {
    loop {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            all.push(byte);
        }
        let head = String::from_utf8(all).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        if length.is_some() {
            stream.read_exact(&mut body).await.unwrap();
        } else if head.contains("transfer-encoding: chunked") {
            while !body.ends_with(b"0\r\n\r\n") {
                body.push(stream.read_u8().await.unwrap());
            }
        }
        seen.send((head, body)).await.unwrap();
        stream.write_all(OK).await.unwrap();
    }
}

/// Takes the chunks of a body apart, in the simplest way.
fn unchunked(mut body: &[u8]) -> (Vec<u8>, usize) {
    let (mut all, mut count) = (Vec::new(), 0);
    loop {
        let line = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        all.extend_from_slice(&body[line + 2..line + 2 + size]);
        assert_eq!(&body[line + 2 + size..line + 4 + size], b"\r\n");
        body = &body[line + 4 + size..];
        if size == 0 {
            assert!(body.is_empty());
            return (all, count);
        }
        count += 1;
    }
}

#[tokio::test]
async fn a_length_is_sent_where_it_is_known_and_chunks_where_not() {
    let (listener, address) = listen().await;
    let (accepted, (seen, mut requests)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel(8));
    let mut tasks = JoinSet::new();
    let count = accepted.clone();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, SeqCst);
            connections.spawn(answers(stream, seen.clone()));
        }
    });
    let (client, provider) = (client(), provider(address));
    let long = Bytes::from(vec![b'y'; 3 * PIECE / 2]);
    let pieces = || vec![Ok(text("one")), Ok(Bytes::new()), Ok(text("two")), Ok(long.clone())];
    let sent = [&b"fields;onetwo"[..], &long, b";end"].concat();
    for length in [Some(6 + long.len() as u64), None] {
        let upload = of(length, pieces());
        let mut request = form(&provider, &upload);
        // What the caller says of the length does not count.
        request.headers_mut().insert("content-length", 7.into());
        let reply = client.send(&provider, request).await.unwrap();
        assert_eq!(read_whole(reply.into_body(), 100, Duration::from_secs(20)).await.unwrap(), "hello");
        assert!(upload.has_begun() && upload.part().is_none(), "it cannot be sent again");
        let (head, body) = requests.recv().await.unwrap();
        match length {
            Some(_) => {
                assert!(head.contains(&format!("content-length: {}\r\n", sent.len())), "{head}");
                assert!(!head.contains("transfer-encoding") && !head.contains("content-length: 7"), "{head}");
                assert_eq!(body, sent);
            }
            None => {
                assert!(head.contains("transfer-encoding: chunked\r\n") && !head.contains("content-length"), "{head}");
                assert_eq!(unchunked(&body), (sent.clone(), 6), "no empty chunk but the last, none too long");
            }
        }
    }
    let before = accepted.load(SeqCst);
    assert_eq!(before, 2, "each over a connection of its own");
    client.send(&provider, request(&provider, text("plain").into())).await.unwrap();
    assert_eq!(accepted.load(SeqCst), before, "which others use afterwards");
}

/// However fast the bytes come: what was taken and has not left is one piece, and the rest waits in
/// the sockets' buffers.
#[tokio::test]
async fn a_large_upload_waits_for_its_reader() {
    const ALL: u64 = 96 << 20;
    const SOCKETS: u64 = 24 << 20;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let provider = provider(listener.local_addr().unwrap());
    let (source, handed, _unread) = endless(ALL);
    let upload = UploadStream::new(Some(ALL), source);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(head(&mut stream).await.contains(&format!("content-length: {ALL}\r\n")));
        let (mut read, mut most, mut part) = (0, 0, vec![0; 1 << 20]);
        while read < ALL {
            // Whoever sends has its turn as long as it has anything to do.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            read += stream.read(&mut part).await.unwrap() as u64;
            most = most.max(handed.load(SeqCst) - read);
        }
        stream.write_all(OK).await.unwrap();
        assert!(most < SOCKETS, "{most} bytes at once");
    });
    let payload = Payload::of_parts([upload.part().unwrap()]);
    let reply = client().send(&provider, request(&provider, payload)).await.unwrap();
    assert_eq!(reply.status(), 200);
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn an_answer_before_the_end_ends_the_upload() {
    for length in [Some(1 << 40), None] {
        let (listener, address) = listen().await;
        let provider = provider(address);
        let (source, handed, mut unread) = endless(1 << 40);
        let upload = UploadStream::new(length, source);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            stream.read_exact(&mut [0; 1000]).await.unwrap();
            stream.write_all(b"HTTP/1.1 413 No\r\ncontent-length: 3\r\n\r\nbig").await.unwrap();
            // Reads no more; the next request comes over another connection.
            let (mut next, _) = listener.accept().await.unwrap();
            head(&mut next).await;
            next.write_all(OK).await.unwrap();
            stream
        });
        let client = client();
        let reply = client.send(&provider, form(&provider, &upload)).await.unwrap();
        assert_eq!(reply.status(), 413);
        assert_eq!(read_whole(reply.into_body(), 100, Duration::from_secs(20)).await.unwrap(), "big");
        assert_eq!(unread.recv().await, None, "nobody asks for more of it");
        assert!(handed.load(SeqCst) < 1 << 30);
        let reply = client.send(&provider, request(&provider, Payload::default())).await.unwrap();
        assert_eq!(reply.status(), 200);
        tasks.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_provider_that_closes_in_the_middle_has_begun() {
    let (listener, address) = listen().await;
    let provider = provider(address);
    let (source, ..) = endless(1 << 40);
    let upload = UploadStream::new(None, source);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        stream.read_exact(&mut [0; 1000]).await.unwrap();
    });
    let fault = client().send(&provider, form(&provider, &upload)).await.unwrap_err();
    assert_eq!((fault.blame, fault.code), (Blame::Network, Code::UpstreamError));
    assert!(fault.sent && fault.maybe_charged && upload.part().is_none());
}

#[tokio::test]
async fn what_was_not_begun_can_go_elsewhere() {
    let (nobody, nowhere) = listen().await;
    drop(nobody);
    let upload = of(Some(3), vec![Ok(text("abc"))]);
    let (client, first) = (client(), provider(nowhere));
    let fault = client.send(&first, form(&first, &upload)).await.unwrap_err();
    assert!(!fault.sent && !upload.has_begun(), "{fault:?}");

    let (listener, address) = listen().await;
    let (seen, mut requests) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { answers(listener.accept().await.unwrap().0, seen).await });
    let second = provider(address);
    // Two requests may be written for it; it goes with the one that is sent.
    let (one, other) = (form(&second, &upload), form(&second, &upload));
    client.send(&second, one).await.unwrap();
    assert_eq!(requests.recv().await.unwrap().1, b"fields;abc;end");
    let fault = client.send(&second, other).await.unwrap_err();
    assert_eq!(fault.blame, Blame::Caller, "{fault:?}");
}

/// Answers whoever connects; what was sent comes out.
fn answering(listener: TcpListener) -> (JoinSet<()>, mpsc::Receiver<(String, Vec<u8>)>) {
    let (seen, requests) = mpsc::channel(8);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(answers(stream, seen.clone()));
        }
    });
    (tasks, requests)
}

/// A file of these bytes, in memory and on disk.
fn spooled_answer(bytes: &[u8]) -> [SpooledFile; 2] {
    let path = std::env::temp_dir().join(format!("tollgate-spooled-{}-{}", std::process::id(), bytes.len()));
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let room = Arc::new(());
    let on_disk = SpooledFile::on_disk(file, bytes.len() as u64, room);
    [SpooledFile::in_memory(Bytes::copy_from_slice(bytes)), on_disk]
}

/// Our own disk fails: neither the caller is told to change something, nor another route asked.
#[tokio::test]
async fn a_file_that_cannot_be_read_any_more_is_our_own_fault() {
    let (listener, address) = listen().await;
    let (_tasks, _requests) = answering(listener);
    let (client, provider) = (client(), provider(address));
    let path = std::env::temp_dir().join(format!("tollgate-spooled-{}-short", std::process::id()));
    std::fs::write(&path, vec![7; 300_000]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // Half of it is gone.
    let file = SpooledFile::on_disk(file, 600_000, Arc::new(()));
    for part in [file.part(), file.base64_part()] {
        let payload = FormPayload::new([7; 16]).file("file", "a.wav", "audio/wav", part).payload();
        let fault = client.send(&provider, request(&provider, payload)).await.unwrap_err();
        assert_eq!((fault.code, fault.code.status()), (Code::Internal, 500), "{fault:?}");
        assert!(!fault.try_other && !fault.maybe_charged && fault.blame != Blame::Caller, "{fault:?}");
    }
}

#[tokio::test]
async fn a_file_that_was_spooled_answer_goes_out_as_often_as_it_is_asked_for() {
    let (listener, address) = listen().await;
    let (_tasks, mut requests) = answering(listener);
    let (client, provider) = (client(), provider(address));
    let bytes: Vec<u8> = (0..1_000_001usize).map(|at| (at % 253) as u8).collect();
    for file in spooled_answer(&bytes) {
        for _ in 0..2 {
            let form = FormPayload::new([7; 16])
                .field("model", "whisper-1")
                .file("file", "audio.wav", "audio/wav", file.part())
                .field("a\"b\r\n", "text \u{e4}");
            let kind = form.content_type();
            assert_eq!(kind, "multipart/form-data; boundary=tollgate-07070707070707070707070707070707");
            let payload = form.payload();
            let length = payload.length().expect("a length");
            client.send(&provider, request(&provider, payload)).await.unwrap();
            let (head, body) = requests.recv().await.unwrap();
            assert!(head.contains(&format!("content-length: {length}\r\n")), "{head}");
            let mark = "--tollgate-07070707070707070707070707070707";
            let before = format!(
                "{mark}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n{mark}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
            );
            let after = format!(
                "\r\n{mark}\r\nContent-Disposition: form-data; name=\"a%22b%0D%0A\"\r\n\r\ntext \u{e4}\r\n{mark}--\r\n"
            );
            assert!(body == [before.as_bytes(), &bytes, after.as_bytes()].concat());
        }
    }
}

#[tokio::test]
async fn a_file_becomes_base64_while_it_is_sent() {
    let (listener, address) = listen().await;
    let (_tasks, mut requests) = answering(listener);
    let (client, provider) = (client(), provider(address));
    for length in [0, 1, 2, 3, 100_000, 192 << 10, (192 << 10) + 1, 400_000] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at % 253) as u8).collect();
        for file in spooled_answer(&bytes) {
            let payload = Payload::of_parts([text("[").into(), file.base64_part(), text("]").into()]);
            assert_eq!(payload.length(), Some(file.base64_length() + 2));
            client.send(&provider, request(&provider, payload)).await.unwrap();
            let (_, body) = requests.recv().await.unwrap();
            let letters = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &bytes);
            assert!(body == format!("[{letters}]").as_bytes(), "{length}");
        }
    }
}

#[tokio::test]
async fn an_upload_that_is_not_as_announced_is_the_callers() {
    let broken = || Err(io::Error::other("the client left"));
    for (length, pieces) in [
        (Some(9), vec![Ok(text("abc")), broken()]),
        (None, vec![Ok(text("abc")), broken()]),
        (Some(9), vec![Ok(text("abc"))]),
        (Some(2), vec![Ok(text("abc"))]),
    ] {
        let (listener, address) = listen().await;
        let provider = provider(address);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            all
        });
        let fault = client().send(&provider, form(&provider, &of(length, pieces))).await.unwrap_err();
        assert_eq!((fault.blame, fault.code), (Blame::Caller, Code::InvalidRequest));
        assert!(fault.sent && !fault.maybe_charged && !fault.try_other, "{fault:?}");
        // The provider sees that it is not whole.
        let seen = String::from_utf8(tasks.join_next().await.unwrap().unwrap()).unwrap();
        assert!(!seen.ends_with(";end") && !seen.ends_with("0\r\n\r\n"), "{seen}");
    }
}

/// Through memory, where the clock is ours and nothing lies in buffers of a kernel.
#[cfg(feature = "testing")]
mod in_memory {
    use super::*;
    use tokio::io::DuplexStream;
    use tokio::time::{Instant, sleep};

    const BUFFER: usize = 16 << 10;

    /// A client, and the provider's end of its one connection.
    fn wired() -> (Client, Provider, mpsc::UnboundedReceiver<DuplexStream>) {
        let (send, ends) = mpsc::unbounded_channel();
        let dial = move |_: &http::Uri| {
            let (ours, theirs) = tokio::io::duplex(BUFFER);
            send.send(theirs).map_err(io::Error::other)?;
            Ok(ours)
        };
        (Client::in_memory(Arc::new(dial)), provider("memory.example"), ends)
    }

    /// What an upload comes to that arrives so, at a provider that does so.
    async fn outcome<F>(
        pauses: &'static [u64],
        length: u64,
        serve: impl FnOnce(DuplexStream) -> F,
    ) -> Result<u16, Fault>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, provider, mut ends) = wired();
        let (send, receive) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for seconds in pauses {
                sleep(Duration::from_secs(*seconds)).await;
                if send.send(Ok(text("0123456789"))).await.is_err() {
                    return;
                }
            }
            // Never the end.
            send.closed().await;
        });
        let upload = UploadStream::new(Some(length), Channel(receive));
        let sending = client.send(&provider, request(&provider, Payload::of_parts([upload.part().unwrap()])));
        let serving = async {
            tasks.spawn(serve(ends.recv().await.unwrap()));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            reply = sending => reply.map(|reply| reply.status().as_u16()),
            () = serving => unreachable!(),
        }
    }

    async fn reads(mut end: DuplexStream, length: usize) -> DuplexStream {
        head(&mut end).await;
        // Or as much of it as comes.
        let _ = end.read_exact(&mut vec![0; length]).await;
        end
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_may_take_long_but_never_stand_still() {
        let first_byte = ProviderSettings::default().first_byte.as_secs();
        assert_eq!(first_byte, 120);
        let began = Instant::now();
        let slow = outcome(&[100, 100, 100, 100], 40, |end| async {
            let mut end = reads(end, 40).await;
            sleep(Duration::from_secs(100)).await;
            end.write_all(OK).await.unwrap();
        });
        assert_eq!(slow.await.unwrap(), 200);
        assert_eq!(began.elapsed().as_secs(), 500);

        let began = Instant::now();
        let fault = outcome(&[100, 100], 40, |end| async { drop(reads(end, 40).await) }).await.unwrap_err();
        assert_eq!((fault.blame, fault.code, fault.maybe_charged), (Blame::Caller, Code::RequestTimeout, false));
        assert_eq!(began.elapsed().as_secs(), 200 + first_byte);

        let silent = |end| async {
            let _end = reads(end, 10).await;
            std::future::pending().await
        };
        let fault = outcome(&[0], 10, silent).await.unwrap_err();
        assert_eq!((fault.blame, fault.code, fault.maybe_charged), (Blame::Provider, Code::UpstreamTimeout, true));
    }

    #[tokio::test(start_paused = true)]
    async fn one_piece_at_a_time_is_taken_and_a_provider_that_reads_nothing_is_late() {
        let (client, provider, mut ends) = wired();
        let (source, handed, _unread) = endless(1 << 40);
        let upload = UploadStream::new(None, source);
        let asked = client.send(&provider, request(&provider, Payload::of_parts([upload.part().unwrap()])));
        let fault = asked.await.unwrap_err();
        assert_eq!((fault.blame, fault.code), (Blame::Provider, Code::UpstreamTimeout));
        assert_eq!(handed.load(SeqCst), PIECE as u64, "the rest of it did not fit");
        drop(ends.recv().await);
    }
}
