//! What is written down of a task besides its columns, as JSON: the plan it was begun with, enough
//! to poll it, to look for it at its provider and to show it after a restart; and where its
//! finished file is. The store keeps both texts without reading them.

use crate::secrets::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use tollgate_media::video::{Api, Plan, PlanBound, Variant, Warning};
use tollgate_store::{Task, TaskId};
use tollgate_upstream::video::{self, FileLink, Handle, Remembers, Sought, VideoReport};

/// What a task was begun with. The picture that goes beside the body is not stored: a task is never
/// sent twice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredPlan {
    pub variant: String,
    pub call: String,
    pub effective: Vec<(String, String)>,
    pub seconds: Option<u32>,
    /// The most the provider can count.
    pub most_seconds: u32,
    pub most_tokens: Option<u64>,
    /// What is charged where the provider never tells what it made; tasks from before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What of the body providers' lists show, to know the task by; neither the prompt nor
    /// pictures.
    pub body: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remixed_from: Option<String>,
    /// A mark of the prompt, where the provider's list tells prompts. It is made with a secret of
    /// ours: whoever reads the database cannot try guesses with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_mark: Option<String>,
}

/// By these values a task is looked for where a provider only lists them.
const SOUGHT: [&str; 7] = ["safety_identifier", "resolution", "duration", "ratio", "seconds", "size", "remix_of"];
/// A clock of the provider's may be this much behind or ahead, in seconds.
const CLOCKS: i64 = 300;

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

impl StoredPlan {
    pub fn of(plan: &Plan, id: TaskId, secrets: &Secrets) -> StoredPlan {
        let prompt = plan.body.get("prompt").and_then(Value::as_str).filter(|_| plan.api() == Api::Sora);
        StoredPlan {
            variant: plan.variant.name().to_owned(),
            call: plan.call.to_owned(),
            effective: plan.effective.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            seconds: plan.seconds,
            most_seconds: plan.bound.seconds,
            most_tokens: plan.bound.tokens,
            least_seconds: Some(plan.least.seconds),
            least_tokens: plan.least.tokens,
            warnings: plan.warnings.clone(),
            body: plan.body.iter().filter(|(name, _)| SOUGHT.contains(&name.as_str())).map(owned).collect(),
            prompt_mark: prompt.map(|prompt| secrets.mark(PROMPT, &marked(&id.to_string(), prompt.trim()))),
            remixed_from: plan.body.get("remixed_from").and_then(Value::as_str).map(str::to_owned),
        }
    }

    pub fn read(text: &str) -> Option<StoredPlan> {
        serde_json::from_str(text).ok()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `None` for a variant that this version does not know any more.
    pub fn api(&self) -> Option<Api> {
        Variant::named(&self.variant).map(Variant::api)
    }

    pub fn bound(&self) -> PlanBound {
        PlanBound { seconds: self.most_seconds, tokens: self.most_tokens }
    }

    /// What is charged where the provider never tells what it made.
    pub fn least(&self) -> PlanBound {
        let asked = self.seconds.unwrap_or(self.most_seconds);
        PlanBound { seconds: self.least_seconds.unwrap_or(asked), tokens: self.least_tokens.or(self.most_tokens) }
    }

    /// A parameter as it was priced.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.effective.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The task at its provider.
    pub fn handle<'a>(&'a self, upstream_id: &'a str) -> Option<Handle<'a>> {
        Some(Handle { api: self.api()?, call: &self.call, id: upstream_id })
    }

    /// What knows the prompt of the task again, where that was stored.
    pub fn prompt<'a>(&'a self, secrets: &'a Secrets, external_id: &'a str) -> Option<StoredPrompt<'a>> {
        self.prompt_mark.as_deref().map(|mark| StoredPrompt { secrets, external_id, mark })
    }

    /// The task where its provider's answer was lost, sent at some time between its beginning and
    /// the moment that was noticed.
    pub fn sought<'a>(
        &'a self,
        task: &'a Task,
        external_id: &'a str,
        prompt: Option<&'a StoredPrompt<'a>>,
        now_ms: i64,
    ) -> Option<Sought<'a>> {
        // A clock that was set back in between must not leave nothing in between.
        let noticed = task.unknown_since.or(task.ended_at).unwrap_or(now_ms).max(task.created_at);
        Some(Sought {
            api: self.api()?,
            call: &self.call,
            model: task.upstream_model.as_deref().unwrap_or_default(),
            external_id,
            sent: (task.created_at / 1_000 - CLOCKS, noticed / 1_000 + CLOCKS),
            body: &self.body,
            prompt: prompt.map(|prompt| prompt as &dyn Remembers),
        })
    }
}

/// Purpose of the mark of a prompt.
const PROMPT: &str = "prompt of a video";

/// Of one task and one prompt: length first, so that no two pairs are one text.
fn marked(external_id: &str, prompt: &str) -> String {
    format!("{}:{external_id}:{prompt}", external_id.len())
}

/// A prompt of which only a mark was stored.
pub struct StoredPrompt<'a> {
    secrets: &'a Secrets,
    external_id: &'a str,
    mark: &'a str,
}

impl Remembers for StoredPrompt<'_> {
    fn is_ours(&self, prompt: &str) -> Option<bool> {
        self.secrets.has_mark(PROMPT, &marked(self.external_id, prompt), self.mark)
    }
}

impl fmt::Debug for StoredPrompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredPrompt")
    }
}

/// Where a finished file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    pub url: String,
    /// Unix seconds, where the link says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The link carries `Expires` and opens without a key: it may be handed out as it is.
    #[serde(default)]
    pub public: bool,
    #[serde(default)]
    pub needs_key: bool,
    /// The provider's id of the file, by which it gives a fresh link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of our own copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
    /// Milliseconds of it, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

impl StoredResult {
    /// `None` while there is no link: success without one is not success.
    pub fn of(report: &VideoReport) -> Option<StoredResult> {
        let link = report.link.as_ref()?;
        Some(StoredResult {
            url: link.url.clone(),
            expires_at: link.expires_at,
            public: link.carries_expires && !link.needs_key,
            needs_key: link.needs_key,
            file: report.file.clone(),
            copy: None,
            length: report.length,
        })
    }

    pub fn read(text: &str) -> Option<StoredResult> {
        serde_json::from_str(text).ok()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// When its link ends, in unix seconds: as the link says, else as long after the task's end
    /// (milliseconds) as its provider's links are known to last.
    pub fn ends(&self, api: Option<Api>, ended_ms: Option<i64>) -> Option<i64> {
        let usual = || {
            let api = api?;
            let lasts = video::speaker(api)?.habits(api).link_lasts?;
            Some(ended_ms?.div_euclid(1_000).saturating_add(i64::try_from(lasts.as_secs()).ok()?))
        };
        self.expires_at.or_else(usual)
    }

    /// Its length in whole seconds, the nearest: a frame makes a file a little longer or shorter
    /// than it was sold.
    pub fn seconds(&self) -> Option<u32> {
        u32::try_from(self.length?.saturating_add(500) / 1_000).ok().map(|seconds| seconds.max(1))
    }

    pub fn link(&self) -> FileLink {
        FileLink {
            url: self.url.clone(),
            expires_at: self.expires_at,
            carries_expires: self.public,
            needs_key: self.needs_key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an-old-secret-of-thirty-two-characters";
    const NEW: &str = "a-new-secret-of-thirty-two-characters-";

    /// A mark says nothing to whoever has the database and not the secret; and one whose secret was
    /// taken away is not taken for that of another prompt.
    #[test]
    fn a_prompt_is_known_by_who_has_the_secret() {
        let read = |text: &str| Secrets::read(text).expect("secrets");
        let mark = read(OLD).mark(PROMPT, &marked("task_1", "A gate opens."));
        let is_ours = |secrets: &str, task: &str, prompt: &str| {
            StoredPrompt { secrets: &read(secrets), external_id: task, mark: &mark }.is_ours(prompt)
        };
        assert_eq!(is_ours(OLD, "task_1", "A gate opens."), Some(true));
        assert_eq!(is_ours(&format!("{NEW}\n{OLD}"), "task_1", "A gate opens."), Some(true), "while both stand there");
        for (task, prompt) in [("task_2", "A gate opens."), ("task_1", "A gate opens"), ("task_1 A", "gate opens.")] {
            assert_eq!(is_ours(OLD, task, prompt), Some(false), "{task} {prompt}");
        }
        assert_eq!(is_ours(NEW, "task_1", "A gate opens."), None, "nobody can tell");
    }
}
