//! Answers that are too large to be held: they pass, and what they are is known at their end.

use super::answers::from_source;
use super::{address, ask, cell, house, listed, plain, until};
use crate::house::call_id;
use crate::slow;
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_passes_byte_for_byte_and_is_charged_at_its_end() {
    let house = house("").await;
    let cell = cell(&house, "douyin", "comments");
    house.sim.social_order("", "huge mib=5");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!(reply.status(), 200);
    assert!(!reply.headers().contains_key("x-tollgate-charge-usd"), "not certain before its end");
    let id = call_id(&reply);
    let body = reply.text().await.expect("all of it");
    let post = &plain(&cell)[0].1;
    let source = from_source(&house, &format!("/douyin/app/v3/fetch_video_comments?aweme_id={post}")).await;
    let data = &source[..source.rfind(",\"docs\":").expect("the envelope goes on")];
    let data = data.replace("\"cookie\":\"sim-session=secret\",", "").replace("\"debug_id\":\"sim-debug\",", "");
    assert!(data.len() > 5 << 20 && data.contains("7411193113223371043"));
    let expected = format!(
        "{{\"object\":\"social.result\",\"platform\":\"douyin\",\"capability\":\"comments\",\"data\":{data},\"next\":{{\"aweme_id\":\"{post}\",\"cursor\":\"20\"}}}}"
    );
    // Not `assert_eq`: nobody wants to read five megabytes.
    assert!(body == expected, "{} bytes, expected {}", body.len(), expected.len());
    let row = house.row(id).await;
    assert_eq!((row.charge.nano(), row.ending), (2_000_000, Ending::Answered));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_that_turns_out_to_be_none_is_broken_off_and_free() {
    let house = house("").await;
    // The status stands behind the bulk; the list is empty; the source breaks off; the answer is
    // too large without saying so.
    for (platform, capability, order) in [
        ("douyin", "comments", "error_inside mib=5"),
        ("weibo", "post", "empty mib=5"),
        ("weibo", "post", "cut mib=5 cut=eof"),
    ] {
        let cell = super::cell(&house, platform, capability);
        house.sim.social_order("", order);
        let reply = ask(&house, &cell, &plain(&cell)).await;
        let id = call_id(&reply);
        assert_eq!(reply.status(), 200, "{order}");
        assert!(reply.bytes().await.is_err(), "{order}: no client takes it for a whole answer");
        let row = house.row(id).await;
        assert_eq!(
            (row.charge.nano(), row.ending, row.reason.as_str()),
            (0, Ending::UpstreamFault, "broken_off"),
            "{order}"
        );
    }
    // Nothing in it but the supplier's own: broken off perhaps before its head has left.
    let before = house.available().await;
    let cell = super::cell(&house, "weibo", "post");
    house.sim.social_order("", "hollow mib=5");
    match house.get(&address(&cell, &plain(&cell))).send().await {
        Ok(reply) => assert!(reply.bytes().await.is_err()),
        Err(error) => assert!(error.is_request(), "{error}"),
    }
    house.quiet().await;
    assert_eq!(house.available().await, before);
    let health = async |model: &str| listed(&house, model).await["health"].clone();
    until("all are seen", async || health("social-weibo-post").await["sample_size"] == 3).await;
    assert_eq!(health("social-weibo-post").await["success_ratio"], 0.0, "each counts once, as a failure");
    // What is known before the bulk needs no beginning.
    let cell = super::cell(&house, "bilibili", "comments");
    house.sim.social_order("", "scalar mib=5");
    let (status, error, _) = super::free(&house, ask(&house, &cell, &plain(&cell)).await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("social_data_upstream_error")));
    house.sim.social_order("", "error_inside mib=5");
    let (status, error, _) = super::free(&house, ask(&house, &cell, &plain(&cell)).await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("social_data_upstream_error")));
    house.sim.social_order("", "huge mib=40");
    let (status, error, _) = super::free(&house, ask(&house, &cell, &plain(&cell)).await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("social_data_upstream_error")), "more than is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_a_large_answer_pays() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "post");
    house.sim.social_order("", "huge mib=30");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    let id = call_id(&reply);
    drop(reply);
    let row = house.row(id).await;
    assert_eq!((row.charge.nano(), row.ending), (2_000_000, Ending::ClientLeft));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_a_large_answer_until_its_time_is_up_pays() {
    let house = house("").await;
    let cell = cell(&house, "weibo", "post");
    house.sim.social_order("", "huge mib=30");
    let request = slow::get(&house, &address(&cell, &plain(&cell)));
    let row = slow::too_slow(&house, request, &mut 0).await;
    assert_eq!(
        (row.charge.nano(), row.ending, row.reason.as_str()),
        (2_000_000, Ending::ClientLeft, "client_too_slow")
    );
    assert!(listed(&house, "social-weibo-post").await["health"]["sample_size"] != 1, "it says nothing of the source");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_that_breaks_off_counts_against_its_account() {
    let house = house("[social]\nno_results_per_hour = 1\n").await;
    let cell = cell(&house, "weibo", "post");
    house.sim.social_order("", "cut mib=5 cut=eof");
    assert!(ask(&house, &cell, &plain(&cell)).await.bytes().await.is_err());
    house.sim.social_order("", "");
    until("it is counted", async || ask(&house, &cell, &plain(&cell)).await.status() == 429).await;
}
