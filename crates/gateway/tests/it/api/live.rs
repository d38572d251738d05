//! Live events over real sockets, on both engines: what is said to whom, what comes after a break,
//! who stops hearing, and what a reader who does not read costs.

use super::watcher::{LiveReader, open, open_at};
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat, second};
use crate::people::{Browser, signed_in, test};
use serde_json::{Value, json};
use tollgate_gateway::live::LiveEvent;
use tollgate_gateway::workers::alerts::look_at_notices;
use tollgate_store::{AccountRole, HouseRole, KeyScope, NewAdminKey};

pub const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
pub const OWN: &str = "/api/account/events";
pub const HOUSE: &str = "/api/admin/events";

pub async fn house(database: &str, more: &str) -> House {
    let config = format!(
        "[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nfolder = \"mail\"\n[live]\ncheck_every = \"200ms\"\n{more}\n"
    );
    let house = House::with(Plan { config, database: database.to_owned(), videos: true, ..Plan::default() }).await;
    let new = NewAdminKey { name: "day".to_owned(), expires_at: None, done: test() };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

pub async fn manage_key(house: &House) -> String {
    house.new_key(|key| key.scope = KeyScope::Manage).await
}

pub fn get(house: &House, path: &str, key: &str) -> reqwest::RequestBuilder {
    house.http.get(house.url(path)).bearer_auth(key)
}

pub async fn watch(house: &House, key: &str, path: &str) -> LiveReader {
    let mut reader = open(get(house, path, key)).await;
    assert_eq!(reader.next().await.expect("an event").kind, "ready");
    reader
}

pub async fn admin(house: &House, method: &str, path: &str, body: Value) -> Value {
    let method: reqwest::Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(ADMIN);
    let reply = request.json(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{path}");
    reply.json().await.expect("JSON")
}

/// The shapes of the description, by `type`.
pub async fn shapes(house: &House, name: &str) -> Vec<Value> {
    let reply = house.http.get(house.url("/openapi.json")).send().await.expect("a reply");
    let described: Value = reply.json().await.expect("JSON");
    described["components"]["schemas"][name]["oneOf"].as_array().expect("shapes").clone()
}

pub fn fits(shapes: &[Value], data: &Value) {
    let shape = shapes.iter().find(|shape| shape["properties"]["type"]["const"] == data["type"]);
    let shape = shape.unwrap_or_else(|| panic!("not described: {data}"));
    let own: Vec<&String> = data.as_object().expect("an object").keys().collect();
    let mut described: Vec<&String> = shape["properties"].as_object().expect("members").keys().collect();
    described.sort();
    assert_eq!(own, described, "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_sees_what_happens() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let app = &house.running().app;
        let key = manage_key(&house).await;
        let mut events = watch(&house, &key, OWN).await;

        let reply = house.ask("canary of a prompt [[sim:tokens=2]]").await;
        let call = call_id(&reply);
        assert_eq!(reply.status(), 200);
        let closed = events.find("usage.closed", |data| data["call_id"] == json!(call)).await;
        let row = house.row(call).await;
        assert_eq!(closed["charge_nano_usd"], row.charge.nano());
        assert_eq!(
            (&closed["ending"], &closed["model"], &closed["key_id"]),
            (&json!("answered"), &json!("plain"), &json!(row.key))
        );
        let balance = events.find("balance.changed", |data| data["held_nano_usd"] == 0).await;
        assert_eq!(balance["available_nano_usd"], house.available().await);

        // A call that is refused has a row, and no entry.
        let poor = house.new_key(|key| key.limits.total = Some("0.000000001".parse().expect("an amount"))).await;
        let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&poor);
        let refused = request.json(&chat("x")).send().await.expect("a reply");
        let refused = (refused.status().as_u16(), call_id(&refused));
        assert_eq!(refused.0, 402);
        let closed = events.find("usage.closed", |data| data["call_id"] == json!(refused.1)).await;
        assert_eq!((&closed["ending"], &closed["charge_nano_usd"]), (&json!("refused"), &json!(0)));

        let made = json!({ "name": "newest" });
        let made = house.http.post(house.url("/api/account/keys")).bearer_auth(&key).json(&made).send().await;
        let made: Value = made.expect("a reply").json().await.expect("JSON");
        let changed = events.find("key.changed", |data| data["key_id"] == made["key_id"]).await;
        assert_eq!((&changed["name"], &changed["revoked_at_ms"]), (&json!("newest"), &Value::Null));
        admin(&house, "POST", "/api/admin/refunds", json!({ "call_id": call, "reason": "it was late" })).await;
        let refunded = events.find("usage.refunded", |data| data["call_id"] == json!(call)).await;
        assert_eq!(refunded["refunded_nano_usd"], row.charge.nano());

        let notice = house.http.put(house.url("/api/account/notices")).bearer_auth(&key);
        let notice = notice.json(&json!({ "threshold_nano_usd": 20_000_000_000_i64 })).send().await;
        assert_eq!(notice.expect("a reply").status(), 200);
        look_at_notices(app, None).await.expect("looked");
        let low = events.find("balance.low", |_| true).await;
        assert_eq!(low["threshold_nano_usd"], 20_000_000_000_i64);
        let path = format!("/api/admin/accounts/{}", house.account);
        admin(&house, "PATCH", &path, json!({ "suspended": true, "reason": "a test" })).await;
        assert_eq!(events.find("account.changed", |_| true).await["suspended"], true);

        let shapes = shapes(&house, "AccountLiveEvent").await;
        events.seen.iter().for_each(|event| fits(&shapes, &event.data));
        let all = events.text;
        for secret in ["canary of a prompt", house.key.as_str(), key.as_str(), poor.as_str()] {
            assert!(!all.contains(secret), "{secret} is in it: {all}");
        }
        assert!(!all.contains("\"sim\"") && !all.contains("provider"), "whose model it is: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_seen_on_its_way() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let key = manage_key(&house).await;
        let mut events = watch(&house, &key, OWN).await;
        let body = json!({ "model": "kling-v3", "prompt": "p" });
        let made = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
        let made: Value = made.expect("a reply").json().await.expect("JSON");
        let id = made["id"].clone();
        let ended = events.find("task.changed", |data| data["task_id"] == id && data["state"] == "completed").await;
        assert!(ended["ended_at_ms"].is_i64(), "{ended}");
        let closed = events.find_any("usage.closed", |data| data["model"] == "kling-v3").await;
        assert!(closed["charge_nano_usd"].as_i64().is_some_and(|charge| charge > 0), "{closed}");
        fits(&shapes(&house, "AccountLiveEvent").await, &ended);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_goes_on_where_it_was() {
    for engine in Engine::both().await {
        let mut house = house(&engine.url, "").await;
        let key = manage_key(&house).await;
        let mut events = watch(&house, &key, OWN).await;
        let first = call_id(&house.ask("[[sim:tokens=2]]").await);
        events.find("usage.closed", |data| data["call_id"] == json!(first)).await;
        let last = events.last_id.clone().expect("an id");
        drop(events);
        // While nobody listens, and over a restart.
        let second = call_id(&house.ask("[[sim:tokens=2]]").await);
        house.row(second).await;
        house.quiet().await;
        house.restart().await;
        let again = |mark: &str| get(&house, OWN, &key).header("last-event-id", mark);
        let mut events = open(again(&last)).await;
        assert_eq!(events.next().await.expect("an event").data["resumed"], true);
        let closed = events.find("usage.closed", |_| true).await;
        assert_eq!(closed["call_id"], json!(second), "{}: the first one was seen", engine.name);
        let third = call_id(&house.ask("[[sim:tokens=2]]").await);
        let closed = events.find("usage.closed", |_| true).await;
        assert_eq!(closed["call_id"], json!(third), "{}: none comes twice", engine.name);
        for wrong in ["nonsense", "99999999-1", &format!("999999999-{}", house.running().app.world.now_ms())] {
            let mut events = open(again(wrong)).await;
            let ready = events.next().await.expect("an event");
            assert_eq!((&ready.data["resumed"], ready.id.is_some()), (&json!(false), true), "{wrong}");
            assert_eq!(events.next().await.expect("an event").data["reason"], "unknown_mark", "{wrong}");
        }
        house.later(120_000).await;
        let mut events = open(again(&last)).await;
        assert_eq!(events.next().await.expect("an event").data["resumed"], false, "too long ago");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_another_replica_is_seen() {
    let [_, postgres] = Engine::both().await;
    let house = house(&postgres.url, "").await;
    let other = second(&house).await;
    let key = manage_key(&house).await;
    let mut events = open_at(&house, &format!("http://{}{OWN}", other.address), &key).await;
    let mut all = open_at(&house, &format!("http://{}{HOUSE}", other.address), ADMIN).await;
    assert_eq!(events.next().await.expect("an event").kind, "ready");
    assert_eq!(all.next().await.expect("an event").kind, "ready");
    let call = call_id(&house.ask("[[sim:tokens=2]]").await);
    events.find("usage.closed", |data| data["call_id"] == json!(call)).await;
    all.find("traffic", |data| data["ended"].as_i64().is_some_and(|ended| ended > 0)).await;
    // A session that ends here ends what is open there.
    let mut ada = signed_in(&house, "ada@example.com", None, Some((house.account, AccountRole::Viewer))).await;
    let request = house.http.get(format!("http://{}{OWN}", other.address));
    let mut hers = open(request.header("cookie", ada.cookie.clone().expect("a cookie"))).await;
    assert_eq!(hers.next().await.expect("an event").kind, "ready");
    assert_eq!(ada.ask("DELETE", "/api/session", None).await.status, 200);
    assert_eq!(hers.end().await, "not_signed_in");
    drop((events, all, hers));
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_no_longer_watch_is_told_and_hears_no_more() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let store = &house.running().app.store;
        let account = house.account;
        let cookie = |who: &Browser<'_>, path: &str| who.request("GET", path);
        // A session that ends.
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let mut events = open(cookie(&ada, OWN)).await;
        assert_eq!(events.next().await.expect("an event").kind, "ready");
        assert_eq!(ada.ask("DELETE", "/api/session", None).await.status, 200);
        assert_eq!(events.end().await, "not_signed_in");
        // Somebody who is taken out of the account.
        let bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Viewer))).await;
        let mut events = open(cookie(&bob, OWN)).await;
        assert_eq!(events.next().await.expect("an event").kind, "ready");
        let id = store.person_by_email("bob@example.com").await.expect("read").expect("there").id;
        store.change_membership(account, id, None, test()).await.expect("removed");
        assert_eq!(events.end().await, "role_required");
        // An operator who is none any more.
        let op = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
        let mut events = open(cookie(&op, HOUSE)).await;
        assert_eq!(events.next().await.expect("an event").kind, "ready");
        let id = store.person_by_email("op@example.com").await.expect("read").expect("there").id;
        store.change_person(id, Some(None), None, test()).await.expect("changed");
        assert_eq!(events.end().await, "not_signed_in");
        // Keys of both kinds.
        let key = manage_key(&house).await;
        let mut events = watch(&house, &key, OWN).await;
        let own = store.keys(account).await.expect("keys").pop().expect("the newest").id;
        store.revoke_key(own).await.expect("revoked");
        assert_eq!(events.end().await, "invalid_api_key");
        let mut events = watch(&house, ADMIN, HOUSE).await;
        let own = store.admin_keys().await.expect("keys").pop().expect("one").id;
        store.revoke_admin_key(own, test()).await.expect("revoked");
        assert_eq!(events.end().await, "invalid_api_key");
    }
}

/// An open page is nobody who is there: it does not lengthen a session.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_session_has_been_idle() {
    let house = house("sqlite", "").await;
    let ada = signed_in(&house, "ada@example.com", None, Some((house.account, AccountRole::Viewer))).await;
    let mut events = open(ada.request("GET", OWN)).await;
    assert_eq!(events.next().await.expect("an event").kind, "ready");
    house.later(11 * 3_600_000).await;
    let call = call_id(&house.ask("[[sim:tokens=2]]").await);
    events.find("usage.closed", |data| data["call_id"] == json!(call)).await;
    house.later(13 * 3_600_000).await;
    assert_eq!(events.end().await, "not_signed_in");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_a_bound_of_streams() {
    let limits = "streams = 3\nstreams_per_account = 2\nstreams_per_session = 1\noperator_streams = 1";
    let house = house("sqlite", limits).await;
    let (stranger, _) = house.stranger("1").await;
    let mut keys = Vec::new();
    for account in [house.account, house.account, house.account, stranger, stranger] {
        keys.push(house.new_key(|key| (key.account, key.scope) = (account, KeyScope::Manage)).await);
    }
    let refused = async |key: &str, path: &str| {
        let reply = get(&house, path, key).send().await.expect("a reply");
        assert_eq!((reply.status().as_u16(), reply.headers()["retry-after"].to_str().expect("text")), (429, "15"));
        let body: Value = reply.json().await.expect("JSON");
        body["error"]["message"].as_str().expect("a text").to_owned()
    };
    let first = watch(&house, &keys[0], OWN).await;
    assert!(refused(&keys[0], OWN).await.contains("of this session or key"));
    let _second = watch(&house, &keys[1], OWN).await;
    assert!(refused(&keys[2], OWN).await.contains("of this account"));
    let _third = watch(&house, &keys[3], OWN).await;
    assert!(refused(&keys[4], OWN).await.contains("of all accounts"));
    let _operator = watch(&house, ADMIN, HOUSE).await;
    assert!(refused(ADMIN, HOUSE).await.contains("of this session or key"), "operators have their own");
    let gauge = house.running().app.metrics.live.streams("account");
    assert_eq!(gauge.get(), 3);
    drop(first);
    while gauge.get() > 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    watch(&house, &keys[2], OWN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_does_not_read_loses_events_and_is_told() {
    let house = house("sqlite", "").await;
    let app = &house.running().app;
    let key = manage_key(&house).await;
    let mut events = open(get(&house, OWN, &key)).await;
    let feed = app.live.account(house.account);
    // Far more than sockets and the ring of the feed hold: whatever the reader gets, it is not all.
    const MANY: usize = 4_000;
    for number in 0..MANY {
        let data = json!({ "number": number, "filling": "x".repeat(64 << 10) });
        feed.publish(LiveEvent::new("usage.skipped", None, data));
    }
    let reset = events.find("reset", |_| true).await;
    assert_eq!(reset["reason"], "slow");
    let after = events.find_any("usage.skipped", |data| data["number"] == MANY - 1).await;
    assert!(after["filling"].is_string(), "the newest are there");
    assert!(events.seen.len() < MANY && app.metrics.live.dropped.get() > 0);
    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    assert!(page.contains("tollgate_live_streams{of=\"account\"} 1"), "{page}");
    assert!(page.contains("tollgate_live_resets_total{reason=\"slow\"}"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_in_order_when_the_gateway_stops() {
    let mut house = house("sqlite", "").await;
    let key = manage_key(&house).await;
    let mut own = watch(&house, &key, OWN).await;
    let mut all = watch(&house, ADMIN, HOUSE).await;
    let ends = async { (own.end().await, all.end().await) };
    let (_, ends) = tokio::join!(house.restart(), ends);
    assert_eq!(ends, ("server_draining".to_owned(), "server_draining".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_the_house() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let mut events = watch(&house, ADMIN, HOUSE).await;
        assert_eq!(house.ask("canary of a prompt [[sim:tokens=2]]").await.status(), 200);
        let counted = |data: &Value| data["ended"] == 1 && data["charged"] == 1;
        let traffic = events.find("traffic", counted).await;
        let charge = traffic["charge_nano_usd"].as_i64().expect("a charge");
        assert_eq!(charge, 10_000_000_000 - house.available().await);
        let pause = json!({ "kind": "model", "name": "plain", "paused": true, "reason": "it is broken" });
        admin(&house, "POST", "/api/admin/pauses", pause).await;
        let paused = events.find("pause.changed", |data| data["name"] == "plain").await;
        assert_eq!((&paused["paused"], &paused["reason"]), (&json!(true), &json!("it is broken")));
        let path = format!("/api/admin/accounts/{}", house.account);
        admin(&house, "PATCH", &path, json!({ "suspended": true, "reason": "a test" })).await;
        let suspended = events.find("account.suspended", |_| true).await;
        assert_eq!(suspended["account_id"], json!(house.account));
        let job = admin(&house, "POST", "/api/admin/jobs", json!({ "kind": "verify", "reason": "a look" })).await;
        events.find("job.changed", |data| data["job_id"] == job["job_id"] && data["state"] == "done").await;
        let models = std::fs::read_to_string(house.dir.join("catalog/models.toml")).expect("text");
        std::fs::write(house.dir.join("catalog/models.toml"), format!("{models}\n# another one\n")).expect("written");
        events.find("catalog.published", |_| true).await;
        let shapes = shapes(&house, "AdminLiveEvent").await;
        events.seen.iter().for_each(|event| fits(&shapes, &event.data));
        assert!(!events.text.contains("canary") && !events.text.contains(&house.key), "{}", events.text);
        let again = get(&house, HOUSE, ADMIN).header("last-event-id", "1-2");
        let mut events = open(again).await;
        assert_eq!(events.next().await.expect("an event").kind, "ready");
        assert_eq!(events.next().await.expect("an event").kind, "reset", "there is no place to go on from");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_sees_what_their_own_keys_do() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let mut bob = signed_in(&house, "bob@example.com", None, Some((house.account, AccountRole::Member))).await;
        let made = bob.post("/api/account/keys", json!({ "name": "mine" })).await;
        let secret = made.body["secret"].as_str().expect("a secret").to_owned();
        let mut events = open(bob.request("GET", OWN)).await;
        assert_eq!(events.next().await.expect("an event").kind, "ready");
        let start = events.last_id.clone().expect("a place to go on from");

        let other = call_id(&house.ask("somebody else's").await);
        house.row(other).await;
        let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&secret);
        let own = call_id(&request.json(&chat("one")).send().await.expect("a reply"));
        events.find("usage.closed", |data| data["call_id"] == json!(own)).await;
        assert!(!events.text.contains(&other.to_string()), "{}", events.text);

        let mut again = open(bob.request("GET", OWN).header("last-event-id", start)).await;
        again.find("usage.closed", |data| data["call_id"] == json!(own)).await;
        assert!(!again.text.contains(&other.to_string()), "{}", again.text);
    }
}
