//! /api/admin/accounts/{account}/close and /reopen.

use super::admin::{Office, text};
use serde_json::json;

/// An account is closed when nothing is left in it, and comes back.
pub async fn close(office: &Office, has_money: &str) {
    let why = || json!({ "reason": "asked for" });
    let left = office.refused("POST", &format!("{has_money}/close"), Some(why())).await;
    assert_eq!((left.0, left.2.as_str()), (409, "give_up_nano_usd"), "money is left");
    let made = office.send("POST", "/api/admin/accounts", json!({ "name": "gone", "reason": "signed" })).await;
    let path = format!("/api/admin/accounts/{}", text(&made["account_id"]));
    let (closing, opening) = (format!("{path}/close"), format!("{path}/reopen"));
    assert_eq!(office.refused("POST", &closing, Some(json!({}))).await.2, "reason");
    let closed = office.send("POST", &closing, why()).await;
    assert!(closed["closed_at_ms"].is_number() && closed["suspended_at_ms"].is_number(), "{closed}");
    let again = office.send("POST", &closing, why()).await;
    assert_eq!(again["closed_at_ms"], closed["closed_at_ms"], "once");
    let opened = office.send("POST", &opening, why()).await;
    assert!(opened["closed_at_ms"].is_null() && opened["suspended_at_ms"].is_null(), "{opened}");
    // One that was suspended before is suspended after.
    office.send("PATCH", &path, json!({ "suspended": true, "reason": "a dispute" })).await;
    office.house.later(5).await;
    office.send("POST", &closing, why()).await;
    let opened = office.send("POST", &opening, why()).await;
    assert!(opened["closed_at_ms"].is_null() && opened["suspended_at_ms"].is_number(), "{opened}");
}
