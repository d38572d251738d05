//! Migrations: a fresh database has the shape of its schema and of what follows it; each runs once,
//! in order, whole or not at all, also when the process is killed in between; a database of an
//! unreleased build is refused and left as it is.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ask, options, start, start_in, version};
use tollgate_store::testing::{PostgresServer, run_sql};

const SQLITE: &str = concat!(
    include_str!("../../src/sqlite/schema.sql"),
    include_str!("../../src/sqlite/migrations/0002-client-secrets.sql"),
    include_str!("../../src/sqlite/migrations/0003-client-secret-uses.sql"),
    include_str!("../../src/sqlite/migrations/0004-route-health.sql"),
    include_str!("../../src/sqlite/migrations/0005-workflow-runs.sql"),
    include_str!("../../src/sqlite/migrations/0006-usage-cost.sql"),
    include_str!("../../src/sqlite/migrations/0007-probes.sql"),
    include_str!("../../src/sqlite/migrations/0008-usage-sums.sql"),
    include_str!("../../src/sqlite/migrations/0009-people.sql"),
    include_str!("../../src/sqlite/migrations/0010-account-api.sql"),
    include_str!("../../src/sqlite/migrations/0011-money-in.sql"),
    include_str!("../../src/sqlite/migrations/0012-alerts.sql"),
    include_str!("../../src/sqlite/migrations/0013-issuers.sql"),
    include_str!("../../src/sqlite/migrations/0014-catalog-jobs-trial.sql"),
    include_str!("../../src/sqlite/migrations/0015-usage-days.sql"),
    include_str!("../../src/sqlite/migrations/0016-passkeys.sql"),
    include_str!("../../src/sqlite/migrations/0017-usage-blocks.sql"),
    include_str!("../../src/sqlite/migrations/0018-session-roles.sql"),
    include_str!("../../src/sqlite/migrations/0019-members-and-ends.sql"),
    include_str!("../../src/sqlite/migrations/0020-usage-unmerged.sql"),
    include_str!("../../src/sqlite/migrations/0021-usage-apart.sql"),
    include_str!("../../src/sqlite/migrations/0022-usage-packed.sql"),
    include_str!("../../src/sqlite/migrations/0023-exports-and-letters.sql"),
    include_str!("../../src/sqlite/migrations/0024-whole-calls.sql"),
    include_str!("../../src/sqlite/migrations/0025-last-entry.sql"),
    include_str!("../../src/sqlite/migrations/0026-link.sql"),
    include_str!("../../src/sqlite/migrations/0027-given.sql"),
    include_str!("../../src/sqlite/migrations/0028-holds-found.sql")
);
const POSTGRES: &str = concat!(
    include_str!("../../src/postgres/schema.sql"),
    include_str!("../../src/postgres/migrations/0002-client-secrets.sql"),
    include_str!("../../src/postgres/migrations/0003-client-secret-uses.sql"),
    include_str!("../../src/postgres/migrations/0004-route-health.sql"),
    include_str!("../../src/postgres/migrations/0005-workflow-runs.sql"),
    include_str!("../../src/postgres/migrations/0006-usage-cost.sql"),
    include_str!("../../src/postgres/migrations/0007-probes.sql"),
    include_str!("../../src/postgres/migrations/0008-usage-sums.sql"),
    include_str!("../../src/postgres/migrations/0009-people.sql"),
    include_str!("../../src/postgres/migrations/0010-account-api.sql"),
    include_str!("../../src/postgres/migrations/0011-money-in.sql"),
    include_str!("../../src/postgres/migrations/0012-alerts.sql"),
    include_str!("../../src/postgres/migrations/0013-issuers.sql"),
    include_str!("../../src/postgres/migrations/0014-catalog-jobs-trial.sql"),
    include_str!("../../src/postgres/migrations/0015-usage-days.sql"),
    include_str!("../../src/postgres/migrations/0016-passkeys.sql"),
    include_str!("../../src/postgres/migrations/0017-usage-blocks.sql"),
    include_str!("../../src/postgres/migrations/0018-session-roles.sql"),
    include_str!("../../src/postgres/migrations/0019-members-and-ends.sql"),
    include_str!("../../src/postgres/migrations/0020-usage-unmerged.sql"),
    include_str!("../../src/postgres/migrations/0021-usage-apart.sql"),
    include_str!("../../src/postgres/migrations/0022-usage-packed.sql"),
    include_str!("../../src/postgres/migrations/0023-exports-and-letters.sql"),
    include_str!("../../src/postgres/migrations/0024-whole-calls.sql"),
    include_str!("../../src/postgres/migrations/0025-last-entry.sql"),
    include_str!("../../src/postgres/migrations/0026-link.sql"),
    include_str!("../../src/postgres/migrations/0027-given.sql"),
    include_str!("../../src/postgres/migrations/0028-holds-found.sql")
);
/// Those of this version, and then the two below.
const RAN: &str = "1 schema,2 0002-client-secrets,3 0003-client-secret-uses,4 0004-route-health,5 0005-workflow-runs,6 0006-usage-cost,7 0007-probes,8 0008-usage-sums,9 0009-people,10 0010-account-api,11 0011-money-in,12 0012-alerts,13 0013-issuers,14 0014-catalog-jobs-trial,15 0015-usage-days,16 0016-passkeys,17 0017-usage-blocks,18 0018-session-roles,19 0019-members-and-ends,20 0020-usage-unmerged,21 0021-usage-apart,22 0022-usage-packed,23 0023-exports-and-letters,24 0024-whole-calls,25 0025-last-entry,26 0026-link,27 0027-given,28 0028-holds-found,29 0029-later,30 0030-later";
/// Two migrations of a later version. The second goes on from what the first did.
const FIRST: &str = "CREATE TABLE later (x integer); INSERT INTO later VALUES (1);";
const SECOND: &str = "INSERT INTO later SELECT 10 * max(x) + 2 FROM later;";
/// Writes more than is cached in memory and comes to no end.
const ENDLESS: &str = "INSERT INTO later VALUES (9);
CREATE TABLE half AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 12000) SELECT randomblob(1000) FROM n;
INSERT INTO later WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n;";

/// Where the process that is to be killed has its data.
const FOLDER: &str = "TOLLGATE_TEST_FOLDER";

fn open(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("tollgate.db")).expect("the file")
}

/// Type, name and text.
type Part = (String, String, Option<String>);

/// Whatever stands in the file, but for rows and what SQLite notes for its plans.
fn sqlite_shape(file: &rusqlite::Connection) -> Vec<Part> {
    let mut asked = file
        .prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1, 2")
        .expect("asked");
    let rows = asked.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).expect("the shape");
    rows.collect::<Result<_, _>>().expect("the shape")
}

fn assert_same(one: &[Part], other: &[Part]) {
    let differ =
        |one: &[Part], other: &[Part]| one.iter().filter(|part| !other.contains(part)).cloned().collect::<Vec<_>>();
    assert_eq!((differ(one, other), differ(other, one)), (vec![], vec![]));
}

/// What later migrations did, and which have run.
fn sqlite_done(dir: &Path) -> (String, String) {
    let one = |sql: &str| open(dir).query_row(sql, [], |r| r.get(0)).expect(sql);
    (
        one("SELECT group_concat(x) FROM (SELECT x FROM later ORDER BY rowid)"),
        one("SELECT group_concat(number || ' ' || name) FROM (SELECT * FROM migration ORDER BY number)"),
    )
}

#[tokio::test]
async fn a_fresh_file_is_its_schema_and_migrations() {
    let made = tempfile::tempdir().expect("a folder");
    let by_hand = rusqlite::Connection::open_in_memory().expect("memory");
    for (later, sql) in [(vec![], SQLITE), (vec![FIRST, SECOND], FIRST)] {
        start_in("sqlite", made.path(), version(None, &later)).await.expect("a start").shut().await;
        by_hand.execute_batch(sql).expect("by hand");
        assert_same(&sqlite_shape(&open(made.path())), &sqlite_shape(&by_hand));
    }
    assert_eq!(sqlite_done(made.path()), ("1,12".into(), RAN.into()));
    let stored = rusqlite::Connection::open(made.path().join("kept.db")).expect("the file");
    let schema = rusqlite::Connection::open_in_memory().expect("memory");
    schema.execute_batch(include_str!("../../src/sqlite/stored/schema.sql")).expect("by hand");
    assert_same(&sqlite_shape(&stored), &sqlite_shape(&schema));
    let why = start_in("sqlite", made.path(), options()).await.err().expect("a newer file").to_string();
    assert!(why.contains("tollgate.db was made by a newer version"), "{why}");
}

/// Runs as a process of its own: the second of its migrations comes to no end.
#[tokio::test]
#[ignore = "begun by a_kill_between_migrations_leaves_each_whole_or_undone"]
#[expect(clippy::disallowed_methods, reason = "the test that begins it says where")]
async fn a_process_that_migrates_without_end() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let _ = start_in("sqlite", Path::new(&folder), version(None, &[FIRST, ENDLESS])).await;
}

#[tokio::test]
async fn a_kill_between_migrations_leaves_each_whole_or_undone() {
    let dir = tempfile::tempdir().expect("a folder");
    start_in("sqlite", dir.path(), options()).await.expect("a start").shut().await;
    let mut process = Command::new(std::env::current_exe().expect("this executable"))
        .args(["--exact", "migrations::a_process_that_migrates_without_end", "--ignored"])
        .env(FOLDER, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    // So much is in the log only when the second one is under way.
    while std::fs::metadata(dir.path().join("tollgate.db-wal")).map_or(0, |log| log.len()) < 8_000_000 {
        assert!(process.try_wait().expect("a state").is_none(), "it runs");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    process.kill().expect("killed");
    process.wait().expect("gone");
    assert_eq!(
        sqlite_done(dir.path()),
        ("1".into(), RAN.rsplit_once(',').expect("several").0.into()),
        "the first is done, the second undone"
    );
    for _ in 0..2 {
        start_in("sqlite", dir.path(), version(None, &[FIRST, SECOND])).await.expect("a start").shut().await;
        assert_eq!(sqlite_done(dir.path()), ("1,12".into(), RAN.into()), "each once");
    }
    let half = "SELECT count(*) FROM sqlite_master WHERE name = 'half'";
    assert_eq!(open(dir.path()).query_row(half, [], |r| r.get::<_, i64>(0)).expect("a number"), 0);
}

#[tokio::test]
async fn a_file_of_an_unreleased_build_is_left_as_it_is() {
    // Tables without numbers, and tables whose first migration had other words.
    let unnumbered = "CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (24)";
    let other = "UPDATE migration SET fingerprint = '0123456789abcdef'";
    for (name, sql, made) in [
        ("tollgate.db", unnumbered, false),
        ("tollgate.db", other, true),
        ("kept.db", "CREATE TABLE response (id TEXT)", false),
        ("kept.db", other, true),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        if made {
            start_in("sqlite", dir.path(), options()).await.expect("a start").shut().await;
        }
        let path = dir.path().join(name);
        let file = rusqlite::Connection::open(&path).expect("the file");
        file.execute_batch("PRAGMA journal_mode = WAL").expect("a log");
        file.execute_batch(sql).expect(sql);
        file.close().expect("closed");
        let before = std::fs::read(&path).expect("the file");
        let why = start_in("sqlite", dir.path(), options()).await.err().expect("refused").to_string();
        assert!(why.contains(&format!("{name} was made by an unreleased build")), "{why}");
        assert!(why.contains("start with an empty data folder"), "it says what to do: {why}");
        assert!(before == std::fs::read(&path).expect("the file"), "{name} was changed");
    }
}

/// Columns, constraints, indexes, triggers, views, types and functions beside the tables.
const POSTGRES_SHAPE: &str = "SELECT string_agg(line, E'\n' ORDER BY line) FROM (
  SELECT concat_ws(' ', 'column', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
    a.attgenerated, pg_get_expr(d.adbin, d.adrelid), c.relpersistence, c.reloptions) AS line
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'c') AND a.attnum > 0
  UNION ALL SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT concat_ws(' ', 'view', viewname, definition) FROM pg_views WHERE schemaname = 'public'
  UNION ALL SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE NOT tgisinternal
  UNION ALL SELECT CASE p.prokind WHEN 'a' THEN (SELECT concat_ws(' ', 'aggregate', aggfnoid, aggtransfn, aggtranstype) FROM pg_aggregate WHERE aggfnoid = p.oid)
    ELSE pg_get_functiondef(p.oid) END FROM pg_proc p WHERE pronamespace = 'public'::regnamespace) shape";
const POSTGRES_LATER: &str = "SELECT string_agg(x::text, ',' ORDER BY x) FROM later";
const POSTGRES_RAN: &str = "SELECT string_agg(concat_ws(' ', number, name), ',' ORDER BY number) FROM migration";

#[tokio::test(flavor = "multi_thread")]
async fn migrations_on_postgres() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    fresh_postgres(&server.database("fresh").await.expect("made"), &server.database("by_hand").await.expect("made"))
        .await;
    killed_postgres(&server.database("killed").await.expect("made")).await;
    unreleased_postgres(&server.database("unreleased").await.expect("made")).await;
}

async fn fresh_postgres(made: &str, by_hand: &str) {
    for (later, sql) in [(vec![], POSTGRES), (vec![FIRST], FIRST)] {
        start(made, version(None, &later)).await.expect("a start").shut().await;
        run_sql(by_hand, sql).await.expect("by hand");
        let (ours, theirs) = (ask(made, POSTGRES_SHAPE).await, ask(by_hand, POSTGRES_SHAPE).await);
        assert!(ours.lines().count() > 400, "{ours}");
        assert!(ours == theirs, "{ours}\n\nand by hand\n\n{theirs}");
    }
}

/// The connection ends in the midst of the second one, as when the process is killed: neither has
/// run. Then two replicas start at once.
async fn killed_postgres(url: &str) {
    start(url, options()).await.expect("a start").shut().await;
    let second = format!("LOCK TABLE account IN ACCESS EXCLUSIVE MODE;\n{SECOND}");
    let (mut reader, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connected");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { connection.await.expect("the connection") });
    let reading = reader.transaction().await.expect("begun");
    reading.query("SELECT count(*) FROM account", &[]).await.expect("read");
    let mut started = tokio::task::JoinSet::new();
    let (address, list) = (url.to_owned(), second.clone());
    started
        .spawn(async move { start(&address, version(None, &[FIRST, &list])).await.err().map(|why| why.to_string()) });
    let kill = "SELECT count(pg_terminate_backend(pid))::text FROM pg_locks WHERE relation = 'account'::regclass AND NOT granted";
    let why = loop {
        if let Some(ended) = started.try_join_next() {
            break ended.expect("no panic").expect("it was killed");
        }
        ask(url, kill).await;
    };
    assert!(!why.contains("unreleased"), "{why}");
    assert_eq!(ask(url, "SELECT to_regclass('later')::text").await, "", "nothing is half done");
    reading.commit().await.expect("the reader ends");
    let both = || start(url, version(None, &[FIRST, &second]));
    let (one, two) = tokio::join!(both(), both());
    for store in [one, two] {
        store.expect("a start").shut().await;
    }
    assert_eq!(ask(url, POSTGRES_LATER).await, "1,12");
    assert_eq!(ask(url, POSTGRES_RAN).await, RAN);
}

async fn unreleased_postgres(url: &str) {
    run_sql(url, "CREATE TABLE open_hold (call_id bytea); CREATE TABLE schema_version (version integer)")
        .await
        .expect("made");
    let refused = async |what: &str| {
        let before = ask(url, POSTGRES_SHAPE).await;
        let why = start(url, options()).await.err().expect(what).to_string();
        assert!(why.contains("the database was made by an unreleased build"), "{why}");
        assert!(ask(url, POSTGRES_SHAPE).await == before, "{what}: it was changed");
    };
    refused("tables without numbers").await;
    run_sql(url, "DROP TABLE open_hold").await.expect("dropped");
    start(url, options()).await.expect("a start").shut().await;
    run_sql(url, "UPDATE migration SET fingerprint = '0123456789abcdef'").await.expect("other words");
    refused("another schema").await;
}
