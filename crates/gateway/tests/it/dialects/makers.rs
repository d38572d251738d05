//! A conversation that goes on with another maker: by the client's choice of a model, or along
//! another route. A provider of the client's own dialect gets the client's bytes, but nothing that
//! another maker thought.

use super::client::Client;
use super::{UPSTREAMS, house};
use crate::house::call_id;
use serde_json::Value;
use tollgate_store::Ending;
use tollgate_wire::Dialect;

/// The model whose provider speaks the client's dialect.
fn home(client: Client) -> &'static str {
    match client.0 {
        Dialect::Chat => "gemini-on-openai",
        Dialect::Anthropic => "gemini-on-anthropic",
        Dialect::Responses => "gemini-on-openai-response",
        Dialect::Gemini => "gemini-on-gemini",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_maker_goes_on_with_the_conversation() {
    let house = house().await;
    for client in Client::all() {
        for maker in UPSTREAMS.into_iter().filter(|maker| *maker != home(client)) {
            for scenario in ["tools", "reasoning_tools"] {
                let what = format!("{client:?} from {maker}, {scenario}");
                let body = client.body(maker, &format!("weather [[sim:{scenario} calls=2 tool=weather]]"), false);
                let body = client.with_tools(body, true);
                let reply = client.post(&house, &client.path(maker, false), &body).send().await.expect("a reply");
                let first: Value = reply.json().await.expect("JSON");
                assert_eq!(client.calls(&first).len(), 2, "{what}: {first}");
                let mut next = client.next_turn(body, &first);
                if next["model"].is_string() {
                    next["model"] = home(client).into();
                }
                let path = client.path(home(client), false);
                let reply = client.post(&house, &path, &next).send().await.expect("a reply");
                let (status, call) = (reply.status(), call_id(&reply));
                let text = reply.text().await.expect("text");
                assert_eq!(status, 200, "{what}: {text}\n{next}");
                let sent = String::from_utf8_lossy(&house.sim.received().last().expect("a call").body).into_owned();
                for ours in ["tg1.", "dGcxL", "reasoning_details"] {
                    assert!(!sent.contains(ours), "{what}: {sent}");
                }
                let row = house.row(call).await;
                assert_eq!(row.ending, Ending::Answered, "{what}");
                // Claude says itself that a turn without thoughts is not gone on with; whatever
                // bears our mark is seen before.
                let bare = client.0 == Dialect::Anthropic && scenario == "tools";
                assert_eq!(row.attempts, if bare { 2 } else { 1 }, "{what}: {sent}");
            }
        }
    }
}
