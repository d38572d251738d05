//! `GET /v1/videos/{id}/content`: the finished file, whole or in ranges. Opened with a key of the
//! account, or with a link we have signed. The bytes pass through, or the client is sent to the
//! provider's link, as the operator has set it.

use super::reading;
use super::stored_file::{dressed, from_shelf, outside};
use super::video_tasks::{own, unknown};
use crate::app::App;
use crate::refusal::Refusal;
use crate::settings::Delivery;
use crate::work::shelf::{self, Missing};
use crate::work::video::file::{self, FileOrigin, FileVariant, PassingFile};
use crate::work::video::{StoredPlan, StoredResult, links};
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};
use std::sync::Arc;
use tollgate_store::{Task, TaskId};
use tollgate_upstream::video::OpenFile;
use tollgate_wire::error::{Code, ErrorFormat};

/// What is passed on of the answer that brings the bytes.
const PASSED: &[HeaderName] = &[
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::ACCEPT_RANGES,
    header::ETAG,
    header::LAST_MODIFIED,
];

const MP4: &str = "video/mp4";

pub async fn content(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let query = query.unwrap_or_default();
    match reading::guarded(deliver(&app, &id, &query, &parts)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn deliver(app: &App, id: &str, query: &str, parts: &Parts) -> Result<Response, Refusal> {
    let variant = variant(query)?;
    let task = opened_by(app, id, query, parts).await?;
    let result = file::result(&task)?;
    // A range of something that may have changed could be put together wrongly: the whole is always
    // right.
    let range = parts.headers.get(header::RANGE).filter(|_| !parts.headers.contains_key(header::IF_RANGE));
    if let (Some(copies), Some(copy), FileVariant::Video) = (&app.video.copies, &result.copy, variant) {
        match copies.get(copy, range.and_then(|value| shelf::asked(value.to_str().ok()?))).await {
            Ok(copy) => return Ok(from_shelf(copy, MP4)),
            Err(Missing::Outside(length)) => return Ok(outside(Some(length))),
            // It has been taken away; perhaps the provider still has it.
            Err(Missing::Gone) => {}
            Err(Missing::Trouble(error)) => tracing::warn!(task = %task.id, %error, "a copy could not be read"),
        }
    }
    let plan = StoredPlan::read(&task.plan).ok_or_else(|| unknown(id))?;
    let now = app.world.now_ms().div_euclid(1000);
    let lasts = result.ends(plan.api(), task.ended_at).is_none_or(|ends| ends > now);
    if app.settings.video.delivery == Delivery::Redirect && !result.needs_key && lasts && variant == FileVariant::Video
    {
        return elsewhere(&result);
    }
    let serving = app.serving.load_full();
    let origin = FileOrigin::of(&app.video, &serving, &task, &plan)?;
    Ok(pass(origin.open(result, variant, range).await?))
}

/// The task, if the request has a right to its file: a signature of ours, or a key of its account.
async fn opened_by(app: &App, id: &str, query: &str, parts: &Parts) -> Result<Task, Refusal> {
    let known: Result<TaskId, _> = id.parse();
    if let Ok(known) = known
        && links::check(&app.secrets, known, query, app.world.now_ms().div_euclid(1000))?
    {
        return app.store.any_task(known).await?.ok_or_else(|| unknown(id));
    }
    let caller = reading::caller(app, parts).await?;
    own(app, &caller, id).await
}

fn variant(query: &str) -> Result<FileVariant, Refusal> {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("variant="));
    let text = "`variant` is video, thumbnail or spritesheet.";
    named.map_or(Ok(FileVariant::Video), |name| {
        FileVariant::named(name).ok_or_else(|| Refusal::about(Code::InvalidParameter, "variant", text))
    })
}

fn elsewhere(result: &StoredResult) -> Result<Response, Refusal> {
    let location = HeaderValue::try_from(&result.url)
        .map_err(|_| Refusal::new(Code::UpstreamInvalidReply, "The provider's link cannot be used."))?;
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::FOUND;
    reply.headers_mut().insert(header::LOCATION, location);
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply)
}

/// The length of a file of which another part was asked for than there is.
fn declared_length(opened: &OpenFile) -> Option<u64> {
    opened.headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes */")?.parse().ok()
}

fn pass(opened: OpenFile) -> Response {
    // What a provider says beside it names its hosts and requests.
    if opened.status == 416 {
        return outside(declared_length(&opened));
    }
    let length = opened.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut reply = Response::new(Body::new(PassingFile::new(opened.body, length)));
    *reply.status_mut() = StatusCode::from_u16(opened.status).unwrap_or(StatusCode::OK);
    for name in PASSED {
        if let Some(value) = opened.headers.get(name) {
            reply.headers_mut().insert(name, value.clone());
        }
    }
    dressed(reply, MP4)
}
