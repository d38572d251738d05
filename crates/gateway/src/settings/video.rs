//! `[video]` and `[webhooks]` in tollgate.toml: how finished files and news about them reach
//! customers.

use crate::settings::ConfigSource;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSettings {
    pub delivery: Delivery,
    /// Hand out links of our own even where the provider's would do.
    pub own_links: bool,
    /// How long a link of our own opens.
    pub link_time: Duration,
    /// Where finished files are copied to; nowhere: the provider's are passed on.
    pub copy_to: Option<CopyTo>,
    /// How long copies are retained; for ever if left out.
    pub keep: Option<Duration>,
    /// The longest making of one copy.
    pub copy_time: Duration,
    /// How many are made at once.
    pub copies_at_once: usize,
    pub webhooks: WebhookSettings,
}

/// A place for copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTo {
    Folder(PathBuf),
    S3(Bucket),
}

/// A bucket that speaks S3.
#[derive(Clone, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    /// Names of copies begin with it.
    pub prefix: String,
    pub region: String,
    /// For servers other than Amazon's.
    pub endpoint: Option<String>,
    /// Access key and secret; without them requests are not signed.
    pub keys: Option<(String, String)>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}/{}", self.name, self.prefix)
    }
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
    /// Private addresses and plain http may be notified too: for receivers beside us.
    pub private: bool,
    /// From connecting to the headers of the answer.
    pub patience: Duration,
    /// How many are notified at once.
    pub at_once: usize,
    /// Accounts that are notified of all their tasks, by id, where the request names no address of
    /// its own.
    pub accounts: HashMap<String, String>,
}

impl Default for VideoSettings {
    fn default() -> VideoSettings {
        VideoSettings {
            delivery: Delivery::Proxy,
            own_links: false,
            link_time: Duration::from_secs(24 * 3600),
            copy_to: None,
            keep: None,
            copy_time: Duration::from_secs(10 * 60),
            copies_at_once: 8,
            webhooks: WebhookSettings {
                private: false,
                patience: Duration::from_secs(10),
                at_once: 16,
                accounts: HashMap::new(),
            },
        }
    }
}

impl VideoSettings {
    pub fn read(form: &mut Form<'_>, source: &ConfigSource) -> VideoSettings {
        let default = VideoSettings::default();
        let mut table = form.table("video");
        let ways = [("proxy", Delivery::Proxy), ("redirect", Delivery::Redirect)];
        let mut settings = VideoSettings {
            delivery: table.choice_or("delivery", default.delivery, &ways),
            own_links: table.flag_or("own_links", default.own_links),
            link_time: table.duration_or("link_time", default.link_time),
            copy_to: copy_to(&mut table, source),
            keep: table.opt_duration("keep"),
            copy_time: table.duration_or("copy_time", default.copy_time),
            copies_at_once: table.int_or("copies_at_once", default.copies_at_once, 1..=1_000),
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
            accounts: HashMap::new(),
        };
        for (account, mut own) in table.named("account") {
            let url = own.text("url");
            match super::webhook_address(&url, &settings.webhooks) {
                Ok(url) => {
                    settings.webhooks.accounts.insert(account, url);
                }
                Err(refusal) => own.mistake("url", refusal.message.replace("`webhook_url` ", "")),
            }
            own.finish();
        }
        table.finish();
        settings
    }
}

/// A folder beside the file, or `s3://BUCKET/PREFIX` with the table `s3` beside it.
pub(super) fn copy_to(form: &mut Form<'_>, source: &ConfigSource) -> Option<CopyTo> {
    let place = form.opt_text("copy_to");
    let mut table = form.table("s3");
    let region = table.text_or("region", "us-east-1");
    let endpoint = table.opt_text("endpoint");
    let (access, secret) = (source.hidden(&mut table, "access"), source.hidden(&mut table, "secret"));
    if access.is_some() != secret.is_some() {
        table.mistake_here("access and secret are needed both, or neither for a bucket that asks for none");
    }
    table.finish();
    let place = place?;
    let Some(bucket) = place.strip_prefix("s3://") else {
        return Some(CopyTo::Folder(source.beside(&place)));
    };
    let (name, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
    if name.is_empty() {
        form.mistake("copy_to", "names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX");
    }
    let keys = access.zip(secret).map(|(access, secret)| (access.trim().to_owned(), secret.trim().to_owned()));
    let prefix = prefix.trim_matches('/').to_owned();
    Some(CopyTo::S3(Bucket { name: name.to_owned(), prefix, region, endpoint, keys }))
}
