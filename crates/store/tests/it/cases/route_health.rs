//! Route health: sums by quarter that everybody adds to, and that are forgotten in time.

use tollgate_store::{CountedRoute, RouteCounts, quarter_of};

use crate::common::House;

fn route(model: &str, provider: &str) -> CountedRoute {
    let upstream_model = if provider.is_empty() { String::new() } else { "up".to_owned() };
    CountedRoute { model: model.to_owned(), provider: provider.to_owned(), upstream_model }
}

fn counts(calls: i64, good: i64, accounts: i64, last_at: i64) -> RouteCounts {
    RouteCounts { calls, good, accounts, first_byte_ms: 10 * good, last_at }
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
