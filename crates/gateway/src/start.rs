//! Puts the house together from its settings, serves, and takes it down in the right order: no new
//! calls, open calls to their end, abandoned ones settled, everything committed.

use crate::alerts::AlertDesk;
use crate::app::App;
use crate::call::task::Board;
use crate::call::{Abandoned, Till};
pub use crate::cannot_start::CannotStart;
use crate::configuration::Loaded;
use crate::door::bodies::Bodies;
use crate::door::server::{self, Port};
use crate::door::spool::SpoolDisk;
use crate::door::tls::TlsDoor;
use crate::endpoints::desk::Desk;
use crate::endpoints::{router, table};
use crate::fetcher::Fetcher;
use crate::jobs::Jobs;
use crate::live::LiveDesk;
use crate::metrics::Metrics;
use crate::payments::PaymentDesk;
use crate::people::PeopleDesk;
use crate::published::Published;
use crate::routes::Routes;
use crate::sale::WorkflowBoard;
use crate::sale::price_list::PriceList;
use crate::sale::price_versions::PriceVersions;
use crate::sale::{Publishing, Serving, groups};
use crate::secrets::{Others, Secrets};
use crate::settings::{CatalogSource, ConfigSource, METRICS_CONNECTIONS, Settings};
use crate::shutdown::Shutdown;
use crate::who::key_cache::KeyCache;
use crate::work::conversation::ConversationDesk;
use crate::work::image::ImageDesk;
use crate::work::image::store::PictureStore;
use crate::work::long_replies::LongReplies;
use crate::work::realtime::{RealtimeDesk, SessionPlaces};
use crate::work::run_files::RunFiles;
use crate::work::social::SocialDesk;
use crate::work::video::{CopyStore, VideoDesk};
use crate::workers::{alerts, follow, live, mail, payments, poller, probes, reload, runs, settler, upkeep, webhooks};
use crate::world::World;
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tollgate_store::{DataLocation, Options, Recovered, Store, admin, ids};
use tollgate_upstream::{Client, ClientSettings, Reachable};

/// How long calls that were cut may take to close.
const LAST_CALLS: Duration = Duration::from_secs(10);
/// How long idle connections may take to go at the stop.
const LAST_CONNECTIONS: Duration = Duration::from_secs(2);

/// A gateway that serves.
pub struct Running {
    pub app: Arc<App>,
    pub address: SocketAddr,
    pub recovered: Recovered,
    serving: JoinHandle<()>,
    settling: JoinHandle<()>,
}

/// Where the store of these settings lives.
pub fn place(settings: &Settings) -> DataLocation {
    DataLocation { url: settings.database.clone(), data_dir: settings.data_dir.clone() }
}

/// The socket through which the command line reaches a running server.
pub fn admin_socket(settings: &Settings) -> std::path::PathBuf {
    settings.data_dir.join("admin.sock")
}

/// A gateway without doors: the store is open and recovered, the settler and the regular rounds
/// run.
pub struct Indoors {
    pub app: Arc<App>,
    pub recovered: Recovered,
    settling: JoinHandle<()>,
}

/// Opens the store, recovers, and starts everything but the doors and the poller, which asks
/// providers by itself.
pub async fn indoors(loaded: Loaded, options: Options, client: Client, world: World) -> Result<Indoors, CannotStart> {
    let opened = Store::open(place(&loaded.settings), options, world.for_store()).await?;
    let secrets = secrets(&opened.store, &loaded.settings, &world).await?;
    let copies = CopyStore::open(&loaded.settings.video, &client)?;
    let pictures = PictureStore::open(&loaded.settings.images, loaded.settings.storage.disk_reserve, &client)?;
    let run_files = RunFiles::open(&loaded.settings.runs, loaded.settings.storage.disk_reserve, &client)?;
    let stores = FileStores { copies, pictures, run_files };
    let (abandoned, inbox) = mpsc::unbounded_channel();
    let app = build(loaded.settings, loaded.serving, opened.store, client, world, (secrets, stores), abandoned);
    let settling = keep(settler::run(app.till.clone(), inbox));
    upkeep(&app);
    app.tracker.spawn(webhooks::run(app.clone()));
    app.tracker.spawn(payments::run(app.clone()));
    Ok(Indoors { app, recovered: opened.recovered, settling })
}

/// The secrets of this database. On SQLite the file belongs to it; replicas on PostgreSQL are
/// warned to share one.
async fn secrets(store: &Store, settings: &Settings, world: &World) -> Result<Secrets, CannotStart> {
    let others = match (settings.new_secrets, settings.database.as_str()) {
        (true, _) => Others::Welcome,
        (false, "sqlite") => Others::Refused,
        (false, _) => Others::Reported,
    };
    Secrets::of_store(store, &settings.secrets_file, others, |bytes| world.fill(bytes)).await
}

/// Opens the store, recovers, binds, and begins to serve. With a `source` its files are watched.
pub async fn start(mut loaded: Loaded, source: Option<ConfigSource>, world: World) -> Result<Running, CannotStart> {
    loaded.settings.limits.fit(&world.machine());
    let (listen, metrics_listen) = (loaded.settings.listen, loaded.settings.metrics_listen);
    let (client, tls) = (client(&loaded.settings, &world), loaded.tls.take());
    let storage = loaded.settings.storage;
    let unread = std::mem::take(&mut loaded.unread);
    let options = Options {
        hold_deadline: loaded.settings.limits.ledger_time,
        behind_most: loaded.settings.limits.ledger_behind,
        stored_bytes: storage.total_bytes,
        reply_bytes: storage.account.bytes,
        disk_reserve: storage.disk_reserve,
        lost_reply: table::lost_reply,
        ..Options::default()
    };
    let Indoors { app, recovered, settling } = indoors(loaded, options, client, world).await?;
    // Before the first call: a cell that is paused must not be sold, nor what is known to be vain
    // be asked.
    if let Some(source) = &source {
        let _ = app.publishing.reader.set(Arc::new(source.clone()));
        follow::begin(&app, source, unread).await?;
    }
    // Jobs of the process that was here before came to no end.
    app.store.interrupt_jobs(Some(&app.store.replica_name())).await?;
    app.social.refresh().await?;
    groups::look(&app.store, &app.serving.load(), &app.metrics).await;
    app.workflows.look(&app.store, &app.serving.load_full(), app.world.now_ms()).await?;
    let listener = server::bind(listen).await?;
    let address = listener.local_addr()?;
    let metrics_listener = match metrics_listen {
        Some(at) => Some(server::bind(at).await?),
        None => None,
    };
    let files = app.settings.tls.clone();
    let tls = files.zip(tls).map(|(files, pair)| Arc::new(TlsDoor::new(files, pair, app.metrics.tls.clone())));
    app.tracker.spawn(poller::run(app.clone()));
    app.tracker.spawn(mail::run(app.clone()));
    app.tracker.spawn(alerts::run(app.clone()));
    app.tracker.spawn(probes::run(app.clone()));
    app.tracker.spawn(live::run(app.clone()));
    app.tracker.spawn(runs::run(app.clone(), router(app.clone())));
    if let Some(source) = source {
        if app.settings.catalog_source == CatalogSource::Database {
            app.tracker.spawn(follow::run(app.clone(), source.clone()));
        }
        app.tracker.spawn(reload::watch(app.clone(), source, tls.clone()));
    }
    let socket = admin_socket(&app.settings);
    let (store, stopping) = (app.store.clone(), app.shutdown.stopping.clone());
    // Before the first request: whoever sees that the gateway is ready finds its socket.
    let bound = admin::bind(&socket);
    app.tracker.spawn(async move {
        let listening = async { admin::listen((&socket, bound?), store, stopping.cancelled_owned()).await };
        if let Err(error) = listening.await {
            tracing::error!(%error, "the admin socket is not available");
        }
    });
    let door = app.door();
    if let Some(listener) = metrics_listener {
        let port = Port { listener, tls: None, most: METRICS_CONNECTIONS };
        app.tracker.spawn(server::serve(door.clone(), port, table::metrics_router(app.clone())));
    }
    let port = Port { listener, tls, most: app.settings.limits.connections };
    let serving = keep(server::serve(door, port, Desk::new(app.clone())));
    Ok(Running { app, address, recovered, serving, settling })
}

#[expect(
    clippy::disallowed_methods,
    reason = "not detached: the handle is stored in `Running` and awaited at the stop"
)]
fn keep(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

pub(crate) fn client(settings: &Settings, world: &World) -> Client {
    Client::reaching(client_settings(settings), Reachable::Everything, world.names())
}

fn client_settings(settings: &Settings) -> ClientSettings {
    let limits = &settings.limits;
    ClientSettings {
        connect_timeout: limits.connect_time,
        pool_max_idle_per_host: limits.idle_upstream,
        ..ClientSettings::default()
    }
}

/// Where files of customers are stored.
#[derive(Default)]
pub(crate) struct FileStores {
    copies: Option<CopyStore>,
    pictures: Option<PictureStore>,
    run_files: Option<RunFiles>,
}

pub(crate) fn build(
    settings: Settings,
    serving: Serving,
    store: Store,
    client: Client,
    world: World,
    (secrets, FileStores { copies, pictures, run_files }): (Secrets, FileStores),
    abandoned: mpsc::UnboundedSender<Abandoned>,
) -> Arc<App> {
    let connecting = client_settings(&settings);
    let limits = &settings.limits;
    let bodies = Bodies::new(limits.bodies_bytes.unwrap_or(limits.body_bytes.saturating_mul(8)), limits.body_bytes);
    let spool = SpoolDisk {
        dir: settings.data_dir.clone(),
        left_alone: settings.storage.disk_reserve,
        budget: Bodies::new(limits.spool_bytes, limits.upload_bytes),
        bodies: bodies.clone(),
    };
    // Nobody comes back to a stranger's server, so no connection to one stays open.
    let passing = ClientSettings { pool_max_idle_per_host: 0, ..connecting.clone() };
    let private = Reachable::Outside(settings.fetch.private.as_slice().into());
    let (secrets, world) = (Arc::new(secrets), world.trusting(store.clock()));
    let clock = world.clone();
    let client = client.by_clock(move || clock.now_ms());
    let metrics = Metrics::default();
    metrics.audited(world.steady_ms());
    let ids = Arc::new(ids::Maker::new(world.for_store()));
    let till = Arc::new(Till {
        limits: settings.limits.clone(),
        keys: KeyCache::new(&world),
        client,
        serving: ArcSwap::from_pointee(serving),
        metrics,
        routes: Routes::default(),
        tasks: Board::new(settings.tasks.clone()),
        tracker: TaskTracker::new(),
        shutdown: Arc::new(Shutdown::default()),
        running: AtomicUsize::new(0),
        abandoned,
        world,
        store,
    });
    let fetcher = Fetcher {
        client: Client::reaching(passing, private, till.world.names()),
        turns: Arc::new(Semaphore::new(settings.fetch.at_once)),
        settings: settings.fetch.clone(),
        body_bytes: settings.limits.body_bytes,
    };
    let social = SocialDesk::new(till.clone(), settings.social.clone(), fetcher.client.clone());
    let conversations =
        ConversationDesk { till: till.clone(), fetcher, bodies: bodies.clone(), storage: settings.storage };
    let video = VideoDesk {
        till: till.clone(),
        settings: settings.video.clone(),
        reached_at: settings.reached_at(),
        outside: Client::public_by(connecting, till.world.names()),
        secrets: secrets.clone(),
        copies,
    };
    let alerts = AlertDesk::new(
        till.clone(),
        video.outside.clone(),
        settings.video.webhooks.clone(),
        secrets.clone(),
        &settings.data_dir,
    );
    let spool = Arc::new(spool);
    let pictures = pictures.map(Arc::new);
    let images = ImageDesk {
        outside: video.outside.clone(),
        spool: spool.clone(),
        replies: Arc::new(LongReplies::new(pictures.clone(), spool.clone())),
        store: pictures,
        secrets: secrets.clone(),
    };
    let realtime = RealtimeDesk {
        till: till.clone(),
        settings: settings.realtime.clone(),
        bodies: bodies.clone(),
        ids: ids.clone(),
        places: SessionPlaces::default(),
    };
    Arc::new(App {
        people: PeopleDesk::new(&settings.people, secrets.clone(), till.metrics.people.clone()),
        alerts,
        realtime: Arc::new(realtime),
        payments: Arc::new(PaymentDesk::new(till.clone(), settings.payments.clone())),
        images: Arc::new(images),
        conversations: Arc::new(conversations),
        social: Arc::new(social),
        video: Arc::new(video),
        secrets,
        published: Published::default(),
        reloading: tokio::sync::Mutex::default(),
        price_list: PriceList::default(),
        price_versions: PriceVersions::default(),
        publishing: Publishing::default(),
        workflows: WorkflowBoard::default(),
        run_files,
        run_bell: Notify::new(),
        ids,
        bodies,
        spool,
        sockets: Arc::new(Semaphore::new(settings.limits.connections)),
        exports: Arc::default(),
        live: LiveDesk::new(settings.live.clone(), till.metrics.live.clone()),
        jobs: Arc::new(Jobs::new(settings.data_dir.join("exports"), settings.exports)),
        settings,
        till,
    })
}

impl Running {
    /// Stops in order. When this returns every call is closed and committed.
    pub async fn stop(self) {
        self.app.shutdown.stopping.cancel();
        let _ = self.serving.await;
        // Whatever a cut call left behind still has to be closed.
        self.app.shutdown.cut_calls();
        let until = tokio::time::Instant::now() + LAST_CALLS;
        while self.app.running.load(Ordering::Relaxed) > 0 && !self.settling.is_finished() {
            if tokio::time::Instant::now() > until {
                // Nothing should get here; if something does, the next start settles it at its
                // mark.
                tracing::warn!("some calls do not end; their holds are resolved at the next start");
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.app.shutdown.ended.cancel();
        // A restart forgets nothing of how routes do.
        if let Err(error) = self.app.flush_health().await {
            tracing::warn!(%error, "the last counts of route health could not be stored");
        }
        self.app.tracker.close();
        // Every call is closed; a connection that does not end is of no interest any more.
        let _ = tokio::time::timeout(LAST_CONNECTIONS, self.app.tracker.wait()).await;
        self.settling.abort();
        self.app.store.shut().await;
    }
}
