//! Calls in groups of a given size, for counting what the database costs of each with callgrind:
//! `ledger_groups CALLS CALLS_IN_A_GROUP [without-sums]` (docs/performance.md). Without sums, all
//! rows of the log are left to the worker that adds up rows from before there were sums; nobody
//! runs it here. So the difference between both is what sums cost, whatever part of it is where.

use tollgate_store::testing::{Load, Simulated, TestClock};
use tollgate_store::{DataLocation, Options, Store, ids};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).map(|word| word.parse::<u64>()).transpose();
    let (Some(calls), Some(group)) = (number(0)?, number(1)?) else {
        return Err("ledger_groups CALLS CALLS_IN_A_GROUP [without-sums]".into());
    };
    let dir = tempfile::tempdir()?;
    let clock = TestClock::default();
    let simulated = Simulated::new(dir.path());
    let options = Options { simulated: Some(simulated.clone()), ..Options::default() };
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.path().into() };
    let store = simulated.stepped(Store::open(place, options, clock.world(1))).await?.store;
    let load = simulated.stepped(Load::prepare(&store, 50)).await?;
    if words.get(2).is_some_and(|word| word == "without-sums") {
        let database = rusqlite::Connection::open(dir.path().join("tollgate.db"))?;
        database.execute("INSERT INTO usage_backfill VALUES (1, x'', x'')", [])?;
    }
    let maker = ids::Maker::new(clock.world(99));
    let mut commits = 0_u64;
    for n in 0..calls {
        let (owner, call) = (load.owner(n), maker.call());
        store.hold(load.hold(call, owner, clock.now())).await?;
        drop(store.close(load.close(call, owner, clock.now())));
        if (n + 1) % group == 0 {
            simulated.commit();
            commits += 1;
        }
    }
    println!("{calls} calls in {commits} groups");
    Ok(())
}
