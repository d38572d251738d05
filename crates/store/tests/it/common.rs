//! The house the store's tests live in: a fresh store on either engine, an account or two, short
//! verbs. When a house is closed the audit runs, so every test also asserts that all the money adds
//! up.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tollgate_catalog::{Face, Money, Price, Uses};
use tollgate_store::testing::{OtherVersion, TestClock, price};
use tollgate_store::{
    AccountId, BegunTask, CallId, Close, Counters, Credit, CreditKind, DataLocation, Ending, Extend, Held, Hold,
    HoldRefused, Idem, Key, KeyId, Limits, Mark, NewAccount, NewKey, Options, Pot, Recovered, Store, StoreError,
    StoredReply, TaskEnd, TaskState, UsageFacts, ids,
};

/// At this price 1,000 input tokens cost one nano-USD, so counters and money are the same number
/// times 1,000.
pub fn unit_price() -> Arc<Price> {
    price(1)
}

pub struct House {
    pub store: Store,
    pub clock: TestClock,
    pub maker: ids::Maker,
    pub place: DataLocation,
    pub options: Options,
    pub recovered: Recovered,
    seed: u64,
    _dir: Arc<TempDir>,
}

pub struct Customer {
    pub account: AccountId,
    pub key: KeyId,
}

/// A busy machine is not a database that is away: whoever tests the deadline sets its own.
pub fn options() -> Options {
    Options {
        journal_segment: 64 << 10,
        replica_silence: std::time::Duration::from_secs(60),
        // Every time is certain at once; whoever tests the doubt sets its own.
        clock_confirm: std::time::Duration::ZERO,
        hold_deadline: std::time::Duration::from_secs(20),
        behind_most: std::time::Duration::from_secs(600),
        // Sums are merged every few calls.
        sums_apart: 12,
        fold_part: 12,
        ..Options::default()
    }
}

impl House {
    pub async fn open(url: &str) -> Self {
        Self::open_with(url, options()).await
    }

    pub async fn open_with(url: &str, options: Options) -> Self {
        // Houses on one database must not make the same ids.
        static SEED: AtomicU64 = AtomicU64::new(1);
        let dir = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let place = DataLocation { url: url.into(), data_dir: dir.path().into() };
        let seed = SEED.fetch_add(1, Ordering::Relaxed) << 32;
        Self::open_in(dir, place, options, TestClock::default(), seed).await
    }

    pub async fn open_in(
        dir: Arc<TempDir>,
        place: DataLocation,
        options: Options,
        clock: TestClock,
        seed: u64,
    ) -> Self {
        let world = clock.world(seed);
        let opened = Store::open(place.clone(), options.clone(), world.clone()).await.expect("the store opens");
        let maker = ids::Maker::new(clock.world(seed + 1000));
        Self { store: opened.store, clock, maker, place, options, recovered: opened.recovered, seed, _dir: dir }
    }

    /// The same data after a restart; the clock has moved on.
    pub async fn reopen(self) -> Self {
        self.reopen_after(1_000).await
    }

    /// The same data after having been off for so long.
    pub async fn reopen_after(self, ms: i64) -> Self {
        let options = self.options.clone();
        self.reopened(options, ms).await
    }

    pub async fn reopened_with(self, options: Options) -> Self {
        self.reopened(options, 1_000).await
    }

    async fn reopened(self, options: Options, ms: i64) -> Self {
        let Self { store, clock, place, seed, _dir, .. } = self;
        store.shut().await;
        drop(store);
        clock.advance(ms);
        Self::open_in(_dir, place, options, clock, seed + 1).await
    }

    /// A copy of the data directory as a crash at this moment would leave it, opened.
    pub async fn crashed_copy(&self) -> Self {
        self.crashed_copy_with(self.options.clone()).await
    }

    pub async fn crashed_copy_with(&self, options: Options) -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        // Journal first: what it gives up between the copies is in the database by then.
        for name in ["journal.0", "journal.1", "tollgate.db", "tollgate.db-wal"] {
            std::fs::copy(self.place.data_dir.join(name), dir.path().join(name)).expect("a copy");
        }
        let place = DataLocation { url: self.place.url.clone(), data_dir: dir.path().into() };
        Self::open_in(dir, place, options, self.clock.clone(), self.seed + 500).await
    }

    /// Checks that everything adds up, then shuts.
    pub async fn close(self) {
        let report = self.store.verify().await.expect("the audit runs");
        assert!(report.breaches.is_empty(), "the audit found {:#?}", report.breaches);
        self.store.shut().await;
    }

    pub async fn customer(&self, trial: i64, paid: i64) -> Customer {
        self.capped_customer(trial, paid, None).await
    }

    pub async fn capped_customer(&self, trial: i64, paid: i64, cap: Option<i64>) -> Customer {
        let new = NewAccount { name: "customer".into(), ..NewAccount::default() };
        let account = self.store.create_account(new).await.expect("an account").id;
        let key = self.key(account, cap).await.id;
        let customer = Customer { account, key };
        for (pot, amount) in [(Pot::Trial, trial), (Pot::Paid, paid)] {
            if amount > 0 {
                let id = format!("start {pot:?} {account}");
                self.credit(&customer, &id, CreditKind::TopUp, pot, amount).await.expect("credit");
            }
        }
        customer
    }

    pub async fn key(&self, account: AccountId, cap: Option<i64>) -> Key {
        let new = NewKey {
            account,
            name: "key".into(),
            expires_at: None,
            models: None,
            cidrs: None,
            limits: Limits { total: cap.map(Money::from_nano), ..Limits::default() },
            scope: Default::default(),
        };
        let secret = format!("sk-{}", self.maker.call());
        self.store.create_key(new, &secret).await.expect("a key")
    }

    pub async fn credit(
        &self,
        customer: &Customer,
        id: &str,
        kind: CreditKind,
        pot: Pot,
        amount: i64,
    ) -> Result<bool, String> {
        let credit = Credit {
            id: id.into(),
            account: customer.account,
            kind,
            pot,
            amount: Money::from_nano(amount),
            expires_at: None,
            reason: "test".into(),
            actor: "tester".into(),
        };
        self.store.credit(credit).await.map(|c| c.applied).map_err(|e| e.to_string())
    }

    pub fn wish(&self, customer: &Customer, amount: i64) -> Hold {
        let at = self.clock.now();
        Hold {
            call: self.maker.call(),
            account: customer.account,
            key: customer.key,
            amount: Money::from_nano(amount),
            least: Money::from_nano(amount),
            price: unit_price(),
            model: "test".into(),
            endpoint: "/v1/chat/completions",
            paid_only: false,
            topped_up: true,
            expires_at: at + 60_000,
            at,
            idem: None,
        }
    }

    pub async fn hold(&self, wish: Hold) -> Result<Held, HoldRefused> {
        let mut held = self.store.hold(wish).await?;
        held.durable().await.map_err(|_| HoldRefused::Unavailable)?;
        Ok(held)
    }

    /// Holds and returns the call.
    pub async fn held(&self, customer: &Customer, amount: i64) -> CallId {
        self.hold(self.wish(customer, amount)).await.expect("a hold").call
    }

    pub fn more(&self, customer: &Customer, call: CallId, step: u32, amount: i64) -> Extend {
        let more = Money::from_nano(amount);
        Extend { call, account: customer.account, step, more, least: more }
    }

    /// Extends an open hold and returns it as it is then: trial and paid.
    pub async fn extend(&self, extend: Extend) -> Result<(i64, i64), HoldRefused> {
        let mut held = self.store.extend(extend).await?;
        held.durable().await.map_err(|_| HoldRefused::Unavailable)?;
        Ok((held.trial.nano(), held.paid.nano()))
    }

    /// The end of a task that its provider refused.
    pub fn refused_task(&self, customer: &Customer, begun: BegunTask) -> TaskEnd {
        TaskEnd {
            fence: begun.fence,
            state: TaskState::Refused,
            result: None,
            failure: None,
            forgiven: false,
            webhook_url: None,
            close: self.ending(customer, begun.id.call(), 0),
        }
    }

    pub fn ending(&self, customer: &Customer, call: CallId, charge: i64) -> Close {
        Close {
            call,
            account: customer.account,
            ending: if charge > 0 { Ending::Answered } else { Ending::UpstreamFault },
            reason: if charge > 0 { String::new() } else { "upstream_error".into() },
            charge: Money::from_nano(charge),
            most: None,
            row: self.facts(customer, charge),
            reply: None,
        }
    }

    pub fn mark(&self, customer: &Customer, call: CallId, charge: i64) -> Mark {
        let row = self.facts(customer, charge);
        Mark { call, account: customer.account, charge: Money::from_nano(charge), most: None, row }
    }

    pub fn facts(&self, customer: &Customer, charge: i64) -> UsageFacts {
        let now = self.clock.now();
        UsageFacts {
            key: customer.key,
            at: now,
            ended_at: now,
            endpoint: "/v1/chat/completions".into(),
            model: "test".into(),
            provider: Some("sim".into()),
            upstream_model: Some("test-1".into()),
            status: 200,
            counters: Counters {
                input: charge.unsigned_abs() * 1_000,
                tools: Uses::NONE.with(Face::WebSearch, 2),
                ..Counters::default()
            },
            estimated: false,
            raw_usage: Some("{\"prompt_tokens\":1}\0".into()),
            attempts: 1,
            first_byte_ms: Some(12),
            tier: None,
            dropped: Some("seed,top_k".into()),
            cost: (charge > 0).then(|| Money::from_nano(charge / 2)),
            price: None,
        }
    }

    /// (trial available, paid available, trial held, paid held)
    pub async fn pots(&self, customer: &Customer) -> (i64, i64, i64, i64) {
        let a = self.store.account(customer.account).await.expect("reading").expect("the account");
        (a.trial_available.nano(), a.paid_available.nano(), a.trial_held.nano(), a.paid_held.nano())
    }
}

pub fn idem(key: u8, body: u8) -> Idem {
    Idem { key_hash: [key; 32], fingerprint: [body; 32] }
}

pub fn reply(text: &str) -> StoredReply {
    StoredReply { status: 200, content_type: "application/json".into(), body: text.to_owned().into() }
}

/// Where a call that nobody heard of again leaves [`lost`] under its key.
pub const ONCE: &str = "/v1/images/generations";

/// What it leaves there.
pub fn lost(endpoint: &str) -> Option<StoredReply> {
    (endpoint == ONCE).then(|| StoredReply { status: 504, ..reply("lost") })
}

/// Another version of this program: its functions (PostgreSQL), and migrations that come after
/// ours.
pub fn version(functions: Option<String>, migrations: &[&str]) -> Options {
    let migrations = migrations.iter().map(|sql| (*sql).to_owned()).collect();
    Options { version: Some(OtherVersion { functions, migrations }), ..options() }
}

/// A store, or why it does not start; its folder is gone afterwards.
pub async fn start(url: &str, options: Options) -> Result<Store, StoreError> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    start_in(url, dir.path(), options).await
}

pub async fn start_in(url: &str, dir: &Path, options: Options) -> Result<Store, StoreError> {
    let place = DataLocation { url: url.into(), data_dir: dir.into() };
    Ok(Store::open(place, options, TestClock::default().world(99 << 40)).await?.store)
}

/// One answer of the database, by a connection that is not ours.
pub async fn ask(url: &str, sql: &str) -> String {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connected");
    let asked =
        async move { client.query_one(sql, &[]).await.expect(sql).get::<_, Option<String>>(0).unwrap_or_default() };
    let (answer, ended) = tokio::join!(asked, connection);
    ended.expect("the connection");
    answer
}
