//! Uploads that pass: to the provider while they arrive, with their end withheld until the call is
//! paid for.

use super::{CATALOG, SECOND, post, row_of, sent, wav};
use crate::house::{House, Plan, call_id, error_of};
use crate::watch::{HANG, until};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::Response;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tollgate_store::Ending;

const PATH: &str = "/v1/audio/transcriptions";
/// As long as the boundaries that libraries draw.
const BOUNDARY: &str = "0123456789abcdef0123456789abcdef";
const LONG: &str = "multipart/form-data; boundary=0123456789abcdef0123456789abcdef";
/// One whose form never passes.
const SHORT: &str = "multipart/form-data; boundary=0123";

const MODELS: &str = r#"
[model."raw-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { response_formats = ["json", "text", "verbose_json"], max_bytes = "25MiB", stream = true }
route = [{ provider = "raw", upstream_model = "whisper-raw" }]

[model."small-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { max_bytes = "2MiB" }
route = [{ provider = "raw", upstream_model = "whisper-raw" }]

[model."spare-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
route = [
  { provider = "raw", upstream_model = "whisper-raw", priority = 1 },
  { provider = "sim", upstream_model = "whisper-sim", priority = 2 },
]
"#;

/// What a provider does that is looked at byte by byte.
#[derive(Clone, Copy)]
pub enum Does {
    /// Listens to the end, and answers.
    Listen,
    /// Says this once so many bytes have come, and reads no more.
    Say(usize, &'static str),
    /// Closes the connection once so many bytes have come.
    Close(usize),
}

/// What came over each connection, and whether the other side has closed it.
type Seen = Arc<Mutex<Vec<(Vec<u8>, bool)>>>;

pub struct Raw {
    pub seen: Seen,
    /// It has said what it says, or has closed the connection.
    acted: Arc<AtomicBool>,
    port: u16,
}

impl Raw {
    pub async fn start(does: Does) -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (seen, acted) = (Seen::default(), Arc::new(AtomicBool::new(false)));
        let (all, done) = (seen.clone(), acted.clone());
        #[expect(clippy::disallowed_methods, reason = "a server of one test, which ends with it")]
        tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                let at = {
                    let mut all = all.lock().expect("no panic");
                    all.push((Vec::new(), false));
                    all.len() - 1
                };
                tokio::spawn(serve(socket, does, (all.clone(), at), done.clone()));
            }
        });
        Raw { seen, acted, port }
    }

    pub async fn house(&self, usd: &'static str) -> House {
        let config = format!("[provider.raw]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{}/v1\"\n", self.port);
        let catalog: &'static str = Box::leak(format!("{CATALOG}{MODELS}").into_boxed_str());
        House::with(Plan { catalog, config, usd, ..Plan::default() }).await
    }

    fn bytes(&self) -> usize {
        self.seen.lock().expect("no panic").iter().map(|(bytes, _)| bytes.len()).sum()
    }

    pub fn connections(&self) -> usize {
        self.seen.lock().expect("no panic").len()
    }

    /// Waits until so many bytes have come.
    pub async fn has(&self, least: usize) {
        until("that many bytes", async || self.bytes() >= least).await;
    }

    /// Waits until every connection was closed, and says that none of them had a whole request.
    pub async fn never_had_a_whole_request(&self) {
        until("the end", async || self.seen.lock().expect("no panic").iter().all(|(_, closed)| *closed)).await;
        for (bytes, _) in self.seen.lock().expect("no panic").iter() {
            let (body, length) = body_of(bytes).expect("a head");
            assert!(body.len() < length, "{} of {length} bytes", body.len());
        }
    }
}

/// The body so far, and how long it is announced to be.
fn body_of(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    Some((&bytes[head + 4..], length.trim().parse().expect("a number")))
}

async fn serve(mut socket: TcpStream, does: Does, (all, at): (Seen, usize), acted: Arc<AtomicBool>) {
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = socket.read(&mut piece).await.unwrap_or(0);
        let whole = {
            let mut all = all.lock().expect("no panic");
            all[at].0.extend_from_slice(&piece[..count]);
            all[at].1 = count == 0;
            body_of(&all[at].0).is_some_and(|(body, length)| body.len() == length)
        };
        let came = all.lock().expect("no panic")[at].0.len();
        let said = match does {
            _ if count == 0 => return,
            Does::Listen if whole => json!({ "text": "heard" }).to_string(),
            Does::Say(least, said) if came >= least => {
                let _ = socket.write_all(said.as_bytes()).await;
                acted.store(true, Ordering::Release);
                // Read on, as servers do, so that what was said is not lost.
                while socket.read(&mut piece).await.is_ok_and(|count| count > 0) {}
                all.lock().expect("no panic")[at].1 = true;
                return;
            }
            Does::Close(least) if came >= least => {
                drop(socket);
                all.lock().expect("no panic")[at].1 = true;
                acted.store(true, Ordering::Release);
                return;
            }
            _ => continue,
        };
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", said.len());
        let _ = socket.write_all([head.as_bytes(), said.as_bytes()].concat().as_slice()).await;
    }
}

/// A form with these fields in their order; the file stands where its name is `file`.
pub fn form_of(boundary: &str, fields: &[(&str, &str)], file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, text) in fields {
        let named = match *field {
            "file" => "file\"; filename=\"a.bin",
            other => other,
        };
        out.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{named}\"\r\n\r\n").as_bytes());
        out.extend(if *field == "file" { file } else { text.as_bytes() });
        out.extend(b"\r\n");
    }
    out.extend(format!("--{boundary}--\r\n").as_bytes());
    out
}

/// Asks for a transcript by a form that may pass.
pub async fn pass(house: &House, model: &str, file: &[u8]) -> Response {
    let body = form_of(BOUNDARY, &[("model", model), ("file", "")], file);
    post(house, PATH, LONG, body).send().await.expect("a reply")
}

/// The same by a client whose last bytes leave when the provider has done what it does. Until then
/// no gateway can have sent the end, however much the buffers between them hold.
async fn pass_late(house: &House, raw: &Raw, model: &str, file: &[u8]) -> Response {
    let body = Bytes::from(form_of(BOUNDARY, &[("model", model), ("file", "")], file));
    let (length, late) = (body.len(), body.len() - (64 << 10));
    let (first, last, acted) = (body.slice(..late), body.slice(late..), raw.acted.clone());
    let last = async move {
        let acting = async {
            while !acted.load(Ordering::Acquire) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(HANG, acting).await.expect("what the provider does");
        last
    };
    let pieces = stream::iter([first]).chain(stream::once(last)).map(Ok::<_, std::io::Error>);
    let request = post(house, PATH, LONG, Vec::new()).header("content-length", length);
    request.body(reqwest::Body::wrap_stream(pieces)).send().await.expect("a reply")
}

/// The same by one that is spooled.
async fn spool(house: &House, model: &str, file: &[u8]) -> Response {
    let body = form_of("0123", &[("model", model), ("file", "")], file);
    post(house, PATH, SHORT, body).send().await.expect("a reply")
}

/// A client that sends as the test wants.
pub struct ByHand(TcpStream);

impl ByHand {
    pub async fn begin(house: &House, kind: &str, length: usize) -> ByHand {
        let mut socket = TcpStream::connect(house.running().address).await.expect("connected");
        socket.set_nodelay(true).expect("set");
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: {kind}\r\ncontent-length: {length}\r\n\r\n",
            house.key
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        ByHand(socket)
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("sent");
        self.0.flush().await.expect("sent");
    }

    /// The status, and what was said.
    pub async fn reply(mut self) -> (u16, String) {
        let mut all = Vec::new();
        self.0.read_to_end(&mut all).await.expect("a reply");
        let text = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse().expect("a status"), body.to_owned())
    }
}

/// More than memory holds: 80 seconds, and in it all that looks like a boundary and is none.
fn tricky() -> Vec<u8> {
    let mut file = wav(80_000);
    let half = format!("\r\n--{}", &BOUNDARY[..31]);
    for (at, text) in
        [(1_000, "\r\n"), (70_000, &*half), (600_001, "\r\n--"), (600_100, "--0123456789abcdef0123456789abcdef--")]
    {
        file[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    let end = file.len() - half.len();
    file[end..].copy_from_slice(half.as_bytes());
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_passes_while_it_comes_and_its_end_waits() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("10").await;
    let file = wav(300_000);
    let body = form_of(BOUNDARY, &[("model", "raw-ears"), ("language", "en"), ("file", "")], &file);
    let mut client = ByHand::begin(&house, LONG, body.len()).await;
    let all_but_one = body.len() - 1;
    client.send(&body[..all_but_one]).await;
    // All but what is withheld is there, and nothing of it was put down.
    raw.has(file.len() - (256 << 10)).await;
    let app = &house.running().app;
    assert_eq!(app.spool.budget.used(), 0, "nothing is on disk");
    assert!(app.bodies.used() <= (256 << 10) + 1_000, "{} bytes in memory", app.bodies.used());
    assert!(raw.bytes() <= file.len() - (32 << 10), "the end is withheld");
    assert!(house.all_rows().await.is_empty(), "nothing is held yet");
    client.send(&body[all_but_one..]).await;
    assert_eq!(client.reply().await, (200, json!({ "text": "heard" }).to_string()));
    house.quiet().await;
    let rows = house.all_rows().await;
    let row = rows.values().next().expect("a row");
    assert_eq!((row.charge.nano(), row.counters.seconds, row.attempts), (300 * SECOND, 300, 1));
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0));
    let seen = raw.seen.lock().expect("no panic");
    let (fields, name, came) = sent(body_of(&seen[0].0).expect("a body").0);
    assert!(came == file, "the same bytes");
    assert_eq!(name, "audio.wav");
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(fields, [("model", "whisper-raw"), ("response_format", "json"), ("language", "en")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_arrive_wherever_they_are_cut() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("1000").await;
    let file = tricky();
    let body = form_of(BOUNDARY, &[("model", "raw-ears"), ("file", "")], &file);
    let begins = body.windows(4).position(|four| four == b"RIFF").expect("a file");
    let end = begins + file.len();
    let around = |at: usize, before: usize, after: usize| (at - before..at + after).step_by(3);
    let cuts: Vec<usize> =
        around(begins, 6, 60).chain(around(begins + 70_000, 3, 40)).chain(around(end, 42, 40)).collect();
    for cut in &cuts {
        let mut client = ByHand::begin(&house, LONG, body.len()).await;
        client.send(&body[..*cut]).await;
        // So that the two are read one after the other, mostly.
        tokio::task::yield_now().await;
        client.send(&body[*cut..]).await;
        assert_eq!(client.reply().await.0, 200, "cut at {cut}");
    }
    // Byte by byte, around its beginning and its end.
    let mut client = ByHand::begin(&house, LONG, body.len()).await;
    client.send(&body[..begins - 1]).await;
    for byte in &body[begins - 1..begins + 100] {
        client.send(&[*byte]).await;
    }
    client.send(&body[begins + 100..end - 100]).await;
    for byte in &body[end - 100..] {
        client.send(&[*byte]).await;
    }
    assert_eq!(client.reply().await.0, 200);
    let seen = raw.seen.lock().expect("no panic");
    assert_eq!(seen.len(), cuts.len() + 1);
    for (at, (bytes, _)) in seen.iter().enumerate() {
        assert!(sent(body_of(bytes).expect("a body").0).2 == file, "{:?}", cuts.get(at));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_behind_the_file_are_sent_on_and_padded() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("100").await;
    let file = wav(80_000);
    let speakers = "x".repeat(100_000);
    let tails: [&[(&str, &str)]; 5] = [
        &[("language", "en")],
        &[
            ("response_format", "verbose_json"),
            ("timestamp_granularities", "word"),
            ("keywords", "a"),
            ("keywords", "b"),
        ],
        &[("response_format", "text"), ("prompt", "a prompt")],
        &[("stream", "1")],
        &[("known_speaker_references", &speakers), ("temperature", "0.5")],
    ];
    for tail in tails {
        let fields = [&[("model", "raw-ears"), ("file", "")][..], tail].concat();
        // As short as a head can be written.
        let tight = String::from_utf8_lossy(&form_of(BOUNDARY, &fields[1..], b"FILE")).into_owned();
        let tight = tight.replace("Content-Disposition: form-data; name=\"", "content-disposition:form-data;name=\"");
        let tight =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nraw-ears\r\n{tight}");
        let (before, after) = tight.split_once("FILE").expect("a file");
        let tight = [before.as_bytes(), &file, after.as_bytes()].concat();
        for body in [form_of(BOUNDARY, &fields, &file), tight] {
            let seen = raw.connections();
            let reply = post(&house, PATH, LONG, body).send().await.expect("a reply");
            assert_eq!(reply.status(), 200, "{}", reply.text().await.expect("text"));
            let all = raw.seen.lock().expect("no panic");
            let (came, length) = body_of(&all[seen].0).expect("a body");
            assert_eq!(came.len(), length);
            let (fields, _, heard) = sent(came);
            assert!(heard == file);
            for (name, text) in tail {
                let wanted = match (*name, *text) {
                    ("response_format", "text") => "json",
                    ("stream", _) => "true",
                    (_, text) => text,
                };
                let is = |field: &&(String, String)| field.0.trim_end_matches("[]") == *name && field.1 == wanted;
                assert_eq!(fields.iter().filter(is).count(), 1, "{name}: {fields:?}");
            }
        }
    }
    // A form without a line end at its end, and one with much behind it.
    let body = form_of(BOUNDARY, &[("model", "raw-ears"), ("file", "")], &file);
    for body in [body[..body.len() - 2].to_vec(), [&body[..], &[b'x'; 20_000]].concat()] {
        let reply = post(&house, PATH, LONG, body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        assert_eq!(row_of(&house, &reply).await.charge.nano(), 80 * SECOND);
    }
}

/// What is odd about a form, its boundary, its fields and its file.
type SpooledCase<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

/// Half of a form is sent, and lies on disk: then it has not passed.
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_sent_again_is_spooled() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("10").await;
    let (file, boundary) = (wav(200_000), BOUNDARY);
    let m4a = [b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42", &file[..]].concat();
    let noise: Vec<u8> = file.iter().map(|_| 0x55).collect();
    let cases: [SpooledCase<'_>; 6] = [
        ("the model behind the file", boundary, &[("file", ""), ("model", "raw-ears")], &file),
        ("two routes", boundary, &[("model", "spare-ears"), ("file", "")], &file),
        ("a short boundary", "0123", &[("model", "raw-ears"), ("file", "")], &file),
        ("no such model", boundary, &[("model", "no-ears"), ("file", "")], &file),
        ("a container with its table at the end", boundary, &[("model", "raw-ears"), ("file", "")], &m4a),
        ("no audio", boundary, &[("model", "raw-ears"), ("file", "")], &noise),
    ];
    for (what, boundary, fields, file) in cases {
        let (body, kind) = (form_of(boundary, fields, file), format!("multipart/form-data; boundary={boundary}"));
        let mut client = ByHand::begin(&house, &kind, body.len()).await;
        client.send(&body[..body.len() / 2]).await;
        while house.running().app.spool.budget.used() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(raw.connections(), 0, "{what}");
        drop(client);
        while house.running().app.spool.budget.used() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(house.all_rows().await.is_empty());
}

/// What a file is charged for, or refused with, does not depend on the way it takes.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_files_come_to_the_same_either_way() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("100").await;
    let good = wav(100_000);
    let mut short_by_its_word = good.clone();
    short_by_its_word[40..44].copy_from_slice(&16_000u32.to_le_bytes());
    let mut long_by_its_word = good.clone();
    long_by_its_word[40..44].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let mut broken = good[..44].to_vec();
    broken[24..28].copy_from_slice(&0u32.to_le_bytes());
    broken.extend(&good[44..]);
    let frame = [&[0xff, 0xfb, 0x90, 0x64][..], &[0; 413]].concat();
    let mut half_a_song = frame.repeat(500);
    half_a_song.resize(2 << 20, 0x55);
    let song = frame.repeat(4_000);
    let tagged = [b"ID3\x04\0\0\0\0\x07\x76", &[0; 1_014][..], &song].concat();
    for (what, file) in [
        ("good", good),
        ("says that it is short", short_by_its_word),
        ("says that it is endless", long_by_its_word),
        ("has no rate", broken),
        ("half a song", half_a_song),
        ("a song", song),
        ("a song with a tag", tagged),
    ] {
        let mut outcomes = Vec::new();
        for reply in [pass(&house, "raw-ears", &file).await, spool(&house, "raw-ears", &file).await] {
            let (status, call) = (reply.status().as_u16(), call_id(&reply));
            let said: Value = reply.json().await.expect("JSON");
            let charge = if status == 200 { house.row(call).await.charge.nano() } else { 0 };
            outcomes.push((status, said, charge));
        }
        assert_eq!(outcomes[0], outcomes[1], "{what}");
        assert_eq!(outcomes[0].0 == 200, what != "has no rate", "{what}: {outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_upload_is_sent_once() {
    let house = super::house().await;
    let file = wav(80_000);
    let ask = async |boundary: &str, file: &[u8]| {
        let body = form_of(boundary, &[("model", "whisper"), ("file", "")], file);
        let kind = format!("multipart/form-data; boundary={boundary}");
        post(&house, PATH, &kind, body).header("idempotency-key", "once").send().await.expect("a reply")
    };
    let first = ask(BOUNDARY, &file).await;
    assert_eq!(first.status(), 200);
    let text = first.text().await.expect("text");
    // Its boundary is drawn anew, and it may come another way: it is the same call.
    for boundary in ["another-boundary-of-the-same-length", "0123"] {
        let again = ask(boundary, &file).await;
        assert_eq!((again.status().as_u16(), again.text().await.expect("text")), (200, text.clone()), "{boundary}");
    }
    let mut other = file.clone();
    other[100_000] = 1;
    assert_eq!(ask(BOUNDARY, &other).await.status(), 409);
    house.quiet().await;
    assert_eq!((house.all_rows().await.len(), house.sim.received().len()), (1, 1));
}

/// The provider got nothing that it could begin with, the words are the same as ever, and nothing
/// is charged.
pub async fn an_upload_that_passes_is_refused_at_its_end() {
    let raw = Raw::start(Does::Listen).await;
    // Enough for the least of recordings, and not for this one.
    let house = raw.house("0.1").await;
    let before = house.available().await;
    let file = wav(100_000);
    let (status, error) = error_of(pass(&house, "raw-ears", &file).await).await;
    assert_eq!((status, &error["code"]), (402, &json!("insufficient_balance")));
    assert_eq!(raw.connections(), 1, "it has passed");
    raw.never_had_a_whole_request().await;
    let rows = house.all_rows().await;
    assert!(rows.values().all(|row| row.ending == Ending::Refused && row.charge.nano() == 0), "{rows:?}");
    assert_eq!(house.available().await, before);
    // Too long for its model.
    house.top_up("more", "10").await;
    let (before, rows) = (house.available().await, rows.len());
    let (passed, spooled) = (pass(&house, "short-ears", &file).await, spool(&house, "short-ears", &file).await);
    let (passed, spooled) = (error_of(passed).await, error_of(spooled).await);
    assert_eq!(passed, spooled);
    assert_eq!((passed.0, &passed.1["param"]), (400, &json!("file")));
    assert!(house.sim.received().is_empty(), "the simulator saw no whole request");
    assert_eq!((house.available().await, house.all_rows().await.len()), (before, rows));
}

/// Whichever way it takes, and wherever its model stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_refused_in_the_same_words_either_way() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("10").await;
    let mut file = wav(100_000);
    file.resize((2 << 20) + 1, 0);
    let before: &[(&str, &str)] = &[("model", "small-ears"), ("file", "")];
    let behind: &[(&str, &str)] = &[("file", ""), ("model", "small-ears")];
    let mut words = Vec::new();
    for (kind, boundary, fields) in [(LONG, BOUNDARY, before), (SHORT, "0123", before), (SHORT, "0123", behind)] {
        let mut body = form_of(boundary, fields, &file);
        // Without the last line end the file seems to fit when it begins.
        body.truncate(body.len() - 2);
        words.push(error_of(post(&house, PATH, kind, body).send().await.expect("a reply")).await);
        assert_eq!(raw.connections(), 1, "the first of them has passed");
    }
    let quote = house.http.post(house.url(&format!("/v1/quote?endpoint={PATH}"))).bearer_auth(&house.key);
    let stated = json!({ "model": "small-ears", "seconds": 100, "bytes": file.len() });
    words.push(error_of(quote.json(&stated).send().await.expect("a reply")).await);
    assert_eq!((words[0].0, &words[0].1["param"]), (413, &json!("file")), "{words:?}");
    assert!(words.iter().all(|one| *one == words[0]), "{words:#?}");
    raw.never_had_a_whole_request().await;
    assert!(house.all_rows().await.is_empty());
}

pub async fn the_client_leaves_an_upload_that_passes() {
    let raw = Raw::start(Does::Listen).await;
    let house = raw.house("10").await;
    let body = form_of(BOUNDARY, &[("model", "raw-ears"), ("file", "")], &wav(300_000));
    let mut client = ByHand::begin(&house, LONG, body.len()).await;
    client.send(&body[..body.len() / 2]).await;
    raw.has(body.len() / 4).await;
    let before = house.available().await;
    drop(client);
    raw.never_had_a_whole_request().await;
    while house.running().app.bodies.used() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(house.all_rows().await.is_empty());
    assert_eq!(house.available().await, before);
}

pub async fn the_provider_breaks_off_an_upload_that_passes() {
    let raw = Raw::start(Does::Close(700_000)).await;
    let house = raw.house("10").await;
    let before = house.available().await;
    let reply = pass_late(&house, &raw, "raw-ears", &wav(300_000)).await;
    assert!(!reply.headers().contains_key("x-should-retry"), "it may be sent again: nobody has begun");
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (502, &json!("upstream_error")));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::UpstreamFault, 0, 1));
    house.quiet().await;
    assert_eq!((house.available().await, raw.connections()), (before, 1), "sent once");
    // Nobody is there at all.
    let nobody = Raw { seen: Seen::default(), acted: Arc::default(), port: 1 };
    let house = nobody.house("10").await;
    let (status, _) = error_of(pass(&house, "raw-ears", &wav(100_000)).await).await;
    house.quiet().await;
    assert_eq!((status, house.available().await), (502, before));
}

pub async fn the_provider_answers_before_an_upload_has_passed() {
    let json = "content-type: application/json\r\nconnection: close\r\n";
    for (head, body, status, code) in [
        ("413 Too Large", r#"{"error":{"message":"Maximum content size limit exceeded."}}"#, 400, "invalid_request"),
        ("401 Unauthorized", r#"{"error":{"message":"Incorrect API key."}}"#, 502, "upstream_error"),
        ("429 Too Many", r#"{"error":{"message":"Rate limit reached."}}"#, 429, "rate_limit_exceeded"),
        ("200 OK", r#"{"text":"half of it"}"#, 502, "upstream_invalid_reply"),
    ] {
        let said = format!("HTTP/1.1 {head}\r\n{json}content-length: {}\r\n\r\n{body}", body.len());
        let raw = Raw::start(Does::Say(400_000, Box::leak(said.into_boxed_str()))).await;
        let house = raw.house("10").await;
        let before = house.available().await;
        let reply = pass_late(&house, &raw, "raw-ears", &wav(300_000)).await;
        let call = call_id(&reply);
        let (got, error) = error_of(reply).await;
        assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{head}: {error}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::UpstreamFault, 0, 1), "{head}");
        house.quiet().await;
        assert_eq!((house.available().await, raw.connections()), (before, 1), "{head}");
    }
}
