//! TLS on the listening port: both versions of HTTP and WebSockets through it, changed files, bad
//! files, and those who never finish their handshake.

use crate::house::{House, Plan, chat, streamed};
use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tollgate_store::Ending;

/// A new certificate of its own, written where the gateway reads it.
fn pair(dir: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(dir.join("cert.pem"), cert.pem()).expect("written");
    std::fs::write(dir.join("key.pem"), signing_key.serialize_pem()).expect("written");
    cert.der().clone()
}

/// A house with TLS; more settings stand in tables.
pub async fn encrypted(limits: &str, catalog: &'static str) -> (House, TempDir, CertificateDer<'static>) {
    let dir = tempfile::tempdir().expect("a folder");
    let trusted = pair(dir.path());
    let config = format!("tls_cert = \"{0}/cert.pem\"\ntls_key = \"{0}/key.pem\"\n{limits}", dir.path().display());
    (House::with(Plan { config, catalog, ..Plan::default() }).await, dir, trusted)
}

async fn connected(house: &House) -> TcpStream {
    TcpStream::connect(house.running().address).await.expect("connected")
}

/// A handshake of somebody who trusts this certificate and speaks these protocols.
pub async fn shake(
    house: &House,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = "127.0.0.1".try_into().expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, connected(house).await).await
}

fn request(house: &House, body: &Value, more: &str) -> String {
    let body = body.to_string();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{more}\r\n{body}",
        house.key,
        body.len()
    )
}

/// One call on a connection of its own: all that came back.
async fn call(house: &House, trusted: &CertificateDer<'static>, protocols: &[&str]) -> std::io::Result<String> {
    let mut stream = shake(house, trusted, protocols).await?;
    stream.write_all(request(house, &chat("hi"), "connection: close\r\n").as_bytes()).await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..2_400 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen within half a minute");
}

async fn is_closed(mut socket: TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = socket.read_to_end(&mut rest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_are_spoken_inside() {
    let (house, _dir, trusted) = encrypted("", "").await;
    let meter = house.running().app.metrics.tls.clone();
    for protocols in [&["http/1.1"][..], &[]] {
        let said = call(&house, &trusted, protocols).await.expect("a reply");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{protocols:?}: {said}");
    }
    let stream = shake(&house, &trusted, &["http/1.1", "h2"]).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (send, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let asking = async {
        let mut send = send.ready().await.expect("ready");
        let authorization = format!("Bearer {}", house.key);
        let request = http::Request::get(house.url("/v1/balance")).header("authorization", authorization);
        let (reply, _) = send.send_request(request.body(()).expect("a request"), true).expect("sent");
        let mut reply = reply.await.expect("a reply").into_body();
        let mut body = Vec::new();
        while let Some(data) = reply.data().await {
            body.extend_from_slice(&data.expect("the whole reply"));
        }
        body
    };
    let body = tokio::select! {
        body = asking => body,
        ended = connection => panic!("{ended:?}"),
    };
    assert!(String::from_utf8_lossy(&body).contains("available_nano_usd"));
    assert_eq!((meter.handshakes("done"), meter.handshakes("failed")), (3, 0));
    // Nobody speaks what was not offered, and nobody is believed who is not trusted.
    let refused = shake(&house, &trusted, &["spdy/3"]).await.expect_err("another protocol");
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    let elsewhere = pair(tempfile::tempdir().expect("a folder").path());
    assert!(shake(&house, &elsewhere, &[]).await.is_err());
    until("both failures", async || meter.handshakes("failed") == 2).await;
    assert_eq!(meter.ends(), 67_090_118_400, "the end of the certificate is seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_opens_inside() {
    let (house, _dir, trusted) = encrypted("", "").await;
    let stream = shake(&house, &trusted, &["http/1.1"]).await.expect("a handshake");
    let mut request = "wss://127.0.0.1/v1/responses".into_client_request().expect("a request");
    request.headers_mut().insert("authorization", format!("Bearer {}", house.key).parse().expect("a header"));
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.expect("a WebSocket");
    let ask = json!({ "type": "response.create", "model": "plain", "input": "hi", "store": false });
    socket.send(Message::text(ask.to_string())).await.expect("sent");
    let event = socket.next().await.expect("an event").expect("well-formed");
    assert!(event.is_text(), "{event:?}");
    socket.close(None).await.expect("closed");
    while let Some(Ok(_)) = socket.next().await {}
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_pointed_to_tls() {
    let (house, _dir, _) = encrypted("", "").await;
    let mut socket = connected(&house).await;
    socket.write_all(request(&house, &chat("hi"), "").as_bytes()).await.expect("sent");
    let mut said = String::new();
    socket.read_to_string(&mut said).await.expect("closed, not reset");
    assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n") && said.contains("https://"), "{said}");
    assert!(!said.contains(&house.key));
    assert_eq!(house.running().app.metrics.tls.handshakes("plain_http"), 1);
}

/// The record that begins a handshake, and less of it than it says.
const HALF: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00];

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_does_not_end_is_ended() {
    let (house, _dir, trusted) = encrypted("[limits]\nheader_time = \"200ms\"\n", "").await;
    let metrics = house.running().app.metrics.connections.clone();
    for part in [&[][..], HALF] {
        let mut socket = connected(&house).await;
        // On a slow machine it may be closed before.
        let _ = socket.write_all(part).await;
        is_closed(socket).await;
    }
    assert_eq!(metrics.count("silent"), 2);
    // Whoever finishes it and asks nothing has no more time than that.
    if let Ok(mut stream) = shake(&house, &trusted, &[]).await {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(metrics.count("silent"), 3);
    // What is no TLS at all.
    let mut socket = connected(&house).await;
    let _ = socket.write_all(&[0x16, 0x05, 0x05, 0x00, 0x01, 0x00]).await;
    is_closed(socket).await;
}

/// Three times as many unfinished handshakes as there may be keep no customer out.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_handshakes_give_way_to_new_ones() {
    let (house, _dir, trusted) = encrypted("[limits]\nhandshakes = 4\nheader_time = \"1h\"\n", "").await;
    let app = house.running().app.clone();
    let mut crowd = Vec::new();
    for number in 1..=12 {
        let mut socket = connected(&house).await;
        socket.write_all(HALF).await.expect("sent");
        crowd.push(socket);
        if number % 4 == 0 {
            let said = call(&house, &trusted, &["http/1.1"]).await.expect("a reply");
            assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        }
    }
    // Of fifteen newcomers three finished; of the others four may be left, and all places are free.
    until("the end of the others", async || app.metrics.connections.count("evicted") >= 8).await;
    assert_eq!(app.metrics.connections.count("full"), 0);
    assert!(app.metrics.connections.open.get() <= 4 + 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_files_are_taken_over_and_a_stream_goes_on() {
    let (house, dir, first) = encrypted("", "").await;
    let meter = house.running().app.metrics.tls.clone();
    let mut running = shake(&house, &first, &["http/1.1"]).await.expect("a handshake");
    let slow = request(&house, &streamed("[[sim:tokens=40 delay_ms=50]]"), "connection: close\r\n");
    running.write_all(slow.as_bytes()).await.expect("sent");
    let mut begun = [0; 15];
    running.read_exact(&mut begun).await.expect("the status line");

    let second = pair(dir.path());
    until("the new pair", async || meter.loads.get() > 0 && meter.stale.get() == 0).await;
    until("its use", async || call(&house, &second, &[]).await.is_ok()).await;
    assert!(call(&house, &first, &[]).await.is_err(), "the old one is not served any more");
    let mut rest = String::new();
    running.read_to_string(&mut rest).await.expect("the whole stream");
    assert!(rest.contains("data: [DONE]"), "{rest}");

    // The certificate of one and the key of another.
    let good = std::fs::read_to_string(dir.path().join("key.pem")).expect("read");
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    std::fs::write(dir.path().join("key.pem"), &other).expect("written");
    until("the alarm", async || meter.stale.get() == 1).await;
    assert!(call(&house, &second, &[]).await.is_ok(), "the old pair stays");
    // A mistake in a certificate keeps the catalog from nothing.
    assert_eq!(house.running().app.metrics.catalog_stale.get(), 0);
    std::fs::write(dir.path().join("key.pem"), &good).expect("written");
    until("the recovery", async || meter.stale.get() == 0).await;
    assert!(call(&house, &second, &[]).await.is_ok());
}

/// A client that never reads is let go through TLS as it is without.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_let_go() {
    const ENDLESS: &str = "[model.\"endless\"]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    let (house, _dir, trusted) = encrypted("[limits]\nwrite_time = \"1s\"\n", ENDLESS).await;
    let mut body = streamed("[[sim:tokens=900 size=60000]]");
    body["model"] = json!("endless");
    let mut stream = shake(&house, &trusted, &["http/1.1"]).await.expect("a handshake");
    stream.write_all(request(&house, &body, "").as_bytes()).await.expect("sent");
    let mut begun = [0; 15];
    stream.read_exact(&mut begun).await.expect("the status line");
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
    house.quiet().await;
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert_eq!(rows[0].ending, Ending::ClientLeft);
    assert!(rows[0].charge.nano() > 0);
    drop(stream);
}

/// A stop lets streams end and waits for no handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_streams_and_for_no_handshake() {
    let (mut house, _dir, trusted) = encrypted("[limits]\nheader_time = \"1h\"\ndrain_time = \"1h\"\n", "").await;
    let mut stream = shake(&house, &trusted, &["http/1.1"]).await.expect("a handshake");
    stream.write_all(request(&house, &streamed("[[sim:tokens=5 delay_ms=100]]"), "").as_bytes()).await.expect("sent");
    let mut begun = [0; 15];
    stream.read_exact(&mut begun).await.expect("the status line");
    let mut half = connected(&house).await;
    half.write_all(HALF).await.expect("sent");
    let open = house.running().app.metrics.connections.open.clone();
    until("both connections", async || open.get() == 2).await;
    let rest = async {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.expect("a proper end");
        rest
    };
    // With an hour for both, only a stop that waits for no handshake comes to an end.
    let (rest, (), ()) = tokio::join!(rest, is_closed(half), house.restart());
    assert!(rest.contains("data: [DONE]"), "{rest}");
    assert_eq!(house.running().recovered, Default::default());
}

#[test]
fn each_mistake_in_the_files_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    pair(dir.path());
    let (cert, key) = (std::fs::read_to_string(dir.path().join("cert.pem")), dir.path().join("key.pem"));
    let (cert, key) = (cert.expect("read"), std::fs::read_to_string(key).expect("read"));
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let nonsense = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    for (setting, cert, key, expected) in [
        ("tls_cert = \"cert.pem\"", &*cert, &*key, "tls_cert: needs the key beside it, in tls_key"),
        ("tls_key = \"key.pem\"", &cert, &key, "tls_key: needs the certificate beside it, in tls_cert"),
        ("tls_cert = \"no.pem\"\ntls_key = \"key.pem\"", &cert, &key, "no.pem cannot be read"),
        ("", &key, &key, "tls_cert: has no certificate in it (PEM is expected)"),
        ("", nonsense, &key, "tls_cert: its first certificate cannot be read"),
        ("", &cert, &cert, "tls_key: has no private key in it (PEM is expected)"),
        ("", &cert, locked, "tls_key: is encrypted: it has to be stored without a passphrase"),
        ("", &cert, &other, "tls_key: is not the key of the first certificate in tls_cert"),
    ] {
        std::fs::write(dir.path().join("cert.pem"), cert).expect("written");
        std::fs::write(dir.path().join("key.pem"), key).expect("written");
        let both = "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"";
        let config = if setting.is_empty() { both } else { setting };
        std::fs::write(dir.path().join("tollgate.toml"), config).expect("written");
        let file = dir.path().join("tollgate.toml");
        let source = tollgate_gateway::settings::ConfigSource { file, environment: Default::default() };
        let Err(mistakes) = source.load() else { panic!("{expected}: accepted") };
        let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert!(all.len() == 1 && all[0].contains(expected), "{expected}: {all:?}");
        // The store is found all the same, by whoever may not read the key.
        assert_eq!(source.load_settings().is_ok(), setting.is_empty() || setting.contains('\n'));
    }
}
