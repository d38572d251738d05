//! The client against small servers that behave badly on purpose.

use bytes::Bytes;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tollgate_upstream::{
    BaseUrl, Blame, Body, ChatAsk, Client, ClientSettings, Fault, OpenAi, Provider, Secret, Settings, read_whole,
};
use tollgate_wire::error::Code;

/// What the server does after it has read a request.
#[derive(Clone)]
enum Step {
    Send(&'static str),
    Wait(u64),
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
}

async fn server(script: Vec<Step>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = tokio::sync::mpsc::unbounded_channel();
    let (gone, closed) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (script, seen, gone) = (script.clone(), seen.clone(), gone.clone());
            connections.spawn(async move {
                talk(stream, &script, &seen).await;
                let _ = gone.send(());
            });
        }
    });
    Server { address, _tasks: tasks, requests, closed }
}

async fn talk(mut stream: TcpStream, script: &[Step], seen: &tokio::sync::mpsc::UnboundedSender<String>) {
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

fn provider(address: SocketAddr, settings: Settings) -> Provider {
    let base = BaseUrl::parse(&format!("http://{address}/v1")).unwrap();
    Provider::new("test", &OpenAi, base, Some(Secret::new("sk-hidden")), settings).unwrap()
}

fn quick() -> Settings {
    Settings { first_byte: Duration::from_millis(300), idle: Duration::from_millis(300), ..Settings::default() }
}

fn client() -> Client {
    Client::new(ClientSettings { connect_timeout: Duration::from_millis(500), ..ClientSettings::default() })
}

async fn ask(client: &Client, provider: &Provider) -> Result<http::Response<hyper::body::Incoming>, Fault> {
    let body = Bytes::from_static(b"{\"model\":\"m\"}");
    let ask = ChatAsk { body, call_id: "call_77", model: "m", stream: false, passed: &[] };
    client.send(provider, provider.chat(ask)).await
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
    let provider = provider(server.address, quick());
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
    let fault = ask(&client(), &provider(address, quick())).await.unwrap_err();
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
    let provider = Provider::new("tls", &OpenAi, base, None, Settings::default()).unwrap();
    let start = Instant::now();
    let fault = ask(&client(), &provider).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!((fault.code, fault.sent), (Code::UpstreamTimeout, false));
    harmless(&fault);
}

#[tokio::test]
async fn an_unknown_host_means_nothing_sent() {
    let base = BaseUrl::parse("http://nobody.invalid/v1").unwrap();
    let provider = Provider::new("dns", &OpenAi, base, None, Settings::default()).unwrap();
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
        let fault = ask(&client(), &provider(server.address, quick())).await.unwrap_err();
        assert_eq!((fault.code, fault.sent, fault.maybe_charged), (Code::UpstreamError, true, true));
        harmless(&fault);
    }
}

#[tokio::test]
async fn headers_that_do_not_come_end_the_wait_and_the_connection() {
    let mut server = server(vec![Step::Hang]).await;
    let fault = ask(&client(), &provider(server.address, quick())).await.unwrap_err();
    assert_eq!((fault.code, fault.sent, fault.upstream_status), (Code::UpstreamTimeout, true, None));
    timeout(Duration::from_secs(1), server.closed.recv()).await.expect("cancelled upstream");
}

#[tokio::test]
async fn chunks_come_as_they_are_sent() {
    let script = vec![
        Step::Send(STREAM),
        Step::Send("3\r\nabc\r\n"),
        Step::Wait(200),
        Step::Send("2\r\nde\r\n"),
        Step::Wait(200),
        Step::Send("1\r\nf\r\n"),
        Step::Wait(200),
        Step::Send("0\r\n\r\n"),
    ];
    let server = server(script).await;
    let provider = provider(server.address, quick());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = Body::new(response.into_body(), provider.settings.idle);
    let start = Instant::now();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
    assert!(start.elapsed() < Duration::from_millis(150));
    // A call that was given up loses nothing.
    assert!(timeout(Duration::from_millis(20), body.chunk()).await.is_err());
    assert_eq!(body.chunk().await.unwrap().unwrap(), "de");
    assert_eq!(body.chunk().await.unwrap().unwrap(), "f");
    // Longer than the idle limit altogether, but never idle for so long.
    assert_eq!(body.chunk().await.unwrap(), None);
    assert!(start.elapsed() > Duration::from_millis(500));
}

#[tokio::test]
async fn silence_in_the_middle_is_idle() {
    let server = server(vec![
        Step::Send(STREAM),
        Step::Send("3\r\nabc\r\n"),
        Step::Wait(150),
        Step::Send("1\r\nd\r\n"),
        Step::Hang,
    ])
    .await;
    let provider = provider(server.address, quick());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = Body::new(response.into_body(), provider.settings.idle);
    assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
    assert_eq!(body.chunk().await.unwrap().unwrap(), "d");
    let start = Instant::now();
    let fault = body.chunk().await.unwrap_err();
    let waited = start.elapsed();
    assert_eq!((fault.code, fault.maybe_charged), (Code::UpstreamTimeout, true));
    assert!((Duration::from_millis(250)..Duration::from_millis(700)).contains(&waited), "{waited:?}");
}

#[tokio::test]
async fn a_cut_body_is_a_fault_not_an_end() {
    for start in [STREAM, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"] {
        let server = server(vec![Step::Send(start), Step::Send("3\r\nabc\r\n"), Step::Reset]).await;
        let provider = provider(server.address, quick());
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
        let provider = provider(server.address, quick());
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
    let provider = provider(server.address, quick());
    let client = client();
    let response = ask(&client, &provider).await.unwrap();
    assert_eq!(response.status(), 307);
    let fault = client.fault(&provider, response).await;
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
    let fault = client.fault(&provider, response).await;
    assert_eq!((fault.blame, fault.message.as_str()), (Blame::Caller, "n is too big"));
}

#[tokio::test]
async fn dropping_the_body_cancels_upstream() {
    let mut server = server(vec![Step::Send(STREAM), Step::Send("3\r\nabc\r\n"), Step::Hang]).await;
    let provider = provider(server.address, Settings::default());
    let response = ask(&client(), &provider).await.unwrap();
    let mut body = Body::new(response.into_body(), provider.settings.idle);
    body.chunk().await.unwrap();
    drop(body);
    timeout(Duration::from_secs(1), server.closed.recv()).await.expect("closed within a second");
}
