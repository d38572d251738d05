//! The listening simulator: one accept loop, one worker per connection, HTTP/1 and HTTP/2 with
//! prior knowledge.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::realtime::{self, Floor, SeenSession};
use crate::record::{Counts, Received, Records};
use crate::reply;
use crate::social::Orders;
use crate::socket::Socket;

/// How a simulator is set up. The default listens on a free local port, asks for no key and
/// records.
#[derive(Clone)]
pub struct SimSettings {
    /// Port 0 picks a free one; see [`Sim::addr`].
    pub listen: SocketAddr,
    /// When set, calls without exactly this bearer key are answered 401.
    pub require_key: Option<String>,
    /// Time before the first byte of every reply whose call does not set `think_ms`.
    pub think: Duration,
    /// Off for load: calls are counted but not remembered.
    pub record: bool,
    /// How many calls are remembered.
    pub keep: usize,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            require_key: None,
            think: Duration::ZERO,
            record: true,
            keep: 100_000,
        }
    }
}

/// A running simulator. Dropping it stops it; [`Sim::stop`] also waits for its connections to go.
pub struct Sim {
    addr: SocketAddr,
    world: Arc<World>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

/// What every connection shares.
pub(crate) struct World {
    pub require_key: Option<String>,
    pub think: Duration,
    pub records: Arc<Records>,
    pub social: Orders,
    pub videos: crate::video::Book,
    pub asked: crate::video::Rates,
    pub gate: crate::video::Gate,
    pub pictures: crate::image::Shelf,
    pub sessions: crate::realtime::Sessions,
    pub recordings: crate::hear::Recordings,
    pub tokens: crate::clouds::Tokens,
}

impl Sim {
    pub async fn start(settings: SimSettings) -> io::Result<Self> {
        let listener = TcpListener::bind(settings.listen).await?;
        let addr = listener.local_addr()?;
        let keep = if settings.record { settings.keep } else { 0 };
        let world = Arc::new(World {
            require_key: settings.require_key,
            think: settings.think,
            records: Arc::new(Records::new(keep)),
            social: Orders::default(),
            videos: crate::video::Book::since(crate::record::now_ms()),
            asked: crate::video::Rates::default(),
            gate: crate::video::Gate::default(),
            pictures: crate::image::Shelf::default(),
            sessions: crate::realtime::Sessions::default(),
            recordings: crate::hear::Recordings::default(),
            tokens: crate::clouds::Tokens::default(),
        });
        let stop = CancellationToken::new();
        let tracker = TaskTracker::new();
        tracker.spawn(accept(listener, Arc::clone(&world), stop.clone(), tracker.clone()));
        Ok(Self { addr, world, stop, tracker })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What a client or a provider's configuration takes as its base: `http://…/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The base of a provider of social data: `http://…/api/v1`.
    pub fn social_url(&self) -> String {
        format!("http://{}/api/v1", self.addr)
    }

    /// The base of a source that somebody runs himself: `http://…/api`.
    pub fn own_social_url(&self) -> String {
        format!("http://{}/api", self.addr)
    }

    /// From now on, social routes whose path contains `path` answer with this scenario; the empty
    /// scenario takes it back. A marker in a parameter wins.
    pub fn social_order(&self, path: &str, scenario: &str) {
        self.world.social.give(path, scenario);
    }

    /// The base of a maker of videos (`dashscope`, `ark`, `kling`, `minimax`, `gemini`, or
    /// `openai`) or of speech (`elevenlabs`).
    pub fn video_url(&self, maker: &str) -> String {
        match maker {
            "openai" => self.base_url(),
            "ark" => format!("http://{}/video/ark/api/v3", self.addr),
            other => format!("http://{}/video/{other}", self.addr),
        }
    }

    /// The address itself: `http://…`. Clouds are below it: `/azure`, `/vertex`, `/bedrock`.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// How many tokens were given to the service account.
    pub fn tokens(&self) -> u64 {
        self.world.tokens.given()
    }

    /// How many video tasks were taken on, by all makers.
    pub fn videos(&self) -> usize {
        self.world.videos.len()
    }

    /// While they are held, all video tasks run and none goes on.
    pub fn hold_videos(&self, held: bool) {
        self.world.videos.hold(held);
    }

    /// How often each maker of videos was asked about its tasks.
    pub fn asked(&self) -> std::collections::BTreeMap<&'static str, crate::video::Asked> {
        self.world.asked.all()
    }

    /// From now on, chat completions, social data and questions to makers of videos with this path
    /// wait until [`Sim::open`]. A path that ends with a slash stands for all that begin with it.
    pub fn shut(&self, path: &str) {
        self.world.gate.shut(path);
    }

    pub fn open(&self) {
        self.world.gate.open();
    }

    /// How many have waited so.
    pub fn waited(&self) -> usize {
        self.world.gate.arrived()
    }

    /// All remembered calls, oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.world.records.after(0)
    }

    pub fn counts(&self) -> Counts {
        self.world.records.counts()
    }

    /// All sessions over sockets, oldest first.
    pub fn sessions(&self) -> Vec<SeenSession> {
        self.world.sessions.all()
    }

    /// How many of them are open.
    pub fn open_sessions(&self) -> usize {
        self.world.sessions.open()
    }

    /// Forgets what was received and starts the counts again; ids go on counting.
    pub fn clear(&self) {
        self.world.records.clear();
        self.world.sessions.clear();
        self.world.asked.clear();
    }

    /// Closes every connection at once, as a provider that dies does.
    pub async fn stop(self) {
        self.halt();
        self.tracker.wait().await;
    }

    fn halt(&self) {
        self.world.records.stopping();
        self.stop.cancel();
        self.tracker.close();
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.halt();
    }
}

async fn accept(listener: TcpListener, world: Arc<World>, stop: CancellationToken, tracker: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, most likely: let some go before asking again.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let (world, stop, sessions) = (Arc::clone(&world), stop.clone(), tracker.clone());
        tracker.spawn(async move {
            let ends = stop.clone();
            let reset = Arc::new(AtomicBool::new(false));
            let socket = TokioIo::new(Socket::new(stream, Arc::clone(&reset)));
            let service = service_fn(move |request| {
                let (world, reset) = (Arc::clone(&world), Reset(Arc::clone(&reset)));
                let (stop, tracker) = (stop.clone(), sessions.clone());
                async move {
                    Ok::<_, Infallible>(if realtime::is_ours(request.uri().path()) {
                        realtime::answer(Floor { world, reset, stop, tracker }, request).await
                    } else {
                        reply::answer(&world, reset, request).await
                    })
                }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            tokio::select! {
                () = ends.cancelled() => {}
                // A broken connection is the caller's affair; the record already says so.
                _ended = builder.serve_connection_with_upgrades(socket, service) => {}
            }
        });
    }
}

/// Lets a script end its connection with a TCP reset.
#[derive(Clone)]
pub(crate) struct Reset(Arc<AtomicBool>);

impl Reset {
    pub fn arm(&self) {
        self.0.store(true, Relaxed);
    }
}
