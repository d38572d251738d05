//! Runs of workflows in a simulation: customers quote, confirm, begin and follow them over HTTP,
//! two of the gateway's own workers drive them, prices change under them, and the provider answers,
//! fails or loses each step as its plan says. Whatever is cut off, no step is bought twice without
//! its customer's word, and no run costs more than was confirmed.

use super::actors::{ask, pause};
use super::draw::Draw;
use super::life::Sabotage;
use super::oracle::Rows;
use super::outside::{Outside, lock};
use super::provider::{Ending, Plan};
use super::tasks;
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tollgate_gateway::app::App;
use tollgate_gateway::sale::Serving;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::who::caller::{Caller, StepCaller};
use tollgate_store::testing::Crash;
use tollgate_store::{Attribution, CallId, KeyAndAccount, RunId, Store, WorkflowVerb};

/// Two conversations; a conversation and a film.
const SLUGS: [&str; 2] = ["tale", "tale-film"];
/// Words that a run ends with.
const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];
/// A customer lets a run go on so many times before it is cancelled.
const RESUMES: u32 = 6;

/// Sells the steps, at one of two prices.
const TELLER: &str = r#"
[model.teller]
supported_endpoint_types = ["openai"]
price = { input = {input}, output = {output} }
route = [{ provider = "sim", upstream_model = "u" }]
"#;

const TALE: &str = r#"
version = "1"
acceptance = [["nonempty:first.text"]]
[[step]]
name = "first"
endpoint = "/v1/chat/completions"
model = "teller"
body = { max_tokens = 40, messages = [{ role = "user", content = "tell {{inputs.words}} {{inputs.tag}}:0" }] }
gives = { text = "/choices/0/message/content" }
check = ["nonempty:text", "max_chars:text:200"]
"#;
const SECOND: &str = r#"
[[step]]
name = "second"
endpoint = "/v1/chat/completions"
model = "teller"
body = { max_tokens = 40, messages = [{ role = "user", content = "{{steps.first.text}} {{inputs.tag}}:1" }] }
gives = { text = "/choices/0/message/content" }
check = ["nonempty:text"]
"#;
const FILM: &str = r#"
[[step]]
name = "film"
endpoint = "/v1/videos"
model = "film"
body = { prompt = "film {{inputs.film}}", seconds = "5" }
gives = { id = "/id" }
"#;

/// What is known outside of one run.
#[derive(Clone, Debug)]
pub struct Ran {
    customer: usize,
    slug: &'static str,
    /// What the provider does with each conversation. One that is sent again is answered.
    plans: [Plan; 2],
    /// The order of its film.
    film: usize,
    /// What was confirmed, as it is sent until it is answered, and the most of all sums.
    body: Option<Value>,
    most: i64,
    id: Option<String>,
    /// How often its customer agreed to pay for a step once more.
    again: usize,
    resumes: u32,
    /// Who asked the provider for which step, and when.
    received: Vec<(usize, String, u64)>,
    /// The end that its customer saw.
    ended: Option<Value>,
}

/// The files of the workflows, beside the catalog; and a second catalog with dearer steps.
pub fn lay(dir: &Path) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/workflows/article-to-narration.json");
    let shipped: Value = serde_json::from_slice(&std::fs::read(shipped).expect("a record")).expect("JSON");
    let models = std::fs::read_to_string(dir.join("catalog/models.toml")).expect("a catalog");
    for (folder, times) in [("catalog", 1), ("dear", 10)] {
        let folder = dir.join(folder);
        let teller = TELLER.replace("{input}", &format!("{times}_000_000"));
        let teller = teller.replace("{output}", &format!("{}_000_000", 2 * times));
        std::fs::create_dir_all(folder.join("workflows")).expect("a folder");
        std::fs::write(folder.join("models.toml"), format!("{models}{teller}")).expect("written");
        for (slug, last) in SLUGS.into_iter().zip([SECOND, FILM]) {
            let workflows = folder.join("workflows");
            std::fs::write(workflows.join(format!("{slug}.json")), record(shipped.clone(), slug)).expect("written");
            std::fs::create_dir_all(workflows.join(slug)).expect("a folder");
            std::fs::write(workflows.join(slug).join("package.toml"), format!("{TALE}{last}")).expect("written");
        }
    }
}

fn record(mut record: Value, slug: &str) -> String {
    let input = |id: &str| {
        json!({
            "id": id, "type": "string", "required": true, "description": id, "evidence_status": "semantic_stable",
            "default": null, "allowed_values": [], "cost_sensitive": false,
        })
    };
    let ids = ["words", "tag", "film"];
    record["inputs"] = ids.into_iter().map(input).collect();
    (record["slug"], record["workflow_id"]) = (json!(slug), json!(format!("wf-{slug}")));
    record["acceptance_checks"] = json!(["There is a text."]);
    let binding = &mut record["runtime_binding"];
    binding["endpoint"] = json!(format!("/v1/workflows/{slug}/runs"));
    binding["fixture_path"] = Value::Null;
    binding["request_field_map"] =
        ids.into_iter().map(|id| (id.to_owned(), json!(format!("inputs.{id}")))).collect::<Map<_, _>>().into();
    record.to_string()
}

/// All of them are verified, for as long as a simulation lasts.
pub async fn verify(store: &Store, source: &ConfigSource, now: i64) {
    let serving = source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}")).serving;
    let done = || Attribution::by("test".to_owned(), "simulated".to_owned());
    for slug in SLUGS {
        let bound = &serving.workflows[slug];
        let locked = bound.planned(WorkflowVerb::Lock, None, done(), now).expect("it can be locked");
        store.move_workflow(locked.clone()).await.expect("locked");
        let proof = Map::from_iter([("valid_until_ms".to_owned(), json!(i64::MAX))]);
        let verified = bound.verified(Some(&locked), done(), now, proof).expect("it can be verified");
        store.move_workflow(verified).await.expect("verified");
    }
}

/// Changes the prices of the steps now and then.
pub async fn merchant(outside: Arc<Outside>, app: Arc<App>, catalogs: [Arc<Serving>; 2]) {
    let changes = outside.draw().below(3);
    for _ in 0..changes {
        let (wait, dear) = {
            let mut draw = outside.draw();
            (draw.between(200, 4_000), draw.percent(50))
        };
        pause(wait).await;
        outside.note("prices of runs are dear", u64::from(dear));
        app.serving.store(catalogs[usize::from(dear)].clone());
        let _ = app.look_at_workflows().await;
    }
}

/// The router of the workers, with faults that are built in on purpose.
pub fn spoiled(router: Router, sabotage: Sabotage, life: u32) -> Router {
    if sabotage.runs_have_no_cap {
        return router.layer(map_request(|mut request: Request| async move {
            if let Some(StepCaller(caller)) = request.extensions().get::<StepCaller>().cloned() {
                let found = KeyAndAccount { key: caller.key.clone(), account: caller.account.clone() };
                request.extensions_mut().insert(StepCaller(Arc::new(Caller::new(found))));
            }
            request
        }));
    }
    if sabotage.run_keys_change {
        return router.layer(map_request(move |mut request: Request| async move {
            if let Some(key) = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()) {
                let other = HeaderValue::try_from(format!("{key}-{life}")).expect("a header");
                request.headers_mut().insert("idempotency-key", other);
            }
            request
        }));
    }
    router
}

fn plan(draw: &mut Draw) -> Plan {
    use Ending::{Cut, Fine, NoReport, Reset, ServerError, Silence};
    Plan {
        think_ms: draw.one(&[0, 5, 300, 2_500]),
        words: draw.between(5, 30),
        delay_ms: 0,
        ending: draw.one(&[
            Fine,
            Fine,
            Fine,
            Fine,
            Fine,
            Fine,
            Fine,
            Fine,
            Fine,
            NoReport,
            ServerError,
            Reset,
            Cut,
            Silence,
        ]),
    }
}

/// A new run of this life.
pub fn wanted(outside: &Outside) -> usize {
    let (customer, slug, plans) = {
        let mut draw = outside.draw();
        let customer = usize::from(draw.percent(30));
        (customer, draw.one(&SLUGS), [plan(&mut draw), plan(&mut draw)])
    };
    let film = tasks::order_of(outside, customer);
    let mut runs = lock(&outside.runs);
    runs.push(Ran {
        customer,
        slug,
        plans,
        film,
        body: None,
        most: 0,
        id: None,
        again: 0,
        resumes: 0,
        received: Vec::new(),
        ended: None,
    });
    runs.len() - 1
}

/// Runs of earlier lives whose customers have not seen their end.
pub fn open(outside: &Outside) -> Vec<usize> {
    let runs = lock(&outside.runs);
    (0..runs.len()).filter(|slot| runs[*slot].ended.is_none()).collect()
}

/// The run and step that a conversation is about.
fn tag(prompt: &str) -> Option<(usize, usize)> {
    let (slot, step) = prompt.rsplit(' ').next()?.strip_prefix("run:")?.split_once(':')?;
    Some((slot.parse().ok()?, step.parse().ok()?))
}

/// What the provider does with a step, if it is asked for one.
pub fn received(outside: &Outside, prompt: &str, call: &str) -> Option<Plan> {
    let (slot, step) = tag(prompt)?;
    outside.note("a step is asked for", (10 * slot + step) as u64);
    let event = outside.event();
    let run = &mut lock(&outside.runs)[slot];
    let before = run.received.iter().filter(|(at, ..)| *at == step).count();
    run.received.push((step, call.to_owned(), event));
    let plan = run.plans[step].clone();
    Some(if before == 0 { plan } else { Plan { ending: Ending::Fine, ..plan } })
}

/// A hold that was not safe is lost with the power, and so is the call's row.
pub fn crashed(outside: &Outside, how: Crash, safe: u64) {
    for run in lock(&outside.runs).iter_mut() {
        for (_, _, event) in run.received.iter_mut().filter(|one| how == Crash::PowerCut && one.2 >= safe) {
            *event = 0;
        }
    }
}

/// Quotes a run, begins it and follows it to its end.
pub async fn customer(outside: Arc<Outside>, router: Router, slot: usize) {
    let wait = outside.draw().below(3_000);
    pause(wait).await;
    let run = lock(&outside.runs)[slot].clone();
    let secret = outside.customers[run.customer].secret.clone();
    let id = match run.id {
        Some(id) => Some(id),
        None => begin(&outside, &router, slot, &run, &secret).await,
    };
    if let Some(id) = id {
        follow(&outside, &router, slot, &secret, &id).await;
    }
}

async fn begin(outside: &Outside, router: &Router, slot: usize, run: &Ran, secret: &str) -> Option<String> {
    let inputs = json!({ "words": "a tale", "tag": format!("run:{slot}"), "film": run.film.to_string() });
    let (quotes, runs) = (format!("/v1/workflows/{}/quote", run.slug), format!("/v1/workflows/{}/runs", run.slug));
    for _ in 0..8 {
        let body = lock(&outside.runs)[slot].body.clone();
        let body = match body {
            Some(body) => body,
            None => {
                let asked = json!({ "inputs": inputs });
                let (status, quote) = ask(router, Method::POST, &quotes, secret, Some(&asked), None).await;
                assert!(status == 200 || status == 503, "a quote was refused: {quote}");
                let wait = outside.draw().one(&[5, 300, 1_500]);
                pause(wait).await;
                if status != 200 {
                    continue;
                }
                confirm(outside, slot, &inputs, &quote["confirm"])
            }
        };
        let key = Some(format!("run-{slot}"));
        let (status, reply) = ask(router, Method::POST, &runs, secret, Some(&body), key).await;
        outside.note(&format!("answered {status} to a run"), slot as u64);
        match (status, reply["error"]["code"].as_str()) {
            (202, _) => {
                let id = reply["id"].as_str().expect("an id").to_owned();
                let before = lock(&outside.runs)[slot].id.replace(id.clone());
                assert!(before.is_none_or(|before| before == id), "one key and two runs");
                return Some(id);
            }
            // The price has risen since the quote.
            (409, Some("confirmation_required")) => {
                drop(confirm(outside, slot, &inputs, &reply["error"]["details"]["quote"]["confirm"]));
            }
            (402, _) => return None,
            (503, _) => {}
            _ => panic!("a run was refused: {reply}"),
        }
        let wait = outside.draw().between(20, 900);
        pause(wait).await;
    }
    None
}

/// Notes what is confirmed before it is sent.
fn confirm(outside: &Outside, slot: usize, inputs: &Value, confirm: &Value) -> Value {
    let body = json!({ "inputs": inputs, "confirm": confirm });
    let run = &mut lock(&outside.runs)[slot];
    run.most = run.most.max(confirm["max_cost_nano_usd"].as_i64().expect("a sum"));
    run.body = Some(body.clone());
    body
}

async fn follow(outside: &Outside, router: &Router, slot: usize, secret: &str, id: &str) {
    let path = format!("/v1/workflows/runs/{id}");
    loop {
        let wait = outside.draw().one(&[20, 300, 2_000]);
        pause(wait).await;
        let (status, shown) = ask(router, Method::GET, &path, secret, None, None).await;
        if status != 200 {
            assert_eq!(status, 503, "a run that was begun is there: {shown}");
            continue;
        }
        let word = shown["status"].as_str().expect("a status").to_owned();
        if ENDS.contains(&word.as_str()) {
            outside.note(&format!("a run has {word}"), slot as u64);
            lock(&outside.runs)[slot].ended = Some(shown);
            return;
        }
        let (dice, once) = {
            let mut draw = outside.draw();
            (draw.below(100), draw.percent(50))
        };
        let wish = match (word.as_str(), shown["stopped"].as_str()) {
            ("stopped", Some(why)) => wish(outside, slot, why, once),
            _ if dice < 2 => None,
            _ => continue,
        };
        outside.note(if wish.is_some() { "a run is resumed" } else { "a run is cancelled" }, slot as u64);
        let (verb, body) = wish.map_or(("cancel", json!({})), |body| ("resume", body));
        let (status, reply) = ask(router, Method::POST, &format!("{path}/{verb}"), secret, Some(&body), None).await;
        assert!([200, 409, 503].contains(&status), "{verb}: {reply}");
    }
}

/// What its customer asks of a run that is stopped; nothing: that it ends.
fn wish(outside: &Outside, slot: usize, why: &str, once: bool) -> Option<Value> {
    let run = &mut lock(&outside.runs)[slot];
    run.resumes += 1;
    if run.resumes > RESUMES {
        return None;
    }
    match why {
        "price_rose" | "over_confirmed" if once => {
            run.most = run.most.saturating_mul(4);
            Some(json!({ "max_cost_nano_usd": run.most }))
        }
        "charge_unknown" if once => {
            run.again += 1;
            lock(&outside.orders)[run.film].again += 1;
            Some(json!({ "resubmit": true }))
        }
        "price_rose" | "over_confirmed" => None,
        "out_of_money" | "charge_unknown" | "took_too_long" => Some(json!({})),
        other => panic!("nobody expects {other}"),
    }
}

/// What holds of every run, and at the end, when all have ended, of what they cost.
pub async fn check(outside: &Outside, app: &App, rows: &Rows, when: &str) {
    let runs = lock(&outside.runs).clone();
    for (slot, run) in runs.iter().enumerate() {
        let charge = |call: &str| rows.get(call).map_or(0, |row| row.charge.nano());
        for (_, call, event) in &run.received {
            assert!(rows.contains_key(call) || *event == 0, "{when}: a step is in no log: {call} of {run:#?}");
        }
        let film = tasks::cost_of(outside, app, run.customer, run.film, rows).await;
        let calls: BTreeSet<&str> = run.received.iter().map(|(_, call, _)| &**call).collect();
        let sum = calls.into_iter().map(charge).sum::<i64>() + film;
        assert!(sum <= run.most, "{when}: run {slot} cost {sum} and {} were confirmed: {run:#?}", run.most);
        for step in 0..run.plans.len() {
            let calls = run.received.iter().filter(|(at, ..)| *at == step);
            let bought: BTreeSet<&str> = calls.map(|(_, call, _)| &**call).filter(|call| charge(call) > 0).collect();
            assert!(bought.len() <= 1 + run.again, "{when}: step {step} of run {slot} was bought twice: {run:#?}");
        }
        let Some(id) = &run.id else { continue };
        let id: RunId = id.parse().expect("an id");
        let stored = app.store.any_run(id).await.expect("runs can be read");
        let stored = stored.unwrap_or_else(|| panic!("{when}: a run is gone: {run:#?}"));
        let Some(ended) = &run.ended else { continue };
        assert_eq!(ended["status"], stored.status, "{when}: an end was taken back: {run:#?}");
        check_end(app, run, id, (ended, sum), rows, when).await;
    }
}

/// An end is about all that was bought: the run shows it, and each call is shown as a step of it.
async fn check_end(app: &App, run: &Ran, id: RunId, (ended, sum): (&Value, i64), rows: &Rows, when: &str) {
    let steps = ended["steps"].as_array().expect("steps");
    let done = steps.iter().filter(|step| step["status"] == "done").count();
    assert!(ended["status"] != "completed" || done == steps.len(), "{when}: {run:#?}");
    assert!(sum <= ended["max_cost_nano_usd"].as_i64().expect("a sum"), "{when}: {sum} of {run:#?}");
    // What was bought while nobody could tell is somebody's to find; its customer was asked.
    if run.again > 0 || ended["status"] == "cancelled" {
        return;
    }
    assert_eq!(ended["charged_nano_usd"].as_i64(), Some(sum), "{when}: what it shows, and what it cost: {run:#?}");
    let calls = steps.iter().flat_map(|step| step["calls"].as_array().cloned().unwrap_or_default());
    let calls: Vec<CallId> = calls.map(|call| call.as_str().expect("text").parse().expect("a call")).collect();
    let paid = |call: &CallId| rows.get(&call.to_string()).is_some_and(|row| row.charge.nano() > 0);
    let calls: Vec<CallId> = calls.into_iter().filter(paid).collect();
    let known = app.store.runs_of_calls(calls.clone()).await.expect("read");
    assert_eq!(known.len(), calls.len(), "{when}: calls of {run:#?}");
    assert!(known.iter().all(|(_, of)| *of == id), "{when}: {known:?}");
}
