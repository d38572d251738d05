//! The supplier of social data, over a raw socket.

use super::client::{End, get, read, request, sim};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tollgate_sim::{Sim, SimSettings, social_scenarios};

const COMMENTS: &str = "/api/v1/douyin/app/v3/fetch_video_comments";

async fn data(sim: &Sim, path: &str) -> Value {
    let answer = get(sim, path).await;
    assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
    answer.json()["data"].clone()
}

#[tokio::test]
async fn a_list_has_pages_and_then_ends() {
    let sim = sim().await;
    let mut seen = Vec::new();
    let mut cursor = 0;
    loop {
        let page = data(&sim, &format!("{COMMENTS}?aweme_id=1&cursor={cursor}")).await;
        assert_eq!(page["status_code"], 0);
        seen.extend(page["comments"].as_array().expect("a list").iter().map(|one| one["id"].as_u64().expect("an id")));
        if page["has_more"] == 0 {
            break;
        }
        cursor = page["cursor"].as_u64().expect("a cursor");
    }
    assert_eq!(seen.len(), 9);
    assert!(seen.iter().all(|id| *id > 1 << 53), "a double would not hold these");
    let after = data(&sim, &format!("{COMMENTS}?aweme_id=1&cursor=60")).await;
    assert_eq!(after["comments"], serde_json::json!([]));
}

#[tokio::test]
async fn it_is_as_strict_as_the_framework_behind_it() {
    let sim = sim().await;
    for (query, status, param) in [
        ("", 422, "aweme_id"),
        ("?aweme_id=1&cookie=x", 422, "cookie"),
        ("?aweme_id=1&cursor=x", 422, "cursor"),
        ("?aweme_id=1&aweme_id=1", 422, "aweme_id"),
        ("?aweme_id=1", 200, ""),
    ] {
        let answer = get(&sim, &format!("{COMMENTS}{query}")).await;
        assert_eq!(answer.status(), status, "{query}");
        if status == 422 {
            assert_eq!(answer.json()["detail"][0]["loc"][1], param);
        }
    }
    assert_eq!(get(&sim, "/api/v1/douyin/nothing").await.json(), serde_json::json!({"detail": "Not Found"}));
    let post = read(request(&sim, "POST", "/api/v1/tiktok/web/fetch_home_feed", r#"{"count":15}"#).await).await;
    assert_eq!(post.status(), 200);
    let typed = read(request(&sim, "POST", "/api/v1/tiktok/web/fetch_home_feed", r#"{"count":"15"}"#).await).await;
    assert_eq!(typed.status(), 422, "a number in a text is not a number");
    assert_eq!(get(&sim, "/api/v1/tiktok/web/fetch_home_feed").await.status(), 405);
    assert!(!sim.received().iter().any(|one| one.accepted != (one.status == 200)), "only 200 is billed");
}

#[tokio::test]
async fn every_scenario_can_be_asked_for_by_marker_and_by_order() {
    let sim = sim().await;
    for (name, _) in social_scenarios().filter(|(name, _)| !["hang", "cut", "slow", "huge"].contains(name)) {
        let marked = get(&sim, &format!("{COMMENTS}?aweme_id=%5B%5Bsim:{name}%5D%5D")).await;
        sim.social_order("fetch_video_comments", name);
        let ordered = get(&sim, &format!("{COMMENTS}?aweme_id={name}")).await;
        sim.social_order("fetch_video_comments", "");
        assert_eq!(marked.status(), ordered.status(), "{name}");
        assert_eq!(sim.received().last().expect("a call").scenario, name);
    }
    assert_eq!(get(&sim, &format!("{COMMENTS}?aweme_id=%5B%5Bsim:cut%5D%5D")).await.end, End::Reset);
    let huge = get(&sim, &format!("{COMMENTS}?aweme_id=%5B%5Bsim:huge+mib=1%5D%5D")).await;
    assert!(huge.bytes().len() > 900_000);
    let once = format!("{COMMENTS}?aweme_id=%5B%5Bsim:once400%5D%5Dx");
    let statuses = [get(&sim, &once).await.status(), get(&sim, &once).await.status()];
    assert_eq!(statuses, [400, 200]);
}

#[tokio::test]
async fn a_wrong_key_and_a_bare_library_are_turned_away() {
    let sim = Sim::start(SimSettings { require_key: Some("other".to_owned()), ..SimSettings::default() })
        .await
        .expect("a port");
    assert_eq!(get(&sim, &format!("{COMMENTS}?aweme_id=1")).await.status(), 401);
    let sim = Sim::start(SimSettings::default()).await.expect("a port");
    for (agent, status) in [
        ("", 403),
        ("user-agent: python-requests/2.32\r\n", 403),
        ("user-agent: hyper/1\r\n", 403),
        ("user-agent: reqwest/0.13\r\n", 403),
        ("user-agent: tollgate/1\r\n", 200),
    ] {
        let mut socket = tokio::net::TcpStream::connect(sim.addr()).await.expect("connected");
        let head = format!("GET {COMMENTS}?aweme_id=1 HTTP/1.1\r\nhost: sim\r\n{agent}\r\n");
        socket.write_all(head.as_bytes()).await.expect("written");
        assert_eq!(read(socket).await.status(), status, "{agent}");
    }
}

#[tokio::test]
async fn a_source_of_ones_own_has_a_small_envelope_and_flat_errors() {
    let sim = sim().await;
    let own = COMMENTS.replacen("/api/v1", "/api", 1);
    let answer = get(&sim, &format!("{own}?aweme_id=1")).await.json();
    let names: Vec<&str> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!((names, &answer["code"]), (vec!["code", "data", "router"], &200.into()));
    sim.social_order("/api/douyin/", "error400");
    let refused = get(&sim, &format!("{own}?aweme_id=1")).await;
    assert_eq!((refused.status(), &refused.json()["code"]), (400, &400.into()));
    assert!(refused.json()["message"].is_string() && refused.json().get("detail").is_none());
    assert_eq!(get(&sim, &format!("{COMMENTS}?aweme_id=1")).await.status(), 200, "the order was for the other one");
}

#[tokio::test]
async fn what_is_deleted_is_not_what_is_empty() {
    let sim = sim().await;
    let post = "/api/v1/douyin/app/v3/fetch_one_video_by_share_url?share_url=";
    let gone = data(&sim, &format!("{post}%5B%5Bsim:deleted%5D%5D")).await;
    assert!(gone["aweme_detail"].is_null() && gone["filter_detail"]["notice"].is_string(), "{gone}");
    let marked = data(&sim, "/api/v1/toutiao/web/get_article_info?aweme_id=%5B%5Bsim:deleted%5D%5D").await;
    assert!(marked["data"]["delete"] == 1 && marked["data"]["id"].is_number(), "all of it, with a mark: {marked}");
    let none = data(&sim, "/api/v1/bilibili/web/fetch_user_profile?uid=%5B%5Bsim:not_found%5D%5D").await;
    assert_eq!(none["code"], -404);
}
