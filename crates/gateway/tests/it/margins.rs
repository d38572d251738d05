//! What calls cost the operator: beside the charge in rows, metrics and reports of operators, and
//! nowhere that a customer looks.

use crate::house::{House, Plan, call_id};
use serde_json::{Value, json};
use tollgate_store::{Attribution, CallId, NewAdminKey, UsageRow};

const SECRET: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
/// Sold at 2 and 4 nano-USD per thousandth of a token; bought at the list, by the route, at a loss,
/// and for nobody knows what.
const CATALOG: &str = r#"
[model."listed"]
price = { input = 2_000_000, output = 4_000_000 }
list = { price = { input = 1_000_000, output = 3_000_000 }, source = "https://example.com" }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."own-way"]
price = { input = 2_000_000, output = 4_000_000 }
list = { price = { input = 1_000_000, output = 3_000_000 }, source = "https://example.com" }
route = [
  { provider = "nobody", upstream_model = "sim-plain", priority = 0, cost = { input = 9_000_000, output = 9_000_000 } },
  { provider = "sim", upstream_model = "sim-plain", priority = 1, cost = { input = 500_000, output = 700_000 } },
]
[model."at-a-loss"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain", cost = { input = 5_000_000, output = 5_000_000 } }]
[model."unlisted"]
price = { input = 2_000_000, output = 4_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn ask(house: &House, model: &str) -> (CallId, UsageRow) {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "hello there [[sim:tokens=2]]" }] });
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    reply.bytes().await.expect("the whole of it");
    (call, house.row(call).await)
}

async fn as_operator(house: &House, path: &str) -> Value {
    let reply = house.http.get(house.url(path)).bearer_auth(SECRET).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{path}");
    reply.json().await.expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cost_is_noted_for_operators_and_hidden_from_customers() {
    let mut house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, SECRET).await.expect("a key");
    // Three tokens in, two out.
    let rows = [
        ("listed", 14_000, Some(9_000)),
        ("own-way", 14_000, Some(2_900)),
        ("at-a-loss", 5_000, Some(25_000)),
        ("unlisted", 14_000, None),
    ];
    for (model, charge, cost) in rows {
        let (call, row) = ask(&house, model).await;
        assert_eq!((row.charge.nano(), row.cost.map(|cost| cost.nano())), (charge, cost), "{model}");
        for path in [
            "/v1/usage",
            &format!("/v1/usage/{call}"),
            &format!("/v1/usage/{call}/receipt"),
            "/api/pricing",
            &format!("/api/pricing/{model}"),
        ] {
            let text = house.get(path).send().await.expect("a reply").text().await.expect("text");
            assert!(!text.contains("cost") && !text.contains("margin"), "{path}: {text}");
        }
        let path = format!("/api/admin/accounts/{}/usage/{call}", house.account);
        let seen = as_operator(&house, &path).await;
        assert_eq!(
            (&seen["cost_nano_usd"], &seen["margin_nano_usd"]),
            (&json!(cost), &json!(cost.map(|cost| charge - cost))),
            "{model}"
        );
    }
    let (call, refused) = {
        let body = json!({ "model": "listed", "messages": [{ "role": "user", "content": "[[sim:error500]]" }] });
        let reply = house.post(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        (call, house.row(call).await)
    };
    assert_eq!((refused.charge.nano(), refused.cost), (0, None), "{call}: what failed is not known to cost anything");

    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    for line in [
        "tollgate_sold_nano_usd_total{model=\"listed\",provider=\"sim\"} 14000",
        "tollgate_cost_nano_usd_total{model=\"listed\",provider=\"sim\"} 9000",
        "tollgate_cost_nano_usd_total{model=\"own-way\",provider=\"sim\"} 2900",
        "tollgate_cost_above_charge_calls_total{model=\"at-a-loss\",provider=\"sim\"} 1",
        "tollgate_cost_unknown_calls_total{model=\"unlisted\",provider=\"sim\"} 1",
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
    let now = house.running().app.world.now_ms();
    let report =
        as_operator(&house, &format!("/api/admin/margins?from_ms={}&to_ms={}&by=model", now - 3_600_000, now + 1))
            .await;
    let of = |model: &str| {
        report["data"].as_array().expect("rows").iter().find(|row| row["model"] == model).cloned().expect("a row")
    };
    assert_eq!((&of("listed")["calls"], &of("listed")["margin_usd"]), (&json!(1), &json!("0.000005")));
    assert_eq!(of("at-a-loss")["margin_nano_usd"], json!(-20_000));
    assert_eq!((&of("unlisted")["cost_unknown"], &of("unlisted")["margin_nano_usd"]), (&json!(1), &json!(0)));
    let days =
        as_operator(&house, &format!("/api/admin/margins?from_ms={}&to_ms={}&by=day", now - 3_600_000, now + 1)).await;
    assert_eq!(
        days["data"].as_array().map(|rows| rows.iter().map(|row| row["calls"].as_i64().unwrap_or(0)).sum()),
        Some(4)
    );
    let long = house.http.get(house.url("/api/admin/margins?from_ms=1&to_ms=8000000000000")).bearer_auth(SECRET).send();
    let (status, error) = crate::house::error_of(long.await.expect("a reply")).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("to_ms")));
    // What was noted survives a restart, and the rows are whole.
    house.restart().await;
    assert_eq!(house.all_rows().await.values().filter(|row| row.cost.is_some()).count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_below_cost_are_warned_of() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let loaded = house.source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let warnings: Vec<String> =
        loaded.warnings(0).into_iter().filter(|warning| warning.contains("below what it costs")).collect();
    assert_eq!(
        warnings,
        [
            "\"at-a-loss\" is sold below what it costs at \"sim\": input, output",
            "\"own-way\" is sold below what it costs at \"nobody\": input, output",
        ]
    );
}

/// A provider that says what a call cost, and keeps the prompts of a session on one server.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_says_of_the_cost_counts_and_calls_of_an_account_stick_together() {
    let catalog = r#"
[model."told"]
price = { input = 2_000_000, output = 4_000_000 }
list = { price = { input = 1_000_000, output = 3_000_000 }, source = "https://example.com" }
route = [{ provider = "tells", upstream_model = "sim-plain" }]
"#;
    let config = "[provider.tells]\nkind = \"openai\"\nbase_url = \"{host}/v1\"\n\
                  quirks = { cost_at = \"prompt_tokens_details.cached_tokens\", affinity = \"x-session-affinity\" }\n\
                  [provider.other]\nkind = \"openai\"\nbase_url = \"{host}/v1\"\nquirks = { cost_at = \"nowhere\" }\n";
    let more = "[model.\"untold\"]\nprice = { input = 2_000_000, output = 4_000_000 }\n\
                list = { price = { input = 1_000_000, output = 3_000_000 }, source = \"https://example.com\" }\n\
                route = [{ provider = \"other\", upstream_model = \"sim-plain\" }]\n";
    let catalog = Box::leak(format!("{catalog}{more}").into_boxed_str());
    let house = House::with(Plan { catalog, config: config.to_owned(), ..Plan::default() }).await;
    // The simulator has no such member: a count of its report stands for USD.
    let (_, row) = ask(&house, "told").await;
    assert_eq!(row.cost.map(|cost| cost.nano()), Some(0), "what the provider says, not the list");
    let (_, row) = ask(&house, "untold").await;
    assert_eq!(row.cost.map(|cost| cost.nano()), Some(9_000), "it says nothing, so the list counts");
    ask(&house, "told").await;
    let (_, stranger) = house.stranger("1").await;
    let body = json!({ "model": "told", "messages": [{ "role": "user", "content": "hello" }] });
    let url = house.url("/v1/chat/completions");
    assert_eq!(house.http.post(url).bearer_auth(stranger).json(&body).send().await.expect("a reply").status(), 200);
    let sent = house.sim.received();
    let headers: Vec<Option<&str>> = sent.iter().map(|one| one.header("x-session-affinity")).collect();
    let [first, untold, again, other] = headers[..] else { panic!("{headers:?}") };
    assert!(first.is_some_and(|value| value.len() == 24) && untold.is_none(), "{headers:?}");
    assert!(first == again && first != other, "{headers:?}");
    let account = house.account.to_string();
    assert!(!first.is_some_and(|value| account.contains(value)), "it tells nobody whose they are");
}

/// Whole and streamed, in every dialect that such a provider speaks, and as vectors.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_cost_the_operator_is_in_no_answer() {
    let quirks = "quirks = { cost_at = \"cost\", hide = [\"cost_details\", \"is_byok\"] }";
    let provider = |name: &str, kind: &str, base: &str| {
        format!("[provider.{name}]\nkind = \"{kind}\"\nbase_url = \"{{host}}{base}\"\n{quirks}\n")
    };
    let config = [
        provider("chat", "openai", "/v1"),
        provider("responses", "openai-responses", "/v1"),
        provider("claude", "anthropic", ""),
    ]
    .concat();
    let mut catalog = String::new();
    for name in ["chat", "responses", "claude"] {
        catalog.push_str(&format!(
            "[model.\"by-{name}\"]\nsupported_endpoint_types = [\"openai\", \"openai-response\", \"anthropic\"]\n\
             price = {{ input = 2_000_000, output = 4_000_000 }}\n\
             route = [{{ provider = \"{name}\", upstream_model = \"sim-priced\" }}]\n"
        ));
    }
    catalog.push_str(
        "[model.\"vectors\"]\ntype = \"embedding\"\nsupported_endpoint_types = [\"embeddings\"]\n\
         price = { input = 2_000_000, output = 0 }\nroute = [{ provider = \"chat\", upstream_model = \"sim-priced\" }]\n",
    );
    let house = House::with(Plan { catalog: Box::leak(catalog.into_boxed_str()), config, ..Plan::default() }).await;
    let said = json!([{ "role": "user", "content": "hello" }]);
    let mut asked = vec![("/v1/embeddings", json!({ "model": "vectors", "input": "hello" }))];
    for model in ["by-chat", "by-responses", "by-claude"] {
        for stream in [false, true] {
            let chat = json!({ "model": model, "messages": said, "stream": stream, "max_tokens": 64 });
            let mut usage = chat.clone();
            if stream {
                usage["stream_options"] = json!({ "include_usage": true });
            }
            let responses = json!({ "model": model, "input": "hello", "stream": stream });
            asked.extend([("/v1/chat/completions", usage), ("/v1/messages", chat), ("/v1/responses", responses)]);
        }
    }
    for (path, body) in asked {
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        let (status, headers) = (reply.status(), format!("{:?}", reply.headers()));
        let id = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
        let text = reply.text().await.expect("a body");
        assert_eq!(status, 200, "{path} {body} {text}");
        assert!(text.contains("_tokens"), "the rest of the report is there: {text}");
        for word in ["cost", "byok", "0.000123"] {
            assert!(!text.contains(word) && !headers.contains(word), "{path} {body} has {word}: {text}");
        }
        let row = house.row(id.parse().expect("an id")).await;
        assert_eq!(row.cost.map(|cost| cost.nano()), Some(123_000), "{path} {body}: we know it");
        let shown = house.get(&format!("/v1/usage/{id}")).send().await.expect("a reply").text().await.expect("a row");
        assert!(!shown.contains("cost") && !shown.contains("byok"), "{path} {body}: {shown}");
    }
}
