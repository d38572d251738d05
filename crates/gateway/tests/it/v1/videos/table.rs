//! How a row of the specification is checked, through the whole house: what the maker received,
//! byte for byte of its JSON, what it cost, and what the client got.

use crate::house::{House, Plan};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::TaskId;

pub const PICTURE: &str = "https://media.example/640x640.png";
pub const OTHER: &str = "https://media.example/800x640.png";
pub const CLIP: &str = "https://media.example/clip.mp4";

/// Whoever reads a task has its maker asked, so that a test does not wait.
const QUICK: &str = "refresh_after = \"10ms\"\n";

pub struct Table {
    pub house: House,
}

/// What a row that is served is held to.
pub struct Sent {
    pub path: &'static str,
    /// Without the model's name, which is that of the route.
    pub body: Value,
    /// Nano-USD set aside, and in the end charged.
    pub held: i64,
    pub charged: i64,
    pub warned: &'static [&'static str],
    /// The parameters as the client gets them, `name=value` in the order of the names.
    pub effective: String,
}

impl Sent {
    /// The price is in micro-USD, and all of it is charged.
    pub fn new(path: &'static str, body: Value, micro: i64) -> Sent {
        Sent { path, body, held: micro * 1_000, charged: micro * 1_000, warned: &[], effective: String::new() }
    }

    /// What the client gets of the parameters after defaults, folding and `metadata`; every row
    /// says it.
    pub fn effective(mut self, shown: impl Into<String>) -> Sent {
        self.effective = shown.into();
        self
    }

    pub fn warned(mut self, fields: &'static [&'static str]) -> Sent {
        self.warned = fields;
        self
    }

    pub fn charged(mut self, nano: i64) -> Sent {
        self.charged = nano;
        self
    }
}

pub async fn quick(plan: Plan) -> House {
    let tasks = if plan.tasks.is_empty() { QUICK } else { plan.tasks };
    House::with(Plan { videos: true, usd: "10000", tasks, ..plan }).await
}

impl Table {
    pub async fn new() -> Table {
        Table { house: quick(Plan::default()).await }
    }

    async fn post(&self, model: &str, mut ask: Value) -> (u16, Value) {
        ask["model"] = json!(model);
        let url = self.house.url("/v1/videos");
        let reply = self.house.http.post(url).bearer_auth(&self.house.key).json(&ask).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json().await.expect("JSON"))
    }

    fn creates(&self) -> Vec<tollgate_sim::Received> {
        self.house.sim.received().into_iter().filter(|one| one.method == "POST").collect()
    }

    /// The request is served: this is what the maker got and what it cost.
    pub async fn sends(&self, says: &str, model: &str, ask: Value, sent: Sent) {
        let before = self.creates().len();
        let (status, task) = self.post(model, ask).await;
        assert_eq!(status, 200, "{says}: {task}");
        let id = task["id"].as_str().expect("an id").to_owned();
        let shown = (&task["object"], &task["model"], &task["status"], &task["progress"], &task["task_id"]);
        let expected = (&json!("video"), &json!(model), &json!("queued"), &json!(0), &json!(id));
        assert_eq!(shown, expected, "{says}");
        let warned: Vec<&str> =
            task["warnings"].as_array().into_iter().flatten().filter_map(|one| one["field"].as_str()).collect();
        assert_eq!(warned, sent.warned, "{says}: {task}");
        assert_eq!(listed(&task["effective"]), sent.effective, "{says}: {task}");
        is_whole(says, &task);
        let creates = self.creates();
        assert_eq!(creates.len(), before + 1, "{says}: one creation");
        let got = &creates[before];
        assert_eq!(got.path, sent.path, "{says}");
        assert_eq!(got.json(), filled(sent.body, &id), "{says}");
        let done = finished(&self.house, &id).await;
        assert_eq!((&done["status"], &done["progress"]), (&json!("completed"), &json!(100)), "{says}: {done}");
        is_whole(says, &done);
        assert!(!["0", "-1"].contains(&done["seconds"].as_str().unwrap_or_default()), "{says}: made at last: {done}");
        let link = done["metadata"]["url"].as_str().expect("a link");
        assert!(link.contains("Expires="), "{says}: {link}");
        let row = self.house.row(id.parse::<TaskId>().expect("an id").call()).await;
        assert_eq!((row.hold.nano(), row.charge.nano()), (sent.held, sent.charged), "{says}: {done}");
    }

    /// The request is refused before anything is sent or held.
    pub async fn refuses(&self, says: &str, model: &str, ask: Value, code: &str, param: &str, text: &str) {
        let before = (self.house.sim.received().len(), self.house.available().await);
        let (status, refused) = self.post(model, ask).await;
        let error = &refused["error"];
        assert_eq!(
            (status, error["code"].as_str(), error["param"].as_str()),
            (400, Some(code), Some(param)),
            "{says}: {refused}"
        );
        assert!(error["message"].as_str().is_some_and(|message| message.contains(text)), "{says}: {refused}");
        let after = (self.house.sim.received().len(), self.house.available().await);
        assert_eq!(after, before, "{says}: nothing was sent or held");
    }
}

/// The official SDK's type has no video without a length or a size.
fn is_whole(says: &str, task: &Value) {
    for name in ["seconds", "size"] {
        assert!(task[name].as_str().is_some_and(|text| !text.is_empty()), "{says}: {name} of {task}");
    }
}

/// A task once it has ended.
pub async fn finished(house: &House, id: &str) -> Value {
    for _ in 0..1_000 {
        let task: Value =
            house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply").json().await.expect("JSON");
        if matches!(task["status"].as_str(), Some("completed" | "failed")) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} does not end");
}

/// An object of texts as `name=value`, in the order of the names.
fn listed(effective: &Value) -> String {
    let pairs = effective.as_object().into_iter().flatten();
    let mut fields: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("?"))).collect();
    fields.sort();
    fields.join(" ")
}

/// Our own id stands where a maker keeps one.
fn filled(body: Value, id: &str) -> Value {
    serde_json::from_str(&body.to_string().replace("{task}", id)).expect("JSON")
}
