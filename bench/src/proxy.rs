//! The yardstick: hyper in, hyper-util's pooled client out, headers copied but for hop-by-hop ones,
//! bodies passed frame by frame. No keys, no money, no metering.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

type Pool = Client<HttpConnector, Incoming>;

const HOP_BY_HOP: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

pub fn run(listen: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism()?.get())
        .enable_all()
        .build()?;
    let serving = runtime.spawn(serve(listen, upstream));
    runtime.block_on(serving)?
}

async fn serve(listen: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await.context("listening")?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
    let authority: Arc<str> = upstream.to_string().into();
    let tracker = TaskTracker::new();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (pool, authority) = (pool.clone(), Arc::clone(&authority));
        let service = service_fn(move |request| pass(pool.clone(), Arc::clone(&authority), request));
        tracker.spawn(async move {
            // A client that breaks its connection is no concern of the proxy.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn pass(
    pool: Pool,
    authority: Arc<str>,
    mut request: Request<Incoming>,
) -> Result<Response<Either<Incoming, Empty<Bytes>>>, http::Error> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("http").authority(&*authority).path_and_query(path).build()?;
    *request.uri_mut() = uri;
    for name in HOP_BY_HOP {
        request.headers_mut().remove(*name);
    }
    request.headers_mut().remove("host");
    match pool.request(request).await {
        Ok(mut response) => {
            for name in HOP_BY_HOP {
                response.headers_mut().remove(*name);
            }
            Ok(response.map(Either::Left))
        }
        Err(_) => Response::builder().status(StatusCode::BAD_GATEWAY).body(Either::Right(Empty::new())),
    }
}
