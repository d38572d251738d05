//! TLS on the listening port. The handshake belongs to the task of its connection and has its place
//! among all of them, so it is bounded as a silent socket is: by `header_time`, which goes on to
//! the end of the first request's head, by a number of its own, and by a newcomer that needs the
//! place. The socket below the encryption is the one that watches over writes.
//!
//! A changed pair of files is taken over for the next connection; those that run keep theirs.

mod certificate;
mod pair;
mod stream;

pub use pair::{BadPair, TlsPair};
pub use stream::ClientStream;

use super::connections::Seat;
use super::last_word::last_word;
use super::write_timeout::WriteTimeoutIo;
use crate::metrics::TlsMeter;
use crate::settings::TlsFiles;
use arc_swap::ArcSwap;
use http::StatusCode;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tollgate_wire::error::Code;

/// What a listening port serves with.
pub struct TlsDoor {
    pub files: TlsFiles,
    config: ArcSwap<ServerConfig>,
    meter: TlsMeter,
}

impl TlsDoor {
    pub fn new(files: TlsFiles, pair: TlsPair, meter: TlsMeter) -> TlsDoor {
        meter.serves_until(pair.ends);
        TlsDoor { files, config: ArcSwap::new(pair.config), meter }
    }

    /// Reads both files again. A bad pair leaves the old one serving and raises
    /// `tollgate_tls_stale`.
    pub async fn reload(&self) -> Result<TlsPair, BadPair> {
        let files = self.files.clone();
        let read = tokio::task::spawn_blocking(move || TlsPair::read(&files)).await;
        let read = read.unwrap_or_else(|error| Err(BadPair { field: "tls_cert", reason: error.to_string() }));
        self.meter.stale.set(i64::from(read.is_err()));
        if let Ok(pair) = &read {
            self.config.store(pair.config.clone());
            self.meter.serves_until(pair.ends);
            self.meter.loads.inc();
        }
        read
    }

    /// The connection after its handshake. `None`: it came to nothing.
    pub async fn open(&self, mut socket: WriteTimeoutIo<TcpStream>, seat: &Seat) -> Option<ClientStream> {
        // A record of TLS begins with a number, a request with a letter.
        let mut first = [0];
        if !matches!(socket.get_ref().peek(&mut first).await, Ok(1)) {
            self.meter.handshake("failed");
            return None;
        }
        if first[0].is_ascii_alphabetic() {
            self.meter.handshake("plain_http");
            seat.linger();
            // Whoever does not read it has no use for it.
            if socket.write_all(&plain()).await.is_ok() {
                let _ = socket.shutdown().await;
            }
            return None;
        }
        match TlsAcceptor::from(self.config.load_full()).accept(socket).await {
            Ok(stream) => {
                seat.shaken();
                self.meter.handshake("done");
                Some(ClientStream::Tls(Box::new(stream)))
            }
            Err(error) => {
                self.meter.handshake("failed");
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
        }
    }
}

/// What is said to a client that speaks plain HTTP to a port with TLS.
fn plain() -> Vec<u8> {
    let text = "This port speaks TLS: the address has to begin with https:// (wss:// for WebSockets).";
    last_word(StatusCode::BAD_REQUEST, &[], Code::InvalidRequest, text)
}
