//! Storms: the same request from everywhere at once, refunds in crowds, clients without manners, a
//! disk that fills up under load, a stop with hundreds of streams. One line each; `make chaos` runs
//! them, and those of the neighbouring files, for minutes.

mod strangers;
mod uploads;

use crate::books;
use crate::experiment::{Experiment, long};
use crate::house::{House, Plan, chat, streamed};
use crate::kinds::{self, Kind};
use crate::load::Load;
use crate::postgres::Server;
use crate::process::HANG;
use crate::seen::{Record, Seen, count, read};
use crate::tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tollgate_store::admin::{self, AdminCommand, Refund};

const COPIES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_storm_sqlite() {
    idempotency_storm("idempotency storm, SQLite", Plan { usd: "100", ..Plan::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_storm_postgres() {
    let server = Server::find();
    let database = server.database("idem_storm").await;
    let plan = Plan { usd: "100", database: &database, gates: 2, ..Plan::default() };
    idempotency_storm("idempotency storm, two replicas on PostgreSQL", plan).await;
}

/// Every key 20 times at once, through every door: one call each, one reply for all.
async fn idempotency_storm(name: &'static str, plan: Plan<'_>) {
    let mut experiment = Experiment::new(name);
    let house = Arc::new(House::new(plan).await);
    let keys = if long() { 1_000 } else { 100 };
    let doors = Arc::new(Semaphore::new(200));
    let mut storms = JoinSet::new();
    for key in 0..keys {
        let (house, doors) = (house.clone(), doors.clone());
        storms.spawn(async move {
            let copies: JoinSet<_> =
                (0..COPIES).map(|copy| one_copy(house.clone(), doors.clone(), key, copy)).collect();
            let all = copies.join_all().await;
            let first = all.iter().filter(|(_, _, replayed)| !replayed).count();
            assert_eq!(first, 1, "key {key}: one call, and {} replays", all.len() - first);
            assert!(all.iter().all(|one| one.0 == all[0].0 && one.1 == all[0].1), "key {key}: one reply for all");
        });
    }
    while let Some(done) = storms.join_next().await {
        done.expect("every key is one call");
    }
    assert_eq!(house.received_count().await, keys as u64, "so many calls reached the provider");
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(&house).await;
    assert_eq!(rows.len(), keys);
    let charged: i64 = rows.values().map(|row| books::amount(row, "charge_nano_usd")).sum();
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(books::nano("100") - charged));
    experiment.count("keys", keys);
    experiment.count("requests", keys * COPIES);
    experiment.count("calls upstream", keys);
    experiment.end();
}

/// Repeats one request until it has its answer: call, body, and whether it was a replay.
async fn one_copy(house: Arc<House>, doors: Arc<Semaphore>, key: usize, copy: usize) -> (String, String, bool) {
    let gate = copy % house.gates.len();
    for _ in 0..4_800 {
        let permit = doors.acquire().await.expect("open");
        let request = house.post(gate, &chat("plain", &format!("[[sim:tokens=2 think_ms=20]] tag{key}")));
        let reply = request.header("idempotency-key", format!("storm-{key}")).send().await.expect("a reply");
        let header = |name: &str| reply.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let (call, replayed) = (header("x-request-id").unwrap_or_default(), header("idempotency-replayed").is_some());
        let (status, waits) = (reply.status().as_u16(), header("retry-after").is_some());
        let body = reply.text().await.expect("a body");
        drop(permit);
        match status {
            200 => return (call, body, replayed),
            409 => assert!(waits && body.contains("idempotency_in_progress") && body.contains("call_"), "{body}"),
            other => panic!("{other}: {body}"),
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("key {key} never had its answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_storm_sqlite() {
    refund_storm("refund storm, SQLite", Plan::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_storm_postgres() {
    let server = Server::find();
    let database = server.database("refunds").await;
    refund_storm("refund storm, two replicas on PostgreSQL", Plan { database: &database, gates: 2, ..Plan::default() })
        .await;
}

async fn refund_storm(name: &'static str, plan: Plan<'_>) {
    let mut experiment = Experiment::new(name);
    let house = House::new(plan).await;
    let calls = 30;
    for _ in 0..calls {
        assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=3]] x")).await.status(), 200);
    }
    house.quiet().await;
    let sockets: Vec<_> =
        house.gates.iter().map(|gate| gate.config.parent().expect("a folder").join("data/admin.sock")).collect();
    let mut storm = JoinSet::new();
    for call in books::usage(&house).await.into_keys() {
        for copy in 0..COPIES {
            let (socket, call) = (sockets[copy % sockets.len()].clone(), call.parse().expect("a call id"));
            storm.spawn(async move {
                let (reason, actor) = (format!("copy {copy}"), "storm".to_owned());
                let refund = Refund { call, amount: None, reason, actor };
                let done = admin::call(&socket, &AdminCommand::Refund { refund, request: None })
                    .await
                    .expect("the same answer for all");
                done["applied"] == true
            });
        }
    }
    let applied = storm.join_all().await.into_iter().filter(|applied| *applied).count();
    assert_eq!(applied, calls, "each once");
    house.verified().await;
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(books::nano("10")), "all is back");
    assert!(books::usage(&house).await.values().all(|row| row["refunded_nano_usd"] == row["charge_nano_usd"]));
    experiment.count("calls", calls);
    experiment.count("refunds asked for", calls * COPIES);
    experiment.count("refunds made", applied);
    experiment.end();
}

/// Leaves after the first piece, the second, … and the last.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_at_every_chunk() {
    let mut experiment = Experiment::new("clients that leave at every chunk");
    let house = House::new(Plan { usd: "100", ..Plan::default() }).await;
    let mut records = Vec::new();
    let mut number = 0;
    while experiment.more() {
        let mut leavers = JoinSet::new();
        for leave_after in 1..=14 {
            for model in ["plain", "billed-to-the-end"] {
                number += 1;
                let tag = format!("tag{number}");
                let request = house.post(0, &streamed(model, &format!("[[sim:tokens=12 delay_ms=15]] {tag}")));
                leavers.spawn(async move {
                    let seen = read(request.send().await.expect("a reply"), Some(leave_after)).await;
                    let kind = if model == "plain" { Kind::Leaver } else { Kind::LeaverBilledOn };
                    Record { tag, kind, seen }
                });
            }
        }
        records.extend(leavers.join_all().await);
    }
    books::check(&house, &records, books::nano("100")).await;
    let rows = books::usage(&house).await;
    assert_eq!(rows.len(), records.len(), "each has its row");
    let free = rows.values().filter(|row| books::amount(row, "charge_nano_usd") == 0).count();
    // The first piece of a stream may only name the speaker. Who got a word pays, as much as
    // `books::check` says.
    let wordless = records.iter().filter(|record| matches!(record.seen, Seen::Left { words: 0, .. })).count();
    assert!(free <= wordless, "{free} were free, {wordless} left without a word");
    let left = records.iter().filter(|record| matches!(record.seen, Seen::Left { .. })).count();
    assert!(left > wordless, "{left} left, {wordless} of them without a word: nothing was tried");
    experiment.count("streams", records.len());
    experiment.count("left", left);
    experiment.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read() {
    let mut experiment = Experiment::new("clients that never read");
    // Its pieces are long, and nothing limits how many of them there are.
    let catalog = "[model.\"endless\"]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    let (limits, patience) = ("write_time = \"1s\"", ["30s", "30s"]);
    let house = House::new(Plan { limits, patience, catalog, usd: "1000", ..Plan::default() }).await;
    let clients = if long() { 100 } else { 20 };
    let mut sockets = Vec::new();
    for _ in 0..clients {
        let body = streamed("endless", "[[sim:tokens=900 size=20000]] x").to_string();
        let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", house.gates[0].port)).await.expect("connected");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            house.key,
            body.len(),
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        let mut first = [0; 12];
        socket.read_exact(&mut first).await.expect("a status");
        assert_eq!(&first, b"HTTP/1.1 200");
        sockets.push(socket);
    }
    let began = Instant::now();
    while books::usage(&house).await.len() < clients {
        assert!(began.elapsed() < HANG, "some are still waited for");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(&house).await;
    assert!(
        rows.values().all(|row| row["ending"] == "client_left" && books::amount(row, "charge_nano_usd") > 0),
        "{rows:?}"
    );
    experiment.count("clients let go", rows.len());
    experiment.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_with_500_open_streams() {
    const STREAMS: usize = 500;
    let mut experiment = Experiment::new("SIGTERM with open streams");
    let plan = Plan { usd: "1000", limits: "drain_time = \"1s\"", patience: ["30s", "30s"], ..Plan::default() };
    let mut house = House::new(plan).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let mut open = JoinSet::new();
    // As many at once as a busy machine holds in time: what is refused is no open stream.
    while open.len() < STREAMS {
        for _ in 0..50 {
            let number = open.len();
            let request = house.post(0, &streamed("plain", &format!("[[sim:tokens=900 delay_ms=2000]] tag{number}")));
            let begun = begun.clone();
            open.spawn(async move {
                let reply = request.send().await.expect("a reply");
                begun.fetch_add(1, Ordering::Relaxed);
                let seen = read(reply, None).await;
                Record { tag: format!("tag{number}"), kind: Kind::SlowStream, seen }
            });
        }
        while begun.load(Ordering::Relaxed) < open.len() {
            let ended = open.try_join_next().map(|record| record.expect("read").seen);
            assert!(ended.is_none(), "one has ended already: {ended:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let process = house.gates[0].process.as_mut().expect("running");
    process.terminate();
    assert_eq!(process.wait().await.code(), Some(0), "{}", process.last_words());
    let records = open.join_all().await;
    let proper = records.iter().filter(|record| matches!(record.seen, Seen::Failed { status: 200, .. })).count();
    assert_eq!(proper, STREAMS, "each ended with an error event");
    house.gates[0].start().await;
    books::check(&house, &records, books::nano("1000")).await;
    assert!(books::usage(&house).await.values().all(|row| row["ending"] != "expired"), "settled before the exit");
    experiment.count("streams", STREAMS);
    experiment.count("ended with an error event", proper);
    experiment.end();
}

/// A small disk, filled while calls run and emptied again, several times, once with a kill while it
/// is full.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says what cannot be tested here")]
async fn disk_full() {
    let disk = tempfile::tempdir().expect("a folder");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=96m", "tollgate-test"])
        .arg(disk.path())
        .output();
    if !mount.as_ref().is_ok_and(|done| done.status.success()) {
        let knows = std::env::var("TOLLGATE_NO_MOUNT").is_ok_and(|said| said == "1");
        assert!(knows, "a small disk cannot be mounted here; TOLLGATE_NO_MOUNT=1 goes without: {mount:?}");
        return;
    }
    let mut experiment = Experiment::new("disk full under load, SQLite");
    let top = format!("data_dir = \"{}\"\n{}", disk.path().join("data").display(), tasks::TASKS);
    let mut house = House::new(Plan { top: &top, ledger_time: "2s", ..kinds::plan() }).await;
    let load = Load::start(&house, 8);
    let mut seen = 0;
    while experiment.more() {
        for killed in [false, true, false] {
            seen = load.until(seen, |records| count(records, "answered") >= 10).await;
            let filler = disk.path().join("filler");
            let mut file = std::fs::File::create(&filler).expect("a file");
            for size in [1 << 16, 1 << 12, 1] {
                while std::io::Write::write_all(&mut file, &vec![0; size]).is_ok() {}
            }
            // An open file keeps its space, also without a name.
            drop(file);
            // Longer than a hold may take.
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            seen = load.until(seen, |records| count(records, "unavailable") >= 1).await;
            if killed {
                // What was delivered meanwhile is in the journal only, in the space that was taken
                // in advance.
                house.gates[0].kill();
            }
            std::fs::remove_file(&filler).expect("space");
            if killed {
                house.gates[0].start().await;
                experiment.count("killed while full", 1u64);
            }
            house.gates[0].ready().await;
            experiment.count("times full", 1u64);
        }
    }
    load.until(seen, |records| count(records, "answered") >= 10).await;
    let records = load.stop().await;
    let ends = books::check(&house, &records, books::nano(kinds::USD)).await;
    experiment.seen(&records, ends);
    house.gates[0].kill();
    drop(house);
    let lazily = std::process::Command::new("umount").arg("-l").arg(disk.path()).status();
    assert!(lazily.is_ok_and(|status| status.success()), "the disk is still there");
    experiment.end();
}
