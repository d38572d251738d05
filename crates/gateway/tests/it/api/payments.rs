//! Money in: orders that are paid at Stripe, news of them, and redemption codes.

use crate::house::{House, Plan};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_sim::{STRIPE_KEY, STRIPE_WEBHOOK_SECRET, Storm, StormStep, StripeSim, left_of};
use tollgate_store::{AccountId, KeyScope, OrderFilter, OrderState, PayOrder};

const CENT: i64 = 10_000_000;

/// A house that takes payments, a Stripe, and a key that manages the account.
struct Shop {
    house: House,
    stripe: StripeSim,
    key: String,
}

impl Shop {
    async fn open(more: &str) -> Shop {
        Shop::with(more, "sqlite").await
    }

    async fn with(more: &str, database: &str) -> Shop {
        let stripe = StripeSim::start().await.expect("a Stripe");
        let folder = tempfile::tempdir().expect("a folder").keep();
        std::fs::write(folder.join("stripe.key"), STRIPE_KEY).expect("written");
        std::fs::write(folder.join("stripe.whsec"), STRIPE_WEBHOOK_SECRET).expect("written");
        let config = format!(
            "[payments.stripe]\nsecret_file = \"{0}/stripe.key\"\nwebhook_secret_file = \"{0}/stripe.whsec\"\napi_base = \"{1}\"\n\
             success_url = \"https://shop.example/paid\"\ncancel_url = \"https://shop.example/back\"\n{more}",
            folder.display(),
            stripe.url()
        );
        let plan = Plan { usd: "0", config, database: database.to_owned(), ..Plan::default() };
        let house = House::with(plan).await;
        let key = house.new_key(|key| key.scope = KeyScope::Manage).await;
        Shop { house, stripe, key }
    }

    async fn order_as(&self, key: &str, body: Value, idem: Option<&str>) -> Response {
        let request = self.house.http.post(self.house.url("/api/account/topups")).bearer_auth(key).json(&body);
        let request = idem.into_iter().fold(request, |request, key| request.header("Idempotency-Key", key));
        request.send().await.expect("a reply")
    }

    async fn order(&self, minor: i64) -> Value {
        let reply = self.order_as(&self.key, json!({ "amount_minor": minor }), None).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        reply.json().await.expect("an order")
    }

    /// The session that was made last.
    fn session(&self) -> String {
        self.stripe.book().sessions().pop().expect("a session")
    }

    async fn send(&self, body: String, header: &str) -> StatusCode {
        let request = self.house.http.post(self.house.url("/api/payments/stripe/webhook"));
        request.header("Stripe-Signature", header).body(body).send().await.expect("a reply").status()
    }

    async fn hear(&self, kind: &str, session: &str) {
        let (body, header) = self.stripe.event(kind, session);
        assert_eq!(self.send(body, &header).await, 200, "{kind}");
    }

    async fn stored(&self, id: &Value) -> PayOrder {
        let id = id.as_str().expect("an id").parse().expect("an order id");
        self.house.running().app.store.order(id).await.expect("read").expect("there")
    }

    /// Waits until an order is so.
    async fn until(&self, id: &Value, is: impl Fn(&PayOrder) -> bool) -> PayOrder {
        for _ in 0..12_000 {
            let order = self.stored(id).await;
            if is(&order) {
                return order;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never became so: {:?}", self.stored(id).await);
    }

    async fn paid(&self) -> i64 {
        self.house.balance().await.paid_available.nano()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_paid_and_credited_once() {
    let shop = Shop::open("").await;
    let order = shop.order(2_500).await;
    assert_eq!(order["state"], "pending");
    assert_eq!(order["credit_nano_usd"], 2_500 * CENT);
    let session = shop.session();
    assert!(order["url"].as_str().is_some_and(|url| url.ends_with(&format!("/pay/{session}"))), "{order}");
    // Heard before it is paid: nothing is credited for words.
    shop.hear("checkout.session.completed", &session).await;
    shop.stripe.book().pay(&session);
    let (body, header) = shop.stripe.event("checkout.session.completed", &session);
    for _ in 0..5 {
        assert_eq!(shop.send(body.clone(), &header).await, 200);
    }
    let id = &order["order_id"];
    shop.until(id, |order| order.state == OrderState::Credited).await;
    assert_eq!(shop.paid().await, 2_500 * CENT);
    let shown: Value = shop
        .house
        .http
        .get(shop.house.url(&format!("/api/account/topups/{}", id.as_str().expect("an id"))))
        .bearer_auth(&shop.key)
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("an order");
    assert_eq!((&shown["state"], &shown["url"]), (&json!("credited"), &Value::Null));
    let list: Value = shop
        .house
        .http
        .get(shop.house.url("/api/account/topups?state=credited"))
        .bearer_auth(&shop.key)
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("a list");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
}

/// Nobody called: the worker asks by itself.
pub async fn a_payment_that_nobody_told_of_is_found() {
    let shop = Shop::open("").await;
    let order = shop.order(500).await;
    let session = shop.session();
    shop.stripe.book().pay(&session);
    shop.house.later(61_000).await;
    shop.until(&order["order_id"], |order| order.state == OrderState::Credited).await;
    assert_eq!(shop.paid().await, 500 * CENT);
}

/// Stripe is down when the order is made: the same wish makes the same order later, and one
/// session.
pub async fn an_order_whose_page_was_lost_gets_it_later() {
    let shop = Shop::open("").await;
    shop.stripe.book().break_down(1);
    let refused = shop.order_as(&shop.key, json!({ "amount_minor": 700 }), Some("k1")).await;
    assert_eq!(refused.status(), 502);
    let text = refused.text().await.expect("a text");
    assert!(!text.contains("sk_test") && !text.contains("127.0.0.1"), "{text}");
    let again = shop.order_as(&shop.key, json!({ "amount_minor": 700 }), Some("k1")).await;
    let order: Value = again.json().await.expect("an order");
    assert_eq!(order["state"], "pending");
    let same = shop.order_as(&shop.key, json!({ "amount_minor": 700 }), Some("k1")).await;
    assert_eq!(same.json::<Value>().await.expect("an order")["order_id"], order["order_id"]);
    let other = shop.order_as(&shop.key, json!({ "amount_minor": 701 }), Some("k1")).await;
    assert_eq!(other.status(), 409);
    assert_eq!(shop.stripe.book().sessions().len(), 1);
}

pub async fn what_is_forged_is_refused_and_what_is_wrong_is_not_credited() {
    let shop = Shop::open("").await;
    let (order, session) = (shop.order(500).await, shop.session());
    shop.stripe.book().pay(&session);
    let (body, good) = shop.stripe.event("checkout.session.completed", &session);
    let now = shop.stripe.now_s();
    for header in [
        String::new(),
        "t=1,v1=00".to_owned(),
        shop.stripe.signed(&body, now - 301),
        shop.stripe.signed(&body, now + 400),
        good.replace("v1=", "v1=0"),
    ] {
        assert_eq!(shop.send(body.clone(), &header).await, 400, "{header}");
    }
    assert_eq!(shop.send(body.replace("500", "501"), &good).await, 400);
    let large = "x".repeat((256 << 10) + 1);
    let header = shop.stripe.signed(&large, now);
    assert_eq!(shop.send(large, &header).await, 413);
    let garbage = "{}".to_owned();
    let header = shop.stripe.signed(&garbage, now);
    assert_eq!(shop.send(garbage, &header).await, 400);
    assert_eq!(shop.stored(&order["order_id"]).await.state, OrderState::Pending);
    for (amount, currency, live) in [(499, "usd", false), (500, "eur", false), (500, "usd", true)] {
        let order = shop.order(500).await;
        let session = shop.session();
        let body = {
            let mut book = shop.stripe.book();
            book.pay(&session);
            let body = book.event("checkout.session.completed", &session, now);
            book.tamper(&session, amount, currency, live);
            body
        };
        let header = shop.stripe.signed(&body, now);
        assert_eq!(shop.send(body, &header).await, 200);
        let after = shop.until(&order["order_id"], |order| order.state == OrderState::Mismatch).await;
        assert!(!after.note.is_empty());
    }
    // A session that names the order of somebody else credits neither.
    let mine = shop.order(500).await;
    let theirs = shop.order(500).await;
    let session = shop.session();
    shop.stripe.book().pay(&session);
    shop.stripe.book().misname(&session, mine["order_id"].as_str().expect("an id"));
    shop.hear("checkout.session.completed", &session).await;
    shop.until(&theirs["order_id"], |order| order.state == OrderState::Mismatch).await;
    assert_eq!(shop.stored(&mine["order_id"]).await.state, OrderState::Pending);
    assert_eq!(shop.paid().await, 0);
}

pub async fn refunds_and_disputes_take_back_and_a_debt_stops_the_account() {
    let shop = Shop::open("").await;
    let (order, session) = (shop.order(1_000).await, shop.session());
    let id = &order["order_id"];
    shop.stripe.book().pay(&session);
    shop.stripe.book().refund(&session, 400);
    // The refund is heard of first.
    shop.hear("charge.refunded", &session).await;
    shop.until(id, |order| order.taken.nano() == 400 * CENT).await;
    assert_eq!(shop.paid().await, 600 * CENT);
    shop.hear("checkout.session.completed", &session).await;
    shop.stripe.book().dispute(&session, 600);
    // Half of what is left was spent meanwhile.
    let app = &shop.house.running().app;
    let credit = tollgate_store::Credit {
        id: "spent".to_owned(),
        account: shop.house.account,
        kind: tollgate_store::CreditKind::Adjust,
        pot: tollgate_store::Pot::Paid,
        amount: tollgate_catalog::Money::from_nano(-300 * CENT),
        expires_at: None,
        reason: "test".to_owned(),
        actor: "test".to_owned(),
    };
    app.store.credit(credit).await.expect("taken");
    shop.hear("charge.dispute.created", &session).await;
    let owing = shop.until(id, |order| order.stops_account).await;
    assert_eq!((owing.state, owing.owed.nano()), (OrderState::Disputed, 300 * CENT));
    assert_eq!(shop.paid().await, 0);
    let suspended = async || shop.house.balance().await.suspended_at.is_some();
    for _ in 0..6_000 {
        if suspended().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(suspended().await);
    // It may pay its debt all the same, and new money goes there first.
    shop.house.later(0).await;
    let (paying, second) = (shop.order(800).await, shop.session());
    shop.stripe.book().pay(&second);
    shop.hear("checkout.session.completed", &second).await;
    shop.until(&paying["order_id"], |order| order.state == OrderState::Credited).await;
    shop.until(id, |order| order.owed.is_zero()).await;
    assert_eq!(shop.paid().await, 500 * CENT);
    // The dispute is won: all of it comes back, and the account is open again.
    shop.stripe.book().decide(&session, true);
    shop.hear("charge.dispute.closed", &session).await;
    shop.until(id, |order| order.taken.nano() == 400 * CENT && !order.stops_account).await;
    for _ in 0..6_000 {
        if !suspended().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!suspended().await);
    assert_eq!(shop.paid().await, 1_100 * CENT);
}

/// News are faster than the answer to our own question: they name a session that nobody here knows,
/// and Stripe says whose it is.
pub async fn a_payment_reported_before_its_session_is_known() {
    let shop = Shop::open("").await;
    shop.stripe.book().break_down(1);
    let lost = shop.order_as(&shop.key, json!({ "amount_minor": 900 }), Some("k")).await;
    assert_eq!(lost.status(), 502);
    let app = &shop.house.running().app;
    let filter = OrderFilter { state: Some(OrderState::New), limit: 10, ..OrderFilter::default() };
    let order = app.store.orders(filter).await.expect("read").pop().expect("an order");
    let (id, expires) = (order.id.to_string(), order.expires_at / 1_000);
    let form = format!(
        "mode=payment&client_reference_id={id}&metadata[order]={id}&payment_intent_data[metadata][order]={id}\
         &line_items[0][quantity]=1&line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=900\
         &line_items[0][price_data][product_data][name]=Credit&success_url=x&cancel_url=y&expires_at={expires}"
    );
    let made = shop.house.http.post(format!("{}/v1/checkout/sessions", shop.stripe.url())).bearer_auth(STRIPE_KEY);
    let made = made.header("Stripe-Version", "2024-06-20").header("Idempotency-Key", &id);
    let made = made.header("Content-Type", "application/x-www-form-urlencoded").body(form).send().await;
    assert_eq!(made.expect("a reply").status(), 200);
    let session = shop.session();
    shop.stripe.book().pay(&session);
    shop.hear("checkout.session.completed", &session).await;
    shop.until(&json!(id), |order| order.state == OrderState::Credited).await;
    assert_eq!(shop.paid().await, 900 * CENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_bounded_and_belong_to_their_account() {
    let shop = Shop::open("open_orders = 2\nmin_amount = 500\nmax_amount = 900\n").await;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "amount_minor": 499 }), 400),
        (json!({ "amount_minor": 901 }), 400),
        (json!({ "amount_minor": "500" }), 400),
        (json!({ "amount_minor": 500, "currency": "eur" }), 400),
        (json!({ "amount_minor": 500, "x": 1 }), 400),
    ] {
        assert_eq!(shop.order_as(&shop.key, body.clone(), None).await.status(), status, "{body}");
    }
    // A key that buys cannot pay in.
    assert_eq!(shop.order_as(&shop.house.key, json!({ "amount_minor": 500 }), None).await.status(), 403);
    let order = shop.order(500).await;
    shop.order(500).await;
    assert_eq!(shop.order_as(&shop.key, json!({ "amount_minor": 500 }), None).await.status(), 429);
    let (account, _) = shop.house.stranger("1").await;
    let stranger = shop.house.new_key(|key| (key.account, key.scope) = (account, KeyScope::Manage)).await;
    let path = format!("/api/account/topups/{}", order["order_id"].as_str().expect("an id"));
    let seen = shop.house.http.get(shop.house.url(&path)).bearer_auth(&stranger).send().await.expect("a reply");
    assert_eq!(seen.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_made_once_and_redeemed_once() {
    let shop = Shop::open("[payments]\nwrong_codes_per_account = 3\n").await;
    let app = &shop.house.running().app;
    let secret = "ak-payments-000000000000000000000000000000000000000000";
    let done = tollgate_store::Attribution::by("test", "test");
    let admin = tollgate_store::NewAdminKey { name: "test".into(), expires_at: None, done };
    app.store.create_admin_key(admin, secret).await.expect("a key");
    let admin = |path: &str, body: Value| shop.house.http.post(shop.house.url(path)).bearer_auth(secret).json(&body);
    let wish = json!({ "amount_nano_usd": 7 * CENT, "count": 3, "note": "a fair", "reason": "test" });
    let made: Value = admin("/api/admin/codes", wish).send().await.expect("a reply").json().await.expect("codes");
    let codes: Vec<&str> = made["codes"].as_array().expect("codes").iter().filter_map(Value::as_str).collect();
    assert_eq!(codes.len(), 3);
    let redeem = async |code: &str| {
        let request = shop.house.http.post(shop.house.url("/api/account/redeem")).bearer_auth(&shop.key);
        request.json(&json!({ "code": code })).send().await.expect("a reply").status().as_u16()
    };
    assert_eq!(redeem(&codes[0].to_ascii_lowercase()).await, 200);
    assert_eq!(redeem(codes[0]).await, 409, "used by this account");
    assert_eq!(redeem(codes[1]).await, 409, "one of a batch");
    assert_eq!(shop.paid().await, 7 * CENT);
    let batch = made["batch_id"].as_str().expect("an id");
    let path = format!("/api/admin/codes/{batch}/revoke");
    assert_eq!(admin(&path, json!({ "reason": "lost" })).send().await.expect("a reply").status(), 200);
    let list = shop.house.http.get(shop.house.url("/api/admin/codes")).bearer_auth(secret).send().await;
    let list: Value = list.expect("a reply").json().await.expect("a list");
    assert_eq!((&list["data"][0]["used"], &list["data"][0]["codes"]), (&json!(1), &Value::Null));
    let (account, _) = shop.house.stranger("1").await;
    let _ = account;
    for _ in 0..3 {
        assert_eq!(redeem("WRONG-CODES").await, 400);
    }
    assert_eq!(redeem("WRONG-CODES").await, 429);
}

/// A thousand orders in a storm: what customers have is what they paid, to the nano-dollar.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_orders_in_a_storm() {
    let shop = Shop::open(
        "open_orders = 1000\norders_per_hour = 10000\n[payments]\nstop_on_debt = false\nstop_on_dispute = false\n",
    )
    .await;
    let mut accounts: Vec<(AccountId, String)> = vec![(shop.house.account, shop.key.clone())];
    for _ in 0..9 {
        let (account, _) = shop.house.stranger("1").await;
        let key = shop.house.new_key(|key| (key.account, key.scope) = (account, KeyScope::Manage)).await;
        accounts.push((account, key));
    }
    let mut before = BTreeMap::new();
    for (account, _) in &accounts {
        let found = shop.house.running().app.store.account(*account).await.expect("read").expect("there");
        before.insert(*account, found.paid_available.nano());
    }
    let mut sessions = Vec::new();
    for number in 0..1_000i64 {
        let (account, key) = &accounts[usize::try_from(number).expect("small") % accounts.len()];
        let amount = 500 + number * 7;
        let reply = shop.order_as(key, json!({ "amount_minor": amount }), None).await;
        let order: Value = reply.json().await.expect("an order");
        let session = shop.stored(&order["order_id"]).await.session.expect("a session");
        sessions.push((session, amount, *account));
    }
    let named: Vec<(String, i64)> = sessions.iter().map(|(session, amount, _)| (session.clone(), *amount)).collect();
    let mut storm = Storm::new(&named, 20);
    let mut sending = tokio::task::JoinSet::new();
    let (mut messages, mut forgeries) = (0, 0);
    while let Some(step) = storm.step(&shop.stripe) {
        let StormStep::Message { body, header, forged } = step else { continue };
        while sending.len() >= 16 {
            sending.join_next().await.expect("one").expect("sent");
        }
        messages += 1;
        forgeries += u32::from(forged);
        let request = shop.house.http.post(shop.house.url("/api/payments/stripe/webhook"));
        let request = request.header("Stripe-Signature", header).body(body);
        sending.spawn(async move {
            let status = request.send().await.expect("a reply").status();
            assert_eq!(status.as_u16(), if forged { 400 } else { 200 });
        });
    }
    sending.join_all().await;
    assert!(messages > 1_500 && forgeries > 100, "{messages} {forgeries}");
    // Those of which nobody heard are asked about.
    shop.house.later(61_000).await;
    shop.house.later(2 * 86_400_000).await;
    let mut expected = before.clone();
    for (session, amount, account) in &sessions {
        *expected.get_mut(account).expect("there") += left_of(&shop.stripe, session, *amount) * CENT;
    }
    let store = &shop.house.running().app.store;
    let mut last = BTreeMap::new();
    for _ in 0..6_000 {
        for (account, _) in &accounts {
            last.insert(*account, store.account(*account).await.expect("read").expect("there").paid_available.nano());
        }
        if last == expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(last, expected);
    assert!(last.values().sum::<i64>() > before.values().sum::<i64>(), "something was paid");
    // An order that says it is credited is in the ledger once, and none that does not.
    let credited =
        store.orders(OrderFilter { state: Some(OrderState::Credited), limit: 500, ..OrderFilter::default() });
    assert!(credited.await.expect("read").iter().all(|order| order.credited_at.is_some()));
}
