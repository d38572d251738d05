//! How much CPU one call costs the ledger: many tasks hold, wait until it is durable, and close.
//! Prints calls per second and CPU microseconds per call.
//! `cargo run --release --features testing --example ledger_speed [calls] [tasks] [accounts] [url]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tollgate_store::testing::{Load, TestClock, cpu_ticks};
use tollgate_store::{DataLocation, Options, Store, ids};

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u64| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (calls, tasks) = (number(0, 200_000), number(1, 64));
    let accounts = number(2, 50);
    let url = arguments.get(3).cloned().unwrap_or_else(|| "sqlite".into());
    let dir = tempfile::tempdir()?;
    let clock = TestClock::default();
    let world = clock.world(1);
    let place = DataLocation { url, data_dir: dir.path().into() };
    // A server that is measured instruction by instruction takes its time.
    let options = Options { hold_deadline: std::time::Duration::from_secs(120), ..Options::default() };
    let store = Store::open(place, options, world.clone()).await?.store;
    let load = Arc::new(Load::prepare(&store, accounts).await?);
    let maker = Arc::new(ids::Maker::new(world));
    let (cpu, started, next) = (cpu_ticks()?, Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let (store, load, maker) = (store.clone(), load.clone(), maker.clone());
        let (next, clock) = (next.clone(), clock.clone());
        running.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= calls {
                    return Ok::<(), String>(());
                }
                let (owner, call, at) = (load.owner(n), maker.call(), clock.now());
                let mut held = store.hold(load.hold(call, owner, at)).await.map_err(|e| e.to_string())?;
                held.durable().await.map_err(|e| e.to_string())?;
                store.close(load.close(call, owner, at));
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
