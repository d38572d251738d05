//! `GET /`, and what is said where there is no such path: where a newcomer lands who opened the
//! address in a browser, or wrote the base URL without its `/v1`.

use super::openapi::shapes::anything;
use super::row::{Access, Family, Row, no_schemas};
use super::table::{rows as all_rows, spoken_at};
use crate::refusal::Refusal;
use axum::response::{Html, IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::json;
use tollgate_catalog::form::nearest;
use tollgate_wire::error::Code;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longer paths are no slips of a pen.
const LONGEST: usize = 100;

pub const FAMILY: Family = Family { tag: "gateway", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    let summary = "What this is: a page for browsers, a record for programs";
    vec![Row::get("/", Access::Public, welcome, summary).gives(anything())]
}

/// What this is and where to go from here.
pub async fn welcome(headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    if accepts.contains("text/html") {
        return ([(header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'")], Html(page()))
            .into_response();
    }
    super::reading::json(&json!({
        "object": "gateway", "name": "Tollgate", "version": VERSION,
        "base_url": "/v1", "models": "/v1/models", "prices": "/api/pricing", "description": "/openapi.json",
    }))
}

fn page() -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tollgate</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em;color-scheme:light dark}}\
         code{{background:#8882;padding:.1em .3em;border-radius:.2em}}</style>\
         <h1>Tollgate {VERSION}</h1><p>This is a model gateway, and it is running.</p>\
         <ul><li>Base URL of OpenAI SDKs: this address followed by <code>/v1</code>. Anthropic and Gemini SDKs take the address itself.\
         <li><a href=\"/api/pricing\">Models and prices</a><li><a href=\"/api/social/catalog\">Social data on sale</a>\
         <li><a href=\"/openapi.json\">Description of the API</a> (OpenAPI 3.1)<li><a href=\"/readyz\">Ready for paid calls?</a></ul></html>"
    )
}

pub async fn no_such_path(uri: Uri) -> Response {
    let hint = meant(uri.path()).map_or_else(String::new, |path| format!(" Did you mean `{path}`?"));
    Refusal::new(Code::NotFound, format!("There is no such path.{hint}")).into_reply(spoken_at(uri.path()), "")
}

pub async fn no_such_method(uri: Uri) -> Response {
    Refusal::new(Code::MethodNotAllowed, "This path does not take this method.").into_reply(spoken_at(uri.path()), "")
}

/// What costs something is not asked for by a question about it.
pub async fn not_by_head(uri: Uri, allowed: String) -> Response {
    let mut reply = no_such_method(uri).await;
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        reply.headers_mut().insert(header::ALLOW, allowed);
    }
    reply
}

/// The path that was meant, if one is near: with the `/v1` that was left out or written twice, or a
/// few letters away.
fn meant(path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    if path.len() > LONGEST {
        return None;
    }
    let once = path.replace("/v1/v1/", "/v1/");
    let squeezed = once.replace("//", "/");
    let known = |path: &str| all_rows().iter().any(|row| row.fits(path).is_some()).then(|| path.to_owned());
    known(&squeezed)
        .filter(|found| found != path)
        .or_else(|| known(&format!("/v1{squeezed}")))
        .or_else(|| known(&format!("/v1{}", squeezed.strip_prefix("/api").unwrap_or(&squeezed))))
        .or_else(|| nearest(&squeezed, all_rows().iter().map(|row| row.path)).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_was_meant() {
        for (written, wanted) in [
            ("/chat/completions", Some("/v1/chat/completions")),
            ("/v1/v1/chat/completions", Some("/v1/chat/completions")),
            ("/v1//chat/completions", Some("/v1/chat/completions")),
            ("/v1/chat/completion", Some("/v1/chat/completions")),
            ("/v1/chat/completions/", Some("/v1/chat/completions")),
            ("/api/v1/messages", Some("/v1/messages")),
            ("/messages", Some("/v1/messages")),
            ("/v1/modles", Some("/v1/models")),
            ("/videos/task_123", Some("/v1/videos/task_123")),
            ("/wp-login.php", None),
            ("/favicon.ico", None),
        ] {
            let found = meant(written);
            assert_eq!(found.as_deref(), wanted, "{written}");
        }
        assert_eq!(meant(&"/v1/chat/completions".repeat(50)), None);
    }
}
