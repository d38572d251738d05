//! `[workflows]` in tollgate.toml: how runs are looked after, and where their files lie.

use super::video::copy_to;
use super::{ConfigSource, CopyTo};
use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// How often due runs are looked for.
    pub look_every: Duration,
    /// Runs worked on at once, by this process.
    pub parallel: usize,
    /// Runs of an account that have not ended.
    pub open: u32,
    /// How long a run may take before it is stopped.
    pub time: Duration,
    /// How long the run of a fixture proves that a workflow works.
    pub evidence: Duration,
    /// Where files of runs are stored; `None`: nowhere, and workflows that need files are refused.
    pub copy_to: Option<CopyTo>,
    /// How long a file is stored.
    pub keep: Duration,
    /// Bytes of one account.
    pub account_bytes: u64,
    /// Bytes of all accounts together.
    pub total_bytes: u64,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        let day = Duration::from_secs(24 * 3_600);
        RunSettings {
            look_every: Duration::from_secs(1),
            parallel: 64,
            open: 20,
            time: day,
            evidence: 30 * day,
            copy_to: None,
            keep: 30 * day,
            account_bytes: 1 << 30,
            total_bytes: 8 << 30,
        }
    }
}

impl RunSettings {
    /// `own`: the folder that is used where none is named.
    pub fn read(form: &mut Form<'_>, source: &ConfigSource, own: Option<CopyTo>) -> RunSettings {
        let default = RunSettings::default();
        let mut table = form.table("workflows");
        let settings = RunSettings {
            look_every: table.duration_or("look_every", default.look_every),
            parallel: table.int_or("parallel", default.parallel, 1..=10_000),
            open: table.int_or("open_runs", default.open, 1..=1_000),
            time: table.duration_or("run_time", default.time),
            evidence: table.duration_or("evidence", default.evidence),
            copy_to: copy_to(&mut table, source).or(own),
            keep: table.duration_or("keep", default.keep),
            account_bytes: table.size_or("account_bytes", default.account_bytes),
            total_bytes: table.size_or("total_bytes", default.total_bytes),
        };
        if settings.keep < settings.time {
            table.mistake("keep", "must be at least run_time: a run needs its files to its end");
        }
        table.finish();
        settings
    }
}
