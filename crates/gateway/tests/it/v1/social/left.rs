//! Clients who do not wait: what follows a call follows it all the same.

use super::{ask, ask_and_leave, cell, free, house, leave_it_open, plain, status_of, until};
use crate::house::House;

fn uid(text: &str) -> Vec<(String, String)> {
    vec![("uid".to_owned(), text.to_owned())]
}

async fn cost_of_today(house: &House) -> Option<i64> {
    let day = house.running().app.world.now_ms().div_euclid(86_400_000);
    house.running().app.store.social_days(day).await.expect("read").first().map(|day| day.cost)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cost_of_a_free_call_is_given_back() {
    let house = house("[social]\nretry_pause = \"0\"\ndaily_cost = 100_000\n").await;
    let cell = cell(&house, "weibo", "user");
    house.sim.social_order("", "error500");
    leave_it_open(&house, &cell, &plain(&cell)).await;
    assert_eq!(cost_of_today(&house).await, Some(1_000), "nobody knows yet");
    house.sim.open();
    until("the cost is given back", async || cost_of_today(&house).await == Some(0)).await;
    house.sim.social_order("", "slow think_ms=500");
    ask_and_leave(&house, &cell, &plain(&cell)).await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(cost_of_today(&house).await, Some(1_000), "this one was billed");
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_our_account_is_seen() {
    let house = house("[social]\nretry_pause = \"0\"\n").await;
    let cell = cell(&house, "weibo", "user");
    house.sim.social_order("", "error402");
    for n in 0..5 {
        ask_and_leave(&house, &cell, &uid(&n.to_string())).await;
    }
    until("the cell is paused", async || status_of(&house, "social-weibo-user").await == "paused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vain_question_is_remembered() {
    let house = house("[social]\nno_results_per_hour = 1\n").await;
    let cell = cell(&house, "weibo", "user");
    let vain = uid("[[sim:empty think_ms=400]]");
    ask_and_leave(&house, &cell, &vain).await;
    let (status, error, _) = free(&house, ask(&house, &cell, &vain).await).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("social_data_no_result")));
    let (status, error, _) = free(&house, ask(&house, &cell, &vain).await).await;
    assert_eq!((status, error["reason"].as_str()), (404, Some("known")));
    let (status, error, _) = free(&house, ask(&house, &cell, &uid("7")).await).await;
    assert_eq!((status, error["reason"].as_str()), (429, Some("no_result_limit")), "the first counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_comes_back_for_counts_against_its_account() {
    let house = house("[social]\nno_results_per_hour = 1\n").await;
    let cell = cell(&house, "weibo", "user");
    house.sim.social_order("", "slow think_ms=0");
    ask_and_leave(&house, &cell, &uid("1")).await;
    // Who comes back pays, and has caused nothing in vain.
    assert_eq!(ask(&house, &cell, &uid("1")).await.status(), 200);
    ask_and_leave(&house, &cell, &uid("2")).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    house.sim.social_order("", "");
    assert_eq!(ask(&house, &cell, &uid("3")).await.status(), 200, "it may still be asked for");
    house.clock.set(61_000);
    house.running().app.social.refresh().await.expect("refreshed");
    let (status, error, _) = free(&house, ask(&house, &cell, &uid("4")).await).await;
    assert_eq!((status, error["reason"].as_str()), (429, Some("no_result_limit")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_was_billed_counts_against_its_account() {
    let house = house("[social]\nno_results_per_hour = 1\nauto_pause = false\n").await;
    let cell = cell(&house, "douyin", "comments");
    let asked = |text: &str| vec![("aweme_id".to_owned(), text.to_owned())];
    // An error status is free for the operator, an error in disguise is not.
    assert_eq!(ask(&house, &cell, &asked("[[sim:error500]]")).await.status(), 502);
    assert_eq!(ask(&house, &cell, &asked("[[sim:error_inside]]")).await.status(), 502);
    let (status, error, _) = free(&house, ask(&house, &cell, &asked("7")).await).await;
    assert_eq!((status, error["reason"].as_str()), (429, Some("no_result_limit")));
}
