//! The bars the ledger has to meet, measured one after another, each printed with `met` or
//! `NOT met`; exits 1 if one is not. `ledger_bars [--calls N] [--only NAME]…`; with
//! `--write-history DIR` it makes a large ledger for `tollgate-bench` instead; see
//! `docs/performance.md`. PostgreSQL is a private server with real syncs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tollgate_store::testing::{Load, PostgresServer, TestClock, cpu_ticks};
use tollgate_store::{DataLocation, NewTask, Options, Store, ids};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const NAMES: [&str; 6] = ["sqlite", "sqlite-hot", "waiting", "postgres-hot", "verify", "restart"];

const OPTIONS: [&str; 7] = ["--calls", "--only", "--write-history", "--accounts", "--die-in", "--open", "--history"];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<std::process::ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.chunks(2).all(|pair| pair.len() == 2 && OPTIONS.contains(&pair[0].as_str())) {
        println!("ledger_bars [--calls N] [--only NAME]…    NAME is one of {}", NAMES.join(", "));
        println!("ledger_bars --write-history DIR [--accounts N] [--calls N]");
        return Ok(std::process::ExitCode::from(2));
    }
    let after = |name: &'static str| {
        arguments.iter().zip(arguments.iter().skip(1)).filter(move |(a, _)| *a == name).map(|(_, b)| b)
    };
    let calls: u64 = after("--calls").next().map_or(Ok(10_000_000), |n| n.parse())?;
    let only: Vec<&String> = after("--only").collect();
    if let Some(dir) = after("--die-in").next() {
        let number = |name| after(name).next().ok_or("how many?").map(|n| n.parse::<u64>());
        return die(dir.as_ref(), number("--open")??, number("--history")??).await;
    }
    if let Some(dir) = after("--write-history").next() {
        let number = |name, usual| after(name).next().map_or(Ok(usual), |n| n.parse::<u64>());
        return history(dir.as_ref(), number("--accounts", 1_000_000)?, number("--calls", 20_000_000)?).await;
    }
    let mut met = true;
    for name in NAMES.iter().filter(|name| only.is_empty() || only.iter().any(|o| o == *name)) {
        met &= match *name {
            "sqlite" => holds("SQLite, 50 accounts", "sqlite", 50, 1, 60_000).await?,
            "sqlite-hot" => holds("SQLite, one hot account", "sqlite", 1, 1, 60_000).await?,
            "waiting" => waiting(1_000, 10).await?,
            "postgres-hot" => postgres_hot().await?,
            "verify" => verify(calls).await?,
            _ => restart(100_000, calls * 3 / 10).await?,
        };
    }
    Ok(if met { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE })
}

fn tell(what: &str, found: String, bar: &str, met: bool) -> bool {
    println!("{what:<58} {found:<34} bar: {bar:<18} {}", if met { "met" } else { "NOT met" });
    met
}

async fn postgres_hot() -> Result<bool, Failure> {
    let dir = tempfile::tempdir()?;
    let what = "PostgreSQL, one hot account, two replicas";
    let server = match PostgresServer::start_durable(dir.path()) {
        Ok(server) => server,
        // What was not measured is not met.
        Err(why) => return Ok(tell(what, format!("not measured: {why}"), ">= 5,000/s", false)),
    };
    let url = server.database("bars").await?;
    holds(what, &url, 1, 2, 40_000).await
}

/// Durable holds a second, each with its close; `replicas` stores share the load.
async fn holds(what: &str, url: &str, accounts: u64, replicas: usize, calls: u64) -> Result<bool, Failure> {
    let clock = TestClock::default();
    let mut stores = Vec::new();
    let mut dirs = Vec::new();
    for n in 0..replicas {
        let dir = tempfile::tempdir()?;
        let place = DataLocation { url: url.into(), data_dir: dir.path().into() };
        stores.push(Store::open(place, Options::default(), clock.world(1 + n as u64)).await?.store);
        dirs.push(dir);
    }
    let load = Arc::new(Load::prepare(&stores[0], accounts).await?);
    let maker = Arc::new(ids::Maker::new(clock.world(99)));
    let next = Arc::new(AtomicU64::new(0));
    let (started, cpu) = (Instant::now(), cpu_ticks()?);
    let mut running = tokio::task::JoinSet::new();
    for task in 0..256 {
        let (store, load, maker) = (stores[task % replicas].clone(), load.clone(), maker.clone());
        let (next, clock) = (next.clone(), clock.clone());
        running.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= calls {
                    return Ok::<(), Failure>(());
                }
                let (owner, call) = (load.owner(n), maker.call());
                store.hold(load.hold(call, owner, clock.now())).await?.durable().await?;
                store.close(load.close(call, owner, clock.now()));
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let elapsed = started.elapsed();
    for store in &stores {
        store.shut().await;
    }
    let cpu = (cpu_ticks()? - cpu) * 10_000 / calls;
    let rate = u128::from(calls) * 1_000_000 / elapsed.as_micros().max(1);
    let found = format!("{rate} durable holds/s, {cpu} µs CPU");
    Ok(tell(what, found, ">= 5,000/s", rate >= 5_000))
}

/// How long a hold is waited for when so many come a second, evenly: what it adds to a call whose
/// provider answers at once.
async fn waiting(rate: u64, seconds: u64) -> Result<bool, Failure> {
    let dir = tempfile::tempdir()?;
    let clock = TestClock::default();
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.path().into() };
    let store = Store::open(place, Options::default(), clock.world(1)).await?.store;
    let load = Arc::new(Load::prepare(&store, 50).await?);
    let maker = ids::Maker::new(clock.world(99));
    let cpu = cpu_ticks()?;
    let mut running = tokio::task::JoinSet::new();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / rate));
    for n in 0..rate * seconds {
        tick.tick().await;
        let (store, load, clock, call) = (store.clone(), load.clone(), clock.clone(), maker.call());
        running.spawn(async move {
            let (owner, started) = (load.owner(n), Instant::now());
            store.hold(load.hold(call, owner, clock.now())).await?.durable().await?;
            let waited = started.elapsed();
            store.close(load.close(call, owner, clock.now()));
            Ok::<Duration, Failure>(waited)
        });
    }
    let mut waited = Vec::new();
    while let Some(done) = running.join_next().await {
        waited.push(done??);
    }
    store.shut().await;
    let cpu = (cpu_ticks()? - cpu) * 10_000 / (rate * seconds);
    waited.sort_unstable();
    let at = |percent: usize| waited[(waited.len() * percent / 100).min(waited.len() - 1)];
    let found = format!("p50 {:.1?}, p99 {:.1?}, {cpu} µs CPU", at(50), at(99));
    let what = format!("added by the hold at {rate} calls a second (SQLite)");
    Ok(tell(&what, found, "p99 < 15 ms", at(99) < Duration::from_millis(15)))
}

/// A ledger of so many calls: two entries and a usage row each.
async fn verify(calls: u64) -> Result<bool, Failure> {
    let dir = tempfile::tempdir()?;
    let clock = TestClock::default();
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.path().into() };
    let store = Store::open(place.clone(), Options::default(), clock.world(1)).await?.store;
    let load = Load::prepare(&store, 1_000).await?;
    store.shut().await;
    drop(store);
    let started = Instant::now();
    load.write_history(dir.path(), calls, clock.now())?;
    println!("(a ledger of {calls} calls was made in {:?})", started.elapsed());
    let store = Store::open(place, Options::default(), clock.world(2)).await?.store;
    let started = Instant::now();
    let report = store.verify().await?;
    let elapsed = started.elapsed();
    if !report.breaches.is_empty() {
        return Err(format!("the audit found {:?}", report.breaches).into());
    }
    let memory = peak_memory()?;
    store.shut().await;
    let found = format!("{elapsed:.1?}, peak memory {memory} MiB");
    let bar = Duration::from_micros(calls * 6);
    Ok(tell(&format!("verify {} calls (SQLite)", report.usage_rows), found, &format!("< {bar:.0?}"), elapsed < bar))
}

/// A data folder with so many accounts and finished calls, which the gateway is measured on.
#[expect(clippy::disallowed_methods, reason = "the gateway that follows goes by the clock of the machine")]
async fn history(dir: &std::path::Path, accounts: u64, calls: u64) -> Result<std::process::ExitCode, Failure> {
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.into() };
    let started = Instant::now();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    let clock = TestClock::default();
    clock.advance(i64::try_from(now)? - clock.now());
    let store = Store::open(place, Options::default(), clock.world(1)).await?.store;
    let load = Load::prepare(&store, accounts).await?;
    store.shut().await;
    drop(store);
    load.write_history(dir, calls, clock.now() - 86_400_000)?;
    println!("{accounts} accounts and {calls} calls were made in {:?}", started.elapsed());
    Ok(std::process::ExitCode::SUCCESS)
}

/// A process that dies with so many calls open, and a video that has been open for as long as it
/// took to write so many entries: how long the next one takes to be ready.
async fn restart(open: u64, history: u64) -> Result<bool, Failure> {
    let dir = tempfile::tempdir()?;
    let mut dies = std::process::Command::new(std::env::current_exe()?);
    dies.arg("--die-in").arg(dir.path()).args(["--open", &open.to_string(), "--history", &history.to_string()]);
    let died = tokio::task::spawn_blocking(move || dies.status()).await??;
    if died.code().is_some() {
        return Err(format!("the one that was to die ended with {died}").into());
    }
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.path().into() };
    let started = Instant::now();
    let opened = Store::open(place, Options::default(), TestClock::default().world(3)).await?;
    let elapsed = started.elapsed();
    let resolved = opened.recovered.voided + opened.recovered.settled;
    opened.store.shut().await;
    if resolved != open {
        return Err(format!("{resolved} of {open} holds were resolved").into());
    }
    let what = format!("start after a crash with {open} open holds, {history} entries (SQLite)");
    Ok(tell(&what, format!("{elapsed:.2?}"), "< 2 s", elapsed < Duration::from_secs(2)))
}

/// The process that dies.
async fn die(dir: &std::path::Path, open: u64, history: u64) -> Result<std::process::ExitCode, Failure> {
    let clock = TestClock::default();
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.into() };
    let store = Store::open(place.clone(), Options::default(), clock.world(1)).await?.store;
    let load = Load::prepare(&store, 100).await?;
    let maker = ids::Maker::new(clock.world(99));
    let video = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    store.begin_task(load.hold(maker.call(), load.owner(0), clock.now()), video).await?;
    store.shut().await;
    drop(store);
    load.write_history(dir, history / 2, clock.now())?;
    let started = Instant::now();
    let store = Store::open(place, Options::default(), clock.world(2)).await?.store;
    let elapsed = started.elapsed();
    println!("(a start that reads {history} entries, because nobody has listed the video yet: {elapsed:.2?})");
    let mut waiting = Vec::new();
    for n in 0..open {
        waiting.push(store.hold(load.hold(maker.call(), load.owner(n), clock.now())).await?);
        if waiting.len() == 1_000 || n + 1 == open {
            for mut held in waiting.drain(..) {
                held.durable().await?;
            }
        }
    }
    std::process::abort()
}

/// The most memory this process ever had, in MiB.
fn peak_memory() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
}
