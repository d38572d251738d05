//! `/api/admin/catalog`: what is on sale as it was written, candidates for it (checked, compared,
//! tried out), publishing one, and the versions that were published.
//!
//! A candidate is all files of a catalog, or with `merge` those that change; or a version that was
//! published before. Publishing says by `If-Match` which catalog was looked at.

use super::catalog_draft;
use super::catalog_preview::{AskedCalls, diff_record, preview};
use super::field::{FieldKind, VerbField, may};
use super::presets;
use super::schemas::{page, record};
use super::verb::AnswerPage;
use super::{Form, OPERATOR, object, query, reply, wrong};
use crate::app::App;
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::endpoints::{changes, reading};
use crate::refusal::Refusal;
use crate::sale::{CatalogText, CheckedCatalog, MOST_CATALOG_BYTES, Serving};
use crate::settings::CatalogSource;
use crate::who::operator::{self, Operator};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Mistake;
use tollgate_store::{Attribution, CatalogVersion, NewCatalogVersion};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "operators: catalog", rows, schemas };

/// Text in JSON is up to twice as long.
const MOST_BODY: usize = 2 * MOST_CATALOG_BYTES;
/// Mistakes that are listed.
const MOST_MISTAKES: usize = 1_000;
/// So long it is waited for that what was published is served here.
const TAKEN_OVER: Duration = Duration::from_secs(10);

const BEFORE: VerbField = may("before", FieldKind::Number(1, i64::MAX), "`next_before` of the page before");

fn rows() -> Vec<Row> {
    let at = "/api/admin/catalog";
    let (publish_at, back_at) = ("/api/admin/catalog/publish", "/api/admin/catalog/versions/{version}/roll-back");
    let more = presets::shipped_rows().into_iter().chain(catalog_draft::rows());
    let rows = vec![
        Row::get(at, OPERATOR, current, "What is on sale: its hash, its version, and its files")
            .with(|| vec![json!({ "name": "texts", "in": "query", "schema": { "type": "boolean", "description": "With the text of each file" } })])
            .gives(named("CatalogOnSale"))
            .carries_out("catalog_on_sale"),
        Row::post("/api/admin/catalog/check", OPERATOR, check, "Checks a candidate; lists all that is wrong with it")
            .takes(named("CatalogCandidate"))
            .gives(named("CatalogCheck")),
        Row::post("/api/admin/catalog/diff", OPERATOR, diff, "Which prices and files a candidate changes")
            .takes(named("CatalogCandidate"))
            .gives(named("CatalogDiff")),
        Row::post("/api/admin/catalog/preview", OPERATOR, tried, "What a candidate changes for customers, with prices of calls before and after")
            .takes(named("CatalogPreviewRequest"))
            .gives(named("CatalogPreview")),
        Row::post(publish_at, OPERATOR, publish, "Puts a candidate on sale, on all replicas, with a reason")
            .with(|| changes::parameters(true, true))
            .takes(named("CatalogPublishRequest"))
            .gives(named("CatalogPublished"))
            .refused_with(&[409, 412, 428])
            .carries_out("catalog_publish"),
        Row::get("/api/admin/catalog/versions", OPERATOR, versions, "What was published, by whom and why, newest first")
            .with(|| [BEFORE, super::PAGE].iter().map(|field| json!({ "name": field.name, "in": "query", "schema": field.schema() })).collect())
            .gives(named("CatalogVersionPage")),
        Row::get("/api/admin/catalog/versions/{version}", OPERATOR, version, "One version, with the text of its files while that is stored")
            .gives(named("CatalogVersion")),
        Row::post(back_at, OPERATOR, roll_back, "Puts a version of before on sale again, with a reason")
            .with(|| changes::parameters(true, true))
            .takes(json!({ "type": "object", "required": ["reason"], "additionalProperties": false, "properties": { "reason": super::REASON.schema() } }))
            .gives(named("CatalogPublished"))
            .refused_with(&[409, 412, 428]),
    ];
    rows.into_iter().chain(more).collect()
}

async fn current(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        let given = query(&parts, &[may("texts", FieldKind::Flag, "With the text of each file")])?;
        Ok(on_sale(&app, &app.serving.load_full(), given.get("texts") == Some(&json!(true))))
    };
    answered(&app, reading::guarded(outcome).await)
}

fn on_sale(app: &App, serving: &Serving, texts: bool) -> Value {
    let (text, source) = (&serving.text, app.settings.catalog_source);
    let names: Vec<Value> =
        text.files.iter().map(|(name, text)| json!({ "name": name, "bytes": text.len() })).collect();
    json!({
        "object": "catalog",
        "source": source.word(),
        "can_be_published": source == CatalogSource::Database && app.publishing.reader.get().is_some(),
        "version": text.version,
        "hash": text.hash,
        "etag": etag(&text.hash),
        "pricing_version": serving.catalog.pricing_version(app.world.now_ms()),
        "models": serving.catalog.models.len(),
        "social_cells": serving.catalog.social.cells().count(),
        "file_names": names,
        "files": texts.then(|| text.to_json()),
    })
}

pub(super) fn etag(hash: &str) -> String {
    format!("\"{hash}\"")
}

/// The reply with its tag.
fn answered(app: &App, outcome: Result<Value, Refusal>) -> Response {
    let tag = outcome.as_ref().ok().and_then(changes::tag);
    changes::named(reply(app, outcome), &app.new_call_id().to_string(), tag)
}

/// What every question about a candidate begins with.
struct CandidateRequest {
    operator: Operator,
    parts: Parts,
    body: Bytes,
    form: Form,
    id: String,
}

impl CandidateRequest {
    async fn read(app: &App, request: Request) -> Result<CandidateRequest, Refusal> {
        let (parts, body) = request.into_parts();
        let operator = operator::authenticate(&app.register(), &parts).await?;
        reading::only_json(&parts)?;
        query(&parts, &[])?;
        let body = reading::raw_body(app, &parts, body, MOST_BODY).await?;
        let form = Form(object(&body)?);
        Ok(CandidateRequest { operator, parts, body, form, id: app.new_call_id().to_string() })
    }

    /// Nothing else was given.
    fn finish(&mut self) -> Result<(), Refusal> {
        Form(std::mem::take(&mut self.form.0)).finish()
    }

    /// The files that are meant, and the version that they are of.
    async fn candidate(&mut self, app: &App) -> Result<(CatalogText, Option<i64>), Refusal> {
        let merge = match self.form.0.remove("merge") {
            None => false,
            Some(Value::Bool(merge)) => merge,
            Some(_) => return Err(wrong("merge", "`true` or `false`")),
        };
        match (self.form.0.remove("files"), self.form.0.remove("version")) {
            (Some(Value::Object(files)), None) => {
                let serving = app.serving.load_full();
                let sent = CatalogText::sent(merge.then_some(&*serving.text), &files);
                let text =
                    sent.map_err(|why| Refusal::about(Code::InvalidParameter, "files", format!("`files`: {why}.")))?;
                Ok((text, None))
            }
            (None, Some(version)) if !merge => {
                let number = version.as_i64().ok_or_else(|| wrong("version", "the number of a version"))?;
                Ok((stored(app, number).await?.1, Some(number)))
            }
            (None, None) => {
                let why =
                    "`files` is required: an object with the text of each file; or `version`, one that was published.";
                Err(Refusal::about(Code::MissingParameter, "files", why))
            }
            (Some(_), None) => Err(wrong("files", "an object with the text of each file")),
            _ => Err(wrong("version", "given without `files` and `merge`")),
        }
    }
}

/// A version and its text.
async fn stored(app: &App, number: i64) -> Result<(CatalogVersion, CatalogText), Refusal> {
    let missing = || Refusal::about(Code::NotFound, "version", "There is no such version of the catalog.");
    let version = app.store.catalog_version(number).await?.ok_or_else(missing)?;
    let text = app.store.catalog_text(&version.hash).await?;
    let gone = || Refusal::new(Code::Conflict, format!("The text of version {number} is stored no longer."));
    let text = text.and_then(|text| CatalogText::stored(&text, number)).ok_or_else(gone)?;
    Ok((version, text))
}

/// Reads a candidate as it would be served, on a thread that serves no calls, and does something
/// with it there.
async fn with_candidate<T: Send + 'static>(
    app: &Arc<App>,
    text: CatalogText,
    work: impl FnOnce(&App, &Serving, Result<CheckedCatalog, Vec<Mistake>>) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let none = || Refusal::new(Code::Conflict, "Not done: this gateway's configuration did not come from a file.");
    let reader = app.publishing.reader.get().cloned().ok_or_else(none)?;
    let app = app.clone();
    // The turn ends with the work, whether or not anybody waits for it.
    let read = move || {
        let busy = |_| Refusal::new(Code::Overloaded, "Other candidates are being read; try again.").after(2);
        let _turn = app.publishing.turns.try_acquire().map_err(busy)?;
        let before = app.serving.load_full();
        let checked = reader.read_candidate(&text, &before, app.world.now_ms());
        Ok(work(&app, &before, checked))
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| {
        tracing::error!(%error, "reading a candidate failed");
        Refusal::new(Code::Internal, "The candidate could not be read.")
    })?
}

/// All that is wrong, without where this machine has its files.
fn shown(mistakes: &[Mistake]) -> Vec<Value> {
    let one = |mistake: &Mistake| {
        let file = mistake.file.rsplit('/').next().filter(|_| mistake.file.starts_with('/')).unwrap_or(&mistake.file);
        json!({ "file": file, "line": mistake.line, "field": mistake.field, "reason": mistake.reason })
    };
    mistakes.iter().take(MOST_MISTAKES).map(one).collect()
}

pub(super) fn invalid(mistakes: &[Mistake]) -> Refusal {
    let (count, first) = (mistakes.len(), mistakes.first().map(ToString::to_string).unwrap_or_default());
    let noun = if count == 1 { "mistake" } else { "mistakes" };
    let message =
        format!("The catalog has {count} {noun}, and nothing was changed; `details` lists them. The first: {first}");
    let details = json!({ "mistakes": shown(mistakes), "count": count }).to_string();
    Refusal { details: Some(details.into_boxed_str()), ..Refusal::about(Code::InvalidCatalog, "files", message) }
}

async fn check(State(app): State<Arc<App>>, request: Request) -> Response {
    let outcome = async {
        let mut asked = CandidateRequest::read(&app, request).await?;
        let (text, _) = asked.candidate(&app).await?;
        asked.finish()?;
        let hash = text.hash.clone();
        with_candidate(&app, text, move |app, _, checked| match checked {
            Ok(checked) => json!({
                "object": "catalog.check", "ok": true, "hash": hash, "mistakes": [], "warnings": checked.warnings,
                "models": checked.serving.catalog.models.len(),
                "pricing_version": checked.serving.catalog.pricing_version(app.world.now_ms()),
            }),
            Err(mistakes) => json!({
                "object": "catalog.check", "ok": false, "hash": hash, "mistakes": shown(&mistakes), "warnings": [],
                "count": mistakes.len(),
            }),
        })
        .await
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

async fn diff(State(app): State<Arc<App>>, request: Request) -> Response {
    let outcome = async {
        let mut asked = CandidateRequest::read(&app, request).await?;
        let (text, _) = asked.candidate(&app).await?;
        asked.finish()?;
        let work = |app: &App, before: &Serving, checked: Result<CheckedCatalog, Vec<Mistake>>| {
            checked.map(|checked| diff_record(app, before, &checked.serving)).map_err(|mistakes| invalid(&mistakes))
        };
        with_candidate(&app, text, work).await?
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

async fn tried(State(app): State<Arc<App>>, request: Request) -> Response {
    let outcome = async {
        let mut asked = CandidateRequest::read(&app, request).await?;
        let (text, _) = asked.candidate(&app).await?;
        let calls = AskedCalls::read(&mut asked.form.0)?;
        asked.finish()?;
        let work = move |app: &App, before: &Serving, checked: Result<CheckedCatalog, Vec<Mistake>>| {
            checked
                .map_err(|mistakes| invalid(&mistakes))
                .and_then(|checked| preview(app, before, &checked.serving, calls))
        };
        with_candidate(&app, text, work).await?
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

async fn publish(State(app): State<Arc<App>>, request: Request) -> Response {
    let outcome = async {
        let mut asked = CandidateRequest::read(&app, request).await?;
        let reason = asked.form.reason()?;
        let (text, version) = asked.candidate(&app).await?;
        asked.finish()?;
        put_on_sale(&app, asked, text, version, reason).await
    };
    answered(&app, reading::guarded(outcome).await)
}

async fn roll_back(State(app): State<Arc<App>>, Path(number): Path<String>, request: Request) -> Response {
    let outcome = async {
        let mut asked = CandidateRequest::read(&app, request).await?;
        let reason = asked.form.reason()?;
        asked.finish()?;
        let (version, text) = stored(&app, numbered(&number)?).await?;
        put_on_sale(&app, asked, text, Some(version.number), reason).await
    };
    answered(&app, reading::guarded(outcome).await)
}

fn numbered(text: &str) -> Result<i64, Refusal> {
    let missing = || Refusal::about(Code::NotFound, "version", "There is no such version of the catalog.");
    text.parse().map_err(|_| missing())
}

/// Checks, writes, and waits until it is served here. What was published is on sale whether or not
/// anybody waits: every replica follows the row.
async fn put_on_sale(
    app: &Arc<App>,
    asked: CandidateRequest,
    text: CatalogText,
    rolled_back_to: Option<i64>,
    reason: String,
) -> Result<Value, Refusal> {
    asked.operator.must_be_strong()?;
    if app.settings.catalog_source == CatalogSource::File {
        let why = "Not done: what is on sale is what lies in `catalog_dir` (catalog_source = \"file\"). Change the files there, or set catalog_source = \"database\" and start again.";
        return Err(Refusal::new(Code::Conflict, why));
    }
    let seen = changes::seen(&asked.parts, true)?;
    let done = Attribution { request: Some(asked.id.clone()), ..Attribution::by(asked.operator.actor(), reason) };
    let work = async {
        let current = app.store.catalog_head().await?.map(|(_, hash)| hash);
        // `*` is whatever is there; between this look and the write it stays that, or nothing is
        // done.
        let seen = seen.or_else(|| current.clone());
        if seen != current {
            return Err(stale());
        }
        if current.as_deref() == Some(&*text.hash) {
            return Err(Refusal::new(Code::Conflict, "Not done: this catalog is on sale already."));
        }
        let (hash, files) = (text.hash.clone(), text.to_json().to_string());
        let prices = with_candidate(app, text, |app, _, checked| {
            let catalog = checked.map_err(|mistakes| invalid(&mistakes))?.serving.catalog;
            Ok::<_, Refusal>((catalog.pricing_version(app.world.now_ms()).to_owned(), catalog.models.len()))
        });
        let (pricing_version, models): (String, usize) = prices.await??;
        let models = i64::try_from(models).unwrap_or(i64::MAX);
        let new = NewCatalogVersion { hash, files, pricing_version, models, rolled_back_to };
        let published = app.store.publish_catalog(new, seen, done).await?.ok_or_else(stale)?;
        tracing::info!(version = published.number, actor = published.actor, "a catalog was published");
        let in_force = taken_over(app, published.number).await;
        Ok(published_json(&published, in_force))
    };
    changes::once(app, asked.operator.actor(), &asked.parts, &asked.body, work).await
}

fn stale() -> Refusal {
    let why = "Another catalog is on sale than the one that was looked at. Nothing was published; look at it again.";
    Refusal::about(Code::PreconditionFailed, "If-Match", why)
}

/// Whether it is served here, or something that came after it.
async fn taken_over(app: &App, version: i64) -> bool {
    app.publishing.ring();
    let served = async {
        while app.serving.load().text.version.is_none_or(|served| served < version) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TAKEN_OVER, served).await.is_ok()
}

fn published_json(published: &CatalogVersion, in_force: bool) -> Value {
    let mut shown = json!(published);
    shown["object"] = json!("catalog.version");
    shown["etag"] = json!(etag(&published.hash));
    shown["in_force_here"] = json!(in_force);
    shown
}

async fn versions(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        let given = query(&parts, &[BEFORE, super::PAGE])?;
        let limit =
            given.get("limit").and_then(Value::as_u64).and_then(|limit| u32::try_from(limit).ok()).unwrap_or(50);
        let rows = app.store.catalog_versions(given.get("before").and_then(Value::as_i64), limit + 1).await?;
        let page = AnswerPage { limit, by: "version", next: "next_before", after: None };
        Ok(page.of_answer(json!(rows)))
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

async fn version(State(app): State<Arc<App>>, Path(number): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        query(&parts, &[])?;
        let missing = || Refusal::about(Code::NotFound, "version", "There is no such version of the catalog.");
        let version = app.store.catalog_version(numbered(&number)?).await?.ok_or_else(missing)?;
        let text = app.store.catalog_text(&version.hash).await?;
        let mut shown = json!(version);
        let text = text.and_then(|text| CatalogText::stored(&text, version.number));
        shown["files"] = json!(text.map(|text| text.to_json()));
        Ok(shown)
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

fn schemas() -> Value {
    let files = json!({ "type": "object", "maxProperties": crate::sale::MOST_CATALOG_FILES, "additionalProperties": { "type": ["string", "null"] },
        "description": "The text of each file, by its name such as models.toml; `null` takes one away where `merge` is true" });
    let merge = json!({ "type": "boolean", "description": "The files are laid over those on sale; else they are all there are" });
    let version =
        json!({ "type": "integer", "minimum": 1, "description": "A version that was published, instead of `files`" });
    let candidate = |more: Value, required: &[&str]| {
        let mut properties = json!({ "files": files, "merge": merge, "version": version });
        for (name, schema) in more.as_object().into_iter().flatten() {
            properties[name] = schema.clone();
        }
        json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
    };
    let call = json!({ "type": "object", "required": ["endpoint", "body"], "additionalProperties": false, "properties": {
        "endpoint": { "type": "string", "description": "The path of a paid endpoint" },
        "body": { "type": "object", "description": "The body of the call" },
        "use": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 }, "description": "What it uses, for exact prices instead of upper bounds" },
    } });
    let calls = json!({ "type": "array", "maxItems": super::catalog_preview::MOST_CALLS, "items": call,
        "description": "Calls to price before and after; left out: one for each model that changes" });
    let fields = ["version", "hash", "pricing_version", "published_at_ms", "actor", "reason"];
    let next = json!({ "type": ["integer", "null"] });
    let mut all = json!({
        "CatalogCandidate": candidate(json!({}), &[]),
        "CatalogPublishRequest": candidate(json!({ "reason": super::REASON.schema() }), &["reason"]),
        "CatalogPreviewRequest": candidate(json!({
            "calls": calls, "group": { "type": "string", "description": "The price group; `default`" },
            "paid": { "type": "boolean", "description": "At the prices of accounts that have topped up" },
        }), &[]),
        "CatalogOnSale": record("What is on sale", &["object", "source", "version", "hash", "etag", "pricing_version", "models", "file_names"]),
        "CatalogCheck": record("Whether a candidate can be served", &["ok", "hash", "mistakes", "warnings"]),
        "CatalogDiff": record("What a candidate changes", &["same", "hash", "old_pricing_version", "new_pricing_version", "changes", "files"]),
        "CatalogPreview": record("What a candidate changes for customers", &["new_models", "gone_models", "dearer", "cheaper", "changes", "examples"]),
        "CatalogVersion": record("A catalog that was published", &fields),
        "CatalogPublished": record("A catalog that is on sale now", &fields),
        "CatalogVersionPage": page("CatalogVersion", "next_before", &next),
    });
    for more in [presets::shipped_schemas(), catalog_draft::schemas()] {
        more.as_object().into_iter().flatten().for_each(|(name, schema)| all[name] = schema.clone());
    }
    all
}
