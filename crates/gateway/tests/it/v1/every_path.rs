//! Every path of the table: missing key, wrong key, bad body, too large body, wrong method.

use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use tollgate_gateway::endpoints::row::Errors;
use tollgate_gateway::endpoints::{Access, rows};
use tollgate_store::{Attribution, NewAdminKey};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";

#[tokio::test(flavor = "multi_thread")]
async fn paths_with_a_key_refuse_a_missing_and_a_wrong_one() {
    let house = House::new().await;
    let mut seen = 0;
    for row in rows() {
        if !matches!(row.access, Access::Key | Access::Paid | Access::Account(_) | Access::Role(_)) {
            continue;
        }
        seen += 1;
        let (method, path) = (&row.method, row.path);
        let url = house.url(&filled(path));
        for key in [None, Some("sk-wrong"), Some("")] {
            let mut request = house.http.request(method.clone(), &url);
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            let reply = request.send().await.expect("a reply");
            if row.errors == Errors::LegacyVideo {
                // The one path whose errors have a shape of their own.
                assert_eq!(reply.status(), 401);
                let body: serde_json::Value = reply.json().await.expect("JSON");
                assert_eq!((&body["code"], &body["data"]), (&"invalid_api_key".into(), &serde_json::Value::Null));
                continue;
            }
            let (status, error) = error_of(reply).await;
            assert_eq!((status, code_of(&error)), (401, "invalid_api_key"), "{method} {path} {key:?}");
            assert!(error["type"] == "authentication_error" || error["status"] == "UNAUTHENTICATED", "{path}: {error}");
        }
    }
    assert!(seen >= 6, "the table has lost its lines");
}

#[tokio::test(flavor = "multi_thread")]
async fn paid_paths_refuse_bad_and_too_large_bodies() {
    let config = "[limits]\nbody_bytes = \"10KiB\"\nupload_bytes = \"10KiB\"\n".to_owned();
    let house = House::with(Plan { config, ..Plan::default() }).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let admin = NewAdminKey { name: "operator".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(admin, ADMIN).await.expect("a key");
    let manage = house.new_key(|key| key.scope = tollgate_store::KeyScope::Manage).await;
    for row in rows() {
        // News of a payment provider are signed, and of no use without one.
        let Some(body) = row.body.as_ref().filter(|_| !row.path.starts_with("/api/payments/")) else { continue };
        // People do not sign in here, and nothing about them is there.
        if row.tag.starts_with("people") {
            continue;
        }
        let key = match row.access {
            Access::Role(_) => ADMIN,
            Access::Account(_) => manage.as_str(),
            _ => house.key.as_str(),
        };
        let takes_forms = body.get("multipart/form-data").is_some() && !row.path.ends_with("/remix");
        let path = &filled(row.path).replace("/v1/quote", "/v1/quote?endpoint=/v1/chat/completions");
        let request = || house.http.request(row.method.clone(), house.url(path)).bearer_auth(key);
        let post = || request().header("content-type", "application/json");
        if body.get("application/json").is_some() {
            bad_json(path, post).await;
        } else {
            let (status, error) = error_of(post().body("{}").send().await.expect("a reply")).await;
            assert_eq!((status, code_of(&error)), (415, "unsupported_media_type"), "{path}");
        }
        let other = |kind: &str| request().header("content-type", kind);
        let (status, error) = error_of(other("text/plain").body("{}").send().await.expect("a reply")).await;
        assert_eq!((status, code_of(&error)), (415, "unsupported_media_type"), "{path}");
        let form = other("multipart/form-data; boundary=x").body(vec![b'-'; 20_000]).send().await.expect("a reply");
        let expected = if takes_forms { (413, "body_too_large") } else { (415, "unsupported_media_type") };
        let (status, error) = error_of(form).await;
        assert_eq!((status, code_of(&error)), expected, "{path} with a form");
    }
    assert!(house.sim.received().is_empty());
}

/// JSON that is broken, and too much of it.
async fn bad_json(path: &str, post: impl Fn() -> reqwest::RequestBuilder) {
    let (status, error) = error_of(post().body("{\"model\":").send().await.expect("a reply")).await;
    assert_eq!((status, code_of(&error)), (400, "invalid_json"), "{path}");
    let (status, error) = error_of(post().body(vec![b' '; 20_000]).send().await.expect("a reply")).await;
    assert_eq!((status, code_of(&error)), (413, "body_too_large"), "{path}");
    let chunked = reqwest::Body::wrap_stream(pieces());
    // A connection of its own: one that the server closes on the way is of no use to the next
    // request.
    let chunked = post().body(chunked).build().expect("a request");
    let reply = reqwest::Client::new().execute(chunked).await;
    // The server may answer and close before the client has sent all of it.
    if let Ok(reply) = reply {
        assert_eq!(error_of(reply).await.0, 413, "{path} without a length");
    }
}

/// A path with something in the places that vary.
fn filled(path: &str) -> String {
    path.replace("{id}", "plain")
        .replace("{call_id}", "call_0")
        .replace("{model}", "gemini-x")
        .replace("{item}", "msg_0")
}

/// Our word for an error, wherever its dialect has it.
fn code_of(error: &Value) -> &str {
    error["code"].as_str().or(error["details"][0]["reason"].as_str()).unwrap_or_default()
}

fn pieces() -> impl futures_core::Stream<Item = Result<Vec<u8>, std::io::Error>> {
    struct Pieces(u32);
    impl futures_core::Stream for Pieces {
        type Item = Result<Vec<u8>, std::io::Error>;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            self.0 += 1;
            std::task::Poll::Ready((self.0 <= 20).then(|| Ok(vec![b' '; 1_000])))
        }
    }
    Pieces(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_methods_get_an_error_in_shape() {
    let house = House::new().await;
    let (status, error) = error_of(house.get("/v1/nothing").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("not_found")));
    let (status, error) = error_of(house.get("/v1/chat/completions").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (405, Some("method_not_allowed")));
}

/// A slip in the path is answered with the path that was meant, in the dialect of whoever asks
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_path_names_the_one_that_was_meant() {
    let house = House::new().await;
    let body = json!({ "model": "plain", "messages": [] });
    for path in ["/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completion"] {
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await;
        let (status, error) = error_of(reply.expect("a reply")).await;
        assert_eq!(status, 404, "{path}");
        let said = error["message"].as_str().expect("a message");
        assert!(said.contains("Did you mean `/v1/chat/completions`?"), "{path}: {said}");
    }
    for (path, place, word) in [
        ("/v1/messages/batches", "/error/type", "not_found_error"),
        ("/v1beta/cachedContents", "/error/status", "NOT_FOUND"),
        ("/v1/files", "/error/code", "not_found"),
    ] {
        let reply = house.get(path).send().await.expect("a reply");
        assert_eq!(reply.status(), 404, "{path}");
        let body: Value = reply.json().await.expect("JSON");
        assert_eq!(body.pointer(place), Some(&json!(word)), "{path}: {body}");
    }
}

/// A slip in a model's name is answered with the nearest one that the key can use, never with one
/// it cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_model_names_the_nearest_on_offer() {
    let house = House::new().await;
    let limited = house.new_key(|key| key.models = Some(vec!["tiers".to_owned()])).await;
    for (key, hinted) in [(&house.key, true), (&limited, false)] {
        let body = json!({ "model": "plian", "messages": [{ "role": "user", "content": "hi" }] });
        let reply = house.http.post(house.url("/v1/chat/completions")).bearer_auth(key).json(&body).send().await;
        let (status, error) = error_of(reply.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("model_not_found")));
        let said = error["message"].as_str().expect("a message");
        assert_eq!(said.contains("Did you mean `plain`?"), hinted, "{said}");
    }
}

/// The address itself is a page for people and a record for programs; neither needs a key.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_itself_says_what_it_is() {
    let house = House::new().await;
    let page = house.http.get(house.url("/")).header("accept", "text/html,*/*").send().await.expect("a reply");
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].as_bytes()),
        (200, &b"text/html; charset=utf-8"[..])
    );
    let text = page.text().await.expect("text");
    for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().expect("a link")) {
        let reply = house.http.get(house.url(link)).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{link}");
    }
    let record: Value = house.http.get(house.url("/")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((&record["object"], &record["base_url"]), (&json!("gateway"), &json!("/v1")));
}

/// A page in a browser may call with a key it has: the preflight needs none, and every reply,
/// refusals too, can be read.
#[tokio::test(flavor = "multi_thread")]
async fn pages_in_browsers_can_call() {
    const PAGE: &str = "https://app.example.com";
    let house = House::new().await;
    let url = house.url("/v1/chat/completions");
    let preflight = house
        .http
        .request(reqwest::Method::OPTIONS, &url)
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type")
        .send();
    let preflight = preflight.await.expect("a reply");
    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-headers"], "authorization,content-type");
    let body = json!({ "model": "plain", "messages": [{ "role": "user", "content": "hi" }] });
    for key in [house.key.as_str(), "sk-wrong"] {
        let reply = house.http.post(&url).bearer_auth(key).header("origin", PAGE).json(&body).send().await;
        let reply = reply.expect("a reply");
        assert_eq!(reply.headers()["access-control-allow-origin"], "*", "{}", reply.status());
        assert_eq!(reply.headers()["access-control-expose-headers"], "*");
    }
    let plain = house.http.post(&url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    assert!(!plain.headers().contains_key("access-control-allow-origin"));
    house.quiet().await;
    let closed =
        House::with(Plan { config: "cors_origins = [\"https://ours.example\"]\n".to_owned(), ..Plan::default() }).await;
    for (page, expected) in [(PAGE, None), ("https://ours.example", Some("https://ours.example"))] {
        let reply = closed.http.get(closed.url("/healthz")).header("origin", page).send().await.expect("a reply");
        let allowed = reply.headers().get("access-control-allow-origin").and_then(|value| value.to_str().ok());
        assert_eq!(allowed, expected);
    }
}

/// The router is made of the rows: each is answered by its own handler, with its method and no
/// other that has no row.
#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_routed_and_nothing_else_is() {
    let house = House::new().await;
    for row in rows() {
        let url = house.url(&filled(row.path));
        let ask = async |method: &reqwest::Method| {
            let reply = house.http.request(method.clone(), &url).send().await.expect("a reply");
            (reply.status().as_u16(), reply.text().await.expect("text"))
        };
        let (status, text) = ask(&row.method).await;
        assert!(status != 405 && !text.contains("There is no such path."), "{} {}: {text}", row.method, row.path);
        for method in [reqwest::Method::PUT, reqwest::Method::PATCH, reqwest::Method::DELETE] {
            if !rows().iter().any(|other| other.method == method && other.fits(&filled(row.path)).is_some()) {
                assert_eq!(ask(&method).await.0, 405, "{method} {}", row.path);
            }
        }
    }
}
