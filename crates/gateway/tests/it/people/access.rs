//! Every path of the table, by whoever asks: cookies open no path of keys, keys no path of
//! sessions, and the house is open to its own only.

use super::{Browser, answer, house, signed_in};
use serde_json::json;
use tollgate_gateway::endpoints::row::MembersSee;
use tollgate_gateway::endpoints::{Access, rows};
use tollgate_store::{AccountRole, HouseRole};

#[tokio::test(flavor = "multi_thread")]
async fn every_path_is_open_to_whom_it_says() {
    let house = house("sqlite").await;
    let account = house.account;
    let viewer = signed_in(&house, "viewer@example.com", None, Some((account, AccountRole::Viewer))).await;
    let member = signed_in(&house, "member@example.com", None, Some((account, AccountRole::Member))).await;
    let owner = signed_in(&house, "owner@example.com", None, Some((account, AccountRole::Owner))).await;
    let auditor = signed_in(&house, "auditor@example.com", Some(HouseRole::Auditor), None).await;
    let operator = signed_in(&house, "operator@example.com", Some(HouseRole::Operator), None).await;
    let nobody = Browser::new(&house);
    let mut seen = 0;
    for row in rows() {
        let path = filled(row.path);
        let reads = row.method == "GET";
        let ask = async |who: &Browser<'_>, key: Option<&str>| {
            let mut request = who.request(row.method.as_str(), &path).header("sec-fetch-site", "same-origin");
            request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
            // A body that nobody takes: nothing is done.
            let request = if row.body.is_some() { request.json(&json!({ "?": 1 })) } else { request };
            answer(request.send().await.expect("a reply")).await
        };
        let case = format!("{} {}", row.method, row.path);
        match row.access {
            Access::Session => {
                seen += 1;
                assert_eq!(ask(&nobody, None).await.code, "not_signed_in", "{case}");
                assert_eq!(ask(&nobody, Some(&house.key)).await.code, "not_signed_in", "{case}: a key");
            }
            Access::Key | Access::Paid => {
                for who in [&owner, &operator] {
                    assert_eq!(ask(who, None).await.status, 401, "{case}: a cookie");
                }
            }
            Access::Account(role) => {
                seen += 1;
                assert_eq!(ask(&nobody, None).await.code, "invalid_api_key", "{case}");
                assert_eq!(ask(&operator, None).await.code, "role_required", "{case}: in no account");
                for (who, own) in [(&viewer, AccountRole::Viewer), (&member, AccountRole::Member)] {
                    let heard = ask(who, None).await;
                    let closed = own == AccountRole::Member && row.members == MembersSee::Nothing;
                    let refused = own < role || closed;
                    assert_eq!(heard.code == "role_not_allowed", refused, "{case}: {own:?}: {}", heard.body);
                }
                let owns = ask(&owner, None).await;
                assert!(![401, 403].contains(&owns.status), "{case}: {}", owns.body);
                assert_eq!(ask(&owner, Some(&house.key)).await.code, "key_scope", "{case}: a key beside a cookie");
            }
            Access::Role(_) => {
                seen += 1;
                assert_eq!(ask(&nobody, None).await.code, "invalid_api_key", "{case}");
                for who in [&viewer, &owner] {
                    assert_eq!(ask(who, None).await.code, "role_required", "{case}: a customer");
                }
                assert_eq!(
                    ask(&owner, Some(&house.key)).await.code,
                    "invalid_api_key",
                    "{case}: a key beside a cookie"
                );
                let audits = ask(&auditor, None).await;
                assert_eq!(audits.code == "role_required", !reads, "{case}: an auditor: {}", audits.body);
                let operates = ask(&operator, None).await;
                assert!(![401, 403].contains(&operates.status), "{case}: {}", operates.body);
            }
            Access::Public | Access::Local => {}
        }
    }
    assert!(seen > 60, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_does_by_session_is_in_the_log() {
    let house = house("sqlite").await;
    let mut operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    let path = format!("/api/admin/accounts/{}", house.account);
    let change = operator.ask("PATCH", &path, Some(json!({ "name": "renamed", "reason": "asked for" }))).await;
    assert_eq!(change.status, 200, "{}", change.body);
    let log = operator.get("/api/admin/audit").await.body;
    let actor = log["data"][0]["actor"].as_str().unwrap_or_default();
    assert!(actor.starts_with("op@example.com (pers_"), "{log}");
    // Large sums, and roles, need a fresh proof.
    house.later(11 * 60_000).await;
    let topup =
        |usd: i64| json!({ "amount_nano_usd": usd * 1_000_000_000, "reference": format!("r{usd}"), "reason": "paid" });
    let path = format!("{path}/topups");
    assert_eq!(operator.post(&path, topup(1_000)).await.code, "step_up_required");
    assert_eq!(operator.post(&path, topup(10)).await.status, 200);
    let wish = json!({ "email": "x@example.com", "house_role": "operator", "reason": "new colleague" });
    assert_eq!(operator.post("/api/admin/people", wish).await.code, "step_up_required");
    assert_eq!(operator.post("/api/session/step-up", json!({ "password": super::GOOD })).await.status, 200);
    assert_eq!(operator.post(&path, topup(1_000)).await.status, 200);
    house.quiet().await;
}

/// The same path with something in the parts that vary.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once('}') {
        Some((_, after)) if part.starts_with('{') => format!("x{after}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}
