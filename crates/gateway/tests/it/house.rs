//! A whole house for one test: simulator, gateway, account, key. When dropped it asserts the money
//! invariants: no open hold, a clean audit, a row and a hold for every call the simulator saw.

use crate::clock::{Clock, world};
use crate::sent::{is_whole_call, responses};
use crate::watch::Watch;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tollgate_catalog::Money;
use tollgate_gateway::configuration::Loaded;
use tollgate_gateway::provider_trial;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::start::{CannotStart, Running, start};
use tollgate_gateway::world::World;
use tollgate_sim::{Sim, SimSettings};
use tollgate_store::{
    Account, AccountId, CallId, Credit, CreditKind, Ending, Limits, NewAccount, NewKey, Pot, StoreError, UsageRow,
};
use tollgate_upstream::NameSource;

pub const MODEL: &str = "plain";

/// Prices in micro-USD per million tokens: a token costs 1,000 and 2,000 nano-USD.
const CATALOG: &str = r#"
[model."plain"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
[model."plain".price]
input = 1_000_000
output = 2_000_000
[[model."plain".route]]
provider = "sim"
upstream_model = "sim-plain"

[model."sim-plain"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
[model."sim-plain".price]
input = 1_000_000
output = 2_000_000
[[model."sim-plain".route]]
provider = "sim"
upstream_model = "sim-plain"

[model."billed-to-the-end"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
[model."billed-to-the-end".price]
input = 1_000_000
output = 2_000_000
[[model."billed-to-the-end".route]]
provider = "stubborn"
upstream_model = "sim-plain"

[model."two-routes"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
[model."two-routes".price]
input = 1_000_000
output = 2_000_000
[[model."two-routes".route]]
provider = "nobody"
upstream_model = "sim-plain"
priority = 1
[[model."two-routes".route]]
provider = "sim"
upstream_model = "sim-plain"
priority = 2

[model."no-chat"]
supported_endpoint_types = ["anthropic"]
[model."no-chat".price]
input = 1_000_000
output = 2_000_000
[[model."no-chat".route]]
provider = "sim"
upstream_model = "sim-plain"

[model."paid-only"]
supported_endpoint_types = ["openai"]
requires_topup = true
[model."paid-only".price]
input = 1_000_000
output = 2_000_000
[[model."paid-only".route]]
provider = "sim"
upstream_model = "sim-plain"
"#;

/// The video models as they are shipped.
const VIDEO_CATALOG: &str = include_str!("../../../../catalog/video.toml");

/// The makers of videos that the simulator plays.
fn makers(sim: &Sim, patience: &str) -> String {
    let maker = |kind: &str| {
        let keys = match kind {
            "kling" => "access_file = \"access.key\"\nsecret_file = \"secret.key\"",
            _ => "secret_file = \"sim.key\"",
        };
        let url = sim.video_url(kind);
        format!(
            "[provider.{kind}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\n{keys}\n\
             idle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\npoll_every = \"40ms\"\nrequests_per_second = 1000\n"
        )
    };
    ["dashscope", "ark", "kling", "minimax", "openai", "gemini", "elevenlabs"].map(maker).concat()
}

pub struct House {
    pub sim: Sim,
    pub running: Option<Running>,
    pub account: AccountId,
    pub key: String,
    pub http: reqwest::Client,
    pub dir: PathBuf,
    pub source: ConfigSource,
    pub clock: Clock,
    /// Set by tests whose point is that the simulator saw something without a row.
    pub checked: bool,
}

/// What a test may want otherwise.
pub struct Plan {
    pub usd: &'static str,
    pub config: String,
    pub database: String,
    /// How long the gateway waits for the simulator; short only where waiting is the point.
    pub patience: &'static str,
    /// A clock that stands still at this time, in milliseconds since 1970.
    pub now: Option<i64>,
    /// More settings of the provider `sim`.
    pub sim: &'static str,
    /// More models, as a file of their own in the catalog.
    pub catalog: &'static str,
    /// The video models of the demo.
    pub videos: bool,
    /// More of `[tasks]`: how patiently open tasks are looked after.
    pub tasks: &'static str,
    /// Names of hosts that lead where the test wants.
    pub names: Option<NameSource>,
    /// How long calls wait for the ledger: long, because a busy machine has a slow disk.
    pub ledger_time: Duration,
    /// How long they are served without the database.
    pub ledger_behind: Duration,
}

impl Plan {
    /// For tests that take the ledger away.
    pub fn impatient() -> Plan {
        Plan { ledger_time: Duration::from_secs(2), ledger_behind: Duration::from_secs(2), ..Plan::default() }
    }

    /// The configuration, with the patience of an ordinary test.
    fn load(source: &ConfigSource) -> Loaded {
        let mut loaded = source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
        loaded.settings.limits.ledger_time = Plan::default().ledger_time;
        loaded.settings.limits.ledger_behind = Plan::default().ledger_behind;
        loaded
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            usd: "10",
            config: String::new(),
            database: "sqlite".to_owned(),
            patience: "20s",
            now: None,
            sim: "",
            catalog: "",
            videos: false,
            tasks: "",
            names: None,
            ledger_time: Duration::from_secs(30),
            ledger_behind: Duration::from_secs(60),
        }
    }
}

impl House {
    /// So much time has passed since the beginning, and keys were looked at meanwhile as they are
    /// every second.
    pub async fn later(&self, ms: i64) {
        self.clock.pass(ms);
        let app = &self.running().app;
        app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    }

    pub async fn new() -> House {
        House::with(Plan::default()).await
    }

    pub async fn with(plan: Plan) -> House {
        House::with_files(plan, &[]).await
    }

    /// The same with these files beside its configuration.
    pub async fn with_files(plan: Plan, files: &[(&str, &str)]) -> House {
        let sim = Sim::start(SimSettings::default()).await.expect("a simulator");
        let dir = tempfile::tempdir().expect("a folder").keep();
        std::fs::create_dir_all(dir.join("catalog")).expect("a folder");
        for (name, text) in files {
            std::fs::write(dir.join(name), text).expect("written");
        }
        std::fs::write(dir.join("catalog/models.toml"), CATALOG).expect("written");
        std::fs::write(dir.join("catalog/more.toml"), plan.catalog).expect("written");
        let videos = if plan.videos { VIDEO_CATALOG } else { "" };
        std::fs::write(dir.join("catalog/video.toml"), videos).expect("written");
        crate::dialects::clouds::write_keys(&dir, &sim);
        let config = format!(
            "listen = \"127.0.0.1:0\"\ndatabase = \"{}\"\n{}\n[tasks]\nlook_every = \"20ms\"\n{tasks}\n\
             [provider.sim]\nkind = \"openai\"\nbase_url = \"{url}\"\nidle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\n{more}\n\
             [provider.stubborn]\nkind = \"openai\"\nbase_url = \"{url}\"\nbill_on_cancel = true\n\
             [provider.sim-anthropic]\nkind = \"anthropic\"\nbase_url = \"{host}\"\nidle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\n\
             [provider.sim-responses]\nkind = \"openai-responses\"\nbase_url = \"{url}\"\nidle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\n\
             [provider.sim-gemini]\nkind = \"gemini\"\nbase_url = \"{host}\"\nidle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\n\
             [provider.linkless]\nkind = \"openai\"\nbase_url = \"{url}\"\ntakes_links = false\n\
             [provider.nobody]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
             [provider.tikhub]\nkind = \"tikhub\"\nbase_url = \"{social}\"\nidle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\n\
             requests_per_second = 0\n{makers}",
            plan.database,
            plan.config.replace("{host}", sim.base_url().trim_end_matches("/v1")),
            url = sim.base_url(),
            host = sim.base_url().trim_end_matches("/v1"),
            tasks = plan.tasks,
            social = sim.social_url(),
            patience = plan.patience,
            more = plan.sim,
            makers = makers(&sim, plan.patience),
        );
        std::fs::write(dir.join("tollgate.toml"), config).expect("written");
        let source = ConfigSource { file: dir.join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
        let mut loaded = Plan::load(&source);
        loaded.settings.limits.ledger_time = plan.ledger_time;
        loaded.settings.limits.ledger_behind = plan.ledger_behind;
        let clock = Clock::standing(plan.now);
        let world = plan.names.into_iter().fold(world(&clock), World::naming);
        let running = start(loaded, Some(source.clone()), world.clone()).await.expect("started");
        provider_trial::offer(&running, source.clone(), world);
        let account = running
            .app
            .store
            .create_account(NewAccount { name: "test".to_owned(), ..NewAccount::default() })
            .await
            .expect("an account")
            .id;
        let mut house = House {
            sim,
            running: Some(running),
            account,
            key: String::new(),
            http: reqwest::Client::new(),
            dir,
            source,
            clock,
            checked: false,
        };
        if plan.usd != "0" {
            house.top_up("first", plan.usd).await;
        }
        house.key = house.new_key(|_| {}).await;
        house
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("running")
    }

    pub fn url(&self, path: &str) -> String {
        let running = self.running();
        format!("{}://{}{path}", running.app.settings.scheme(), running.address)
    }

    pub async fn top_up(&self, id: &str, usd: &str) {
        let amount: Money = usd.parse().expect("an amount");
        self.credit(id, Pot::Paid, amount).await;
    }

    pub async fn credit(&self, id: &str, pot: Pot, amount: Money) {
        let (reason, actor) = ("test".to_owned(), "test".to_owned());
        let credit = Credit {
            id: format!("{id}-{}", self.account),
            account: self.account,
            kind: CreditKind::TopUp,
            pot,
            amount,
            expires_at: None,
            reason,
            actor,
        };
        self.running().app.store.credit(credit).await.expect("credited");
        // Do not wait for the next round of the key book.
        let app = &self.running().app;
        app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    }

    /// A key of another account, with money of its own.
    pub async fn stranger(&self, usd: &str) -> (AccountId, String) {
        let store = &self.running().app.store;
        let new = NewAccount { name: "stranger".to_owned(), ..NewAccount::default() };
        let account = store.create_account(new).await.expect("an account").id;
        let credit = Credit {
            id: format!("first-{account}"),
            account,
            kind: CreditKind::TopUp,
            pot: Pot::Paid,
            amount: usd.parse().expect("an amount"),
            expires_at: None,
            reason: "test".to_owned(),
            actor: "test".to_owned(),
        };
        store.credit(credit).await.expect("credited");
        (account, self.new_key(|key| key.account = account).await)
    }

    pub async fn new_key(&self, change: impl FnOnce(&mut NewKey)) -> String {
        let mut bytes = [0; 24];
        self.running().app.world.fill(&mut bytes);
        let secret = format!("sk-{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let mut key = NewKey {
            account: self.account,
            name: "test".to_owned(),
            expires_at: None,
            models: None,
            cidrs: None,
            limits: Limits::default(),
            scope: Default::default(),
        };
        change(&mut key);
        self.running().app.store.create_key(key, &secret).await.expect("a key");
        secret
    }

    /// The status of what a key may always ask for.
    pub async fn balance_with(&self, key: &str) -> u16 {
        self.http.get(self.url("/v1/balance")).bearer_auth(key).send().await.expect("a reply").status().as_u16()
    }

    pub fn post(&self, body: &Value) -> RequestBuilder {
        self.http.post(self.url("/v1/chat/completions")).bearer_auth(&self.key).json(body)
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path)).bearer_auth(&self.key)
    }

    /// One whole call whose last message is `text`.
    pub async fn ask(&self, text: &str) -> Response {
        self.post(&chat(text)).send().await.expect("a reply")
    }

    /// One streamed call; what came, as text.
    pub async fn stream(&self, text: &str) -> (CallId, String) {
        let reply = self.post(&streamed(text)).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        let id = call_id(&reply);
        (id, reply.text().await.expect("a whole stream"))
    }

    pub async fn balance(&self) -> Account {
        self.running().app.store.account(self.account).await.expect("read").expect("the account")
    }

    pub async fn available(&self) -> i64 {
        let account = self.balance().await;
        account.trial_available.nano() + account.paid_available.nano()
    }

    /// The row of a call, once it is there.
    pub async fn row(&self, call: CallId) -> UsageRow {
        for _ in 0..12_000 {
            if let Some(row) = self.running().app.store.usage_of(self.account, call).await.expect("read") {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{call} has no usage row");
    }

    /// Sends a request, and leaves as soon as the provider has been asked.
    pub async fn leave(&self, request: RequestBuilder) {
        let asked = self.sim.received().len();
        let mut leaving = JoinSet::new();
        leaving.spawn(request.send());
        while self.sim.received().len() == asked {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        leaving.shutdown().await;
    }

    /// Waits until no call is open and everything is committed.
    pub async fn quiet(&self) {
        let app = &self.running().app;
        for _ in 0..12_000 {
            let gauges = app.store.gauges();
            if app.running.load(Ordering::Relaxed) == 0
                && gauges.open_holds + gauges.task_holds == 0
                && gauges.queue_len == 0
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("calls are still open: {:?}", app.store.gauges());
    }

    /// The invariants of docs/money-rules.md as far as one test can see them.
    pub async fn check(&self) {
        self.quiet().await;
        let store = &self.running().app.store;
        let report = store.verify().await.expect("verified");
        assert_eq!(report.breaches, [], "the audit found breaches");
        let rows = self.all_rows().await;
        let mut sent: BTreeMap<CallId, u32> = BTreeMap::new();
        let mut social = 0;
        for seen in self.sim.received() {
            // The gateway's own questions are nobody's calls.
            let probe = seen.header("x-client-request-id").is_some_and(|id| id == "tollgate-probe");
            if is_whole_call(&seen) && !probe {
                let call: CallId = seen.header("x-client-request-id").expect("a call id").parse().expect("our call id");
                *sent.entry(call).or_default() += 1;
            }
            // A test may ask the source itself, and does not say that it is us.
            let ours = seen.header("user-agent").is_some_and(|agent| agent.starts_with("tollgate"));
            social += u32::from(ours && seen.path.starts_with("/api/v1/"));
        }
        for (call, times) in sent {
            let row = rows.get(&call).unwrap_or_else(|| panic!("the provider saw {call}, the usage log did not"));
            assert!(times <= row.attempts, "sent {times} times: {row:?}");
            assert!(self.was_held(row).await, "sent without a hold: {row:?}");
        }
        // Neither names our call to the provider, so they are counted.
        let held = |row: &&UsageRow| row.hold > Money::ZERO;
        let of = |start: &'static str| rows.values().filter(held).filter(move |row| row.endpoint.starts_with(start));
        assert!(self.sim.videos() <= of("/v1/video").count(), "a video was made without a hold");
        assert!(responses(&self.sim) <= of("/v1/realtime").count(), "a response was made without a hold");
        // What the source refuses once is asked once more.
        let asked: u32 = of("/v1/social").map(|row| 2 * row.attempts).sum();
        assert!(social <= asked, "the source was asked {social} times, for {asked} there was a hold");
    }

    /// Whatever is sent was held for. What may be missing is only that the hold was still on its
    /// way to the disk.
    async fn was_held(&self, row: &UsageRow) -> bool {
        let free_of_charge = async || {
            let row = self.running().app.store.usage_of(row.account, row.call).await.expect("read");
            row.is_some_and(|row| row.price.is_some())
        };
        let on_its_way = ["hold_not_durable", "crashed"].contains(&row.reason.as_str());
        // A stream that is refused more than its hold has one; what was refused at the start has
        // none.
        row.hold > Money::ZERO || row.ending != Ending::Refused && (on_its_way || free_of_charge().await)
    }

    /// The whole usage log, of all accounts.
    pub async fn all_rows(&self) -> BTreeMap<CallId, UsageRow> {
        let mut rows = BTreeMap::new();
        let mut page = tollgate_store::UsagePage { before: None, limit: 1_000 };
        loop {
            let found = self.running().app.store.usage(None, page).await.expect("read");
            let full = found.len() == page.limit as usize;
            page.before = found.last().map(|row| row.call);
            for row in found {
                let call = row.call;
                assert!(rows.insert(call, row).is_none(), "{call} has two rows");
            }
            if !full {
                return rows;
            }
        }
    }

    /// Stops the gateway as SIGTERM does, and opens it again over the same data.
    pub async fn restart(&mut self) {
        self.running.take().expect("running").stop().await;
        self.restart_stopped().await;
    }

    pub async fn restart_stopped(&mut self) {
        // In one process the data folder is free once the last connection has let go of it.
        for attempt in 0.. {
            match start(Plan::load(&self.source), Some(self.source.clone()), world(&self.clock)).await {
                Ok(running) => return self.running = Some(running),
                Err(CannotStart::Store(StoreError::InUse(_))) if attempt < 250 => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("not started again: {error}"),
            }
        }
    }
}

impl House {
    /// What dropping it does, for a test on a runtime of one thread, whose clock can be moved.
    pub async fn end(mut self) {
        self.check().await;
        self.running.take().expect("running").stop().await;
        self.checked = true;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if std::thread::panicking() || self.checked {
            return;
        }
        // A runtime that is going away, because the task that has the house was cancelled, never
        // finishes what it is asked for.
        let gauges = self.running.as_ref().map(|running| running.app.store.gauges());
        let _watch = Watch::over(format!("a house was dropped, and its check never ends: {gauges:?}"));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                if self.running.is_some() {
                    self.check().await;
                    self.running.take().expect("running").stop().await;
                }
            });
        });
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Another gateway over the same database, simulator and keys, with a data folder of its own.
pub async fn second(house: &House) -> Running {
    let dir = house.dir.join("second");
    std::fs::create_dir_all(dir.join("catalog")).expect("a folder");
    for name in ["tollgate.toml", "sim.key", "access.key", "secret.key"] {
        std::fs::copy(house.dir.join(name), dir.join(name)).expect("copied");
    }
    for name in ["models.toml", "more.toml", "video.toml"] {
        std::fs::copy(house.dir.join("catalog").join(name), dir.join("catalog").join(name)).expect("copied");
    }
    let source = ConfigSource { file: dir.join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
    start(Plan::load(&source), None, world(&house.clock)).await.expect("started")
}

pub fn chat(text: &str) -> Value {
    json!({ "model": MODEL, "messages": [{ "role": "user", "content": text }] })
}

pub fn streamed(text: &str) -> Value {
    let mut body = chat(text);
    body["stream"] = json!(true);
    body
}

/// How many tokens we count in a text that came over a stream.
pub fn counted(text: &str) -> u64 {
    tollgate_wire::count::tokens(text)
}

pub fn call_id(reply: &Response) -> CallId {
    let id = reply.headers().get("x-request-id").expect("x-request-id").to_str().expect("text");
    id.parse().expect("a call id")
}

/// The events of a stream: the JSON of each `data:` line.
pub fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"))).collect()
}

pub fn text_of(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

pub async fn error_of(reply: Response) -> (u16, Value) {
    let (status, body) = (reply.status().as_u16(), reply.json::<Value>().await.expect("a JSON error"));
    (status, body["error"].clone())
}
