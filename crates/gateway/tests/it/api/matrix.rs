//! Every path × everybody who may come: what a row says about who may call it is what happens.
//!
//! The columns are kinds of keys. People who sign in (viewer, member, owner, operator, auditor) are
//! in `people/access.rs`.

use crate::house::{House, error_of};
use serde_json::Value;
use tollgate_gateway::endpoints::row::{Errors, MembersSee};
use tollgate_gateway::endpoints::{Access, Row, rows};
use tollgate_store::{AccountChange, AccountId, Attribution, KeyScope, Limits, NewAdminKey, NewKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visitor {
    Nobody,
    Garbage,
    Plain,
    PlainOfAnother,
    Manage,
    ManageOfAnother,
    Admin,
    Revoked,
    RevokedManage,
    Expired,
    ExpiredManage,
    RevokedAdmin,
    Suspended,
    SuspendedManage,
}

use Visitor::*;

const ALL: [Visitor; 14] = [
    Nobody,
    Garbage,
    Plain,
    PlainOfAnother,
    Manage,
    ManageOfAnother,
    Admin,
    Revoked,
    RevokedManage,
    Expired,
    ExpiredManage,
    RevokedAdmin,
    Suspended,
    SuspendedManage,
];

/// What a visitor must hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The key is no key here.
    Unknown,
    /// The key is known and of the wrong kind.
    WrongScope,
    /// The account is suspended.
    Suspended,
    /// Whatever else is wrong with the request, it is not the key.
    Opens,
}

fn expected(row: &Row, visitor: Visitor) -> Option<Verdict> {
    let plain = matches!(visitor, Plain | PlainOfAnother | Visitor::Suspended);
    let manage = matches!(visitor, Manage | ManageOfAnother | SuspendedManage);
    Some(match row.access {
        // A key may be left out, and what comes with a wrong one is another matter.
        Access::Public | Access::Local => return (visitor == Nobody).then_some(Verdict::Opens),
        // No key opens a session: `people/access.rs` has that, and everybody who is signed in.
        Access::Session => return None,
        Access::Key | Access::Paid if plain => Verdict::Opens,
        Access::Key | Access::Paid if manage => Verdict::WrongScope,
        Access::Account(_) if plain => Verdict::WrongScope,
        Access::Account(_) if visitor == SuspendedManage && row.method != "GET" => Verdict::Suspended,
        Access::Account(_) if manage => Verdict::Opens,
        Access::Role(_) if visitor == Admin => Verdict::Opens,
        Access::Key | Access::Paid | Access::Account(_) | Access::Role(_) => Verdict::Unknown,
    })
}

fn heard(status: u16, code: &str) -> Verdict {
    match (status, code) {
        (401, "invalid_api_key") => Verdict::Unknown,
        (403, "key_scope") => Verdict::WrongScope,
        (403, "account_suspended") => Verdict::Suspended,
        _ => Verdict::Opens,
    }
}

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const OLD_ADMIN: &str = "ak-1123456789abcdef0123456789abcdef0123456789abcdef";

fn done() -> Attribution {
    Attribution::by("test", "a test")
}

async fn key(house: &House, account: AccountId, scope: KeyScope, secret: &str, expires_at: Option<i64>) -> String {
    let (models, cidrs, limits) = (None, None, Limits::default());
    let new = NewKey { account, name: "k".to_owned(), expires_at, models, cidrs, limits, scope };
    house.running().app.store.create_key(new, secret).await.expect("a key");
    secret.to_owned()
}

/// The key that each comes with.
async fn secrets(house: &House) -> Vec<(Visitor, Option<String>)> {
    let store = &house.running().app.store;
    let admin = |name: &str| NewAdminKey { name: name.to_owned(), expires_at: None, done: done() };
    store.create_admin_key(admin("day"), ADMIN).await.expect("a key");
    let old = store.create_admin_key(admin("night"), OLD_ADMIN).await.expect("a key");
    store.revoke_admin_key(old.id, done()).await.expect("revoked");
    let (other, plain_of_another) = house.stranger("1").await;
    let (stopped, suspended) = house.stranger("1").await;
    let (call, manage) = (KeyScope::Call, KeyScope::Manage);
    let suspended_manage = key(house, stopped, manage, "sk-suspended-manage", None).await;
    let change = AccountChange { suspended: Some(true), ..AccountChange::default() };
    store.change_account(stopped, change, done()).await.expect("asked").expect("changed");
    for (secret, scope) in [("sk-revoked", call), ("sk-revoked-manage", manage)] {
        key(house, house.account, scope, secret, None).await;
        let all = store.keys(house.account).await.expect("keys");
        store.revoke_key(all.last().expect("the newest").id).await.expect("revoked");
    }
    let own = house.account;
    let mut found = Vec::new();
    for visitor in ALL {
        let secret = match visitor {
            Nobody => None,
            Garbage => Some("sk-garbage".to_owned()),
            Plain => Some(house.key.clone()),
            PlainOfAnother => Some(plain_of_another.clone()),
            Manage => Some(key(house, own, manage, "sk-manage", None).await),
            ManageOfAnother => Some(key(house, other, manage, "sk-manage-other", None).await),
            Admin => Some(ADMIN.to_owned()),
            Revoked => Some("sk-revoked".to_owned()),
            RevokedManage => Some("sk-revoked-manage".to_owned()),
            Expired => Some(key(house, own, call, "sk-expired", Some(1)).await),
            ExpiredManage => Some(key(house, own, manage, "sk-expired-manage", Some(1)).await),
            RevokedAdmin => Some(OLD_ADMIN.to_owned()),
            Visitor::Suspended => Some(suspended.clone()),
            SuspendedManage => Some(suspended_manage.clone()),
        };
        found.push((visitor, secret));
    }
    found
}

fn filled(path: &str) -> String {
    let mut path = path.replace("{model}", "gemini-x").replace("{job}", "job_0");
    while let (Some(from), Some(to)) = (path.find('{'), path.find('}')) {
        path.replace_range(from..=to, "x");
    }
    path
}

async fn ask(house: &House, row: &Row, path: &str, secret: Option<&str>) -> (u16, String) {
    let mut request = house.http.request(row.method.clone(), house.url(path));
    if let Some(secret) = secret {
        request = request.bearer_auth(secret);
    }
    let reply = request.send().await.expect("a reply");
    let status = reply.status().as_u16();
    if status < 400 {
        return (status, String::new());
    }
    if row.errors == Errors::LegacyVideo {
        let body: Value = reply.json().await.expect("JSON");
        return (status, body["code"].as_str().unwrap_or_default().to_owned());
    }
    let (_, error) = error_of(reply).await;
    let code = error["code"].as_str().or(error["details"][0]["reason"].as_str()).unwrap_or_default();
    (status, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_opens_for_those_it_says_and_for_nobody_else() {
    let house = House::new().await;
    let visitors = secrets(&house).await;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for row in rows() {
        for (visitor, secret) in &visitors {
            let Some(expected) = expected(row, *visitor) else { continue };
            asked += 1;
            let (status, code) = ask(&house, row, &filled(row.path), secret.as_deref()).await;
            // What a suspended account may not begin is known when it is known what it wants.
            let heard = match heard(status, &code) {
                Verdict::Suspended if *visitor == Visitor::Suspended => Verdict::Opens,
                heard => heard,
            };
            if heard != expected {
                wrong.push(format!("{} {} {visitor:?}: {status} {code}, not {expected:?}", row.method, row.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked > 1_500, "the table has lost its lines: {asked}");
    assert!(house.sim.received().is_empty(), "nothing was sent");
    house.quiet().await;
}

/// Where a path stands says who it is for, and the other way round.
#[test]
fn paths_stand_where_their_audience_is() {
    for row in rows() {
        let (admin, account) = (row.path.starts_with("/api/admin/"), row.path.starts_with("/api/account"));
        assert_eq!(matches!(row.access, Access::Role(_)), admin, "{}", row.path);
        // Who is in an account is the affair of people: no key asks about them.
        let people = ["members", "invites", "playground-key"];
        let people = people.iter().any(|what| row.path.starts_with(&format!("/api/account/{what}")));
        assert_eq!(matches!(row.access, Access::Account(_)), account && !people, "{}", row.path);
        assert!(!people || row.access == Access::Session, "{}", row.path);
        if account && row.method == "GET" {
            assert!(row.body.is_none(), "{} reads", row.path);
        }
        // What somebody has used is shown by as much as members may see of it.
        let used = [
            "usage",
            "tasks",
            "/v1/video",
            "workflows/runs",
            "history",
            "statements",
            "topups",
            "account/keys",
            "account/events",
            "deliveries",
        ];
        let used = used.iter().any(|what| row.path.contains(what)) && row.method == "GET" && !admin;
        assert_eq!(row.members != MembersSee::All, used, "{}", row.path);
    }
}
