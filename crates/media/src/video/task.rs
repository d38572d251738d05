//! One task, two writers: OpenAI's shape for `/v1/videos`, the legacy shape for
//! `/v1/video/generations`.
//!
//! Neither shows ids, units or payloads of a provider. A task whose fate is being found out is
//! still in progress for the caller, and as far as it was.

use super::{Warning, size};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tollgate_wire::{MESSAGE, cut};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoState {
    /// Written down, not yet with a provider.
    Accepted,
    /// Waiting at the provider.
    Queued,
    Running,
    /// Sent, and its provider never said that it has it: being reconciled. One of which it did say
    /// something stays where that was.
    Unknown,
    Completed,
    Failed,
}

impl VideoState {
    /// The word of OpenAI's shape.
    pub fn openai(self) -> &'static str {
        match self {
            VideoState::Accepted | VideoState::Queued => "queued",
            VideoState::Running | VideoState::Unknown => "in_progress",
            VideoState::Completed => "completed",
            VideoState::Failed => "failed",
        }
    }

    /// The word of the legacy shape.
    pub fn legacy(self) -> &'static str {
        match self {
            VideoState::Accepted => "NOT_START",
            VideoState::Unknown => "SUBMITTED",
            VideoState::Queued => "QUEUED",
            VideoState::Running => "IN_PROGRESS",
            VideoState::Completed => "SUCCESS",
            VideoState::Failed => "FAILURE",
        }
    }

    pub fn is_final(self) -> bool {
        matches!(self, VideoState::Completed | VideoState::Failed)
    }

    /// Percent to show: what the provider said, limited to what lies between the ends that belong
    /// to the state.
    fn progress(self, said: Option<u8>) -> u8 {
        match self {
            VideoState::Accepted => 0,
            VideoState::Queued | VideoState::Unknown => said.unwrap_or(0).min(99),
            VideoState::Running => said.unwrap_or(30).clamp(1, 99),
            VideoState::Completed | VideoState::Failed => 100,
        }
    }

    /// The legacy shape shows steps: 10 while waiting, 30 and more while running.
    fn legacy_progress(self, said: Option<u8>) -> u8 {
        match self {
            VideoState::Accepted => 0,
            VideoState::Unknown => said.unwrap_or(10).clamp(10, 99),
            VideoState::Queued => said.unwrap_or(20).clamp(20, 99),
            VideoState::Running => said.unwrap_or(30).clamp(30, 99),
            VideoState::Completed | VideoState::Failed => 100,
        }
    }
}

/// Why a task failed, in the provider's words made safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

/// What is known of a task.
#[derive(Clone, Debug)]
pub struct TaskView<'a> {
    pub id: &'a str,
    pub model: &'a str,
    pub state: VideoState,
    /// Percent, where the provider tells.
    pub progress: Option<u8>,
    /// Unix seconds.
    pub created_at: i64,
    pub completed_at: Option<i64>,
    /// When the link ends.
    pub expires_at: Option<i64>,
    /// The finished file; carries `Expires`.
    pub url: Option<&'a str>,
    pub failure: Option<&'a Failure>,
    pub effective: &'a [(&'a str, &'a str)],
    /// Whole seconds of the finished video, where its provider tells them.
    pub made_seconds: Option<u32>,
    /// What the provider's body says where the length is left to it.
    pub left: &'a str,
    pub remixed_from: Option<&'a str>,
    pub warnings: &'a [Warning],
}

impl TaskView<'_> {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.effective.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The length that was made; until that is known the one asked for, in the provider's own word
    /// where it was left to it. The official SDK's type has no video without a length or a size.
    fn seconds(&self) -> String {
        let made = self.made_seconds.filter(|_| self.state == VideoState::Completed).map(|seconds| seconds.to_string());
        made.unwrap_or_else(|| self.attribute("seconds").unwrap_or(self.left).to_owned())
    }

    fn object(&self) -> Value {
        let mut shown = json!({
            "id": self.id,
            "task_id": self.id,
            "object": "video",
            "model": self.model,
            "status": self.state.openai(),
            "progress": self.state.progress(self.progress),
            "created_at": self.created_at,
            "completed_at": self.completed_at,
            "expires_at": self.expires_at,
            "error": null,
            "remixed_from_video_id": self.remixed_from,
            "seconds": self.seconds(),
            "size": size::shown(|name| self.attribute(name)),
        });
        let others = self.effective.iter().filter(|(name, _)| *name != "model");
        let effective: Map<_, _> = others.map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        if !effective.is_empty() {
            shown["effective"] = Value::Object(effective);
        }
        if let Some(url) = self.url.filter(|_| self.state == VideoState::Completed) {
            shown["metadata"] = json!({"url": url});
        }
        if let Some(failure) = self.failure.filter(|_| self.state == VideoState::Failed) {
            shown["error"] = json!({"code": failure.code, "message": failure.message});
        }
        if !self.warnings.is_empty() {
            shown["warnings"] = json!(self.warnings);
        }
        shown
    }
}

/// OpenAI's shape.
pub fn openai(task: &TaskView<'_>) -> Bytes {
    bytes(&task.object())
}

/// The legacy shape.
pub fn legacy(task: &TaskView<'_>) -> Bytes {
    let failed = task.failure.filter(|_| task.state == VideoState::Failed);
    let url = task.url.filter(|_| task.state == VideoState::Completed);
    bytes(&json!({
        "code": "success",
        "message": "",
        "data": {
            "task_id": task.id,
            "status": task.state.legacy(),
            "progress": format!("{}%", task.state.legacy_progress(task.progress)),
            "fail_reason": failed.map(|failure| failure.message.as_str()).unwrap_or_default(),
            "result_url": url.unwrap_or_default(),
            "submit_time": task.created_at,
            "finish_time": task.completed_at.unwrap_or(0),
        },
    }))
}

/// A refusal in the legacy shape.
pub fn legacy_error(code: &str, message: &str) -> Bytes {
    bytes(&json!({"code": code, "message": cut(message, MESSAGE), "data": null}))
}

/// A page of tasks in OpenAI's shape.
pub fn list(tasks: &[TaskView<'_>], has_more: bool) -> Bytes {
    page(tasks.iter().map(TaskView::object).collect(), has_more)
}

/// The same of tasks that were written before.
pub fn list_of(tasks: impl Iterator<Item = Bytes>, has_more: bool) -> Bytes {
    page(tasks.filter_map(|task| serde_json::from_slice(&task).ok()).collect(), has_more)
}

fn page(data: Vec<Value>, has_more: bool) -> Bytes {
    let id = |task: Option<&Value>| task.map_or(Value::Null, |task| task["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    bytes(&json!({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more}))
}

/// The answer to a deletion.
pub fn deleted(id: &str) -> Bytes {
    bytes(&json!({"id": id, "object": "video.deleted", "deleted": true}))
}

fn bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
