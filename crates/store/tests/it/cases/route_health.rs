//! Route health: sums by quarter that everybody adds to, and that are forgotten in time.

use tollgate_store::{CountedRoute, ProbeClaim, ProbeDay, ProbeLimits, ProbeTurn, RouteCounts, quarter_of};

use crate::common::House;

fn route(model: &str, provider: &str) -> CountedRoute {
    let upstream_model = if provider.is_empty() { String::new() } else { "up".to_owned() };
    CountedRoute { model: model.to_owned(), provider: provider.to_owned(), upstream_model }
}

fn counts(calls: i64, good: i64, accounts: i64, last_at: i64) -> RouteCounts {
    RouteCounts { calls, good, accounts, first_byte_ms: 10 * good, last_at, ..RouteCounts::default() }
}

pub async fn route_health_is_added_up_over_quarters(h: House) {
    let now = quarter_of(h.clock.now());
    let add = |quarter, counted| h.store.add_route_health(quarter, counted);
    add(now, vec![(route("m", ""), counts(3, 2, 0b1, 50)), (route("m", "p"), counts(4, 2, 0b1, 50))])
        .await
        .expect("added");
    add(now, vec![(route("m", ""), counts(2, 2, 0b110, 40))]).await.expect("added");
    add(now - 1, vec![(route("m", ""), counts(10, 10, 0b1000, 30)), (route("n", ""), counts(1, 0, 0b1, 20))])
        .await
        .expect("added");
    let read = async |from, to| {
        let mut rows = h.store.route_health(from..to).await.expect("read");
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        rows
    };
    let of_now = [(route("m", ""), counts(5, 4, 0b111, 50)), (route("m", "p"), counts(4, 2, 0b1, 50))];
    assert_eq!(read(now, now + 1).await, of_now);
    let all = [
        (route("m", ""), counts(15, 14, 0b1111, 50)),
        (route("m", "p"), counts(4, 2, 0b1, 50)),
        (route("n", ""), counts(1, 0, 0b1, 20)),
    ];
    assert_eq!(read(now - 96, now + 1).await, all);
    h.store.forget_route_health(now).await.expect("forgotten");
    assert_eq!(read(now - 96, now + 1).await, of_now, "what is older is gone");
    h.close().await;
}

/// Probes stand beside the calls of customers, in the same rows.
pub async fn probes_are_added_beside_calls(h: House) {
    let now = quarter_of(h.clock.now());
    let probes = |probes, good_probes, probed_at| RouteCounts { probes, good_probes, probed_at, ..counts(0, 0, 0, 0) };
    for added in [probes(2, 1, 70), counts(3, 2, 0b1, 50), probes(1, 1, 60)] {
        h.store.add_route_health(now, vec![(route("m", "p"), added)]).await.expect("added");
    }
    h.store.add_route_health(now - 1, vec![(route("m", "p"), probes(4, 0, 10))]).await.expect("added");
    let sum = RouteCounts { probes: 7, good_probes: 2, probed_at: 70, ..counts(3, 2, 0b1, 50) };
    assert_eq!(h.store.route_health(now - 1..now + 1).await.expect("read"), [(route("m", "p"), sum)]);
    h.close().await;
}

fn claim(model: &str, now: i64, nano_usd: i64) -> ProbeClaim {
    let limits = ProbeLimits { calls: 3, nano_usd: 100 };
    ProbeClaim { model: model.to_owned(), now, every_ms: 1_000, calls: 1, nano_usd, limits }
}

pub async fn a_model_is_probed_by_one_at_a_time(h: House) {
    // In the middle of a day.
    let now = 20_000 * 86_400_000 + 43_200_000;
    let ask = async |one: ProbeClaim| h.store.claim_probe(one).await.expect("an answer");
    let one = || ask(claim("p", now, 10));
    let (a, b, c) = tokio::join!(one(), one(), one());
    let mut turns = [a, b, c];
    turns.sort_by_key(|turn| *turn == ProbeTurn::NotDue);
    assert_eq!(turns, [ProbeTurn::Taken, ProbeTurn::NotDue, ProbeTurn::NotDue]);
    assert_eq!(ask(claim("p", now + 999, 10)).await, ProbeTurn::NotDue);
    assert_eq!(ask(claim("p", now + 1_000, 10)).await, ProbeTurn::Taken);
    assert_eq!(ask(claim("q", now, 10)).await, ProbeTurn::Taken, "another model has its own turn");
    assert_eq!(h.store.probe_day(now).await.expect("read"), ProbeDay { calls: 3, nano_usd: 30 });
    h.close().await;
}

pub async fn a_day_of_probes_has_a_bound(h: House) {
    let (now, day) = (20_000 * 86_400_000, 86_400_000);
    let ask = async |one: ProbeClaim| h.store.claim_probe(one).await.expect("an answer");
    assert_eq!(ask(claim("a", now, 101)).await, ProbeTurn::Spent, "dearer than a day, and not even taken");
    let many = ProbeClaim { calls: 4, ..claim("a", now, 0) };
    assert_eq!(ask(many).await, ProbeTurn::Spent, "more than a day has");
    assert_eq!(ask(claim("a", now, 60)).await, ProbeTurn::Taken);
    assert_eq!(ask(claim("b", now, 41)).await, ProbeTurn::Spent, "money");
    assert_eq!(ask(claim("c", now, 40)).await, ProbeTurn::Taken);
    assert_eq!(ask(claim("d", now, 0)).await, ProbeTurn::Taken);
    assert_eq!(ask(claim("e", now, 0)).await, ProbeTurn::Spent, "calls");
    assert_eq!(h.store.probe_day(now).await.expect("read"), ProbeDay { calls: 3, nano_usd: 100 });
    assert_eq!(ask(ProbeClaim { calls: 2, ..claim("b", now + day, 41) }).await, ProbeTurn::Taken, "the next day");
    assert_eq!(ask(ProbeClaim { calls: 2, ..claim("f", now + day, 0) }).await, ProbeTurn::Spent, "two are too many");
    h.store.forget_probes(now + day).await.expect("forgotten");
    assert_eq!(h.store.probe_day(now).await.expect("read"), ProbeDay::default());
    assert_eq!(h.store.probe_day(now + day).await.expect("read"), ProbeDay { calls: 2, nano_usd: 41 });
    assert_eq!(ask(claim("b", now + day, 0)).await, ProbeTurn::NotDue, "what is not old is remembered");
    h.close().await;
}

/// More rows than are written at once.
pub async fn route_health_of_thousands_of_routes_is_added_in_parts(h: House) {
    let now = quarter_of(h.clock.now());
    let many = |good: i64| (0..2_500).map(|n| (route(&format!("m{n}"), ""), counts(1, good, 1, n))).collect();
    let (one, other) = tokio::join!(h.store.add_route_health(now, many(1)), h.store.add_route_health(now, many(0)));
    assert!(one.is_ok() && other.is_ok());
    let rows = h.store.route_health(now..now + 1).await.expect("read");
    assert_eq!(rows.len(), 2_500);
    assert!(rows.iter().all(|(_, counts)| (counts.calls, counts.good) == (2, 1)));
    h.close().await;
}
