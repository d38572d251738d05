//! `/api/admin/jobs`: what takes longer than a connection is held open. An audit, an export of the
//! usage log or of the ledger, a provider's bill against our calls, a provider tried out: begun,
//! looked at, cancelled, and the file of an export fetched.

use super::export_file;
use super::field::{FieldKind, VerbField, may};
use super::job_runs::{self, JobWork};
use super::schemas::{page, record};
use super::verb::AnswerPage;
use super::{Form, OPERATOR, REASON, object, query, reply};
use crate::app::App;
use crate::endpoints::openapi::shapes::{named, text};
use crate::endpoints::row::{Family, Row};
use crate::endpoints::{changes, reading};
use crate::refusal::Refusal;
use crate::who::operator;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_store::{Attribution, JobProgress, JobState, OperatorJob};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "operators: jobs", rows, schemas };

/// A bill is a file; the rest is small.
const MOST_BODY: usize = 8 << 20;
const BEFORE: VerbField = may("before", FieldKind::Text(64), "`next_before` of the page before");

fn rows() -> Vec<Row> {
    let jobs = "/api/admin/jobs";
    let files = json!({ "text/csv": { "schema": text() }, "application/jsonl": { "schema": text() } });
    vec![
        Row::post(jobs, OPERATOR, begin, "Begins an audit, an export, a comparison or the test of a provider; one of each kind runs at a time")
            .with(|| changes::parameters(false, false))
            .takes(named("JobRequest"))
            .gives(named("Job"))
            .refused_with(&[409]),
        Row::get(jobs, OPERATOR, list, "The newest jobs of all replicas")
            .with(|| [BEFORE, super::PAGE].iter().map(|field| json!({ "name": field.name, "in": "query", "schema": field.schema() })).collect())
            .gives(named("JobPage")),
        Row::get("/api/admin/jobs/{job}", OPERATOR, one, "One job: whether it runs, how far it is, and what it found")
            .gives(named("Job")),
        Row::post("/api/admin/jobs/{job}/cancel", OPERATOR, cancel, "Stops a job that runs, with a reason")
            .with(|| changes::parameters(false, false))
            .takes(json!({ "type": "object", "required": ["reason"], "additionalProperties": false, "properties": { "reason": REASON.schema() } }))
            .gives(named("Job"))
            .refused_with(&[409]),
        Row::get("/api/admin/jobs/{job}/file", OPERATOR, file, "The file of an export that is done")
            .gives_one_of(files)
            .refused_with(&[409]),
    ]
}

async fn begin(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let id = app.new_call_id().to_string();
    let outcome = async {
        let operator = operator::authenticate(&app.register(), &parts).await?;
        reading::only_json(&parts)?;
        query(&parts, &[])?;
        let body = reading::raw_body(&app, &parts, body, MOST_BODY).await?;
        let mut form = Form(object(&body)?);
        let work = JobWork::read(&app, &mut form)?;
        // An audit takes nothing out of the house.
        let reason = match form.0.contains_key("reason") || !work.is_audit() {
            true => form.reason()?,
            false => String::new(),
        };
        form.finish()?;
        if work.costs_money() {
            operator.must_be_strong()?;
        }
        let done = Attribution { request: Some(id.clone()), ..Attribution::by(operator.actor(), reason) };
        let job = OperatorJob {
            job_id: id.replacen("call_", "job_", 1),
            kind: work.kind().to_owned(),
            state: JobState::Running,
            actor: operator.actor(),
            replica: app.store.replica_name(),
            asked: work.asked(),
            started_at_ms: app.world.now_ms(),
            ended_at_ms: None,
            progress: JobProgress::default(),
            cancel_asked: false,
            result: Value::Null,
        };
        let begun = async {
            let (work, counter) = work.prepared(&app).await?;
            let job = OperatorJob { progress: counter.now(), ..job };
            if !app.store.begin_job(&job, &done).await? {
                let kind = &job.kind;
                let why = format!(
                    "Not done: a job of the kind `{kind}` runs already, or too many do; `GET /api/admin/jobs` shows them."
                );
                return Err(Refusal::new(Code::Conflict, why));
            }
            let token = app.jobs.begin(&job.job_id);
            app.tracker.spawn(job_runs::run(app.clone(), job.job_id.clone(), work, counter, token));
            Ok(json!(job))
        };
        changes::once(&app, operator.actor(), &parts, &body, begun).await
    };
    let outcome = reading::guarded(outcome).await;
    changes::named(reply(&app, outcome), &id, None)
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        let given = query(&parts, &[BEFORE, super::PAGE])?;
        let limit =
            given.get("limit").and_then(Value::as_u64).and_then(|limit| u32::try_from(limit).ok()).unwrap_or(50);
        let jobs = app.store.jobs(given.get("before").and_then(Value::as_str), limit + 1).await?;
        let page = AnswerPage { limit, by: "job_id", next: "next_before", after: None };
        Ok(page.of_answer(json!(jobs)))
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

fn missing() -> Refusal {
    Refusal::about(Code::NotFound, "job", "There is no such job; the newest are stored.")
}

async fn one(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        query(&parts, &[])?;
        Ok(json!(app.store.job(&id).await?.ok_or_else(missing)?))
    };
    let outcome = reading::guarded(outcome).await;
    reply(&app, outcome)
}

async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let request_id = app.new_call_id().to_string();
    let outcome = async {
        let operator = operator::authenticate(&app.register(), &parts).await?;
        query(&parts, &[])?;
        let body = reading::small_json_body(&app, &parts, body).await?;
        let mut form = Form(object(&body)?);
        let reason = form.reason()?;
        form.finish()?;
        let done = Attribution { request: Some(request_id.clone()), ..Attribution::by(operator.actor(), reason) };
        let work = async {
            app.store.job(&id).await?.ok_or_else(missing)?;
            if !app.store.cancel_job(&id, &done).await? {
                return Err(Refusal::new(Code::Conflict, "Not done: the job does not run any more."));
            }
            app.jobs.cancel(&id);
            Ok(json!(app.store.job(&id).await?.ok_or_else(missing)?))
        };
        changes::once(&app, operator.actor(), &parts, &body, work).await
    };
    let outcome = reading::guarded(outcome).await;
    changes::named(reply(&app, outcome), &request_id, None)
}

async fn file(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        query(&parts, &[])?;
        let job = app.store.job(&id).await?.ok_or_else(missing)?;
        fetched(&app, &job).await
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

async fn fetched(app: &Arc<App>, job: &OperatorJob) -> Result<Response, Refusal> {
    let not = |why: &str| Refusal::new(Code::Conflict, format!("Not done: {why}."));
    match (job.kind.as_str(), job.state) {
        ("export", JobState::Done) => {}
        ("export", JobState::Running) => return Err(not("the export is not done yet")),
        ("export", _) => return Err(not("the export came to no end, so there is no file")),
        _ => return Err(not("only exports have a file")),
    }
    let (body, length) = export_file::body(app, &job.job_id).await?;
    let mut reply = Response::new(body);
    let csv = job.asked["format"] == "csv";
    let media = if csv { "text/csv; charset=utf-8; header=present" } else { "application/jsonl" };
    let what = if job.asked["what"] == "ledger" { "ledger" } else { "usage" };
    let name = format!("attachment; filename=\"{what}.{}\"", if csv { "csv" } else { "jsonl" });
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Ok(name) = HeaderValue::try_from(name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(reply)
}

fn schemas() -> Value {
    let moment = json!({ "type": ["string", "integer"], "description": "A date, a time with an offset, or milliseconds since 1970" });
    let decimal = |about: &str| json!({ "type": "string", "description": about });
    let next = json!({ "type": ["string", "null"] });
    json!({
        "JobRequest": { "type": "object", "required": ["kind"], "additionalProperties": false, "properties": {
            "kind": { "enum": ["verify", "export", "reconcile", "provider_test"] },
            "reason": { "type": "string", "minLength": 1, "maxLength": 1000, "description": "Why; required of all but audits" },
            "strict": { "type": "boolean", "description": "verify: nothing is let pass" },
            "what": { "enum": ["usage", "ledger"], "description": "export: which log" },
            "format": { "enum": ["csv", "jsonl"], "description": "export: `jsonl` unless said otherwise" },
            "account": { "type": "string", "description": "export: of this account only" },
            "from": moment, "to": moment,
            "bill": { "type": "string", "description": "reconcile: the provider's bill as CSV with a header, or as JSON lines" },
            "provider": { "type": "string", "description": "reconcile: calls of this provider only; provider_test: which one" },
            "endpoint": { "type": "string", "description": "provider_test: only this, such as chat or images" },
            "model": { "type": "string", "description": "provider_test: the provider's name for a model; left out: the cheapest on sale" },
            "media": { "type": "boolean", "description": "provider_test: what costs more than a word instead: sound, pictures, a video" },
            "plan": { "type": "boolean", "description": "provider_test: says what would be sent and what it may cost, and sends nothing" },
            "ratio": decimal("reconcile: what the provider bills for one dollar of ours; 1"),
            "tolerance": decimal("reconcile: allowed difference in percent; 1"),
            "tolerance_usd": decimal("reconcile: allowed difference in USD; 0.000001"),
            "window": { "type": "string", "description": "reconcile: how far apart times may be where there is no call id; 5m" },
        } },
        "Job": record("Something that was begun", &["job_id", "kind", "state", "started_at_ms", "progress", "result"]),
        "JobPage": page("Job", "next_before", &next),
    })
}
