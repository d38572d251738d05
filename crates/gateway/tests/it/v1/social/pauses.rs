//! Pausing and resuming, by an operator and automatically, seen by clients, catalog, log and other replicas.

use super::{ask, cell, house, plain};
use crate::house::error_of;
use serde_json::Value;
use tollgate_store::SocialChange;

async fn status_of(house: &crate::house::House, model: &str) -> String {
    let catalog: Value =
        house.http.get(house.url("/api/social/catalog")).send().await.expect("a reply").json().await.expect("JSON");
    let cells = catalog["cells"].as_array().expect("cells");
    cells.iter().find(|one| one["model"] == model).expect("the cell")["status"].as_str().expect("text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pauses_and_resumes_through_the_store() {
    let mut house = house("").await;
    let cell = cell(&house, "zhihu", "post");
    let name = cell.model.name.clone();
    let change = |paused, at, reason: &str| SocialChange {
        model: name.clone(),
        paused,
        at,
        actor: "ada".to_owned(),
        reason: reason.to_owned(),
    };
    // As the command line does it: a row in the store, found by the round.
    house.running().app.store.social_change(change(true, 1, "route broken")).await.expect("written");
    house.running().app.refresh_social().await.expect("refreshed");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert!(reply.headers().contains_key("retry-after"));
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")));
    assert_eq!(status_of(&house, &cell.model.name).await, "paused");
    assert!(house.sim.received().is_empty());
    house.restart().await;
    house.running().app.refresh_social().await.expect("refreshed");
    assert_eq!(status_of(&house, &cell.model.name).await, "paused", "a pause survives a restart");
    house.running().app.store.social_change(change(false, 2, "mended")).await.expect("written");
    house.running().app.refresh_social().await.expect("refreshed");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    assert_eq!(status_of(&house, &cell.model.name).await, "available");
    let log = house.running().app.store.social_changes(9).await.expect("read");
    assert_eq!(log.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), ["mended", "route broken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_our_account_pauses_a_cell_and_a_probe_resumes_it() {
    let house = house("[social]\nretry_pause = \"5ms\"\nprobe_after = \"300ms\"\n").await;
    let cell = cell(&house, "zhihu", "post");
    house.sim.social_order("", "error402");
    for _ in 0..5 {
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502);
    }
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503, "paused");
    assert_eq!(status_of(&house, &cell.model.name).await, "paused");
    let other = super::cell(&house, "zhihu", "user");
    assert_eq!(ask(&house, &other, &plain(&other)).await.status(), 502, "another cell is not");
    tokio::time::sleep(std::time::Duration::from_millis(350)).await;
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502, "the probe, which fails");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503, "paused again");
    house.sim.social_order("", "");
    tokio::time::sleep(std::time::Duration::from_millis(350)).await;
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200, "the probe, which is answered");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    let log = house.running().app.store.social_changes(9).await.expect("read");
    let said: Vec<(bool, &str, &str)> =
        log.iter().map(|one| (one.paused, one.actor.as_str(), one.reason.as_str())).collect();
    assert_eq!(said[0], (false, "auto", "the probe was answered"));
    assert_eq!(said[1], (true, "auto", "the probe failed"));
    assert!(said[2].0 && said[2].2.starts_with("5 calls in a row"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_failures_in_ten_pause_a_cell() {
    let house = house("[social]\nretry_pause = \"0\"\n").await;
    let cell = cell(&house, "reddit", "user");
    house.sim.social_order("", "error500");
    for _ in 0..20 {
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502);
    }
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 503);
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
    let log = house.running().app.store.social_changes(999).await.expect("read");
    assert_eq!(log.len(), 101, "every cell has a row of its own");
    let reason = "the source tikhub refused the gateway's key five times in a row";
    assert!(log.iter().all(|one| one.paused && one.actor == "auto" && one.reason == reason));
    let other = cell(&house, "threads", "post");
    assert_eq!(ask(&house, &other, &plain(&other)).await.status(), 503);
}
