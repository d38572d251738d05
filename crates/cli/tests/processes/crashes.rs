//! `kill -9` of the gateway, 30 times under mixed load: conversations, streams, videos, social
//! data, with and without Idempotency-Key. Afterwards nothing is lost, nothing is charged or made
//! twice, no hold is open, and every call the provider saw is in the books.

use crate::books;
use crate::experiment::Experiment;
use crate::house::{House, Plan};
use crate::kinds;
use crate::load::Load;
use crate::postgres::Server;
use crate::seen::{Record, by_kind, count, tally};
use std::time::Duration;

/// Kills of one round.
const KILLS: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    let mut experiment = Experiment::new("kill -9 under mixed load, SQLite");
    while experiment.more() {
        survive(kinds::plan(), &mut experiment).await;
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
        survive(Plan { database: &database, gates: 2, ..kinds::plan() }, &mut experiment).await;
    }
    experiment.end();
}

/// What a round must have seen, of each at least so many, to have been one.
const ENOUGH: usize = 5;
const OUTCOMES: [&str; 5] = ["answered", "failed", "left", "lost", LOST];
const LOST: &str = "lost in mid-stream";
const KINDS: [&str; 7] = ["chat", "keyed chat", "keyed stream", "video", "keyed video", "social", "keyed social"];

fn was_real(records: &[Record]) -> bool {
    let (outcomes, kinds) = (tally(records), by_kind(records));
    OUTCOMES.iter().all(|outcome| outcomes.get(outcome).is_some_and(|count| *count >= ENOUGH))
        && KINDS.iter().all(|kind| kinds.get(&format!("{kind} answered")).is_some_and(|count| *count >= ENOUGH))
}

async fn survive(plan: Plan<'_>, experiment: &mut Experiment) {
    let funded = books::nano(plan.usd);
    let mut house = House::new(plan).await;
    let load = Load::start(&house, 24);
    let mut pause = 0;
    let mut kills = 0;
    // On a slow machine some more, until enough streams were met.
    while kills < KILLS || !load.saw(|records| count(records, LOST) >= ENOUGH) {
        assert!(kills < 10 * KILLS, "no stream is met");
        // 150 to 400 ms, in an order that repeats from run to run.
        pause = (pause + 97) % 251;
        tokio::time::sleep(Duration::from_millis(150 + pause)).await;
        let gates = house.gates.len();
        let gate = &mut house.gates[kills % gates];
        gate.kill();
        gate.start().await;
        kills += 1;
    }
    load.until(0, was_real).await;
    let records = load.stop().await;
    let ends = books::check(&house, &records, funded).await;
    experiment.count("kills", kills);
    experiment.seen(&records, ends);
}
