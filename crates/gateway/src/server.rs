//! Accepts connections, with every limit set by hand: TCP_NODELAY, header time, HTTP/2 windows and streams, write time,
//! number of connections. Stops gracefully: open calls may finish up to a limit, then they are ended properly.

use crate::app::App;
use crate::caller::Peer;
use crate::cors::Admitted;
use crate::leash::Leashes;
use crate::timed::TimedIo;
use axum::Router;
use http::Version;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long streams get to write their last event and close after they were cut.
const LAST_EVENT: Duration = Duration::from_secs(5);

/// Serves until `app.stopping` is cancelled, then until the last connection is done or out of time.
pub async fn serve(app: Arc<App>, listener: TcpListener, router: Router) {
    let leashes = Leashes::new(app.tracker.clone());
    let watching = leashes.clone().watch(app.settings.limits.write_time);
    let ended = app.ended.clone();
    app.tracker.spawn(async move { ended.run_until_cancelled(watching).await });
    let builder = builder(&app, leashes.clone());
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(app.settings.limits.connections));
    let stopping = app.stopping.clone();
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
        // Above the limit the connection is closed at once: better than a queue nobody sees.
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let Ok(io) = prepare(&app, socket) else { continue };
        let service = hyper::service::service_fn({
            let (app, router, leashes) = (app.clone(), router.clone(), leashes.clone());
            move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Peer(peer));
                let page = app.settings.pages.admit(&request);
                let leashes = (request.version() == Version::HTTP_2).then(|| leashes.clone());
                // A router is always ready; asking it first would only cost.
                let reply = tower::Service::call(&mut router.clone(), request);
                async move {
                    let mut reply = match page.as_ref().and_then(Admitted::preflight) {
                        Some(preflight) => preflight,
                        None => reply.await?,
                    };
                    if let Some(page) = page {
                        page.mark(reply.headers_mut());
                    }
                    Ok::<_, Infallible>(match leashes {
                        Some(leashes) => reply.map(|body| leashes.hold(body)),
                        None => reply,
                    })
                }
            }
        });
        let connection = graceful.watch(builder.serve_connection_with_upgrades(io, service).into_owned());
        connections.spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
    drop(listener);
    stop(&app, graceful).await;
    // What is still open belongs to clients that take nothing: their calls end with the connection, as when a client leaves.
    connections.shutdown().await;
}

async fn stop(app: &App, graceful: GracefulShutdown) {
    // A WebSocket is no connection of this server any more: its session goes on with the response that runs, and then ends.
    let sockets = u32::try_from(app.settings.limits.connections).unwrap_or(u32::MAX);
    let finished = async {
        let _ = tokio::join!(graceful.shutdown(), app.sockets.acquire_many(sockets));
    };
    tokio::pin!(finished);
    if tokio::time::timeout(app.settings.limits.drain_time, &mut finished).await.is_err() {
        tracing::warn!("calls are still open after the drain time: they are ended now");
        app.cut_calls();
        let _ = tokio::time::timeout(LAST_EVENT, finished).await;
    }
}

/// Nagle's algorithm would hold back small events; it is switched off on every accepted socket.
fn prepare(app: &App, socket: TcpStream) -> io::Result<TokioIo<TimedIo<TcpStream>>> {
    socket.set_nodelay(true)?;
    Ok(TokioIo::new(TimedIo::new(socket, app.settings.limits.write_time)))
}

/// Out of file descriptors: a short pause instead of a busy loop.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "accept failed");
    tokio::time::sleep(Duration::from_millis(20)).await;
}

fn builder(app: &App, leashes: Leashes) -> auto::Builder<Leashes> {
    let limits = &app.settings.limits;
    let mut builder = auto::Builder::new(leashes);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .keep_alive(true)
        .max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams)
        .initial_stream_window_size(limits.h2_window)
        .initial_connection_window_size(limits.h2_window.saturating_mul(4))
        .max_header_list_size(32 << 10)
        .max_send_buf_size(256 << 10)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
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
        let io = super::prepare(&app, socket).expect("prepared");
        assert!(io.inner().get_ref().nodelay().expect("option"));
    }
}
