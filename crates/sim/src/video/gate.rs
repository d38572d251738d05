//! A door that a test shuts: calls to one path wait in front of it, and are answered when it opens.
//! So a test puts something exactly between a question and its answer, however slow the machine is.

use std::pin::Pin;
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

    /// When the door to a path opens, or at once.
    pub(crate) fn opening(&self, path: &'static str) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut door = self.shut.subscribe();
        Box::pin(async move {
            let _gone = door.wait_for(|shut| shut.as_deref() != Some(path)).await;
        })
    }

    /// A path that ends with a slash stands for all that begin with it.
    pub(crate) async fn pass(&self, path: &str) {
        let mut door = self.shut.subscribe();
        let is_here = |shut: &str| shut == path || shut.ends_with('/') && path.starts_with(shut);
        let is_open = |shut: &Option<String>| !shut.as_deref().is_some_and(is_here);
        if !is_open(&door.borrow_and_update()) {
            self.arrived.fetch_add(1, Ordering::SeqCst);
            // It goes with the simulator, which then answers nobody.
            let _gone = door.wait_for(is_open).await;
        }
    }
}
