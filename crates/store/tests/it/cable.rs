//! A cable between a replica and its database that can be cut, silenced and mended.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CableState {
    Whole,
    /// What the database says does not arrive. Nobody hangs up.
    Silent,
    Cut,
}

pub struct Cable {
    /// The database by way of the cable.
    pub url: String,
    state: Arc<watch::Sender<CableState>>,
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
        let (sender, state) = watch::channel(CableState::Whole);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(carry(stream, server.clone(), state.clone()));
            }
        });
        Self { url, state: Arc::new(sender), _task: task }
    }

    /// Every connection breaks, and new ones do too. When this returns nothing passes any more.
    pub async fn cut(&self) {
        self.state.send_replace(CableState::Cut);
        // Whoever carries watches; so does the one who takes new connections.
        while self.state.receiver_count() > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    pub fn silence(&self) {
        self.state.send_replace(CableState::Silent);
    }

    pub fn mend(&self) {
        self.state.send_replace(CableState::Whole);
    }
}

async fn carry(near: TcpStream, server: String, mut state: watch::Receiver<CableState>) {
    if *state.borrow_and_update() == CableState::Cut {
        return;
    }
    let Ok(far) = TcpStream::connect(server).await else { return };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let heard = Some(state.clone());
    tokio::select! {
        _ = async { tokio::join!(pass(near_in, far_out, None), pass(far_in, near_out, heard)) } => {}
        _ = state.wait_for(|state| *state == CableState::Cut) => {}
    }
}

/// One direction, to its end. What comes while the cable is silent waits.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut silence: Option<watch::Receiver<CableState>>) {
    let mut bytes = [0; 16 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
        if let Some(state) = &mut silence
            && state.wait_for(|state| *state != CableState::Silent).await.is_err()
        {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
