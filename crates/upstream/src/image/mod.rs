//! Pictures at a provider: what is asked, how one maker's request is written, and what its answer
//! holds.
//!
//! A maker writes requests and reads replies; sending, waiting and counting are the gateway's.
//! Making a picture costs money, so nothing here is ever repeated.

mod body;

pub use body::PictureFile;
pub(crate) use body::{class_or_pixels, data_links, dropped, json_with_files, put_size};

use crate::video::Asking;
use crate::{Fault, Outgoing, Provider, WholeReply};
use serde_json::Value;
use std::time::Duration;
use tollgate_media::image::{ImagePlan, Layout};
use tollgate_wire::Problem;

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct ImageJob<'a> {
    pub plan: &'a ImagePlan,
    /// The provider's name for the model.
    pub model: &'a str,
    /// Which of the maker's ways, where it has several; empty: the usual one.
    pub api: &'a str,
    /// The pictures of a form.
    pub files: &'a [PictureFile],
    /// The maker is sent how to hand pictures over.
    pub sends_format: bool,
    /// It is asked for a stream of events.
    pub streams: bool,
    /// Pictures of this request: all of them, or one of several requests.
    pub n: u64,
    /// Our id of the call, given to providers that keep it.
    pub external_id: &'a str,
    /// Random bytes that no caller knows.
    pub drawn: [u8; 16],
}

/// What a reply holds besides pictures in base64.
#[derive(Debug, Default)]
pub struct PictureReply {
    /// Pictures by their link, each with what became of its prompt.
    pub links: Vec<(String, String)>,
    /// Why pictures are missing: what the caller gets to read where none is there.
    pub failure: Option<Fault>,
    /// The report of what was used, as JSON.
    pub usage: Option<String>,
    /// They are still being made: the maker's id of the task.
    pub task: Option<String>,
}

/// What a maker does at most, whichever of its models is asked.
#[derive(Clone, Copy, Debug)]
pub struct PictureLimits {
    /// Pictures of one call.
    pub most: u64,
    /// Pictures that an edit brings along; 0: there are no edits.
    pub sources: u64,
    pub masks: bool,
}

impl PictureLimits {
    /// Nothing is known that it does not do.
    pub const NONE: PictureLimits = PictureLimits { most: u64::MAX, sources: u64::MAX, masks: true };
}

/// How one kind of provider makes pictures.
pub trait ImageMaker: Sync + std::fmt::Debug {
    /// The request, or why this maker cannot take it. Asked before anything is held, too.
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem>;

    /// Members of the request that are not sent.
    fn drops(&self, provider: &Provider, job: &ImageJob<'_>) -> Vec<String>;

    /// It is sent how good the picture shall be.
    fn takes_quality(&self, _: &Provider) -> bool {
        false
    }

    /// Its ways, as a model's `api` names them.
    fn ways(&self) -> &'static [&'static str] {
        &[""]
    }

    /// What it does at most in this way.
    fn limits(&self, provider: &Provider, api: &str) -> PictureLimits;

    /// One request makes one picture: several are asked for one by one.
    fn repeats(&self, _api: &str) -> bool {
        false
    }

    /// It can stream events as OpenAI does.
    fn streams(&self, _: &Provider) -> bool {
        false
    }

    /// Where its answer has pictures in base64.
    fn layout(&self, _api: &str) -> &'static Layout {
        &LINKS_ONLY
    }

    /// What a reply of status 200 holds; the letters of its pictures are taken out.
    fn read(&self, api: &str, reply: &Value) -> Result<PictureReply, Fault>;

    /// Asks for a task; `None` where there are none.
    fn poll(&self, _asking: &Asking<'_>, _job: &ImageJob<'_>, _task: &str) -> Option<Outgoing> {
        None
    }

    /// Between two questions about a task.
    fn poll_every(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// What a reply that is not the one hoped for means.
    fn refused(&self, reply: &WholeReply) -> Fault;
}

/// No place has letters.
const LINKS_ONLY: Layout = Layout { picture: &["", "", "", "", "", "", "", ""], prompt: None, draft: None };

/// A report of usage that is worth keeping.
pub(crate) fn usage(reply: &Value) -> Option<String> {
    let text = reply.get("usage").filter(|usage| usage.is_object())?.to_string();
    (text.len() <= 4_096).then_some(text)
}
