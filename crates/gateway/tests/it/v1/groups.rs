//! Price groups: an account is in those it is in, pays what they pay, and does not learn of the
//! others.

use crate::house::{House, Plan, call_id, chat, error_of};
use serde_json::{Value, json};
use tollgate_store::{AccountChange, AccountId, Attribution, Credit, CreditKind, NewAccount, Pot};

const CATALOG: &str = r#"
[group.partner]
multiplier = "0.8"
[group.vip]
multiplier = "1/2"
[model."shared"]
max_output_tokens = 1000
enable_groups = ["default", "partner", "vip"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."gemini-closed"]
max_output_tokens = 1000
enable_groups = ["vip"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// A key of an account in these groups, with money.
async fn member(house: &House, groups: &[&str]) -> (AccountId, String) {
    let store = &house.running().app.store;
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let new = NewAccount { name: "member".to_owned(), groups, ..NewAccount::default() };
    let account = store.create_account(new).await.expect("an account").id;
    let credit = Credit {
        id: format!("first-{account}"),
        account,
        kind: CreditKind::TopUp,
        pot: Pot::Paid,
        amount: "1".parse().expect("an amount"),
        expires_at: None,
        reason: "test".to_owned(),
        actor: "test".to_owned(),
    };
    store.credit(credit).await.expect("credited");
    (account, house.new_key(|key| key.account = account).await)
}

async fn post(house: &House, key: &str, path: &str, body: &Value) -> reqwest::Response {
    house.http.post(house.url(path)).bearer_auth(key).json(body).send().await.expect("a reply")
}

fn shared() -> Value {
    let mut body = chat("[[sim:tokens=10]]");
    body["model"] = json!("shared");
    body
}

/// The group and the multiplier of a quote, of a call and of its row in the usage log.
async fn billed(house: &House, account: AccountId, key: &str) -> [(String, String); 2] {
    let shown = |sum: &Value| {
        let text = |name: &str| sum[name].as_str().unwrap_or_default().to_owned();
        (text("group"), text("multiplier"))
    };
    let quote = post(house, key, "/v1/quote?endpoint=/v1/chat/completions", &shared()).await;
    let quote: Value = quote.json().await.expect("JSON");
    let reply = post(house, key, "/v1/chat/completions", &shared()).await;
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    reply.bytes().await.expect("the whole");
    house.quiet().await;
    let row = house.running().app.store.usage_of(account, call).await.expect("read").expect("a row");
    let price = row.price.expect("a price");
    let one = |text: &Value| text.as_str().unwrap_or_default().to_owned();
    [shown(&quote), (one(&price["group"]), one(&price["multiplier"]))]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_pays_the_price_of_its_group() {
    let house = house().await;
    for (groups, group, multiplier) in [
        (&[][..], "default", "1"),
        (&["partner"][..], "partner", "4/5"),
        // Not in the order in which they were given, and not the cheapest: in that of the catalog.
        (&["vip", "partner"][..], "partner", "4/5"),
        (&["default", "vip"][..], "vip", "1/2"),
    ] {
        let (account, key) = member(&house, groups).await;
        let expected = (group.to_owned(), multiplier.to_owned());
        assert_eq!(billed(&house, account, &key).await, [expected.clone(), expected], "{groups:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_buys_nothing_that_is_for_the_default_group_without_being_in_it() {
    let house = house().await;
    let (_, key) = member(&house, &["partner"]).await;
    let (status, error) = error_of(post(&house, &key, "/v1/chat/completions", &chat("hi")).await).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("model_not_found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_changed_while_the_gateway_runs() {
    let house = house().await;
    let (account, key) = member(&house, &[]).await;
    assert_eq!(billed(&house, account, &key).await[1].0, "default");
    let app = &house.running().app;
    let change = AccountChange { groups: Some(vec!["vip".to_owned()]), ..AccountChange::default() };
    app.store.change_account(account, change, Attribution::default()).await.expect("asked").expect("changed");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    assert_eq!(billed(&house, account, &key).await[1].0, "vip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_left_the_catalog_sells_nothing_and_the_operator_is_warned() {
    let house = house().await;
    let (account, key) = member(&house, &["partner"]).await;
    let (other, spared) = member(&house, &["partner", "default"]).await;
    assert_eq!(billed(&house, account, &key).await[1].0, "partner");
    let without = CATALOG.replace("[group.partner]\nmultiplier = \"0.8\"\n", "").replace(", \"partner\"", "");
    std::fs::write(house.dir.join("catalog/more.toml"), without).expect("written");
    let app = &house.running().app;
    tollgate_gateway::workers::reload::reload(app, &house.source).await.expect("taken over");
    let (status, error) = error_of(post(&house, &key, "/v1/chat/completions", &shared()).await).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("model_not_found")), "and not at the price of everybody");
    assert_eq!(billed(&house, other, &spared).await[1].0, "default", "in its other group it buys as before");
    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    assert!(page.contains("tollgate_accounts_in_unknown_groups 2"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_tells_a_closed_model_from_one_that_does_not_exist() {
    let house = house().await;
    let message = json!([{ "role": "user", "content": "hi" }]);
    let asks = |model: &str| {
        vec![
            ("POST", "/v1/chat/completions".to_owned(), json!({ "model": model, "messages": message })),
            ("POST", "/v1/messages".to_owned(), json!({ "model": model, "messages": message, "max_tokens": 9 })),
            ("POST", "/v1/messages/count_tokens".to_owned(), json!({ "model": model, "messages": message })),
            ("POST", "/v1/responses".to_owned(), json!({ "model": model, "input": "hi" })),
            ("POST", "/v1/responses/input_tokens".to_owned(), json!({ "model": model, "input": "hi" })),
            ("POST", "/v1/videos".to_owned(), json!({ "model": model, "prompt": "hi" })),
            (
                "POST",
                format!("/v1beta/models/{model}:generateContent"),
                json!({ "contents": [{ "parts": [{ "text": "hi" }] }] }),
            ),
            (
                "POST",
                "/v1/quote?endpoint=/v1/chat/completions".to_owned(),
                json!({ "model": model, "messages": message }),
            ),
            ("GET", format!("/v1/models/{model}"), Value::Null),
            ("GET", format!("/v1beta/models/{model}"), Value::Null),
        ]
    };
    for ((method, path, body), (_, nowhere, nothing)) in asks("gemini-closed").into_iter().zip(asks("gemini-missing")) {
        let ask = async |path: &str, body: &Value| {
            let url = house.url(path);
            let request = if method == "GET" { house.http.get(url) } else { house.http.post(url).json(body) };
            let reply = request.bearer_auth(&house.key).send().await.expect("a reply");
            let (status, id) = (reply.status().as_u16(), reply.headers()["x-request-id"].clone());
            let text = reply.text().await.expect("text");
            (status, text.replace(id.to_str().expect("text"), "call_x"))
        };
        let (closed, missing) = (ask(&path, &body).await, ask(&nowhere, &nothing).await);
        assert_eq!(closed.0, 404, "{path}: {}", closed.1);
        assert_eq!((closed.0, closed.1.replace("gemini-closed", "gemini-missing")), missing, "{path}");
    }
    let (_, vip) = member(&house, &["vip"]).await;
    let body = json!({ "model": "gemini-closed", "messages": message });
    assert_eq!(post(&house, &vip, "/v1/chat/completions", &body).await.status(), 200);
}
