//! Pauses and the day's capacity of social data.

use tollgate_store::{SocialChange, SocialDay, SocialFull, SocialLimit, SocialTake};

use crate::common::House;

fn change(model: &str, paused: bool, at: i64, actor: &str) -> SocialChange {
    SocialChange { model: model.to_owned(), paused, at, actor: actor.to_owned(), reason: format!("reason {at}") }
}

pub async fn social_pauses_are_rows(h: House) {
    assert!(h.store.social_states().await.expect("reading").is_empty());
    let rows = [change("a", true, 1, "ada"), change("b", true, 2, "auto"), change("a", false, 3, "bob")];
    for row in &rows {
        h.store.social_change(row.clone()).await.expect("written");
    }
    assert_eq!(h.store.social_states().await.expect("reading"), [rows[2].clone(), rows[1].clone()]);
    assert_eq!(h.store.social_changes(2).await.expect("reading"), [rows[2].clone(), rows[1].clone()], "newest first");
    assert_eq!(h.store.social_changes(9).await.expect("reading").len(), 3, "nothing is ever changed");
    h.close().await;
}

fn take(day: i64, platform: &str, all: (i64, i64), own: (i64, i64)) -> SocialTake {
    let limit = |(calls, cost): (i64, i64)| SocialLimit { calls: Some(calls), cost: Some(cost) };
    SocialTake { day, platform: platform.to_owned(), cost: 10, all: limit(all), own: limit(own) }
}

pub async fn a_social_day_is_exact(h: House) {
    let free = SocialTake { all: SocialLimit::default(), own: SocialLimit::default(), ..take(7, "x", (0, 0), (0, 0)) };
    assert_eq!(h.store.social_take(free).await.expect("asked"), Ok(()), "no limit");
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = h.store.clone();
        let platform = if n % 2 == 0 { "x" } else { "y" };
        calls.spawn(async move { store.social_take(take(8, platform, (50, 10_000), (30, 250))).await.expect("asked") });
    }
    let outcomes = calls.join_all().await;
    assert_eq!(outcomes.iter().filter(|one| one.is_ok()).count(), 50, "25 of each platform at 10 each");
    assert!(
        outcomes
            .iter()
            .filter_map(|one| one.err())
            .all(|full| matches!(full, SocialFull::OwnCost | SocialFull::AllCalls))
    );
    let day = |platform: &str, calls, cost| SocialDay { day: 8, platform: platform.to_owned(), calls, cost };
    assert_eq!(
        h.store.social_days(8).await.expect("reading"),
        [day("", 50, 500), day("x", 25, 250), day("y", 25, 250)]
    );

    for (all, own, full) in [
        ((50, 9_999), (99, 999), SocialFull::AllCalls),
        ((99, 509), (99, 999), SocialFull::AllCost),
        ((99, 999), (25, 999), SocialFull::OwnCalls),
        ((99, 999), (99, 259), SocialFull::OwnCost),
    ] {
        assert_eq!(h.store.social_take(take(8, "x", all, own)).await.expect("asked"), Err(full));
    }
    // A clock that jumps finds the counters of the day it lands on, and the day it left keeps its own.
    assert_eq!(h.store.social_take(take(9, "x", (1, 99), (1, 99))).await.expect("asked"), Ok(()));
    assert_eq!(h.store.social_take(take(9, "x", (1, 99), (1, 99))).await.expect("asked"), Err(SocialFull::AllCalls));
    assert_eq!(
        h.store.social_take(take(8, "x", (50, 999), (99, 999))).await.expect("asked"),
        Err(SocialFull::AllCalls)
    );
    // A free call gives its cost back, and stays counted.
    h.store.social_give_back(take(8, "x", (0, 0), (0, 0))).await.expect("given back");
    assert_eq!(h.store.social_days(8).await.expect("reading")[..2], [day("", 50, 490), day("x", 25, 240)]);
    assert!(h.store.social_days(10).await.expect("reading").is_empty());
    h.close().await;
}
