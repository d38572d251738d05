//! What is sent to a source, and sources of one's own beside the supplier.

use super::{CELLS, ask, cell, free, house, plain};
use crate::house::{House, call_id};
use serde_json::{Value, json};
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_route_gets_what_was_asked_and_what_it_always_has() {
    let house = house("").await;
    let search = cell(&house, "wechat-mp", "search");
    let query = [("keyword", "咖啡"), ("sort", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(ask(&house, &search, &query).await.status(), 200);
    let sent = house.sim.received().remove(0);
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/api/v1/wechat_search/v2/fetch_search"));
    assert_eq!(sent.json(), json!({"keyword": "咖啡", "sort": "hot", "business_type": "article"}));
    assert!(sent.header("user-agent").is_some_and(|agent| agent.starts_with("tollgate/")));
    // Another cell of the same route leaves that to its caller.
    let all = cell(&house, "wechat-search", "search");
    assert_eq!(ask(&house, &all, &query[..1]).await.status(), 200);
    assert_eq!(house.sim.received().remove(1).json(), json!({"keyword": "咖啡"}));
    let user = cell(&house, "weibo", "user");
    assert_eq!(ask(&house, &user, &plain(&user)).await.status(), 200);
    let sent = house.sim.received().remove(2);
    assert_eq!((sent.method.as_str(), sent.body.len()), ("GET", 0));
    assert!(sent.query.starts_with("uid=") && !sent.query.contains('&'), "{}", sent.query);
}

/// A house whose first source for comments of Douyin is its own, with the supplier behind it.
async fn own_first() -> House {
    let house = house("").await;
    let file = house.dir.join("tollgate.toml");
    let provider =
        format!("\n[provider.own]\nkind = \"social-source\"\nbase_url = \"{}\"\n", house.sim.own_social_url());
    let text = std::fs::read_to_string(&file).expect("read") + &provider;
    std::fs::write(&file, text).expect("written");
    let first = "[[social.douyin.comments.route]]";
    let own =
        format!("{first}\nprovider = \"own\"\npath = \"/douyin/app/v3/fetch_video_comments\"\ncost = 0\n\n{first}");
    assert!(CELLS.contains(first));
    std::fs::write(house.dir.join("catalog/more.toml"), CELLS.replacen(first, &own, 1)).expect("written");
    tollgate_gateway::workers::reload::reload(&house.running().app, &house.source).await.expect("reloaded");
    house
}

fn paths(house: &House) -> Vec<String> {
    house.sim.received().iter().map(|one| one.path.clone()).collect()
}

const OWN: &str = "/api/douyin/app/v3/fetch_video_comments";
const SUPPLIER: &str = "/api/v1/douyin/app/v3/fetch_video_comments";

#[tokio::test(flavor = "multi_thread")]
async fn a_source_of_ones_own_is_asked_first_and_the_supplier_when_it_fails() {
    let house = own_first().await;
    let cell = cell(&house, "douyin", "comments");
    let before = house.available().await;
    let reply = ask(&house, &cell, &plain(&cell)).await;
    let row = house.row(call_id(&reply)).await;
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(
        (body["object"].as_str(), body["data"]["comments"].as_array().map(Vec::len)),
        (Some("social.result"), Some(3))
    );
    assert!(body.get("router").is_none() && body["data"].get("cookie").is_none());
    assert_eq!((paths(&house), row.provider.as_deref()), (vec![OWN.to_owned()], Some("own")));
    assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::Answered, 2_000_000, 1));

    // A failed fetch is tried once more where it failed, then at the supplier's.
    for (scenario, tries) in [("error400", 2), ("error500", 1)] {
        house.sim.clear();
        house.sim.social_order("/api/douyin/", scenario);
        let reply = ask(&house, &cell, &plain(&cell)).await;
        assert_eq!(reply.status(), 200, "{scenario}");
        let row = house.row(call_id(&reply)).await;
        let mut expected = vec![OWN.to_owned(); tries];
        expected.push(SUPPLIER.to_owned());
        assert_eq!((paths(&house), row.provider.as_deref(), row.attempts), (expected, Some("tikhub"), 2), "{scenario}");
        assert_eq!((row.ending, row.charge.nano()), (Ending::Answered, 2_000_000));
    }
    assert_eq!(before - house.available().await, 3 * 2_000_000, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_errors_of_a_source_of_ones_own_are_read() {
    let house = own_first().await;
    let cell = cell(&house, "douyin", "comments");
    let before = house.available().await;
    house.sim.social_order("/api/v1/", "error500");
    for (scenario, status, code) in [
        ("error404", 404, "social_data_no_result"),
        ("gone", 502, "social_data_upstream_error"),
        ("error500", 502, "social_data_upstream_error"),
        ("empty", 404, "social_data_no_result"),
        ("code", 502, "social_data_upstream_error"),
    ] {
        house.sim.social_order("/api/douyin/", scenario);
        let (got, error, _) = free(&house, ask(&house, &cell, &plain(&cell)).await).await;
        assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{scenario}");
    }
    assert_eq!(house.available().await, before);
}
