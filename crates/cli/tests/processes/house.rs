//! A house of real processes: simulator, one or more gateways over one database, an account with
//! money, a key.

use crate::process::{HANG, Process, TOLLGATE, executable, free_port, limited, tollgate};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tollgate_sim::video::{KLING_ACCESS, KLING_SECRET};

/// `plain`: 1 and 2 USD per million tokens, so a token costs 1,000 and 2,000 nano-USD.
/// `by-the-call`: 2,500,000 nano-USD, so that a hold and the charge that follows are the same.
const CATALOG: &str = r#"
[model."plain"]
context_window = 100_000
max_output_tokens = 1_000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."billed-to-the-end"]
context_window = 100_000
max_output_tokens = 1_000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "stubborn", upstream_model = "sim-plain" }]

[model."by-the-call"]
billing_unit = "per_call"
price = { per_call = 2_500 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// The provider's secret; it must never be seen in a log.
pub const PROVIDER_SECRET: &str = "provider-canary-5e0c9d41";

pub struct Plan<'a> {
    pub database: &'a str,
    pub gates: usize,
    pub usd: &'a str,
    /// Lines before all tables.
    pub top: &'a str,
    /// More models.
    pub catalog: &'a str,
    /// Lines of `[limits]`.
    pub limits: &'a str,
    /// How long calls wait for the ledger: long, because a busy machine has a slow disk, and short
    /// where it is the point that the ledger is away.
    pub ledger_time: &'a str,
    /// How long the first byte of the simulator may take, and the next one.
    pub patience: [&'a str; 2],
    pub log: &'a str,
    /// Lines of `[social]`; with any, the cells of social data are on sale.
    pub social: &'a str,
    /// The executable of the first gate; those of the others are always ours.
    pub first: &'a Path,
    /// `ulimit -n` of the gateways.
    pub descriptors: Option<u64>,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Plan {
            database: "sqlite",
            gates: 1,
            usd: "10",
            top: "",
            catalog: "",
            limits: "",
            ledger_time: "30s",
            patience: ["30s", "30s"],
            log: "info",
            social: "",
            first: Path::new(TOLLGATE),
            descriptors: None,
        }
    }
}

pub struct House {
    pub gates: Vec<Gate>,
    pub sim: Process,
    pub sim_url: String,
    pub account: String,
    pub key: String,
    pub key_id: String,
    pub http: reqwest::Client,
    _dir: TempDir,
}

/// One gateway: its configuration, and its process while it runs.
pub struct Gate {
    pub config: PathBuf,
    pub port: u16,
    /// Away from the configuration: its folder is watched, and a log of what was seen there would
    /// never end.
    pub log: PathBuf,
    pub process: Option<Process>,
    pub executable: PathBuf,
    log_level: String,
    descriptors: Option<u64>,
}

impl House {
    pub async fn new(plan: Plan<'_>) -> House {
        let dir = tempfile::tempdir().expect("a folder");
        let mut command = tollgate(&["sim", "--listen", "127.0.0.1:0", "--json"]);
        command.current_dir(dir.path());
        let mut sim = Process::start(command, &dir.path().join("sim.log"));
        let sim_url = sim.first_line()["sim_url"].as_str().expect("an address").to_owned();
        std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
        std::fs::write(dir.path().join("catalog/models.toml"), CATALOG).expect("written");
        if !plan.social.is_empty() {
            let cells = tollgate_catalog::social::SHIPPED.map(|(_, text)| text).join("\n");
            std::fs::write(dir.path().join("catalog/social.toml"), cells).expect("written");
        }
        std::fs::write(dir.path().join("catalog/more.toml"), plan.catalog).expect("written");
        for (name, key) in [("access.key", KLING_ACCESS), ("secret.key", KLING_SECRET)] {
            std::fs::write(dir.path().join(name), key).expect("written");
        }
        let gates = (0..plan.gates).map(|number| Gate::new(&dir, number, &plan, &sim_url)).collect();
        let http = reqwest::Client::builder().timeout(HANG).build().expect("a client");
        let (account, key, key_id) = (String::new(), String::new(), String::new());
        let mut house = House { gates, sim, sim_url, account, key, key_id, http, _dir: dir };
        for gate in &mut house.gates {
            gate.start().await;
        }
        house.account = text(&house.cli(&["account", "create", "test"]).await["account_id"]);
        house.cli(&["account", "topup", &house.account, plan.usd, "--id", "first"]).await;
        let key = house.cli(&["key", "create", &house.account]).await;
        (house.key, house.key_id) = (text(&key["secret"]), text(&key["key_id"]));
        house
    }

    /// A command that succeeds, through the first gate's configuration; its JSON.
    pub async fn cli(&self, arguments: &[&str]) -> Value {
        self.gates[0].cli(arguments).await
    }

    pub fn post(&self, gate: usize, body: &Value) -> RequestBuilder {
        self.post_as(&self.key, gate, body)
    }

    pub fn post_as(&self, key: &str, gate: usize, body: &Value) -> RequestBuilder {
        let url = format!("{}/v1/chat/completions", self.gates[gate].url());
        self.http.post(url).bearer_auth(key).json(body)
    }

    pub async fn ask(&self, gate: usize, body: &Value) -> Response {
        self.post(gate, body).send().await.expect("a reply")
    }

    pub async fn balance(&self, gate: usize) -> Value {
        let url = format!("{}/v1/balance", self.gates[gate].url());
        let reply = self.http.get(url).bearer_auth(&self.key).send().await.expect("a reply");
        reply.json().await.expect("JSON")
    }

    /// What the simulator received, all of it.
    pub async fn received(&self) -> Vec<Value> {
        let url = self.sim_url.replace("/v1", "/_sim/received");
        let all: Value = self.http.get(url).send().await.expect("a reply").json().await.expect("JSON");
        all["received"].as_array().expect("a list").clone()
    }

    pub async fn received_count(&self) -> u64 {
        let url = self.sim_url.replace("/v1", "/_sim/count");
        let count: Value = self.http.get(url).send().await.expect("a reply").json().await.expect("JSON");
        count["received"].as_u64().expect("a number")
    }

    /// Waits until no gate has an open hold and nothing waits to be written.
    pub async fn quiet(&self) {
        let until = Instant::now() + HANG;
        loop {
            let mut open = Vec::new();
            for gate in &self.gates {
                open.extend(gate.open(&self.http).await);
            }
            if open.is_empty() && self.balance(0).await["held_nano_usd"] == 0 {
                return;
            }
            assert!(Instant::now() < until, "still open: {open:?}, {}", self.balance(0).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A call for social data, such as `weibo/user?uid=7`.
    pub async fn social(&self, gate: usize, path: &str) -> Response {
        let url = format!("{}/v1/social/{path}", self.gates[gate].url());
        self.http.get(url).bearer_auth(&self.key).send().await.expect("a reply")
    }

    /// `ledger verify --strict` must say that every number adds up.
    pub async fn verified(&self) -> Value {
        let report = self.cli(&["ledger", "verify", "--strict"]).await;
        assert_eq!(report["breaches"], json!([]));
        report
    }
}

impl Gate {
    fn new(dir: &TempDir, number: usize, plan: &Plan<'_>, sim_url: &str) -> Gate {
        let own = dir.path().join(format!("gate{number}"));
        std::fs::create_dir(&own).expect("a folder");
        let config = own.join("tollgate.toml");
        let port = free_port();
        // An older executable may not know this setting.
        let ours = number > 0 || plan.first == Path::new(TOLLGATE);
        let ledger_time = if ours { format!("ledger_time = \"{}\"\n", plan.ledger_time) } else { String::new() };
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\ndatabase = \"{}\"\ncatalog_dir = \"../catalog\"\n{}\n\n[limits]\n{ledger_time}{}\n\n\
             [provider.sim]\nkind = \"openai\"\nbase_url = \"{sim_url}\"\nsecret_env = \"SIM_SECRET\"\n\
             first_byte_time = \"{}\"\nidle_time = \"{}\"\n\n\
             [provider.stubborn]\nkind = \"openai\"\nbase_url = \"{sim_url}\"\nbill_on_cancel = true\n\n\
             [provider.tikhub]\nkind = \"tikhub\"\nbase_url = \"{}\"\n{}\n",
            plan.database,
            plan.top,
            plan.limits,
            plan.patience[0],
            plan.patience[1],
            sim_url.replace("/v1", "/api/v1"),
            plan.social,
        );
        std::fs::write(&config, text.replace("{sim}", sim_url.trim_end_matches("/v1"))).expect("written");
        let log = dir.path().join(format!("gate{number}.log"));
        let executable = if number == 0 { plan.first } else { Path::new(TOLLGATE) };
        let (executable, log_level) = (executable.to_owned(), plan.log.to_owned());
        Gate { config, port, log, process: None, executable, log_level, descriptors: plan.descriptors }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn spawn(&mut self) -> &mut Process {
        self.spawn_with(&[])
    }

    pub fn spawn_with(&mut self, environment: &[(&str, &str)]) -> &mut Process {
        let config = self.config.to_str().expect("UTF-8");
        let mut command = match self.descriptors {
            Some(descriptors) => limited(descriptors, &["serve", "--config", config]),
            None => executable(&self.executable, &["serve", "--config", config]),
        };
        command.env("SIM_SECRET", PROVIDER_SECRET).env("TOLLGATE_LOG", &self.log_level);
        command.envs(environment.iter().copied());
        self.process.insert(Process::start(command, &self.log))
    }

    /// Starts it and waits until it takes calls.
    pub async fn start(&mut self) {
        self.spawn();
        self.ready().await;
    }

    pub async fn ready(&mut self) {
        let until = Instant::now() + HANG;
        let http = reqwest::Client::new();
        while !is_ready(&http, &self.url()).await {
            let process = self.process.as_mut().expect("started");
            assert!(process.ended().is_none(), "the gateway ended: {}", process.last_words());
            assert!(Instant::now() < until, "the gateway is not ready: {}", process.last_words());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn is_ready(&self) -> bool {
        is_ready(&reqwest::Client::new(), &self.url()).await
    }

    pub fn kill(&mut self) {
        self.process.take().expect("running").kill();
    }

    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A command over this gate's configuration, whatever comes of it.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = executable(&self.executable, arguments);
        command.args(["--config", self.config.to_str().expect("UTF-8")]).env("SIM_SECRET", PROVIDER_SECRET);
        tokio::process::Command::from(command).kill_on_drop(true).output().await.expect("it ran")
    }

    pub async fn cli(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat()).await;
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}\n{errors}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
    }

    /// The lines of the metrics page that say something is not finished.
    async fn open(&self, http: &reqwest::Client) -> Vec<String> {
        let page =
            http.get(format!("{}/metrics", self.url())).send().await.expect("a reply").text().await.expect("text");
        let names = ["tollgate_open_holds", "tollgate_ledger_queue", "tollgate_calls_running"];
        assert_eq!(page.matches("tollgate_open_holds{").count(), 5, "{page}");
        let ours = page.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        ours.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
    }
}

async fn is_ready(http: &reqwest::Client, url: &str) -> bool {
    http.get(format!("{url}/readyz")).send().await.is_ok_and(|reply| reply.status().is_success())
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

pub fn chat(model: &str, content: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": content }] })
}

pub fn streamed(model: &str, content: &str) -> Value {
    let mut body = chat(model, content);
    body["stream"] = json!(true);
    body
}
