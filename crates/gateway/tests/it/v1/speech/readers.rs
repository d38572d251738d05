//! Clients that read slowly: what they do not take is not held for them.

use super::{CHARACTER, ask, house, post};
use crate::house::call_id;
use serde_json::json;

/// Resident memory of this process, gateway, simulator and clients together, in KiB.
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

/// MM35: two hundred clients that do not read have 20 MB each on offer, and nobody holds 4 GB.
#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_long_audio_do_not_fill_the_memory() {
    const CLIENTS: usize = 200;
    const MIB: u64 = 20;
    let house = house().await;
    let input = format!("[[sim:huge mib={MIB}]]");
    let mut body = ask(&input);
    body["response_format"] = json!("pcm");
    let before = resident();
    let mut readers = Vec::new();
    for _ in 0..CLIENTS {
        let mut reply = post(&house, &body).send().await.expect("a reply");
        let first = reply.chunk().await.expect("a chunk").expect("bytes").len();
        readers.push((reply, first));
    }
    // All of them have begun; each then has what its sockets hold, and a piece or two of ours.
    let grown = resident().saturating_sub(before);
    assert!(grown < CLIENTS as u64 * MIB * 1024 / 8, "{grown} KiB more for {CLIENTS} readers");
    let mut most = grown;
    for (mut reply, first) in readers.drain(..).take(5) {
        let call = call_id(&reply);
        let mut read = first as u64;
        while let Some(chunk) = reply.chunk().await.expect("a whole answer") {
            read += chunk.len() as u64;
        }
        most = most.max(resident().saturating_sub(before));
        assert!(read >= MIB << 20, "{read} bytes");
        let row = house.row(call).await;
        assert_eq!(row.charge.nano(), input.len() as i64 * CHARACTER);
        assert_eq!(row.counters.audio_output, 7_300, "as long as its samples are many");
    }
    assert!(most < CLIENTS as u64 * MIB * 1024 / 8, "{most} KiB more while they read");
}
