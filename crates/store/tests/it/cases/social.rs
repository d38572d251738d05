//! Pauses and the day's capacity of social data.

use tollgate_store::{
    AccountId, CallId, PauseChange, PauseKind, SocialDay, SocialFull, SocialLimit, SocialTake, SocialTurn, SocialVain,
};

use crate::common::House;

fn change(model: &str, paused: bool, at: i64, actor: &str) -> PauseChange {
    let (kind, name) = (PauseKind::Model, model.to_owned());
    PauseChange { kind, name, paused, at, actor: actor.to_owned(), reason: format!("reason {at}") }
}

pub async fn social_pauses_are_rows(h: House) {
    assert!(h.store.pause_states().await.expect("reading").is_empty());
    let rows = [change("a", true, 1, "ada"), change("b", true, 2, "auto"), change("a", false, 3, "bob")];
    for row in &rows {
        h.store.change_pause(row.clone()).await.expect("written");
    }
    assert_eq!(h.store.pause_states().await.expect("reading"), [rows[2].clone(), rows[1].clone()]);
    assert_eq!(h.store.pause_changes(2).await.expect("reading"), [rows[2].clone(), rows[1].clone()], "newest first");
    assert_eq!(h.store.pause_changes(9).await.expect("reading").len(), 3, "nothing is ever changed");
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
    // A clock that jumps finds the counters of the day it lands on, and the day it left keeps its
    // own.
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

/// Takes and give-backs of several replicas at once wait for each other, and never in a circle.
pub async fn a_social_day_is_taken_and_given_back_at_once(h: House) {
    let platforms = ["a", "b", "c", "d"];
    let part = move |n: usize| take(8, platforms[n % 4], (9_999, 99_999), (9_999, 99_999));
    for n in 0..4 {
        assert_eq!(h.store.social_take(part(n)).await.expect("asked"), Ok(()));
    }
    // One process has one connection, which does one thing at a time; and alone the embedded
    // engine.
    let mut others = Vec::new();
    if h.place.url.starts_with("postgres") {
        for _ in 0..3 {
            others.push(House::open(&h.place.url).await);
        }
    }
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..32 {
        let store = others.get(n % 8).map_or(&h.store, |other| &other.store).clone();
        calls.spawn(async move {
            for _ in 0..10 {
                assert_eq!(store.social_take(part(n)).await.expect("taken"), Ok(()));
                store.social_give_back(part(n)).await.expect("given back");
            }
        });
    }
    calls.join_all().await;
    let days = h.store.social_days(8).await.expect("reading");
    let totals: Vec<(&str, i64, i64)> = days.iter().map(|day| (day.platform.as_str(), day.calls, day.cost)).collect();
    assert_eq!(totals, [("", 324, 40), ("a", 81, 10), ("b", 81, 10), ("c", 81, 10), ("d", 81, 10)]);
    for other in others {
        other.close().await;
    }
    h.close().await;
}

pub async fn vain_calls_are_remembered_while_they_matter(h: House) {
    let hour = 3_600_000;
    let vain = |n: u8, at, until| SocialVain {
        call: CallId([n; 16]),
        question: [n; 32],
        account: AccountId([7; 16]),
        at,
        until,
    };
    let rows = [vain(1, 1_000, 5_000), vain(2, 2_000, 3 * hour), vain(3, hour, hour + 1)];
    for row in &rows {
        h.store.social_vain(row.clone()).await.expect("written");
        h.store.social_vain(row.clone()).await.expect("once");
    }
    // The embedded engine writes behind; a change that waits for its commit comes after.
    h.store.change_pause(change("a", true, 1, "ada")).await.expect("written");
    let read = async |since| {
        let found = h.store.social_vains(since).await.expect("read");
        found.iter().map(|one| one.call.0[0]).collect::<Vec<_>>()
    };
    assert_eq!(h.store.social_vains(2_000).await.expect("read"), [rows[2].clone(), rows[1].clone()], "newest first");
    assert_eq!(read(0).await, [3, 2, 1]);
    h.store.sweep(hour + 500).await.expect("swept");
    h.store.change_pause(change("a", false, 2, "ada")).await.expect("written");
    assert_eq!(read(0).await, [3, 2, 1], "the first counts until its hour is over");
    h.store.sweep(hour + 1_001).await.expect("swept");
    h.store.change_pause(change("a", true, 3, "ada")).await.expect("written");
    assert_eq!(read(0).await, [3, 2], "the second is believed for longer");
    h.close().await;
}

/// One process keeps its pace by itself; several ask the database.
pub async fn turns_on_a_route_are_shared(h: House) {
    let began = tokio::time::Instant::now();
    let mut turns = Vec::new();
    for _ in 0..40 {
        let earliest = began.elapsed();
        match h.store.social_turn("p/route", 10, 30_000).await.expect("asked") {
            SocialTurn::Own => return h.close().await,
            SocialTurn::Busy(ms) => panic!("a line of {ms} ms"),
            SocialTurn::After(ms) => {
                let wait = std::time::Duration::from_millis(ms);
                turns.push((earliest + wait, began.elapsed() + wait));
            }
        }
    }
    // Each began somewhere between the two; the eleventh of any eleven can only have begun a second
    // after the first. The database counts in milliseconds.
    let second = std::time::Duration::from_millis(998);
    assert!(turns.windows(11).all(|window| window[10].1 - window[0].0 >= second), "{turns:?}");
    let mut busy = None;
    for _ in 0..20 {
        if let SocialTurn::Busy(ms) = h.store.social_turn("p/other", 1, 0).await.expect("asked") {
            busy = Some(ms);
            break;
        }
    }
    assert!(busy.is_some_and(|ms| (1..=1_000).contains(&ms)), "the second of two at once: {busy:?}");
    h.close().await;
}
