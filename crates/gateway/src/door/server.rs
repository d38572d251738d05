//! Accepts connections, with every limit set by hand; their number and how long they may be silent
//! is in `connections`, TLS is in `tls`, what is spoken on them in `http1` and `http2`. Stops
//! gracefully: open calls may finish up to a limit, then they are ended properly.

use super::connections::{ConnectionLimits, Connections, Seat, SocketPlace};
use super::cors::Admitted;
use super::http1;
use super::http2::Http2;
use super::last_word::last_word;
use super::peer::Peer;
use super::protocol::{BegunStream, Protocol};
use super::stalled_streams::StalledStreams;
use super::tls::{ClientStream, TlsDoor};
use super::write_timeout::WriteTimeoutIo;
use crate::metrics::ConnectionMeter;
use crate::settings::{Pages, ServerLimits};
use crate::shutdown::Shutdown;
use axum::Router;
use axum::body::Body;
use futures_util::FutureExt as _;
use http::{Request, Response, StatusCode};
use ipnet::IpNet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_wire::error::Code;

/// How long streams get to write their last event and close after they were cut: so long again
/// while connections end, for a busy machine with many of them.
const LAST_EVENT: Duration = Duration::from_secs(5);
const LAST_ROUNDS: usize = 5;

/// What all servers of a gateway have in common.
pub struct ServerContext {
    pub limits: ServerLimits,
    pub pages: Pages,
    /// Proxies in front of us: they speak for many.
    pub trusted: Vec<IpNet>,
    pub meter: ConnectionMeter,
    pub tracker: TaskTracker,
    pub shutdown: Arc<Shutdown>,
    /// Places for connections that have become WebSockets.
    pub sockets: Arc<Semaphore>,
}

/// What is said to a connection for which there is no place, before anything is read of it.
fn full() -> Vec<u8> {
    let text = "Too many connections are open; try again soon.";
    last_word(StatusCode::SERVICE_UNAVAILABLE, &["retry-after: 2"], Code::Overloaded, text)
}

/// Whatever answers requests.
pub trait Responder: Send + Sync + 'static {
    fn answer(&self, request: Request<Body>) -> impl Future<Output = Response<Body>> + Send;
}

impl Responder for Router {
    fn answer(&self, request: Request<Body>) -> impl Future<Output = Response<Body>> + Send {
        // A router is always ready; asking it first would only cost.
        tower::Service::call(&mut self.clone(), request).map(|Ok(reply)| reply)
    }
}

/// A port to serve on.
pub struct Port {
    pub listener: TcpListener,
    /// Plain HTTP without it.
    pub tls: Option<Arc<TlsDoor>>,
    /// The connections that it may have.
    pub most: usize,
}

/// Serves until the stop, then until the last connection is done or out of time.
pub async fn serve(door: Arc<ServerContext>, port: Port, desk: impl Responder) {
    let places = places(&door, &port);
    let Port { listener, tls, .. } = port;
    let stalled = StalledStreams::new(door.tracker.clone());
    let watching = stalled.clone().watch(door.limits.write_time);
    let ended = door.shutdown.ended.clone();
    door.tracker.spawn(async move { ended.run_until_cancelled(watching).await });
    let (late, ended) = (places.clone().watch(), door.shutdown.ended.clone());
    door.tracker.spawn(async move { ended.run_until_cancelled(late).await });
    let http2 = Arc::new(Http2::new(&door.limits, stalled, door.tracker.clone(), door.shutdown.clone()));
    let desk = Arc::new(desk);
    let (stopping, full) = (door.shutdown.stopping.clone(), full());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = stopping.cancelled() => break,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let Some(place) = places.place(peer.ip()) else {
            // Best effort: a queue nobody sees would be worse.
            if tls.is_none() {
                let _ = socket.try_write(&full);
            }
            continue;
        };
        let seat = place.seat().clone();
        let Ok(io) = prepare(&door, socket, place) else { continue };
        let opened = open(tls.clone(), io, seat.clone(), stopping.clone());
        let (door, desk, http2) = (door.clone(), desk.clone(), http2.clone());
        let served = (seat.clone(), stopping.clone());
        let task = connections.spawn(async move {
            let Some((protocol, begun)) = opened.await else { return };
            let (seat, stop) = served;
            let peer = Peer::new(peer, Some(seat.clone()));
            let answer = |request| route(&door, &*desk, peer.clone(), request);
            match protocol {
                Protocol::Http1 => http1::serve(begun, &seat, &stop, answer).await,
                // Apart: few speak it, and every connection would carry room for it.
                Protocol::Http2 => {
                    let answer = move |request| {
                        let (door, desk, peer) = (door.clone(), desk.clone(), peer.clone());
                        async move { route(&door, &*desk, peer, request).await }
                    };
                    Box::pin(http2.serve(begun, seat, stop, answer)).await;
                }
            }
        });
        seat.belongs_to(task);
        places.settled().await;
    }
    drop(listener);
    stop(&door, &mut connections).await;
    // What is still open belongs to clients that take nothing: their calls end with the connection,
    // as when a client leaves.
    connections.shutdown().await;
}

/// The stream of a client, after its handshake where there is one, and what it speaks. One on which
/// a stop finds nothing begun is given up: nothing was asked on its connection.
async fn open(
    tls: Option<Arc<TlsDoor>>,
    io: WriteTimeoutIo<TcpStream>,
    seat: Arc<Seat>,
    stopping: CancellationToken,
) -> Option<(Protocol, BegunStream)> {
    let opened = async {
        let stream = match tls {
            None => ClientStream::Plain(io),
            Some(tls) => Box::pin(tls.open(io, &seat)).await?,
        };
        BegunStream::read(stream).await
    };
    stopping.run_until_cancelled(opened).await.flatten()
}

/// The connections that a server may have.
fn places(door: &ServerContext, port: &Port) -> Connections {
    let (limits, most) = (&door.limits, port.most);
    let rules = ConnectionLimits {
        most,
        per_peer: limits.connections_per_address.unwrap_or(most / 2).clamp(1, most),
        header_time: limits.header_time,
        idle_time: limits.idle_time,
        handshakes: port.tls.as_ref().map(|_| limits.handshakes),
        trusted: door.trusted.clone(),
    };
    Connections::new(rules, door.meter.clone())
}

/// One request, wherever it came from.
async fn route(door: &ServerContext, desk: &impl Responder, peer: Peer, mut request: Request<Body>) -> Response<Body> {
    request.extensions_mut().insert(peer);
    let page = door.pages.admit(&request);
    if let Some(preflight) = page.as_ref().and_then(Admitted::preflight) {
        return preflight;
    }
    let mut reply = desk.answer(request).await;
    if let Some(page) = page {
        page.mark(reply.headers_mut());
    }
    reply
}

async fn stop(door: &ServerContext, connections: &mut JoinSet<()>) {
    // A WebSocket is no connection of this server any more: its session goes on with the response
    // that runs, and then ends.
    let sockets = u32::try_from(door.limits.connections).unwrap_or(u32::MAX);
    let finished = async {
        let last = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::join!(last, door.sockets.acquire_many(sockets));
    };
    tokio::pin!(finished);
    if tokio::time::timeout(door.limits.drain_time, &mut finished).await.is_err() {
        tracing::warn!("calls are still open after the drain time: they are ended now");
        door.shutdown.cut_calls();
        let mut open = door.meter.open.get();
        for _ in 0..LAST_ROUNDS {
            let ended = tokio::time::timeout(LAST_EVENT, &mut finished).await.is_ok();
            if ended || door.meter.open.get() >= open {
                break;
            }
            open = door.meter.open.get();
        }
    }
}

/// Nagle's algorithm would hold back small events; it is switched off on every accepted socket.
fn prepare(door: &ServerContext, socket: TcpStream, place: SocketPlace) -> io::Result<WriteTimeoutIo<TcpStream>> {
    socket.set_nodelay(true)?;
    Ok(WriteTimeoutIo::new(socket, door.limits.write_time, place))
}

/// Out of file descriptors: a short pause instead of a busy loop.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "accept failed");
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Binds an address or says which one could not be had.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn accepted_sockets_do_not_wait_to_fill_a_packet() {
        let listener = super::bind("127.0.0.1:0".parse().expect("address")).await.expect("bind");
        let address = listener.local_addr().expect("address");
        let client = tokio::net::TcpStream::connect(address);
        let (accepted, _client) = tokio::join!(listener.accept(), client);
        let (socket, _) = accepted.expect("accepted");
        assert!(!socket.nodelay().expect("option"), "the system's default is on; otherwise this test shows nothing");
        let app = crate::testing::bare_app().await;
        let door = app.door();
        let port = super::Port { listener, tls: None, most: 1 };
        let place = super::places(&door, &port).place(address.ip()).expect("a place");
        let io = super::prepare(&door, socket, place).expect("prepared");
        assert!(io.get_ref().nodelay().expect("option"));
    }
}
