//! Signing in by GitHub, and by presets of issuers.

use super::github_server::{CLIENT, FakeGithub, GithubUser, RunningGithub, SECRET, Trouble};
use super::issuers::Jar;
use crate::engine::Engine;
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tollgate_store::HouseRole;

async fn house(database: &str, github: &RunningGithub, more: &str) -> House {
    let config = format!(
        "[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nfolder = \"mail\"\n[people.oidc.corp]\n\
         preset = \"github\"\nissuer = \"{}\"\nclient_id = \"{CLIENT}\"\nclient_secret_file = \"github.secret\"\n{more}\n",
        github.url
    );
    House::with_files(Plan { config, database: database.to_owned(), ..Plan::default() }, &[("github.secret", SECRET)])
        .await
}

/// All of it, as somebody who is signed in there.
async fn comes_as(jar: &mut Jar<'_>, github: &RunningGithub, user: GithubUser) -> (u16, String, Value) {
    let begun = jar.begin("start").await;
    let code = github.github.agrees(&begun, user);
    jar.back(&[("code", &code), ("state", &begun["state"])]).await
}

fn code(body: &Value) -> &str {
    body["error"]["code"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_in_by_github_and_is_known_by_their_number() {
    for engine in Engine::both().await {
        let github = FakeGithub::start().await;
        let house = house(&engine.url, &github, "sign_up = \"open\"").await;
        let mut ada = Jar::new(&house);
        let shown = ada.ask("GET", "/api/sign-up", None).await.body;
        assert_eq!(shown["issuers"][0]["label"], "GitHub");
        let (status, to, body) = comes_as(&mut ada, &github, GithubUser::new(7, "ada", "ada@corp.example")).await;
        assert_eq!((status, to.as_str()), (303, "/keys"), "{body}");
        let session = ada.ask("GET", "/api/session", None).await.body;
        assert_eq!(
            (&session["person"]["email"], &session["person"]["name"]),
            (&json!("ada@corp.example"), &json!("ada"))
        );
        assert_eq!((&session["accounts"][0]["role"], &session["strong"]), (&json!("owner"), &json!(false)));
        // Another name and e-mail there: the same person here.
        let mut again = Jar::new(&house);
        assert_eq!(comes_as(&mut again, &github, GithubUser::new(7, "ada2", "new@corp.example")).await.0, 303);
        let same = again.ask("GET", "/api/session", None).await.body;
        assert_eq!(same["person"]["person_id"], session["person"]["person_id"]);
        // Somebody else with the name, and with an e-mail that is hers.
        let mut other = Jar::new(&house);
        let (status, _, body) = comes_as(&mut other, &github, GithubUser::new(8, "ada", "ada@corp.example")).await;
        assert_eq!((status, code(&body)), (409, "conflict"), "an e-mail links nobody");
        // GitHub does not say when it last asked.
        let begun = again.begin("step-up").await;
        let fresh = github.github.agrees(&begun, GithubUser::new(7, "ada", "ada@corp.example"));
        let (status, _, body) = again.back(&[("code", &fresh), ("state", &begun["state"])]).await;
        assert_eq!((status, code(&body)), (401, "sign_in_failed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_github_does_not_take_signs_nobody_in() {
    let github = FakeGithub::start().await;
    let house = house("sqlite", &github, "sign_up = \"open\"").await;
    let ada = || GithubUser::new(7, "ada", "ada@corp.example");
    let mut jar = Jar::new(&house);
    let begun = jar.begin("start").await;
    let (status, _, body) = jar.back(&[("code", "nonsense"), ("state", &begun["state"])]).await;
    assert_eq!((status, code(&body)), (401, "sign_in_failed"), "unknown");
    let first = jar.begin("start").await;
    let used = github.github.agrees(&first, ada());
    assert_eq!(jar.back(&[("code", &used), ("state", &first["state"])]).await.0, 303);
    let mut thief = Jar::new(&house);
    let begun = thief.begin("start").await;
    let (status, _, body) = thief.back(&[("code", &used), ("state", &begun["state"])]).await;
    assert_eq!((status, code(&body)), (401, "sign_in_failed"), "used");
    // A code of a way that another browser began: its verifier is not ours.
    let theirs = jar.begin("start").await;
    let stolen = github.github.agrees(&theirs, ada());
    let begun = thief.begin("start").await;
    let (status, _, body) = thief.back(&[("code", &stolen), ("state", &begun["state"])]).await;
    assert_eq!((status, code(&body)), (401, "sign_in_failed"), "of another browser");
    let begun = thief.begin("start").await;
    let own = github.github.agrees(&begun, ada());
    let named = [("code", own.as_str()), ("state", begun["state"].as_str()), ("iss", "https://evil.example")];
    assert_eq!(thief.back(&named).await.0, 401, "of another issuer");
    assert_eq!(thief.ask("GET", "/api/session", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn github_without_a_verified_e_mail_makes_nobody() {
    let github = FakeGithub::start().await;
    let house = house("sqlite", &github, "sign_up = \"open\"").await;
    let unverified = json!([{ "email": "ada@corp.example", "primary": true, "verified": false }]);
    let secondary = json!([{ "email": "ada@corp.example", "primary": false, "verified": true }]);
    for (number, emails) in (1..).zip([unverified, secondary, json!([]), json!({}), json!(null)]) {
        let user = GithubUser { emails, ..GithubUser::new(number, "ada", "ada@corp.example") };
        let (status, _, body) = comes_as(&mut Jar::new(&house), &github, user).await;
        assert_eq!((status, code(&body)), (403, "sign_up_closed"), "{number}: {body}");
    }
    assert!(house.running().app.store.person_by_email("ada@corp.example").await.expect("read").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn github_in_trouble_is_no_sign_in_and_no_panic() {
    let github = FakeGithub::start().await;
    let house = house("sqlite", &github, "sign_up = \"open\"").await;
    let ada = || GithubUser::new(7, "ada", "ada@corp.example");
    for trouble in [Trouble::RateLimited, Trouble::Huge, Trouble::NoJson, Trouble::Silent] {
        github.github.in_trouble(trouble);
        let (status, _, body) = comes_as(&mut Jar::new(&house), &github, ada()).await;
        assert_eq!((status, code(&body)), (502, "upstream_error"), "{trouble:?}: {body}");
    }
    github.github.in_trouble(Trouble::None);
    assert_eq!(comes_as(&mut Jar::new(&house), &github, ada()).await.0, 303, "and then it works again");
}

#[tokio::test(flavor = "multi_thread")]
async fn organisations_and_teams_of_github_are_roles() {
    let github = FakeGithub::start().await;
    let roles = "[people.oidc.corp.house_roles]\n\"corp/platform\" = \"operator\"\ncorp = \"auditor\"";
    let house = house("sqlite", &github, roles).await;
    let member = |id: u64, team: bool, org: bool| {
        let teams = if team { json!([{ "slug": "platform", "organization": { "login": "corp" } }]) } else { json!([]) };
        let orgs = if org { json!([{ "login": "corp" }]) } else { json!([{ "login": "other" }]) };
        let email = format!("u{id}@corp.example");
        GithubUser { teams, orgs, ..GithubUser::new(id, "u", &email) }
    };
    for (id, team, org, role) in [
        (1, true, true, Some(HouseRole::Operator)),
        (2, false, true, Some(HouseRole::Auditor)),
        (3, false, false, None),
    ] {
        let mut jar = Jar::new(&house);
        let (status, _, body) = comes_as(&mut jar, &github, member(id, team, org)).await;
        assert_eq!(status, if role.is_some() { 303 } else { 403 }, "{id}: {body}");
        let session = jar.ask("GET", "/api/session", None).await.body;
        assert_eq!(session["person"]["house_role"], json!(role), "{id}: {session}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn google_is_a_preset_of_its_address() {
    let config = "[people]\nenabled = true\n[people.oidc.google]\npreset = \"google\"\nclient_id = \"tollgate\"\n";
    let house = House::with(Plan { config: config.to_owned(), ..Plan::default() }).await;
    let issuers = &house.running().app.settings.people.issuers;
    let of = |at: usize| (issuers[at].issuer.as_str(), issuers[at].label.as_str(), issuers[at].scopes.join(" "));
    assert_eq!(of(0), ("https://accounts.google.com", "Google", "openid email profile".to_owned()));
}
