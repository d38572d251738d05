//! The client against small servers that behave badly on purpose.

use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tollgate_upstream::{
    BaseUrl, Blame, ChatAsk, Client, ClientSettings, Fault, IncomingBody, Provider, ProviderKind, ProviderSettings,
    ReplyBody, Secret, kind, read_whole,
};
use tollgate_wire::error::Code;

/// What the server does after it has read a request.
#[derive(Clone)]
enum Step {
    Send(&'static str),
    Wait(u64),
    /// Wait until the test says so.
    Signal,
    /// Hold the connection open without a word.
    Hang,
    Reset,
}

struct Server {
    address: SocketAddr,
    /// Ends the server when the test ends.
    _tasks: JoinSet<()>,
    requests: tokio::sync::mpsc::UnboundedReceiver<String>,
    closed: tokio::sync::mpsc::UnboundedReceiver<()>,
    /// Connections that were accepted.
    accepted: Arc<AtomicUsize>,
    /// What [`Step::Signal`] waits for, one for each.
    tell: Arc<Semaphore>,
}

async fn server(script: Vec<Step>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = tokio::sync::mpsc::unbounded_channel();
    let (gone, closed) = tokio::sync::mpsc::unbounded_channel();
    let (accepted, tell) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, signal) = (accepted.clone(), tell.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Relaxed);
            let (script, seen, gone, signal) = (script.clone(), seen.clone(), gone.clone(), signal.clone());
            connections.spawn(async move {
                talk(stream, &script, &seen, &signal).await;
                let _ = gone.send(());
            });
        }
    });
    Server { address, _tasks: tasks, requests, closed, accepted, tell }
}

async fn talk(
    mut stream: TcpStream,
    script: &[Step],
    seen: &tokio::sync::mpsc::UnboundedSender<String>,
    signal: &Semaphore,
) {
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream).await {
        let _ = seen.send(request);
        for step in script {
            match step {
                Step::Send(text) => {
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Step::Wait(millis) => sleep(Duration::from_millis(*millis)).await,
                Step::Signal => signal.acquire().await.unwrap().forget(),
                Step::Hang => {
                    // Until the other side closes.
                    let _ = stream.read(&mut [0; 64]).await;
                    return;
                }
                Step::Reset => return,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => all.extend_from_slice(&part[..count]),
        }
    }
}

fn openai() -> &'static ProviderKind {
    kind("openai").unwrap()
}

fn provider(address: SocketAddr, settings: ProviderSettings) -> Provider {
    let base = BaseUrl::parse(&format!("http://{address}/v1")).unwrap();
    Provider::new("test", openai(), base, Some(Secret::new("sk-hidden")), settings).unwrap()
}

/// For those who see the limits reached; whoever does not want to see them has the long ones of
/// [`patient`].
fn quick() -> ProviderSettings {
    ProviderSettings {
        first_byte: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        ..ProviderSettings::default()
    }
}

fn patient() -> ProviderSettings {
    ProviderSettings { first_byte: A_WHILE, idle: A_WHILE, ..ProviderSettings::default() }
}

/// Longer than any machine stands still.
const A_WHILE: Duration = Duration::from_secs(20);

fn client() -> Client {
    Client::new(ClientSettings { connect_timeout: Duration::from_secs(1), ..ClientSettings::default() })
}

async fn ask(client: &Client, provider: &Provider) -> Result<http::Response<IncomingBody>, Fault> {
    let body = Bytes::from_static(b"{\"model\":\"m\"}");
    let ask = ChatAsk { body, call_id: "call_77", model: "m", stream: false, passed: &[] };
    client.send(provider, provider.chat(ask).unwrap()).await
}

fn harmless(fault: &Fault) {
    let text = format!("{fault} {fault:?}");
    assert!(!text.contains("127.0.0.1") && !text.contains("hidden") && !text.contains("http://"), "{text}");
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn the_request_as_the_provider_sees_it() {
    let mut server = server(vec![Step::Send(OK)]).await;
    let provider = provider(server.address, patient());
    let client = client();
    for _ in 0..3 {
        let response = ask(&client, &provider).await.unwrap();
        assert_eq!(read_whole(response.into_body(), 100, provider.settings.idle).await.unwrap(), "hello");
        let request = server.requests.recv().await.unwrap();
        assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
        for line in [
            "authorization: Bearer sk-hidden\r\n",
            "content-type: application/json\r\n",
            "accept-encoding: identity\r\n",
            "content-length: 13\r\n",
            "x-client-request-id: call_77\r\n",
        ] {
            assert!(request.contains(line), "{line} in {request}");
        }
        assert!(request.ends_with("\r\n\r\n{\"model\":\"m\"}"));
    }
    assert!(server.closed.try_recv().is_err(), "the connection is used again");
}

#[tokio::test]
async fn nobody_there_means_nothing_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fault = ask(&client(), &provider(address, patient())).await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.code, fault.sent, fault.try_other),
        (Blame::Network, Code::UpstreamError, false, true)
    );
    assert!(!fault.maybe_charged);
    harmless(&fault);
}

#[tokio::test]
async fn a_tls_handshake_that_hangs_ends_in_time() {
    let server = server(vec![]).await;
    let base = BaseUrl::parse(&format!("https://{}/v1", server.address)).unwrap();
    let provider = Provider::new("tls", openai(), base, None, ProviderSettings::default()).unwrap();
    let start = Instant::now();
    let fault = ask(&client(), &provider).await.unwrap_err();
    assert!(start.elapsed() < A_WHILE);
    assert_eq!((fault.code, fault.sent), (Code::UpstreamTimeout, false));
    harmless(&fault);
}

#[tokio::test]
async fn an_unknown_host_means_nothing_sent() {
    let base = BaseUrl::parse("http://nobody.invalid/v1").unwrap();
    let provider = Provider::new("dns", openai(), base, None, ProviderSettings::default()).unwrap();
    let fault = ask(&client(), &provider).await.unwrap_err();
    assert!(!fault.sent && !fault.message.contains("invalid"));
}

#[tokio::test]
async fn a_reset_may_have_been_charged() {
    for script in [
        vec![Step::Reset],
        vec![Step::Send("HTTP/1.1 200"), Step::Reset],
        vec![Step::Send("garbage\r\n\r\n"), Step::Reset],
    ] {
        let server = server(script).await;
        let fault = ask(&client(), &provider(server.address, patient())).await.unwrap_err();
        assert_eq!((fault.code, fault.sent, fault.maybe_charged), (Code::UpstreamError, true, true));
        harmless(&fault);
    }
}

#[tokio::test]
async fn headers_that_do_not_come_end_the_wait_and_the_connection() {
    let mut server = server(vec![Step::Hang]).await;
    let fault = ask(&client(), &provider(server.address, quick())).await.unwrap_err();
    assert_eq!((fault.code, fault.sent, fault.upstream_status), (Code::UpstreamTimeout, true, None));
    timeout(A_WHILE, server.closed.recv()).await.expect("cancelled upstream");
}

#[tokio::test]
async fn chunks_come_as_they_are_sent() {
    let script = vec![
        Step::Send(STREAM),
        Step::Send("3\r\nabc\r\n"),
        Step::Signal,
        Step::Send("2\r\nde\r\n"),
        Step::Signal,
        Step::Send("1\r\nf\r\n"),
        Step::Signal,
        Step::Send("0\r\n\r\n"),
    ];
    let server = server(script).await;
    let provider = provider(server.address, patient());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = ReplyBody::new(response.into_body(), provider.settings.idle);
    assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
    // A call that was given up loses nothing.
    assert!(timeout(Duration::from_millis(20), body.chunk()).await.is_err());
    for next in ["de", "f"] {
        server.tell.add_permits(1);
        assert_eq!(body.chunk().await.unwrap().unwrap(), next);
    }
    server.tell.add_permits(1);
    assert_eq!(body.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_body_may_take_longer_than_the_idle_limit_if_it_is_never_idle_for_so_long() {
    let mut script = vec![Step::Send(STREAM)];
    for _ in 0..5 {
        script.extend([Step::Send("1\r\na\r\n"), Step::Wait(500)]);
    }
    script.push(Step::Send("0\r\n\r\n"));
    let server = server(script).await;
    let idle = Duration::from_secs(2);
    let provider = provider(server.address, ProviderSettings { idle, ..patient() });
    let response = ask(&client(), &provider).await.unwrap();
    let start = Instant::now();
    assert_eq!(read_whole(response.into_body(), 100, idle).await.unwrap(), "aaaaa");
    assert!(start.elapsed() > idle);
}

#[tokio::test]
async fn silence_in_the_middle_is_idle() {
    let script =
        vec![Step::Send(STREAM), Step::Send("3\r\nabc\r\n"), Step::Signal, Step::Send("1\r\nd\r\n"), Step::Hang];
    let server = server(script).await;
    let provider = provider(server.address, patient());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = ReplyBody::new(response.into_body(), Duration::from_secs(1));
    assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
    server.tell.add_permits(1);
    assert_eq!(body.chunk().await.unwrap().unwrap(), "d");
    let start = Instant::now();
    let fault = body.chunk().await.unwrap_err();
    assert_eq!((fault.code, fault.maybe_charged), (Code::UpstreamTimeout, true));
    assert!((Duration::from_millis(900)..A_WHILE).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_cut_body_is_a_fault_not_an_end() {
    for start in [STREAM, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"] {
        let server = server(vec![Step::Send(start), Step::Send("3\r\nabc\r\n"), Step::Reset]).await;
        let provider = provider(server.address, patient());
        let response = ask(&client(), &provider).await.unwrap();
        let fault = read_whole(response.into_body(), 1000, provider.settings.idle).await.unwrap_err();
        assert_eq!((fault.code, fault.blame), (Code::UpstreamError, Blame::Network));
        harmless(&fault);
    }
}

#[tokio::test]
async fn a_reply_larger_than_the_limit_is_refused() {
    for script in [
        vec![Step::Send(OK)],
        vec![Step::Send(STREAM), Step::Send("3\r\nabc\r\n"), Step::Wait(50), Step::Send("3\r\nabc\r\n"), Step::Hang],
    ] {
        let server = server(script).await;
        let provider = provider(server.address, patient());
        let response = ask(&client(), &provider).await.unwrap();
        let fault = read_whole(response.into_body(), 4, provider.settings.idle).await.unwrap_err();
        assert_eq!(fault.code, Code::UpstreamInvalidReply);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mut elsewhere = server(vec![Step::Send(OK)]).await;
    let reply: &'static str = Box::leak(
        format!("HTTP/1.1 307 x\r\nlocation: http://{}/v1\r\ncontent-length: 0\r\n\r\n", elsewhere.address)
            .into_boxed_str(),
    );
    let server = server(vec![Step::Send(reply)]).await;
    let provider = provider(server.address, patient());
    let client = client();
    let response = ask(&client, &provider).await.unwrap();
    assert_eq!(response.status(), 307);
    let fault = provider.kind.chat.unwrap().fault(&client.refused(&provider, response).await);
    assert_eq!((fault.blame, fault.upstream_status), (Blame::Operator, Some(307)));
    assert!(elsewhere.requests.try_recv().is_err());
}

#[tokio::test]
async fn an_error_text_is_read_within_bounds() {
    let text =
        "HTTP/1.1 400 x\r\ntransfer-encoding: chunked\r\n\r\n24\r\n{\"error\":{\"message\":\"n is too big\"}}\r\n";
    let server = server(vec![Step::Send(text), Step::Hang]).await;
    let provider = provider(server.address, quick());
    let client = client();
    let response = ask(&client, &provider).await.unwrap();
    let fault = provider.kind.chat.unwrap().fault(&client.refused(&provider, response).await);
    assert_eq!((fault.blame, fault.message.as_str()), (Blame::Caller, "n is too big"));
}

#[tokio::test]
async fn dropping_the_body_cancels_upstream() {
    let mut server = server(vec![Step::Send(STREAM), Step::Send("3\r\nabc\r\n"), Step::Hang]).await;
    let provider = provider(server.address, ProviderSettings::default());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = ReplyBody::new(response.into_body(), provider.settings.idle);
    body.chunk().await.unwrap();
    drop(body);
    timeout(A_WHILE, server.closed.recv()).await.expect("closed");
}

/// Asks twice; says what came and whether the second request found the connection of the first.
async fn twice(reply: &'static str) -> (Result<Bytes, Fault>, bool) {
    let server = server(vec![Step::Send(reply)]).await;
    let (provider, client) = (provider(server.address, patient()), client());
    let mut outcome = Ok(Bytes::new());
    for _ in 0..2 {
        outcome = match ask(&client, &provider).await {
            Ok(response) => read_whole(response.into_body(), 1_000, provider.settings.idle).await,
            Err(fault) => Err(fault),
        };
    }
    (outcome, server.accepted.load(Relaxed) == 1)
}

#[tokio::test]
async fn a_connection_is_used_again_only_where_the_next_reply_is_certain_to_be_the_next() {
    let chunked = "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let table = [
        ("200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned(), true),
        (format!("200 OK\r\n{chunked}"), true),
        (format!("100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n{chunked}"), true),
        ("200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello".to_owned(), false),
        // Something that nobody asked for.
        ("200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n".to_owned(), false),
        (format!("200 OK\r\n{chunked}more"), false),
        (format!("200 OK\r\ncontent-length: 3\r\n{chunked}"), false),
    ];
    for (reply, again) in table {
        let text: &'static str = Box::leak(format!("HTTP/1.1 {reply}").into_boxed_str());
        let (body, used_again) = twice(text).await;
        assert_eq!(body.as_deref().ok(), Some(&b"hello"[..]), "{reply}");
        assert_eq!(used_again, again, "{reply}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_its_connection() {
    let server =
        server(vec![Step::Send("HTTP/1.1 200 OK\r\n\r\nhel"), Step::Wait(30), Step::Send("lo"), Step::Reset]).await;
    let provider = provider(server.address, patient());
    let response = ask(&client(), &provider).await.unwrap();
    assert_eq!(read_whole(response.into_body(), 100, provider.settings.idle).await.unwrap(), "hello");
}

#[tokio::test]
async fn nonsense_is_a_reset_before_the_head_and_a_cut_after_it() {
    for head in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "HTTP/1.1 101 Odd\r\n\r\n",
    ] {
        let (outcome, again) = twice(head).await;
        let fault = outcome.unwrap_err();
        assert!(fault.maybe_charged && !again, "{head} {fault:?}");
    }
    let (outcome, again) = twice("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n").await;
    assert!(outcome.unwrap_err().maybe_charged && !again);
}

#[tokio::test]
async fn a_connection_the_provider_has_closed_is_not_used() {
    let mut server = server(vec![Step::Send(OK), Step::Reset]).await;
    let (provider, client) = (provider(server.address, patient()), client());
    for _ in 0..5 {
        let response = ask(&client, &provider).await.unwrap();
        assert_eq!(read_whole(response.into_body(), 100, provider.settings.idle).await.unwrap(), "hello");
        server.closed.recv().await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_time() {
    let mut server = server(vec![Step::Send(OK)]).await;
    let pool_idle = Duration::from_secs(2);
    let client = Client::new(ClientSettings { pool_idle, ..ClientSettings::default() });
    let provider = provider(server.address, patient());
    let response = ask(&client, &provider).await.unwrap();
    read_whole(response.into_body(), 100, provider.settings.idle).await.unwrap();
    client.tidy();
    assert!(timeout(Duration::from_millis(20), server.closed.recv()).await.is_err(), "too young");
    sleep(pool_idle).await;
    client.tidy();
    timeout(A_WHILE, server.closed.recv()).await.unwrap().unwrap();
}

fn large(body: Bytes) -> ChatAsk<'static> {
    ChatAsk { body, call_id: "call_1", model: "m", stream: false, passed: &[] }
}

/// A provider that refuses a large body before it has read it.
#[tokio::test]
async fn an_answer_may_come_before_the_request_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let provider = provider(listener.local_addr().unwrap(), ProviderSettings::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 100]).await.unwrap();
        stream.write_all(b"HTTP/1.1 413 No\r\ncontent-length: 3\r\n\r\nbig").await.unwrap();
        // Reads no more, and does not close either.
        sleep(2 * A_WHILE).await;
    });
    let client = client();
    let asked = client.send(&provider, provider.chat(large(Bytes::from(vec![b'x'; 8 << 20]))).unwrap());
    let response = timeout(A_WHILE, asked).await.unwrap().unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(read_whole(response.into_body(), 100, provider.settings.idle).await.unwrap(), "big");
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let mut server = server(vec![Step::Send(OK)]).await;
    let provider = provider(server.address, ProviderSettings::default());
    let body = Bytes::from("0123456789".repeat(100_000));
    let response = client().send(&provider, provider.chat(large(body.clone())).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let request = server.requests.recv().await.unwrap();
    assert!(request.contains("content-length: 1000000\r\n") && request.as_bytes().ends_with(&body));
}

#[tokio::test]
async fn pieces_stay_apart_that_arrive_together() {
    let together =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n";
    let server = server(vec![Step::Send(together)]).await;
    let provider = provider(server.address, patient());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = ReplyBody::new(response.into_body(), provider.settings.idle);
    for piece in ["one", "two", "three"] {
        assert_eq!(body.chunk().await.unwrap().unwrap(), piece);
    }
    assert!(body.is_end(), "the end came with the last piece");
    assert_eq!(body.chunk().await.unwrap(), None);
}
