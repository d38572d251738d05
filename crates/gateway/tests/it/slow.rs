//! Clients that read an answer so slowly that its time is up: they pay as those do that leave,
//! whatever kind of call it is. The answer is read here piece by piece, without a socket in
//! between, and the clock is moved between two pieces.

use crate::house::{House, Plan};
use crate::v1::transcriptions::{KIND, form, wav};
use axum::body::{Body, HttpBody as _};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use tollgate_gateway::door::peer::Peer;
use tollgate_gateway::endpoints::router;
use tollgate_store::{CallId, Ending, UsageRow};
use tower::ServiceExt as _;

const CATALOG: &str = concat!(
    include_str!("../../../../catalog/speech.toml"),
    include_str!("../../../../tests/catalog/media.toml"),
    r#"
[model."vec-parts"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
embedding = { batch = 40 }
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."google-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { most = 4, base64_only = true }
route = [{ provider = "gemini", upstream_model = "gemini-2.5-flash-image" }]
"#
);

/// A little more than the longest time of a call.
const TOO_LONG: i64 = 30 * 60_000 + 1_000;

async fn house() -> House {
    House::with(Plan { usd: "100", catalog: CATALOG, ..Plan::default() }).await
}

/// An answer that is read by hand.
pub struct ByHand {
    pub call: CallId,
    body: Body,
    /// Bytes that came.
    pub read: usize,
}

impl ByHand {
    pub async fn ask(house: &House, request: Request<Body>) -> ByHand {
        let reply = router(house.running().app.clone()).oneshot(request).await.expect("a router never fails");
        let (head, body) = reply.into_parts();
        if head.status != 200 {
            let text = body.collect().await.expect("a body").to_bytes();
            panic!("{}: {}", head.status, String::from_utf8_lossy(&text));
        }
        assert!(!head.headers.contains_key("x-tollgate-charge-usd"), "a charge that is not certain");
        let call = head.headers["x-request-id"].to_str().expect("text").parse().expect("a call id");
        ByHand { call, body, read: 0 }
    }

    /// The next piece; `None` when there is none, and whether that is its end.
    pub async fn piece(&mut self) -> Result<bool, ()> {
        let Some(frame) = self.body.frame().await else { return Ok(false) };
        let frame = frame.map_err(drop)?;
        self.read += frame.into_data().map_or(0, |data| data.len());
        Ok(true)
    }

    /// Reads until it ends; whether it broke off.
    pub async fn rest(&mut self) -> bool {
        loop {
            match self.piece().await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(()) => return true,
            }
        }
    }
}

pub fn get(house: &House, path: &str) -> Request<Body> {
    asking(house, path).body(Body::empty()).expect("a request")
}

fn asking(house: &House, path: &str) -> http::request::Builder {
    let peer = Peer::new(([127, 0, 0, 1], 1).into(), None);
    Request::builder().uri(path).header("authorization", format!("Bearer {}", house.key)).extension(peer)
}

pub fn post(house: &House, path: &str, body: &Value) -> Request<Body> {
    let request = asking(house, path).method("POST").header("content-type", "application/json");
    request.body(Body::from(body.to_string())).expect("a request")
}

fn recording(house: &House, more: &[(&str, &str)]) -> Request<Body> {
    let fields = [&[("model", "ears"), ("file", "")][..], more].concat();
    let request = asking(house, "/v1/audio/transcriptions").method("POST").header("content-type", KIND);
    request.body(Body::from(form(&fields, "a.wav", &wav(3_000)))).expect("a request")
}

/// Reads two pieces, then nothing until the time is up, then the rest: there is none.
pub async fn too_slow(house: &House, request: Request<Body>, passed: &mut i64) -> UsageRow {
    let mut answer = ByHand::ask(house, request).await;
    for _ in 0..2 {
        assert_eq!(answer.piece().await, Ok(true));
    }
    *passed += TOO_LONG;
    house.later(*passed).await;
    let before = answer.read;
    assert!(answer.rest().await, "it ended as if it were whole");
    assert_eq!(answer.read, before, "nothing goes out after its time");
    house.row(answer.call).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_until_the_time_is_up_pays_as_one_that_leaves() {
    type Ask = Box<dyn Fn(&House) -> Request<Body>>;
    let json_to = |path: &'static str, body: Value| -> Ask { Box::new(move |house| post(house, path, &body)) };
    let long = format!("[[sim:ms=120000]]{}", "a".repeat(100));
    let texts: Vec<String> = (0..100).map(|at| format!("text {at}")).collect();
    let vectors = |model: &str| json!({ "model": model, "input": texts, "dimensions": 3_072 });
    let (speech, music) = ("/v1/audio/speech", "/v1/music/generations");
    let (images, embeddings) = ("/v1/images/generations", "/v1/embeddings");
    let pictures = |model: &str, more: Value| {
        let mut body = json!({ "model": model, "prompt": "[[sim:kb=3000]]", "n": 2 });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let spoken = json!({ "model": "demo-speech", "input": long, "voice": "alloy" });
    let sse = json!({ "model": "demo-speech", "input": long, "voice": "alloy", "stream_format": "sse" });
    let song = json!({ "model": "eleven-music", "prompt": "[[sim:ms=120000]]", "duration": 120 });
    let (slow, read_on) = ("client_too_slow", "client_gone_read_on");
    let cases: [(Ask, usize, &str); 10] = [
        (json_to(speech, spoken), 15_000 * long.len(), slow),
        (json_to(speech, sse), 15_000 * long.len(), slow),
        (json_to(music, song), 8_000_000 * 120, slow),
        (json_to(embeddings, vectors("vectors")), 0, slow),
        (json_to(embeddings, vectors("vec-parts")), 0, slow),
        (json_to(images, pictures("pictures", json!({}))), 80_000_000, read_on),
        (json_to(images, pictures("pictures", json!({ "stream": true }))), 80_000_000, read_on),
        (json_to(images, pictures("google-pictures", json!({}))), 80_000_000, slow),
        (Box::new(|house| recording(house, &[("prompt", "[[sim:huge mib=3]]")])), 18_000_000, slow),
        (
            Box::new(|house| recording(house, &[("stream", "true"), ("prompt", "[[sim:words=20000]]")])),
            18_000_000,
            slow,
        ),
    ];
    for (ask, charge, reason) in cases {
        // A clock that jumps twice may find a round of the first jump still running.
        let house = house().await;
        let row = too_slow(&house, ask(&house), &mut 0).await;
        let what = format!("{} {}: {row:?}", row.endpoint, row.model);
        assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, reason), "{what}");
        let least = if charge == 0 { 100 * 1_000 } else { i64::try_from(charge).expect("small") };
        assert!(row.charge.nano() >= least && (charge == 0 || row.charge.nano() == least), "{what}");
        assert!(row.charge <= row.hold, "{what}");
    }
}

/// It was the provider that took the time: what broke off is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_silent_until_the_time_is_up_is_not_paid() {
    let house = house().await;
    house.sim.shut("/_door");
    let body = json!({ "model": "demo-speech", "input": "[[sim:door ms=4000]]", "voice": "alloy" });
    let mut answer = ByHand::ask(&house, post(&house, "/v1/audio/speech", &body)).await;
    // Read until there is nothing more: the beginning waits once by itself, so that it leaves.
    let mut silent = 0;
    while silent < 2 {
        let frame = poll_fn(|cx| Poll::Ready(Pin::new(&mut answer.body).poll_frame(cx))).await;
        silent = if frame.is_pending() { silent + 1 } else { 0 };
    }
    house.clock.pass(TOO_LONG);
    house.sim.open();
    assert!(answer.rest().await, "it ended as if it were whole");
    let row = house.row(answer.call).await;
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "broken_off", 0));
}
