//! Connections that change their protocol (status 101), plain and through TLS.

use futures_util::{SinkExt as _, StreamExt as _};
use http::{Method, Request};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tollgate_upstream::{
    BaseUrl, Blame, Client, ClientSettings, Outgoing, Payload, Provider, ProviderSettings, Secret, Upgrade, kind,
    read_whole,
};
use tollgate_wire::error::Code;

/// Nonce and proof of the handshake, as RFC 6455 has them.
const NONCE: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

fn provider(scheme: &str, address: SocketAddr, settings: ProviderSettings) -> Provider {
    let base = BaseUrl::parse(&format!("{scheme}://{address}/v1")).unwrap();
    Provider::new("test", kind("openai").unwrap(), base, Some(Secret::new("sk-hidden")), settings).unwrap()
}

fn handshake(provider: &Provider) -> Outgoing {
    let mut request = Request::new(Payload::default());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = provider.base_url.join("/realtime?model=m").unwrap();
    for (name, value) in [("upgrade", "websocket"), ("sec-websocket-version", "13"), ("sec-websocket-key", NONCE)] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

struct Server {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
    /// One for each connection that has ended.
    closed: mpsc::UnboundedReceiver<()>,
    _tasks: JoinSet<()>,
}

/// Answers every connection's first request with this, and repeats whatever comes after it.
async fn server(answer: &'static str) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = mpsc::unbounded_channel();
    let (gone, closed) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, gone) = (seen.clone(), gone.clone());
            connections.spawn(async move {
                if let Some(head) = head(&mut stream).await {
                    seen.send(head).unwrap();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                }
                gone.send(()).unwrap();
            });
        }
    });
    Server { address, requests, closed, _tasks: tasks }
}

fn client() -> Client {
    Client::new(ClientSettings::default())
}

#[tokio::test]
async fn a_changed_connection_carries_bytes_both_ways_and_is_never_used_again() {
    let early = Box::leak(format!("{SWITCHED}and more").into_boxed_str());
    let mut server = server(early).await;
    let (client, provider) = (client(), provider("http", server.address, ProviderSettings::default()));
    let upgrade = client.upgrade(&provider, handshake(&provider)).await.unwrap();
    let Upgrade::Switched(reply) = upgrade else { panic!("{upgrade:?}") };
    assert_eq!((reply.status().as_u16(), reply.headers()["upgrade"].as_bytes()), (101, &b"websocket"[..]));
    let asked = server.requests.recv().await.unwrap();
    assert!(asked.starts_with("GET /v1/realtime?model=m HTTP/1.1\r\n"), "{asked}");
    for line in ["upgrade: websocket\r\n", "connection: upgrade\r\n", "sec-websocket-key: "] {
        assert!(asked.contains(line), "{asked}");
    }
    assert!(!asked.contains("content-length"), "{asked}");
    let mut stream = reply.into_body();
    // What came together with the head, in reads that are shorter.
    let mut some = [0; 8];
    stream.read_exact(&mut some[..3]).await.unwrap();
    stream.read_exact(&mut some[3..]).await.unwrap();
    assert_eq!(&some, b"and more");
    for text in ["one", "two"] {
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut back = [0; 3];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, text.as_bytes());
    }
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "it ends at both sides");
    drop(stream);
    server.closed.recv().await.unwrap();
    // Another one is a connection of its own.
    client.upgrade(&provider, handshake(&provider)).await.unwrap();
    server.requests.recv().await.unwrap();
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_refusal_is_an_ordinary_reply() {
    let refused =
        "HTTP/1.1 401 No\r\ncontent-length: 47\r\n\r\n{\"error\":{\"code\":\"invalid_api_key\",\"message\":1}}";
    let mut server = server(refused).await;
    let (client, provider) = (client(), provider("http", server.address, ProviderSettings::default()));
    let upgrade = client.upgrade(&provider, handshake(&provider)).await.unwrap();
    let Upgrade::Refused(reply) = upgrade else { panic!("{upgrade:?}") };
    let refused = client.refused(&provider, reply).await;
    assert_eq!(refused.body.len(), 47);
    assert_eq!(provider.kind.chat.unwrap().fault(&refused).blame, Blame::Operator);
    server.closed.recv().await.unwrap();
    // One that goes on with something else than was asked for is read as what it is.
    let other = server_of(OK).await;
    let Upgrade::Refused(reply) = client.upgrade(&other.1, handshake(&other.1)).await.unwrap() else { panic!() };
    assert_eq!(read_whole(reply.into_body(), 9, Duration::from_secs(20)).await.unwrap(), "hello");
}

async fn server_of(answer: &'static str) -> (Server, Provider) {
    let server = server(answer).await;
    let provider = provider("http", server.address, ProviderSettings::default());
    (server, provider)
}

#[tokio::test]
async fn nobody_changes_the_protocol_unasked_or_to_another() {
    for wrong in [
        "HTTP/1.1 101 S\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 101 S\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        "HTTP/1.0 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ] {
        let (_server, provider) = server_of(wrong).await;
        let fault = client().upgrade(&provider, handshake(&provider)).await.unwrap_err();
        assert_eq!((fault.blame, fault.code, fault.sent), (Blame::Network, Code::UpstreamError, true), "{wrong}");
    }
    // The same request, sent as an ordinary one: its header alone asks for nothing.
    let (_server, provider) = server_of(SWITCHED).await;
    assert!(client().send(&provider, handshake(&provider)).await.unwrap_err().sent);
}

#[tokio::test]
async fn a_handshake_has_the_limits_of_any_request() {
    let silent = server("").await;
    let quick = ProviderSettings { first_byte: Duration::from_millis(300), ..ProviderSettings::default() };
    let provider = provider("http", silent.address, quick);
    let fault = client().upgrade(&provider, handshake(&provider)).await.unwrap_err();
    assert_eq!((fault.blame, fault.code), (Blame::Provider, Code::UpstreamTimeout));
    let long = Box::leak(format!("HTTP/1.1 101 S\r\na: {}", "x".repeat(70_000)).into_boxed_str());
    let (_server, provider) = server_of(long).await;
    assert!(client().upgrade(&provider, handshake(&provider)).await.unwrap_err().sent);
}

/// A WebSocket through TLS, spoken by the library that will speak it.
#[cfg(feature = "testing")]
#[tokio::test]
async fn a_websocket_through_tls() {
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio_rustls::TlsAcceptor;

    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key.into()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let provider = provider("https", listener.local_addr().unwrap(), ProviderSettings::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        socket.send(Message::text("first")).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = Client::trusting(ClientSettings::default(), roots);
    let Upgrade::Switched(reply) = client.upgrade(&provider, handshake(&provider)).await.unwrap() else { panic!() };
    assert_eq!(reply.headers()["sec-websocket-accept"], PROOF);
    let mut socket = WebSocketStream::from_raw_socket(reply.into_body(), Role::Client, None).await;
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("first"));
    let long = "word ".repeat(100_000);
    socket.send(Message::text(long.clone())).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(long));
    socket.close(None).await.unwrap();
    while socket.next().await.is_some() {}
    tasks.join_next().await.unwrap().unwrap();
}
