//! Recordings of gigabytes, and many at once: what the gateway takes of memory does not grow with
//! them. In a test run they are smaller.

use crate::books;
use crate::experiment::{Experiment, long};
use crate::house::{Gate, House, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Memory that uploads may take above a gateway at rest, in KiB.
const ABOVE: u64 = 100 << 10;
/// Bytes of a second: eight channels of 32 bits, 192,000 times.
const SECOND: u64 = 8 * 4 * 192_000;
/// What a second costs, in nano-USD.
const PRICE: i64 = 6_000_000;

const CATALOG: &str = r#"
[model."ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
max_duration_seconds = 330
transcription = { max_bytes = "2050MiB" }
route = [{ provider = "sink", upstream_model = "x" }]
"#;

/// A provider that reads what it is sent, counts it, and has heard nothing.
async fn sink(taken: Arc<AtomicU64>) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut calls = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            calls.spawn(listen(socket, taken.clone()));
        }
    });
    (port, serving)
}

async fn listen(mut socket: TcpStream, taken: Arc<AtomicU64>) {
    let mut buffer = vec![0; 256 << 10];
    let mut head = Vec::new();
    let end = loop {
        let Ok(read @ 1..) = socket.read(&mut buffer).await else { return };
        head.extend_from_slice(&buffer[..read]);
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
    let length = text.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
    let length: u64 = length.expect("a length");
    let mut got = (head.len() - end) as u64;
    while got < length {
        let Ok(read @ 1..) = socket.read(&mut buffer).await else { return };
        got += read as u64;
    }
    taken.fetch_add(got, Ordering::Relaxed);
    let body = "{\"text\":\"nothing\"}";
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = socket.write_all(reply.as_bytes()).await;
}

/// Uploads so many seconds of silence, which are nowhere as a whole; the status.
async fn upload(port: u16, key: String, seconds: u64) -> u16 {
    let data = u32::try_from(seconds * SECOND).expect("below 4 GiB");
    let mut start = b"--a-b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nears\r\n".to_vec();
    start.extend(b"--a-b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n");
    start.extend(b"RIFF");
    start.extend((36 + data).to_le_bytes());
    start.extend(b"WAVEfmt \x10\0\0\0\x01\0\x08\0");
    start.extend([192_000u32.to_le_bytes(), u32::try_from(SECOND).expect("small").to_le_bytes()].concat());
    start.extend(b"\x20\0\x20\0data");
    start.extend(data.to_le_bytes());
    let end = b"\r\n--a-b--\r\n";
    let length = start.len() as u64 + u64::from(data) + end.len() as u64;
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\
         content-type: multipart/form-data; boundary=a-b\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    socket.write_all(head.as_bytes()).await.expect("sent");
    socket.write_all(&start).await.expect("sent");
    let silence = vec![0; 1 << 20];
    let mut left = u64::from(data);
    while left > 0 {
        let piece = usize::try_from(left.min(silence.len() as u64)).expect("small");
        socket.write_all(&silence[..piece]).await.expect("somebody reads");
        left -= piece as u64;
    }
    socket.write_all(end).await.expect("sent");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.expect("a reply");
    reply.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
}

/// A figure of the gateway's memory, in KiB.
fn memory(gate: &Gate, name: &str) -> u64 {
    let id = gate.process.as_ref().expect("running").id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a process of ours");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_gigabytes_and_many_at_once() {
    let mut experiment = Experiment::new("recordings of gigabytes, and many at once");
    let taken = Arc::new(AtomicU64::new(0));
    let (port, _sink) = sink(taken.clone()).await;
    let limits = format!(
        "spool_bytes = \"20GiB\"\n[provider.sink]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         first_byte_time = \"120s\"\nidle_time = \"120s\"\n"
    );
    let house = House::new(Plan { usd: "100", catalog: CATALOG, limits: &limits, ..Plan::default() }).await;
    let gate = &house.gates[0];
    // Two gigabytes, then a hundred of 25 MB; in a test run a thirtieth of that.
    let (long_one, crowd, each) = if long() { (325, 100, 4) } else { (10, 12, 1) };
    let idle = memory(gate, "VmRSS:");
    assert_eq!(upload(gate.port, house.key.clone(), long_one).await, 200);
    let calls: JoinSet<_> = (0..crowd).map(|_| upload(gate.port, house.key.clone(), each)).collect();
    assert!(calls.join_all().await.into_iter().all(|status| status == 200));
    let above = memory(gate, "VmHWM:").saturating_sub(idle);
    assert!(above <= ABOVE, "{} MiB above idle", above >> 10);
    let seconds = long_one + crowd * each;
    assert!(taken.load(Ordering::Relaxed) >= seconds * SECOND, "the provider has all of it");
    house.quiet().await;
    house.verified().await;
    let charged: i64 = books::usage(&house).await.values().map(|row| books::amount(row, "charge_nano_usd")).sum();
    assert_eq!(charged, i64::try_from(seconds).expect("few") * PRICE);
    experiment.count("seconds", seconds);
    experiment.count("MB", seconds * SECOND / 1_000_000);
    experiment.count("KiB of memory above idle", above);
    experiment.end();
}
