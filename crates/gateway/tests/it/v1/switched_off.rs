//! Models and providers that an operator has paused.

use crate::house::{House, Plan, chat, error_of};
use serde_json::{Value, json};
use tollgate_store::{PauseChange, PauseKind};

const CATALOG: &str = r#"
[model."gemini-any"]
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// As the command line does it: a row in the store, found by the round of every replica.
pub async fn switch(house: &House, kind: PauseKind, name: &str, paused: bool) {
    let app = &house.running().app;
    let (name, actor, reason) = (name.to_owned(), "ada".to_owned(), "secret reason".to_owned());
    let change = PauseChange { kind, name, paused, at: app.world.now_ms(), actor, reason };
    app.store.change_pause(change).await.expect("written");
    app.routes.switches.read(&app.store, &app.metrics).await.expect("read");
}

async fn metric(house: &House, line: &str) -> bool {
    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    page.lines().any(|own| own == line)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_model_answers_503_in_every_dialect_until_it_is_resumed() {
    let mut house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    switch(&house, PauseKind::Model, "gemini-any", true).await;
    assert!(metric(&house, "tollgate_paused{kind=\"model\",name=\"gemini-any\"} 1").await);
    let message = json!([{ "role": "user", "content": "hi" }]);
    let asks = [
        ("/v1/chat/completions", json!({ "model": "gemini-any", "messages": message })),
        ("/v1/responses", json!({ "model": "gemini-any", "input": "hi" })),
        ("/v1/messages", json!({ "model": "gemini-any", "messages": message, "max_tokens": 9 })),
        ("/v1beta/models/gemini-any:generateContent", json!({ "contents": [{ "parts": [{ "text": "hi" }] }] })),
    ];
    for (path, body) in &asks {
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply");
        assert_eq!(
            (reply.status().as_u16(), reply.headers()["retry-after"].to_str().ok()),
            (503, Some("30")),
            "{path}"
        );
        let page: Value = reply.json().await.expect("JSON");
        assert!(page.to_string().contains("paused by the operator") && !page.to_string().contains("secret"), "{page}");
    }
    assert_eq!(house.ask("hi").await.status(), 200, "another model is sold as before");
    house.restart().await;
    let (path, body) = &asks[0];
    let ask =
        async || house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply");
    let (status, error) = error_of(ask().await).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("no_route_available")), "a pause survives a restart");
    assert_eq!(house.sim.received().len(), 1, "nothing of it was sent");
    switch(&house, PauseKind::Model, "gemini-any", false).await;
    assert_eq!(ask().await.status(), 200);
    assert!(metric(&house, "tollgate_paused{kind=\"model\",name=\"gemini-any\"} 0").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_provider_gets_nothing_new_and_others_take_over() {
    let house = House::new().await;
    let ask = async |model: &str| {
        let mut body = chat("hi");
        body["model"] = json!(model);
        house.post(&body).send().await.expect("a reply")
    };
    switch(&house, PauseKind::Provider, "nobody", true).await;
    let reply = ask("two-routes").await;
    let id = crate::house::call_id(&reply);
    assert_eq!(reply.status(), 200);
    assert_eq!(house.row(id).await.attempts, 1, "the paused one was not asked");
    switch(&house, PauseKind::Provider, "sim", true).await;
    for model in ["two-routes", "plain"] {
        let (status, error) = error_of(ask(model).await).await;
        assert_eq!((status, error["code"].as_str()), (503, Some("no_route_available")), "{model}");
        assert_eq!(error["reason"], "paused");
    }
    assert_eq!(house.sim.received().len(), 1);
    assert_eq!(ask("billed-to-the-end").await.status(), 200, "another provider at the same address");
    switch(&house, PauseKind::Provider, "sim", false).await;
    assert_eq!(ask("plain").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_provider_takes_no_video_and_finishes_those_it_has() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    let body = json!({ "model": "wan2.7-t2v", "prompt": "a cat", "seconds": "5" });
    let create = || house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send();
    let made: Value = create().await.expect("a reply").json().await.expect("JSON");
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    switch(&house, PauseKind::Provider, "dashscope", true).await;
    let (status, error) = error_of(create().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("no_route_available")));
    loop {
        let seen = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
        let seen: Value = seen.json().await.expect("JSON");
        match seen["status"].as_str() {
            Some("completed") => break,
            Some("queued" | "in_progress") => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            _ => panic!("{seen}"),
        }
    }
}
