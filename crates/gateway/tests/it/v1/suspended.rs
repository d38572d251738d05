//! A suspended account: nothing new begins, what runs ends and is settled, what was is readable.

use crate::house::{House, Plan, call_id, chat, error_of, streamed};
use serde_json::{Value, json};
use tollgate_store::{AccountChange, Attribution, Ending};

const CATALOG: &str = r#"
[model."gemini-any"]
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn suspend(house: &House, suspended: bool) {
    let change = AccountChange { suspended: Some(suspended), ..AccountChange::default() };
    let done = Attribution::by("ada".to_owned(), "abuse".to_owned());
    let store = &house.running().app.store;
    store.change_account(house.account, change, done).await.expect("asked").expect("changed");
}

/// What every replica does within a second.
async fn heard(house: &House) {
    let app = &house.running().app;
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_calls_are_refused_in_every_dialect_and_its_records_stay_readable() {
    let house = House::with(Plan { catalog: CATALOG, videos: true, ..Plan::default() }).await;
    assert_eq!(house.ask("hi").await.status(), 200);
    suspend(&house, true).await;
    for notified in [false, true] {
        if notified {
            heard(&house).await;
        }
        let message = json!([{ "role": "user", "content": "hi" }]);
        let model = "gemini-any";
        for (path, body, word) in [
            ("/v1/chat/completions", json!({ "model": model, "messages": message }), "/error/code"),
            ("/v1/responses", json!({ "model": model, "input": "hi" }), "/error/code"),
            ("/v1/messages", json!({ "model": model, "messages": message, "max_tokens": 9 }), "/error/type"),
            (
                "/v1beta/models/gemini-any:generateContent",
                json!({ "contents": [{ "parts": [{ "text": "hi" }] }] }),
                "/error/status",
            ),
            ("/v1/videos", json!({ "model": "wan2.7-t2v", "prompt": "hi", "seconds": "5" }), "/error/code"),
        ] {
            let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await;
            let reply = reply.expect("a reply");
            assert_eq!(reply.headers()["x-should-retry"], "false", "{path}");
            let status = reply.status().as_u16();
            let page: Value = reply.json().await.expect("JSON");
            let code = page.pointer(word).and_then(Value::as_str).unwrap_or_default();
            let expected = match word {
                "/error/code" => "account_suspended",
                "/error/type" => "permission_error",
                _ => "PERMISSION_DENIED",
            };
            assert_eq!((status, code), (403, expected), "{path}: {page}");
            assert!(page.to_string().contains("suspended"), "{page}");
        }
    }
    assert_eq!(house.sim.received().len(), 1, "only the call of before was sent");
    for path in ["/v1/balance", "/v1/usage", "/v1/models", "/v1/videos", "/api/pricing"] {
        assert_eq!(house.get(path).send().await.expect("a reply").status(), 200, "{path}");
    }
    let mut body = chat("hi");
    body["max_tokens"] = json!(5);
    let url = house.url("/v1/quote?endpoint=/v1/chat/completions");
    let quote = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    let quote: Value = quote.json().await.expect("JSON");
    assert_eq!(quote["would_be_refused"]["code"], "account_suspended");
    suspend(&house, false).await;
    heard(&house).await;
    assert_eq!(house.ask("hi").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_runs_is_delivered_and_charged() {
    let house = House::new().await;
    let reply = house.post(&streamed("[[sim:tokens=20]]")).send().await.expect("a reply");
    let id = call_id(&reply);
    suspend(&house, true).await;
    heard(&house).await;
    let text = reply.text().await.expect("a whole stream");
    assert!(text.contains("[DONE]"), "{text}");
    let row = house.row(id).await;
    assert_eq!((row.ending, row.write_off.nano()), (Ending::Answered, 0));
    assert!(row.charge.nano() > 0);
    let (status, error) = error_of(house.ask("more").await).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("account_suspended")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_video_goes_on_to_its_end_and_is_charged() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    let body = json!({ "model": "wan2.7-t2v", "prompt": "a cat", "seconds": "5" });
    let made = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let made: Value = made.expect("a reply").json().await.expect("JSON");
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    suspend(&house, true).await;
    heard(&house).await;
    loop {
        let seen = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
        assert_eq!(seen.status(), 200, "its videos are readable");
        let seen: Value = seen.json().await.expect("JSON");
        match seen["status"].as_str() {
            Some("completed") => break,
            Some("queued" | "in_progress") => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            _ => panic!("{seen}"),
        }
    }
    house.quiet().await;
    let account = house.balance().await;
    assert_eq!(account.paid_held.nano(), 0);
    assert!(account.paid_available < "10".parse().expect("an amount"), "it was charged");
}
