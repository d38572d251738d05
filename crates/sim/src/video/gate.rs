//! A door that a test shuts: questions to one path wait in front of it, and are answered by what is true when it opens. So a test puts
//! something exactly between a question and its answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Gate {
    shut: watch::Sender<Option<String>>,
    arrived: AtomicUsize,
}

impl Gate {
    pub(crate) fn shut(&self, path: &str) {
        self.shut.send_replace(Some(path.to_string()));
    }

    pub(crate) fn open(&self) {
        self.shut.send_replace(None);
    }

    /// How many have come to it while it was shut.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    /// Whoever makes something is never kept waiting.
    pub(super) async fn pass(&self, method: &str, path: &str) {
        let mut door = self.shut.subscribe();
        let is_open = |shut: &Option<String>| method != "GET" || shut.as_deref() != Some(path);
        if !is_open(&door.borrow_and_update()) {
            self.arrived.fetch_add(1, Ordering::SeqCst);
            // It goes with the simulator, which then answers nobody.
            let _gone = door.wait_for(is_open).await;
        }
    }
}
