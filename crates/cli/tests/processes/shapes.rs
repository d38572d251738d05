//! What `--json` prints: docs/command-line.md shows a result of every command, and each has the
//! members that stand there. The same call has the same members with the same values wherever it is
//! asked for.

use crate::house::{chat, text};
use crate::process::{HANG, Process, tollgate};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PAGE: &str = include_str!("../../../../docs/command-line.md");
/// They print nothing of ours in JSON: a server, a protocol, a script for a shell, a provider's
/// answer.
const WITHOUT: [&str; 5] = ["serve", "mcp", "completions", "social call", "help"];
/// Models that were sold at one price and at another.
const CHEAP: &str = "[model.chat]\nprice = { input = 3_000_000, output = 15_000_000 }\nroute = [{ provider = \"sim\", upstream_model = \"m\" }]\n";
const DEAR: &str = "[model.chat]\nprice = { input = 3_300_000, output = 15_000_000 }\nroute = [{ provider = \"sim\", upstream_model = \"m\" }]\n";
const PRICES: &str =
    r#"{"acme/m": {"litellm_provider": "acme", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}"#;
const WORKFLOW: &str = include_str!("../../../workflows/tests/example/storyline-to-clip.json");
const QUESTION: &str = r#"{"model":"tollgate-demo","messages":[{"role":"user","content":"Hello!"}],"max_tokens":10}"#;

/// A demo and what was printed by commands that were tried on it.
struct Tried {
    demo: Process,
    line: Value,
    dir: TempDir,
    page: BTreeMap<String, Value>,
    commands: BTreeSet<String>,
}

impl Tried {
    fn new() -> Tried {
        let dir = tempfile::tempdir().expect("a folder");
        let mut command = tollgate(&["demo", "--listen", "127.0.0.1:0", "--json", "--data", "demo"]);
        command.current_dir(dir.path());
        let mut demo = Process::start(command, &dir.path().join("demo.log"));
        let line = demo.first_line();
        let mut tried = Tried { demo, line, dir, page: shapes(), commands: BTreeSet::new() };
        tried.compare("demo", &tried.line.clone());
        tried
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let config: PathBuf = self.dir.path().join("demo/tollgate.toml");
        let mut command = tollgate(words);
        command.args(["--json", "--config"]).arg(config).current_dir(self.dir.path());
        command.env("TOLLGATE_URL", text(&self.line["base_url"])).env("TOLLGATE_API_KEY", text(&self.line["key"]));
        command
    }

    /// Runs a command of the page, whose words begin with those that stand there.
    fn run(&mut self, name: &str, more: &[&str]) -> Value {
        let words: Vec<&str> = name.split(' ').chain(more.iter().copied()).collect();
        let output = self.command(&words).output().expect("it ran");
        let shown = String::from_utf8_lossy(&output.stdout);
        let first = if name.contains("jsonl") { shown.lines().next().unwrap_or_default() } else { &shown };
        let value = serde_json::from_str(first).unwrap_or_else(|error| {
            panic!("{name}: {error}: {shown} {}", String::from_utf8_lossy(&output.stderr));
        });
        self.compare(name, &value);
        value
    }

    fn compare(&mut self, name: &str, got: &Value) {
        let page = self.page.get(name).unwrap_or_else(|| panic!("`tollgate {name}` is not on the page: {got}"));
        if let Some(difference) = difference("", page, got) {
            panic!("`tollgate {name}`: {difference}\non the page: {page}\nprinted: {got}");
        }
        self.commands.insert(name.to_owned());
    }

    async fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", text(&self.line["base_url"]));
        let reply = reqwest::Client::new().get(url).bearer_auth(text(&self.line["key"])).send().await;
        reply.expect("a reply").json().await.expect("JSON")
    }

    /// A call that has ended.
    async fn called(&self) -> String {
        let url = format!("{}/v1/chat/completions", text(&self.line["base_url"]));
        let question = chat("tollgate-demo", "Hello!");
        let asked = reqwest::Client::new().post(url).bearer_auth(text(&self.line["key"])).json(&question);
        let reply = asked.send().await.expect("a reply");
        let call = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
        assert_eq!(reply.status(), 200);
        reply.bytes().await.expect("a body");
        let until = Instant::now() + HANG;
        while self.get(&format!("/v1/usage/{call}")).await["call_id"] != call {
            assert!(Instant::now() < until, "the call is not in the log");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        call
    }
}

/// The JSON that the page shows, by the commands that stand before it.
fn shapes() -> BTreeMap<String, Value> {
    let mut shapes = BTreeMap::new();
    let mut parts = PAGE.split("```");
    while let (Some(words), Some(code)) = (parts.next(), parts.next()) {
        let Some(json) = code.strip_prefix("json\n") else { continue };
        let value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        for name in words.split('`').filter_map(|word| word.strip_prefix("tollgate ")) {
            let before = shapes.insert(name.to_owned(), value.clone());
            assert!(before.is_none(), "`tollgate {name}` stands twice");
        }
    }
    shapes
}

/// Where two values differ in their members. `null` and an empty list can stand for anything.
fn difference(place: &str, page: &Value, got: &Value) -> Option<String> {
    match (page, got) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Object(page), Value::Object(got)) => {
            let names = |of: &Map<String, Value>| of.keys().cloned().collect::<BTreeSet<String>>();
            let (ours, theirs) = (names(page), names(got));
            if ours != theirs {
                let odd: Vec<_> = ours.symmetric_difference(&theirs).collect();
                return Some(format!("members of {place:?} differ: {odd:?}"));
            }
            page.iter().find_map(|(name, value)| difference(&format!("{place}.{name}"), value, &got[name]))
        }
        (Value::Array(page), Value::Array(got)) => {
            let (page, got) = (page.first()?, got.first()?);
            difference(&format!("{place}[]"), page, got)
        }
        (page, got) => {
            let same = std::mem::discriminant(page) == std::mem::discriminant(got);
            (!same).then(|| format!("{place:?} is {page} on the page and {got}"))
        }
    }
}

/// Every command there is, as its parents' help lists them.
fn all_commands(parent: &str) -> BTreeSet<String> {
    let words: Vec<&str> = parent.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect();
    let help = tollgate(&words).output().expect("it ran").stdout;
    let help = String::from_utf8(help).expect("UTF-8");
    let mut commands = BTreeSet::new();
    if !help.contains("<COMMAND>") {
        commands.insert(parent.to_owned());
    }
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    for line in listed.lines().take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().expect("a name");
        if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
            commands.extend(all_commands(format!("{parent} {name}").trim_start()));
        }
    }
    commands
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_prints_what_its_page_shows() {
    let mut tried = Tried::new();
    let call = tried.called().await;
    accounts(&mut tried, &call);
    keys(&mut tried);
    prices(&mut tried);
    pauses(&mut tried);
    workflows(&mut tried);
    proofs(&mut tried, &call);
    customers(&mut tried);
    money(&mut tried).await;
    let mut sim =
        Process::start(tollgate(&["sim", "--listen", "127.0.0.1:0", "--json"]), &tried.dir.path().join("sim.log"));
    tried.compare("sim", &sim.first_line());
    sim.kill();
    tried.demo.kill();

    let on_page: BTreeSet<String> = tried.page.keys().cloned().collect();
    assert_eq!(on_page, tried.commands, "what stands on the page was tried");
    let plain = |name: &String| name.split(" --").next().unwrap_or_default().to_owned();
    let documented: BTreeSet<String> = on_page.iter().map(plain).chain(WITHOUT.map(str::to_owned)).collect();
    let missing: Vec<String> = all_commands("").difference(&documented).cloned().collect();
    assert_eq!(missing, [""; 0], "commands without a shape on the page");
}

fn alerts(tried: &mut Tried, account: &str) {
    let to = tried.file("hook.url", "http://127.0.0.1:9/hook\n");
    let place = tried.run("alert add-place", &["ops", "--kind", "slack", "--to-file", &to]);
    let place = text(&place["place_id"]);
    tried.run("alert places", &[]);
    let words = ["low", "--kind", "balance", "--account", account, "--usd", "1", "--place", &place];
    let rule = text(&tried.run("alert add-rule", &words)["rule_id"]);
    tried.run("alert rules", &[]);
    tried.run("alert switch-rule", &[&rule, "off"]);
    tried.run("alert silence", &[&rule, "--for", "2h"]);
    tried.run("alert firing", &[]);
    tried.run("alert events", &[]);
    tried.run("alert remove-rule", &[&rule]);
    tried.run("alert remove-place", &[&place]);
    tried.run("account notice", &[account, "--below", "5"]);
}

async fn money(tried: &mut Tried) {
    let made = tried.run("codes create", &["5", "--count", "2", "--ends", "30d", "--note", "fair"]);
    tried.run("codes list", &[]);
    tried.run("codes revoke", &[&text(&made["batch_id"])]);
    let url = format!("{}/api/account/topups", text(&tried.line["base_url"]));
    let asked = reqwest::Client::new().post(url).bearer_auth(text(&tried.line["manage_key"]));
    let reply = asked.json(&serde_json::json!({ "amount_minor": 2500 })).send().await.expect("a reply");
    let order: Value = reply.json().await.expect("JSON");
    let (id, account) = (text(&order["order_id"]), text(&order["account_id"]));
    // The page pays by a button, and Stripe tells of it.
    let paid = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let paid = paid.post(text(&order["url"])).send().await.expect("a reply");
    assert_eq!(paid.status(), 303);
    let until = Instant::now() + HANG;
    while tried.run("order show", &[&id])["state"] != "credited" {
        assert!(Instant::now() < until, "the order is not credited");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tried.run("order list", &[]);
    tried.run("order forgive", &[&id]);
    let month = tried.run("account statement", &[&account, "2026-01"]);
    assert_eq!(month["closing_nano_usd"], 0, "nothing was there then");
}

fn accounts(tried: &mut Tried, call: &str) {
    let made = tried.run("account create", &["Example Ltd", "--trial", "1", "--expires", "30d", "--limit-day", "5"]);
    let id = text(&made["account_id"]);
    tried.run("account topup", &[&id, "25", "--id", "invoice-17"]);
    tried.run("account adjust", &[&id, "-0.5", "--reason", "booked twice"]);
    tried.run("account update", &[&id, "--name", "Example GmbH"]);
    tried.run("account suspend", &[&id, "--reason", "chargeback"]);
    tried.run("account reopen", &[&id]);
    let gone = text(&tried.run("account create", &["Gone Ltd", "--trial", "1"])["account_id"]);
    let closed = tried.run("account close", &[&gone, "--give-up", "1", "--reason", "asked for"]);
    assert!(closed["closed_at_ms"].is_number(), "{closed}");
    assert!(tried.run("account reopen", &[&gone])["closed_at_ms"].is_null());
    tried.run("account webhook", &[&id, "https://example.com/hook"]);
    tried.run("account list", &[]);
    tried.run("key create", &[&id, "--name", "laptop", "--model", "tollgate-demo", "--ip", "10.0.0.0/8"]);
    tried.run("account show", &[&id]);
    tried.run("refund", &[call, "--reason", "bad answer"]);
    tried.run("account history", &[&id]);
    alerts(tried, &id);
    let account = text(&tried.run("usage", &[])[0]["account_id"]);
    tried.run("usage --call", &[call, "--account", &account]);
    tried.run("usage --from", &["2026-01-01", "--by", "model,day", "--tz", "Asia/Kathmandu"]);
    tried.run("margin", &[]);
    tried.run("log", &[]);
}

fn keys(tried: &mut Tried) {
    let all = tried.run("account list", &[]);
    let id = text(&all[0]["account_id"]);
    let key = tried.run("key create", &[&id, "--limit-total", "5"]);
    tried.run("key update", &[&text(&key["key_id"]), "--name", "phone"]);
    tried.run("key rotate", &[&text(&key["key_id"]), "--grace", "1h"]);
    tried.run("key list", &[&id]);
    tried.run("key revoke", &[&text(&key["key_id"])]);
    let admin = tried.run("admin-key create", &["night shift", "--expires", "30d"]);
    tried.run("admin-key list", &[]);
    tried.run("admin-key revoke", &[&text(&admin["admin_key_id"])]);
    tried.run("admin-key log", &[]);
    tried.run("person create", &["eve@example.com", "--auditor"]);
    tried.run("person link", &["eve@example.com"]);
    tried.run("person list", &[]);
}

fn prices(tried: &mut Tried) {
    let (old, new) = (tried.file("old.toml", CHEAP), tried.file("new.toml", DEAR));
    tried.run("catalog diff", &[&old, &new]);
    tried.run("catalog tidy", &[]);
    tried.run("catalog list", &[]);
    tried.run("catalog list openai", &["--model", "gpt-4.1"]);
    let prices = tried.file("prices.json", PRICES);
    let out = tried.dir.path().join("imported/acme.toml");
    tried.run("catalog import", &["--from", "litellm", &prices, "--provider", "acme", "--out", &out.to_string_lossy()]);
    tried.run("catalog enable", &["openai", "--model", "gpt-4.1", "--margin", "10%"]);
    tried.run("catalog update", &["openai"]);
    tried.run("catalog disable", &["openai"]);
    let elsewhere = tried.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let asked = ["init", "--yes", "--provider", "openai", "--json"];
    let output = tollgate(&asked).current_dir(&elsewhere).output().expect("it ran");
    tried.compare("init", &serde_json::from_slice(&output.stdout).expect("JSON"));
    tried.run("catalog show", &["--from", &old]);
    tried.run("catalog show chat", &["--from", &old]);
    tried.run("check", &[]);
    let question = tried.file("question.json", QUESTION);
    tried.run("quote", &[&question, "--endpoint", "/v1/chat/completions"]);
}

fn pauses(tried: &mut Tried) {
    for (kind, name) in [("model", "tollgate-demo"), ("provider", "sim")] {
        tried.run(&format!("{kind} pause"), &[name, "--reason", "wrong answers"]);
        tried.run(&format!("{kind} list"), &["--paused"]);
        tried.run(&format!("{kind} resume"), &[name]);
    }
    tried.run("provider list --all", &["--endpoint", "speech"]);
    tried.run("provider add", &["ollama"]);
    tried.run("provider show", &["ollama"]);
    tried.run("provider test", &["sim"]);
    tried.run("social pause", &["weibo/search", "--reason", "an incident"]);
    tried.run("social list", &["--paused"]);
    tried.run("social resume", &["weibo/search", "--reason", "it is over"]);
    tried.run("social log", &[]);
}

fn workflows(tried: &mut Tried) {
    let folder = tried.dir.path().join("demo/catalog/workflows");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("storyline-to-clip.json"), WORKFLOW).expect("written");
    let slug = "storyline-to-clip";
    let checked = tried.run("workflow check", &[]);
    assert_eq!((&checked["ok"], &checked["warnings"]), (&true.into(), &Value::Array(Vec::new())));
    let stage = |tried: &mut Tried, slug: &str| {
        let all = tried.run("workflow list", &[]);
        all.as_array().expect("a list").iter().find(|one| one["slug"] == slug).expect("a workflow")["stage"].clone()
    };
    tried.run("workflow lock", &[slug, "--reason", "reviewed"]);
    assert_eq!(stage(tried, slug), "locked");
    let shown = tried.run("workflow show", &[slug]);
    assert_eq!(shown["contract_status"], "contract_locked_not_executable");
    tried.run("workflow unlock", &[slug, "--reason", "another model"]);
    assert_eq!(tried.run("workflow moves", &[slug])[0]["verb"], "unlock");
    assert_eq!(stage(tried, slug), "draft");
    let shipped = "article-to-narration";
    tried.run("workflow lock", &[shipped, "--reason", "reviewed"]);
    let usage = tried.run("usage", &[]);
    let (account, key) = (text(&usage[0]["account_id"]), text(&usage[0]["key_id"]));
    let proof = ["--account", &account, "--key", &key, "--reason", "a new model"];
    let verified = tried.run("workflow verify", &[&[shipped], &proof[..]].concat());
    assert_eq!(verified["verified"], true, "{verified}");
    assert_eq!(stage(tried, shipped), "verified");
    runs(tried, shipped);
    tried.run("workflow withdraw", &[shipped, "--reason", "it mumbles"]);
    assert_eq!(stage(tried, shipped), "locked");
    let broken = tried.file("storyline-to-clip.json", &WORKFLOW.replace("gateway.workflow.v1", "v2"));
    let checked = tried.run("workflow check", &[&broken]);
    assert_eq!((&checked["ok"], &checked["records"][0]["by_schema"]), (&false.into(), &false.into()));
    let mistake = &checked["mistakes"][0];
    assert_eq!((&mistake["field"], &mistake["line"]), (&"schema_version".into(), &3.into()), "{mistake}");
}

fn runs(tried: &mut Tried, slug: &str) {
    let inputs = [slug, "--input", "article=Rain all day."];
    let quote = tried.run("workflow quote", &inputs);
    assert_eq!(quote["executable"], true, "{quote}");
    let waited = ["--every", "1"];
    let run = tried.run("workflow run", &[&inputs[..], &["--yes"], &waited].concat());
    assert_eq!(run["status"], "completed", "{run}");
    let id = text(&run["id"]);
    tried.run("workflow wait", &[&[&*id], &waited[..]].concat());
    tried.run("workflow cancel", &[&id]);
    assert_eq!(tried.run("workflow runs", &[])["data"][0]["id"], run["id"]);
    // A key that may spend next to nothing: the run is stopped for want of money.
    let account = text(&tried.run("usage", &[])[0]["account_id"]);
    let poor = tried.run("key create", &[&account, "--limit-total", "0.00001"]);
    let rich = tried.line["key"].clone();
    tried.line["key"] = poor["secret"].clone();
    let stopped = tried.run("workflow run", &[&inputs[..], &["--yes"], &waited].concat());
    assert_eq!(stopped["stopped"], "out_of_money", "{stopped}");
    tried.run("workflow resume", &[&text(&stopped["id"])]);
    tried.run("workflow cancel", &[&text(&stopped["id"])]);
    tried.line["key"] = rich;
}

fn proofs(tried: &mut Tried, call: &str) {
    let account = text(&tried.run("usage", &[])[0]["account_id"]);
    let receipt = tried.run("receipt show", &[call, "--account", &account]);
    let file = tried.file("receipt.json", &receipt.to_string());
    tried.run("receipt verify", &[&file]);
    tried.run("receipt keys", &[]);
    tried.run("receipt price", &[&text(&receipt["receipt"]["calculation"]["price_id"])]);
    tried.run("receipt rotate", &[]);
    tried.run("ledger verify", &[]);
    tried.run("ledger export --format jsonl", &[]);
    let bill = tried.file("bill.csv", &format!("call_id,cost_usd\n{call},7\n"));
    tried.run("ledger reconcile", &[&bill]);
    tried.run("clock", &[]);
    tried.run("clock accept", &[]);
}

fn customers(tried: &mut Tried) {
    tried.run("social export", &["douyin/comments", "aweme_id=7", "--out", "list.jsonl", "--pages", "1"]);
    tried.run("social day", &[]);
    let task = tried.run("video create", &["--model", "wan2.7-t2v", "A gate opens."]);
    let id = text(&task["id"]);
    tried.run("video wait", &[&id, "--every", "1"]);
    tried.run("video show", &[&id]);
    tried.run("video list", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_the_same_in_usage_command_line_and_receipt() {
    let mut tried = Tried::new();
    let call = tried.called().await;
    let row = tried.run("usage", &[])[0].clone();
    let account = text(&row["account_id"]);
    let whole = tried.run("usage --call", &[&call, "--account", &account]);
    let listed = tried.get("/v1/usage").await["data"][0].clone();
    let over_http = tried.get(&format!("/v1/usage/{call}")).await;
    let receipt = tried.get(&format!("/v1/usage/{call}/receipt")).await["receipt"].clone();
    assert_eq!(row["call_id"], call);

    // Operators see more of it, customers the sum besides.
    shared("the list", &listed, &row, &[]);
    shared("one call", &over_http, &whole, &["calculation", "entries", "extensions"]);
    let only_there =
        ["format", "kid", "issued_at_ms", "key_prefix", "raw_usage_sha256", "calculation", "total_nano_usd"];
    shared("the receipt", &receipt, &over_http, &only_there);
    let sum = &over_http["calculation"];
    shared("its calculation", &receipt["calculation"], sum, &["price_id", "price_sha256"]);
    assert_eq!(receipt["total_nano_usd"], sum["total_nano_usd"]);

    let keys = tried.run("key list", &[&account]);
    let key = keys.as_array().into_iter().flatten().find(|key| key["key_id"] == row["key_id"]).expect("its key");
    assert_eq!((&key["account_id"], &key["key_prefix"]), (&row["account_id"], &receipt["key_prefix"]));
    assert_eq!(tried.get("/v1/balance").await["account_id"], row["account_id"]);
    tried.demo.kill();
}

/// Every member of one is in the other, with the same value, but for those that only the one has.
fn shared(what: &str, one: &Value, other: &Value, only: &[&str]) {
    let members = one.as_object().expect("an object");
    for (name, value) in members.iter().filter(|(name, _)| !only.contains(&name.as_str())) {
        assert_eq!(other.get(name), Some(value), "`{name}` of {what}");
    }
    for name in only {
        assert!(
            members.contains_key(*name) && other.get(name).is_none_or(|_| *name == "calculation"),
            "{name} of {what}"
        );
    }
}
