//! A cable between a replica and its database that can be cut and mended.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub struct Cable {
    /// The database by way of the cable.
    pub url: String,
    whole: Arc<watch::Sender<bool>>,
    _task: JoinSet<()>,
}

impl Cable {
    /// `url` has the form `postgres://user@host:port/database`.
    pub async fn lay(url: &str) -> Self {
        let (head, rest) = url.split_once('@').expect("a user");
        let (server, database) = rest.split_once('/').expect("a database");
        let server = server.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("{head}@{}/{database}", listener.local_addr().expect("an address"));
        let (whole, state) = watch::channel(true);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(carry(stream, server.clone(), state.clone()));
            }
        });
        Self { url, whole: Arc::new(whole), _task: task }
    }

    /// Every connection breaks, and new ones do too. When this returns nothing passes any more.
    pub async fn cut(&self) {
        self.whole.send_replace(false);
        // Whoever carries watches; so does the one who takes new connections.
        while self.whole.receiver_count() > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn carry(mut near: TcpStream, server: String, mut state: watch::Receiver<bool>) {
    if !*state.borrow_and_update() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _ = state.wait_for(|whole| !whole) => {}
    }
}
