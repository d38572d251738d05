//! How much CPU one call costs the ledger: many tasks hold, wait until it is durable, and close. Prints calls per
//! second and CPU microseconds per call. `cargo run --release --features testing --example ledger_speed [calls] [tasks] [accounts] [url]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tollgate_catalog::Money;
use tollgate_store::testing::{HandClock, price};
use tollgate_store::{
    AccountId, Close, Counters, Credit, CreditKind, Ending, Hold, KeyId, Limits, NewAccount, NewKey, Options, Place,
    Pot, Store, UsageFacts, ids,
};

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u64| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (calls, tasks) = (number(0, 200_000), number(1, 64));
    let accounts = number(2, 50);
    let url = arguments.get(3).cloned().unwrap_or_else(|| "sqlite".into());
    let dir = tempfile::tempdir()?;
    let clock = HandClock::default();
    let world = clock.world(1);
    let place = Place { url, data_dir: dir.path().into() };
    let store = Store::open(place, Options::default(), world.clone()).await?.store;
    let owners = Arc::new(owners(&store, accounts).await?);
    let maker = Arc::new(ids::Maker::new(world));
    let price = price(1_000_000);
    let (cpu, started, next) = (cpu_ticks()?, Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let (store, owners, maker, price) = (store.clone(), owners.clone(), maker.clone(), price.clone());
        let (next, clock) = (next.clone(), clock.clone());
        running.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= calls {
                    return Ok::<(), String>(());
                }
                let (account, key) = owners[n as usize % owners.len()];
                let (call, at) = (maker.call(), clock.now());
                let hold = Hold {
                    call,
                    account,
                    key,
                    amount: Money::from_nano(5_000_000),
                    price: price.clone(),
                    model: "example-model".into(),
                    endpoint: "/v1/chat/completions",
                    paid_only: false,
                    topped_up: true,
                    expires_at: at + 600_000,
                    at,
                    idem: None,
                };
                let mut held = store.hold(hold).await.map_err(|e| e.to_string())?;
                held.durable().await.map_err(|e| e.to_string())?;
                store.close(Close {
                    call,
                    account,
                    ending: Ending::Answered,
                    reason: String::new(),
                    charge: Money::from_nano(1_400_000),
                    row: facts(key, at),
                    reply: None,
                });
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let busy = started.elapsed();
    store.shut().await;
    let (elapsed, cpu) = (started.elapsed(), cpu_ticks()? - cpu);
    let gauges = store.gauges();
    println!("{calls} calls, {tasks} tasks, {accounts} accounts: {busy:?} busy, {elapsed:?} with shutdown");
    println!("calls per second  {}", u128::from(calls) * 1_000_000 / busy.as_micros().max(1));
    println!("CPU per call      {} µs (clock ticks of 10 ms, all threads)", cpu * 10_000 / calls);
    println!(
        "commits           {}, operations per commit {}",
        gauges.commits,
        gauges.committed_ops / gauges.commits.max(1)
    );
    Ok(())
}

async fn owners(store: &Store, accounts: u64) -> Result<Vec<(AccountId, KeyId)>, tollgate_store::StoreError> {
    let mut owners = Vec::new();
    for i in 0..accounts {
        let account = store.create_account(NewAccount { name: format!("a{i}"), ..Default::default() }).await?.id;
        let credit = Credit {
            id: format!("start-{i}"),
            account,
            kind: CreditKind::TopUp,
            pot: Pot::Paid,
            amount: Money::from_nano(1_000_000_000_000_000),
            expires_at: None,
            reason: "speed".into(),
            actor: "example".into(),
        };
        store.credit(credit).await?;
        let new = NewKey {
            account,
            name: "k".into(),
            expires_at: None,
            models: None,
            cidrs: None,
            limits: Limits::default(),
        };
        owners.push((account, store.create_key(new, &format!("sk-{i:048}")).await?.id));
    }
    Ok(owners)
}

fn facts(key: KeyId, at: i64) -> UsageFacts {
    UsageFacts {
        key,
        at,
        ended_at: at + 700,
        endpoint: "/v1/chat/completions".into(),
        model: "example-model".into(),
        provider: Some("example".into()),
        upstream_model: Some("example-model-2026".into()),
        status: 200,
        counters: Counters { input: 1_000, output: 200, ..Counters::default() },
        estimated: false,
        raw_usage: Some(r#"{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}"#.into()),
        attempts: 1,
        first_byte_ms: Some(310),
        tier: None,
        price: None,
    }
}

/// User and system time of the whole process, in clock ticks.
fn cpu_ticks() -> Result<u64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}
