//! /api/admin/social/*: only admin keys open it, and whatever is changed says who and why.

use crate::house::{House, Plan, error_of};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tollgate_catalog::social::SHIPPED;
use tollgate_gateway::endpoints::{Access, AccessRole, rows};
use tollgate_store::{AdminKey, Attribution, NewAdminKey};

static CELLS: LazyLock<String> = LazyLock::new(|| SHIPPED.map(|(_, text)| text).join("\n"));
const SECRET: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";

async fn house() -> (House, AdminKey) {
    let house = House::with(Plan { catalog: &CELLS, ..Plan::default() }).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
    let key = house.running().app.store.create_admin_key(new, SECRET).await.expect("a key");
    (house, key)
}

async fn send(house: &House, method: &str, path: &str, key: &str, body: Option<Value>) -> Response {
    let method: Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(key);
    body.iter().fold(request, |request, body| request.json(body)).send().await.expect("a reply")
}

async fn get(house: &House, path: &str) -> Vec<Value> {
    let reply = send(house, "GET", path, SECRET, None).await;
    assert_eq!(reply.status(), 200, "{path}");
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(body["object"], "list");
    body["data"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_key_that_works_opens_it() {
    let (house, key) = house().await;
    let mut seen = 0;
    for row in rows().iter().filter(|row| row.access == Access::Role(AccessRole::Operator)) {
        seen += 1;
        let (method, path) = (row.method.as_str(), row.path);
        let body = row.body.is_some().then(|| json!({ "cells": ["weibo"], "reason": "no" }));
        for wrong in [house.key.as_str(), "ak-wrong", "ak-", "sk-wrong", ""] {
            let reply = send(&house, method, path, wrong, body.clone()).await;
            let (status, error) = error_of(reply).await;
            assert_eq!((status, error["code"].as_str()), (401, Some("invalid_api_key")), "{method} {path} {wrong}");
        }
        assert_ne!(send(&house, method, path, SECRET, body.clone()).await.status(), 401, "{method} {path}");
    }
    assert!(seen > 5 + 30, "every verb of an operator: {seen}");
    let reply = send(&house, "GET", "/v1/balance", SECRET, None).await;
    assert_eq!(reply.status(), 401, "an admin key opens no account");
    let done = Attribution::by("test".to_owned(), "over".to_owned());
    house.running().app.store.revoke_admin_key(key.id, done).await.expect("revoked");
    assert_eq!(send(&house, "GET", "/api/admin/social/cells", SECRET, None).await.status(), 401, "at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_are_paused_and_resumed_with_a_row_that_says_who_and_why() {
    let (house, key) = house().await;
    let body = json!({ "cells": ["weibo/search", "toutiao", "weibo/search"], "reason": "the route is broken" });
    let reply = send(&house, "POST", "/api/admin/social/pause", SECRET, Some(body)).await;
    assert_eq!(reply.status(), 200);
    let done: Value = reply.json().await.expect("JSON");
    let names: Vec<&str> =
        done["data"].as_array().expect("a list").iter().filter_map(|one| one["model"].as_str()).collect();
    assert_eq!(
        names,
        ["social-weibo-search", "social-toutiao-post", "social-toutiao-user", "social-toutiao-comments"],
        "each once"
    );
    // In force with the next call, and in the public catalog.
    let (status, error) = error_of(house.get("/v1/social/weibo/search?query=x").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("social_data_unavailable")));
    let paused = get(&house, "/api/admin/social/cells?paused=true").await;
    assert_eq!(paused.len(), 4);
    let weibo = get(&house, "/api/admin/social/cells?platform=weibo").await;
    assert_eq!(weibo.len(), 6);
    let search = weibo.iter().find(|one| one["capability"] == "search").expect("the cell");
    assert_eq!((&search["status"], &search["cost_micro_usd"]), (&json!("paused"), &json!(1_000)));
    let changed = &search["changed"];
    assert_eq!(
        (changed["actor"].as_str(), changed["reason"].as_str()),
        (Some(format!("night shift ({})", key.id).as_str()), Some("the route is broken"))
    );

    let body = json!({ "cells": ["social-weibo-search"], "reason": "mended" });
    assert_eq!(send(&house, "POST", "/api/admin/social/resume", SECRET, Some(body)).await.status(), 200);
    assert_eq!(house.get("/v1/social/weibo/search?query=x").send().await.expect("a reply").status(), 200);
    let log = get(&house, "/api/admin/social/changes?limit=2").await;
    assert_eq!(log.len(), 2);
    assert_eq!((&log[0]["paused"], &log[0]["reason"]), (&json!(false), &json!("mended")));
    assert!(log[0]["at_ms"].as_i64().is_some_and(|at| at > 0));
    assert_eq!(get(&house, "/api/admin/social/changes").await.len(), 5, "every change is a row");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_understood_changes_nothing() {
    let (house, _) = house().await;
    let cases = [
        (json!({ "cells": ["weibo"] }), 400, "missing_parameter", "reason"),
        (json!({ "cells": ["weibo"], "reason": "  " }), 400, "missing_parameter", "reason"),
        (json!({ "cells": ["weibo"], "reason": 1 }), 400, "invalid_parameter", "reason"),
        (json!({ "cells": ["weibo"], "reason": "x".repeat(1_001) }), 400, "invalid_parameter", "reason"),
        (json!({ "reason": "x" }), 400, "missing_parameter", "cells"),
        (json!({ "cells": [], "reason": "x" }), 400, "invalid_parameter", "cells"),
        (json!({ "cells": "weibo", "reason": "x" }), 400, "invalid_parameter", "cells"),
        (json!({ "cells": ["weibo", 1], "reason": "x" }), 400, "invalid_parameter", "cells"),
        (json!({ "cells": ["weibo", "nowhere/search"], "reason": "x" }), 404, "social_endpoint_not_found", "cells"),
        (json!({ "cells": ["weibo"], "reason": "x", "actor": "me" }), 400, "unknown_parameter", "actor"),
    ];
    for (body, status, code, param) in cases {
        let reply = send(&house, "POST", "/api/admin/social/pause", SECRET, Some(body.clone())).await;
        let (got, error) = error_of(reply).await;
        assert_eq!((got, error["code"].as_str(), error["param"].as_str()), (status, Some(code), Some(param)), "{body}");
    }
    for (path, code) in [
        ("cells?paused=maybe", "invalid_parameter"),
        ("cells?colour=red", "unknown_parameter"),
        ("changes?limit=0", "invalid_parameter"),
        ("changes?limit=1001", "invalid_parameter"),
        ("days?back=-1", "invalid_parameter"),
    ] {
        let reply = send(&house, "GET", &format!("/api/admin/social/{path}"), SECRET, None).await;
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (400, Some(code)), "{path}");
    }
    let url = house.url("/api/admin/social/pause");
    let broken = house.http.post(url).bearer_auth(SECRET).header("content-type", "application/json").body("[1]");
    assert_eq!(error_of(broken.send().await.expect("a reply")).await.1["code"], "invalid_json");
    assert!(get(&house, "/api/admin/social/changes").await.is_empty());
    assert!(get(&house, "/api/admin/social/cells?paused=true").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_shows_what_is_used_of_its_capacity() {
    let (house, _) = house().await;
    assert!(get(&house, "/api/admin/social/days").await.is_empty());
    let config = "[social]\ndaily_calls = 30\n[social.platform.weibo]\ndaily_cost = 9_000\n".to_owned();
    drop(house);
    let house = House::with(Plan { catalog: &CELLS, config, ..Plan::default() }).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let new = NewAdminKey { name: "x".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, SECRET).await.expect("a key");
    assert_eq!(house.get("/v1/social/weibo/user?uid=7").send().await.expect("a reply").status(), 200);
    let rows = get(&house, "/api/admin/social/days?back=0").await;
    let shown: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!([
                row["platform"],
                row["calls"],
                row["cost_micro_usd"],
                row["daily_calls"],
                row["daily_cost_micro_usd"]
            ])
        })
        .collect();
    assert_eq!(shown, [json!(["", 1, 1_000, 30, null]), json!(["weibo", 1, 1_000, null, 9_000])]);
    assert_eq!(rows[0]["day"].as_str().map(str::len), Some(10));
}
