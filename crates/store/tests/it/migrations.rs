//! Databases of earlier versions open, keep what they have, and are used on. The first schema is what `schema.sql` holds.

use crate::common::House;
use tollgate_store::testing::PostgresServer;
use tollgate_store::{
    AccountId, CallId, Change, Close, Ending, HoldRefused, KeyId, NewLimits, TaskEnd, TaskId, TaskState, TaskStep, Word,
};

const AT: i64 = 1_769_000_000_000;
/// An account with 900 in the paid pot, 100 of it held by a call that will be found open, and 50 spent before.
/// Hexadecimal in SQLite and PostgreSQL is written differently: `{x}` begins bytes, `{y}` ends them.
const ROWS: &str = "
INSERT INTO account (id, name, created_at, changed_at, trial_available, paid_available, paid_held, topped_up)
  VALUES ({x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, 'Ada', {at}, {at}, 30, 820, 100, {true});
INSERT INTO key (id, account_id, hash, prefix, name, created_at, changed_at, cap, spent, held)
  VALUES ({x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}1111111111111111111111111111111111111111111111111111111111111111{y}, 'sk-1234', 'old', {at}, {at}, 500, 50, 100);
INSERT INTO price (id, json) VALUES ({x}{price_id}{y}, '{price}');
INSERT INTO entry ({seq}op_id, kind, account_id, trial, paid, at, reference, actor, reason) VALUES
  ({1}{x}0101ca{y}, 6, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, 0, 970, {at}, 'pay', 'x', 'x'),
  ({2}{x}0102ca{y}, 6, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, 30, 0, {at}, 'gift', 'x', 'x');
INSERT INTO entry ({seq}op_id, kind, account_id, key_id, trial, paid, at, price_id, model, endpoint, expires_at, paid_only) VALUES
  ({3}{x}0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c00{y}, 0, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, 0, 60, {at}, {x}{price_id}{y}, 'test', '/v1/chat/completions', {at}, {true}),
  ({4}{x}0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d00{y}, 0, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, 0, 100, {at}, {x}{price_id}{y}, 'test', '/v1/chat/completions', 1769999999999, {true});
INSERT INTO entry ({seq}op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at) VALUES
  ({5}{x}0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c01{y}, 1, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, 0, 60, 0, 50, {at});
INSERT INTO usage (account_id, call_id, key_id, at, ended_at, endpoint, model, ending, reason, status, input, cache_read,
  cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output, calls, seconds,
  estimated, hold, charge, refunded, write_off, price_id, attempts) VALUES
  ({x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, {at}, {at},
  '/v1/chat/completions', 'test', 0, '', 200, 50000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {false}, 60, 50, 0, 0, {x}{price_id}{y}, 1);
INSERT INTO schema_version VALUES (1);
";

/// The open call and the one that was charged as video tasks, of a time when no task told its host; a mistake of that time gave both
/// one name. The second prompt can be guessed from its mark.
const TASKS: &str = "
INSERT INTO task (call_id, account_id, key_id, endpoint, model, provider, upstream_model, upstream_id, state, plan, result, created_at,
  ended_at, price_id, due_at{owner}) VALUES
  ({x}0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c{y}, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, '/v1/videos',
    'test', 'sim', 'wan', 'up-1', 5, '{\"call\":\"a\"}', '{}', {at}, {at}, {x}{price_id}{y}, {at}{by}),
  ({x}0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d{y}, {x}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a{y}, {x}0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b{y}, '/v1/videos',
    'test', 'sim', 'wan', 'up-1', 3, '{\"call\":\"b\",\"prompt_mark\":\"00112233445566778899aabbccddeeff\"}', NULL, {at}, NULL,
    {x}{price_id}{y}, {at}{by});
";

/// What had run before tasks told their host, after the first schema.
const SQLITE: [&str; 11] = [
    include_str!("../../src/sqlite/migrations/accounts.sql"),
    include_str!("../../src/sqlite/migrations/receipts.sql"),
    include_str!("../../src/sqlite/migrations/social.sql"),
    include_str!("../../src/sqlite/migrations/chain.sql"),
    include_str!("../../src/sqlite/migrations/tasks.sql"),
    include_str!("../../src/sqlite/migrations/dropped.sql"),
    include_str!("../../src/sqlite/migrations/chain_order.sql"),
    include_str!("../../src/sqlite/migrations/operators.sql"),
    include_str!("../../src/sqlite/migrations/vain.sql"),
    include_str!("../../src/sqlite/migrations/responses.sql"),
    include_str!("../../src/sqlite/migrations/account_webhooks.sql"),
];
const POSTGRES: [&str; 13] = [
    include_str!("../../src/postgres/migrations/replicas.sql"),
    include_str!("../../src/postgres/migrations/accounts.sql"),
    include_str!("../../src/postgres/migrations/receipts.sql"),
    include_str!("../../src/postgres/migrations/social.sql"),
    include_str!("../../src/postgres/migrations/chain.sql"),
    include_str!("../../src/postgres/migrations/tasks.sql"),
    include_str!("../../src/postgres/migrations/dropped.sql"),
    include_str!("../../src/postgres/migrations/operators.sql"),
    include_str!("../../src/postgres/migrations/vain.sql"),
    include_str!("../../src/postgres/migrations/responses.sql"),
    include_str!("../../src/postgres/migrations/turns.sql"),
    include_str!("../../src/postgres/migrations/account_webhooks.sql"),
    include_str!("../../src/postgres/migrations/truncate.sql"),
];

/// The steps from the first schema to the time before tasks told their host, with the tasks of that time.
fn with_tasks(postgres: bool) -> String {
    let steps: &[&str] = if postgres { &POSTGRES } else { &SQLITE };
    let version = format!("INSERT INTO schema_version VALUES ({});", steps.len() + 1);
    let (owner, by) = if postgres { (", leased, owner", ", false, decode('0e', 'hex')") } else { ("", "") };
    let tasks = written(TASKS, postgres).replace("{owner}", owner).replace("{by}", by);
    format!("{}\n{version}\n{tasks}", steps.join("\n"))
}

fn rows(postgres: bool) -> String {
    written(ROWS, postgres)
}

fn written(text: &str, postgres: bool) -> String {
    let price = crate::common::unit_price();
    let id: String = price.id().iter().map(|byte| format!("{byte:02x}")).collect();
    let json = serde_json::to_string(&*price).expect("JSON");
    let mut text = text.replace("{price_id}", &id).replace("{price}", &json).replace("{at}", &AT.to_string());
    let (open, close) = if postgres { ("decode('", "', 'hex')") } else { ("x'", "'") };
    text = text.replace("{x}", open).replace("{y}", close);
    let (yes, no) = if postgres { ("true", "false") } else { ("1", "0") };
    text = text.replace("{true}", yes).replace("{false}", no);
    for n in 1..=5 {
        text = text.replace(&format!("{{{n}}}"), &if postgres { String::new() } else { format!("{n}, ") });
    }
    text.replace("{seq}", if postgres { "" } else { "seq, " })
}

#[tokio::test]
async fn sqlite_from_the_first_schema() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = rusqlite::Connection::open(dir.path().join("tollgate.db")).expect("a file");
    file.execute_batch(include_str!("../../src/sqlite/schema.sql")).expect("the first schema");
    file.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL)").expect("a version");
    file.execute_batch(&rows(false)).expect("rows");
    drop(file);
    used_on(House::open_at("sqlite", dir).await).await;
}

#[tokio::test]
async fn sqlite_with_a_task_that_does_not_tell_its_host() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = rusqlite::Connection::open(dir.path().join("tollgate.db")).expect("a file");
    file.execute_batch(include_str!("../../src/sqlite/schema.sql")).expect("the first schema");
    file.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL)").expect("a version");
    file.execute_batch(&(rows(false) + &with_tasks(false))).expect("rows");
    drop(file);
    task_goes_on(House::open_at("sqlite", dir).await).await;
}

/// A database as the first version made it, with a hold that a replica which no longer lives has left open.
async fn old_postgres(url: &str) -> (tokio_postgres::Client, tokio::task::JoinSet<()>) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connected");
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(async move { connection.await.expect("the connection") });
    client.batch_execute(include_str!("../../src/postgres/schema.sql")).await.expect("the first schema");
    client.batch_execute("CREATE TABLE schema_version (version integer NOT NULL)").await.expect("a version");
    client.batch_execute(&rows(true)).await.expect("rows");
    let open = "INSERT INTO open_hold SELECT call_id, account_id, key_id, trial, paid, paid_only, at, expires_at, price_id, \
                model, endpoint, NULL, decode('0e', 'hex') FROM entry WHERE kind = 0 AND paid = 100";
    client.batch_execute(open).await.expect("an open hold");
    (client, driver)
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_from_the_first_schema() {
    let server_dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(server_dir.path()).expect("a PostgreSQL server");
    let url = server.database("old").await.expect("a database");
    let _client = old_postgres(&url).await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let h = House::open_at(&url, dir).await;
    for _ in 0..8 {
        h.clock.advance(10_000);
        h.store.beat().await.expect("a beat");
        h.store.sweep(h.clock.now()).await.expect("a sweep");
    }
    used_on(h).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_with_a_task_that_does_not_tell_its_host() {
    let server_dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(server_dir.path()).expect("a PostgreSQL server");
    let url = server.database("old_task").await.expect("a database");
    let (client, _driver) = old_postgres(&url).await;
    client.batch_execute(&with_tasks(true)).await.expect("rows");
    client.batch_execute("UPDATE open_hold SET task = true").await.expect("the hold of a task");
    task_goes_on(House::open_at(&url, tempfile::tempdir().expect("a temporary directory")).await).await;
}

/// It is polled, ended and paid for once, whatever it does not tell.
async fn task_goes_on(h: House) {
    let c = crate::common::Customer { account: AccountId([10; 16]), key: KeyId([11; 16]) };
    let id = TaskId([13; 16]);
    for _ in 0..8 {
        h.clock.advance(10_000);
        h.store.beat().await.expect("a beat");
        h.store.sweep(h.clock.now()).await.expect("a sweep");
    }
    assert_eq!(h.pots(&c).await, (30, 820, 0, 100), "neither a restart nor a sweep ends it");
    let take = async |h: &House| {
        let mut taken = h.store.take_tasks(10, 60_000, &[]).await.expect("taken");
        assert_eq!(taken.len(), 1);
        taken.remove(0)
    };
    let leased = take(&h).await;
    let task = &leased.task;
    assert_eq!((task.id, task.upstream_id.as_deref(), task.provider.as_deref()), (id, Some("up-1"), Some("sim")));
    assert_eq!((task.upstream_host.as_deref(), task.upstream_key.as_deref()), (None, None));
    assert_eq!(task.plan.replace(' ', ""), r#"{"call":"b"}"#, "what a prompt could be guessed from is gone");
    let (state, fence) = (TaskState::Running, leased.fence);
    let step = TaskStep { progress: Some(10), ..TaskStep::new(id, fence, state, Word::Running, 0) };
    assert!(h.store.put_back_task(step).await.expect("written"));

    let h = h.reopen().await;
    let leased = take(&h).await;
    let end = || TaskEnd {
        fence: leased.fence,
        state: TaskState::Completed,
        result: Some("{}".into()),
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: Close { ending: Ending::Answered, ..h.ending(&c, id.call(), 70) },
    };
    let closed = h.store.finish_task(end()).await.expect("ended").expect("by us");
    assert_eq!((closed.captured.nano(), closed.applied), (70, true));
    assert!(h.store.finish_task(end()).await.expect("asked").is_none(), "once");
    assert_eq!(h.pots(&c).await, (30, 850, 0, 0));
    let row = h.store.usage_of(c.account, id.call()).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.hold.nano()), (70, 100));
    h.close().await;
}

async fn used_on(h: House) {
    let c = crate::common::Customer { account: AccountId([10; 16]), key: KeyId([11; 16]) };
    let crashed = CallId([13; 16]);
    assert_eq!(h.pots(&c).await, (30, 920, 0, 0), "the open call was resolved");
    let row = h.store.usage_of(c.account, crashed).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.hold.nano()), (0, 100));
    let key = h.store.keys(c.account).await.expect("keys").remove(0);
    assert_eq!((key.limits.total.map(|l| l.nano()), key.spent.nano(), key.held.nano()), (Some(500), 50, 0));
    assert_eq!((key.limits.day, key.used.day.nano()), (None, 0), "what was spent before does not count by day");
    let day = Change::Set(tollgate_catalog::Money::from_nano(100));
    h.store
        .change_key(c.key, NewLimits { day, ..NewLimits::default() }.into(), Default::default())
        .await
        .expect("limited");
    let call = h.held(&c, 80).await;
    assert!(matches!(h.hold(h.wish(&c, 21)).await, Err(HoldRefused::Limit(_))));
    h.store.close(h.ending(&c, call, 70)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 880, 0, 0));
    let h = h.reopen().await;
    assert_eq!(h.store.keys(c.account).await.expect("keys")[0].used.day.nano(), 70);
    h.close().await;
}
