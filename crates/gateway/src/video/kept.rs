//! What is written down of a task besides its columns, as JSON: the plan it was begun with, enough to poll it, to look for it at its
//! provider and to show it after a restart; and where its finished file is. The store keeps both texts without reading them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_upstream::video::{Handle, Link, Report, Sought};
use tollgate_wire::video::{Api, Bound, Plan, Variant, Warning};

/// What a task was begun with. The picture that goes beside the body is not kept: a task is never sent twice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptPlan {
    pub variant: String,
    pub call: String,
    pub effective: Vec<(String, String)>,
    pub seconds: Option<u32>,
    /// The most the provider can count.
    pub most_seconds: u32,
    pub most_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What of the body providers' lists show, to know the task by; neither the prompt nor pictures.
    pub body: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remixed_from: Option<String>,
}

/// By these values a task is looked for where a provider only lists them.
const SOUGHT: [&str; 5] = ["safety_identifier", "resolution", "duration", "seconds", "size"];

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

impl KeptPlan {
    pub fn of(plan: &Plan) -> KeptPlan {
        KeptPlan {
            variant: plan.variant.name().to_owned(),
            call: plan.call.to_owned(),
            effective: plan.effective.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            seconds: plan.seconds,
            most_seconds: plan.bound.seconds,
            most_tokens: plan.bound.tokens,
            warnings: plan.warnings.clone(),
            body: plan.body.iter().filter(|(name, _)| SOUGHT.contains(&name.as_str())).map(owned).collect(),
            remixed_from: plan.body.get("remixed_from").and_then(Value::as_str).map(str::to_owned),
        }
    }

    pub fn read(text: &str) -> Option<KeptPlan> {
        serde_json::from_str(text).ok()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `None` for a variant that this version does not know any more.
    pub fn api(&self) -> Option<Api> {
        Variant::named(&self.variant).map(Variant::api)
    }

    pub fn bound(&self) -> Bound {
        Bound { seconds: self.most_seconds, tokens: self.most_tokens }
    }

    /// The task at its provider.
    pub fn handle<'a>(&'a self, upstream_id: &'a str) -> Option<Handle<'a>> {
        Some(Handle { api: self.api()?, call: &self.call, id: upstream_id })
    }

    /// The task where its provider's answer was lost; `sent` are the unix seconds between which it was sent.
    pub fn sought<'a>(&'a self, model: &'a str, external_id: &'a str, sent: (i64, i64)) -> Option<Sought<'a>> {
        Some(Sought { api: self.api()?, call: &self.call, model, external_id, sent, body: &self.body })
    }
}

/// Where a finished file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
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
}

impl KeptResult {
    /// `None` while there is no link: success without one is not success.
    pub fn of(report: &Report) -> Option<KeptResult> {
        let link = report.link.as_ref()?;
        Some(KeptResult {
            url: link.url.clone(),
            expires_at: link.expires_at,
            public: link.carries_expires && !link.needs_key,
            needs_key: link.needs_key,
            file: report.file.clone(),
            copy: None,
        })
    }

    pub fn read(text: &str) -> Option<KeptResult> {
        serde_json::from_str(text).ok()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn link(&self) -> Link {
        Link {
            url: self.url.clone(),
            expires_at: self.expires_at,
            carries_expires: self.public,
            needs_key: self.needs_key,
        }
    }
}
