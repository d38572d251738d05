//! How much an account may store: within its quota, with money, and the error where it may not.

use super::{create, house, id, send};
use crate::dialects::CATALOG;
use crate::house::{House, Plan, error_of};
use reqwest::Method;
use serde_json::{Value, json};
use tollgate_store::{AccountId, Credit, CreditKind, NewAccount, Pot};

const SMALL: &str = "[storage]\naccount_bytes = \"64KiB\"\naccount_objects = 5\naccount_items = 40\n";

async fn small() -> House {
    House::with(Plan { catalog: CATALOG, config: SMALL.to_owned(), ..Plan::default() }).await
}

fn item(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": text })
}

async fn storage(house: &House) -> Value {
    let balance: Value = house.get("/v1/balance").send().await.expect("a reply").json().await.expect("JSON");
    balance["storage"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_end_at_the_quota_and_deleting_makes_room() {
    let house = small().await;
    let mut made = Vec::new();
    let (status, error) = loop {
        let reply = send(&house, Method::POST, "/v1/conversations", Some(&json!({ "items": [item("x")] }))).await;
        if reply.status() != 200 {
            break error_of(reply).await;
        }
        made.push(reply.json::<Value>().await.expect("JSON"));
    };
    assert_eq!((status, &error["code"], made.len()), (403, &json!("storage_quota_exceeded"), 5), "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("5 of 5 responses and conversations") && message.contains("of 65536 bytes"), "{message}");
    assert_eq!(storage(&house).await["objects"], 5);
    let path = format!("/v1/conversations/{}", id(&made[0]));
    let large = json!({ "items": [item(&"y".repeat(64 << 10))] });
    let (status, error) = error_of(send(&house, Method::POST, &format!("{path}/items"), Some(&large)).await).await;
    assert_eq!((status, &error["code"]), (403, &json!("storage_quota_exceeded")), "too many bytes");
    // What is there can be read and erased, and then there is room.
    assert_eq!(send(&house, Method::GET, &format!("{path}/items"), None).await.status(), 200);
    assert_eq!(send(&house, Method::DELETE, &path, None).await.status(), 200);
    assert_eq!(send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await.status(), 200);
    for one in &made[1..] {
        send(&house, Method::DELETE, &format!("/v1/conversations/{}", id(one)), None).await;
    }
    assert_eq!(
        (storage(&house).await["objects"].clone(), storage(&house).await["items"].clone()),
        (json!(1), json!(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_does_not_fit_is_answered_and_says_that_it_is_not_stored() {
    let house = small().await;
    let ask = |input: &str| json!({ "model": "gemini-on-openai-response", "input": input });
    let mut stored = 0;
    for n in 0..8 {
        let made = create(&house, ask(&format!("{n} [[sim:tokens=2]]"))).await;
        stored += usize::from(made["store"] == json!(true));
    }
    assert_eq!(stored, 5, "the others were answered and charged all the same");
    // A conversation would have a hole in it: nothing is asked of the provider.
    let before = house.sim.received().len();
    let (status, error) = error_of(send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await).await;
    assert_eq!((status, &error["code"]), (403, &json!("storage_quota_exceeded")));
    let list = house.running().app.store.stored(house.account).await.expect("read");
    assert_eq!(list.objects, 5);
    assert_eq!(house.sim.received().len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_a_conversation_without_room_is_refused_before_it_is_sent() {
    let house = small().await;
    let made = send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await;
    let made: Value = made.json().await.expect("JSON");
    for _ in 0..4 {
        assert_eq!(send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await.status(), 200);
    }
    let (before, money) = (house.sim.received().len(), house.available().await);
    let ask = json!({ "model": "gemini-on-openai", "input": "x", "conversation": id(&made) });
    let (status, error) = error_of(send(&house, Method::POST, "/v1/responses", Some(&ask)).await).await;
    assert_eq!((status, &error["code"]), (403, &json!("storage_quota_exceeded")), "{error}");
    assert_eq!((house.sim.received().len(), house.available().await), (before, money));
}

/// An account that has never topped up, perhaps with trial credit.
async fn newcomer(house: &House, usd: Option<&str>) -> (AccountId, String) {
    let store = &house.running().app.store;
    let account = store.create_account(NewAccount::default()).await.expect("an account").id;
    if let Some(usd) = usd {
        let credit = Credit {
            id: format!("trial-{account}"),
            account,
            kind: CreditKind::TopUp,
            pot: Pot::Trial,
            amount: usd.parse().expect("an amount"),
            expires_at: None,
            reason: "test".to_owned(),
            actor: "test".to_owned(),
        };
        store.credit(credit).await.expect("credited");
    }
    (account, house.new_key(|key| key.account = account).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_nothing_is_stored_and_without_a_top_up_little() {
    let house = house().await;
    let (_, poor) = newcomer(&house, None).await;
    let ask = async |key: &str, method: Method, path: &str, body: Option<Value>| {
        let request = house.http.request(method, house.url(path)).bearer_auth(key);
        body.map_or(request.try_clone().expect("no stream"), |body| request.json(&body)).send().await.expect("a reply")
    };
    let (status, error) = error_of(ask(&poor, Method::POST, "/v1/conversations", Some(json!({}))).await).await;
    assert_eq!((status, &error["code"]), (402, &json!("insufficient_balance")), "{error}");
    let (_, trial) = newcomer(&house, Some("1")).await;
    let long = json!({ "items": [item(&"x".repeat(1 << 20))] });
    let mut made = Vec::new();
    let (status, error) = loop {
        let reply = ask(&trial, Method::POST, "/v1/conversations", Some(long.clone())).await;
        if reply.status() != 200 {
            break error_of(reply).await;
        }
        made.push(reply.json::<Value>().await.expect("JSON"));
    };
    assert_eq!((status, &error["code"], made.len()), (403, &json!("storage_quota_exceeded"), 3), "{error}");
    let path = format!("/v1/conversations/{}", id(&made[0]));
    assert_eq!(ask(&trial, Method::DELETE, &path, None).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_items_has_a_bounded_size() {
    let house = house().await;
    let made: Value =
        send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await.json().await.expect("JSON");
    let path = format!("/v1/conversations/{}/items", id(&made));
    for _ in 0..6 {
        let body = json!({ "items": [item(&"x".repeat(3 << 20))] });
        assert_eq!(send(&house, Method::POST, &path, Some(&body)).await.status(), 200);
    }
    let (mut seen, mut after, mut pages) = (0, String::new(), 0);
    loop {
        let page = send(&house, Method::GET, &format!("{path}?limit=100&order=asc&after={after}"), None).await;
        let text = page.text().await.expect("text");
        assert!(text.len() < 9 << 20, "{} bytes", text.len());
        let page: Value = serde_json::from_str(&text).expect("JSON");
        seen += page["data"].as_array().expect("a list").len();
        pages += 1;
        after = page["last_id"].as_str().expect("an id").to_owned();
        if page["has_more"] == json!(false) {
            break;
        }
    }
    assert_eq!((seen, pages), (6, 3), "two of three MiB on each");
    let long = json!({ "metadata": { "a": "x".repeat(513) } });
    assert_eq!(send(&house, Method::POST, "/v1/conversations", Some(&long)).await.status(), 400);
    assert_eq!(
        send(&house, Method::POST, "/v1/conversations", Some(&json!({ "metadata": { "a": "é".repeat(512) } })))
            .await
            .status(),
        200
    );
}
