//! What happens to the ledger: its database is away, slow, locked or full, a handler panics over
//! it, the clock jumps.

use super::{FUNDED, answered, free, paid, rows, videos};
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat, error_of, streamed};
use crate::watch::until;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tollgate_catalog::Money;
use tollgate_store::testing::{break_syncs, mend_syncs, run_sql};
use tollgate_store::{CallId, Credit, CreditKind, Ending, EventPage, Pot, TaskState, UsagePage};

const HOUR: i64 = 3_600_000;

/// The write lock on the database of a house, in somebody else's hands.
pub fn locked(house: &House) -> rusqlite::Connection {
    locked_file(house, "tollgate.db")
}

/// The same of any of its files.
pub fn locked_file(house: &House, name: &str) -> rusqlite::Connection {
    let file = house.running().app.settings.data_dir.join(name);
    let blocker = rusqlite::Connection::open(file).expect("the file");
    blocker.busy_timeout(Duration::from_secs(5)).expect("patience");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    blocker
}

pub async fn the_ledger_is_down() {
    let house = House::with(Plan::impatient()).await;
    let known = answered(&house, repeatable_call(&house).await).await;
    let blocker = locked(&house);
    // The journal serves calls until the database is too far behind; from then on nothing is sent.
    until("the refusal", async || house.ask("[[sim:tokens=3]]").await.status() == 503).await;
    assert!(!house.running().app.store.ready());
    assert!(house.running().app.store.gauges().down, "the alarm");
    let sent = house.sim.received().len();
    for _ in 0..5 {
        let reply = house.ask("refused at once").await;
        assert!(reply.headers().contains_key("retry-after"));
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")));
    }
    assert_eq!(house.sim.received().len(), sent, "nothing is sent without a ledger");
    all_is_readable(&house, known.call).await;
    drop(blocker);
    until("the recovery", async || house.running().app.store.ready()).await;
    house.quiet().await;
    let page = UsagePage { before: None, limit: 10_000 };
    let rows = house.running().app.store.usage(None, page).await.expect("rows");
    assert_eq!(rows.len(), sent, "each that was sent has its row");
    assert_eq!(house.available().await, FUNDED - rows.iter().map(|row| row.charge.nano()).sum::<i64>());
    assert_eq!(house.ask("again").await.status(), 200);
    a_video_that_cannot_be_said_to_be_sent_is_not_sent().await;
    a_server_that_cannot_be_written().await;
}

/// A call whose answer is stored for whoever asks again.
async fn repeatable_call(house: &House) -> reqwest::Response {
    house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "repeated").send().await.expect("a reply")
}

/// What can be read while nothing can be written, the answer of a request that is repeated
/// included.
async fn all_is_readable(house: &House, known: CallId) {
    for path in ["/v1/models", "/v1/balance", "/v1/usage"] {
        assert_eq!(house.get(path).send().await.expect("a reply").status(), 200, "{path} stays readable");
    }
    for (path, field) in
        [(format!("/v1/usage/{known}"), "entries"), (format!("/v1/usage/{known}/receipt"), "signature")]
    {
        let reply = house.get(&path).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path} stays readable");
        let body: serde_json::Value = reply.json().await.expect("JSON");
        assert!(!body[field].is_null(), "{path}: {body}");
    }
    let again = repeatable_call(house).await;
    assert_eq!((again.status().as_u16(), call_id(&again)), (200, known));
    assert!(again.headers().contains_key("idempotency-replayed"));
}

/// PostgreSQL answers, and refuses to write: a standby, or one that an operator has closed.
async fn a_server_that_cannot_be_written() {
    let [_, postgres] = Engine::both().await;
    let house = House::with(Plan { database: postgres.url.clone(), ..Plan::impatient() }).await;
    let known = answered(&house, repeatable_call(&house).await).await;
    let (server, name) = postgres.url.rsplit_once('/').expect("a database");
    let set = async |word: &str| {
        let sql = format!(
            "ALTER DATABASE {name} {word}; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        );
        run_sql(&format!("{server}/postgres"), &sql).await.expect("set");
    };
    set("SET default_transaction_read_only = on").await;
    until("the alarm", async || {
        house.ask("refused").await;
        !house.running().app.store.ready()
    })
    .await;
    all_is_readable(&house, known.call).await;
    set("RESET default_transaction_read_only").await;
    until("the recovery", async || house.running().app.store.ready()).await;
    assert_eq!(house.ask("by itself").await.status(), 200);
}

/// The hold was taken, and then the ledger takes nothing more.
async fn a_video_that_cannot_be_said_to_be_sent_is_not_sent() {
    let house = videos::house("").await;
    let file = house.running().app.settings.data_dir.join("tollgate.db");
    let database = rusqlite::Connection::open(file).expect("the file");
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON task WHEN NEW.state = 1 BEGIN SELECT RAISE(ABORT, 'no'); END";
    database.execute_batch(refuse).expect("a trigger");
    let body = serde_json::json!({ "model": "kling-v3", "prompt": "p" });
    let post = || house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).header("idempotency-key", "k");
    let (status, error) = error_of(post().json(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")));
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.videos()), (FUNDED, 0), "nothing is held, nothing was sent");
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::Refused, 0));
    database.execute_batch("DROP TRIGGER refuse").expect("dropped");
    assert_eq!(post().json(&body).send().await.expect("a reply").status(), 200, "the same key can be used again");
}

/// Neither the journal nor the database takes the hold in time.
pub async fn the_ledger_is_slow() {
    let house = House::with(Plan::impatient()).await;
    let data = house.running().app.settings.data_dir.clone();
    break_syncs(&data);
    let blocker = locked(&house);
    let ask = || house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "k").send();
    let began = Instant::now();
    let reply = ask().await.expect("a reply");
    assert!(began.elapsed() >= Duration::from_secs(2), "it waited for the hold as long as it may");
    mend_syncs(&data);
    drop(blocker);
    until("the recovery", async || house.running().app.store.ready()).await;
    let slow = (503, "ledger_unavailable");
    free(&house, reply, slow, Some((Ending::UpstreamFault, "hold_not_durable"))).await;
    let again = ask().await.expect("a reply");
    assert!(!again.headers().contains_key("idempotency-replayed"), "the key is free again");
    answered(&house, again).await;
}

pub async fn the_database_is_locked_for_a_moment() {
    let house = House::new().await;
    let blocker = locked(&house);
    let reply = house.ask("[[sim:tokens=3]]").await;
    assert_eq!(reply.status(), 200, "the journal has its hold");
    until("a try to commit", async || house.running().app.store.gauges().retries > 0).await;
    // That the database takes nothing is known by now.
    let next = house.ask("[[sim:tokens=3]]").await;
    assert_eq!(next.status(), 200);
    assert!(house.running().app.store.ready(), "calls are served");
    let held = house.running().app.store.gauges();
    assert!(held.down && held.settle_lag_ms > 0 && held.journal_bytes > 0, "the alarm: {held:?}");
    drop(blocker);
    for call in [call_id(&reply), call_id(&next)] {
        let row = house.row(call).await;
        assert!(row.ending == Ending::Answered && row.charge.nano() > 0, "{row:?}");
    }
    house.quiet().await;
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(house.available().await, FUNDED - rows.iter().map(|row| row.charge.nano()).sum::<i64>());
}

/// Holds are durable with their commit.
pub async fn the_journal_cannot_be_synced() {
    let house = House::new().await;
    let data = house.running().app.settings.data_dir.clone();
    break_syncs(&data);
    let first = answered(&house, house.ask("[[sim:tokens=3]]").await).await;
    assert_eq!(house.ask("[[sim:tokens=3]]").await.status(), 200);
    mend_syncs(&data);
    house.quiet().await;
    let blocker = locked(&house);
    let reply = house.ask("[[sim:tokens=3]]").await;
    assert_eq!(reply.status(), 200, "the journal is believed again");
    drop(blocker);
    house.quiet().await;
    assert_eq!(house.row(call_id(&reply)).await.charge, first.charge);
}

/// A small disk of its own; unmounted when dropped.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// `None` where mounting is not possible and whoever runs the tests has said that he knows
    /// (CONTRIBUTING.md).
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says what cannot be tested here")]
    fn mount() -> Option<Self> {
        let at = tempfile::tempdir().expect("a folder").keep();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=14m", "tollgate-test"])
            .arg(&at)
            .output();
        if mount.as_ref().is_ok_and(|done| done.status.success()) {
            return Some(Self { at });
        }
        let knows = std::env::var("TOLLGATE_NO_MOUNT").is_ok_and(|said| said == "1");
        assert!(knows, "a small disk cannot be mounted here; TOLLGATE_NO_MOUNT=1 goes without: {mount:?}");
        None
    }

    fn plan(&self) -> Plan {
        Plan { config: format!("data_dir = \"{}\"\n", self.at.join("data").display()), ..Plan::impatient() }
    }

    fn fill(&self) -> PathBuf {
        use std::io::Write as _;
        let path = self.at.join("filler");
        let mut file = std::fs::File::create(&path).expect("a file");
        for size in [1 << 16, 1 << 12, 1 << 8, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let lazily = std::process::Command::new("umount").arg("-l").arg(&self.at).status();
        assert!(lazily.is_ok_and(|status| status.success()) || std::thread::panicking(), "the disk is still there");
        let _ = std::fs::remove_dir(&self.at);
    }
}

fn free_again(filler: &Path) {
    std::fs::remove_file(filler).expect("space");
}

pub async fn the_disk_is_full() {
    let Some(disk) = SmallDisk::mount() else { return };
    let house = House::with(Plan { videos: true, tasks: "refresh_after = \"1ms\"", ..disk.plan() }).await;
    videos::hold_at_the_maker(&house, true).await;
    let video = videos::begin(&house, "[[sim:queue=0 run=0]]").await;
    let filler = disk.fill();
    until("the refusal", async || house.ask("[[sim:tokens=3]]").await.status() == 503).await;
    // The video is asked for all the while.
    let asked = || house.sim.received().iter().filter(|one| !one.path.starts_with("/video/")).count();
    let sent = asked();
    let (status, error) = error_of(house.ask("the others get the error").await).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")));
    assert_eq!(asked(), sent);
    for path in ["/v1/models", "/v1/balance", "/v1/usage"] {
        assert_eq!(house.get(path).send().await.expect("a reply").status(), 200, "{path} stays readable");
    }
    assert_eq!(house.get("/readyz").send().await.expect("a reply").status(), 503, "the alarm");
    // A video that is finished meanwhile: whoever reads it gets what was last written down, and
    // does not wait for the rest.
    videos::hold_at_the_maker(&house, false).await;
    let began = Instant::now();
    let seen = house.get(&format!("/v1/videos/{video}")).send().await.expect("a reply");
    assert_eq!(seen.status(), 200);
    let seen: serde_json::Value = seen.json().await.expect("JSON");
    assert!(seen["status"] == "queued" || seen["status"] == "in_progress", "{seen}");
    let body = serde_json::json!({ "model": "kling-v3", "prompt": "p" });
    let post = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let (status, error) = error_of(post.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")));
    assert!(began.elapsed() < crate::watch::HANG, "nothing waits for the disk: {:?}", began.elapsed());
    free_again(&filler);
    until("the recovery", async || house.running().app.store.ready()).await;
    assert_eq!(videos::shown(&house, video).await["status"], "completed");
    house.quiet().await;
    // The journal had space for calls, until the database was too far behind.
    let page = UsagePage { before: None, limit: 10_000 };
    let rows = house.running().app.store.usage(None, page).await.expect("rows");
    let charged: Vec<i64> = rows.iter().map(|row| row.charge.nano()).collect();
    assert!(charged.contains(&videos::PRICE), "{charged:?}");
    assert_eq!((house.available().await, house.sim.videos()), (FUNDED - charged.iter().sum::<i64>(), 1));
    assert_eq!(house.ask("by itself").await.status(), 200);
    drop(house);
}

pub async fn the_disk_is_full_at_settle() {
    let Some(disk) = SmallDisk::mount() else { return };
    let house = House::with(Plan { ledger_behind: Plan::default().ledger_behind, ..disk.plan() }).await;
    house.sim.shut("/_door");
    let mut reply = house.post(&streamed("[[sim:tokens=12 door=2]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("the first words");
    let filler = disk.fill();
    house.sim.open();
    let rest = reply.text().await.expect("the stream goes on");
    assert!(rest.trim_end().ends_with("data: [DONE]"), "a normal end: {rest}");
    until("the alarm", async || house.running().app.store.gauges().down).await;
    // The journal has its space in advance: for calls that begin now, too.
    assert_eq!(house.ask("[[sim:tokens=3]]").await.status(), 200);
    free_again(&filler);
    let row = house.row(call).await;
    assert_eq!((row.ending, row.counters.output), (Ending::Answered, 12), "late, but whole");
    house.quiet().await;
    let charged: Vec<i64> = rows(&house).await.iter().map(|row| row.charge.nano()).collect();
    assert!(charged.len() == 2 && charged.iter().all(|charge| *charge > 0), "{charged:?}");
    assert_eq!(house.available().await, FUNDED - charged.iter().sum::<i64>());
    drop(house);
}

pub async fn the_ledger_is_down_at_settle() {
    let house = House::with(Plan::impatient()).await;
    house.sim.shut("/_door");
    let mut reply = house.post(&streamed("[[sim:tokens=12 door=2]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("the first words");
    let blocker = locked(&house);
    house.sim.open();
    let rest = reply.text().await.expect("the stream goes on");
    assert!(rest.trim_end().ends_with("data: [DONE]"), "the client has its answer: {rest}");
    until("the alarm", async || !house.running().app.store.ready()).await;
    assert_eq!(house.ask("new calls wait").await.status(), 503);
    drop(blocker);
    let row = paid(&house, call).await;
    assert_eq!((row.ending, row.counters.output), (Ending::Answered, 12), "late, but whole");
}

pub async fn a_handler_panics() {
    let house = House::new().await;
    let beside = tokio::task::JoinSet::from_iter([house.post(&streamed("[[sim:tokens=30 delay_ms=50]]")).send()]);
    let beside = beside.join_all().await.remove(0).expect("a stream");
    house.sim.shut("/v1/chat/completions");
    let doomed = tokio::task::JoinSet::from_iter([house.post(&chat("[[sim:tokens=3]]")).send()]);
    while house.sim.waited() == 0 {
        tokio::task::yield_now().await;
    }
    house.clock.trap();
    house.sim.open();
    let (status, error) = error_of(doomed.join_all().await.remove(0).expect("an answer")).await;
    assert_eq!((status, error["code"].as_str()), (500, Some("internal_error")));
    let stream_call = call_id(&beside);
    let text = beside.text().await.expect("a whole stream");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the other knows nothing of it: {text}");
    house.quiet().await;
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 2, "both have their row");
    let row = rows.iter().find(|row| row.call != stream_call).expect("its row");
    assert_eq!(row.charge.nano(), 0, "nothing was delivered");
    assert_eq!(house.available().await, FUNDED - rows.iter().map(|row| row.charge.nano()).sum::<i64>());
    assert_eq!(house.ask("and the next").await.status(), 200);
}

/// Dear from nine to ten, by the clock in Iceland, which is never put forward.
const BY_THE_CLOCK: &str = r#"
[model."by-the-clock"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."by-the-clock".tier]]
name = "morning"
when = [{ dim = "wall_clock", timezone = "Atlantic/Reykjavik", hours = [9] }]
multiplier = 3
"#;
/// 2026-02-02, half past nine there.
const MORNING: i64 = 1_770_024_600_000;

/// The price is that of the moment the call began, whatever the clock does while it runs.
async fn a_call_keeps_the_hour_it_began_in() {
    let house = House::with(Plan { catalog: BY_THE_CLOCK, now: Some(MORNING), ..Plan::default() }).await;
    let mut body = streamed("[[sim:tokens=12 delay_ms=50]]");
    body["model"] = serde_json::json!("by-the-clock");
    let mut reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("the first words");
    house.clock.set(2 * HOUR);
    reply.text().await.expect("the rest");
    let row = paid(&house, call).await;
    assert_eq!(row.tier.as_deref(), Some("morning"));
    let input = i64::try_from(row.counters.input).expect("small");
    assert_eq!(row.charge.nano(), 3 * (input * 1_000 + 12 * 2_000));
    let mut later = chat("[[sim:tokens=2]]");
    later["model"] = serde_json::json!("by-the-clock");
    let later = house.post(&later).send().await.expect("a reply");
    // A new ledger knows of no other time.
    assert_eq!(house.row(call_id(&later)).await.tier, None, "the next call is a later one");
}

pub async fn the_clock_jumps_forward() {
    a_call_keeps_the_hour_it_began_in().await;
    let house = House::new().await;
    let mut reply = house.post(&streamed("[[sim:tokens=12 delay_ms=50]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("the first words");
    house.clock.set(2 * HOUR);
    let balance = house.get("/v1/balance").send().await.expect("a reply");
    assert_eq!(balance.status(), 200, "no key is older for it");
    let app = &house.running().app;
    let swept = app.store.sweep(app.world.steady_ms()).await.expect("a sweep");
    assert_eq!(swept.expired, 0, "no hold ends early");
    assert_eq!(app.store.verify().await.expect("audited").breaches, [], "nor is it said to be late");
    assert_eq!(app.store.verify_changed().await.expect("audited").breaches, []);
    assert_eq!(app.store.gauges().breaches, 0, "no alarm");
    let rest = reply.text().await.expect("the rest");
    assert!(rest.trim_end().ends_with("data: [DONE]"), "{rest}");
    let row = paid(&house, call).await;
    assert_eq!((row.ending, row.counters.output), (Ending::Answered, 12));
    assert!(row.ended_at >= row.at);
    // And back again: the ledger's time stays ahead until the clock has caught up.
    house.clock.set(0);
    assert_eq!(house.ask("works").await.status(), 200);
    a_video_is_made_while_the_clock_is_set(2 * HOUR).await;
}

/// It is neither given up early, nor forgotten until the clock has come back.
async fn a_video_is_made_while_the_clock_is_set(by: i64) {
    let house = videos::house("patience = \"40m\"\nunknown_time = \"10m\"\nrefresh_after = \"50ms\"").await;
    videos::hold_at_the_maker(&house, true).await;
    // Kling's keys are signed with the time, so with a wrong clock there is nothing to be learnt
    // from it.
    let id = videos::begin_with(&house, "wan2.7-t2v", "[[sim:queue=0 run=0]]").await;
    let held = house.balance().await.paid_held.nano();
    house.clock.set(by);
    let polls = || house.sim.asked().get("dashscope").map_or(0, |asked| asked.all);
    let before = polls();
    until("a poll", async || polls() > before + 1).await;
    let seen = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
    let seen: serde_json::Value = seen.json().await.expect("JSON");
    assert!(seen["status"] == "queued" || seen["status"] == "in_progress", "{seen}");
    assert!(!matches!(videos::state(&house, id).await, TaskState::Unknown | TaskState::Failed));
    assert!(held > 0 && house.balance().await.paid_held.nano() == held, "its money is held");
    assert_eq!(house.running().app.store.verify().await.expect("audited").breaches, []);
    videos::hold_at_the_maker(&house, false).await;
    assert_eq!(videos::shown(&house, id).await["status"], "completed");
    let row = house.row(id.call()).await;
    assert_eq!((row.charge.nano(), row.write_off.nano()), (held, 0), "{row:?}");
}

pub async fn the_clock_jumps_back() {
    let house = House::new().await;
    let first = answered(&house, house.ask("[[sim:tokens=2]]").await).await;
    let store = &house.running().app.store;
    let key = store.keys(house.account).await.expect("keys").remove(0);
    let day = tollgate_store::Change::Set(key.used.day);
    store
        .change_key(key.id, tollgate_store::NewLimits { day, ..Default::default() }.into(), Default::default())
        .await
        .expect("limited");
    for back in [2 * HOUR, 30 * HOUR] {
        house.clock.set(-back);
        let (status, error) = error_of(house.ask("yesterday again?").await).await;
        assert_eq!((status, error["code"].as_str()), (402, Some("key_spend_cap_reached")), "no day opens again");
    }
    let lift = tollgate_store::NewLimits { day: tollgate_store::Change::Lift, ..Default::default() };
    store.change_key(key.id, lift.into(), Default::default()).await.expect("lifted");
    let reply = house.ask("[[sim:tokens=2]]").await;
    assert_eq!(reply.status(), 200);
    assert_ne!(call_id(&reply), first.call, "no id twice");
    house.quiet().await;
    assert_eq!(store.verify().await.expect("audited").breaches, [], "ledger time did not go back");
    a_key_revoked_in_the_future_is_revoked(&house).await;
    a_video_is_made_while_the_clock_is_set(-2 * HOUR).await;
}

/// The clock is set back after a key was revoked: no second life until it has caught up.
async fn a_key_revoked_in_the_future_is_revoked(house: &House) {
    let store = &house.running().app.store;
    let key = store.keys(house.account).await.expect("keys").remove(0);
    house.clock.set(2 * HOUR);
    assert_eq!(house.get("/v1/balance").send().await.expect("a reply").status(), 200);
    store.revoke_key(key.id).await.expect("revoked");
    house.clock.set(-2 * HOUR);
    // For a paid call at once, for the others as soon as the key is read again.
    let (status, error) = error_of(house.ask("at once").await).await;
    assert_eq!((status, error["code"].as_str()), (401, Some("invalid_api_key")));
    until("the end of the key", async || house.get("/v1/balance").send().await.expect("a reply").status() == 401).await;
}

pub async fn an_adjustment_during_calls() {
    let house = House::new().await;
    let store = house.running().app.store.clone();
    let calls: tokio::task::JoinSet<_> =
        (0..40).map(|_| house.post(&chat("[[sim:tokens=5 think_ms=50]]")).send()).collect();
    for n in 0..40_i64 {
        let credit = Credit {
            id: format!("fix-{n}"),
            account: house.account,
            kind: CreditKind::Adjust,
            pot: Pot::Paid,
            amount: Money::from_nano(if n % 2 == 0 { 1_000 + n } else { -n }),
            expires_at: None,
            reason: format!("correction {n}"),
            actor: "Ada".to_owned(),
        };
        store.credit(credit).await.expect("adjusted");
    }
    for reply in calls.join_all().await {
        assert_eq!(reply.expect("a reply").status(), 200);
    }
    house.quiet().await;
    let charged: i64 = rows(&house).await.iter().map(|row| row.charge.nano()).sum();
    let added: i64 = (0..40).map(|n| if n % 2 == 0 { 1_000 + n } else { -n }).sum();
    assert_eq!(house.available().await, FUNDED + added - charged);
    let events = store.events(house.account, EventPage { before: None, limit: 100 }).await.expect("events");
    let corrections =
        events.iter().filter(|e| e.kind == "adjust" && e.actor == "Ada" && e.reason.starts_with("correction "));
    assert_eq!(corrections.count(), 40, "each with reason and actor");
}
