//! `[video]` and `[webhooks]` in tollgate.toml: how finished files and news about them reach customers.

use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSettings {
    pub delivery: Delivery,
    /// Hand out links of our own even where the provider's would do.
    pub own_links: bool,
    /// How long a link of our own opens.
    pub link_time: Duration,
    pub webhooks: WebhookSettings,
}

/// How `/content` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The bytes pass through us.
    Proxy,
    /// The client is sent to the provider's link, where that opens without a key.
    Redirect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Private addresses and plain http may be told too: for receivers beside us.
    pub private: bool,
    /// From connecting to the headers of the answer.
    pub patience: Duration,
    /// How many are told at once.
    pub at_once: usize,
}

impl Default for VideoSettings {
    fn default() -> VideoSettings {
        VideoSettings {
            delivery: Delivery::Proxy,
            own_links: false,
            link_time: Duration::from_secs(24 * 3600),
            webhooks: WebhookSettings { private: false, patience: Duration::from_secs(10), at_once: 16 },
        }
    }
}

impl VideoSettings {
    pub fn read(form: &mut Form<'_>) -> VideoSettings {
        let default = VideoSettings::default();
        let mut table = form.table("video");
        let ways = [("proxy", Delivery::Proxy), ("redirect", Delivery::Redirect)];
        let mut settings = VideoSettings {
            delivery: table.choice_or("delivery", default.delivery, &ways),
            own_links: table.flag_or("own_links", default.own_links),
            link_time: table.duration_or("link_time", default.link_time),
            webhooks: default.webhooks.clone(),
        };
        if settings.link_time < Duration::from_secs(60) {
            table.mistake("link_time", "must be at least a minute");
        }
        table.finish();
        let mut table = form.table("webhooks");
        settings.webhooks = WebhookSettings {
            private: table.flag_or("private", default.webhooks.private),
            patience: table.duration_or("patience", default.webhooks.patience),
            at_once: table.int_or("at_once", default.webhooks.at_once, 1..=1_000),
        };
        table.finish();
        settings
    }
}
