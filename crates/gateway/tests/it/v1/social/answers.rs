//! What reaches the client: the platform's bytes, nothing of the supplier's; and a client that does
//! not wait for them.

use super::{address, ask, cell, house, leave_it_open, plain};
use crate::house::{House, call_id};
use serde_json::Value;
use tollgate_store::Ending;

/// The `data` of the same request sent to the source itself.
pub async fn from_source(house: &House, path: &str) -> String {
    let url = format!("{}{path}", house.sim.social_url());
    let reply = house.http.get(url).header("user-agent", "test/1").send().await.expect("a reply");
    let text = reply.text().await.expect("text");
    text[text.find("\"data\":").expect("data") + 7..].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_above_two_to_the_53_survive_byte_for_byte() {
    let house = house("").await;
    let cell = cell(&house, "douyin", "comments");
    let body = ask(&house, &cell, &plain(&cell)).await.text().await.expect("text");
    let source = from_source(&house, "/douyin/app/v3/fetch_video_comments?aweme_id=7411193113223371043").await;
    let comments =
        &source[source.find("\"comments\":").expect("comments")..source.find(",\"cookie\"").expect("artefacts")];
    assert!(comments.contains("7411193113223371043") && comments.contains("7411193113223371045"));
    assert!(body.contains(comments), "the list is the source's text");
    assert!(body.contains("\"rate\":1.5") && !body.contains("cookie"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_becomes_an_object() {
    let house = house("").await;
    let cell = cell(&house, "kuaishou", "trending");
    let body: Value = ask(&house, &cell, &[]).await.json().await.expect("JSON");
    assert_eq!(body["data"]["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_its_client_has_left_answers_the_same_question() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "post");
    house.sim.social_order("", "slow think_ms=500");
    leave_it_open(&house, &cell, &plain(&cell)).await;
    house.sim.social_order("", "");
    let rows = || async {
        let page = tollgate_store::UsagePage { before: None, limit: 5 };
        house.running().app.store.usage(None, page).await.expect("read")
    };
    // Its leaving has been noticed; its answer is still on its way.
    let (params, open) = (plain(&cell), async { house.sim.open() });
    let (reply, ()) = tokio::join!(ask(&house, &cell, &params), open);
    assert_eq!((reply.status().as_u16(), house.sim.received().len()), (200, 1), "it was asked for once");
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.charge.nano(), row.ending), (2_000_000, Ending::Answered), "and is paid now");
    let again = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!((again.status().as_u16(), house.sim.received().len()), (200, 2), "once");
    let endings: Vec<(Ending, i64)> = rows().await.iter().map(|row| (row.ending, row.charge.nano())).collect();
    assert_eq!(endings[1..], [(Ending::Answered, 2_000_000), (Ending::ClientLeft, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_pays_nothing() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "post");
    house.sim.social_order("", "slow think_ms=2000");
    let before = house.available().await;
    let url = house.url(&address(&cell, &plain(&cell)));
    house.leave(house.http.get(url).bearer_auth(&house.key)).await;
    house.quiet().await;
    assert_eq!(house.available().await, before);
    let rows = house
        .running()
        .app
        .store
        .usage(None, tollgate_store::UsagePage { before: None, limit: 5 })
        .await
        .expect("read");
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::ClientLeft, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_never_answers_is_not_asked_twice() {
    let plan = crate::house::Plan { usd: "10", patience: "300ms", catalog: &super::CELLS, ..Default::default() };
    let house = House::with(plan).await;
    house.sim.social_order("", "hang");
    let cell = cell(&house, "douyin", "search");
    let (status, error, _) = super::free(&house, ask(&house, &cell, &plain(&cell)).await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("social_data_upstream_error")));
    assert_eq!(house.sim.received().len(), 1, "it may have been billed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_log_and_the_catalog_show_it() {
    let house = house("").await;
    let cell = cell(&house, "tiktok", "user");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    let id = call_id(&reply);
    reply.bytes().await.expect("read");
    house.row(id).await;
    let usage: Value = house.get(&format!("/v1/usage/{id}")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((&usage["model"], &usage["charge_usd"]), (&"social-tiktok-user".into(), &"0.002".into()));
    let catalog: Value =
        house.http.get(house.url("/api/social/catalog")).send().await.expect("a reply").json().await.expect("JSON");
    let cells = catalog["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 101);
    let record = cells.iter().find(|one| one["model"] == "social-tiktok-user").expect("the cell");
    assert_eq!((&record["status"], &record["price_usd"]), (&"available".into(), &0.002.into()));
    assert_eq!(record["health"]["sample_size"], 1);
    assert_eq!(record["require_one_of"], serde_json::json!([["uniqueId", "secUid"]]));
    let models: Value = house.get("/v1/models").send().await.expect("a reply").json().await.expect("JSON");
    assert!(!models.to_string().contains("social-"), "cells are not models");
    let document: Value =
        house.http.get(house.url("/openapi.json")).send().await.expect("a reply").json().await.expect("JSON");
    let operation = &document["paths"]["/v1/social/bilibili/user-posts"]["get"];
    assert_eq!(operation["parameters"][1]["schema"]["maximum"], 100);
    assert_eq!(operation["operationId"], "social_bilibili_user_posts");
}
