//! Reading, listing and deleting video tasks: `/v1/videos…` in OpenAI's shape,
//! `/v1/video/generations/{id}` in the legacy one. A key sees all tasks of its account, whatever
//! models it may use itself; that of a member sees those of this member. Another's does not exist.

use super::reading::{self, base};
use crate::app::App;
use crate::call::task::refresh;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::video::show::{self, ShownTask};
use crate::work::video::{StoredResult, file};
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, header};
use std::sync::Arc;
use tollgate_media::video;
use tollgate_store::{Task, TaskId, TaskPage, TaskState};
use tollgate_wire::error::{Code, ErrorFormat};

const PAGE: u32 = 20;
const LARGEST_PAGE: u32 = 100;

pub async fn one(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let found = reading::guarded(async {
        let caller = reading::caller(&app, &parts).await?;
        let task = fresh(&app, &caller, &id).await?;
        Ok(json_bytes(ShownTask::of(&app.video, Some(&base(&app, &parts)), &task).openai()))
    });
    found.await.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

pub async fn legacy(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let found = reading::guarded(async {
        let caller = reading::caller(&app, &parts).await?;
        let task = fresh(&app, &caller, &id).await?;
        Ok(json_bytes(ShownTask::of(&app.video, Some(&base(&app, &parts)), &task).legacy()))
    });
    found.await.unwrap_or_else(|refusal| {
        let body = video::legacy_error(refusal.code.code(), &refusal.message);
        let mut reply = reading::refused(&app, ErrorFormat::OpenAi, refusal, "");
        *reply.body_mut() = Body::from(body);
        reply
    })
}

pub async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let found = reading::guarded(async {
        let caller = reading::caller(&app, &parts).await?;
        let page = page(query.as_deref().unwrap_or_default())?;
        let mut tasks =
            app.store.tasks(caller.reach(&app.store).await?, TaskPage { limit: page.limit + 1, ..page }).await?;
        let more = tasks.len() > page.limit as usize;
        tasks.truncate(page.limit as usize);
        let base = base(&app, &parts);
        let shown: Vec<ShownTask> = tasks.iter().map(|task| ShownTask::of(&app.video, Some(&base), task)).collect();
        Ok(json_bytes(show::page(&shown, more)))
    });
    found.await.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

pub async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let found = reading::guarded(async {
        let caller = reading::caller(&app, &parts).await?;
        let task = own(&app, &caller, &id).await?;
        if !task.state.is_final() {
            let text =
                "The task has not ended yet, and its cost is not known; delete it when it is completed or failed.";
            return Err(Refusal::about(Code::CallInProgress, "id", text).after(5));
        }
        // The copy first: once the task is out of sight nobody can ask for it again.
        let copy = task.result.as_deref().and_then(StoredResult::read).and_then(|result| result.copy);
        if let (Some(copies), Some(copy)) = (&app.video.copies, copy)
            && let Err(error) = copies.remove(&copy).await
        {
            tracing::warn!(task = %task.id, %error, "the copy of a video could not be deleted");
            let text = "The stored copy of the video could not be deleted, so the task is still there; try again.";
            return Err(Refusal::about(Code::UpstreamError, "id", text));
        }
        if !app.store.hide_task(caller.account.id, task.id).await? {
            return Err(unknown(&id));
        }
        let reply = json_bytes(video::deleted(&task.id.to_string()));
        // Nobody waits for its maker, who may not answer at all.
        app.tracker.spawn(file::forget(app.video.clone(), task));
        Ok(reply)
    });
    found.await.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

/// A task of the caller's account.
pub async fn own(app: &App, caller: &Caller, id: &str) -> Result<Task, Refusal> {
    let known: TaskId = id.parse().map_err(|_| unknown(id))?;
    let found = app.store.task(caller.account.id, known).await?;
    // What was refused when it was sent never became a task; its caller got the error.
    let task = found.filter(|task| task.state != TaskState::Refused).ok_or_else(|| unknown(id))?;
    if caller.sees(&app.store, task.key).await? { Ok(task) } else { Err(unknown(id)) }
}

/// The same, asked of its provider first where what we know is old.
async fn fresh(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Task, Refusal> {
    Ok(refresh(&app.till, &app.video, own(app, caller, id).await?).await?)
}

pub fn unknown(id: &str) -> Refusal {
    let id: String = id.chars().take(64).collect();
    Refusal::about(Code::TaskNotFound, "id", format!("There is no task `{id}` of this account."))
}

fn page(query: &str) -> Result<TaskPage, Refusal> {
    let mut page = TaskPage { after: None, limit: PAGE, oldest_first: false };
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "limit" => {
                let number = value.parse().ok().filter(|number| (1..=LARGEST_PAGE).contains(number));
                let text = format!("`limit` is a whole number from 1 to {LARGEST_PAGE}.");
                page.limit = number.ok_or_else(|| Refusal::about(Code::InvalidParameter, "limit", text))?;
            }
            "order" => {
                let text = "`order` is asc or desc, by creation.";
                page.oldest_first = match value {
                    "asc" => true,
                    "desc" => false,
                    _ => return Err(Refusal::about(Code::InvalidParameter, "order", text)),
                };
            }
            "after" if !value.is_empty() => {
                let text = "`after` is the id of the last task of the page before.";
                let id = value.parse().map_err(|_| Refusal::about(Code::InvalidParameter, "after", text))?;
                page.after = Some(id);
            }
            _ => {}
        }
    }
    Ok(page)
}

pub fn json_bytes(body: Bytes) -> Response {
    let mut reply = Response::new(Body::from(body));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
