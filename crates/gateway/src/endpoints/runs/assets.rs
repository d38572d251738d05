//! `POST /v1/workflows/assets`: a file for a run, uploaded or fetched from a link.
//! `GET /v1/workflows/files/{name}`: such a file, or one that a step made, by a signed link.

use super::replied;
use crate::app::App;
use crate::door::bodies::Whose;
use crate::door::spool::{IN_MEMORY, SpoolTerms};
use crate::endpoints::form::{self, FormRest, FormRules, TakeFile};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::reading;
use crate::endpoints::row::{Access, Row};
use crate::endpoints::stored_file::{from_store, outside};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::files::{Missing, NotStored, Uncopied, asked, link_ended, opens};
use crate::work::run_files::{RUN_FILE_LINK, RunFileName, RunFileWatch, RunFiles};
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::header;
use http::request::Parts;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tollgate_store::AccountId;
use tollgate_upstream::{ByteBudget, SpooledFile};
use tollgate_wire::error::Code;
use tollgate_wire::multipart::PartHead;

/// A form has one file and nothing else.
const RULES: FormRules = FormRules { parts: 4, field_bytes: 1_024, files: 1, file_bytes: 100 << 20, packed: false };

pub fn rows() -> Vec<Row> {
    let file = || json!({ "type": "string", "format": "binary" });
    let taken = json!({ "type": "object", "required": ["file"], "properties": { "file": file() } });
    vec![
        Row::post("/v1/workflows/assets", Access::Key, upload, "Stores a file for runs of workflows")
            .takes_form(taken)
            .or_json(json!({
                "type": "object", "required": ["url"], "additionalProperties": false,
                "properties": { "url": { "type": "string", "description": "A link that is fetched here" } },
            }))
            .gives(named("Asset"))
            .refused_with(&[402, 403]),
        Row::get("/v1/workflows/files/{name}", Access::Public, file_of, "A file of a run, by a signed link")
            .with(|| vec![json!({ "name": "Range", "in": "header", "schema": { "type": "string" } })])
            .replies_with(200, "application/octet-stream", file())
            .replies_with(206, "application/octet-stream", file())
            .replies_bare(416)
            .refused_with(&[403]),
    ]
}

async fn upload(State(app): State<Arc<App>>, request: Request) -> Response {
    let work = async {
        let (parts, body) = request.into_parts();
        let caller = reading::caller(&app, &parts).await?;
        // What is stored for a month is stored for those who can pay for a run.
        reading::reads_large(&app, &caller).await??;
        if is_json(&parts) {
            let stored = linked(&app, &caller, &parts, body).await?;
            return Ok(shown(&app, &parts, &stored));
        }
        let take = |head: &PartHead, _: &[form::FormField], _: Option<FormRest>| match head.name.as_str() {
            "file" => Ok(TakeFile::spooled(RunFileWatch::default(), None)),
            other => {
                let text = format!("`{other}` cannot be a file; only `file` can.");
                Err(Refusal::about(Code::InvalidParameter, other, text))
            }
        };
        let read = Box::pin(form::read(&app, &caller, &parts, body, RULES, take)).await?;
        let missing = || Refusal::about(Code::MissingParameter, "file", "`file` is required.");
        let file = read.files.into_iter().next().ok_or_else(missing)?;
        let (bytes, account) = (file.file.length(), caller.account.id);
        let name = shelve(&app, account, file.file.into_spooled()?, file.watch).await?;
        Ok(shown(&app, &parts, &Asset { name, bytes }))
    };
    replied(&app, work).await
}

/// A file that is stored.
struct Asset {
    name: String,
    bytes: u64,
}

fn shown(app: &App, parts: &Parts, Asset { name, bytes }: &Asset) -> Response {
    let (now, base) = (app.world.now_ms(), reading::base(app, parts));
    let facts = RunFileName::read(name);
    reading::json(&json!({
        "id": name,
        "object": "workflow.asset",
        "bytes": bytes,
        "content_type": facts.map(|facts| facts.mime),
        "seconds": facts.and_then(|facts| facts.millis).map(|millis| millis.div_ceil(1_000)),
        "url": RunFiles::link(&app.secrets, &base, name, now),
        "expires_at": (now + i64::try_from(app.settings.runs.keep.as_millis()).unwrap_or(0)).div_euclid(1_000),
    }))
}

fn is_json(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkedAsset {
    url: String,
}

/// Stores what a link leads to. It is fetched as links of conversations are: never from inside, and
/// no more and no longer than `[fetch]` allows.
async fn linked(app: &Arc<App>, caller: &Caller, parts: &Parts, body: Body) -> Result<Asset, Refusal> {
    let LinkedAsset { url } = super::read(&reading::small_json_body(app, parts, body).await?)?;
    let wrong = |text: String| Refusal::about(Code::InvalidParameter, "url", format!("`url` {text}."));
    let fetcher = &app.conversations.fetcher;
    if !fetcher.settings.links {
        return Err(wrong("is not fetched here; upload the file".to_owned()));
    }
    let unfetched = |why| wrong(fetcher.in_words(why));
    let address = fetcher.client.address(&url).map_err(unfetched)?;
    let most = usize::try_from(RULES.file_bytes).unwrap_or(usize::MAX);
    let (limit, time) = (fetcher.settings.link_bytes.min(most), fetcher.settings.time);
    let turn = tokio::time::timeout(time, fetcher.turns.clone().acquire_owned()).await;
    let Ok(Ok(_turn)) = turn else {
        return Err(Refusal::new(Code::Overloaded, "The gateway is fetching too many files at the moment."));
    };
    let bytes = fetcher.client.fetch_any(&address, limit, &ByteBudget::new(limit), time).await.map_err(unfetched)?;
    let account = caller.account.id;
    let terms = SpoolTerms { whose: Some(whose(account)), most: limit as u64, in_memory: IN_MEMORY };
    let mut spooling = app.spool.begin(terms, RunFileWatch::default()).await?;
    spooling.push(&bytes).await?;
    let spooled = spooling.finish().await?;
    let name = spooled.watch.name(app.new_call_id(), account);
    if RunFileName::read(&name).is_none_or(|facts| !facts.is_media()) {
        return Err(wrong("leads to neither a picture nor audio or video".to_owned()));
    }
    let bytes = spooled.file.length();
    put(app, &name, spooled.file).await?;
    Ok(Asset { name, bytes })
}

/// For whom a file of a run is counted.
pub fn whose(account: AccountId) -> Whose {
    Whose::Account(account)
}

/// Stores a file that was watched; its name.
pub async fn shelve(app: &App, account: AccountId, file: SpooledFile, watch: RunFileWatch) -> Result<String, Refusal> {
    let name = watch.name(app.new_call_id(), account);
    put(app, &name, file).await?;
    Ok(name)
}

async fn put(app: &App, name: &str, file: SpooledFile) -> Result<(), Refusal> {
    let none =
        || Refusal::new(Code::StorageFull, "No files of runs are stored here; `[workflows] copy_to` says where.");
    let run_files = app.run_files.as_ref().ok_or_else(none)?;
    let stopping = app.shutdown.cut.clone();
    let cut = async move {
        stopping.cancelled().await;
        Uncopied::Stopped
    };
    match run_files.put(name, file, app.world.now_ms(), cut).await {
        Ok(()) => Ok(()),
        Err(NotStored::Full) => Err(Refusal::new(
            Code::StorageQuotaExceeded,
            "There is no room for another file of a run; old ones end by themselves.",
        )),
        Err(NotStored::Trouble(error)) => {
            tracing::warn!(%error, "a file of a run could not be stored");
            Err(Refusal::new(Code::StorageFull, "The file could not be stored; try again.").after(5))
        }
    }
}

async fn file_of(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let work = async {
        let (parts, _) = request.into_parts();
        let now = app.world.now_ms().div_euclid(1_000);
        opens(&app.secrets, RUN_FILE_LINK, &name, query.as_deref().unwrap_or_default(), now)?;
        let facts = RunFileName::read(&name).ok_or_else(link_ended)?;
        let run_files = app.run_files.as_ref().ok_or_else(link_ended)?;
        // A range of something that may have changed could be put together wrongly.
        let range = parts.headers.get(header::RANGE).filter(|_| !parts.headers.contains_key(header::IF_RANGE));
        match run_files.get(&name, range.and_then(|value| asked(value.to_str().ok()?))).await {
            Ok(file) => Ok(from_store(file, facts.mime)),
            Err(Missing::Outside(length)) => Ok(outside(Some(length))),
            Err(Missing::Gone) => Err(link_ended()),
            Err(Missing::Trouble(error)) => {
                tracing::warn!(%error, "a file of a run could not be read");
                Err(Refusal::new(Code::Internal, "The file could not be read; try again."))
            }
        }
    };
    replied(&app, work).await
}
