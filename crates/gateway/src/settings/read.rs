//! From files and environment to checked values, all mistakes at once.
//!
//! Every key can be set from the environment: `TOLLGATE__LIMITS__BODY_BYTES=1MiB` lays a value over
//! `body_bytes` in `[limits]`, `TOLLGATE__PROVIDER__SIM__BASE_URL` over a provider's. The
//! environment comes in as a value, read once by the executable.

use super::jobs::export_room;
use super::{
    CatalogSource, CopyTo, FetchSettings, ImageSettings, LiveSettings, Pages, PaymentSettings, PeopleSettings,
    PriceListSettings, ProbeSettings, RealtimeSettings, RunSettings, ServerLimits, Settings, SocialSettings,
    StorageSettings, TaskSettings, TlsFiles, VideoSettings,
};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Mistake;
use tollgate_catalog::form::{Form, Mistakes, Override};
use tollgate_catalog::import::LOCK_FILE;
use tollgate_upstream::BaseUrl;

const PREFIX: &str = "TOLLGATE__";
/// The database is written every 200 ms at the latest; a busy disk takes longer.
const LEAST_BEHIND: Duration = Duration::from_secs(1);

/// Where the configuration comes from. Read again as a whole at each reload.
#[derive(Clone)]
pub struct ConfigSource {
    pub file: PathBuf,
    pub environment: Arc<BTreeMap<String, String>>,
}

impl ConfigSource {
    /// The settings alone, for those who only need to find the store: providers and catalog may be
    /// wrong.
    pub fn load_settings(&self) -> Result<Settings, Vec<Mistake>> {
        let mistakes = Mistakes::default();
        let name = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|error| vec![file_mistake(&name, &error)])?;
        let mut form = Form::parse_with(&name, &text, &self.overrides(), &mistakes);
        let settings = self.settings(&mut form);
        form.ignore_rest();
        mistakes.result(settings)
    }

    pub(crate) fn overrides(&self) -> Vec<Override> {
        let ours = self.environment.iter().filter_map(|(name, value)| Some((name, name.strip_prefix(PREFIX)?, value)));
        ours.map(|(name, path, value)| Override {
            path: path.split("__").map(str::to_owned).collect(),
            value: value.clone(),
            origin: name.clone(),
        })
        .collect()
    }

    /// Paths in the file are relative to the file.
    pub(crate) fn beside(&self, path: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new(".")).join(path)
    }

    pub(crate) fn settings(&self, form: &mut Form<'_>) -> Settings {
        let default = std::net::SocketAddr::from(([127, 0, 0, 1], 8080));
        let database = form.text_or("database", "sqlite");
        if database != "sqlite" && !database.starts_with("postgres://") && !database.starts_with("postgresql://") {
            form.mistake("database", "must be \"sqlite\" or an address that starts with postgres://");
        }
        let public_url = public_url(form);
        let settings = Settings {
            listen: form.parsed_or("listen", default),
            tls: TlsFiles::read(form, self),
            metrics_listen: form.opt_parsed("metrics_listen"),
            data_dir: self.beside(&form.text_or("data_dir", "data")),
            catalog_dir: self.beside(&form.text_or("catalog_dir", "catalog")),
            catalog_source: form.choice_or(
                "catalog_source",
                CatalogSource::File,
                &[("file", CatalogSource::File), ("database", CatalogSource::Database)],
            ),
            database,
            trusted_proxies: form.parsed_list::<IpNet>("trusted_proxies"),
            pages: pages(form),
            limits: ServerLimits::default(),
            social: SocialSettings::read(form),
            video: VideoSettings::read(form, self),
            images: ImageSettings::default(),
            tasks: TaskSettings::read(form),
            runs: RunSettings::default(),
            fetch: FetchSettings::read(form),
            realtime: RealtimeSettings::read(form),
            price_list: PriceListSettings::read(form),
            probes: ProbeSettings::read(form),
            storage: StorageSettings::read(form),
            payments: PaymentSettings::read(form, self),
            people: PeopleSettings::read(form, self, public_url.as_deref()),
            live: LiveSettings::read(form),
            exports: export_room(form),
            public_url,
            secrets_file: PathBuf::new(),
            new_secrets: false,
        };
        let secrets_file = match form.opt_text("secrets_file") {
            Some(path) => self.beside(&path),
            None => settings.data_dir.join("secrets.key"),
        };
        let mut table = form.table("limits");
        let limits = limits(&mut table);
        table.finish();
        // Where replicas share a database they have no folder in common that we know of.
        let alone = |name: &str| (settings.database == "sqlite").then(|| CopyTo::Folder(settings.data_dir.join(name)));
        let images = ImageSettings::read(form, self, alone("pictures"));
        let runs = RunSettings::read(form, self, alone("runs"));
        if settings.people.mail.is_some() && settings.reached_at().is_none() {
            form.mistake("public_url", "must be said where mail with links is sent ([people.mail])");
        }
        let people = settings.people.clone().reached_at(settings.public_url.as_deref(), settings.tls.is_some());
        Settings { limits, secrets_file, images, runs, people, ..settings }
    }

    /// A text that does not stand in the file: `NAME_env` names a variable, `NAME_file` a file.
    pub(crate) fn hidden(&self, form: &mut Form<'_>, name: &str) -> Option<String> {
        let keys = [format!("{name}_env"), format!("{name}_file")];
        let [by_variable, by_file] = &keys;
        match (form.opt_text(by_variable), form.opt_text(by_file)) {
            (Some(_), Some(_)) => {
                form.mistake(by_file, format!("give {by_variable} or {by_file}, not both"));
                None
            }
            (Some(variable), None) => {
                let value = self.environment.get(&variable).filter(|value| !value.is_empty()).cloned();
                if value.is_none() {
                    form.mistake(by_variable, format!("the environment variable {variable} is not set"));
                }
                value
            }
            (None, Some(file)) => std::fs::read_to_string(self.beside(&file))
                .map_err(|error| form.mistake(by_file, format!("cannot be read: {error}")))
                .ok(),
            (None, None) => None,
        }
    }
}

/// Every `.toml` of the directory and of the folders in it with its text, by name. What the
/// commands that write catalogs remember is no part of it.
pub fn catalog_files(dir: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for path in catalog_paths(dir)? {
        let is_lock = path.file_name().is_some_and(|name| name == LOCK_FILE);
        if !is_lock && path.extension().is_some_and(|ending| ending == "toml") {
            files.push((path.display().to_string(), std::fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

/// What the commands that write catalogs remember of the folder, if they wrote into it.
pub fn catalog_lock(dir: &Path) -> Option<String> {
    std::fs::read_to_string(dir.join(LOCK_FILE)).ok()
}

/// What lies in the directory and in the folders in it.
pub fn catalog_paths(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            for inner in std::fs::read_dir(&path)? {
                paths.push(inner?.path());
            }
        } else {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn public_url(form: &mut Form<'_>) -> Option<String> {
    let text = form.opt_text("public_url")?;
    if let Err(bad) = BaseUrl::parse(&text) {
        form.mistake("public_url", bad.to_string().replace("base_url", "it"));
    }
    Some(text.trim_end_matches('/').to_owned())
}

fn pages(form: &mut Form<'_>) -> Pages {
    if form.has("cors_origins") { Pages::of(form.parsed_list("cors_origins")) } else { Pages::All }
}

fn limits(form: &mut Form<'_>) -> ServerLimits {
    let default = ServerLimits::default();
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let body_bytes = bytes(form.size_or("body_bytes", default.body_bytes as u64));
    let bodies_bytes = form.opt_size("bodies_bytes").map(bytes);
    if bodies_bytes.is_some_and(|all| all < body_bytes.saturating_mul(2)) {
        form.mistake("bodies_bytes", "must hold two of the largest bodies (body_bytes) at least");
    }
    let upload_bytes = bytes(form.size_or("upload_bytes", default.upload_bytes as u64));
    let spool_bytes = bytes(form.size_or("spool_bytes", default.spool_bytes as u64));
    if spool_bytes < upload_bytes.saturating_mul(2) {
        form.mistake("spool_bytes", "must hold two of the largest uploads (upload_bytes) at least");
    }
    let ledger_behind = form.duration_or("ledger_behind", default.ledger_behind);
    if ledger_behind < LEAST_BEHIND {
        form.mistake("ledger_behind", "must be 1s at least");
    }
    ServerLimits {
        header_time: form.duration_or("header_time", default.header_time),
        idle_time: form.duration_or("idle_time", default.idle_time),
        body_time: form.duration_or("body_time", default.body_time),
        body_bytes,
        upload_bytes,
        spool_bytes,
        write_time: form.duration_or("write_time", default.write_time),
        connections: form.int_or("connections", default.connections, 1..=1_000_000),
        connections_per_address: form.opt_int("connections_per_address", 1..=1_000_000),
        handshakes: form.int_or("handshakes", default.handshakes, 1..=1_000_000),
        bodies_bytes,
        calls: form.int_or("calls", default.calls, 1..=1_000_000),
        h2_streams: form.int_or("h2_streams", default.h2_streams, 1..=10_000),
        h2_window: u32::try_from(form.size_or("h2_window", u64::from(default.h2_window))).unwrap_or(default.h2_window),
        heartbeat: form.duration_or("heartbeat", default.heartbeat),
        stream_time: form.duration_or("stream_time", default.stream_time),
        drain_time: form.duration_or("drain_time", default.drain_time),
        connect_time: form.duration_or("connect_time", default.connect_time),
        ledger_time: form.duration_or("ledger_time", default.ledger_time),
        ledger_behind,
        idle_upstream: default.idle_upstream,
        stream_hold: form.int_or("stream_hold_tokens", default.stream_hold, 1..=1_000_000_000),
    }
}

pub(crate) fn file_mistake(file: &str, error: &std::io::Error) -> Mistake {
    whole_mistake(file, &format!("cannot be read: {error}"))
}

pub(crate) fn whole_mistake(file: &str, reason: &str) -> Mistake {
    Mistake { file: file.to_owned(), line: 0, field: String::new(), reason: reason.to_owned() }
}
