//! HTTP/1.1 as clients may speak it, and as they must not: over bare sockets, byte by byte.

use crate::house::{House, chat};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tollgate_store::Ending;

async fn connected(house: &House) -> TcpStream {
    TcpStream::connect(house.running().address).await.expect("connected")
}

/// A reply: its status line and headers in lower case, and its body without its framing.
struct Read {
    status: u16,
    head: String,
    body: String,
}

async fn head_of(socket: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.expect("a reply"));
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), head)
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// One reply, framed as it says.
async fn reply(socket: &mut TcpStream) -> Read {
    let (status, head) = head_of(socket).await;
    let mut body = Vec::new();
    if value(&head, "transfer-encoding") == Some("chunked") {
        assert_eq!(value(&head, "content-length"), None, "{head}");
        loop {
            let size = line(socket).await;
            let mut chunk = vec![0; usize::from_str_radix(&size, 16).expect("a size")];
            socket.read_exact(&mut chunk).await.expect("a chunk");
            assert_eq!(line(socket).await, "");
            if chunk.is_empty() {
                break;
            }
            body.extend_from_slice(&chunk);
        }
    } else {
        body.resize(value(&head, "content-length").expect("a length").parse().expect("a number"), 0);
        socket.read_exact(&mut body).await.expect("a body");
    }
    Read { status, head, body: String::from_utf8(body).expect("text") }
}

async fn line(socket: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(socket.read_u8().await.expect("a line"));
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}

/// Nothing more comes.
async fn is_over(mut socket: TcpStream) -> bool {
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.is_ok_and(|read| read == 0)
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n{more}\r\n")
}

fn begin(house: &House, more: &str) -> String {
    let path = "/v1/chat/completions";
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{more}\r\n",
        house.key
    )
}

fn post(house: &House, body: &str) -> String {
    begin(house, &format!("content-length: {}\r\n", body.len())) + body
}

fn chunked(body: &str, size: usize) -> String {
    let chunks = body.as_bytes().chunks(size);
    let parts = chunks.map(|chunk| format!("{:x};ext=1\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)));
    parts.collect::<String>() + "0\r\ntrailer: x\r\n\r\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_serves_many_requests_however_they_are_cut() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    let body = chat("hello").to_string();
    let requests = [
        post(&house, &body),
        begin(&house, "transfer-encoding: chunked\r\n") + &chunked(&body, 7),
        begin(&house, "transfer-encoding: chunked\r\n") + &chunked(&body, 4_096),
    ];
    for request in &requests {
        for cut in [1, 3, 50, request.len()] {
            for part in request.as_bytes().chunks(cut) {
                socket.write_all(part).await.expect("sent");
                if cut > 1 {
                    tokio::task::yield_now().await;
                }
            }
            let read = reply(&mut socket).await;
            assert_eq!(read.status, 200, "{}", read.body);
            assert!(value(&read.head, "date").is_some_and(|date| date.ends_with(" gmt")), "{}", read.head);
            assert_eq!(value(&read.head, "connection"), None);
        }
    }
    // Several at once, with empty lines between them, are answered one after the other.
    let many = [get("/healthz", ""), post(&house, &body), get("/v1/nothing", ""), requests[1].clone()].join("\r\n\r\n");
    socket.write_all(many.as_bytes()).await.expect("sent");
    for expected in [200, 200, 404, 200] {
        assert_eq!(reply(&mut socket).await.status, expected);
    }
    house.quiet().await;
    assert_eq!(house.all_rows().await.len(), 14, "each was one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_when_one_side_says_so() {
    let house = House::new().await;
    for (request, stays) in [
        (get("/healthz", ""), true),
        (get("/healthz", "connection: keep-alive, Close\r\n"), false),
        ("GET /healthz HTTP/1.0\r\n\r\n".to_owned(), false),
        ("GET /healthz HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n".to_owned(), true),
    ] {
        let mut socket = connected(&house).await;
        socket.write_all(request.as_bytes()).await.expect("sent");
        let read = reply(&mut socket).await;
        assert_eq!(read.status, 200);
        assert_eq!(value(&read.head, "connection") == Some("close"), !stays, "{request}{}", read.head);
        if stays {
            socket.write_all(get("/healthz", "connection: close\r\n").as_bytes()).await.expect("sent");
            assert_eq!(reply(&mut socket).await.status, 200);
        }
        assert!(is_over(socket).await, "{request}");
    }
}

/// A stream to a client of HTTP/1.0 has no chunks and ends with its connection.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_gets_its_stream_without_chunks() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    let body = crate::house::streamed("hello").to_string();
    let request = post(&house, &body).replace("HTTP/1.1", "HTTP/1.0");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let (status, head) = head_of(&mut socket).await;
    assert!(status == 200 && head.starts_with("http/1.0 200 ok\r\n"), "{head}");
    assert_eq!((value(&head, "transfer-encoding"), value(&head, "connection")), (None, Some("close")));
    let mut text = String::new();
    socket.read_to_string(&mut text).await.expect("to the end");
    assert!(text.starts_with("data: {") && text.ends_with("data: [DONE]\n\n"), "{text}");
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_without_a_body_has_none() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    socket.write_all(get("/healthz", "").as_bytes()).await.expect("sent");
    let whole = reply(&mut socket).await;
    socket.write_all(get("/healthz", "").replace("GET", "HEAD").as_bytes()).await.expect("sent");
    let (status, head) = head_of(&mut socket).await;
    assert_eq!((status, value(&head, "content-length")), (200, Some(&*whole.body.len().to_string())));
    // What follows is the next reply, and not a body.
    let asks = "origin: https://a.example\r\naccess-control-request-method: POST\r\n";
    socket.write_all(get("/v1/models", asks).replace("GET", "OPTIONS").as_bytes()).await.expect("sent");
    head_of(&mut socket).await;
    socket.write_all(get("/healthz", "").as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut socket).await.body, whole.body);
}

/// The client is told to go on when its body is wanted, once, and not where it came unasked.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_is_told_to_go_on() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    let body = chat("hello").to_string();
    let expecting = begin(&house, &format!("expect: 100-continue\r\ncontent-length: {}\r\n", body.len()));
    for _ in 0..2 {
        socket.write_all(expecting.as_bytes()).await.expect("sent");
        let (status, said) = head_of(&mut socket).await;
        assert_eq!((status, &*said), (100, "http/1.1 100 continue\r\n\r\n"));
        socket.write_all(body.as_bytes()).await.expect("sent");
        assert_eq!(reply(&mut socket).await.status, 200);
    }
    socket.write_all((expecting + &body).as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut socket).await.status, 200);
    house.quiet().await;
}

/// What could be read in two ways is answered with what is wrong, and the connection is over:
/// nothing behind it is taken for a request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_cannot_hide_in_another() {
    let house = House::new().await;
    let hidden = post(&house, &chat("hidden").to_string());
    let requests = [
        ("content-length: 5\r\ntransfer-encoding: chunked\r\n", 400, "Content-Length"),
        ("content-length: 5\r\ncontent-length: 6\r\n", 400, "Content-Length"),
        ("content-length: 5, 50\r\n", 400, "Content-Length"),
        ("content-length: +5\r\n", 400, "Content-Length"),
        ("transfer-encoding: chunked, identity\r\n", 501, "chunked"),
        ("transfer-encoding : chunked\r\n", 400, "HTTP/1.1"),
        ("transfer-encoding:\r\n chunked\r\n", 400, "HTTP/1.1"),
        ("host: y\r\n", 400, "`Host`"),
        ("a: b\rc: d\r\n", 400, "HTTP/1.1"),
    ];
    for (more, expected, named) in requests {
        let mut socket = connected(&house).await;
        socket.write_all((begin(&house, more) + "0\r\n\r\n" + &hidden).as_bytes()).await.expect("sent");
        let read = reply(&mut socket).await;
        let error: serde_json::Value = serde_json::from_str(&read.body).expect("JSON");
        assert_eq!((read.status, value(&read.head, "connection")), (expected, Some("close")), "{more}");
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains(named)), "{more} {error}");
        assert!(is_over(socket).await, "{more}");
    }
    // A chunk that is none: the body is refused, and nothing behind it is read as a request.
    for broken in ["5\r\nhelloX0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "-5\r\n", "\r\n"] {
        let mut socket = connected(&house).await;
        let request = begin(&house, "transfer-encoding: chunked\r\n") + broken + &hidden;
        socket.write_all(request.as_bytes()).await.expect("sent");
        let read = reply(&mut socket).await;
        assert_eq!((read.status, value(&read.head, "connection")), (400, Some("close")), "{broken:?} {}", read.body);
        assert!(is_over(socket).await, "{broken:?}");
    }
    house.quiet().await;
    assert!(house.all_rows().await.is_empty(), "nothing was called");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_refused() {
    let house = House::new().await;
    for head in [
        format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {}", "x".repeat(64 << 10)),
        format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101)),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 << 10)),
    ] {
        let mut socket = connected(&house).await;
        socket.write_all(head.as_bytes()).await.expect("sent");
        let read = reply(&mut socket).await;
        assert!(read.status == 431 && read.body.contains("64 KiB"), "{} {}", read.status, read.body);
    }
    // Not HTTP at all.
    let mut socket = connected(&house).await;
    socket.write_all(b"\x16\x03\x01\x02\x00\x01").await.expect("sent");
    let read = reply(&mut socket).await;
    assert!(read.status == 400 && read.body.contains("HTTP/1.1"), "{}", read.body);
    // One header more would be too many; so many are not.
    let mut socket = connected(&house).await;
    socket.write_all(get("/healthz", &"a: b\r\n".repeat(99)).as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut socket).await.status, 200);
}

/// A body that breaks off is nobody's request: nothing is held, and the connection is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_costs_nothing() {
    let house = House::new().await;
    let body = chat("hello").to_string();
    for request in [
        begin(&house, &format!("content-length: {}\r\n", body.len() + 1)) + &body,
        begin(&house, "transfer-encoding: chunked\r\n") + &chunked(&body, 7)[..40],
    ] {
        let mut socket = connected(&house).await;
        socket.write_all(request.as_bytes()).await.expect("sent");
        socket.shutdown().await.expect("our side is closed");
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
    }
    house.quiet().await;
    assert!(house.all_rows().await.is_empty());
}

/// Behind a request that ends its connection nothing is begun.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_the_last_request_is_not_begun() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    let behind = post(&house, &chat("never").to_string());
    socket.write_all((get("/healthz", "connection: close\r\n") + &behind).as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut socket).await.status, 200);
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    house.quiet().await;
    assert!(house.all_rows().await.is_empty());
}

/// Some clients end a body with an empty line that its length does not count.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_line_behind_a_body_does_not_hide_that_the_client_left() {
    let house = House::new().await;
    house.sim.shut("/v1/chat/completions");
    let mut socket = connected(&house).await;
    socket.write_all((post(&house, &chat("hello").to_string()) + "\r\n").as_bytes()).await.expect("sent");
    while house.sim.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(socket);
    house.quiet().await;
    house.sim.open();
    let rows = house.all_rows().await;
    let ended: Vec<_> = rows.values().map(|row| (row.ending, row.charge.nano())).collect();
    assert_eq!(ended, [(Ending::ClientLeft, 0)]);
}
