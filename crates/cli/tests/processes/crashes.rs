//! `kill -9` of the gateway, 30 times under mixed load. Afterwards nothing is lost, nothing is charged twice, no hold is open,
//! and every call the provider saw is in the books.

use crate::books;
use crate::experiment::Experiment;
use crate::house::{House, Plan};
use crate::load::Load;
use crate::postgres::Server;
use std::time::Duration;

/// Kills of one round.
const KILLS: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    let mut experiment = Experiment::new("kill -9 under mixed load, SQLite");
    while experiment.more() {
        survive(Plan { usd: "100", ..Plan::default() }, &mut experiment).await;
    }
    experiment.end();
}

/// Two replicas: each kill hits one while the other goes on.
#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let mut experiment = Experiment::new("kill -9 under mixed load, two replicas on PostgreSQL");
    while experiment.more() {
        let database = server.database(&format!("crashes{}", experiment.counted("kills"))).await;
        survive(Plan { usd: "100", database: &database, gates: 2, ..Plan::default() }, &mut experiment).await;
    }
    experiment.end();
}

async fn survive(plan: Plan<'_>, experiment: &mut Experiment) {
    let funded = books::nano(plan.usd);
    let mut house = House::new(plan).await;
    let load = Load::start(&house, 24);
    let mut pause = 0;
    for kill in 0..KILLS {
        // 150 to 400 ms, in an order that repeats from run to run.
        pause = (pause + 97) % 251;
        tokio::time::sleep(Duration::from_millis(150 + pause)).await;
        let gates = house.gates.len();
        let gate = &mut house.gates[kill % gates];
        gate.kill();
        gate.start().await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let records = load.stop().await;
    let tally = books::tally(&records);
    eprintln!("{} calls: {tally:?}", records.len());
    for outcome in ["answered", "failed", "left", "lost", "lost in mid-stream"] {
        assert!(tally.get(outcome).is_some_and(|count| *count >= 5), "the load was too light: {tally:?}");
    }
    books::check(&house, &records, funded).await;
    experiment.count("kills", KILLS);
    experiment.count("calls", records.len());
    for (outcome, count) in tally {
        experiment.count(outcome, count);
    }
}
