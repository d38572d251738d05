//! Members see what the keys they made have used, and nothing else of the account's money, unless
//! an owner allows all. Every reading path is in the table; a row that nobody has thought of fails.

use super::{Browser, CONFIG, signed_in};
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_gateway::endpoints::row::MembersSee;
use tollgate_gateway::endpoints::{Access, rows};
use tollgate_store::{AccountRole, RunId, WorkflowRunLimits};

/// What somebody has used, by the names that stand in replies.
struct Used {
    secret: String,
    key: String,
    call: String,
    task: String,
    run: String,
}

impl Used {
    /// Whatever must not be seen by others.
    fn names(&self) -> [&str; 4] {
        [&self.key, &self.call, &self.task, &self.run]
    }
}

async fn house_with_videos(database: &str) -> House {
    let (config, database) = (CONFIG.to_owned(), database.to_owned());
    House::with(Plan {
        config,
        database,
        videos: true,
        usd: "1000",
        tasks: "refresh_after = \"10ms\"\n",
        ..Plan::default()
    })
    .await
}

/// A key, and a call, a task and a run with it.
async fn uses(house: &House, who: &mut Browser<'_>, number: u8) -> Used {
    let made = who.post("/api/account/keys", json!({ "name": "mine" })).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let text = |name: &str| made.body[name].as_str().expect(name).to_owned();
    let (key, secret) = (text("key_id"), text("secret"));
    let post = |path: &str, body: Value| house.http.post(house.url(path)).bearer_auth(&secret).json(&body).send();
    let reply = post("/v1/chat/completions", chat("one")).await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    house.row(call).await;
    let video = json!({ "model": "wan2.7-t2v", "prompt": "[[sim:queue=0 run=0]]" });
    let task: Value = post("/v1/videos", video).await.expect("a reply").json().await.expect("JSON");
    let task = task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    let run = RunId([number; 16]);
    let new = tollgate_store::NewWorkflowRun {
        id: run,
        account: house.account,
        key: key.parse().expect("a key"),
        slug: "nothing".to_owned(),
        idem: None,
        plan: "{}".to_owned(),
        state: "{}".to_owned(),
        status: "running".to_owned(),
    };
    let limits = WorkflowRunLimits { open: 10, stored: 10 };
    house.running().app.store.create_run(new, limits).await.expect("a run");
    Used { secret, key, call: call.to_string(), task, run: run.to_string() }
}

/// The video of a task is made.
async fn finished(house: &House, used: &Used) {
    let url = house.url(&format!("/v1/videos/{}", used.task));
    for _ in 0..6_000 {
        let task = house.http.get(&url).bearer_auth(&used.secret).send().await.expect("a reply");
        let task: Value = task.json().await.expect("JSON");
        if task["status"] == "completed" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} does not end", used.task);
}

/// What of it a path shows: the addresses to ask, each with what must be in the reply of its owner.
fn asked<'a>(path: &str, used: &'a Used) -> Vec<(String, Option<&'a str>)> {
    let put = |name: &str, value: &'a str| vec![(path.replace(name, value), Some(value))];
    let key = used.key.as_str();
    match path {
        "/api/account/usage" => vec![
            (path.to_owned(), Some(&used.call)),
            (format!("{path}?key={key}"), Some(&used.call)),
            (format!("{path}?call_id={}", used.call), Some(&used.call)),
        ],
        "/v1/usage" => vec![(path.to_owned(), Some(&used.call))],
        "/api/account/usage/sums" | "/v1/usage/sums" => {
            let all = format!("{path}?from=2026-01-01&by=key");
            vec![(all.clone(), Some(key)), (format!("{all}&key={key}"), Some(key)), (format!("{all},hour"), Some(key))]
        }
        "/api/account/usage/export" | "/v1/usage/export" => {
            let all = format!("{path}?from=2026-01-01");
            vec![(all.clone(), Some(&used.call)), (format!("{all}&format=csv&key={key}"), Some(&used.call))]
        }
        // A stream has no end: api/live.rs reads it.
        "/api/account/events" => Vec::new(),
        "/api/account/keys" => vec![(path.to_owned(), Some(key))],
        "/api/account/tasks" | "/v1/videos" => vec![(path.to_owned(), Some(&used.task))],
        "/api/account/webhooks/deliveries" => vec![(path.to_owned(), Some(&used.task))],
        "/v1/workflows/runs" => vec![(path.to_owned(), Some(&used.run))],
        "/v1/workflows/runs/{id}" => put("{id}", &used.run),
        "/v1/videos/{id}" | "/v1/video/generations/{id}" => put("{id}", &used.task),
        "/v1/videos/{id}/content" => vec![(path.replace("{id}", &used.task), None)],
        _ if path.contains("{call_id}") => put("{call_id}", &used.call),
        _ => panic!("{path} shows members their own: say here what"),
    }
}

/// Status and text of a reply to a session or a key.
async fn reads(who: &Browser<'_>, secret: Option<&str>, path: &str) -> (u16, String) {
    let request = match secret {
        Some(secret) => who.house.http.get(who.house.url(path)).bearer_auth(secret),
        None => who.request("GET", path),
    };
    let reply = request.send().await.expect("a reply");
    (reply.status().as_u16(), String::from_utf8_lossy(&reply.bytes().await.expect("a body")).into_owned())
}

/// A reply about one thing, or a list that may have nothing in it.
fn is_list(path: &str) -> bool {
    !path.contains('{')
}

/// Holds a reader to what they may see: of their own, and of another's.
async fn look(who: &Browser<'_>, own: &Used, other: &Used, sees_other: bool) -> usize {
    let mut count = 0;
    for row in rows().iter().filter(|row| row.members == MembersSee::OwnKeys) {
        let secret = matches!(row.access, Access::Key).then_some(own.secret.as_str());
        for (used, shown) in [(own, true), (other, sees_other)] {
            for (path, expected) in asked(row.path, used) {
                count += 1;
                let (status, text) = reads(who, secret, &path).await;
                let case = format!("{path} ({status}): {text}");
                if shown {
                    assert_eq!(status, 200, "{case}");
                    assert!(expected.is_none_or(|expected| text.contains(expected)), "{case}");
                } else {
                    assert_eq!(status, if is_list(row.path) { 200 } else { 404 }, "{case}");
                    let named = other.names().into_iter().find(|name| text.contains(name) && !path.contains(name));
                    assert_eq!(named, None, "{case}");
                    assert!(status != 200 || !text.contains(&other.call), "{case}");
                }
            }
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_their_own_unless_the_owner_allows_all() {
    for engine in Engine::both().await {
        let house = house_with_videos(&engine.url).await;
        let account = house.account;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let hook = json!({ "webhook_url": "https://hooks.invalid/x" });
        assert_eq!(ada.ask("PUT", "/api/account/webhooks", Some(hook)).await.status, 200);
        let mut bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        let mut cleo = signed_in(&house, "cleo@example.com", None, Some((account, AccountRole::Member))).await;
        let vera = signed_in(&house, "vera@example.com", None, Some((account, AccountRole::Viewer))).await;
        let mut dan = signed_in(&house, "dan@example.com", None, Some((account, AccountRole::Member))).await;
        let bobs = uses(&house, &mut bob, 1).await;
        let cleos = uses(&house, &mut cleo, 2).await;
        let adas = uses(&house, &mut ada, 3).await;
        for used in [&bobs, &cleos, &adas] {
            finished(&house, used).await;
        }
        house.quiet().await;
        tried(&mut ada, &[&bobs, &cleos, &adas]).await;

        assert!(look(&bob, &bobs, &cleos, false).await > 40, "the table has lost its lines");
        look(&bob, &bobs, &adas, false).await;
        look(&cleo, &cleos, &bobs, false).await;
        look(&ada, &adas, &bobs, true).await;
        // Whoever reads for the account sees all of it; they have no key.
        let read_all = Used { secret: house.key.clone(), ..uses_of(&bobs) };
        look(&vera, &read_all, &cleos, true).await;
        // Nothing of their own is nothing, and no mistake.
        for path in ["/api/account/usage", "/api/account/keys", "/api/account/tasks"] {
            let answer = dan.get(path).await;
            assert_eq!((answer.status, &answer.body["data"]), (200, &json!([])), "{path}: {}", answer.body);
        }
        let totals = dan.get("/api/account/usage/sums?from=2026-01-01").await.body;
        assert_eq!(totals["totals"]["requests"], 0, "{totals}");
        // The balance is what their calls are paid from; how it came about is not theirs to see.
        assert_eq!(bob.get("/api/account").await.status, 200);
        let closed: Vec<&str> =
            rows().iter().filter(|row| row.members == MembersSee::Nothing).map(|row| row.path).collect();
        assert_eq!(
            closed.iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([
                &"/api/account/history",
                &"/api/account/statements/{month}",
                &"/api/account/topups",
                &"/api/account/topups/{order_id}"
            ])
        );
        for path in &closed {
            let path = path.replace("{month}", "2026-10");
            let refused = bob.get(&path).await;
            assert_eq!((refused.status, refused.code.as_str()), (403, "role_not_allowed"), "{path}");
            assert!(refused.body.to_string().contains("members_see_all_usage"), "{path}: {}", refused.body);
        }

        // An owner allows it, and takes it back.
        let any = [("if-match", "*")];
        let all = |allowed: bool| Some(json!({ "members_see_all_usage": allowed }));
        let refused = bob.ask_with("PATCH", "/api/account", &any, all(true)).await;
        assert_eq!((refused.status, refused.code.as_str()), (403, "role_not_allowed"));
        let set = ada.ask_with("PATCH", "/api/account", &any, all(true)).await;
        assert_eq!((set.status, &set.body["members_see_all_usage"]), (200, &json!(true)), "{}", set.body);
        look(&bob, &bobs, &cleos, true).await;
        assert_eq!(bob.get("/api/account/history").await.status, 200);
        assert_eq!(bob.get("/api/account/statements/2026-10").await.status, 200);
        assert_eq!(ada.ask_with("PATCH", "/api/account", &any, all(false)).await.status, 200);
        look(&bob, &bobs, &cleos, false).await;
        let log = ada.get("/api/account/audit").await.body.to_string();
        assert!(log.contains("members_see_all_usage: false -> true"), "{log}");

        // Whoever has left has their key, which sees no more than it did.
        let cleo_id = cleo.get("/api/session").await.body["person"]["person_id"].as_str().expect("an id").to_owned();
        assert_eq!(ada.ask("DELETE", &format!("/api/account/members/{cleo_id}"), None).await.status, 200);
        let (status, text) = reads(&cleo, Some(&cleos.secret), "/v1/usage").await;
        assert!(status == 200 && text.contains(&cleos.call) && !text.contains(&bobs.call), "{text}");
    }
}

fn uses_of(used: &Used) -> Used {
    let text = |name: &String| name.clone();
    let (secret, key, call) = (text(&used.secret), text(&used.key), text(&used.call));
    Used { secret, key, call, task: text(&used.task), run: text(&used.run) }
}

/// The news of every task were tried once: the receiver is not there.
async fn tried(owner: &mut Browser<'_>, all: &[&Used]) {
    for _ in 0..6_000 {
        let text = owner.get("/api/account/webhooks/deliveries?limit=500").await.body.to_string();
        if all.iter().all(|used| text.contains(&used.task)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the webhooks were never tried");
}
