//! Pausing and resuming, by an operator and automatically, seen by clients, catalog, log and other
//! replicas.

use super::{ask, ask_as, cell, house, other_key, plain, status_of};
use crate::house::error_of;
use tollgate_store::{PauseChange, PauseKind};

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pauses_and_resumes_through_the_store() {
    let mut house = house("").await;
    let cell = cell(&house, "zhihu", "post");
    let name = cell.model.name.clone();
    let change = |paused, at, reason: &str| PauseChange {
        kind: PauseKind::Model,
        name: name.clone(),
        paused,
        at,
        actor: "ada".to_owned(),
        reason: reason.to_owned(),
    };
    // As the command line does it: a row in the store, found by the round.
    house.running().app.store.change_pause(change(true, 1, "route broken")).await.expect("written");
    house.running().app.social.refresh().await.expect("refreshed");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert!(reply.headers().contains_key("retry-after"));
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")));
    assert_eq!(status_of(&house, &cell.model.name).await, "paused");
    assert!(house.sim.received().is_empty());
    house.restart().await;
    assert!(house.running().app.routes.switches.model_is_paused(&cell.model.name), "known before the first call");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503);
    assert_eq!(status_of(&house, &cell.model.name).await, "paused", "a pause survives a restart");
    house.running().app.store.change_pause(change(false, 2, "mended")).await.expect("written");
    house.running().app.social.refresh().await.expect("refreshed");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    assert_eq!(status_of(&house, &cell.model.name).await, "available");
    let log = house.running().app.store.pause_changes(9).await.expect("read");
    assert_eq!(log.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), ["mended", "route broken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_our_account_pauses_a_cell_and_a_probe_resumes_it() {
    let house = house("[social]\nretry_pause = \"5ms\"\nprobe_after = \"10m\"\n").await;
    let cell = cell(&house, "zhihu", "post");
    house.sim.social_order("", "error402");
    for _ in 0..5 {
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502);
    }
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503, "paused");
    assert_eq!(status_of(&house, &cell.model.name).await, "paused");
    let other = super::cell(&house, "zhihu", "user");
    assert_eq!(ask(&house, &other, &plain(&other)).await.status(), 502, "another cell is not");
    house.clock.set(601_000);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502, "the probe, which fails");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503, "paused again");
    house.sim.social_order("", "");
    house.clock.set(1_202_000);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200, "the probe, which is answered");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    let log = house.running().app.store.pause_changes(9).await.expect("read");
    let said: Vec<(bool, &str, &str)> =
        log.iter().map(|one| (one.paused, one.actor.as_str(), one.reason.as_str())).collect();
    assert_eq!(said[0], (false, "auto", "the probe was answered"));
    assert_eq!(said[1], (true, "auto", "the probe failed"));
    assert!(said[2].0 && said[2].2.starts_with("5 calls in a row"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_failures_in_ten_of_two_accounts_pause_a_cell() {
    let house = house("[social]\nretry_pause = \"0\"\n").await;
    let cell = cell(&house, "reddit", "user");
    // What a source answers for things that do not exist, and when it is broken.
    for scenario in ["error400", "error500"] {
        house.sim.social_order("", scenario);
        for _ in 0..15 {
            assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502);
        }
    }
    assert_eq!(
        status_of(&house, &cell.model.name).await,
        "available",
        "one account may ask for things that do not exist"
    );
    let other = other_key(&house, Some(1_000_000_000)).await;
    assert_eq!(ask_as(&house, &other, &cell, &plain(&cell)).await.status(), 502);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503);
    let log = house.running().app.store.pause_changes(9).await.expect("read");
    assert_eq!((log.len(), log[0].reason.as_str()), (1, "31 of 31 calls failed within ten minutes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_the_source_refuses_pauses_nothing() {
    let house = house("[social]\nretry_pause = \"0\"\n").await;
    let cell = cell(&house, "reddit", "user");
    for n in 0..25 {
        let marked = vec![("username".to_owned(), format!("[[sim:shape param=username]]{n}"))];
        assert_eq!(ask(&house, &cell, &marked).await.status(), 400);
    }
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200, "a caller cannot close it for the others");
    assert!(house.running().app.store.pause_changes(9).await.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_could_not_be_given_is_written_later() {
    let house = house("").await;
    let app = &house.running().app;
    let change = PauseChange {
        kind: PauseKind::Model,
        name: "social-zhihu-post".to_owned(),
        paused: true,
        at: app.world.now_ms(),
        actor: "auto".to_owned(),
        reason: "while the store was away".to_owned(),
    };
    app.routes.switches.put(change.clone(), false);
    app.social.refresh().await.expect("refreshed");
    app.social.refresh().await.expect("refreshed");
    assert_eq!(app.store.pause_changes(9).await.expect("read"), [change], "once");
    assert!(app.routes.switches.model_is_paused("social-zhihu-post"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_refused_pauses_all_cells_of_its_provider() {
    let house = house("[social]\nretry_pause = \"0\"\n").await;
    house.sim.social_order("", "error401");
    let asked = [("weibo", "user"), ("zhihu", "post"), ("reddit", "user"), ("tiktok", "user"), ("douyin", "post")];
    for (platform, capability) in asked {
        let cell = cell(&house, platform, capability);
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502, "{platform}");
    }
    let log = house.running().app.store.pause_changes(999).await.expect("read");
    assert_eq!(log.len(), 101, "every cell has a row of its own");
    let reason = "the source tikhub refused the gateway's key five times in a row";
    assert!(log.iter().all(|one| one.paused && one.actor == "auto" && one.reason == reason));
    let other = cell(&house, "threads", "post");
    assert_eq!(ask(&house, &other, &plain(&other)).await.status(), 503);
}
