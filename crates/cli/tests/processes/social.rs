//! Social data over real processes: what replicas share on PostgreSQL, how much memory a large
//! answer takes, and what customers do from the command line.

use crate::house::{House, Plan, text};
use crate::postgres::Server;
use crate::process::{HANG, tollgate};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Two gateways over one database, with lines of the provider and of `[social]`.
async fn two(server: &Server, name: &str, social: &str) -> House {
    let database = server.database(name).await;
    House::new(Plan { database: &database, gates: 2, social, patience: ["20s", "20s"], ..Plan::default() }).await
}

async fn error_of(reply: reqwest::Response) -> (u16, String, String) {
    let status = reply.status().as_u16();
    let body: Value = reply.json().await.expect("JSON");
    let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("reason"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_is_exact_over_two_processes() {
    let server = Server::find();
    let social = "requests_per_second = 0\n[social]\ndaily_calls = 40\n[social.platform.weibo]\ndaily_cost = 15_000\n";
    let house = two(&server, "social_day", social).await;
    let asked = (0..80).map(|n| {
        let path = if n % 4 < 2 { format!("weibo/user?uid={n}") } else { format!("zhihu/user?user_url_token=u{n}") };
        let house = &house;
        async move { house.social(n % 2, &path).await }
    });
    let mut done = 0;
    for reply in futures_util::future::join_all(asked).await {
        if reply.status() == 200 {
            done += 1;
            continue;
        }
        assert_eq!(error_of(reply).await, (429, "social_data_capacity_reached".to_owned(), "daily".to_owned()));
    }
    assert_eq!((done, house.received_count().await), (40, 40), "not one more");
    let days = house.cli(&["social", "day"]).await;
    let totals: Vec<(&str, i64, i64)> = days
        .as_array()
        .expect("a list")
        .iter()
        .map(|day| {
            (
                day["platform"].as_str().expect("a name"),
                day["calls"].as_i64().unwrap_or(0),
                day["cost_micro_usd"].as_i64().unwrap_or(0),
            )
        })
        .collect();
    assert_eq!(totals[0], ("", 40, 40_000));
    let weibo = totals.iter().find(|day| day.0 == "weibo").expect("the platform");
    assert!(weibo.1 <= 15 && weibo.2 == weibo.1 * 1_000, "{totals:?}");
    house.quiet().await;
    house.verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_by_the_operators_api_reaches_the_other_process() {
    let server = Server::find();
    let social = "requests_per_second = 0\n";
    let house = two(&server, "social_pause", social).await;
    let key = house.cli(&["admin-key", "create", "ada", "--reason", "a test", "--actor", "bob"]).await;
    let secret = key["secret"].as_str().expect("a secret").to_owned();
    let put = async |gate: usize, verb: &str, reason: &str| {
        let url = format!("{}/api/admin/social/{verb}", house.gates[gate].url());
        let body = json!({ "cells": ["weibo/user"], "reason": reason });
        let reply = house.http.post(url).bearer_auth(&secret).json(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{verb}");
    };
    let until = async |gate: usize, status: u16| {
        let end = Instant::now() + HANG;
        while house.social(gate, "weibo/user?uid=7").await.status() != status {
            assert!(Instant::now() < end, "gate {gate} does not answer {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    for (gate, verb, status) in [(0, "pause", 503), (1, "resume", 200), (1, "pause", 503), (0, "resume", 200)] {
        put(gate, verb, &format!("{verb} at {gate}")).await;
        assert_eq!(house.social(gate, "weibo/user?uid=7").await.status(), status, "at once where it was asked for");
        until(1 - gate, status).await;
    }
    let log = house.cli(&["social", "log"]).await;
    let reasons: Vec<&str> = log.as_array().expect("a list").iter().filter_map(|one| one["reason"].as_str()).collect();
    assert_eq!(reasons, ["resume at 0", "pause at 1", "resume at 1", "pause at 0"], "each a row, newest first");
    assert!(log[0]["actor"].as_str().is_some_and(|actor| actor.starts_with("ada (adm_")));
    // The key is revoked on one machine and works on none.
    let id = key["admin_key_id"].as_str().expect("an id");
    house.cli(&["admin-key", "revoke", id, "--reason", "left", "--actor", "bob"]).await;
    for gate in &house.gates {
        let url = format!("{}/api/admin/social/cells", gate.url());
        assert_eq!(house.http.get(url).bearer_auth(&secret).send().await.expect("a reply").status(), 401);
    }
    let events = house.cli(&["admin-key", "log"]).await;
    let actions: Vec<(&str, &str)> = events
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["action"].as_str().expect("text"), one["reason"].as_str().expect("text")))
        .filter(|(action, _)| action.starts_with("admin_key."))
        .collect();
    assert_eq!(actions, [("admin_key.revoke", "left"), ("admin_key.create", "a test")]);
    assert!(events[0]["actor"] == "bob" && !events.to_string().contains(&secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn pace_and_vain_questions_are_shared_by_two_processes() {
    let server = Server::find();
    let social = "requests_per_second = 10\n[social]\npatience = \"300ms\"\n";
    let house = two(&server, "social_shared", social).await;
    // Thirty at once, half at each: alone, each process would let ten begin.
    let began = Instant::now();
    let asked = (0..30).map(|n| {
        let house = &house;
        async move { house.social(n % 2, &format!("weibo/user?uid={n}")).await }
    });
    let replies = futures_util::future::join_all(asked).await;
    let done = replies.iter().filter(|reply| reply.status() == 200).count();
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("small");
    assert!((10..=10 * (seconds + 1)).contains(&done), "{done} of thirty in {:?}", began.elapsed());
    for reply in replies.into_iter().filter(|reply| reply.status() != 200) {
        assert_eq!(error_of(reply).await, (429, "social_data_capacity_reached".to_owned(), "busy".to_owned()));
    }
    // What was asked in vain of one is known to the other a second later, or a little more on a
    // busy machine.
    let known = (404, "social_data_no_result".to_owned(), "known".to_owned());
    for n in 0..8 {
        let path = format!("zhihu/user?user_url_token=%5B%5Bsim:empty%5D%5D{n}");
        assert_eq!(house.social(0, &path).await.status(), 404);
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        if error_of(house.social(1, &path).await).await == known {
            return;
        }
    }
    panic!("the second process never learns");
}

/// The most memory a process has used, in KiB.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn large_answers_pass_within_bounded_memory() {
    let social = "requests_per_second = 0\n";
    let house = House::new(Plan { social, patience: ["30s", "30s"], ..Plan::default() }).await;
    let id = house.gates[0].process.as_ref().expect("running").id();
    assert_eq!(house.social(0, "weibo/user?uid=7").await.status(), 200);
    let before = peak(id);
    // Eight of 16 MiB at once; held, and written anew, they would be 256 MiB.
    const EACH: usize = 16 << 20;
    let asked = (0..8).map(|n| {
        let url = format!("{}/v1/social/douyin/comments?aweme_id=%5B%5Bsim:huge+mib=16%5D%5D{n}", house.gates[0].url());
        house.http.get(url).bearer_auth(&house.key).timeout(Duration::from_secs(120)).send()
    });
    let replies = futures_util::future::join_all(asked).await;
    let bodies = replies.into_iter().map(|reply| async {
        let reply = reply.expect("a reply");
        assert_eq!(reply.status(), 200);
        reply.bytes().await.expect("all of it")
    });
    for body in futures_util::future::join_all(bodies).await {
        assert!(body.len() > EACH && body.ends_with(b"}"));
        let text = std::str::from_utf8(&body).expect("text");
        assert!(
            text.contains("\"id\":7411193113223371043,") && text.contains("\"id\":7411193113223371045,"),
            "ids are whole"
        );
    }
    let grown = peak(id) - before;
    assert!(grown < 64 << 10, "{grown} KiB more for eight answers of 16 MiB");
    house.quiet().await;
    house.verified().await;
}

/// A platform with another spelling, dearer for some.
const MINE: &str = r#"
auto_groups = ["dear", "default"]
[group.dear]
multiplier = 5
[social.mine]
order = 99
name_en = "Mine"
aliases = ["my_own"]
provider = "tikhub"
[social.mine.comments]
price = { per_call = 2_000 }
enable_groups = ["dear", "default"]
[[social.mine.comments.route]]
path = "/douyin/app/v3/fetch_video_comments"
cost = 1_000
[social.mine.comments.answer]
items = ["/comments"]
[social.mine.comments.paging]
next = { cursor = "/cursor" }
more = "/has_more"
[[social.mine.comments.param]]
name = "aweme_id"
type = "string"
required = true
max_length = 256
en = "The post."
[[social.mine.comments.param]]
name = "cursor"
type = "integer"
min = 0
en = "Where to go on."
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_calls_and_exports_for_what_it_costs_him() {
    let plan = Plan { social: "requests_per_second = 0\n", patience: ["20s", "20s"], catalog: MINE, ..Plan::default() };
    let house = House::new(plan).await;
    let account = text(&house.cli(&["account", "create", "dear", "--group", "dear"]).await["account_id"]);
    house.cli(&["account", "topup", &account, "1", "--id", "dear"]).await;
    let dear = text(&house.cli(&["key", "create", &account]).await["secret"]);
    let dir = tempfile::tempdir().expect("a folder");
    let url = house.gates[0].url();
    let run = |key: &str, arguments: &[&str]| {
        let all = [&["--json", "social"], arguments, &["--url", &url]].concat();
        let done = tollgate(&all).current_dir(dir.path()).env("TOLLGATE_API_KEY", key).output().expect("it runs");
        let said: Value = serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|_| panic!("{all:?}: {}", String::from_utf8_lossy(&done.stderr)));
        (done.status.success(), said)
    };
    // One call, printed as it came.
    let (fine, answer) = run(&house.key, &["call", "wechat_mp/post", "url=https://mp.weixin.qq.com/s/x"]);
    assert_eq!((fine, &answer["object"], &answer["platform"]), (true, &json!("social.result"), &json!("wechat-mp")));
    let (fine, refused) = run(&house.key, &["call", "weibo/user", "zz=1"]);
    assert_eq!((fine, &refused["error"]["param"]), (false, &json!("zz")));
    // The same amount buys two pages, or none where a page is five times as dear.
    let export = |key: &str, file: &str, usd: &str| {
        let list = ["export", "my_own/comments", "aweme_id=7", "--items", "/comments", "--out", file, "--usd", usd];
        run(key, &list).1
    };
    let (cheap, none) = (export(&house.key, "a.jsonl", "0.005"), export(&dear, "b.jsonl", "0.005"));
    assert_eq!((&cheap["pages"], &cheap["spent_usd"]), (&json!(2), &json!("0.004")), "{cheap}");
    assert_eq!((&none["pages"], &none["spent_usd"]), (&json!(0), &json!("0")), "{none}");
    let one = export(&dear, "b.jsonl", "0.015");
    assert_eq!((&one["pages"], &one["spent_usd"]), (&json!(1), &json!("0.01")), "{one}");
    house.quiet().await;
    house.verified().await;
}
