//! Stripe, as far as money is paid there: Checkout sessions, refunds, disputes, and signed news of
//! them. Written from Stripe's published interface, and as strict: form-encoded bodies, a key, an
//! `Idempotency-Key` that gives the first answer again and refuses another body.
//!
//! Whoever holds a [`StripeSim`] plays the customer and the bank ([`StripeBook::pay`], `refund`,
//! `dispute` …). News are made on demand ([`StripeSim::event`]) and sent by the test, as often and
//! in whatever order it likes; with an address ([`StripeSim::tell`]) they are sent at once. The
//! page of a session (`/pay/{session}`) has a button that pays.

mod ask;
mod book;
mod page;
mod storm;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use ring::hmac;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use book::StripeBook;
pub use storm::{Storm, StormAct, StormStep, left_of};

/// The key that opens it, and the secret that its news are signed with.
pub const STRIPE_KEY: &str = "sk_test_simulated_4eC39HqLyjWDarjtT1zdp7dc";
pub const STRIPE_WEBHOOK_SECRET: &str = "whsec_simulated_0123456789abcdef";

/// What all connections share.
pub(crate) struct StripeWorld {
    pub book: Mutex<StripeBook>,
    /// Where news are sent, if anywhere.
    receiver: Mutex<Option<String>>,
    /// Milliseconds since 1970.
    now: Box<dyn Fn() -> i64 + Send + Sync>,
    pub address: SocketAddr,
}

/// A running Stripe. Dropping it stops it.
pub struct StripeSim {
    world: Arc<StripeWorld>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl StripeSim {
    /// On a free local port, by the clock of the machine.
    pub async fn start() -> io::Result<StripeSim> {
        Self::start_by(crate::record::now_ms).await
    }

    /// By another clock: milliseconds since 1970.
    pub async fn start_by(now: impl Fn() -> i64 + Send + Sync + 'static) -> io::Result<StripeSim> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let world =
            Arc::new(StripeWorld { book: Mutex::default(), receiver: Mutex::default(), now: Box::new(now), address });
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(accept(listener, Arc::clone(&world), stop.clone(), tracker.clone()));
        Ok(StripeSim { world, stop, tracker })
    }

    /// What `api_base` is.
    pub fn url(&self) -> String {
        format!("http://{}", self.world.address)
    }

    /// From now on news are sent to this address as they happen.
    pub fn tell(&self, url: &str) {
        *self.world.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.to_owned());
    }

    /// What customers and banks do is done in the book.
    pub fn book(&self) -> MutexGuard<'_, StripeBook> {
        self.world.book()
    }

    /// News about a session, as Stripe writes them: body, and the header that signs it now.
    pub fn event(&self, kind: &str, session: &str) -> (String, String) {
        let body = self.book().event(kind, session, self.now_s());
        let header = self.signed(&body, self.now_s());
        (body, header)
    }

    /// The header `Stripe-Signature` of a body, at a time in seconds.
    pub fn signed(&self, body: &str, at: i64) -> String {
        signature(STRIPE_WEBHOOK_SECRET, body, at)
    }

    pub fn now_s(&self) -> i64 {
        self.world.now_s()
    }
}

impl Drop for StripeSim {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tracker.close();
    }
}

impl StripeWorld {
    pub fn book(&self) -> MutexGuard<'_, StripeBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now_s(&self) -> i64 {
        (self.now)().div_euclid(1_000)
    }

    /// Sends news to whoever wants them, a few times.
    pub async fn send(&self, kind: &str, session: &str) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(url) = receiver else { return };
        let body = self.book().event(kind, session, self.now_s());
        for _ in 0..5 {
            if post(&url, &body, &signature(STRIPE_WEBHOOK_SECRET, &body, self.now_s())).await.is_ok_and(|taken| taken)
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    }
}

fn signature(secret: &str, body: &str, at: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{at}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex},v0=0000")
}

/// One request over plain HTTP. `true`: it was answered with 2xx.
async fn post(url: &str, body: &str, header: &str) -> io::Result<bool> {
    let rest = url.strip_prefix("http://").ok_or_else(|| io::Error::other("plain HTTP only"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).await?;
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nStripe-Signature: {header}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).await?;
    Ok(start.ends_with(b" 200"))
}

async fn accept(listener: TcpListener, world: Arc<StripeWorld>, stop: CancellationToken, tracker: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let (world, stop) = (Arc::clone(&world), stop.clone());
        tracker.spawn(async move {
            let service = service_fn(move |request| {
                let world = Arc::clone(&world);
                async move { Ok::<_, Infallible>(ask::answer(&world, request).await) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            tokio::select! {
                () = stop.cancelled() => {}
                // A broken connection is the caller's affair.
                _ended = builder.serve_connection(TokioIo::new(stream), service) => {}
            }
        });
    }
}
