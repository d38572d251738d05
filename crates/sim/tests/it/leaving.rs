//! The simulator notices a caller who leaves, at every point of a call, and soon.

use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep};
use tollgate_sim::{Received, Sim};

use crate::it::client::{ask, post, send, sim, streamed};

async fn closed(sim: &Sim) -> Received {
    let start = Instant::now();
    loop {
        let last = sim.received().pop().expect("a call");
        if last.client_closed_at_ms.is_some() {
            return last;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "not noticed: {last:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn leave(sim: &Sim, body: &Value, after: Duration) -> Received {
    let before = sim.received().len();
    let socket = send(sim, body).await;
    while sim.received().len() == before {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(after).await;
    let mut unread = [0; 4096];
    let _ = socket.try_read(&mut unread);
    drop(socket);
    closed(sim).await
}

#[tokio::test]
async fn while_thinking_hanging_or_streaming() {
    let sim = sim().await;
    let soon = Duration::from_millis(60);
    for body in [
        ask("sim-slow", "[[sim:think_ms=100000]]"),
        streamed("sim-slow", "[[sim:think_ms=100000]]"),
        ask("sim-hang", "x"),
        streamed("sim-hang_midstream-1", "x"),
        ask("sim-hang_midstream", "x"),
        streamed("sim-plain", "[[sim:tokens=5000 delay_ms=20]]"),
        ask("sim-error500", "[[sim:think_ms=100000]]"),
    ] {
        let received = leave(&sim, &body, soon).await;
        assert!(!received.finished, "{received:?}");
        let away = received.client_closed_at_ms.unwrap() - received.at_ms;
        // Long before any of them would have come to an end by itself.
        assert!((50..60_000).contains(&away), "{away} ms");
    }
    assert_eq!(sim.counts().client_closed, 7);
}

#[tokio::test]
async fn while_not_reading_an_endless_line() {
    let sim = sim().await;
    let mut socket = send(&sim, &streamed("sim-huge_line", "x")).await;
    let mut taken = vec![0; 1 << 20];
    for _ in 0..20 {
        assert!(socket.read(&mut taken).await.unwrap() > 0);
    }
    sleep(Duration::from_millis(30)).await;
    drop(socket);
    assert!(!closed(&sim).await.finished);
}

#[tokio::test]
async fn not_when_all_was_read() {
    let sim = sim().await;
    post(&sim, &streamed("sim-plain", "x")).await;
    post(&sim, &ask("sim-plain", "x")).await;
    sleep(Duration::from_millis(30)).await;
    assert!(sim.received().iter().all(|received| received.finished && received.client_closed_at_ms.is_none()));
    assert_eq!(sim.received()[0].sent, 1 + 12 + 1 + 1 + 1);
}

#[tokio::test]
async fn stopping_closes_connections() {
    let sim = sim().await;
    let mut socket = send(&sim, &ask("sim-hang", "x")).await;
    sleep(Duration::from_millis(30)).await;
    sim.stop().await;
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap_or(0), 0);
}
