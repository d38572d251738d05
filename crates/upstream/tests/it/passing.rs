//! Forms whose file passes: what is withheld, how the announced length is filled, and what it means
//! when the provider does not wait for the end.

use bytes::Bytes;
use http::{Method, Request};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tollgate_upstream::{
    BaseUrl, Blame, Client, ClientSettings, Fault, PassingForm, PassingUpload, Payload, Provider, ProviderSettings,
    kind, read_whole,
};
use tollgate_wire::error::Code;

const PIECE: usize = 64 << 10;
const BEFORE: &str = "before;";
const END: &str = ";end";

/// A provider, and an upload to it of a file that has at most so many bytes.
async fn begun(most: usize) -> (TcpListener, PassingUpload) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = BaseUrl::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
    let provider = Provider::new("test", kind("openai").unwrap(), base, None, ProviderSettings::default()).unwrap();
    let mut request = Request::new(Payload::default());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = provider.base_url.join("/audio/transcriptions").unwrap();
    let length = (most + END.len()) as u64;
    let form = PassingForm { request, before: Bytes::from_static(BEFORE.as_bytes()), length };
    (listener, Client::new(ClientSettings::default()).pass(&Arc::new(provider), form))
}

fn piece(size: usize) -> Bytes {
    Bytes::from(vec![b'x'; size])
}

/// Reads a head, and says how long the body is to be.
async fn announced(stream: &mut TcpStream) -> usize {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).expect("a length")
}

async fn answer(listener: TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut body = vec![0; announced(&mut stream).await];
    stream.read_exact(&mut body).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
    body
}

#[tokio::test]
async fn what_is_announced_is_filled_whatever_the_file_has() {
    // The file that was announced; one that is shorter; one in single bytes; one of a few.
    for (most, pieces) in [
        (3 * PIECE, vec![PIECE; 3]),
        (3 * PIECE, vec![PIECE, PIECE, PIECE - 2]),
        (3 * PIECE, vec![PIECE, PIECE, 11]),
        (20_000, vec![1; 20_000]),
        (PIECE, vec![7]),
    ] {
        let (listener, mut upload) = begun(most).await;
        let mut provider = JoinSet::from_iter([answer(listener)]);
        let file: usize = pieces.iter().sum();
        for size in pieces {
            upload.push(piece(size)).await;
        }
        let reply = upload.release(Bytes::from_static(END.as_bytes())).await.expect("a reply");
        assert_eq!(read_whole(reply.into_body(), 100, Duration::from_secs(60)).await.unwrap(), "hello");
        let body = provider.join_next().await.unwrap().unwrap();
        let wanted = format!("{BEFORE}{}{END}", "x".repeat(file));
        assert_eq!(String::from_utf8_lossy(&body[..wanted.len()]), wanted);
        let padding = &body[wanted.len()..];
        assert_eq!(padding.len(), most - file);
        assert!(padding.iter().all(|byte| matches!(byte, b'\r' | b'\n')), "{padding:?}");
        assert!(padding.len() != 2 || padding == b"\r\n");
    }
}

#[tokio::test]
async fn the_end_is_withheld_until_it_is_released() {
    let (listener, mut upload) = begun(10 * PIECE).await;
    for _ in 0..10 {
        upload.push(piece(PIECE)).await;
    }
    let (mut stream, _) = listener.accept().await.unwrap();
    let length = announced(&mut stream).await;
    // All but the last piece and the end is there, and no more of it comes.
    let mut body = vec![0; length - PIECE - END.len()];
    stream.read_exact(&mut body).await.unwrap();
    drop(upload);
    assert_eq!(stream.read_to_end(&mut body).await.unwrap(), 0, "it was given up without its end");
}

/// Nobody has begun, so nothing is charged and it may be sent again.
#[tokio::test]
async fn a_provider_that_breaks_off_has_not_begun() {
    for waits in [false, true] {
        let (listener, mut upload) = begun(10 * PIECE).await;
        upload.push(piece(PIECE)).await;
        upload.push(piece(PIECE)).await;
        let (mut stream, _) = listener.accept().await.unwrap();
        announced(&mut stream).await;
        let mut some = vec![0; PIECE + BEFORE.len()];
        stream.read_exact(&mut some).await.unwrap();
        drop(stream);
        if waits {
            // The client is slow, and the provider does not wait.
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(6)).await;
            tokio::time::resume();
        }
        for _ in 0..8 {
            upload.push(piece(PIECE)).await;
        }
        let fault = upload.release(Bytes::from_static(END.as_bytes())).await.expect_err("no answer");
        assert!(!fault.maybe_charged && !fault.may_have_begun(), "{fault:?}");
        let (blame, code) = match waits {
            true => (Blame::Caller, Code::RequestTimeout),
            false => (Blame::Network, Code::UpstreamError),
        };
        assert_eq!((fault.blame, fault.code), (blame, code));
    }
}

#[tokio::test]
async fn one_that_breaks_off_behind_the_end_may_have_begun() {
    let (listener, mut upload) = begun(2 * PIECE).await;
    upload.push(piece(PIECE)).await;
    upload.push(piece(PIECE)).await;
    let mut provider = JoinSet::new();
    provider.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut body = vec![0; announced(&mut stream).await];
        stream.read_exact(&mut body).await.unwrap();
    });
    let fault = upload.release(Bytes::from_static(END.as_bytes())).await.expect_err("no answer");
    assert_eq!(fault, Fault::reset());
    assert!(fault.may_have_begun());
}

#[tokio::test]
async fn what_does_not_fit_is_not_sent() {
    let (listener, mut upload) = begun(2 * PIECE).await;
    upload.push(piece(2 * PIECE)).await;
    let fault = upload.release(Bytes::from_static(b"; a longer end")).await.expect_err("no answer");
    assert_eq!((fault.blame, fault.maybe_charged), (Blame::Caller, false));
    drop(listener);
}
