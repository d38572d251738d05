//! Calls in groups of a given size, for counting what the database costs of each with callgrind:
//! `ledger_groups CALLS CALLS_IN_A_GROUP` (docs/performance.md).

use tollgate_store::testing::{Load, Simulated, TestClock};
use tollgate_store::{DataLocation, Options, Store, ids};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Some(calls), Some(group)) = (numbers.next().transpose()?, numbers.next().transpose()?) else {
        return Err("ledger_groups CALLS CALLS_IN_A_GROUP".into());
    };
    let dir = tempfile::tempdir()?;
    let clock = TestClock::default();
    let simulated = Simulated::new(dir.path());
    let options = Options { simulated: Some(simulated.clone()), ..Options::default() };
    let place = DataLocation { url: "sqlite".into(), data_dir: dir.path().into() };
    let store = simulated.stepped(Store::open(place, options, clock.world(1))).await?.store;
    let load = simulated.stepped(Load::prepare(&store, 50)).await?;
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
