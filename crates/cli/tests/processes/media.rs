//! Pictures, recordings, vectors, speech and songs, and a gateway that is killed at every step of
//! them; and a disk that fills up while an upload arrives. Cases of the table of faults
//! (docs/faults.md), called from `faults.rs`.

use crate::books;
use crate::hoards::mounted;
use crate::house::{House, Plan};
use crate::process::HANG;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const FUNDED: i64 = 10_000_000_000;

/// One model for each kind, all at prices that come out even.
pub const CATALOG: &str = include_str!("../../../../tests/catalog/media.toml");

/// The disk keeps little free, so that a small one will do. Songs have a maker of their own.
const MAKER: &str = "\n[storage]\ndisk_reserve = \"48MiB\"\n[provider.minimax]\nkind = \"minimax\"\n\
    base_url = \"{sim}/video/minimax\"\nsecret_env = \"SIM_SECRET\"\nfirst_byte_time = \"120s\"\nidle_time = \"120s\"\n";

/// What is asked for of each kind: the path, and the body, of which `marker` says how it goes.
fn calls(marker: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("/v1/images/generations", json!({ "model": "pictures", "prompt": marker })),
        ("/v1/audio/transcriptions", json!({ "model": "ears", "prompt": marker })),
        ("/v1/embeddings", json!({ "model": "vectors", "input": marker })),
        ("/v1/audio/speech", json!({ "model": "voice", "input": marker, "voice": "v" })),
        ("/v1/music/generations", json!({ "model": "songs", "prompt": marker, "instrumental": true })),
    ]
}

async fn house() -> House {
    house_with("").await
}

/// With these limits.
async fn house_with(limits: &str) -> House {
    let limits = format!("{limits}{MAKER}");
    House::new(Plan { catalog: CATALOG, limits: &limits, patience: ["120s", "120s"], ..Plan::default() }).await
}

/// A recording of so many seconds: 8 bits, 8 kHz.
pub fn wav(seconds: u32) -> Vec<u8> {
    let data = seconds * 8_000;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend([8_000u32.to_le_bytes(), 8_000u32.to_le_bytes()].concat());
    file.extend(b"\x01\0\x08\0data");
    file.extend(data.to_le_bytes());
    file.resize(file.len() + data as usize, 0x80);
    file
}

/// A form with these fields and a recording.
pub fn form(fields: &Value, recording: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields.as_object().expect("an object") {
        let value = value.as_str().expect("text");
        out.extend(format!("--a-b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").as_bytes());
    }
    out.extend(b"--a-b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n");
    out.extend(recording);
    out.extend(b"\r\n--a-b--\r\n");
    out
}

pub const FORM: &str = "multipart/form-data; boundary=a-b";

/// The request; a recording is long enough to lie on disk.
fn request(house: &House, path: &str, body: &Value) -> RequestBuilder {
    let request = house.http.post(format!("{}{path}", house.gates[0].url())).bearer_auth(&house.key);
    match path {
        "/v1/audio/transcriptions" => request.header("content-type", FORM).body(form(body, &wav(400))),
        _ => request.json(body),
    }
}

async fn rows(house: &House) -> Vec<Value> {
    house.quiet().await;
    house.verified().await;
    books::usage(house).await.into_values().collect()
}

/// Files of the data folder by name.
fn names(house: &House) -> BTreeSet<String> {
    let data = house.gates[0].config.parent().expect("a folder").join("data");
    let all = std::fs::read_dir(data).expect("a folder");
    all.map(|one| one.expect("read").file_name().to_string_lossy().into_owned()).collect()
}

/// Files that have no name any more and that the gateway has open.
fn nameless(house: &House) -> usize {
    let id = house.gates[0].process.as_ref().expect("running").id();
    let open = std::fs::read_dir(format!("/proc/{id}/fd")).expect("a process of ours");
    let leads = open.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
    leads.filter(|to| to.to_string_lossy().ends_with("(deleted)")).count()
}

async fn killed(house: &mut House) {
    house.gates[0].kill();
    house.gates[0].start().await;
}

/// Nothing that was cut off by a kill is paid, and nothing of it stays.
async fn all_free(house: &House, count: usize) {
    let rows = rows(house).await;
    assert_eq!(rows.len(), count, "{rows:?}");
    for row in &rows {
        assert_eq!((&row["ending"], &row["reason"]), (&"expired".into(), &"crashed".into()), "{row}");
        assert_eq!(books::amount(row, "charge_nano_usd"), 0, "{row}");
    }
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED));
}

pub async fn killed_while_an_upload_arrives() {
    let mut house = house().await;
    let before = names(&house);
    let body = form(&json!({ "model": "ears" }), &wav(1_000));
    let mut client = TcpStream::connect(("127.0.0.1", house.gates[0].port)).await.expect("connected");
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: {FORM}\r\ncontent-length: {}\r\n\r\n",
        house.key,
        body.len()
    );
    client.write_all(head.as_bytes()).await.expect("sent");
    client.write_all(&body[..body.len() / 2]).await.expect("sent");
    // It lies on disk, in a file without a name.
    while nameless(&house) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(names(&house), before, "nobody can open it by a name");
    killed(&mut house).await;
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "the client was cut off");
    assert_eq!(rows(&house).await, Vec::<Value>::new());
    assert_eq!((names(&house), nameless(&house)), (before, 0), "nothing of it is left");
    assert_eq!(house.received_count().await, 0);
}

/// The provider has a part of a request, which is none, and nobody has begun to pay.
pub async fn killed_while_an_upload_passes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let limits = format!("{MAKER}[provider.raw]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n");
    let catalog = CATALOG.replace(
        "provider = \"sim\", upstream_model = \"gpt-4o-sim\"",
        "provider = \"raw\", upstream_model = \"gpt-4o\"",
    );
    let plan = Plan { catalog: &catalog, limits: &limits, patience: ["120s", "120s"], ..Plan::default() };
    let mut house = House::new(plan).await;
    let before = names(&house);
    let boundary = "0123456789abcdef0123456789abcdef";
    let part = |name: &str| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    let start = format!("{}ears\r\n{}", part("model"), part("file\"; filename=\"a.wav"));
    let recording = wav(1_000);
    let end = format!("\r\n--{boundary}--\r\n");
    let mut client = TcpStream::connect(("127.0.0.1", house.gates[0].port)).await.expect("connected");
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: multipart/form-data; boundary={boundary}\r\ncontent-length: {}\r\n\r\n{start}",
        house.key,
        start.len() + recording.len() + end.len()
    );
    // It is read all the time: whoever writes waits for that once the system's buffers are full.
    let came = Arc::new(AtomicUsize::new(0));
    let counted = came.clone();
    let mut provider = JoinSet::new();
    provider.spawn(async move {
        let (mut provider, _) = listener.accept().await.expect("the gateway");
        let mut piece = vec![0; 64 << 10];
        // What was under way when the gateway died may still come; then it breaks off.
        while let Ok(count @ 1..) = provider.read(&mut piece).await {
            counted.fetch_add(count, Ordering::Relaxed);
        }
    });
    client.write_all(head.as_bytes()).await.expect("sent");
    client.write_all(&recording).await.expect("sent");
    while came.load(Ordering::Relaxed) < recording.len() / 2 {
        assert!(provider.try_join_next().is_none(), "the gateway broke off");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((nameless(&house), names(&house)), (0, before.clone()), "nothing of it is put down");
    killed(&mut house).await;
    provider.join_all().await;
    let came = came.load(Ordering::Relaxed);
    assert!(came < recording.len(), "the end was withheld");
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "the client was cut off");
    assert_eq!(rows(&house).await, Vec::<Value>::new());
    assert_eq!((names(&house), nameless(&house)), (before, 0));
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED));
}

pub async fn killed_while_media_are_made() {
    let mut house = house().await;
    let before = names(&house);
    for (at, (path, body)) in calls("[[sim:hang]]").into_iter().enumerate() {
        let call = JoinSet::from_iter([request(&house, path, &body).send()]);
        while house.received_count().await == at as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(nameless(&house) > 0, path == "/v1/audio/transcriptions", "{path}: what is uploaded lies on disk");
        killed(&mut house).await;
        assert!(call.join_all().await.remove(0).is_err(), "{path}: the client was cut off");
        assert_eq!((names(&house), nameless(&house)), (before.clone(), 0), "{path}");
        all_free(&house, at + 1).await;
    }
    assert_eq!(house.received_count().await, 5, "each was sent once");
    // A picture or a song may have been made, so their keys do not begin them again.
    for (path, body) in begun_once() {
        let sent = house.received_count().await;
        let call = JoinSet::from_iter([keyed(&house, path, &body).send()]);
        while house.received_count().await == sent {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        killed(&mut house).await;
        assert!(call.join_all().await.remove(0).is_err(), "{path}: the client was cut off");
        unknown(keyed(&house, path, &body).send().await.expect("a reply"), path).await;
        assert_eq!(house.received_count().await, sent + 1, "{path}: sent once");
    }
    all_free(&house, 7).await;
}

/// SIGTERM, and the time for open calls is over: the client is told what its key finds afterwards.
pub async fn terminated_while_media_are_made() {
    let mut house = house_with("drain_time = \"200ms\"\n").await;
    for (at, (path, body)) in begun_once().enumerate() {
        let call = JoinSet::from_iter([keyed(&house, path, &body).send()]);
        while house.received_count().await == at as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let process = house.gates[0].process.as_mut().expect("running");
        process.terminate();
        let status = process.wait().await;
        assert_eq!(status.code(), Some(0), "{}", process.last_words());
        unknown(call.join_all().await.remove(0).expect("a reply"), path).await;
        house.gates[0].start().await;
        unknown(keyed(&house, path, &body).send().await.expect("a reply"), path).await;
        assert_eq!(house.received_count().await, at as u64 + 1, "{path}: sent once");
    }
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["reason"] == "charge_state_unknown"), "{rows:?}");
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED));
}

/// Pictures and songs that are never answered.
fn begun_once() -> impl Iterator<Item = (&'static str, Value)> {
    calls("[[sim:hang]]").into_iter().filter(|(path, _)| path.ends_with("/generations"))
}

fn keyed(house: &House, path: &str, body: &Value) -> RequestBuilder {
    request(house, path, body).header("idempotency-key", path)
}

/// Nobody knows what became of it, and nobody shall ask again by himself.
async fn unknown(reply: Response, path: &str) {
    let advice = reply.headers().get("x-should-retry").map(|value| value.as_bytes().to_vec());
    assert_eq!((reply.status().as_u16(), advice.as_deref()), (504, Some(&b"false"[..])), "{path}");
    let error: Value = reply.json().await.expect("JSON");
    assert_eq!(error["error"]["code"], "charge_state_unknown", "{path}: {error}");
}

/// Larger than what fits between two sockets, or silent in the middle: it cannot end by itself.
fn endless() -> Vec<(&'static str, Value)> {
    let texts: Vec<String> = (0..700).map(|at| format!("text {at}")).collect();
    let mut calls = calls("[[sim:hang_midway ms=60000]]");
    calls[0].1["prompt"] = json!("[[sim:kb=20000]]");
    calls[1].1["prompt"] = json!("[[sim:huge mib=30]]");
    calls[2].1 = json!({ "model": "vectors", "input": texts, "dimensions": 3_072 });
    calls
}

pub async fn killed_while_media_pass() {
    let mut house = house().await;
    for (at, (path, body)) in endless().into_iter().enumerate() {
        let mut reply = request(&house, path, &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path}");
        reply.chunk().await.expect("a piece").expect("bytes");
        killed(&mut house).await;
        assert!(reply.bytes().await.is_err(), "{path}: the client was cut off");
        assert_eq!(nameless(&house), 0, "{path}");
        all_free(&house, at + 1).await;
    }
}

pub async fn killed_after_media() {
    let mut house = house().await;
    let mut spent = 0;
    for (at, (path, body)) in calls("hello").into_iter().enumerate() {
        let reply: Response = request(&house, path, &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path}");
        // The answer is here, the commit may be or not.
        reply.bytes().await.expect("all of it");
        killed(&mut house).await;
        let rows = rows(&house).await;
        assert_eq!(rows.len(), at + 1, "{path}: {rows:?}");
        let charges: Vec<i64> = rows.iter().map(|row| books::amount(row, "charge_nano_usd")).collect();
        assert!(charges.iter().all(|charge| *charge > 0), "{path}: each is paid once: {rows:?}");
        spent = charges.iter().sum();
        assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(FUNDED - spent), "{path}");
    }
    // A picture, 400 seconds, a token, five characters, a song.
    assert_eq!(spent, 40_000_000 + 400 * 6_000_000 + 1_000 + 5 * 15_000 + 30_000_000);
}

/// A small disk has room for the journal and for little more. Without the right to mount one there
/// is nothing to be seen (TOLLGATE_NO_MOUNT=1).
pub async fn the_disk_fills_up_while_an_upload_arrives() {
    let disk = tempfile::tempdir().expect("a folder");
    if !mounted(disk.path()) {
        return;
    }
    let top = format!("data_dir = \"{}\"\n", disk.path().join("data").display());
    let house = House::new(Plan { top: &top, catalog: CATALOG, limits: MAKER, ..Plan::default() }).await;
    let ask = |seconds: u32| {
        let body = form(&json!({ "model": "ears" }), &wav(seconds));
        let url = format!("{}/v1/audio/transcriptions", house.gates[0].url());
        house.http.post(url).bearer_auth(&house.key).header("content-type", FORM).body(body).send()
    };
    // Sixty megabytes: more than there is beside what the ledger needs.
    let reply = tokio::time::timeout(HANG, ask(7_500)).await.expect("in time").expect("a reply");
    assert_eq!(reply.status(), 503);
    let error: Value = reply.json().await.expect("JSON");
    let said = (&error["error"]["code"], &error["error"]["param"]);
    assert_eq!(said, (&json!("storage_full"), &json!("file")));
    assert_eq!((rows(&house).await.len(), nameless(&house)), (0, 0), "free, and nothing of it is left");
    assert_eq!(ask(100).await.expect("a reply").status(), 200, "what fits is served");
    let rows = rows(&house).await;
    assert_eq!(books::amount(&rows[0], "charge_nano_usd"), 100 * 6_000_000, "{rows:?}");
    drop(house);
    let lazily = std::process::Command::new("umount").arg("-l").arg(disk.path()).status();
    assert!(lazily.is_ok_and(|status| status.success()), "the disk is still there");
}
