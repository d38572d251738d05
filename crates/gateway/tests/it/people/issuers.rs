//! Signing in by an issuer of OpenID Connect: a good one, and every bad one.

use super::issuer_server::{FakeIssuer, code_for};
use super::{Answer, GOOD, answer, person, test};
use crate::engine::Engine;
use crate::house::{House, Plan};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate_store::{AccountRole, HouseRole, InvitedInto, NewInvite};

/// A browser with all its cookies, on a page of ours.
pub struct Jar<'a> {
    house: &'a House,
    cookies: BTreeMap<String, String>,
}

impl<'a> Jar<'a> {
    pub fn new(house: &'a House) -> Jar<'a> {
        Jar { house, cookies: BTreeMap::new() }
    }

    /// How many ways it carries.
    fn ways(&self) -> usize {
        self.cookies.keys().filter(|name| name.starts_with("tollgate_way_")).count()
    }

    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> reqwest::Response {
        let all: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let reply = request.header("cookie", all.join("; ")).send().await.expect("a reply");
        for set in reply.headers().get_all("set-cookie") {
            let text = set.to_str().expect("text");
            assert!(text.contains("HttpOnly") && text.contains("SameSite=Lax") && text.contains("Path=/"), "{text}");
            let (name, value) = text.split(';').next().and_then(|pair| pair.split_once('=')).expect("a pair");
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        reply
    }

    pub async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let request = self.house.http.request(method.parse().expect("a method"), self.house.url(path));
        let request = request.header("sec-fetch-site", "same-origin");
        let request = body.iter().fold(request, |request, body| request.json(body));
        answer(self.send(request).await).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, Some(body)).await
    }

    /// Begins a way; the query that the issuer gets.
    pub async fn begin(&mut self, what: &str) -> BTreeMap<String, String> {
        let begun = self.post(&format!("/api/session/oidc/corp/{what}"), json!({ "return_to": "/keys" })).await;
        assert_eq!(begun.status, 200, "{}", begun.body);
        query_of(begun.body["url"].as_str().expect("an address"))
    }

    /// Comes back, and follows nothing.
    pub async fn back(&mut self, query: &[(&str, &str)]) -> (u16, String, Value) {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let path = format!("/api/session/oidc/corp/return?{}", query.join("&"));
        let reply = self.send(http.get(self.house.url(&path))).await;
        let to = reply.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or_default().to_owned();
        let status = reply.status().as_u16();
        (status, to, reply.json().await.unwrap_or_default())
    }

    /// All of it, as somebody whom the issuer knows.
    async fn comes_as(&mut self, what: &str, claims: Value) -> (u16, String, Value) {
        let begun = self.begin(what).await;
        let code = code_for(&right(self.house, &begun, claims));
        self.back(&[("code", &code), ("state", &begun["state"])]).await
    }
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn query_of(url: &str) -> BTreeMap<String, String> {
    let url: reqwest::Url = url.parse().expect("an address");
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// What a good issuer says.
fn right(house: &House, begun: &BTreeMap<String, String>, over: Value) -> Value {
    let now = house.running().app.world.now_ms() / 1_000;
    let mut claims = json!({
        "sub": "sub-1", "email": "ada@corp.example", "email_verified": true, "name": "Ada",
        "iat": now, "exp": now + 300, "auth_time": now, "nonce": begun["nonce"],
    });
    claims.as_object_mut().expect("an object").extend(over.as_object().cloned().unwrap_or_default());
    claims
}

async fn house(database: &str, issuer: &FakeIssuer, more: &str) -> House {
    house_at(database, issuer, more, None).await
}

/// The same, with a clock that stands still at this time.
async fn house_at(database: &str, issuer: &FakeIssuer, more: &str, now: Option<i64>) -> House {
    let config = format!(
        "[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nfolder = \"mail\"\n[people.oidc.corp]\n\
         issuer = \"{}\"\nclient_id = \"tollgate\"\nlabel = \"Corp\"\n{more}\n",
        issuer.url
    );
    House::with(Plan { config, database: database.to_owned(), now, ..Plan::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_up_signs_in_again_links_and_takes_it_off() {
    for engine in Engine::both().await {
        let issuer = FakeIssuer::new().await;
        let house = house(&engine.url, &issuer, "sign_up = \"open\"").await;
        let mut ada = Jar::new(&house);
        let shown = ada.ask("GET", "/api/sign-up", None).await.body;
        assert_eq!(shown["issuers"], json!([{ "name": "corp", "label": "Corp", "sign_up": "open" }]));
        let begun = ada.begin("start").await;
        assert_eq!(
            (begun["code_challenge_method"].as_str(), begun["scope"].as_str()),
            ("S256", "openid email profile")
        );
        let code = code_for(&right(&house, &begun, json!({})));
        let (status, to, body) = ada.back(&[("code", &code), ("state", &begun["state"])]).await;
        assert_eq!((status, to.as_str()), (303, "/keys"), "{body}");
        // What was exchanged is what the challenge is the hash of.
        let verifier = issuer.last_form();
        let verifier = verifier.split('&').find_map(|pair| pair.strip_prefix("code_verifier=")).expect("a verifier");
        let hash = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        use base64::Engine as _;
        assert_eq!(base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(hash), begun["code_challenge"]);
        let session = ada.ask("GET", "/api/session", None).await.body;
        assert_eq!(session["person"]["email"], "ada@corp.example");
        assert_eq!((&session["accounts"][0]["role"], &session["strong"]), (&json!("owner"), &json!(true)));
        assert_eq!(session["password"], false);

        // The same person again, whatever their e-mail there is by now; not fresh, so not strong.
        let mut again = Jar::new(&house);
        let old = json!({ "email": "other@corp.example", "auth_time": null });
        assert_eq!(again.comes_as("start", old).await.0, 303);
        let other = again.ask("GET", "/api/session", None).await.body;
        assert_eq!((&other["person"]["person_id"], &other["strong"]), (&session["person"]["person_id"], &json!(false)));
        // Proving it again at the issuer, which must say so.
        let begun = again.begin("step-up").await;
        assert_eq!((begun["prompt"].as_str(), begun["max_age"].as_str()), ("login", "0"));
        assert_eq!(again.comes_as("step-up", json!({ "auth_time": null })).await.0, 401);
        let before = again.cookies.clone();
        assert_eq!(again.comes_as("step-up", json!({})).await.0, 303);
        assert_ne!(again.cookies, before, "another value");
        assert_eq!(again.ask("GET", "/api/session", None).await.body["strong"], true);

        // Somebody with a password links it, and nobody else can.
        person(&house, "bob@example.com", None, None).await;
        let mut bob = Jar::new(&house);
        let sign_in = json!({ "email": "bob@example.com", "password": GOOD });
        assert_eq!(bob.post("/api/session", sign_in.clone()).await.status, 200);
        assert_eq!(bob.comes_as("link", json!({})).await.0, 409, "that is Ada there");
        assert_eq!(bob.comes_as("link", json!({ "sub": "sub-2" })).await.1, "/keys");
        let links = bob.ask("GET", "/api/session/oidc", None).await.body;
        assert_eq!((&links["data"][0]["name"], &links["data"][0]["subject"]), (&json!("corp"), &json!("sub-2")));
        assert_eq!(Jar::new(&house).comes_as("start", json!({ "sub": "sub-2" })).await.0, 303);
        assert_eq!(bob.ask("DELETE", "/api/session/oidc/corp", None).await.status, 200);
        assert_eq!(bob.ask("DELETE", "/api/session/oidc/corp", None).await.status, 404);
        let alone = ada.ask("DELETE", "/api/session/oidc/corp", None).await;
        assert_eq!((alone.status, alone.code.as_str()), (409, "conflict"), "no other way in would be left");
        house.quiet().await;
    }
}

/// Every session and every person leaves rows for good: there is an end to them, whatever an issuer
/// vouches for.
#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_makes_no_end_of_sessions_and_people() {
    let issuer = FakeIssuer::new().await;
    let house = house_at("sqlite", &issuer, "sign_up = \"open\"", Some(1_800_000_000_000)).await;
    for number in 0..200 {
        let (status, _, body) = Jar::new(&house).comes_as("start", json!({})).await;
        assert_eq!(status, 303, "{number}: {body}");
    }
    let (status, _, body) = Jar::new(&house).comes_as("start", json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (429, &json!("rate_limit_exceeded")), "{body}");
    // Nine more people from this address; the next ones wait.
    let mut seen = Vec::new();
    for number in 2..=11 {
        let claims = json!({ "sub": format!("sub-{number}"), "email": format!("p{number}@corp.example") });
        seen.push(Jar::new(&house).comes_as("start", claims).await.0);
    }
    assert_eq!(seen, [[303; 9].as_slice(), &[429]].concat());
    house.later(20_000).await;
    let claims = json!({ "sub": "sub-11", "email": "p11@corp.example" });
    assert_eq!(Jar::new(&house).comes_as("start", claims).await.0, 303, "nobody is locked out");
    house.quiet().await;
}

/// Groups of the issuer are roles in the house, as long as a session lasts that it vouched for.
#[tokio::test(flavor = "multi_thread")]
async fn groups_of_an_issuer_are_roles_in_the_house() {
    for engine in Engine::both().await {
        let issuer = FakeIssuer::new().await;
        let more =
            "sign_up = \"closed\"\n[people.oidc.corp.house_roles]\nplatform = \"operator\"\nfinance = \"auditor\"";
        let house = house(&engine.url, &issuer, more).await;
        let groups = |groups: Value| json!({ "groups": groups });
        let refused = Jar::new(&house).comes_as("start", groups(json!(["sales"]))).await;
        assert_eq!((refused.0, &refused.2["error"]["code"]), (403, &json!("sign_up_closed")), "{}", refused.2);
        // Being in a group that works here is an invite, and makes no account.
        let mut ada = Jar::new(&house);
        let come = ada.comes_as("start", groups(json!(["sales", "finance", "platform"]))).await;
        assert_eq!(come.0, 303, "{}", come.2);
        let session = ada.ask("GET", "/api/session", None).await.body;
        assert_eq!(
            (&session["person"]["house_role"], &session["accounts"]),
            (&json!("operator"), &json!([])),
            "{session}"
        );
        assert_eq!(ada.ask("GET", "/api/admin/accounts", None).await.status, 200);
        let new = json!({ "name": "new", "reason": "a test" });
        assert_eq!(ada.post("/api/admin/accounts", new.clone()).await.status, 200, "an operator changes");
        // The role is the session's: the person has none.
        let store = &house.running().app.store;
        let people = store.people(None, 10).await.expect("people");
        assert_eq!(people[0].house_role, None);

        // The next one goes by what the issuer says then.
        for (said, role, reads, changes) in [
            (json!("finance"), json!("auditor"), 200, 403),
            (json!(["sales"]), json!(null), 403, 403),
            (json!({ "platform": true }), json!(null), 403, 403),
            (json!(null), json!(null), 403, 403),
        ] {
            let mut jar = Jar::new(&house);
            let come = jar.comes_as("start", groups(said.clone())).await;
            assert_eq!(come.0, 303, "{said}: {}", come.2);
            assert_eq!(jar.ask("GET", "/api/session", None).await.body["person"]["house_role"], role, "{said}");
            assert_eq!(jar.ask("GET", "/api/admin/accounts", None).await.status, reads, "{said}");
            assert_eq!(jar.post("/api/admin/accounts", new.clone()).await.status, changes, "{said}");
        }
        // A session by another way has none of it, and a step-up takes what was lost away.
        assert_eq!(ada.ask("GET", "/api/admin/accounts", None).await.status, 200, "its own session goes on");
        assert_eq!(ada.comes_as("step-up", groups(json!(["sales"]))).await.0, 303);
        assert_eq!(ada.ask("GET", "/api/admin/accounts", None).await.status, 403);
        house.quiet().await;
    }
}

/// Trial credit is for e-mails that somebody has verified, and comes once.
#[tokio::test(flavor = "multi_thread")]
async fn trial_credit_is_given_where_the_issuer_has_verified_the_e_mail() {
    let issuer = FakeIssuer::new().await;
    let settings = "sign_up = \"open\"\nrequire_email_verified = false\n[people.trial]\namount_usd = \"2\"";
    let house = house("sqlite", &issuer, settings).await;
    let mut balances = Vec::new();
    for (sub, verified) in [("sub-1", true), ("sub-2", false), ("sub-1", true)] {
        let mut somebody = Jar::new(&house);
        let claims = json!({ "sub": sub, "email": format!("{sub}@corp.example"), "email_verified": verified });
        assert_eq!(somebody.comes_as("start", claims).await.0, 303, "{sub}");
        let session = somebody.ask("GET", "/api/session", None).await.body;
        let account = session["accounts"][0]["account_id"].as_str().expect("an account").parse().expect("an id");
        let account = house.running().app.store.account(account).await.expect("read").expect("an account");
        balances.push(account.trial_available.nano());
    }
    assert_eq!(balances, [2_000_000_000, 0, 2_000_000_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_as_it_must_be_signs_nobody_in() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    let now = house.running().app.world.now_ms() / 1_000;
    let bad = [
        ("wrong signature", json!({ "other_key": true })),
        ("HS256 with the public key", json!({ "hs256": true })),
        ("alg none", json!({ "head": { "alg": "none" } })),
        ("an extension that must be understood", json!({ "head": { "crit": ["b64"] } })),
        ("a key that is in no set", json!({ "head": { "kid": "two" } })),
        ("wrong aud", json!({ "claims": { "aud": "somebody-else" } })),
        ("others beside us, without azp", json!({ "claims": { "aud": ["tollgate", "other"] } })),
        ("made for another", json!({ "claims": { "azp": "other" } })),
        ("another issuer", json!({ "claims": { "iss": "https://evil.example" } })),
        ("wrong nonce", json!({ "claims": { "nonce": "another" } })),
        ("no nonce", json!({ "claims": { "nonce": null } })),
        ("expired", json!({ "claims": { "exp": now - 120 } })),
        ("no end", json!({ "claims": { "exp": null } })),
        ("made long ago", json!({ "claims": { "iat": now - 3_600 } })),
        ("made tomorrow", json!({ "claims": { "iat": now + 86_400 } })),
        ("nobody", json!({ "claims": { "sub": "" } })),
    ];
    for (what, conduct) in bad {
        issuer.behave(|next| {
            next.other_key = conduct["other_key"] == true;
            next.hs256 = conduct["hs256"] == true;
            next.head = conduct["head"].clone();
            next.claims = conduct["claims"].clone();
        });
        let mut jar = Jar::new(&house);
        let (status, _, body) = jar.comes_as("start", json!({})).await;
        assert_eq!((status, body["error"]["code"].as_str()), (401, Some("sign_in_failed")), "{what}: {body}");
        assert_eq!(jar.ask("GET", "/api/session", None).await.status, 401, "{what}");
    }
    let people = house.running().app.store.people(None, 10).await.expect("people");
    assert!(people.is_empty(), "{people:?}");
    issuer.behave(|_| ());
    assert_eq!(Jar::new(&house).comes_as("start", json!({})).await.0, 303, "a good one does");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_for_the_browser_that_asked() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    let mut ada = Jar::new(&house);
    let begun = ada.begin("start").await;
    let code = code_for(&right(&house, &begun, json!({})));
    let query = [("code", code.as_str()), ("state", begun["state"].as_str())];
    // Another browser, and the same one with another state.
    assert_eq!(Jar::new(&house).back(&query).await.0, 403, "a browser that did not begin");
    let cookies = ada.cookies.clone();
    assert_eq!(ada.back(&[("code", &code), ("state", "x")]).await.0, 403);
    ada.cookies = cookies.clone();
    assert_eq!(ada.back(&query).await.0, 303);
    assert_eq!(ada.back(&query).await.0, 403, "the cookie is gone");
    let mut thief = Jar { house: &house, cookies: cookies.clone() };
    assert_eq!(thief.back(&query).await.0, 403, "also for whoever has kept it");
    assert!(!thief.cookies.contains_key("tollgate_session"));
    // Too late, and an issuer that says no.
    let mut late = Jar::new(&house);
    let begun = late.begin("start").await;
    house.later(11 * 60_000).await;
    assert_eq!(late.back(&[("code", "x"), ("state", &begun["state"])]).await.0, 403);
    let begun = late.begin("start").await;
    let (status, _, body) = late.back(&[("error", "access_denied"), ("state", &begun["state"])]).await;
    assert_eq!(status, 401, "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("access_denied")), "{body}");
    // RFC 9207: where it names itself, it must, and rightly.
    issuer.behave(|next| next.names_itself = true);
    house.later(2 * 3_600_000).await;
    for (named, status) in [(None, 401), (Some("https://evil.example"), 401), (Some(issuer.url.as_str()), 303)] {
        let mut jar = Jar::new(&house);
        let begun = jar.begin("start").await;
        let code = code_for(&right(&house, &begun, json!({})));
        let mut query = vec![("code", code.as_str()), ("state", begun["state"].as_str())];
        query.extend(named.map(|named| ("iss", named)));
        assert_eq!(jar.back(&query).await.0, status, "{named:?}");
    }
    // Nobody is sent elsewhere.
    for to in ["https://evil.example/", "//evil.example", "/\\evil.example", "/api/session"] {
        let wish = ada.post("/api/session/oidc/corp/start", json!({ "return_to": to })).await;
        assert_eq!((wish.status, &wish.body["error"]["param"]), (400, &json!("return_to")), "{to}");
    }
    assert_eq!(ada.post("/api/session/oidc/other/start", json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_e_mail_links_nobody_and_sign_up_is_as_the_settings_say() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"invite\"\nemail_domains = [\"corp.example\"]").await;
    let app = &house.running().app;
    person(&house, "ada@corp.example", Some(HouseRole::Operator), None).await;
    for (claims, status, code) in [
        (json!({}), 409, "conflict"),
        (json!({ "email": "new@corp.example", "sub": "n" }), 403, "sign_up_closed"),
        (json!({ "email": "new@evil.example", "sub": "n" }), 403, "sign_up_closed"),
        (json!({ "email": "new@corp.example", "email_verified": false, "sub": "n" }), 403, "sign_up_closed"),
        (json!({ "email": null, "sub": "n" }), 403, "sign_up_closed"),
    ] {
        let (was, _, body) = Jar::new(&house).comes_as("start", claims.clone()).await;
        assert_eq!((was, body["error"]["code"].as_str()), (status, Some(code)), "{claims}: {body}");
    }
    assert_eq!(app.store.people(None, 10).await.expect("people").len(), 1);
    // An invite into an account is theirs by a verified e-mail; one into the house is not.
    let into = InvitedInto::Account { account_id: house.account, role: AccountRole::Viewer };
    let house_role = InvitedInto::House { house_role: HouseRole::Operator };
    let expires_at = app.world.now_ms() + 3_600_000;
    for (n, into) in [(1, house_role), (2, into)] {
        let new = NewInvite { hash: [n; 32], email: "New@Corp.example".to_owned(), into, expires_at, mail: None };
        app.store.create_invite(new, test()).await.expect("an invite");
        let (was, ..) = Jar::new(&house).comes_as("start", json!({ "email": "new@corp.example", "sub": "n" })).await;
        assert_eq!(was, if n == 1 { 403 } else { 303 }, "{n}");
    }
    let new = app.store.person_by_email("new@corp.example").await.expect("asked").expect("there");
    assert_eq!((new.house_role, new.memberships.len()), (None, 1));
    assert_eq!(new.memberships[0].role, AccountRole::Viewer);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_second_factor_here_shows_it_here() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    let mut ada = Jar::new(&house);
    assert_eq!(ada.comes_as("start", json!({})).await.0, 303);
    let made = ada.post("/api/session/totp", json!({})).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let secret = made.body["secret"].as_str().expect("a secret").to_owned();
    let now = house.running().app.world.now_ms();
    let code = |now: i64| super::factors::code_of(&secret, now);
    assert_eq!(ada.post("/api/session/totp/confirm", json!({ "code": code(now) })).await.status, 200);
    house.later(120_000).await;
    let now = house.running().app.world.now_ms();
    let mut jar = Jar::new(&house);
    let (status, to, _) = jar.comes_as("start", json!({})).await;
    assert!(status == 303 && to.starts_with("/sign-in#second_factor=corp&way="), "{to}");
    assert_eq!(jar.ask("GET", "/api/session", None).await.status, 401, "not yet");
    let finish = "/api/session/oidc/corp/finish";
    assert_eq!(jar.post(finish, json!({})).await.code, "second_factor_required");
    assert_eq!(jar.post(finish, json!({ "code": "000000" })).await.code, "sign_in_failed");
    let cookies = jar.cookies.clone();
    let done = jar.post(finish, json!({ "code": code(now) })).await;
    assert_eq!((done.status, &done.body["strong"]), (200, &json!(true)), "{}", done.body);
    let mut again = Jar { house: &house, cookies };
    assert_eq!(again.post(finish, json!({ "code": code(now) })).await.status, 401, "the code was used");
}

pub async fn the_issuer_is_down_slow_or_endless() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    let wish = json!({});
    // Discovery of somebody else, and an address that is not safe.
    let bad = [json!({ "issuer": "https://evil.example" }), json!({ "token_endpoint": "http://10.0.0.1/token" })];
    for (bad, later) in bad.into_iter().zip([20_000, 40_000]) {
        issuer.behave(|next| next.discovery = bad);
        let refused = Jar::new(&house).post("/api/session/oidc/corp/start", wish.clone()).await;
        assert_eq!((refused.status, refused.code.as_str()), (502, "upstream_error"), "{}", refused.body);
        assert!(refused.retry_after.is_some());
        house.later(later).await;
    }
    // It says nothing at all; then for some seconds it is not asked again.
    issuer.behave(|next| next.silent = true);
    let asked = issuer.count("/.well-known/openid-configuration");
    for _ in 0..3 {
        assert_eq!(Jar::new(&house).post("/api/session/oidc/corp/start", wish.clone()).await.status, 502);
    }
    assert_eq!(issuer.count("/.well-known/openid-configuration"), asked + 1);
    issuer.behave(|next| next.endless_keys = true);
    house.later(60_000).await;
    let mut jar = Jar::new(&house);
    let (status, _, body) = jar.comes_as("start", json!({})).await;
    assert_eq!((status, body["error"]["code"].as_str()), (502, Some("upstream_error")), "{body}");
    assert!(issuer.count("/.well-known/openid-configuration") > asked);
    // Known keys are not asked for again, unknown ones once a minute.
    issuer.behave(|_| ());
    assert_eq!(Jar::new(&house).comes_as("start", json!({})).await.0, 303);
    let keys = issuer.count("/keys");
    issuer.behave(|next| next.head = json!({ "kid": "two" }));
    for _ in 0..3 {
        assert_eq!(Jar::new(&house).comes_as("start", json!({})).await.0, 401);
    }
    assert_eq!(issuer.count("/keys"), keys, "within a minute");
    house.later(130_000).await;
    for _ in 0..3 {
        assert_eq!(Jar::new(&house).comes_as("start", json!({})).await.0, 401);
    }
    assert_eq!(issuer.count("/keys"), keys + 1, "once");
    // Gone altogether: nobody is signed in, and passwords go on.
    drop(issuer);
    person(&house, "bob@example.com", None, None).await;
    let mut bob = Jar::new(&house);
    let begun = bob.begin("start").await;
    let (status, ..) = bob.back(&[("code", "x"), ("state", &begun["state"])]).await;
    assert_eq!(status, 502);
    assert_eq!(bob.post("/api/session", json!({ "email": "bob@example.com", "password": GOOD })).await.status, 200);
    let page = house.http.get(house.url("/metrics")).send().await.expect("a page").text().await.expect("text");
    assert!(page.contains("tollgate_sign_ins_total{by=\"issuer\",ending=\"unavailable\"}"), "{page}");
    assert!(page.contains("tollgate_sign_ins_total{by=\"password\",ending=\"passed\"} 1"), "{page}");
}

/// Two pages of one browser sign in at once: each has a way of its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_ways_at_once_end_in_either_order() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    for (subject, order) in [("one", [0, 1]), ("two", [1, 0])] {
        let mut jar = Jar::new(&house);
        let begun = [jar.begin("start").await, jar.begin("start").await];
        assert_ne!(begun[0]["state"], begun[1]["state"]);
        assert_eq!(jar.ways(), 2);
        let claims = json!({ "sub": subject, "email": format!("{subject}@corp.example") });
        for (left, at) in [1, 0].into_iter().zip(order) {
            let code = code_for(&right(&house, &begun[at], claims.clone()));
            let query = [("code", code.as_str()), ("state", begun[at]["state"].as_str())];
            let (status, to, body) = jar.back(&query).await;
            assert_eq!((status, to.as_str()), (303, "/keys"), "{body}");
            assert_eq!(jar.ways(), left, "its own is taken away, and no other");
            let (status, _, body) = jar.back(&query).await;
            assert_eq!((status, &body["error"]["param"]), (403, &json!("state")), "once: {body}");
        }
        assert_eq!(jar.ask("GET", "/api/session", None).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_carries_a_few_ways_and_the_oldest_gives_way() {
    let issuer = FakeIssuer::new().await;
    let house = house("sqlite", &issuer, "sign_up = \"open\"").await;
    let mut jar = Jar::new(&house);
    let mut begun = Vec::new();
    for number in 0..7 {
        house.later(number * 1_000).await;
        begun.push(jar.begin("start").await);
    }
    assert_eq!(jar.ways(), 4);
    let mut come = async |at: usize| {
        let code = code_for(&right(&house, &begun[at], json!({})));
        jar.back(&[("code", &code), ("state", &begun[at]["state"])]).await.0
    };
    let came = [come(2).await, come(3).await, come(6).await];
    assert_eq!(came, [403, 303, 303], "the oldest are forgotten");
    // What is over is taken away with the next one.
    house.later(11 * 60_000).await;
    jar.begin("start").await;
    assert_eq!(jar.ways(), 1);
}
