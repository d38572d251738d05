//! GET /api/pricing: the price list for everybody, and an account's own.

use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use tollgate_store::{NewAccount, NewKey};

const CATALOG: &str = r#"
auto_groups = ["partner", "default"]
[group.partner]
multiplier = "0.8"
[model."known-only"]
login_required = true
price = { input = 2_000_000, output = 8_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."for-all"]
vendor_id = 7
owner_by = "Maker"
enable_groups = ["default", "partner"]
price = { input = 2_000_000, output = 8_000_000 }
paid = { input = 1_000_000, output = 4_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."partners-only"]
enable_groups = ["partner"]
price = { input = 2_000_000, output = 8_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, usd: "0", ..Plan::default() }).await
}

fn model<'a>(page: &'a Value, name: &str) -> Option<&'a Value> {
    page["data"].as_array().expect("models").iter().find(|one| one["model_name"] == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_only_what_is_for_everybody_is_shown() {
    let house = house().await;
    let reply = house.http.get(house.url("/api/pricing")).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let page: Value = reply.json().await.expect("JSON");
    assert_eq!((&page["success"], &page["auto_groups"]), (&json!(true), &json!(["default"])));
    assert_eq!((&page["group_ratio"], &page["usable_group"]), (&json!({"default": 1}), &json!({"default": ""})));
    assert_eq!(page["vendors"], json!([{"id": 7, "name": "Maker"}]));
    let chat = json!({"path": "/v1/chat/completions", "method": "POST"});
    assert_eq!(page["supported_endpoint"]["openai"], chat);
    assert_eq!(page["pricing_version"], house.running().app.serving.load().catalog.pricing_version(0));
    assert!(page.get("groups").is_none());
    let all = model(&page, "for-all").expect("listed");
    assert_eq!((&all["quota_type"], &all["model_ratio"], &all["billing_rate"]), (&json!(0), &json!(1), &json!(1)));
    assert_eq!(all["book_faces"]["standard"]["input"], 2_000_000);
    assert_eq!(all["book_faces"]["paid"]["input"], 1_000_000);
    assert_eq!(all["enable_groups"], json!(["default"]));
    assert!(model(&page, "partners-only").is_none() && model(&page, "known-only").is_none());
    assert!(!page.to_string().contains("partner") && !page.to_string().contains("0.8"), "{page}");
    assert!(!all.to_string().contains("sim-plain"), "routes are the operator's business");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_an_account_sees_its_groups_and_its_own_prices() {
    let house = house().await;
    let own = |page: &Value| (page["groups"].clone(), page["paid_prices"].clone());
    let page: Value = house.get("/api/pricing").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(own(&page), (json!(["default"]), json!(false)));
    assert!(model(&page, "partners-only").is_none(), "it could not buy it");
    assert!(model(&page, "known-only").is_some(), "it has a key");
    assert!(!page.to_string().contains("partner"), "nor know of who could: {page}");
    assert_eq!(model(&page, "for-all").expect("listed")["model_ratio"], 1);
    // After the first top-up the prices of those who pay.
    house.top_up("first", "1").await;
    let page: Value = house.get("/api/pricing").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(own(&page), (json!(["default"]), json!(true)));
    assert_eq!(model(&page, "for-all").expect("listed")["model_ratio"], 0.5);
    // An account of another group.
    let store = &house.running().app.store;
    let new = NewAccount { name: "partner".to_owned(), groups: vec!["partner".to_owned()], ..NewAccount::default() };
    let partner = store.create_account(new).await.expect("an account");
    let key = NewKey {
        account: partner.id,
        name: String::new(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits: Default::default(),
        scope: Default::default(),
    };
    store.create_key(key, "sk-of-a-partner").await.expect("a key");
    let reply = house.http.get(house.url("/api/pricing")).bearer_auth("sk-of-a-partner").send().await;
    let page: Value = reply.expect("a reply").json().await.expect("JSON");
    assert_eq!(own(&page), (json!(["partner"]), json!(false)));
    assert_eq!(page["group_ratio"], json!({"default": 1, "partner": 0.8}));
    assert_eq!(page["usable_group"], json!({"partner": ""}));
    let listed = model(&page, "partners-only").expect("listed");
    assert_eq!((&listed["billing_rate"], &listed["billing_rate_source"]), (&json!(0.8), &json!("group:partner")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_refused_and_not_taken_for_nobody() {
    let house = house().await;
    let reply = house.http.get(house.url("/api/pricing")).bearer_auth("sk-wrong").send().await.expect("a reply");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (401, &json!("invalid_api_key")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_already_is_not_sent_again_until_it_changes() {
    let house = house().await;
    let get = |etag: &str| house.http.get(house.url("/api/pricing")).header("if-none-match", etag.to_owned()).send();
    let first = house.http.get(house.url("/api/pricing")).send().await.expect("a reply");
    let etag = first.headers()["etag"].to_str().expect("text").to_owned();
    for known in [etag.clone(), format!("\"other\", W/{etag}"), "*".to_owned()] {
        let reply = get(&known).await.expect("a reply");
        assert_eq!(reply.status(), 304, "{known}");
        assert_eq!(reply.headers()["etag"], etag.as_str());
        assert!(reply.bytes().await.expect("nothing").is_empty());
    }
    assert_eq!(get("\"other\"").await.expect("a reply").status(), 200);
    let own = house.get("/api/pricing").header("if-none-match", &etag).send().await.expect("a reply");
    assert_eq!(own.status(), 200, "an account's list is another");
    // A new catalog is a new list.
    std::fs::write(house.dir.join("catalog/more.toml"), CATALOG.replace("2_000_000", "3_000_000")).expect("written");
    for _ in 0..1_200 {
        let reply = get(&etag).await.expect("a reply");
        if reply.status() == 200 {
            let page: Value = reply.json().await.expect("JSON");
            assert_eq!(model(&page, "for-all").expect("listed")["model_ratio"], 1.5);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the old list is still served");
}

#[test]
fn every_endpoint_type_that_is_served_leads_to_a_path_that_exists() {
    let served: Vec<_> = tollgate_gateway::endpoints::served().map(|(kind, row)| (kind, row.path)).collect();
    for (kind, _) in &served {
        assert!(tollgate_catalog::EndpointType::named(kind).is_some(), "{kind}");
        assert_eq!(served.iter().filter(|(other, _)| other == kind).count(), 1, "{kind} is asked in one way");
    }
    let expected = [
        ("openai", "/v1/chat/completions"),
        ("anthropic", "/v1/messages"),
        ("openai-response", "/v1/responses"),
        ("realtime", "/v1/realtime"),
        ("gemini", "/v1beta/models/{model}:generateContent"),
        ("embeddings", "/v1/embeddings"),
        ("jina-rerank", "/v1/rerank"),
        ("system-one", "/v1/systemone"),
        ("audio-speech", "/v1/audio/speech"),
        ("music-generation", "/v1/music/generations"),
        ("audio-transcription", "/v1/audio/transcriptions"),
        ("image-generation", "/v1/images/generations"),
        ("openai-video", "/v1/videos"),
    ];
    assert_eq!(served, expected);
    let all = tollgate_catalog::EndpointType::names();
    assert_eq!(served.len(), all.len(), "a catalog may name no other than these: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_price_of_audio_are_a_mistake_in_the_catalog() {
    let house = house().await;
    let model = "[model.\"talk\"]\ntype = \"voice\"\nsupported_endpoint_types = [\"realtime\"]\n\
                 price = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"m\" }]\n";
    std::fs::write(house.dir.join("catalog/more.toml"), model).expect("written");
    let mistakes = house.source.load().err().expect("mistakes");
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let expected = "model.talk.price.audio_output: is missing";
    assert!(lines[0].contains(expected), "{lines:?}");
}
