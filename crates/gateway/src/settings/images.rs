//! `[images]`: where pictures of our own are stored, how long, and how many bytes of them.

use super::video::copy_to;
use super::{ConfigSource, CopyTo};
use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSettings {
    /// Where they are stored; `None`: nowhere, and links are refused for makers that have none.
    pub copy_to: Option<CopyTo>,
    /// How long a picture is stored and its link opens.
    pub keep: Duration,
    /// Bytes of one account.
    pub account_bytes: u64,
    /// Bytes of all accounts together.
    pub total_bytes: u64,
}

impl Default for ImageSettings {
    fn default() -> ImageSettings {
        ImageSettings {
            copy_to: None,
            keep: Duration::from_secs(24 * 3600),
            account_bytes: 1 << 30,
            total_bytes: 8 << 30,
        }
    }
}

impl ImageSettings {
    /// `own`: the folder that is used where none is named.
    pub fn read(form: &mut Form<'_>, source: &ConfigSource, own: Option<CopyTo>) -> ImageSettings {
        let default = ImageSettings::default();
        let mut table = form.table("images");
        let place = copy_to(&mut table, source).or(own);
        let settings = ImageSettings {
            copy_to: place.filter(|_| table.flag_or("links", true)),
            keep: table.duration_or("keep", default.keep),
            account_bytes: table.size_or("account_bytes", default.account_bytes),
            total_bytes: table.size_or("total_bytes", default.total_bytes),
        };
        if settings.keep < Duration::from_secs(60) {
            table.mistake("keep", "must be at least a minute");
        }
        table.finish();
        settings
    }
}
