//! No room for what a step makes: the run is stopped by name, and goes on once there is room. What
//! was paid is not bought again.

use super::RunHouse;
use crate::house::Plan;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_gateway::settings::CopyTo;

const SLUG: &str = "article-to-narration";
/// Bytes of files of an account.
const ROOM: usize = 200_000;

/// A house where an account has little room, and a customer who has taken all of it but so much.
struct FullHouse {
    house: RunHouse,
    key: String,
}

impl FullHouse {
    async fn but(left: usize) -> FullHouse {
        let config = format!("account_bytes = {ROOM}\n");
        let house = RunHouse::with(Plan { config, ..Plan::default() }).await;
        house.verify(SLUG).await;
        let (_, key) = house.house.stranger("5").await;
        let reply = house.upload(&key, &vec![b'x'; ROOM - left]).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{}", reply.text().await.expect("text"));
        FullHouse { house, key }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.house.house.http.post(self.house.house.url(path)).bearer_auth(&self.key).json(body);
        request.send().await.expect("a reply").json().await.expect("JSON")
    }

    async fn begin(&self) -> String {
        let inputs = json!({ "article": "Rain." });
        let quote = self.post("/v1/workflows/article-to-narration/quote", &json!({ "inputs": inputs })).await;
        let request = json!({ "inputs": inputs, "confirm": quote["confirm"] });
        let run = self.post("/v1/workflows/article-to-narration/runs", &request).await;
        run["id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
    }

    /// The run once it rests and is not stopped any more for this reason.
    async fn rests(&self, id: &str, but: &str) -> Value {
        let url = self.house.house.url(&format!("/v1/workflows/runs/{id}"));
        loop {
            let request = self.house.house.http.get(&url).bearer_auth(&self.key);
            let run: Value = request.send().await.expect("a reply").json().await.expect("JSON");
            let works = ["running", "waiting"].contains(&run["status"].as_str().expect("a status"));
            if !works && run["stopped"] != but {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All files of runs are taken away, as if their time were over.
    async fn emptied(&self) {
        let app = &self.house.house.running().app;
        let Some(CopyTo::Folder(folder)) = &app.settings.runs.copy_to else { panic!("a folder") };
        for entry in std::fs::read_dir(folder).expect("a folder") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        // What was just put there is counted by its name for one round more.
        app.sweep_run_files().await;
        app.sweep_run_files().await;
    }
}

pub async fn no_room_for_the_file_of_a_step() {
    for (left, bought) in [(0, 0), (5, 1)] {
        let full = FullHouse::but(left).await;
        let id = full.begin().await;
        let run = full.rests(&id, "").await;
        assert_eq!((&run["status"], &run["stopped"]), (&json!("stopped"), &json!("storage_full")), "{run:#}");
        let speech = &run["steps"][1];
        assert_eq!(speech["calls"].as_array().map(Vec::len), Some(bought), "{left} bytes of room: {run:#}");
        full.emptied().await;
        let sent = full.house.house.sim.received().len();
        full.post(&format!("/v1/workflows/runs/{id}/resume"), &json!({})).await;
        let run = full.rests(&id, "storage_full").await;
        assert_eq!(run["status"], "completed", "{run:#}");
        assert_eq!(run["steps"][1]["calls"].as_array().map(Vec::len), Some(1), "it is bought once: {run:#}");
        assert_eq!(full.house.house.sim.received().len() - sent, 1 - bought, "and asked for once");
        let sum: i64 = (0..2).map(|at| run["steps"][at]["charged_nano_usd"].as_i64().expect("a charge")).sum();
        assert_eq!(json!(sum), run["charged_nano_usd"]);
        full.house.house.check().await;
    }
}
