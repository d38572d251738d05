//! Files for runs that are given by a link: fetched by the rules for links, and judged by what they
//! are. And records without a package, whose one call is checked like any other.

use super::RunHouse;
use crate::dialects::packed::serve;
use crate::house::Plan;
use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use serde_json::{Value, json};
use tollgate_store::NewAccount;

const WAV: &[u8] = include_bytes!("../../../../../../catalog/workflows/meeting-to-minutes/recording.wav");
const ASSETS: &str = "/v1/workflows/assets";

/// A server of files; its address.
async fn files() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let app = Router::new()
        .route("/meeting.wav", get(|| async { WAV }))
        .route("/words.txt", get(|| async { "only words, and no sound at all" }))
        .route("/large.wav", get(|| async { [WAV, &[0; 70_000]].concat() }))
        .route("/moved.wav", get(|| async { Redirect::to("/meeting.wav") }))
        .route("/inside.wav", get(|| async { Redirect::to("http://169.254.169.254/latest") }));
    serve(listener, app);
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_behind_a_link_is_fetched_and_transcribed() {
    let url = files().await;
    let config = "[fetch]\nprivate = [\"127.0.0.1/32\"]\nlink_bytes = \"64KiB\"\n".to_owned();
    let house = RunHouse::with(Plan { config, ..Plan::default() }).await;
    house.verify("meeting-to-minutes").await;
    for name in ["meeting.wav", "moved.wav"] {
        let (status, asset) = house.ask(ASSETS, &json!({ "url": format!("{url}/{name}") })).await;
        assert_eq!(
            (status, &asset["content_type"], &asset["seconds"]),
            (200, &json!("audio/wav"), &json!(2)),
            "{asset}"
        );
        assert_eq!(asset["bytes"], WAV.len());
        let run = house.ended(&house.begin("meeting-to-minutes", json!({ "recording": asset["id"] })).await).await;
        assert_eq!(run["status"], "completed", "{run:#}");
    }
    for (link, says) in [
        (format!("{url}/words.txt"), "neither a picture nor audio or video"),
        (format!("{url}/large.wav"), "more than 65536 bytes"),
        (format!("{url}/none.wav"), "answered with 404"),
        (format!("{url}/inside.wav"), "cannot be reached"),
        ("http://169.254.169.254/latest".to_owned(), "public address"),
        ("http://user:word@127.0.0.1/a.wav".to_owned(), "no user or password"),
        ("file:///etc/passwd".to_owned(), "not an http(s) address"),
    ] {
        let (status, refused) = house.ask(ASSETS, &json!({ "url": link })).await;
        let error = &refused["error"];
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!("invalid_parameter"), &json!("url")),
            "{link}"
        );
        assert!(error["message"].as_str().is_some_and(|text| text.contains(says)), "{link}: {error}");
    }
    for bad in [json!({}), json!({ "url": 7 }), json!({ "url": "https://a.example/a.wav", "more": 1 })] {
        assert_eq!(house.ask(ASSETS, &bad).await.0, 400, "{bad}");
    }
    // A link in the place of a recording is not measured, so it is not quoted.
    let quote = json!({ "inputs": { "recording": "https://a.example/a.wav" } });
    let (status, refused) = house.ask("/v1/workflows/meeting-to-minutes/quote", &quote).await;
    assert!(
        status == 400 && refused["error"]["message"].as_str().is_some_and(|text| text.contains(ASSETS)),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_inside_is_fetched_for_a_run() {
    let url = files().await;
    let house = RunHouse::shipped().await;
    let (status, refused) = house.ask(ASSETS, &json!({ "url": format!("{url}/meeting.wav") })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("url")), "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("public address")), "{refused}");
    let store = &house.house.running().app.store;
    let account = store.create_account(NewAccount { name: "poor".to_owned(), ..NewAccount::default() }).await;
    let account = account.expect("an account").id;
    let poor = house.house.new_key(|key| key.account = account).await;
    let request = house.house.http.post(house.house.url(ASSETS)).bearer_auth(poor).json(&json!({ "url": url }));
    assert_eq!(request.send().await.expect("a reply").status(), 402, "nothing is fetched for nothing");
}

/// A record whose endpoint is one operation.
fn single() -> Value {
    let text = include_str!("../../../../../../catalog/workflows/social-search-digest.json");
    let mut record: Value = serde_json::from_str(text).expect("JSON");
    (record["slug"], record["workflow_id"]) = (json!("one-answer"), json!("wf-one-answer"));
    let input = |id: &str| {
        json!({
            "id": id, "type": "string", "required": id == "text", "description": "Words.", "default": null,
            "evidence_status": "semantic_stable", "allowed_values": [], "cost_sensitive": false,
        })
    };
    record["inputs"] = json!([input("text"), input("style")]);
    record["acceptance_checks"] = json!(["There is an answer."]);
    record["executor_query"] = json!({
        "input_modalities": ["text"], "output_modalities": ["text"], "required_capabilities": ["text-multimodal"],
        "selection_policy": "first",
    });
    let binding = &mut record["runtime_binding"];
    (binding["endpoint"], binding["operation_id"]) = (json!("/v1/responses"), json!("post_v1_responses"));
    binding["model_ids"] = json!(["tollgate-demo"]);
    binding["request_field_map"] = json!({ "text": "input" });
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_operation_is_verified_by_its_own_checks() {
    let house = RunHouse::shipped().await;
    house.put("one-answer.json", &single().to_string()).await;
    let fixture = |more: &str| format!("{{\"inputs\": {{\"text\": \"Rain.\"}}{more}}}");
    house.put("one-answer/fixture.json", &fixture("")).await;
    let run = house.verify("one-answer").await;
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(house.stage("one-answer").await["stage"], "locked", "nothing has checked it");
    for (check, stage) in [("min_chars:call.result:9", "locked"), ("nonempty:call.result", "verified")] {
        house.put("one-answer/fixture.json", &fixture(&format!(", \"acceptance\": [[\"{check}\"]]"))).await;
        let run = house.verify_locked("one-answer").await;
        assert_eq!(run["status"], "completed", "{run:#}");
        assert_eq!(house.stage("one-answer").await["stage"], stage, "{check}");
    }
    let run = house.ended(&house.begin("one-answer", json!({ "text": "Snow." })).await).await;
    assert_eq!((&run["status"], run["steps"].as_array().map(Vec::len)), (&json!("completed"), Some(1)), "{run:#}");
}

/// What answers with a file gives that file, and what answers with text its text.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_operation_may_answer_with_a_file() {
    let house = RunHouse::shipped().await;
    let mut record = single();
    record["executor_query"] = json!({
        "input_modalities": ["text"], "output_modalities": ["audio"], "required_capabilities": ["audio-speech"],
        "selection_policy": "first",
    });
    let binding = &mut record["runtime_binding"];
    (binding["endpoint"], binding["operation_id"]) = (json!("/v1/audio/speech"), json!("post_v1_audio_speech"));
    binding["model_ids"] = json!(["demo-speech"]);
    house.put("one-answer.json", &record.to_string()).await;
    let fixture = r#"{"inputs": {"text": "Rain."}, "acceptance": [["playable:call.result"]]}"#;
    house.put("one-answer/fixture.json", fixture).await;
    let run = house.verify("one-answer").await;
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(house.stage("one-answer").await["stage"], "verified", "{run:#}");
    let run = house.ended(&house.begin("one-answer", json!({ "text": "Snow." })).await).await;
    let link = run["steps"][0]["outputs"]["result"].as_str().or(run["outputs"]["call"]["result"].as_str());
    assert!(link.is_some_and(|link| link.contains("/v1/workflows/files/")), "{run:#}");
}
