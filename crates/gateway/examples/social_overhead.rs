//! Measures what the gateway adds to a social call and to a chat call:
//! `cargo run --release -p tollgate-gateway --example social_overhead`. Both go to the simulator
//! directly and through the gateway, one after the other in turns, so that whatever else the
//! machine does falls on all of them. Fails when the social call is out of line with the chat call.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tollgate_catalog::social::SHIPPED;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::start::{Running, start};
use tollgate_gateway::world::World;
use tollgate_sim::{Sim, SimSettings};
use tollgate_store::{Credit, CreditKind, Limits, NewAccount, NewKey, Pot};

const WARM: usize = 300;
const ROUNDS: usize = 3_000;
/// In line: within half as much again, and the noise of a clock.
const FACTOR: f64 = 1.5;
const NOISE_US: f64 = 30.0;
const KEY: &str = "sk-bench-0123456789abcdef0123456789abcdef";
const CATALOG: &str = r#"
[model."plain"]
context_window = 100_000
max_output_tokens = 1_000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

#[expect(clippy::disallowed_methods, reason = "a measurement runs in real time")]
fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(0)
}

fn world() -> World {
    World::new(now_ms, |bytes| {
        use std::io::Read as _;
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes)).expect("random bytes");
    })
}

/// A gateway over the simulator with an account that can pay.
async fn gateway(sim: &Sim, dir: &Path) -> Running {
    std::fs::create_dir_all(dir.join("catalog")).expect("a folder");
    std::fs::write(dir.join("catalog/models.toml"), CATALOG).expect("written");
    std::fs::write(dir.join("catalog/social.toml"), SHIPPED.map(|(_, text)| text).join("\n")).expect("written");
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[provider.sim]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [provider.tikhub]\nkind = \"tikhub\"\nbase_url = \"{}\"\nrequests_per_second = 0\n",
        sim.base_url(),
        sim.social_url(),
    );
    std::fs::write(dir.join("tollgate.toml"), config).expect("written");
    let source = ConfigSource { file: dir.join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
    let loaded = source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let running = start(loaded, None, world()).await.expect("started");
    let (store, name) = (&running.app.store, || "bench".to_owned());
    let account = store.create_account(NewAccount { name: name(), ..NewAccount::default() }).await.expect("made").id;
    let credit = Credit {
        id: name(),
        account,
        kind: CreditKind::TopUp,
        pot: Pot::Paid,
        amount: "1000".parse().expect("an amount"),
        expires_at: None,
        reason: name(),
        actor: name(),
    };
    store.credit(credit).await.expect("credited");
    let limits = Limits::default();
    let key = NewKey {
        account,
        name: name(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits,
        scope: Default::default(),
    };
    store.create_key(key, KEY).await.expect("a key");
    running
}

#[tokio::main]
async fn main() {
    let sim = Sim::start(SimSettings::default()).await.expect("a simulator");
    let dir = tempfile::tempdir().expect("a folder");
    let running = gateway(&sim, dir.path()).await;
    let http = reqwest::Client::builder().user_agent("bench/1").build().expect("a client");
    let gate = format!("http://{}", running.address);
    let ask =
        |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "[[sim:tokens=5]] hello" }] });
    let post = |url: String, body: &Value| http.post(url).bearer_auth(KEY).json(body);
    let get = |url: String| http.get(url).bearer_auth(KEY);
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..WARM + ROUNDS {
        let requests = [
            post(format!("{}/chat/completions", sim.base_url()), &ask("sim-plain")),
            post(format!("{gate}/v1/chat/completions"), &ask("plain")),
            get(format!("{}/weibo/app/fetch_user_info?uid=7", sim.social_url())),
            get(format!("{gate}/v1/social/weibo/user?uid=7")),
        ];
        for (at, request) in requests.into_iter().enumerate() {
            let began = Instant::now();
            let reply = request.send().await.expect("a reply");
            assert_eq!(reply.status(), 200);
            reply.bytes().await.expect("a body");
            if round >= WARM {
                times[at].push(began.elapsed());
            }
        }
    }
    let middle = times.map(|mut list| {
        list.sort();
        list[list.len() / 2].as_secs_f64() * 1e6
    });
    let (chat, social) = (middle[1] - middle[0], middle[3] - middle[2]);
    println!("chat call   {:>6.0} µs, of which the gateway {chat:>6.0} µs (p50 of {ROUNDS})", middle[1]);
    println!("social call {:>6.0} µs, of which the gateway {social:>6.0} µs (p50 of {ROUNDS})", middle[3]);
    running.stop().await;
    assert!(social <= chat * FACTOR + NOISE_US, "the social call is out of line with the chat call");
}
