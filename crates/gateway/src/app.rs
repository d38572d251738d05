//! What endpoints and workers see: the till, the desks, and what belongs to neither.

use crate::alerts::AlertDesk;
use crate::call::Till;
use crate::door::bodies::Bodies;
use crate::door::server::ServerContext;
use crate::door::spool::SpoolDisk;
use crate::exports::Exports;
use crate::jobs::Jobs;
use crate::live::LiveDesk;
use crate::payments::PaymentDesk;
use crate::people::PeopleDesk;
use crate::published::Published;
use crate::sale::price_list::PriceList;
use crate::sale::price_versions::PriceVersions;
use crate::sale::{Publishing, WorkflowBoard};
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::who::Register;
use crate::work::conversation::ConversationDesk;
use crate::work::files::SweptFiles;
use crate::work::image::ImageDesk;
use crate::work::realtime::RealtimeDesk;
use crate::work::run_files::RunFiles;
use crate::work::social::SocialDesk;
use crate::work::video::VideoDesk;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use tollgate_store::{CallId, RunId, StoreError, ids};

pub struct App {
    pub till: Arc<Till>,
    pub settings: Settings,
    pub conversations: Arc<ConversationDesk>,
    pub social: Arc<SocialDesk>,
    pub video: Arc<VideoDesk>,
    pub images: Arc<ImageDesk>,
    pub realtime: Arc<RealtimeDesk>,
    pub payments: Arc<PaymentDesk>,
    pub people: PeopleDesk,
    pub alerts: AlertDesk,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) published: Published,
    /// One reload at a time: what was read first must not replace what was read later.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    pub(crate) price_list: PriceList,
    pub(crate) price_versions: PriceVersions,
    /// What putting another catalog on sale needs.
    pub(crate) publishing: Publishing,
    pub(crate) workflows: WorkflowBoard,
    /// Files of runs; nowhere: workflows with files are refused.
    pub(crate) run_files: Option<RunFiles>,
    /// Something is to be done for a run.
    pub(crate) run_bell: Notify,
    pub(crate) ids: Arc<ids::Maker>,
    /// Memory for the bodies of all requests in flight.
    pub bodies: Arc<Bodies>,
    /// Room for the files of uploads in flight.
    pub spool: Arc<SpoolDisk>,
    /// Places for connections that have become WebSockets.
    pub(crate) sockets: Arc<Semaphore>,
    /// Who writes out the usage log.
    pub(crate) exports: Arc<Exports>,
    /// What operators began.
    pub jobs: Arc<Jobs>,
    /// Who watches.
    pub live: LiveDesk,
}

impl App {
    pub fn new_call_id(&self) -> CallId {
        self.ids.call()
    }

    pub fn new_run_id(&self) -> RunId {
        self.ids.run()
    }

    /// Runs that are due are looked for at once.
    pub fn ring_runs(&self) {
        self.run_bell.notify_one();
    }

    /// Reads from the store how far workflows are.
    pub async fn look_at_workflows(&self) -> Result<(), StoreError> {
        self.workflows.look(&self.store, &self.serving.load_full(), self.world.now_ms()).await
    }

    /// Takes files of runs away whose time is over, and counts the others.
    pub async fn sweep_run_files(&self) -> SweptFiles {
        match &self.run_files {
            Some(files) => files.sweep(self.world.sure_ms()).await,
            None => SweptFiles::default(),
        }
    }

    /// Adds what was counted of routes to the store, for all replicas.
    pub async fn flush_health(&self) -> Result<(), StoreError> {
        self.routes.figures.flush(&self.routes.traffic, &self.store, self.world.now_ms()).await
    }

    /// Reads what all replicas have counted.
    pub async fn read_health(&self) -> Result<(), StoreError> {
        let hours = self.settings.price_list.health_hours;
        self.routes.figures.read(&self.store, self.world.now_ms(), hours).await
    }

    /// What is needed to tell who asks.
    pub fn register(&self) -> Register<'_> {
        let till = &self.till;
        let settings = &self.settings;
        let (trusted, people) = (settings.trusted_proxies.as_slice(), &settings.people);
        Register { keys: &till.keys, store: &till.store, world: &till.world, trusted, people, quiet: false }
    }

    /// What its servers have in common.
    pub(crate) fn door(&self) -> Arc<ServerContext> {
        Arc::new(ServerContext {
            limits: self.settings.limits.clone(),
            pages: self.settings.pages.clone(),
            trusted: self.settings.trusted_proxies.clone(),
            meter: self.metrics.connections.clone(),
            tracker: self.tracker.clone(),
            shutdown: self.shutdown.clone(),
            sockets: self.sockets.clone(),
        })
    }
}

/// An app is its till and more: endpoints read what is the till's by its own name.
impl Deref for App {
    type Target = Till;

    fn deref(&self) -> &Till {
        &self.till
    }
}
