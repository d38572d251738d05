//! Operators exchange keys and addresses while tasks are under way: nobody is asked for another's
//! tasks, and none of them is lost.

use super::money::{create, ended, house, sent, task};
use super::scenarios::price;
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_gateway::workers::reload::reload;
use tollgate_sim::video::KLING_ACCESS;
use tollgate_store::{TaskId, TaskState};

/// Providers are believed at once, and given up late.
const TASKS: &str = "refresh_after = \"10ms\"\nabsent_time = \"50ms\"\npatience = \"5m\"";
/// Long enough that it is under way when the key is exchanged, and not for long after that.
const SLOW: &str = "[[sim:ok queue=60 run=5]]";
const MODELS: [&str; 5] = ["wan2.7-t2v", "kling-v3", "kling-3.0-turbo", "MiniMax-H3", "sora-2"];

/// Writes files of the configuration and takes them over.
async fn change(house: &House, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::write(house.dir.join(name), text).expect("written");
    }
    reload(&house.running().app, &house.source).await.expect("reloaded");
}

const OWN: [(&str, &str); 2] = [("sim.key", "sim-key"), ("access.key", KLING_ACCESS)];
const OTHER: [(&str, &str); 2] = [("sim.key", "another-account"), ("access.key", "sim-access-of-another")];

async fn begin(house: &House) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for model in MODELS {
        ids.push(create(house, model, SLOW).await.unwrap_or_else(|why| panic!("{model}: {why:?}")));
    }
    ids
}

async fn all_open(house: &House, ids: &[TaskId], says: &str) {
    for id in ids {
        let task = task(house, *id).await;
        assert!(!task.state.is_final(), "{says}: {task:?}");
    }
}

/// All are made, each is charged once, and none was sent again.
async fn all_complete(house: &House, ids: &[TaskId]) {
    let mut spent = 0;
    for id in ids {
        let (task, row) = ended(house, *id).await;
        assert_eq!(task.state, TaskState::Completed, "{task:?}");
        assert_eq!(row.charge.nano(), price(&task.model), "{row:?}");
        spent += row.charge.nano();
    }
    assert_eq!(house.sim.videos(), ids.len());
    assert_eq!(house.available().await, 1_000_000_000_000 - spent);
}

async fn metrics(house: &House) -> String {
    let text = house.get("/metrics").send().await.expect("a reply").text().await.expect("text");
    text.lines().filter(|line| line.starts_with("tollgate_task_polls_total")).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_another_account_decides_nothing() {
    let house = house(TASKS).await;
    let ids = begin(&house).await;
    change(&house, &OTHER).await;
    // Many times the fifty milliseconds after which a provider's "no such task" is believed.
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    all_open(&house, &ids, "another account does not know it").await;
    let counts = metrics(&house).await;
    assert!(counts.contains("{provider=\"dashscope\",outcome=\"other_account\"}"), "the operator is warned: {counts}");
    change(&house, &OWN).await;
    all_complete(&house, &ids).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_the_same_account_is_as_good() {
    let house = house(TASKS).await;
    let mut ids = Vec::new();
    for model in ["wan2.7-t2v", "seedance-2.5", "MiniMax-H3", "sora-2"] {
        ids.push(create(&house, model, SLOW).await.unwrap_or_else(|why| panic!("{model}: {why:?}")));
    }
    change(&house, &[("sim.key", "sim-key#2")]).await;
    all_complete(&house, &ids).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_is_not_asked() {
    let house = house(TASKS).await;
    let ids = begin(&house).await;
    let config = std::fs::read_to_string(house.dir.join("tollgate.toml")).expect("read");
    let host = house.sim.base_url().trim_end_matches("/v1").to_owned();
    // Nobody listens there: whoever were asked would not answer.
    change(&house, &[("tollgate.toml", &config.replace(&host, "http://127.0.0.1:1"))]).await;
    let before = house.sim.received().len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    for id in &ids {
        let shown = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
        assert_eq!(shown.status(), 200);
    }
    all_open(&house, &ids, "its host is not configured").await;
    assert!(house.sim.received().len() <= before + ids.len(), "only what was on its way");
    let counts = metrics(&house).await;
    assert!(counts.contains("{provider=\"kling\",outcome=\"other_host\"}"), "the operator is warned: {counts}");
    change(&house, &[("tollgate.toml", &config)]).await;
    // They would be looked at within a minute; whoever reads one has it looked at now.
    for _ in 0..400 {
        for id in &ids {
            house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
        }
        let states = futures_util::future::join_all(ids.iter().map(|id| task(&house, *id))).await;
        if states.iter().all(|task| task.state.is_final()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    all_complete(&house, &ids).await;
}

/// The account has a new name in the configuration, because its old one has a new account.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_found_under_another_name() {
    let house = house(TASKS).await;
    let ids = begin(&house).await;
    let config = std::fs::read_to_string(house.dir.join("tollgate.toml")).expect("read");
    let mut more = String::new();
    for kind in ["dashscope", "minimax", "openai", "kling"] {
        let keys = match kind {
            "kling" => "access_file = \"old-access.key\"\nsecret_file = \"secret.key\"",
            _ => "secret_file = \"old.key\"",
        };
        let url = house.sim.video_url(kind);
        more +=
            &format!("[provider.old-{kind}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\n{keys}\npoll_every = \"40ms\"\n");
    }
    let moved = format!("{config}{more}");
    let files =
        [("old.key", "sim-key"), ("old-access.key", KLING_ACCESS), ("tollgate.toml", &moved), OTHER[0], OTHER[1]];
    change(&house, &files).await;
    all_complete(&house, &ids).await;
}

/// The answer to a creation is lost while the key is exchanged: that another account has no such
/// task is no reason to give it up.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_creation_is_not_sought_in_another_account() {
    let tasks = "absent_time = \"50ms\"\npatience = \"5m\"";
    let plan = Plan { videos: true, usd: "1000", tasks, patience: "1500ms", ..Plan::default() };
    let house = House::with(plan).await;
    let prompt = "[[sim:slow ms=4000 queue=0 run=0]]";
    let ids = ["kling-v3", "seedance-2.5", "sora-2"].map(|model| sent(&house, model, prompt));
    let (ids, ()) = tokio::join!(futures_util::future::join_all(ids), async {
        while house.sim.videos() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        change(&house, &OTHER).await;
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    all_open(&house, &ids, "another account does not have it").await;
    change(&house, &OWN).await;
    all_complete(&house, &ids).await;
}

/// Nobody can be asked until the end: then it ends as any other task whose fate stays unknown.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_be_asked_about_is_given_up_in_the_end() {
    let house = house("refresh_after = \"10ms\"\npatience = \"1s\"\nunknown_time = \"1s\"").await;
    let slow = "[[sim:ok queue=1000]]";
    let stranger = create(&house, "wan2.7-t2v", slow).await.expect("taken");
    let away = create(&house, "kling-v3", slow).await.expect("taken");
    let config = std::fs::read_to_string(house.dir.join("tollgate.toml")).expect("read");
    let moved = config.replace(&house.sim.video_url("kling"), "http://127.0.0.1:1");
    change(&house, &[("tollgate.toml", &moved), OTHER[0]]).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    for id in [stranger, away] {
        house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
        let (task, row) = ended(&house, id).await;
        assert_eq!(super::money::code(&task), "task_unknown");
        assert!(row.charge.is_zero() && row.write_off.nano() > 0, "{row:?}");
    }
    assert!(house.sim.received().iter().all(|one| one.method != "DELETE" && !one.path.ends_with("/cancel")));
    assert_eq!(house.available().await, 1_000_000_000_000);
}

/// A file behind a key needs the key that made it; one behind an open link does not.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_account_that_is_away() {
    let house = house(TASKS).await;
    let mut ids = Vec::new();
    for model in ["kling-v3", "sora-2"] {
        let id = create(&house, model, "[[sim:ok queue=0 run=0]]").await.expect("taken");
        assert_eq!(ended(&house, id).await.0.state, TaskState::Completed);
        ids.push(id);
    }
    let status = async |id: TaskId| {
        let reply = house.get(&format!("/v1/videos/{id}/content")).send().await.expect("a reply");
        reply.status().as_u16()
    };
    assert_eq!((status(ids[0]).await, status(ids[1]).await), (200, 200));
    change(&house, &OTHER).await;
    assert_eq!((status(ids[0]).await, status(ids[1]).await), (200, 502), "it is not gone, only out of reach");
    change(&house, &OWN).await;
    assert_eq!((status(ids[0]).await, status(ids[1]).await), (200, 200));
}

/// The answer to a remix of this video: its task, or status, code and field of the refusal.
async fn remix(house: &House, source: TaskId) -> Result<TaskId, (u16, Value)> {
    let reply = house.http.post(house.url(&format!("/v1/videos/{source}/remix"))).bearer_auth(&house.key);
    let reply = reply.json(&json!({ "prompt": "[[sim:ok queue=0 run=0]]" })).send().await.expect("a reply");
    if reply.status() != 200 {
        let (status, error) = error_of(reply).await;
        return Err((status, json!([error["code"], error["param"]])));
    }
    let shown: Value = reply.json().await.expect("JSON");
    Ok(shown["id"].as_str().expect("an id").parse().expect("a task id"))
}

/// A counter as the operator sees it.
async fn metric(house: &House, name: &str) -> u64 {
    let page = house.get("/metrics").send().await.expect("a reply").text().await.expect("text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |number| number.parse().expect("a number"))
}

/// With which keys remixes were asked for.
fn remixed_with(house: &House) -> Vec<&'static str> {
    let asked = house.sim.received().into_iter().filter(|one| one.path.ends_with("/remix"));
    let keys = ["sim-key", "another-account", "sim-key#2"];
    let key = |one: tollgate_sim::Received| {
        keys.into_iter().find(|key| one.authorization_is(&format!("Bearer {key}"))).unwrap_or("unknown")
    };
    asked.map(key).collect()
}

/// Only the account that made a video can remix it, whatever the model's routes prefer by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_remix_goes_where_its_source_is() {
    let house = house(TASKS).await;
    let source = create(&house, "sora-2", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    assert_eq!(ended(&house, source).await.0.state, TaskState::Completed);
    let config = std::fs::read_to_string(house.dir.join("tollgate.toml")).expect("read");
    let url = house.sim.video_url("openai");
    let second = format!("[provider.second]\nkind = \"openai\"\nbase_url = \"{url}\"\nsecret_file = \"second.key\"\n");
    let catalog = std::fs::read_to_string(house.dir.join("catalog/video.toml")).expect("read");
    let own = "route = [{ provider = \"openai\", upstream_model = \"sora-2\" }]";
    let other = "{ provider = \"second\", upstream_model = \"sora-2\", priority = 1 }";
    assert!(catalog.contains(own));
    let both = format!("route = [{other}, {{ provider = \"openai\", upstream_model = \"sora-2\", priority = 2 }}]");
    let files = [
        ("second.key", "another-account"),
        ("tollgate.toml", &(config + &second)),
        ("catalog/video.toml", &catalog.replace(own, &both)),
    ];
    change(&house, &files).await;
    let made = remix(&house, source).await.expect("the second route has it");
    let (done, row) = ended(&house, made).await;
    assert_eq!((done.state, done.provider.as_deref()), (TaskState::Completed, Some("openai")));
    assert_eq!((row.charge.nano(), row.attempts), (price("sora-2"), 1));
    assert_eq!(remixed_with(&house), ["sim-key"], "the preferred route was not asked for another's video");

    // The account is no route of the model any more: nothing is sent, held or charged.
    let (before, rows) = (house.available().await, house.all_rows().await.len());
    change(&house, &[("catalog/video.toml", &catalog.replace(own, &format!("route = [{other}]")))]).await;
    assert_eq!(remix(&house, source).await, Err((400, json!(["unsupported_value", "id"]))));
    assert_eq!((house.available().await, house.all_rows().await.len()), (before, rows));
    assert_eq!(remixed_with(&house).len(), 1);

    // The same host with another key: one of another account does not have it, a new one of the
    // same account does.
    change(&house, &[("catalog/video.toml", &catalog), ("sim.key", "another-account")]).await;
    let strangers = "tollgate_task_polls_total{provider=\"openai\",outcome=\"other_account\"}";
    let count = metric(&house, strangers).await;
    assert_eq!(remix(&house, source).await, Err((404, json!(["not_found", "id"]))));
    assert_eq!(metric(&house, strangers).await, count + 1, "the operator is asked to put the account back");
    change(&house, &[("sim.key", "sim-key#2")]).await;
    let made = remix(&house, source).await.expect("the same account");
    assert_eq!(ended(&house, made).await.0.state, TaskState::Completed);
    assert_eq!(remixed_with(&house), ["sim-key", "another-account", "sim-key#2"]);
    assert_eq!(house.available().await, before - price("sora-2"), "only what was made is paid for");
}

/// The provider has forgotten the source: that is the caller's to know, costs nothing, and is no
/// trouble of the operator's account.
#[tokio::test(flavor = "multi_thread")]
async fn a_remix_of_what_the_provider_has_no_longer_is_refused_for_free() {
    let house = house(TASKS).await;
    let source = create(&house, "sora-2", "[[sim:dead_link queue=0 run=0]]").await.expect("taken");
    ended(&house, source).await;
    let before = house.available().await;
    let reply = house.http.post(house.url(&format!("/v1/videos/{source}/remix"))).bearer_auth(&house.key);
    let reply = reply.json(&json!({ "prompt": "again" })).send().await.expect("a reply");
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"], &error["param"]), (404, &json!("not_found"), &json!("id")), "{error}");
    let message = error["message"].as_str().expect("text");
    assert!(message.contains("`id`") && message.contains("no remix"), "{message}");
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.status, row.attempts), (0, 404, 1), "{row:?}");
    assert_eq!(house.available().await, before);
    let name = |code: &str| format!("tollgate_provider_faults_total{{provider=\"openai\",code=\"{code}\"}}");
    let faults = async |code: &str| metric(&house, &name(code)).await;
    assert_eq!((faults("not_found").await, faults("upstream_error").await), (1, 0));
}
