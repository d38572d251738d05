//! Models of others behind a cloud: Azure in both forms, Vertex in three formats, Bedrock with a
//! key and with signatures. Clients of every dialect get the same answer and pay what the cloud
//! reports.

use super::client::{Client, code_of};
use crate::house::{House, Plan, call_id, error_of, events};
use serde_json::{Value, json};
use std::path::Path;
use tollgate_sim::Sim;
use tollgate_sim::clouds::{AWS_ACCESS, AWS_SECRET, AZURE_KEY, BEDROCK_KEY, google_account};
use tollgate_sim::video::{KLING_ACCESS, KLING_SECRET};
use tollgate_store::Ending;

/// The keys of those whom the simulator plays, as files of a house.
pub fn write_keys(dir: &Path, sim: &Sim) {
    let account = google_account(&sim.root_url());
    for (name, key) in [
        ("sim.key", "sim-key"),
        ("access.key", KLING_ACCESS),
        ("secret.key", KLING_SECRET),
        ("azure.key", AZURE_KEY),
        ("bedrock.key", BEDROCK_KEY),
        ("aws-access.key", AWS_ACCESS),
        ("aws-secret.key", AWS_SECRET),
        ("google.json", &account),
    ] {
        std::fs::write(dir.join(name), key).expect("written");
    }
}

const CLOUDS: [&str; 7] =
    ["azure", "azure-older", "vertex-gemini", "vertex-anthropic", "vertex-openai", "bedrock", "bedrock-signed"];

fn config() -> String {
    let vertex = |kind: &str| {
        format!(
            "[provider.{kind}]\nkind = \"{kind}\"\nbase_url = \"{{host}}/vertex/v1/projects/sim-project/locations/global\"\n\
             secret_file = \"google.json\"\n"
        )
    };
    let vertex = ["vertex-gemini", "vertex-anthropic", "vertex-openai"].map(vertex).concat();
    format!(
        "[provider.azure]\nkind = \"azure\"\nbase_url = \"{{host}}/azure/openai/v1\"\nsecret_file = \"azure.key\"\n\
         [provider.azure-older]\nkind = \"azure\"\nbase_url = \"{{host}}/azure/openai/v1\"\nsecret_file = \"azure.key\"\n\
         api_version = \"2024-10-21\"\n\
         [provider.azure-wrong]\nkind = \"azure\"\nbase_url = \"{{host}}/azure/openai/v1\"\nsecret_file = \"sim.key\"\n\
         [provider.bedrock]\nkind = \"bedrock\"\nbase_url = \"{{host}}/bedrock\"\nsecret_file = \"bedrock.key\"\n\
         takes_links = false\n\
         [provider.bedrock-signed]\nkind = \"bedrock\"\nbase_url = \"{{host}}/bedrock\"\naccess_file = \"aws-access.key\"\n\
         secret_file = \"aws-secret.key\"\n{vertex}"
    )
}

fn catalog() -> &'static str {
    let model = |name: &str, provider: &str, upstream: &str| {
        format!(
            "[model.\"gemini-{name}\"]\ncontext_window = 100000\nmax_output_tokens = 1000\n\
             supported_endpoint_types = [\"openai\", \"anthropic\", \"openai-response\", \"gemini\"]\n\
             price = {{ input = 1_000_000, output = 2_000_000, cache_read = 100_000, cache_write = 1_250_000 }}\n\
             route = [{{ provider = \"{provider}\", upstream_model = \"{upstream}\" }}]\n\n"
        )
    };
    let mut text: String = CLOUDS.iter().map(|cloud| model(cloud, cloud, "sim-plain")).collect();
    text += &model("wrong", "azure-wrong", "sim-plain");
    text += &model("in-europe", "bedrock", "eu.sim-plain");
    text += "[model.\"vector\"]\nsupported_endpoint_types = [\"embeddings\"]\nprice = { input = 1_000_000, output = 0 }\n\
             route = [{ provider = \"azure-older\", upstream_model = \"sim-plain\" }]\n\
             [model.\"google-vector\"]\nsupported_endpoint_types = [\"embeddings\"]\nprice = { input = 1_000_000, output = 0 }\n\
             route = [{ provider = \"vertex-gemini\", upstream_model = \"sim-plain\" }]\n";
    Box::leak(text.into_boxed_str())
}

async fn house() -> House {
    House::with(Plan { catalog: catalog(), config: config(), ..Plan::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_every_dialect_are_answered_by_every_cloud() {
    let house = house().await;
    for cloud in CLOUDS {
        let model = format!("gemini-{cloud}");
        for client in Client::all() {
            for stream in [false, true] {
                let reply = client.ask(&house, &model, "say [[sim:tokens=5]]", stream).await;
                let call = call_id(&reply);
                let status = reply.status();
                let text = reply.text().await.expect("a body");
                assert_eq!(status, 200, "{cloud} {client:?} {stream}: {text}");
                let (said, usage) = match stream {
                    true => (client.streamed_text(&events(&text)), client.usage(&events(&text))),
                    false => {
                        let value: Value = serde_json::from_str(&text).expect("JSON");
                        (client.text(&value), client.usage(&[value]))
                    }
                };
                assert_eq!(said, "the gate opens for every", "{cloud} {client:?} {stream}: {text}");
                let seen = house.sim.received().pop().expect("a call");
                assert_eq!(usage, (seen.prompt_tokens, 5), "{cloud} {client:?} {stream}");
                let row = house.row(call).await;
                let price = i64::try_from(seen.prompt_tokens).expect("small") * 1_000 + 5 * 2_000;
                assert_eq!(
                    (row.charge.nano(), row.ending, row.attempts),
                    (price, Ending::Answered, 1),
                    "{cloud} {client:?}"
                );
            }
        }
    }
    assert_eq!(house.sim.tokens(), 3, "one token for each provider, for all its calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_before_it_ends() {
    let house = house().await;
    let client = Client::all()[0];
    let ask = async || client.ask(&house, "gemini-vertex-openai", "hello", false).await.status();
    assert_eq!((ask().await, house.sim.tokens()), (http::StatusCode::OK, 1));
    house.later(54 * 60_000).await;
    assert_eq!((ask().await, house.sim.tokens()), (http::StatusCode::OK, 1), "six minutes are left");
    house.later(56 * 60_000).await;
    assert_eq!((ask().await, house.sim.tokens()), (http::StatusCode::OK, 2), "four would be");
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_keys_are_those_that_are_documented() {
    let house = house().await;
    let client = Client::all()[0];
    for (model, came) in [
        ("gemini-azure", "/azure/openai/v1/chat/completions"),
        ("gemini-azure-older", "/azure/openai/deployments/sim-plain/chat/completions?api-version=2024-10-21"),
        (
            "gemini-vertex-gemini",
            "/vertex/v1/projects/sim-project/locations/global/publishers/google/models/sim-plain:generateContent",
        ),
        (
            "gemini-vertex-anthropic",
            "/vertex/v1/projects/sim-project/locations/global/publishers/anthropic/models/sim-plain:rawPredict",
        ),
        ("gemini-vertex-openai", "/vertex/v1/projects/sim-project/locations/global/endpoints/openapi/chat/completions"),
    ] {
        assert_eq!(client.ask(&house, model, "hello", false).await.status(), 200, "{model}");
        let seen = house.sim.received().pop().expect("a call");
        assert_eq!(seen.header("x-sim-came"), Some(came), "{model}");
    }
    assert_eq!(client.ask(&house, "gemini-in-europe", "hello", true).await.status(), 200);
    let seen = house.sim.received().pop().expect("a call");
    assert_eq!(seen.path, "/bedrock/model/eu.sim-plain/converse-stream");
    let vectors = house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key);
    let vectors = vectors.json(&json!({"model": "vector", "input": "a word"})).send().await.expect("a reply");
    assert_eq!(vectors.status(), 200);
    let seen = house.sim.received().pop().expect("a call");
    assert_eq!(
        seen.header("x-sim-came"),
        Some("/azure/openai/deployments/sim-plain/embeddings?api-version=2024-10-21")
    );

    let reply = client.ask(&house, "gemini-wrong", "hello", false).await;
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert!(status >= 500, "the operator's key is nothing to a client: {error}");
    assert_eq!(house.row(call).await.charge.nano(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bedrock_calls_tools_thinks_fails_and_breaks_off() {
    let house = house().await;
    let [chat, anthropic, ..] = Client::all();
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}}}]);
    for stream in [false, true] {
        let mut body = chat.body("gemini-bedrock", "use it [[sim:tools]]", stream);
        body["tools"] = tools.clone();
        body["user"] = json!("u-1");
        let reply = chat.post(&house, "/v1/chat/completions", &body).send().await.expect("a reply");
        let dropped = reply.headers().get("x-tollgate-dropped").map(|value| value.to_str().expect("text").to_owned());
        let text = reply.text().await.expect("a body");
        assert!(text.contains("\"look\"") && text.contains("tool_calls"), "{text}");
        assert!(dropped.is_some_and(|names| names.contains("user") || names.contains("metadata")), "reported");
        let sent = house.sim.received().pop().expect("a call").json();
        assert_eq!(sent["toolConfig"]["tools"][0]["toolSpec"]["name"], "look");
        assert!(sent.get("model").is_none() && sent.get("stream").is_none(), "{sent}");
    }
    let reply = anthropic.ask(&house, "gemini-bedrock", "think [[sim:reasoning]]", true).await;
    let text = reply.text().await.expect("a body");
    assert!(text.contains("thinking_delta") && text.contains("signature_delta"), "{text}");

    for (marker, least) in [("error429", 429), ("error503", 500), ("error400", 400), ("error_first", 429)] {
        let reply = chat.ask(&house, "gemini-bedrock", &format!("go [[sim:{marker}]]"), true).await;
        let call = call_id(&reply);
        let (status, error) = error_of(reply).await;
        assert!(status >= least, "{marker}: {status} {error}");
        assert!(!code_of(&error).is_empty());
        assert_eq!(house.row(call).await.charge.nano(), 0, "{marker}");
    }
    for marker in ["error_midstream", "cut_midstream"] {
        let reply = chat.ask(&house, "gemini-bedrock", &format!("go [[sim:{marker}]]"), true).await;
        let call = call_id(&reply);
        let text = reply.text().await.unwrap_or_default();
        assert!(text.contains("\"error\""), "{marker}: {text}");
        assert_ne!(house.row(call).await.ending, Ending::Answered, "{marker}");
    }
    for stream in [false, true] {
        let reply = chat.ask(&house, "gemini-bedrock", "go [[sim:garbage]]", stream).await;
        let call = call_id(&reply);
        assert_eq!(error_of(reply).await.0, 502);
        assert_eq!(house.row(call).await.charge.nano(), 0, "what cannot be read is free");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_vertex_come_one_by_one_and_are_charged_by_its_report() {
    let house = house().await;
    let body = json!({ "model": "google-vector", "input": ["one", "two words", "three words here"], "dimensions": 4 });
    let request = house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key).json(&body);
    let reply = request.send().await.expect("a reply");
    let (status, call) = (reply.status(), call_id(&reply));
    let reply: Value = reply.json().await.expect("JSON");
    assert_eq!(status, 200, "{reply}");
    let vectors = reply["data"].as_array().expect("vectors");
    assert_eq!(vectors.len(), 3);
    assert!(vectors.iter().all(|one| one["embedding"].as_array().is_some_and(|list| list.len() == 4)), "{reply}");
    assert_eq!(reply["usage"]["prompt_tokens"], 6);
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.estimated), (6_000, false));
    assert_eq!(house.sim.received().len(), 3, "one text a request");
}
