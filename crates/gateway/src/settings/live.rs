//! `[live]` in tollgate.toml: how many may watch at once, on one replica.

use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSettings {
    /// Streams of customers in all, of one account, of one session or key, and of one address.
    pub streams: usize,
    pub streams_per_account: usize,
    pub streams_per_session: usize,
    pub streams_per_address: usize,
    /// Streams of operators, which have places of their own.
    pub operator_streams: usize,
    /// So often it is looked whether somebody may still watch.
    pub check_every: Duration,
    pub longest: Duration,
}

impl Default for LiveSettings {
    fn default() -> LiveSettings {
        LiveSettings {
            streams: 500,
            streams_per_account: 50,
            streams_per_session: 10,
            streams_per_address: 100,
            operator_streams: 50,
            check_every: Duration::from_secs(5),
            longest: Duration::from_secs(60 * 60),
        }
    }
}

impl LiveSettings {
    pub fn read(form: &mut Form<'_>) -> LiveSettings {
        let default = LiveSettings::default();
        let mut table = form.table("live");
        let settings = LiveSettings {
            streams: table.int_or("streams", default.streams, 0..=100_000),
            streams_per_account: table.int_or("streams_per_account", default.streams_per_account, 1..=100_000),
            streams_per_session: table.int_or("streams_per_session", default.streams_per_session, 1..=100_000),
            streams_per_address: table.int_or("streams_per_address", default.streams_per_address, 1..=100_000),
            operator_streams: table.int_or("operator_streams", default.operator_streams, 0..=10_000),
            check_every: table.duration_or("check_every", default.check_every),
            longest: table.duration_or("longest", default.longest),
        };
        if settings.check_every < Duration::from_millis(100) || settings.check_every > Duration::from_secs(60) {
            table.mistake("check_every", "must be from 100ms to 60s");
        }
        table.finish();
        settings
    }
}
