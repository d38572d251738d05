//! Runs of workflows through the real handlers: the shipped ones are verified and run, and whatever
//! goes wrong in between buys nothing twice and never more than was confirmed.

mod again;
mod assets;
mod confirmed;
pub mod money;
pub mod room;
mod shipped;
mod unread;

use crate::house::{House, Plan};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{Attribution, KeyId, NewAdminKey};

pub const SECRET: &str = "ak-fedcba9876543210fedcba9876543210fedcba9876543210";

/// The models of the demo that workflows use.
const CATALOG: &str = concat!(
    include_str!("../../../../../../catalog/demo.toml"),
    include_str!("../../../../../../catalog/speech.toml"),
    include_str!("../../../../../../catalog/transcription.toml"),
    include_str!("../../../../../../catalog/images.toml"),
);

pub struct RunHouse {
    pub house: House,
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

impl RunHouse {
    /// A house with the shipped workflows, all drafts.
    pub async fn shipped() -> RunHouse {
        RunHouse::with(Plan::default()).await
    }

    pub async fn with(plan: Plan) -> RunHouse {
        let config = format!("[workflows]\nlook_every = \"20ms\"\n{}", plan.config);
        let house = House::with(Plan { catalog: CATALOG, videos: true, config, ..plan }).await;
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
        for folder in ["workflows", "social"] {
            copy(&shipped.join(folder), &house.dir.join("catalog").join(folder));
        }
        house.top_up("for runs", "50").await;
        let app = &house.running().app;
        reload(app, &house.source).await.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
        let done = Attribution::by("test".to_owned(), "a test".to_owned());
        let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
        app.store.create_admin_key(new, SECRET).await.expect("a key");
        RunHouse { house }
    }

    /// Puts a workflow of its own there, or another one in the place of a shipped one.
    pub async fn put(&self, name: &str, text: &str) {
        let file = self.house.dir.join("catalog/workflows").join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("written");
        let app = &self.house.running().app;
        reload(app, &self.house.source).await.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    }

    pub async fn key_id(&self) -> KeyId {
        let keys = self.house.running().app.store.keys(self.house.account).await.expect("keys");
        keys.last().expect("a key").id
    }

    pub async fn operate(&self, slug: &str, verb: &str, body: Value) -> (u16, Value) {
        let url = self.house.url(&format!("/api/admin/workflows/{slug}/{verb}"));
        let reply = self.house.http.post(url).bearer_auth(SECRET).json(&body).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json().await.expect("JSON"))
    }

    /// Locks a workflow and runs its fixture to the end.
    pub async fn verify(&self, slug: &str) -> Value {
        let (status, moved) = self.operate(slug, "lock", json!({ "reason": "reviewed" })).await;
        assert_eq!(status, 200, "{moved}");
        self.verify_locked(slug).await
    }

    pub async fn verify_locked(&self, slug: &str) -> Value {
        let payer = json!({ "reason": "a test", "account": self.house.account, "key": self.key_id().await, "max_cost_nano_usd": 20_000_000_000_i64 });
        let (status, begun) = self.operate(slug, "verify", payer).await;
        assert_eq!(status, 200, "{begun}");
        self.ended(begun["run"].as_str().expect("a run")).await
    }

    pub fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.house.http.post(self.house.url(path)).bearer_auth(&self.house.key).json(body)
    }

    pub async fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        let reply = self.post(path, body).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json().await.expect("JSON"))
    }

    pub async fn run(&self, id: &str) -> Value {
        let reply = self.house.get(&format!("/v1/workflows/runs/{id}")).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        reply.json().await.expect("JSON")
    }

    /// The run once it rests: it has ended, or needs somebody.
    pub async fn ended(&self, id: &str) -> Value {
        loop {
            let run = self.run(id).await;
            if !["running", "waiting"].contains(&run["status"].as_str().expect("a status")) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A request that confirms all that its quote asks for.
    pub async fn confirmed(&self, slug: &str, inputs: Value) -> Value {
        let (status, quote) = self.ask(&format!("/v1/workflows/{slug}/quote"), &json!({ "inputs": inputs })).await;
        assert_eq!(status, 200, "{quote}");
        json!({ "inputs": inputs, "confirm": quote["confirm"] })
    }

    pub async fn begin(&self, slug: &str, inputs: Value) -> String {
        let request = self.confirmed(slug, inputs).await;
        let (status, run) = self.ask(&format!("/v1/workflows/{slug}/runs"), &request).await;
        assert_eq!(status, 202, "{run}");
        run["id"].as_str().expect("an id").to_owned()
    }

    /// An upload with this key.
    pub fn upload(&self, key: &str, bytes: &[u8]) -> RequestBuilder {
        let head = b"--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
        let body = [head, bytes, b"\r\n--x--\r\n"].concat();
        let request = self.house.http.post(self.house.url("/v1/workflows/assets")).bearer_auth(key);
        request.header("content-type", "multipart/form-data; boundary=x").body(body)
    }

    /// The id of a file that is uploaded.
    pub async fn uploaded(&self, bytes: &[u8]) -> Value {
        let reply = self.upload(&self.house.key, bytes).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        reply.json::<Value>().await.expect("JSON")["id"].clone()
    }

    /// The public record.
    pub async fn ask_record(&self, slug: &str) -> (u16, Value) {
        let url = self.house.url(&format!("/api/workflows/{slug}"));
        let reply = self.house.http.get(url).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json().await.expect("JSON"))
    }

    pub async fn stage(&self, slug: &str) -> Value {
        let reply = self.house.http.get(self.house.url("/api/admin/workflows")).bearer_auth(SECRET);
        let list: Value = reply.send().await.expect("a reply").json().await.expect("JSON");
        let all = list["data"].as_array().expect("a list");
        all.iter().find(|one| one["slug"] == slug).expect("a workflow").clone()
    }
}
