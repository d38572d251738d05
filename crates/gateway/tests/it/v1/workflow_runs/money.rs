//! Money and crashes: balances that end in the middle, prices that rise, workers that die. Most of
//! these are cases of docs/faults.md and begun from there.

use super::RunHouse;
use crate::house::Plan;
use serde_json::{Value, json};
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{AccountId, Credit, CreditKind, NewAccount, Pot};

const SLUG: &str = "article-to-narration";
const RUNS: &str = "/v1/workflows/article-to-narration/runs";

pub async fn an_account_without_money_begins_no_run() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let store = &house.house.running().app.store;
    let account = store.create_account(NewAccount { name: "poor".to_owned(), ..NewAccount::default() }).await;
    let account = account.expect("an account").id;
    let poor = house.house.new_key(|key| key.account = account).await;
    let request = house.confirmed(SLUG, json!({ "article": "Rain." })).await;
    let sent = house.house.sim.received().len();
    let reply = house.house.http.post(house.house.url(RUNS)).bearer_auth(&poor).json(&request);
    assert_eq!(reply.send().await.expect("a reply").status(), 402);
    let list = house.house.http.get(house.house.url("/v1/workflows/runs")).bearer_auth(&poor);
    let list: Value = list.send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(list["data"], json!([]));
    assert_eq!(house.upload(&poor, b"0123456789").send().await.expect("a reply").status(), 402);
    assert_eq!(house.house.sim.received().len(), sent);
}

/// A customer with little money, and a run whose second step costs more.
struct Stopped {
    house: RunHouse,
    account: AccountId,
    key: String,
    id: String,
}

impl Stopped {
    async fn at_step_two() -> Stopped {
        let house = RunHouse::shipped().await;
        house.verify("product-photo-to-clip").await;
        // The first step costs a cent, the second some forty.
        let (account, key) = house.house.stranger("0.1").await;
        let photo = std::fs::read(house.house.dir.join("catalog/workflows/product-photo-to-clip/photo.png"));
        let upload = house.upload(&key, &photo.expect("a photo")).send().await.expect("a reply");
        let asset: Value = upload.json().await.expect("JSON");
        let stopped = Stopped { house, account, key, id: String::new() };
        let inputs = json!({ "photo": asset["id"] });
        let quote = stopped.post("/v1/workflows/product-photo-to-clip/quote", &json!({ "inputs": inputs })).await;
        let request = json!({ "inputs": inputs, "confirm": quote["confirm"] });
        let run = stopped.post("/v1/workflows/product-photo-to-clip/runs", &request).await;
        let id = run["id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
        let stopped = Stopped { id, ..stopped };
        let run = stopped.rests(&["stopped", "failed", "completed"]).await;
        assert_eq!((&run["status"], &run["stopped"]), (&json!("stopped"), &json!("out_of_money")), "{run:#}");
        let steps = run["steps"].as_array().expect("steps");
        assert_eq!(steps.iter().map(|step| &step["status"]).collect::<Vec<_>>(), ["done", "pending"]);
        stopped
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.house.house.http.post(self.house.house.url(path)).bearer_auth(&self.key).json(body);
        request.send().await.expect("a reply").json().await.expect("JSON")
    }

    /// The run once it has one of these statuses.
    async fn rests(&self, statuses: &[&str]) -> Value {
        let url = self.house.house.url(&format!("/v1/workflows/runs/{}", self.id));
        loop {
            let request = self.house.house.http.get(&url).bearer_auth(&self.key);
            let run: Value = request.send().await.expect("a reply").json().await.expect("JSON");
            if statuses.contains(&run["status"].as_str().expect("a status")) {
                return run;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn credit(&self, usd: &str) {
        let credit = Credit {
            id: "more".to_owned(),
            account: self.account,
            kind: CreditKind::TopUp,
            pot: Pot::Paid,
            amount: usd.parse().expect("an amount"),
            expires_at: None,
            reason: "test".to_owned(),
            actor: "test".to_owned(),
        };
        self.house.house.running().app.store.credit(credit).await.expect("credited");
    }

    async fn resume(&self, body: Value) -> Value {
        self.post(&format!("/v1/workflows/runs/{}/resume", self.id), &body).await
    }
}

pub async fn a_balance_that_ends_between_steps() {
    let stopped = Stopped::at_step_two().await;
    let first = stopped.rests(&["stopped"]).await["steps"][0]["call_id"].clone();
    stopped.credit("5").await;
    stopped.resume(json!({})).await;
    let run = stopped.rests(&["completed", "failed"]).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(run["steps"][0]["call_id"], first, "the first step is not bought again");
    assert!(run["charged_nano_usd"].as_i64() <= run["max_cost_nano_usd"].as_i64());
    stopped.house.house.check().await;
}

pub async fn a_price_that_rose_before_a_step() {
    let stopped = Stopped::at_step_two().await;
    let house = &stopped.house.house;
    let file = house.dir.join("catalog/video.toml");
    let text = std::fs::read_to_string(&file).expect("a catalog");
    let dearer = text.replace("video_second = ", "video_second = 1_");
    assert_ne!(text, dearer);
    std::fs::write(&file, dearer).expect("written");
    reload(&house.running().app, &house.source).await.expect("taken over");
    stopped.credit("50").await;
    let before = stopped.rests(&["stopped"]).await;
    stopped.resume(json!({})).await;
    let run = loop {
        let run = stopped.rests(&["stopped", "completed", "failed"]).await;
        if run["stopped"] != "out_of_money" {
            break run;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!((&run["status"], &run["stopped"]), (&json!("stopped"), &json!("price_rose")), "{run:#}");
    assert_eq!(run["charged_nano_usd"], before["charged_nano_usd"], "nothing was bought");
    // Whoever confirms the new sum gets the clip.
    stopped.resume(json!({ "max_cost_nano_usd": 50_000_000_000_i64 })).await;
    let run = stopped.rests(&["completed", "failed"]).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    house.check().await;
}

pub async fn a_step_that_its_provider_fails() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let id = house.begin(SLUG, json!({ "article": "Rain.", "writer_model": "demo-error" })).await;
    let run = house.ended(&id).await;
    assert_eq!((&run["status"], &run["charged_nano_usd"]), (&json!("failed"), &json!(0)), "{run:#}");
    assert_eq!(run["steps"][0]["status"], "failed");
    let reply = house.post(&format!("/v1/workflows/runs/{id}/resume"), &json!({})).send().await.expect("a reply");
    assert_eq!(reply.status(), 409, "what has failed is over");
    house.house.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_so_many_open_runs_and_cancelling_makes_room() {
    let house = RunHouse::with(Plan { config: "open_runs = 2\n".to_owned(), ..Plan::default() }).await;
    house.verify(SLUG).await;
    let request = house.confirmed(SLUG, json!({ "article": "[[sim:stall]] Rain." })).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (status, run) = house.ask(RUNS, &request).await;
        assert_eq!(status, 202, "{run}");
        ids.push(run["id"].as_str().expect("an id").to_owned());
    }
    let (status, refused) = house.ask(RUNS, &request).await;
    assert_eq!((status, refused["error"]["reason"].as_str()), (429, Some("open_runs")), "{refused}");
    for id in &ids {
        let (status, _) = house.ask(&format!("/v1/workflows/runs/{id}/cancel"), &json!({})).await;
        assert_eq!(status, 200);
    }
    for id in &ids {
        let run = house.ended(id).await;
        assert!(["cancelled", "failed"].contains(&run["status"].as_str().expect("a status")), "{run:#}");
    }
    let (status, run) = house.ask(RUNS, &house.confirmed(SLUG, json!({ "article": "Rain." })).await).await;
    assert_eq!(status, 202, "{run}");
    house.ended(run["id"].as_str().expect("an id")).await;
}

pub async fn a_restart_between_steps() {
    let mut house = RunHouse::shipped().await;
    house.verify("product-photo-to-clip").await;
    let folder = house.house.dir.join("catalog/workflows/product-photo-to-clip/photo.png");
    let photo = house.uploaded(&std::fs::read(folder).expect("a photo")).await;
    let id = house.begin("product-photo-to-clip", json!({ "photo": photo })).await;
    house.house.restart().await;
    let run = house.ended(&id).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    for step in run["steps"].as_array().expect("steps") {
        assert_eq!(step["calls"].as_array().map(Vec::len), Some(1), "each step is one call: {step}");
    }
    house.house.check().await;
}
