//! What is begun once and cut off in the middle, in every way that leaves nobody with its answer:
//! whoever repeats the key is told so, and the maker is asked once.

use super::ledger::locked;
use super::{FUNDED, rows};
use crate::house::{House, Plan, error_of};
use crate::watch::until;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate_store::Ending;
use tollgate_store::testing::{break_syncs, mend_syncs};

/// One model of each kind, pictures that a provider makes as a task, and such with previews.
const CATALOG: &str = concat!(
    include_str!("../../../../../tests/catalog/media.toml"),
    r#"
[model."tasks"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { api = "tasks", edit_images = 3 }
route = [{ provider = "dashscope", upstream_model = "wan2.5-t2i" }]

[model."previewed"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, streams = true, partial_images = true }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
"#
);

/// The smallest picture that opens.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Every way to have something made that is begun once: the path, and the body.
fn asked(marker: &str) -> [(&'static str, Value); 5] {
    [
        ("/v1/images/generations", json!({ "model": "pictures", "prompt": marker })),
        ("/v1/images/generations", json!({ "model": "tasks", "prompt": marker })),
        ("/v1/images/edits", json!({ "model": "tasks", "prompt": marker, "images": [{ "image_url": PIXEL }] })),
        ("/v1beta/models/pictures:predict", json!({ "instances": [{ "prompt": marker }] })),
        ("/v1/music/generations", json!({ "model": "songs", "prompt": marker, "instrumental": true })),
    ]
}

const HURRIED: &str = "[limits]\ndrain_time = \"100ms\"\n";

async fn house(plan: Plan) -> House {
    House::with(Plan { catalog: CATALOG, patience: "120s", ..plan }).await
}

fn keyed(house: &House, path: &str, body: &Value) -> reqwest::RequestBuilder {
    house.http.post(house.url(path)).bearer_auth(&house.key).header("idempotency-key", body.to_string()).json(body)
}

/// Its client is told that nobody knows what was made, and not to ask again by itself.
async fn unknown(reply: Response, what: &str) {
    let advice = reply.headers().get("x-should-retry").map(|value| value.as_bytes().to_vec());
    let google = reply.url().path().starts_with("/v1beta");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, advice.as_deref()), (504, Some(&b"false"[..])), "{what}: {error}");
    let code = if google { json!(504) } else { json!("charge_state_unknown") };
    assert_eq!(error["code"], code, "{what}: {error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("with a new key")), "{what}: {error}");
}

/// Whoever repeats the key gets the same, the maker is not asked again, and nothing was paid.
async fn begun_once(house: &House, path: &str, body: &Value, sent: usize) {
    house.quiet().await;
    let what = format!("{path} {body}");
    for _ in 0..2 {
        unknown(keyed(house, path, body).send().await.expect("a reply"), &what).await;
    }
    assert_eq!((begun_so_far(house), house.available().await), (sent, FUNDED), "{what}");
    let rows = rows(house).await;
    assert!(rows.len() == sent && rows.iter().all(|row| row.charge.is_zero()), "{what}: {rows:?}");
}

/// What makers were asked to begin; questions about their tasks are not counted.
fn begun_so_far(house: &House) -> usize {
    house.sim.received().iter().filter(|one| one.method == "POST").count()
}

/// A call that waits for its maker.
async fn begun(house: &House, request: reqwest::RequestBuilder) -> JoinSet<Result<Response, reqwest::Error>> {
    let before = begun_so_far(house);
    let call = JoinSet::from_iter([request.send()]);
    until("the beginning", async || begun_so_far(house) > before).await;
    call
}

async fn answer(call: JoinSet<Result<Response, reqwest::Error>>) -> Response {
    call.join_all().await.remove(0).expect("a reply")
}

/// SIGTERM, and the time for open calls is over.
pub async fn a_stop_while_media_are_made() {
    let mut house = house(Plan { config: HURRIED.to_owned(), ..Plan::default() }).await;
    for (at, (path, body)) in asked("[[sim:hang]]").into_iter().enumerate() {
        let body = match body["model"] == "tasks" {
            true => serde_json::from_str(&body.to_string().replace("sim:hang", "sim:poll_hang")).expect("JSON"),
            false => body,
        };
        let call = begun(&house, keyed(&house, path, &body)).await;
        let (reply, ()) = tokio::join!(answer(call), house.restart());
        unknown(reply, path).await;
        assert_eq!(house.running().recovered, Default::default(), "{path}: it was settled before the exit");
        begun_once(&house, path, &body, at + 1).await;
    }
    // So does a song that waits in the spool for its last piece.
    let path = "/v1/music/generations";
    let body = json!({ "model": "songs", "prompt": "[[sim:hang_midway ms=60000]]", "instrumental": true });
    let call = begun(&house, keyed(&house, path, &body)).await;
    let (reply, ()) = tokio::join!(answer(call), house.restart());
    unknown(reply, path).await;
    begun_once(&house, path, &body, 6).await;
    let rows = rows(&house).await;
    let ends = |row: &&tollgate_store::UsageRow| {
        (row.ending, row.reason.as_str(), row.status) == (Ending::UpstreamFault, "charge_state_unknown", 504)
    };
    assert!(rows.iter().all(|row| ends(&row)), "{rows:?}");
    // Without a key its client alone can say whether to ask again; what costs nothing to repeat is
    // to be sent again, and keeps no key.
    for (path, body, code) in [
        ("/v1/images/generations", json!({ "model": "pictures", "prompt": "[[sim:hang]]" }), "charge_state_unknown"),
        ("/v1/audio/speech", json!({ "model": "voice", "input": "[[sim:hang]]", "voice": "v" }), "server_draining"),
    ] {
        let request = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body);
        let call = begun(&house, request).await;
        let (reply, ()) = tokio::join!(answer(call), house.restart());
        let error = error_of(reply).await.1;
        assert_eq!(error["code"], code, "{path}: {error}");
        assert!(!error["message"].as_str().expect("a text").contains("Idempotency-Key"), "{error}");
    }
}

/// It has begun to pass, and breaks off: by its maker, by a stop, or by its maker after the client
/// has left. A reset could take away what was not read yet, and with it the beginning.
pub async fn media_break_off_on_their_way() {
    // Where long results have no place they pass at once.
    let config = format!("{HURRIED}[images]\nlinks = false\n");
    let mut house = house(Plan { config, ..Plan::default() }).await;
    let song = |marker: &str| json!({ "model": "songs", "prompt": marker, "instrumental": true });
    let path = "/v1/music/generations";
    let body = song("[[sim:cut ms=60000 cut=fin]]");
    let reply = keyed(&house, path, &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert!(reply.bytes().await.is_err(), "the transfer is broken off");
    begun_once(&house, path, &body, 1).await;
    let body = song("[[sim:hang_midway ms=60000]]");
    let mut reply = keyed(&house, path, &body).send().await.expect("a reply");
    reply.chunk().await.expect("a piece");
    let rest = async { while let Ok(Some(_)) = reply.chunk().await {} };
    tokio::join!(rest, house.restart());
    begun_once(&house, path, &body, 2).await;
    // A preview is there, and no picture: its client hangs up, and then its maker.
    let path = "/v1/images/generations";
    let body =
        json!({ "model": "previewed", "prompt": "[[sim:cut kb=120 cut=fin]]", "stream": true, "partial_images": 2 });
    house.sim.shut(path);
    let call = begun(&house, keyed(&house, path, &body)).await;
    drop(call);
    house.sim.open();
    begun_once(&house, path, &body, 3).await;
    assert!(rows(&house).await[0].first_byte_ms.is_some(), "the preview had come");
}

/// Neither the journal nor the database takes the hold, and the picture is there.
pub async fn the_ledger_is_slow_over_a_picture() {
    let house = house(Plan::impatient()).await;
    let data = house.running().app.settings.data_dir.clone();
    let (path, body) = ("/v1/images/generations", json!({ "model": "pictures", "prompt": "a cat" }));
    break_syncs(&data);
    let blocker = locked(&house);
    let reply = keyed(&house, path, &body).send().await.expect("a reply");
    mend_syncs(&data);
    drop(blocker);
    until("the recovery", async || house.running().app.store.ready()).await;
    unknown(reply, path).await;
    begun_once(&house, path, &body, 1).await;
    let row = rows(&house).await.remove(0);
    assert_eq!((row.reason.as_str(), row.status), ("hold_not_durable", 504), "as its client was told");
}

pub async fn a_handler_panics_over_a_picture() {
    let house = house(Plan::default()).await;
    let (path, body) = ("/v1/images/generations", json!({ "model": "pictures", "prompt": "a cat" }));
    house.sim.shut(path);
    let call = JoinSet::from_iter([keyed(&house, path, &body).send()]);
    while house.sim.waited() == 0 {
        tokio::task::yield_now().await;
    }
    house.clock.trap();
    house.sim.open();
    let reply = answer(call).await;
    let advice = reply.headers().get("x-should-retry").cloned();
    assert_eq!((reply.status().as_u16(), advice), (500, Some("false".parse().expect("a value"))));
    begun_once(&house, path, &body, 1).await;
}
