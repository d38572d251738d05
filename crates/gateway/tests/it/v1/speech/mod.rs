//! `POST /v1/audio/speech`, with every maker of speech that the simulator plays.

mod answers;
pub mod checks;
mod events;
mod faults;
mod makers;
mod money;
pub mod readers;

use crate::house::{House, Plan, call_id, error_of};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::process::Command;
use tollgate_store::{Ending, UsageRow};

/// The models as they are shipped.
const CATALOG: &str = include_str!("../../../../../../catalog/speech.toml");

/// What a character of `demo-speech` costs, in nano-USD.
pub const CHARACTER: i64 = 15_000;

pub async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// A house that does not wait long for a silent provider.
pub async fn impatient() -> House {
    House::with(Plan { catalog: CATALOG, patience: "300ms", ..Plan::default() }).await
}

pub fn ask(input: &str) -> Value {
    json!({ "model": "demo-speech", "input": input, "voice": "alloy" })
}

pub fn post(house: &House, body: &Value) -> RequestBuilder {
    house.http.post(house.url("/v1/audio/speech")).bearer_auth(&house.key).json(body)
}

pub async fn speak(house: &House, body: &Value) -> Response {
    post(house, body).send().await.expect("a reply")
}

/// A whole answer: its row, its content type and its bytes.
pub async fn spoken(house: &House, body: &Value) -> (UsageRow, String, Vec<u8>) {
    let reply = speak(house, body).await;
    assert_eq!(reply.status(), 200, "{body}: {}", reply.text().await.unwrap_or_default());
    let call = call_id(&reply);
    let kind = reply.headers()["content-type"].to_str().expect("text").to_owned();
    let bytes = reply.bytes().await.expect("a whole answer");
    (house.row(call).await, kind, bytes.to_vec())
}

/// A refusal that costs nothing: status, code, message, and the row if there is one.
pub async fn refused(house: &House, body: &Value) -> (u16, Value, Option<String>) {
    let before = house.available().await;
    let reply = speak(house, body).await;
    let once = reply.headers().get("x-should-retry").map(|value| value.to_str().expect("text").to_owned());
    let (status, error) = error_of(reply).await;
    house.quiet().await;
    assert_eq!(house.available().await, before, "{body} was charged: {error}");
    (status, error, once)
}

/// An answer that broke off: no client takes it for whole, and it cost nothing.
pub async fn broken(house: &House, body: &Value) -> UsageRow {
    let (available, before) = (house.available().await, house.all_rows().await);
    match post(house, body).send().await {
        Ok(reply) => {
            assert_eq!(reply.status(), 200, "{body}");
            assert!(reply.bytes().await.is_err(), "{body}: it ended as if it were whole");
        }
        // It may break before its head has left.
        Err(error) => assert!(error.is_request(), "{error}"),
    }
    house.quiet().await;
    let mut rows = house.all_rows().await;
    rows.retain(|call, _| !before.contains_key(call));
    assert_eq!((rows.len(), house.available().await), (1, available), "{body}");
    let (_, row) = rows.pop_first().expect("a row");
    assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0), "{row:?}");
    row
}

/// What ffprobe says a file is, and how many milliseconds it plays.
pub fn probed(bytes: &[u8], format: &str) -> (String, i64) {
    let file = tempfile::Builder::new().suffix(&format!(".{format}")).tempfile().expect("a file");
    std::fs::write(file.path(), bytes).expect("written");
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_entries", "format=format_name,duration", "-of", "csv=p=0"]);
    if format == "pcm" {
        command.args(["-f", "s16le", "-ar", "24000", "-ch_layout", "mono"]);
    }
    let done = command.arg(file.path()).output().expect("ffprobe is installed (scripts/setup test)");
    let said = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    let (name, seconds) = said.split_once(',').unwrap_or_else(|| panic!("{said}: {done:?}"));
    let seconds: f64 = seconds.parse().unwrap_or_else(|_| panic!("{said}"));
    #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
    let millis = (seconds * 1000.0).round() as i64;
    (name.to_owned(), millis)
}
