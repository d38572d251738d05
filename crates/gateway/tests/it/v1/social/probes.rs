//! Trying a paused cell again: who may, what the others get, and what counts as an answer of
//! the source.

use super::{ask, ask_and_leave, ask_as, cell, free, house, other_key, plain, status_of, until};
use crate::house::{House, error_of};
use std::time::Duration;
use tollgate_gateway::routes::switches::AUTO;
use tollgate_store::{PauseChange, PauseKind};

const MODEL: &str = "social-weibo-user";
/// Longer than `probe_after`.
const LATER: i64 = 16 * 60_000;

fn uid(text: &str) -> Vec<(String, String)> {
    vec![("uid".to_owned(), text.to_owned())]
}

/// Paused by itself a quarter of an hour ago.
async fn pause(house: &House) {
    house.running().app.social.change(MODEL, true, AUTO, "test").await.expect("paused");
    house.clock.set(LATER);
}

async fn last(house: &House) -> PauseChange {
    house.running().app.store.pause_changes(1).await.expect("read").remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_anyway_names_the_pause_and_tries_nothing() {
    let house = house("[social]\ndaily_calls = 1000\n").await;
    let cell = cell(&house, "weibo", "user");
    assert_eq!(ask(&house, &cell, &uid("[[sim:empty]]")).await.status(), 404);
    let keys = [other_key(&house, None).await, other_key(&house, Some(1)).await];
    pause(&house).await;
    house.sim.clear();
    let mut replies = vec![ask(&house, &cell, &[("zz".to_owned(), "1".to_owned())]).await];
    for key in &keys {
        replies.push(ask_as(&house, key, &cell, &uid("7")).await);
    }
    for reply in replies {
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")));
    }
    let (status, error, _) = free(&house, ask(&house, &cell, &uid("[[sim:empty]]")).await).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")), "known to be vain");
    assert!(house.sim.received().is_empty() && status_of(&house, MODEL).await == "paused");
    assert_eq!(ask(&house, &cell, &uid("7")).await.status(), 200, "the first that can, tries");
    assert_eq!(last(&house).await.reason, "the probe was answered");
    assert_eq!(status_of(&house, MODEL).await, "available");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_day_is_used_up_nobody_tries() {
    let house = house("[social]\ndaily_calls = 0\n").await;
    let cell = cell(&house, "weibo", "user");
    pause(&house).await;
    for _ in 0..2 {
        let (status, error, _) = free(&house, ask(&house, &cell, &uid("7")).await).await;
        assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")));
    }
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_at_a_time_tries() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "user");
    pause(&house).await;
    house.sim.shut("/api/");
    let (first, second) = (uid("1"), uid("2"));
    let meanwhile = async {
        until("the first is asked", async || house.sim.waited() > 0).await;
        let second = ask(&house, &cell, &second).await;
        house.sim.open();
        second
    };
    let (one, two) = tokio::join!(ask(&house, &cell, &first), meanwhile);
    assert_eq!((one.status().as_u16(), two.status().as_u16(), house.sim.received().len()), (200, 503, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_does_while_a_call_tries_stays() {
    for (scenario, elsewhere) in [("slow think_ms=0", false), ("slow think_ms=0", true), ("error500", true)] {
        let house = house("").await;
        let cell = cell(&house, "weibo", "user");
        pause(&house).await;
        house.sim.social_order("", scenario);
        let asked = uid("7");
        house.sim.shut("/api/");
        let meanwhile = async {
            until("it is asked", async || house.sim.waited() > 0).await;
            let app = &house.running().app;
            if elsewhere {
                // As another replica or the command line does it.
                let (kind, name, actor, reason) =
                    (PauseKind::Model, MODEL.to_owned(), "ada".to_owned(), "by hand".to_owned());
                let at = app.world.now_ms();
                app.store
                    .change_pause(PauseChange { kind, name, paused: true, at, actor, reason })
                    .await
                    .expect("written");
            } else {
                app.social.change(MODEL, true, "ada", "by hand").await.expect("written");
            }
            house.sim.open();
        };
        let (reply, ()) = tokio::join!(ask(&house, &cell, &asked), meanwhile);
        assert_eq!(reply.status(), if scenario.starts_with("slow") { 200 } else { 502 });
        assert_eq!((last(&house).await.actor.as_str(), status_of(&house, MODEL).await.as_str()), ("ada", "paused"));
        assert_eq!(ask(&house, &cell, &asked).await.status(), 503, "ended by hand only");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cached_says_nothing_about_the_cell() {
    let house = house("[social]\nprobe_after = \"1ms\"\n").await;
    let cell = cell(&house, "weibo", "user");
    house.sim.social_order("", "slow think_ms=0");
    ask_and_leave(&house, &cell, &uid("7")).await;
    house.sim.social_order("", "");
    tokio::time::sleep(Duration::from_millis(3_000)).await;
    house.running().app.social.change(MODEL, true, AUTO, "test").await.expect("paused");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(ask(&house, &cell, &uid("7")).await.status(), 200);
    assert_eq!((house.sim.received().len(), status_of(&house, MODEL).await.as_str()), (1, "paused"));
    assert_eq!(ask(&house, &cell, &uid("8")).await.status(), 200, "this one tries");
    assert_eq!((house.sim.received().len(), status_of(&house, MODEL).await.as_str()), (2, "available"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_tries_and_leaves_has_tried() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "user");
    pause(&house).await;
    ask_and_leave(&house, &cell, &plain(&cell)).await;
    until("the cell is open", async || status_of(&house, MODEL).await == "available").await;
    assert_eq!(last(&house).await.reason, "the probe was answered");
}
