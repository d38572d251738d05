//! How tests wait: what hangs, fails with words, and on every machine.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tollgate_sim::Sim;

/// Nothing that works takes so long, however busy the machine is.
pub const HANG: Duration = Duration::from_secs(120);

/// Ends the process with its words when it is not dropped in time. It has a thread of its own, so
/// it needs no runtime.
pub struct Watch {
    _end: Sender<()>,
}

impl Watch {
    pub fn over(words: String) -> Self {
        Self::within(HANG, words, || std::process::abort())
    }

    fn within(time: Duration, words: String, end: impl FnOnce() + Send + 'static) -> Self {
        let (sender, receiver) = channel::<()>();
        std::thread::spawn(move || {
            if receiver.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{words}");
                end();
            }
        });
        Self { _end: sender }
    }
}

/// Waits until this has happened.
pub async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !done().await {
        assert!(began.elapsed() < HANG, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the provider of the first call gets rid of nothing more: its client has stopped
/// reading, and all buffers are full.
pub async fn stands_still(sim: &Sim) {
    let sent = || sim.received()[0].sent;
    let (mut before, mut still) = (sent(), 0);
    while still < 10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        still = if sent() == before { still + 1 } else { 0 };
        before = sent();
    }
}

#[test]
fn it_ends_what_is_not_dropped_and_nothing_else() {
    let (sender, receiver) = channel();
    let sent = sender.clone();
    drop(Watch::within(HANG, "never".to_owned(), move || sent.send("the dropped one").expect("sent")));
    let hangs = Watch::within(Duration::ZERO, "at once".to_owned(), move || sender.send("the other").expect("sent"));
    assert_eq!(receiver.recv(), Ok("the other"));
    drop(hangs);
    assert!(receiver.recv().is_err(), "both are over, and one has ended something");
}
