//! What an account and its keys may spend, and with which money: limits, trial credit that expires,
//! the first top-up.

use crate::house::{House, Plan, call_id, chat, error_of};
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::{Change, Credit, CreditKind, NewLimits, Pot};

/// Sold to everybody for ten times what an account pays that has topped up.
const CATALOG: &str = r#"
[model."dear-trial"]
supported_endpoint_types = ["openai"]
[model."dear-trial".price]
input = 10_000_000
output = 20_000_000
[model."dear-trial".paid]
input = 1_000_000
output = 2_000_000
[[model."dear-trial".route]]
provider = "sim"
upstream_model = "sim-plain"
"#;

fn asking(model: &str) -> Value {
    let mut body = chat("[[sim:tokens=10]]");
    body["model"] = json!(model);
    body["max_tokens"] = json!(10);
    body
}

async fn give(house: &House, pot: Pot, nano: i64, expires_at: Option<i64>) {
    let credit = Credit {
        id: format!("{pot:?}-{nano}"),
        account: house.account,
        kind: CreditKind::TopUp,
        pot,
        amount: Money::from_nano(nano),
        expires_at,
        reason: "test".to_owned(),
        actor: "test".to_owned(),
    };
    house.running().app.store.credit(credit).await.expect("credited");
}

async fn balance(house: &House) -> Value {
    house.get("/v1/balance").send().await.expect("a reply").json().await.expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_top_up_counts_with_the_next_call() {
    let house = House::with(Plan { usd: "0", catalog: CATALOG, ..Plan::default() }).await;
    give(&house, Pot::Trial, 1_000_000_000, None).await;
    let ask = async |model: &str| house.post(&asking(model)).send().await.expect("a reply");
    let before = ask("dear-trial").await;
    let before = house.row(call_id(&before)).await;
    let (status, error) = error_of(ask("paid-only").await).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("model_requires_topup")));
    // Straight into the store: the key book has not heard of it when the next calls come.
    give(&house, Pot::Paid, 1_000_000_000, None).await;
    let after = house.row(call_id(&ask("dear-trial").await)).await;
    assert_eq!((after.charge.nano() * 10, after.hold.nano() * 10), (before.charge.nano(), before.hold.nano()));
    let trial = balance(&house).await["trial_available_nano_usd"].as_i64();
    assert_eq!(trial, Some(1_000_000_000 - before.charge.nano() - after.charge.nano()), "trial money first");
    let paid_only = ask("paid-only").await;
    assert_eq!(paid_only.status(), 200);
    let charge = house.row(call_id(&paid_only)).await.charge.nano();
    let now = balance(&house).await;
    assert_eq!(now["trial_available_nano_usd"].as_i64(), trial, "and none of it here");
    assert_eq!(now["paid_available_nano_usd"], json!(1_000_000_000 - charge));
    assert_eq!(now["topped_up"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_for_paid_credit_does_not_touch_trial_credit() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    give(&house, Pot::Paid, 1_000, None).await;
    give(&house, Pot::Trial, 1_000_000_000, None).await;
    let (status, error) = error_of(house.post(&asking("paid-only")).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")), "trial credit does not help");
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_enforced_and_shown() {
    let house = House::new().await;
    let body = asking("plain");
    let hold = house.row(call_id(&house.post(&body).send().await.expect("a reply"))).await.hold;
    let app = &house.running().app;
    assert_eq!(balance(&house).await["limits"], json!({ "key": {}, "account": {} }));
    let key = app.store.keys(house.account).await.expect("keys").remove(0);
    let spent = key.spent.nano();
    let room = Money::from_nano(spent + hold.nano());
    let limits = NewLimits { total: Change::Set(room), day: Change::Set(room), month: Change::Keep };
    app.store.change_key(key.id, limits.into(), Default::default()).await.expect("limited");
    let account = NewLimits { day: Change::Set(room), month: Change::Set(room), ..NewLimits::default() };
    app.store.change_account(house.account, account.into(), Default::default()).await.expect("limited");
    let shown = balance(&house).await["limits"].clone();
    for (whose, span) in [("key", "total"), ("key", "day"), ("account", "day"), ("account", "month")] {
        let one = &shown[whose][span];
        assert_eq!(
            (&one["limit_nano_usd"], &one["left_nano_usd"]),
            (&json!(room.nano()), &json!(hold.nano())),
            "{shown}"
        );
        let anew = one["begins_anew_at_ms"].as_i64();
        assert_eq!(anew.is_some_and(|at| at > app.world.now_ms() && at % 86_400_000 == 0), span != "total", "{one}");
    }
    // One call fits, and leaves too little for the next.
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200);
    house.quiet().await;
    for (lift, code, word) in [
        (NewLimits { total: Change::Lift, ..NewLimits::default() }, "key_spend_cap_reached", "in all"),
        (NewLimits { day: Change::Lift, ..NewLimits::default() }, "key_spend_cap_reached", "USD a day"),
    ] {
        let reply = house.post(&body).send().await.expect("a reply");
        let (call, waits) = (call_id(&reply), reply.headers().contains_key("retry-after"));
        assert_eq!(reply.headers().contains_key("x-should-retry"), !waits, "one advice or the other");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (402, Some(code)));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(word) && message.contains(&format!("{room} USD")), "{message}");
        assert_eq!(message.contains("begins anew on 2"), word != "in all", "{message}");
        assert_eq!(house.row(call).await.reason, code, "the refusal is in the usage log");
        app.store.change_key(key.id, lift.into(), Default::default()).await.expect("lifted");
    }
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("account_spend_limit_reached")));
    assert_eq!(house.sim.received().len(), 2, "nothing that was refused was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_balance_tells_what_expires_next() {
    let house = House::new().await;
    // A new ledger knows no time that is certain, and takes nothing away before it does.
    house.running().app.store.accept_clock().await.expect("accepted");
    let now = house.running().app.world.now_ms();
    give(&house, Pot::Trial, 7_000, Some(now + 86_400_000)).await;
    give(&house, Pot::Trial, 5_000, Some(now + 3_600_000)).await;
    give(&house, Pot::Trial, 3_000, Some(now + 60_000)).await;
    let all = balance(&house).await;
    let expiring = all["expiring"].as_array().expect("a list");
    let shown: Vec<_> = expiring.iter().filter_map(|one| one["available_nano_usd"].as_i64()).collect();
    assert_eq!(shown, [3_000, 5_000, 7_000], "the earliest first");
    house.later(60_001).await;
    let all = balance(&house).await;
    assert_eq!(all["trial_available_nano_usd"], json!(12_000), "what has expired is gone, sweep or not");
    assert_eq!(all["expiring"][0]["expires_at_ms"], json!(now + 3_600_000));
}
