//! What a poll found out.

use super::{Alike, FileLink, read};
use crate::safe_text;
use serde_json::Value;
use tollgate_media::video::Failure;

/// Where the provider says a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoStanding {
    Queued,
    Running,
    Succeeded,
    /// It will never succeed.
    Ended(VideoFailure),
}

/// The ways not to succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoFailure {
    Failed,
    Cancelled,
    /// It waited or ran too long at the provider.
    Expired,
    /// The provider no longer knows the task, or never did.
    Forgotten,
}

/// What the provider counted, where it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoUsage {
    /// Milliseconds of video it bills.
    pub millis: Option<u64>,
    pub tokens: Option<u64>,
    /// The resolution it says it made, as it spells it.
    pub resolution: Option<String>,
    /// The provider's own words, for the usage row.
    pub raw: Option<String>,
}

/// One poll's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoReport {
    pub standing: VideoStanding,
    /// A status word nobody has seen before; the task counts as running.
    pub strange: Option<String>,
    pub progress: Option<u8>,
    /// Milliseconds of the video that was made, where the provider tells. What it bills may be
    /// more: an edit's source counts too.
    pub length: Option<u64>,
    /// The finished file. Success without a link is not yet success.
    pub link: Option<FileLink>,
    /// The file step leads to the link.
    pub file: Option<String>,
    pub used: VideoUsage,
    pub failure: Option<Failure>,
}

/// Where a lost task was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VideoSearch {
    /// It carries our id.
    Exactly(String),
    /// Tasks of the right kind and time; one of them may be it. Where the list was not read to its
    /// end, it may be none of them.
    Perhaps { alike: Vec<Alike>, whole: bool },
    /// The provider has no such task.
    Nothing,
}

/// One page of a provider's list, or its answer about our id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskListPage {
    /// The task that carries our id.
    pub ours: Option<String>,
    /// Tasks that may be the one.
    pub alike: Vec<Alike>,
    /// Where to go on, if what was sought may still come.
    pub next: Option<String>,
}

/// Longest usage text stored.
const RAW: usize = 2048;
const CODE: usize = 128;
const TEXT: usize = 1024;

/// Used where a provider gives a text but no code.
pub(crate) const TASK_FAILED: &str = "task_failed";

impl VideoReport {
    /// From a status word and the provider's table of words.
    pub(crate) fn of(word: &str, words: &[(&str, VideoStanding)]) -> VideoReport {
        let known = words.iter().find(|(name, _)| *name == word).map(|(_, standing)| *standing);
        VideoReport {
            standing: known.unwrap_or(VideoStanding::Running),
            strange: known.is_none().then(|| safe_text(word, 64)),
            progress: None,
            length: None,
            link: None,
            file: None,
            used: VideoUsage::default(),
            failure: None,
        }
    }

    /// From an object with a `status` and, when it has ended badly, an `error` of `code` and
    /// `message`. `None`: it has no status.
    pub(crate) fn from_status(object: &Value, words: &[(&str, VideoStanding)]) -> Option<VideoReport> {
        let error = &object["error"];
        let code = read::id(&error["code"]);
        Some(VideoReport::of(object["status"].as_str()?, words).because(code.as_deref(), error["message"].as_str()))
    }

    /// Adds the reason when the task has ended badly. The text is made safe for the caller.
    pub(crate) fn because(mut self, code: Option<&str>, text: Option<&str>) -> VideoReport {
        let VideoStanding::Ended(ending) = self.standing else { return self };
        let code = code.filter(|code| !code.is_empty()).unwrap_or(match ending {
            VideoFailure::Failed => TASK_FAILED,
            VideoFailure::Cancelled => "task_cancelled",
            VideoFailure::Expired => "task_expired",
            VideoFailure::Forgotten => "task_unknown",
        });
        let otherwise = match ending {
            VideoFailure::Failed => "The provider could not make the video.",
            VideoFailure::Cancelled => "The task was cancelled at the provider.",
            VideoFailure::Expired => "The task expired at the provider.",
            VideoFailure::Forgotten => "The provider does not know the task any more.",
        };
        let text = text.map(|text| read::text(text, TEXT)).filter(|text| !text.is_empty());
        let message = text.unwrap_or_else(|| otherwise.to_owned());
        self.failure = Some(Failure { code: safe_text(code, CODE), message });
        self
    }

    /// The video can be fetched.
    pub fn is_ready(&self) -> bool {
        self.standing == VideoStanding::Succeeded && self.link.is_some()
    }
}

impl VideoUsage {
    /// Whether another resolution was made than this one. What is not reported is no other.
    pub fn is_other_than(&self, resolution: &str) -> bool {
        let plain = |text: &str| text.trim().to_ascii_lowercase().trim_end_matches('p').to_owned();
        self.resolution.as_deref().is_some_and(|reported| plain(reported) != plain(resolution))
    }

    pub(crate) fn raw(value: &Value) -> Option<String> {
        let text = (!value.is_null()).then(|| value.to_string())?;
        Some(text[..text.floor_char_boundary(RAW)].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolutions_in_any_spelling() {
        for (reported, asked, other) in [
            (Some("720"), "720P", false),
            (Some("720p"), "720P", false),
            (Some("1080"), "720P", true),
            (Some("2K"), "2K", false),
            (Some("2K"), "768P", true),
            (None, "720P", false),
        ] {
            let used = VideoUsage { resolution: reported.map(str::to_owned), ..VideoUsage::default() };
            assert_eq!(used.is_other_than(asked), other, "{reported:?} {asked}");
        }
    }
}
