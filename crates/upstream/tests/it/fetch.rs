//! Files behind links that callers wrote down, from small servers on 127.0.0.x: one of those
//! addresses may be reached, as the public internet would be, and the others are inside.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tollgate_upstream::{ByteBudget, Client, ClientSettings, FetchedFile, Reachable, Unfetched};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and then the picture";
const OUTSIDE: &str = "127.0.0.1";
const INSIDE: &str = "127.0.0.2";

/// Answers every request with these bytes, and counts.
struct Server {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn at(host: &str, answer: impl Into<Vec<u8>>) -> Server {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, answer) = (asked.clone(), answer.into());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await;
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(&answer).await;
                if answer.is_empty() {
                    let _ = stream.read(&mut [0; 1]).await;
                }
            }
        });
        Server { address, asked, _tasks: tasks }
    }

    fn url(&self) -> String {
        format!("http://{}/a.png", self.address)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn ok(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

fn client() -> Client {
    let also = [format!("{OUTSIDE}/32").parse().unwrap()];
    Client::reaching(ClientSettings::default(), Reachable::Outside(Arc::new(also)), None)
}

async fn fetch_within(
    url: &str,
    limit: usize,
    room: &ByteBudget,
    patience: Duration,
) -> Result<FetchedFile, Unfetched> {
    let client = client();
    client.fetch(&client.address(url)?, limit, room, patience).await
}

async fn fetch(url: &str) -> Result<FetchedFile, Unfetched> {
    fetch_within(url, 1 << 20, &ByteBudget::new(1 << 20), Duration::from_secs(10)).await
}

#[tokio::test]
async fn the_bytes_say_what_it_is() {
    let lying = Server::at(OUTSIDE, ok("content-type: text/html\r\n", PNG)).await;
    let fetched = fetch(&lying.url()).await.unwrap();
    assert_eq!((fetched.mime, &fetched.bytes[..]), ("image/png", PNG));
    let page = b"<html>This is no picture, whatever its server says</html>";
    let lying = Server::at(OUTSIDE, ok("content-type: image/png\r\n", page)).await;
    assert_eq!(fetch(&lying.url()).await, Err(Unfetched::NotMedia));
    let nothing = Server::at(OUTSIDE, ok("", b"")).await;
    assert_eq!(fetch(&nothing.url()).await, Err(Unfetched::NotMedia));
}

#[tokio::test]
async fn addresses_that_are_not_asked_for() {
    for (url, why) in [
        ("http://127.0.0.2/a.png", Unfetched::Inside),
        ("http://127.1.1.1:8080/a.png", Unfetched::Inside),
        ("http://2130706434/a.png", Unfetched::Inside),
        ("http://0x7f.2/a.png", Unfetched::Inside),
        ("http://[::1]/a.png", Unfetched::Inside),
        ("http://[::ffff:10.0.0.1]/", Unfetched::Inside),
        ("http://169.254.169.254/latest/meta-data", Unfetched::Inside),
        ("https://user@8.8.8.8/", Unfetched::Personal),
        ("https://user:pass@x.example/", Unfetched::Personal),
        ("ftp://x.example/a.png", Unfetched::NotAnAddress),
        ("file:///etc/passwd", Unfetched::NotAnAddress),
        ("http://", Unfetched::NotAnAddress),
        ("a.png", Unfetched::NotAnAddress),
    ] {
        assert_eq!(client().address(url).unwrap_err(), why, "{url}");
    }
    assert!(client().address("https://b\u{fc}cher.example/ein bild.png#here").is_ok(), "as browsers take it");
    assert!(client().address(&format!("https://x.example/{}", "a".repeat(9000))).is_err());
}

/// A name is judged by the address it leads to, when it is looked up for the connection.
#[tokio::test]
async fn a_name_that_leads_inside_is_not_reached() {
    let inside = Server::at(INSIDE, ok("", PNG)).await;
    let public = Client::public(ClientSettings::default());
    let url = format!("http://localhost:{}/a.png", inside.address.port());
    let address = public.address(&url).unwrap();
    let outcome = public.fetch(&address, 1 << 20, &ByteBudget::new(1 << 20), Duration::from_secs(5)).await;
    assert_eq!((outcome, inside.asked()), (Err(Unfetched::Unreachable), 0));
}

#[tokio::test]
async fn redirects_are_followed_three_times_and_never_inside() {
    let picture = Server::at(OUTSIDE, ok("", PNG)).await;
    let relative = format!("//{}/a.png", picture.address);
    let first = Server::at(OUTSIDE, moved(&relative)).await;
    let second = Server::at(OUTSIDE, moved(&first.url())).await;
    let third = Server::at(OUTSIDE, moved(&second.url())).await;
    assert_eq!(fetch(&third.url()).await.map(|fetched| fetched.mime), Ok("image/png"));
    let fourth = Server::at(OUTSIDE, moved(&third.url())).await;
    assert_eq!(fetch(&fourth.url()).await, Err(Unfetched::TooManyRedirects));

    let inside = Server::at(INSIDE, ok("", PNG)).await;
    let port = inside.address.port();
    for to in [
        inside.url(),
        format!("http://localhost.localdomain:{port}/"),
        format!("http://u:p@{OUTSIDE}/"),
        "file:///x".into(),
    ] {
        let there = Server::at(OUTSIDE, moved(&to)).await;
        assert_eq!(fetch(&there.url()).await, Err(Unfetched::Unreachable), "{to}");
    }
    assert_eq!(inside.asked(), 0, "somebody knocked");
}

#[tokio::test]
async fn sizes_are_bounded_while_the_bytes_come() {
    let big = [PNG, &[0; 4000]].concat();
    let with_length = Server::at(OUTSIDE, ok("", &big)).await;
    let long = Duration::from_secs(10);
    let fetch = async |url: &str, limit, room: &ByteBudget| {
        fetch_within(url, limit, room, long).await.map(|one| one.bytes.len())
    };
    assert_eq!(fetch(&with_length.url(), 4_100, &ByteBudget::new(4_100)).await, Ok(big.len()));
    assert_eq!(fetch(&with_length.url(), 4_000, &ByteBudget::new(10_000)).await, Err(Unfetched::TooLarge));
    // Without a length, until the connection ends.
    let without_length = Server::at(OUTSIDE, [b"HTTP/1.0 200 OK\r\n\r\n", &big[..]].concat()).await;
    assert_eq!(fetch(&without_length.url(), 4_000, &ByteBudget::new(10_000)).await, Err(Unfetched::TooLarge));
    // Each is small enough, both are not.
    let room = ByteBudget::new(5_000);
    assert_eq!(fetch(&with_length.url(), 4_100, &room).await, Ok(big.len()));
    assert_eq!(fetch(&with_length.url(), 4_100, &room).await, Err(Unfetched::TooMuch));
}

#[tokio::test]
async fn what_else_goes_wrong_is_reported_without_the_servers_words() {
    let silent = Server::at(OUTSIDE, "").await;
    let began = Instant::now();
    let outcome = fetch_within(&silent.url(), 100, &ByteBudget::new(100), Duration::from_millis(200)).await;
    assert_eq!(outcome, Err(Unfetched::Late));
    assert!(began.elapsed() < Duration::from_secs(5));
    let half = Server::at(OUTSIDE, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n\u{1}").await;
    assert_eq!(fetch(&half.url()).await, Err(Unfetched::Unreachable));
    let missing = Server::at(OUTSIDE, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(fetch(&missing.url()).await, Err(Unfetched::Status(404)));
    let packed = Server::at(OUTSIDE, ok("content-encoding: gzip\r\n", PNG)).await;
    assert_eq!(fetch(&packed.url()).await, Err(Unfetched::Encoded));
    let nobody = TcpListener::bind((OUTSIDE, 0)).await.unwrap().local_addr().unwrap();
    assert_eq!(fetch(&format!("http://{nobody}/")).await, Err(Unfetched::Unreachable));
}
