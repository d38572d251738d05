//! `[social]` in tollgate.toml.

use std::collections::HashMap;
use std::time::Duration;
use tollgate_catalog::form::Form;
use tollgate_store::SocialLimit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocialSettings {
    /// The most of one day, over all platforms.
    pub daily: SocialLimit,
    /// And of one platform.
    pub platforms: HashMap<String, SocialLimit>,
    /// How long "nothing found" is believed, for lists and for single things.
    pub no_result_lists: Duration,
    pub no_result_things: Duration,
    /// An account's answers without data per hour that cost the operator something.
    pub no_results_per_hour: u32,
    pub auto_pause: bool,
    /// An automatic pause lets one call through after this long.
    pub probe_after: Duration,
    /// Before a fetch that surely cost nothing is tried once more; zero: it is not.
    pub retry_pause: Duration,
    /// The longest wait for a turn on a route.
    pub patience: Duration,
}

impl Default for SocialSettings {
    fn default() -> SocialSettings {
        SocialSettings {
            daily: SocialLimit::default(),
            platforms: HashMap::new(),
            no_result_lists: Duration::from_secs(600),
            no_result_things: Duration::from_secs(3_600),
            no_results_per_hour: 200,
            auto_pause: true,
            probe_after: Duration::from_secs(900),
            retry_pause: Duration::from_secs(1),
            patience: Duration::from_secs(2),
        }
    }
}

impl SocialSettings {
    pub fn read(form: &mut Form<'_>) -> SocialSettings {
        let default = SocialSettings::default();
        let mut table = form.table("social");
        let daily = limit(&mut table);
        let mut platforms = HashMap::new();
        for (key, mut own) in table.named("platform") {
            platforms.insert(key, limit(&mut own));
            own.finish();
        }
        let settings = SocialSettings {
            daily,
            platforms,
            no_result_lists: table.duration_or("no_result_lists", default.no_result_lists),
            no_result_things: table.duration_or("no_result_things", default.no_result_things),
            no_results_per_hour: table.int_or("no_results_per_hour", default.no_results_per_hour, 0..=1_000_000),
            auto_pause: table.flag_or("auto_pause", default.auto_pause),
            probe_after: table.duration_or("probe_after", default.probe_after),
            retry_pause: table.duration_or("retry_pause", default.retry_pause),
            patience: table.duration_or("patience", default.patience),
        };
        table.finish();
        settings
    }

    /// The limits of all platforms and of this one.
    pub fn limits(&self, platform: &str) -> (SocialLimit, SocialLimit) {
        (self.daily, self.platforms.get(platform).copied().unwrap_or_default())
    }
}

fn limit(form: &mut Form<'_>) -> SocialLimit {
    SocialLimit {
        calls: form.opt_int("daily_calls", 0..=i64::MAX / 2),
        cost: form.opt_int("daily_cost", 0..=i64::MAX / 2),
    }
}
