//! POST /v1/chat/completions, whole replies.

use crate::house::{House, Plan, call_id, chat, error_of};
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_call_is_answered_charged_and_logged() {
    let house = House::new().await;
    let reply = house.ask("one two three [[sim:tokens=5]]").await;
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    let charge = reply.headers()["x-tollgate-charge-usd"].to_str().expect("text").to_owned();
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "plain", "the client sees the name it asked for");
    assert_eq!(body["usage"]["prompt_tokens"], 4);
    assert_eq!(body["usage"]["completion_tokens"], 5);
    // 4 × 1,000 + 5 × 2,000 nano-USD
    assert_eq!(charge, "0.000014");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.status, row.charge), (Ending::Answered, 200, Money::from_nano(14_000)));
    assert_eq!((row.counters.input, row.counters.output, row.estimated), (4, 5, false));
    assert_eq!(row.upstream_model.as_deref(), Some("sim-plain"));
    house.quiet().await;
    assert_eq!(house.available().await, 10_000_000_000 - 14_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_pass_through_untouched_except_the_model() {
    let house = House::new().await;
    let body = r#"{ "model":"plain",  "zz_unknown": {"a":[1,2.50,"\u00e9"]},
        "messages":[{"role":"user","content":"hi","x":1e3}], "seed": 12345678901234567890 }"#;
    let reply = house
        .http
        .post(house.url("/v1/chat/completions"))
        .bearer_auth(&house.key)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .expect("a reply");
    assert_eq!(reply.status(), 200);
    let seen = house.sim.received();
    assert_eq!(seen.len(), 1);
    assert_eq!(String::from_utf8_lossy(&seen[0].body), body.replace("\"plain\"", "\"sim-plain\""));
    assert!(!seen[0].has_authorization(), "the client's key must not reach the provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_name_upstream_means_the_very_same_bytes() {
    let house = House::new().await;
    let mut body = chat("hello");
    body["model"] = json!("sim-plain");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(house.sim.received()[0].body.as_ref(), serde_json::to_vec(&body).expect("JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_bodies_name_the_field_and_cost_nothing() {
    let house = House::new().await;
    let cases = [
        (json!({ "messages": [{ "role": "user", "content": "x" }] }), "model"),
        (json!({ "model": "", "messages": [{ "role": "user", "content": "x" }] }), "model"),
        (json!({ "model": 7, "messages": [{ "role": "user", "content": "x" }] }), "model"),
        (json!({ "model": "plain" }), "messages"),
        (json!({ "model": "plain", "messages": [] }), "messages"),
        (json!({ "model": "plain", "messages": "hello" }), "messages"),
        (json!({ "model": "plain", "messages": [{ "content": "x" }] }), "messages[0].role"),
        (json!({ "model": "plain", "messages": [{ "role": "user", "content": "x" }], "stream": "yes" }), "stream"),
        (json!({ "model": "plain", "messages": [{ "role": "user", "content": "x" }], "max_tokens": -1 }), "max_tokens"),
        (
            json!({ "model": "plain", "messages": [{ "role": "user", "content": "x" }], "max_tokens": 1.5 }),
            "max_tokens",
        ),
        (json!({ "model": "plain", "messages": [{ "role": "user", "content": "x" }], "n": 0 }), "n"),
        (json!({ "model": "plain", "messages": [{ "role": "user", "content": "x" }], "n": 1000 }), "n"),
    ];
    for (body, param) in cases {
        let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{body} → {error}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(error["type"], "invalid_request_error");
    }
    for broken in ["", "{", "[]", "null", "{\"model\":\"plain\",\"model\":\"x\",\"messages\":[]}", "\u{0}"] {
        let reply = house
            .http
            .post(house.url("/v1/chat/completions"))
            .bearer_auth(&house.key)
            .header("content-type", "application/json")
            .body(broken)
            .send()
            .await
            .expect("a reply");
        assert_eq!(reply.status(), 400, "{broken:?}");
    }
    assert!(house.sim.received().is_empty(), "nothing may reach the provider");
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_refused_with_the_reason() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.credit("trial", Pot::Trial, Money::from_usd(1).expect("an amount")).await;
    for (model, status, code) in [
        ("nothing", 404, "model_not_found"),
        ("no-chat", 400, "unsupported_value"),
        ("paid-only", 403, "model_requires_topup"),
    ] {
        let mut body = chat("x");
        body["model"] = json!(model);
        let (got, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
        assert_eq!((got, &error["code"], &error["param"]), (status, &json!(code), &json!("model")), "{error}");
    }
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_balance_is_402_and_nothing_is_sent() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    let reply = house.ask("hello").await;
    assert_eq!(reply.headers()["x-should-retry"], "false");
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (402, &json!("insufficient_balance")));
    assert!(house.sim.received().is_empty());
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge), (Ending::Refused, Money::ZERO));
}

#[tokio::test(flavor = "multi_thread")]
async fn trial_credit_is_spent_before_paid_credit() {
    let house = House::with(Plan { usd: "1", ..Plan::default() }).await;
    house.credit("trial", Pot::Trial, Money::from_nano(2_000_000)).await;
    let reply = house.ask("[[sim:tokens=3]]").await;
    assert_eq!(reply.status(), 200);
    house.quiet().await;
    let account = house.balance().await;
    assert_eq!(account.trial_available.nano(), 2_000_000 - 7_000, "one prompt word, three words of reply");
    assert_eq!(account.paid_available.nano(), 1_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_longer_than_its_hold_costs_no_more_than_the_account_has() {
    let catalog = "[model.\"open\"]\nprice = { input = 1_000_000, output = 2_000_000 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    // A whole answer without a limit is held for 16,384 tokens; this one has more.
    let house = House::with(Plan { usd: "0.033", catalog, ..Plan::default() }).await;
    let mut body = chat("[[sim:tokens=20000]]");
    body["model"] = json!("open");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    let row = house.row(call).await;
    house.quiet().await;
    assert_eq!(house.available().await, 0, "charged up to what there is, never below zero");
    assert!(row.hold.nano() < 33_000_000, "{}", row.hold);
    assert_eq!(row.charge.nano(), 33_000_000);
    assert_eq!(row.charge.nano() + row.write_off.nano(), 1_000 + 20_000 * 2_000, "the rest is the operator's loss");
}
