//! The desk for videos: what it keeps beside the till.

use super::{CopyStore, StoredPlan, StoredResult};
use crate::call::Till;
use crate::secrets::Secrets;
use crate::settings::VideoSettings;
use std::sync::Arc;
use tollgate_media::video::Api;
use tollgate_upstream::Client;
use tollgate_upstream::video::VideoUsage;

pub struct VideoDesk {
    pub(crate) till: Arc<Till>,
    pub(crate) settings: VideoSettings,
    /// Where others reach us, as far as we know by ourselves.
    pub(crate) reached_at: Option<String>,
    /// For addresses that providers and customers wrote down: public ones only.
    pub(crate) outside: Client,
    pub(crate) secrets: Arc<Secrets>,
    /// Our own copies of finished videos, where the operator wants them.
    pub copies: Option<CopyStore>,
}

/// What was written down of a video, as far as this version can read it.
#[derive(Clone, Debug)]
pub struct VideoPlan {
    pub stored: StoredPlan,
    pub api: Api,
}

/// A finished video, and what its provider counted.
#[derive(Clone, Debug)]
pub struct MadeVideo {
    pub file: StoredResult,
    pub used: VideoUsage,
}
