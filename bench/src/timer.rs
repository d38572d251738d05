//! Sleeps finer than the runtime's millisecond: the added time of a proxy is far below one. A
//! single thread waits on the kernel's timer and wakes the sleepers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

#[derive(Clone)]
pub struct Timer(Sender<(Instant, oneshot::Sender<()>)>);

impl Timer {
    pub fn start() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || keep(&receiver));
        Self(sender)
    }

    pub async fn sleep(&self, pause: Duration) {
        let (wake, woken) = oneshot::channel();
        if self.0.send((Instant::now() + pause, wake)).is_ok() {
            // An error means the thread is gone, and with it the process.
            let _ = woken.await;
        }
    }
}

fn keep(receiver: &Receiver<(Instant, oneshot::Sender<()>)>) {
    let mut sleepers: BTreeMap<Reverse<(Instant, u64)>, oneshot::Sender<()>> = BTreeMap::new();
    let mut count = 0;
    loop {
        let next = sleepers.last_key_value().map(|(Reverse((at, _)), _)| *at);
        let pause = next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
        match receiver.recv_timeout(pause) {
            Ok((at, wake)) => {
                count += 1;
                sleepers.insert(Reverse((at, count)), wake);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(entry) = sleepers.last_entry() {
            if entry.key().0.0 > Instant::now() {
                break;
            }
            // A sleeper whose connection has gone does not mind.
            let _ = entry.remove().send(());
        }
    }
}
