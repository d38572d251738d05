//! What this crate's own unit tests share.

use crate::app::App;
use crate::sale::Serving;
use crate::secrets::Secrets;
use crate::settings::SocialSettings;
use crate::settings::VideoSettings;
use crate::settings::{FetchSettings, ImageSettings, ServerLimits, Settings, TaskSettings};
use crate::world::World;
use std::sync::Arc;
use tollgate_store::{AccountId, DataLocation, KeyId, Options, Store, Task, TaskId, TaskState};

/// An app over an empty store in a fresh temporary folder, with an empty catalog.
pub async fn bare_app() -> Arc<App> {
    bare_app_with(|_| {}).await
}

/// The same with other settings.
pub async fn bare_app_with(set: impl FnOnce(&mut Settings)) -> Arc<App> {
    let dir = tempfile::tempdir().expect("a temporary folder").keep();
    let world = World::new(|| 1_700_000_000_000, |bytes| bytes.fill(7));
    let place = DataLocation { url: "sqlite".to_owned(), data_dir: dir.clone() };
    let opened = Store::open(place, Options::default(), world.for_store()).await.expect("a store");
    let mut settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: None,
        metrics_listen: None,
        data_dir: dir.clone(),
        catalog_dir: dir.clone(),
        catalog_source: crate::settings::CatalogSource::File,
        database: "sqlite".to_owned(),
        trusted_proxies: Vec::new(),
        pages: crate::settings::Pages::All,
        social: SocialSettings::default(),
        video: VideoSettings::default(),
        images: ImageSettings::default(),
        public_url: None,
        secrets_file: dir.join("secrets.key"),
        new_secrets: false,
        tasks: TaskSettings::default(),
        runs: crate::settings::RunSettings::default(),
        fetch: FetchSettings::default(),
        realtime: crate::settings::RealtimeSettings::default(),
        price_list: crate::settings::PriceListSettings::default(),
        probes: crate::settings::ProbeSettings::default(),
        storage: crate::settings::StorageSettings::default(),
        payments: crate::settings::PaymentSettings::default(),
        people: crate::settings::PeopleSettings::default(),
        live: crate::settings::LiveSettings::default(),
        exports: Default::default(),
        limits: ServerLimits::default(),
    };
    set(&mut settings);
    let serving = Serving {
        catalog: tollgate_catalog::load(&[]).expect("nothing is wrong"),
        providers: Default::default(),
        offers: Default::default(),
        workflows: Default::default(),
        served: Vec::new(),
        text: Default::default(),
    };
    let (abandoned, _) = tokio::sync::mpsc::unbounded_channel();
    let secrets = Secrets::read("a-secret-for-tests-of-thirty-two-characters").expect("a secret");
    let client = crate::start::client(&settings, &world);
    crate::start::build(
        settings,
        serving,
        opened.store,
        client,
        world,
        (secrets, crate::start::FileStores::default()),
        abandoned,
    )
}

/// A task that nobody has said anything about.
pub fn bare_task(state: TaskState) -> Task {
    Task {
        id: TaskId([1; 16]),
        account: AccountId([2; 16]),
        key: KeyId([3; 16]),
        endpoint: "/v1/videos".into(),
        model: "kling-v3".into(),
        provider: None,
        upstream_model: None,
        upstream_id: None,
        upstream_host: None,
        upstream_key: None,
        state,
        progress: None,
        plan: String::new(),
        result: None,
        failure: None,
        webhook_url: None,
        created_at: 0,
        checked_at: None,
        unknown_since: None,
        heard: None,
        absent_since: None,
        made_since: None,
        ended_at: None,
    }
}
