//! What hangs, fails: with words, and on every machine.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Nothing that works takes so long, however busy the machine is.
pub const HANG: Duration = Duration::from_secs(120);

/// Ends the process with its words when it is not dropped in time. It has a thread of its own, so it needs no runtime.
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

#[test]
fn it_ends_what_is_not_dropped_and_nothing_else() {
    let (sender, receiver) = channel();
    let told = sender.clone();
    drop(Watch::within(HANG, "never".to_owned(), move || told.send("the dropped one").expect("sent")));
    let hangs = Watch::within(Duration::ZERO, "at once".to_owned(), move || sender.send("the other").expect("sent"));
    assert_eq!(receiver.recv(), Ok("the other"));
    drop(hangs);
    assert!(receiver.recv().is_err(), "both are over, and one has ended something");
}
