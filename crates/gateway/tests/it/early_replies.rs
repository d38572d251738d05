//! HTTP/2 over TLS: replies that come before the body of their request. The client gets all of the
//! reply, whatever it still sends, and nothing is read without a bound.

use crate::house::House;
use crate::tls::{encrypted, shake};
use bytes::Bytes;
use futures_util::future::{join_all, poll_fn};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use tokio_rustls::rustls::pki_types::CertificateDer;

/// What is read of a body after the reply, and what is on its way by then: the windows of the
/// connection and of the stream.
const MOST: usize = (64 << 20) + (5 << 20);

type Send = SendRequest<Bytes>;

/// Runs a client on a connection of its own.
async fn on_http2<T>(house: &House, trusted: &CertificateDer<'static>, client: impl AsyncFnOnce(Send) -> T) -> T {
    let stream = shake(house, trusted, &["h2"]).await.expect("a handshake");
    let (send, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        out = client(send) => out,
        ended = &mut connection => panic!("the connection ended: {ended:?}"),
    }
}

/// The head of a request alone: whoever answers it has not seen the body.
async fn begin(
    send: &Send,
    house: &House,
    path: &str,
    headers: &[(&str, &str)],
) -> (ResponseFuture, SendStream<Bytes>) {
    let mut request = http::Request::post(house.url(path)).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut ready = send.clone().ready().await.expect("ready");
    ready.send_request(request.body(()).expect("a request"), false).expect("sent")
}

/// All of a reply: its status and its body.
async fn whole(reply: ResponseFuture) -> (u16, String) {
    let reply = reply.await.expect("a reply");
    let (status, mut read) = (reply.status().as_u16(), reply.into_body());
    let mut body = Vec::new();
    while let Some(data) = read.data().await {
        let data = data.expect("the whole reply");
        let _ = read.flow_control().release_capacity(data.len());
        body.extend_from_slice(&data);
    }
    (status, String::from_utf8(body).expect("text"))
}

/// A reset would fail what is sent after the reply.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_body_may_follow_its_reply() {
    let (house, _dir, trusted) = encrypted("", "").await;
    let key = format!("Bearer {}", house.key);
    on_http2(&house, &trusted, async |send| {
        for number in 0..60 {
            let (path, headers, expected): (_, &[(&str, &str)], _) = match number % 4 {
                0 => ("/v1/nothing", &[], 404),
                1 => ("/v1/chat/completions", &[], 401),
                2 => ("/v1/chat/completions", &[("authorization", &key), ("content-encoding", "gzip")], 415),
                _ => ("/v1/models", &[("authorization", &key)], 405),
            };
            let (reply, mut body) = begin(&send, &house, path, headers).await;
            body.send_data(Bytes::from_static(b"{\"model\":"), false).expect("sent");
            let (status, said) = whole(reply).await;
            assert!(status == expected && said.contains("\"error\""), "{path}: {status} {said}");
            // Everything that the gateway has sent until now is seen by then.
            let (balance, mut none) = begin(&send, &house, "/v1/nothing", &[]).await;
            none.send_data(Bytes::new(), true).expect("sent");
            assert_eq!(whole(balance).await.0, 404);
            body.send_data(Bytes::from(vec![b'x'; 20_000]), true).expect("the stream is open for the rest");
        }
    })
    .await;
}

/// More than the windows hold: it has to be read for the client to come to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_first_and_reads_then_gets_its_reply() {
    let (house, _dir, trusted) = encrypted("", "").await;
    on_http2(&house, &trusted, async |send| {
        let (reply, mut body) = begin(&send, &house, "/v1/chat/completions", &[]).await;
        assert_eq!(upload(&mut body, 6 << 20).await, (6 << 20, None));
        body.send_data(Bytes::new(), true).expect("sent");
        assert_eq!(whole(reply).await.0, 401);
    })
    .await;
}

/// Sends so much, or until the stream is ended: what was sent, and how it was ended.
async fn upload(body: &mut SendStream<Bytes>, most: usize) -> (usize, Option<Reason>) {
    let mut sent = 0;
    while sent < most {
        body.reserve_capacity((most - sent).min(16 << 10));
        let Some(Ok(room)) = poll_fn(|cx| body.poll_capacity(cx)).await else {
            return (sent, Some(poll_fn(|cx| body.poll_reset(cx)).await.expect("a reset")));
        };
        if room > 0 {
            body.send_data(Bytes::from(vec![b'x'; room]), false).expect("room");
            sent += room;
        }
    }
    (sent, None)
}

/// Those who send slowly and those who never end have their reply, and then their stream is ended
/// without an error. The connection goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_end_is_read_up_to_a_bound() {
    let (house, _dir, trusted) = encrypted("", "").await;
    on_http2(&house, &trusted, async |send| {
        let slow = join_all((0..20).map(|_| async {
            let (reply, mut body) = begin(&send, &house, "/v1/nothing", &[]).await;
            body.send_data(Bytes::from_static(b"half"), false).expect("sent");
            assert_eq!(whole(reply).await.0, 404);
            poll_fn(|cx| body.poll_reset(cx)).await.expect("a reset")
        }));
        assert!(slow.await.iter().all(|reason| *reason == Reason::NO_ERROR));
        let (reply, mut body) = begin(&send, &house, "/v1/nothing", &[]).await;
        let (sent, end) = upload(&mut body, usize::MAX).await;
        assert!(sent <= MOST && end == Some(Reason::NO_ERROR), "{sent} {end:?}");
        assert_eq!(whole(reply).await.0, 404);
        let (reply, mut body) = begin(&send, &house, "/v1/nothing", &[]).await;
        body.send_data(Bytes::new(), true).expect("sent");
        assert_eq!(whole(reply).await.0, 404);
    })
    .await;
    house.quiet().await;
}
