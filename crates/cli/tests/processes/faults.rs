//! Rows of the table of faults (docs/faults.md) that need a process or a database to die: killed,
//! stopped, terminated. A row that names a case of this house must find it here, and the other way
//! round.

use crate::books;
use crate::house::{House, Plan, chat, streamed};
use crate::media::{
    killed_after_media, killed_while_an_upload_arrives, killed_while_an_upload_passes, killed_while_media_are_made,
    killed_while_media_pass, terminated_while_media_are_made, the_disk_fills_up_while_an_upload_arrives,
};
use crate::postgres::{Own, Server};
use crate::process::{HANG, signal};
use crate::seen::{Seen, read};
use crate::sessions::killed_with_sessions_open;
use crate::tasks;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        const CASES: &[&str] = &[$(stringify!($case)),+];
        mod each {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case().await;
            })+
        }
    };
}

cases!(
    the_key_store_is_away,
    the_database_stands_still,
    killed_before_the_request_was_sent,
    killed_while_the_provider_thinks,
    killed_in_mid_stream,
    killed_in_mid_audio,
    killed_while_an_upload_arrives,
    killed_while_an_upload_passes,
    killed_while_media_are_made,
    killed_while_media_pass,
    terminated_while_media_are_made,
    killed_after_media,
    killed_with_sessions_open,
    the_disk_fills_up_while_an_upload_arrives,
    killed_while_it_settles,
    terminated_with_streams_open,
    a_replica_starts_beside_another,
    killed_after_a_video_was_accepted,
    killed_while_a_video_is_accepted,
);

const FUNDED: i64 = 10_000_000_000;
/// A provider that is waited for, however long it takes.
const UNHURRIED: [&str; 2] = ["120s", "120s"];
/// A stream is marked at least this often.
const MARKS: Duration = Duration::from_secs(5);

#[test]
fn every_row_of_this_house_has_its_case() {
    let page = std::fs::read_to_string("../../docs/faults.md").expect("docs/faults.md");
    let rows: BTreeSet<&str> = page.split("`cli::").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert_eq!(rows, CASES.iter().copied().collect(), "rows and cases differ");
}

/// The only row there is, once it is there, with the balance that goes with it.
async fn only_row(house: &House) -> Value {
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(house).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = rows.into_values().next().expect("one");
    let balance = house.balance(0).await;
    assert_eq!(balance["available_nano_usd"].as_i64(), Some(FUNDED - books::amount(&row, "charge_nano_usd")), "{row}");
    row
}

async fn crashed(house: &mut House) -> Value {
    house.gates[0].kill();
    house.gates[0].start().await;
    let row = only_row(house).await;
    assert_eq!((&row["ending"], &row["reason"]), (&"expired".into(), &"crashed".into()), "{row}");
    row
}

async fn the_key_store_is_away() {
    let server = Own::start();
    let database = server.database("keys_away").await;
    let mut house =
        House::new(Plan { database: &database, patience: UNHURRIED, ledger_time: "2s", ..Plan::default() }).await;
    let long = house.ask(0, &streamed("plain", "[[sim:tokens=15 delay_ms=100]] x")).await;
    server.kill();
    let models = format!("{}/v1/models", house.gates[0].url());
    let began = Instant::now();
    // A key that was seen is known without the database for a while; whether a new one is good
    // cannot be known.
    while house.ask(0, &chat("plain", "hello")).await.status() != 503 {
        assert!(began.elapsed() < HANG, "it does not see that the database is gone");
    }
    let known = house.http.get(&models).bearer_auth(&house.key).send().await.expect("a reply");
    assert_eq!(known.status(), 200);
    let unknown = house.http.get(&models).bearer_auth("sk-never-seen").send().await.expect("a reply");
    assert_eq!((unknown.status().as_u16(), unknown.headers().contains_key("retry-after")), (503, true));
    assert!(matches!(read(long, None).await, Seen::Answered { .. }), "the client has its answer");
    server.restart().await;
    house.gates[0].ready().await;
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(&house).await;
    let charged: Vec<i64> =
        rows.values().map(|row| books::amount(row, "charge_nano_usd")).filter(|charge| *charge > 0).collect();
    // Three words in, fifteen out.
    assert_eq!(charged, [3 * 1_000 + 15 * 2_000], "late, but whole: {rows:?}");
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED - charged[0]));
}

async fn metric(house: &House, name: &str) -> u64 {
    labelled(house, name).await.unwrap_or_else(|| panic!("no {name}"))
}

/// A number from the metrics page, by its name with labels.
async fn labelled(house: &House, name: &str) -> Option<u64> {
    let url = format!("{}/metrics", house.gates[0].url());
    let page = house.http.get(url).send().await.expect("a reply").text().await.expect("text");
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

async fn the_database_stands_still() {
    let server = Own::start();
    let database = server.database("still").await;
    let mut house = House::new(Plan { database: &database, ledger_time: "2s", ..Plan::default() }).await;
    assert_eq!(house.ask(0, &chat("plain", "[[sim:error500]]")).await.status(), 502, "the key is known now");
    server.pause();
    // One that has a key which was seen, and one whose key would have to be looked up.
    for key in [house.key.as_str(), "sk-never-seen"] {
        let began = Instant::now();
        let reply = house.post_as(key, 0, &chat("plain", "hello")).send().await.expect("a reply");
        assert_eq!(reply.status(), 503, "{key}");
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(1_900), "{key}: it took {took:?}");
    }
    assert_eq!(house.received_count().await, 1, "nothing is sent without a hold");
    // It is seen: nobody is sent here, and whoever watches learns how long the oldest operation
    // waits.
    let ready = format!("{}/readyz", house.gates[0].url());
    assert_eq!(house.http.get(&ready).send().await.expect("a reply").status(), 503, "not ready");
    assert_eq!(metric(&house, "tollgate_ledger_down").await, 1, "the alarm");
    assert!(metric(&house, "tollgate_settle_lag_ms").await >= 1_900, "the one in flight counts");
    let began = Instant::now();
    for _ in 0..50 {
        assert_eq!(house.ask(0, &chat("plain", "at once")).await.status(), 503);
    }
    // Fifty that waited again would take a hundred seconds.
    assert!(began.elapsed() < Duration::from_secs(90), "refused without waiting again: {:?}", began.elapsed());
    server.go_on();
    house.gates[0].ready().await;
    let began = Instant::now();
    while house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await.status() != 200 {
        assert!(began.elapsed() < HANG, "calls do not work again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    house.quiet().await;
    house.verified().await;
    let charges: Vec<i64> =
        books::usage(&house).await.values().map(|row| books::amount(row, "charge_nano_usd")).collect();
    assert_eq!(charges.iter().filter(|charge| **charge > 0).count(), 1, "only what was answered is paid: {charges:?}");
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED - charges.iter().sum::<i64>()));
}

async fn killed_before_the_request_was_sent() {
    // A provider that takes the connection and never speaks TLS: the call has its hold and cannot
    // send.
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = mute.local_addr().expect("an address").port();
    let provider = format!("\n[provider.mute]\nkind = \"openai\"\nbase_url = \"https://127.0.0.1:{port}/v1\"\n");
    let mut house = House::new(Plan { limits: &provider, ..Plan::default() }).await;
    let catalog =
        house.gates[0].config.parent().and_then(|own| own.parent()).expect("a folder").join("catalog/mute.toml");
    let model = "[model.\"mute\"]\nmax_output_tokens = 100\nsupported_endpoint_types = [\"openai\"]\n[model.\"mute\".price]\n\
                 input = 1_000_000\noutput = 2_000_000\n[[model.\"mute\".route]]\nprovider = \"mute\"\nupstream_model = \"x\"\n";
    std::fs::write(catalog, model).expect("written");
    let url = format!("{}/v1/models/mute", house.gates[0].url());
    while house.http.get(&url).bearer_auth(&house.key).send().await.expect("a reply").status() != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ask = |house: &House| house.post(0, &chat("mute", "hello")).header("idempotency-key", "once");
    let call = JoinSet::from_iter([ask(&house).send()]);
    let (held, _) = mute.accept().await.expect("it tries to connect");
    while house.balance(0).await["held_nano_usd"] == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&house).send().await.expect("a reply").status(), 409, "the first is still running");
    let row = crashed(&mut house).await;
    assert_eq!(books::amount(&row, "charge_nano_usd"), 0);
    assert!(call.join_all().await.remove(0).is_err(), "the client was cut off");
    drop(held);
    // It is closed, so its key is free: the same request runs anew, as far as this provider lets
    // it.
    let _held = tokio::select! {
        reply = ask(&house).send() => panic!("no new run: {reply:?}"),
        tried = mute.accept() => tried.expect("it tries to connect once more"),
    };
    house.quiet().await;
    house.verified().await;
    assert_eq!(books::usage(&house).await.len(), 2, "a row for each run");
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED));
}

async fn killed_while_the_provider_thinks() {
    let mut house = House::new(Plan { patience: UNHURRIED, ..Plan::default() }).await;
    let call = JoinSet::from_iter([house.post(0, &chat("plain", "[[sim:think_ms=100000]] x")).send()]);
    while house.received_count().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let row = crashed(&mut house).await;
    assert_eq!(books::amount(&row, "charge_nano_usd"), 0, "no evidence of output, no charge");
    assert!(call.join_all().await.remove(0).is_err(), "the client was cut off");
}

async fn killed_in_mid_stream() {
    let mut house = House::new(Plan { patience: UNHURRIED, ..Plan::default() }).await;
    // A word every 100 ms for longer than marks are apart, so that a mark must have been made of
    // words and not only of the beginning.
    let mut reply = house.ask(0, &streamed("plain", "[[sim:tokens=200 delay_ms=100]] x")).await;
    let mut words: Vec<Instant> = Vec::new();
    // Delivered longer ago than the time between two marks, with some seconds for a machine that
    // stumbles.
    let old = |words: &[Instant], now: Instant| {
        words.iter().filter(|at| now.duration_since(**at) > MARKS + Duration::from_secs(3)).count()
    };
    while old(&words, Instant::now()) < 5 {
        let chunk = reply.chunk().await.expect("a chunk").expect("bytes");
        let new = String::from_utf8_lossy(&chunk).matches("\"content\":\"").count();
        words.extend(std::iter::repeat_n(Instant::now(), new));
    }
    let killed = Instant::now();
    let row = crashed(&mut house).await;
    let charge = books::amount(&row, "charge_nano_usd");
    // One word in, and each of the old ones.
    let least = 1_000 + 2_000 * i64::try_from(old(&words, killed)).expect("few");
    assert!(
        (least..=books::amount(&row, "hold_nano_usd")).contains(&charge),
        "the last mark is charged, {least} at least: {row}"
    );
    assert!(matches!(read(reply, None).await, Seen::Lost { .. }), "the client was cut off");
    let counted = labelled(&house, "tollgate_estimated_rows_total{provider=\"sim\"}").await;
    assert_eq!(counted, Some(1), "by our own count, and counted");
}

/// Half a reading is none: what broke off with us is free, as what breaks off at a provider is.
async fn killed_in_mid_audio() {
    let mut house = House::new(Plan { patience: UNHURRIED, ..Plan::default() }).await;
    let catalog =
        house.gates[0].config.parent().and_then(|own| own.parent()).expect("a folder").join("catalog/voice.toml");
    let model = "[model.\"voice\"]\ntype = \"tts\"\nbilling_unit = \"characters\"\nprice = { input = 15_000_000 }\n\
                 supported_endpoint_types = [\"audio-speech\"]\nroute = [{ provider = \"sim\", upstream_model = \"x\" }]\n\
                 speech = { formats = [\"mp3\"], max_characters = 100 }\n";
    std::fs::write(catalog, model).expect("written");
    let url = format!("{}/v1/models/voice", house.gates[0].url());
    while house.http.get(&url).bearer_auth(&house.key).send().await.expect("a reply").status() != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let body = json!({ "model": "voice", "input": "[[sim:hang_midway ms=4000]]", "voice": "v" });
    let url = format!("{}/v1/audio/speech", house.gates[0].url());
    let mut reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    reply.chunk().await.expect("a chunk").expect("bytes");
    let row = crashed(&mut house).await;
    assert_eq!(books::amount(&row, "charge_nano_usd"), 0);
    assert!(reply.bytes().await.is_err(), "the client was cut off");
}

async fn killed_while_it_settles() {
    let mut house = House::new(Plan::default()).await;
    for round in 1..=8 {
        let reply = house.ask(0, &chat("plain", "[[sim:tokens=5]] x")).await;
        assert_eq!(reply.status(), 200);
        // The answer is here, the commit may be or not.
        house.gates[0].kill();
        house.gates[0].start().await;
        house.verified().await;
        let rows = books::usage(&house).await;
        assert_eq!(rows.len(), round, "one row each");
        assert!(rows.values().all(|row| books::amount(row, "charge_nano_usd") == 12_000), "each paid once: {rows:?}");
    }
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED - 8 * 12_000));
}

async fn terminated_with_streams_open() {
    const STREAMS: u32 = 30;
    let plan = Plan { limits: "drain_time = \"500ms\"", patience: UNHURRIED, ..Plan::default() };
    let mut house = House::new(plan).await;
    let (mut open, speaking) = (JoinSet::new(), Arc::new(Semaphore::new(0)));
    for number in 0..STREAMS {
        let request = house.post(0, &streamed("plain", &format!("[[sim:tokens=900 delay_ms=60]] tag{number}")));
        let speaking = speaking.clone();
        open.spawn(async move {
            let mut reply = request.send().await.expect("a reply");
            let mut said = String::new();
            while !said.contains("\"content\":\"") {
                said += &String::from_utf8_lossy(&reply.chunk().await.expect("a piece").expect("words"));
            }
            speaking.add_permits(1);
            read(reply, None).await
        });
    }
    let _all = speaking.acquire_many(STREAMS).await.expect("each says something");
    let process = house.gates[0].process.as_mut().expect("running");
    process.terminate();
    assert_eq!(process.wait().await.code(), Some(0), "{}", process.last_words());
    for seen in open.join_all().await {
        assert!(matches!(seen, Seen::Failed { status: 200, .. }), "a proper last event: {seen:?}");
    }
    // Nothing is left for the next start: the rows were final before the exit.
    house.verified().await;
    let rows = books::usage(&house).await;
    assert_eq!(rows.len(), STREAMS as usize);
    assert!(
        rows.values().all(|row| row["reason"] == "server_draining" && books::amount(row, "charge_nano_usd") > 0),
        "{rows:?}"
    );
    house.gates[0].start().await;
    let charged: i64 = rows.values().map(|row| books::amount(row, "charge_nano_usd")).sum();
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED - charged));
}

async fn a_replica_starts_beside_another() {
    let server = Server::find();
    let database = server.database("beside").await;
    let mut house = House::new(Plan { database: &database, gates: 2, ..Plan::default() }).await;
    house.gates[1].kill();
    let mut calls = 0;
    for _ in 0..3 {
        house.gates[1].spawn();
        let mut beside = 0;
        while beside < 20 || !house.gates[1].is_ready().await {
            let reply = house.ask(0, &chat("plain", "[[sim:tokens=1]] x")).await;
            assert_eq!(reply.status(), 200, "the one that serves goes on");
            let process = house.gates[1].process.as_mut().expect("started");
            assert!(process.ended().is_none(), "{}", process.last_words());
            beside += 1;
        }
        calls += beside;
        house.gates[1].kill();
    }
    house.gates[1].start().await;
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(&house).await;
    assert_eq!(rows.len(), calls);
    let charged: i64 = rows.values().map(|row| books::amount(row, "charge_nano_usd")).sum();
    assert_eq!(house.balance(1).await["available_nano_usd"].as_i64(), Some(FUNDED - charged));
}

async fn video_house() -> House {
    // A provider that is asked to make one is waited for.
    let top = tasks::TASKS.replace("first_byte_time = \"2s\"", "first_byte_time = \"120s\"");
    House::new(Plan { top: &top, catalog: tasks::CATALOG, ..Plan::default() }).await
}

fn video(house: &House, prompt: &str) -> reqwest::RequestBuilder {
    let body = json!({ "model": "kling-v3", "prompt": prompt });
    house.http.post(format!("{}/v1/videos", house.gates[0].url())).bearer_auth(&house.key).json(&body)
}

/// The one task of the account when it has ended; the provider has one too.
async fn only_task(house: &House) -> Value {
    let began = Instant::now();
    loop {
        let url = format!("{}/v1/videos", house.gates[0].url());
        let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
        let page: Value = reply.json().await.expect("JSON");
        let task = page["data"][0].clone();
        if task["status"] == "completed" || task["status"] == "failed" {
            assert_eq!(page["data"].as_array().map(Vec::len), Some(1), "{page}");
            let url = house.sim_url.replace("/v1", "/_sim/videos");
            let counts: Value = house.http.get(url).send().await.expect("a reply").json().await.expect("JSON");
            assert_eq!(counts["tasks"], 1, "created once");
            return task;
        }
        assert!(began.elapsed() < HANG, "it does not end: {page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn killed_after_a_video_was_accepted() {
    let mut house = video_house().await;
    assert_eq!(video(&house, "[[sim:ok queue=3 run=3]]").send().await.expect("a reply").status(), 200);
    house.gates[0].kill();
    house.gates[0].start().await;
    assert_eq!(only_task(&house).await["status"], "completed");
    assert_eq!(books::amount(&only_row(&house).await, "charge_nano_usd"), 417_000_000);
}

async fn killed_while_a_video_is_accepted() {
    let mut house = video_house().await;
    let call = JoinSet::from_iter([video(&house, "[[sim:slow ms=100000]]").send()]);
    // The provider has it, the gateway does not know under which name.
    let url = house.sim_url.replace("/v1", "/_sim/videos");
    loop {
        let counts: Value = house.http.get(&url).send().await.expect("a reply").json().await.expect("JSON");
        if counts["tasks"] == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.gates[0].kill();
    assert!(call.join_all().await.remove(0).is_err(), "cut off");
    // While the provider says nothing, nobody knows.
    signal("STOP", &[house.sim.id()]);
    house.gates[0].start().await;
    let began = Instant::now();
    while labelled(&house, "tollgate_tasks_open{state=\"unknown\"}").await != Some(1) {
        assert!(began.elapsed() < HANG, "it is not said to be unknown");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(house.balance(0).await["held_nano_usd"], 417_000_000, "the hold stays open");
    assert!(books::usage(&house).await.is_empty(), "it has no row while it is open");
    let url = format!("{}/v1/videos", house.gates[0].url());
    let page: Value =
        house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply").json().await.expect("JSON");
    let seen = &page["data"][0];
    assert_eq!((&seen["status"], &seen["error"]), (&"in_progress".into(), &Value::Null), "{page}");
    signal("CONT", &[house.sim.id()]);
    assert_eq!(only_task(&house).await["status"], "completed", "found again by our id");
    assert_eq!(books::amount(&only_row(&house).await, "charge_nano_usd"), 417_000_000);
}
