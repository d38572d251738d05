//! GitHub as far as signing in by it goes: strict about codes, secrets, scopes and headers, and bad
//! where a test says so.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const CLIENT: &str = "Iv1.tollgate";
pub const SECRET: &str = "a-secret-of-github";

/// What it does instead of what it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    None,
    RateLimited,
    Silent,
    Huge,
    NoJson,
}

/// Somebody who is signed in there.
#[derive(Clone, Debug)]
pub struct GithubUser {
    pub id: u64,
    pub login: &'static str,
    pub emails: Value,
    pub orgs: Value,
    pub teams: Value,
}

impl GithubUser {
    pub fn new(id: u64, login: &'static str, email: &str) -> GithubUser {
        let emails = json!([
            { "email": "old@elsewhere.example", "primary": false, "verified": true },
            { "email": email, "primary": true, "verified": true },
        ]);
        GithubUser { id, login, emails, orgs: json!([]), teams: json!([]) }
    }
}

#[derive(Default)]
struct Known {
    /// Codes that were given out, with what they are good for.
    codes: HashMap<String, (BTreeMap<String, String>, GithubUser)>,
    /// Tokens, with their scopes.
    tokens: HashMap<String, (String, GithubUser)>,
    trouble: Trouble,
    given: usize,
}

#[derive(Clone, Default)]
pub struct FakeGithub {
    known: Arc<Mutex<Known>>,
}

pub struct RunningGithub {
    pub url: String,
    pub github: FakeGithub,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for RunningGithub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FakeGithub {
    pub async fn start() -> RunningGithub {
        let github = FakeGithub::default();
        let router = Router::new()
            .route("/login/oauth/access_token", post(exchange))
            .route("/api/v3/user", get(user))
            .route("/api/v3/user/emails", get(emails))
            .route("/api/v3/user/orgs", get(orgs))
            .route("/api/v3/user/teams", get(teams))
            .with_state(github.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        #[expect(clippy::disallowed_methods, reason = "a server of the test, aborted when it is dropped")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
        RunningGithub { url, github, serving }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn in_trouble(&self, trouble: Trouble) {
        self.lock().trouble = trouble;
    }

    /// What the page of GitHub does when somebody agrees: a code for the query it was opened with.
    pub fn agrees(&self, query: &BTreeMap<String, String>, user: GithubUser) -> String {
        assert_eq!((query["client_id"].as_str(), query["code_challenge_method"].as_str()), (CLIENT, "S256"));
        assert!(query.contains_key("state") && !query.contains_key("nonce"), "{query:?}");
        let mut known = self.lock();
        known.given += 1;
        let code = format!("code{}", known.given);
        known.codes.insert(code.clone(), (query.clone(), user));
        code
    }
}

/// GitHub says what is wrong with a code in an answer with status 200.
fn wrong(error: &str) -> Response {
    axum::Json(json!({ "error": error, "error_description": "no" })).into_response()
}

async fn exchange(State(github): State<FakeGithub>, body: String) -> Response {
    let url: reqwest::Url = format!("http://github/?{body}").parse().expect("a form");
    let form: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let mut known = github.lock();
    let of = |name: &str| form.get(name).cloned().unwrap_or_default();
    if of("client_id") != CLIENT || of("client_secret") != SECRET {
        return wrong("incorrect_client_credentials");
    }
    // A code works once, right or wrong.
    let Some((query, user)) = known.codes.remove(&of("code")) else { return wrong("bad_verification_code") };
    if query["redirect_uri"] != of("redirect_uri") {
        return wrong("redirect_uri_mismatch");
    }
    let hash = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, of("code_verifier").as_bytes()));
    if query["code_challenge"] != hash {
        return wrong("bad_verification_code");
    }
    let token = format!("gho_{}", of("code"));
    known.tokens.insert(token.clone(), (query["scope"].clone(), user));
    axum::Json(json!({ "access_token": token, "token_type": "bearer", "scope": query["scope"].replace(' ', ",") }))
        .into_response()
}

async fn known(github: &FakeGithub, headers: &HeaderMap, scope: &str) -> Result<GithubUser, Response> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header("user-agent").is_empty() || header("accept") != "application/vnd.github+json" {
        return Err(StatusCode::FORBIDDEN.into_response());
    }
    let trouble = github.lock().trouble;
    match trouble {
        Trouble::None => {}
        Trouble::RateLimited => {
            let body = json!({ "message": "API rate limit exceeded" });
            return Err((StatusCode::FORBIDDEN, [("x-ratelimit-remaining", "0")], axum::Json(body)).into_response());
        }
        Trouble::Silent => std::future::pending().await,
        Trouble::Huge => return Err(axum::Json(json!({ "id": 7, "bio": "x".repeat(1 << 20) })).into_response()),
        Trouble::NoJson => return Err("<html>a unicorn</html>".into_response()),
    }
    let token = header("authorization").strip_prefix("Bearer ").unwrap_or_default();
    let (scopes, user) = github.lock().tokens.get(token).cloned().ok_or(StatusCode::UNAUTHORIZED.into_response())?;
    match scopes.split(' ').any(|own| own == scope) {
        true => Ok(user),
        false => Err(StatusCode::NOT_FOUND.into_response()),
    }
}

async fn answer(github: FakeGithub, headers: HeaderMap, scope: &str, of: fn(GithubUser) -> Value) -> Response {
    known(&github, &headers, scope).await.map_or_else(|refused| refused, |user| axum::Json(of(user)).into_response())
}

async fn user(State(github): State<FakeGithub>, headers: HeaderMap) -> Response {
    answer(github, headers, "read:user", |user| json!({ "id": user.id, "login": user.login, "name": null })).await
}

async fn emails(State(github): State<FakeGithub>, headers: HeaderMap) -> Response {
    answer(github, headers, "user:email", |user| user.emails).await
}

async fn orgs(State(github): State<FakeGithub>, headers: HeaderMap) -> Response {
    answer(github, headers, "read:org", |user| user.orgs).await
}

async fn teams(State(github): State<FakeGithub>, headers: HeaderMap) -> Response {
    answer(github, headers, "read:org", |user| user.teams).await
}
