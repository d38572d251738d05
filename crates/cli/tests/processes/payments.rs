//! A thousand orders in a storm of news, while gateways are killed with `kill -9`: what customers
//! have afterwards is what they paid, to the nano-dollar, on both engines.

use crate::house::{House, Plan, text};
use crate::postgres::Server;
use crate::process::HANG;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tollgate_sim::{STRIPE_KEY, STRIPE_WEBHOOK_SECRET, Storm, StormStep, StripeSim, left_of};

const CENT: i64 = 10_000_000;
const ORDERS: i64 = 1_000;
const ACCOUNTS: usize = 5;
const KILLS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    storm("sqlite", 1).await;
}

/// Two replicas: each kill hits one while the other goes on.
#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("payments").await;
    storm(&database, 2).await;
}

struct Shop {
    house: House,
    stripe: StripeSim,
    keys: Vec<(String, String)>,
}

async fn shop(database: &str, gates: usize) -> Shop {
    let stripe = StripeSim::start().await.expect("a Stripe");
    let folder = tempfile::tempdir().expect("a folder").keep();
    std::fs::write(folder.join("stripe.key"), STRIPE_KEY).expect("written");
    std::fs::write(folder.join("stripe.whsec"), STRIPE_WEBHOOK_SECRET).expect("written");
    let line = |name: &str, value: &str| format!("payments.stripe.{name} = {value}\n");
    let quoted = |name: &str, value: &str| line(name, &format!("\"{value}\""));
    let top = [
        quoted("secret_file", &folder.join("stripe.key").display().to_string()),
        quoted("webhook_secret_file", &folder.join("stripe.whsec").display().to_string()),
        quoted("api_base", &stripe.url()),
        quoted("success_url", "https://shop.example/paid"),
        quoted("cancel_url", "https://shop.example/back"),
        quoted("first_look", "1s"),
        line("open_orders", "1000"),
        line("orders_per_hour", "10000"),
        "payments.stop_on_debt = false\npayments.stop_on_dispute = false\n".to_owned(),
    ];
    let plan = Plan { database, gates, top: &top.concat(), log: "warn", ..Plan::default() };
    let house = House::new(plan).await;
    let mut keys = Vec::new();
    for number in 0..ACCOUNTS {
        let account = text(&house.cli(&["account", "create", &format!("shop{number}")]).await["account_id"]);
        let key = house.cli(&["key", "create", &account, "--scope", "manage"]).await;
        keys.push((account, text(&key["secret"])));
    }
    Shop { house, stripe, keys }
}

impl Shop {
    /// Sends until somebody answers: a gate may be down.
    async fn post(
        &self,
        path: &str,
        prepare: impl Fn(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> (u16, Value) {
        let until = Instant::now() + HANG;
        let mut gate = 0;
        loop {
            gate = (gate + 1) % self.house.gates.len();
            let url = format!("{}{path}", self.house.gates[gate].url());
            let sent = prepare(self.house.http.post(url)).send().await;
            if let Ok(reply) = sent
                && reply.status().as_u16() < 500
            {
                let status = reply.status().as_u16();
                if let Ok(body) = reply.json().await {
                    return (status, body);
                }
            }
            assert!(Instant::now() < until, "nobody answers at {path}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn paid(&self, account: &str) -> i64 {
        let shown = self.house.cli(&["account", "show", account]).await;
        shown["account"]["paid_available_nano_usd"].as_i64().unwrap_or_else(|| panic!("{shown}"))
    }
}

async fn storm(database: &str, gates: usize) {
    let mut shop = shop(database, gates).await;
    let mut sessions: Vec<(String, i64, String)> = Vec::new();
    for number in 0..ORDERS {
        let (account, key) = &shop.keys[usize::try_from(number).expect("small") % ACCOUNTS];
        let amount = 500 + number;
        let body = json!({ "amount_minor": amount });
        let idem = format!("order-{number}");
        let wish =
            |request: reqwest::RequestBuilder| request.bearer_auth(key).header("Idempotency-Key", &idem).json(&body);
        let (status, order) = shop.post("/api/account/topups", wish).await;
        assert_eq!(status, 200, "{order}");
        let url = text(&order["url"]);
        let session = url.rsplit('/').next().expect("a session").to_owned();
        sessions.push((session, amount, account.clone()));
        if number % 250 == 249 {
            let gate = usize::try_from(number).expect("small") / 250 % gates;
            shop.house.gates[gate].kill();
            shop.house.gates[gate].start().await;
        }
    }
    let named: Vec<(String, i64)> = sessions.iter().map(|(session, amount, _)| (session.clone(), *amount)).collect();
    let mut storm = Storm::new(&named, 7);
    let (mut messages, mut kills) = (0usize, 0usize);
    while let Some(step) = storm.step(&shop.stripe) {
        let StormStep::Message { body, header, forged } = step else { continue };
        let send = |request: reqwest::RequestBuilder| request.header("Stripe-Signature", &header).body(body.clone());
        let (status, said) = shop.post("/api/payments/stripe/webhook", send).await;
        assert_eq!(status, if forged { 400 } else { 200 }, "{said}");
        messages += 1;
        if messages % 200 == 0 && kills < KILLS {
            shop.house.gates[kills % gates].kill();
            shop.house.gates[kills % gates].start().await;
            kills += 1;
        }
    }
    assert!(messages > 1_500 && kills == KILLS, "{messages} messages, {kills} kills");
    // What nobody told of is looked at within minutes; later refunds and disputes within a day. So
    // those are told once more at the end, as Stripe does for three days.
    for (session, _, _) in &sessions {
        for kind in ["checkout.session.completed", "charge.refunded"] {
            let (body, header) = shop.stripe.event(kind, session);
            let send =
                |request: reqwest::RequestBuilder| request.header("Stripe-Signature", &header).body(body.clone());
            assert_eq!(shop.post("/api/payments/stripe/webhook", send).await.0, 200);
        }
    }
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for (session, amount, account) in &sessions {
        *expected.entry(account.clone()).or_default() += left_of(&shop.stripe, session, *amount) * CENT;
    }
    let until = Instant::now() + HANG;
    loop {
        let mut has = BTreeMap::new();
        for account in expected.keys() {
            has.insert(account.clone(), shop.paid(account).await);
        }
        if has == expected {
            break;
        }
        assert!(Instant::now() < until, "{has:?} is not {expected:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    shop.house.verified().await;
    for gate in &shop.house.gates {
        let log = gate.logged();
        assert!(!log.contains(STRIPE_KEY) && !log.contains(STRIPE_WEBHOOK_SECRET), "a secret is in the log");
    }
}
