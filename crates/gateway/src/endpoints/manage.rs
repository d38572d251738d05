//! `/api/account/*`: what an account's owner does with it, by the same verbs that operators have
//! (`admin/`), about one account alone. What is read as under `/v1` is read by the same functions.

use super::account::{call_detail, row_json, usage_within, with_runs};
use super::admin::field::{FieldKind, VerbField, may};
use super::admin::schemas::{page, record};
use super::admin::{accounts, alerts, house, keys};
use super::changes;
use super::openapi::shapes::{named, number};
use super::reading::{self, base};
use super::receipts::receipt_of;
use super::row::{Access, Family, MembersSee, Row};
use super::usage_sums::{own_export_row, own_sums_row, usage_asked};
use super::video_tasks;
use crate::app::App;
use crate::refusal::Refusal;
use crate::who::holder::{self, AccountHolder, AccountRole};
use crate::work::video::show::{self, ShownTask};
use crate::work::video::webhooks;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::Method;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_store::{Attribution, CallId, TaskId, TaskPage, UsageSearch};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "account: managing", rows, schemas };

const VIEWER: AccountRole = AccountRole::Viewer;
const MEMBER: AccountRole = AccountRole::Member;
const OWNER: AccountRole = AccountRole::Owner;

fn rows() -> Vec<Row> {
    let mut rows = of_account();
    rows.extend(of_calls());
    rows
}

/// The account itself, its money and its keys.
fn of_account() -> Vec<Row> {
    let (all, one) = ("/api/account/keys", "/api/account/keys/{key}");
    vec![
        accounts::SHOW
            .own(Method::GET, "/api/account", VIEWER, "The account: balance, limits, groups")
            .gives(named("Account")),
        accounts::RENAME
            .own(Method::PATCH, "/api/account", OWNER, "Changes the name of the account, and what its members see")
            .gives(named("Account")),
        accounts::CLOSE_OWN
            .own(
                Method::POST,
                "/api/account/close",
                OWNER,
                "Closes the account; a session that was proved again, no key",
            )
            .gives(named("Account")),
        accounts::HISTORY
            .own(
                Method::GET,
                "/api/account/history",
                VIEWER,
                "Top-ups, adjustments, refunds and expired credit, newest first",
            )
            .gives(named("EventPage"))
            .to_members(MembersSee::Nothing),
        accounts::EXPIRING
            .own(Method::GET, "/api/account/expiring", VIEWER, "Trial credit that will expire, the earliest first")
            .gives(named("List")),
        house::OWN_AUDIT
            .own(Method::GET, "/api/account/audit", OWNER, "Who changed what in the account, newest first")
            .gives(named("AuditPage")),
        keys::LIST
            .own(Method::GET, all, VIEWER, "The keys of the account")
            .gives(named("KeyPage"))
            .to_members(MembersSee::OwnKeys),
        keys::CREATE
            .own(Method::POST, all, MEMBER, "A new key that makes calls; its secret is shown once")
            .gives(named("NewKey")),
        keys::CHANGE.own(Method::PATCH, one, MEMBER, "Changes what a key may do").gives(named("Key")),
        keys::REVOKE
            .own(Method::POST, "/api/account/keys/{key}/revoke", MEMBER, "Ends a key for good")
            .gives(named("Key")),
        keys::ROTATE
            .own(
                Method::POST,
                "/api/account/keys/{key}/rotate",
                MEMBER,
                "A new secret of a key, shown once; the one before works a while longer",
            )
            .gives(named("NewKey")),
    ]
}

/// What was used, and who hears of it.
fn of_calls() -> Vec<Row> {
    let view = Access::Account(VIEWER);
    let resend = "/api/account/webhooks/deliveries/{task}/resend";
    vec![
        Row::get(
            "/api/account/usage",
            view,
            usage,
            "The usage log by time, model, key, endpoint or ending, newest first",
        )
        .with(usage_parameters)
        .gives(named("UsageList"))
        .to_members(MembersSee::OwnKeys),
        own_sums_row("/api/account/usage/sums"),
        own_export_row("/api/account/usage/export"),
        super::account_export::row(),
        Row::get("/api/account/usage/{call_id}", view, call, "One call with its price and charge")
            .gives(named("Usage"))
            .to_members(MembersSee::OwnKeys),
        Row::get("/api/account/usage/{call_id}/receipt", view, receipt, "The signed receipt of a call that has ended")
            .gives(named("Receipt"))
            .refused_with(&[409])
            .to_members(MembersSee::OwnKeys),
        Row::get("/api/account/tasks", view, tasks, "The tasks of the account, newest first")
            .with(|| vec![number("limit", 1, 100, 20), after()])
            .gives(named("List"))
            .to_members(MembersSee::OwnKeys),
        accounts::WEBHOOK
            .own(
                Method::PUT,
                "/api/account/webhooks",
                OWNER,
                "Where the account hears of all its tasks; `null`: nowhere",
            )
            .gives(named("Account")),
        alerts::NOTICE_SHOW
            .own(Method::GET, "/api/account/notices", VIEWER, "Below which balance the account hears of it")
            .gives(named("BalanceNotice")),
        alerts::NOTICE_SET
            .own(
                Method::PUT,
                "/api/account/notices",
                OWNER,
                "Below which balance owners and webhook hear of it; `null`: never",
            )
            .gives(named("BalanceNotice")),
        Row::get(
            "/api/account/webhooks/secret",
            Access::Account(OWNER),
            secret,
            "What the account verifies webhooks with",
        )
        .gives(named("WebhookSecret")),
        Row::get("/api/account/webhooks/deliveries", view, deliveries, "The newest tries to deliver webhooks")
            .with(|| vec![number("limit", 1, 500, 50), before()])
            .gives(named("DeliveryPage"))
            .to_members(MembersSee::OwnKeys),
        Row::post(resend, Access::Account(OWNER), resend_one, "Sends the news of a finished task again")
            .with(|| changes::parameters(false, false))
            .gives(named("Resent"))
            .refused_with(&[409]),
    ]
}

/// Finds who asks, runs, and turns a refusal into a reply.
pub(super) async fn look(
    app: &Arc<App>,
    request: Request,
    role: AccountRole,
    work: impl AsyncFnOnce(AccountHolder, Parts) -> Result<Response, Refusal>,
) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = reading::guarded(async {
        let holder = holder::authenticate(&app.register(), &parts).await?;
        holder.must_be(role)?;
        work(holder, parts).await
    });
    outcome.await.unwrap_or_else(|refusal| reading::refused(app, ErrorFormat::OpenAi, refusal, ""))
}

/// A list with a mark for its next page.
fn paged(mut data: Vec<Value>, limit: u32, next: &str, by: &str) -> Value {
    let more = data.len() > limit as usize;
    data.truncate(limit as usize);
    let mark = more.then(|| data.last().map(|row| row[by].clone())).flatten();
    let mut shown = json!({ "object": "list", "data": data, "has_more": more });
    shown[next] = json!(mark);
    shown
}

async fn usage(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, VIEWER, async |holder, parts| {
        let reach = holder.reach();
        let asked = usage_asked(parts.uri.query().unwrap_or(""), reach, app.world.now_ms())?;
        let (from_ms, to_ms) = asked.query.range_ms();
        let (filter, limit) = (asked.query.filter().clone(), asked.limit);
        let rows = match asked.call {
            Some(call) => usage_within(&app, reach, call).await?.into_iter().collect(),
            None => {
                let search = UsageSearch { filter, from_ms, to_ms, before: asked.before, limit: limit + 1 };
                app.store.usage_search(search).await?
            }
        };
        let mut data: Vec<Value> = rows.iter().map(row_json).collect();
        with_runs(&app, &rows, &mut data).await?;
        Ok(reading::json(&paged(data, limit, "next_before", "call_id")))
    })
    .await
}

async fn call(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    look(&app, request, VIEWER, async |holder, _| call_detail(&app, holder.reach(), &id).await).await
}

async fn receipt(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    look(&app, request, VIEWER, async |holder, _| receipt_of(&app, holder.reach(), &id).await).await
}

async fn tasks(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, VIEWER, async |holder, parts| {
        let mut query = VerbQuery::read(&parts, &[("limit", LIMIT_100), ("after", TASK)])?;
        let limit = query.number("limit", 20);
        let after = query.text("after").map(|id| id.parse::<TaskId>()).transpose();
        let after = after.map_err(|_| wrong("after", "the id of the last task of the page before"))?;
        let page = TaskPage { after, limit: limit + 1, oldest_first: false };
        let mut tasks = app.store.tasks(holder.reach(), page).await?;
        let more = tasks.len() > limit as usize;
        tasks.truncate(limit as usize);
        let base = base(&app, &parts);
        let shown: Vec<ShownTask> = tasks.iter().map(|task| ShownTask::of(&app.video, Some(&base), task)).collect();
        Ok(video_tasks::json_bytes(show::page(&shown, more)))
    })
    .await
}

async fn secret(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, OWNER, async |holder, _| {
        let all = webhooks::secrets(&app.video, holder.id());
        Ok(reading::json(&json!({ "object": "webhook.secret", "secret": all.first(), "secrets": all })))
    })
    .await
}

async fn deliveries(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, VIEWER, async |holder, parts| {
        let mut query = VerbQuery::read(&parts, &[("limit", LIMIT_500), ("before", SEQ)])?;
        let limit = query.number("limit", 50);
        let before = query.0.remove("before").and_then(|before| before.as_i64());
        let rows = app.store.deliveries(holder.reach(), before, limit + 1).await?;
        Ok(reading::json(&paged(rows.iter().map(|row| json!(row)).collect(), limit, "next_before", "seq")))
    })
    .await
}

async fn resend_one(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let name = app.new_call_id().to_string();
    let reply = look(&app, request, OWNER, async |holder, parts| {
        holder.may_change()?;
        changes::admit(&app, holder.id()).await?;
        VerbQuery::read(&parts, &[])?;
        let work = async {
            let missing = || video_tasks::unknown(&id);
            let task: TaskId = id.parse().map_err(|_| missing())?;
            let found = app.store.task(holder.id(), task).await?.ok_or_else(missing)?;
            if !found.state.is_final() {
                return Err(Refusal::new(Code::CallInProgress, "The task has not ended yet: there is no news of it."));
            }
            let url = found.webhook_url.or_else(|| webhooks::of_account(&app.video, &holder.account));
            let nowhere =
                || Refusal::new(Code::Conflict, "Nobody is to hear of it: the account has no webhook address.");
            let url = url.ok_or_else(nowhere)?;
            let sent = app.store.resend_webhook(holder.id(), task, url).await?;
            let done = Attribution { request: Some(name.clone()), ..Attribution::by(holder.actor.clone(), "") };
            app.store.note_audit(&done, "webhook.resend", &task.to_string(), Some(holder.id()), "").await?;
            Ok(json!({ "object": "webhook.resent", "task_id": task, "sent": sent }))
        };
        Ok(reading::json(&changes::once(&app, holder.id().to_string(), &parts, b"", work).await?))
    })
    .await;
    changes::named(reply, &name, None)
}

const LIMIT_100: FieldKind = FieldKind::Number(1, 100);
const LIMIT_500: FieldKind = FieldKind::Number(1, 500);
const SEQ: FieldKind = FieldKind::Number(1, i64::MAX);
const TASK: FieldKind = FieldKind::Text(64);

/// The words of a query: those there are, each once, as they must be.
struct VerbQuery(serde_json::Map<String, Value>);

impl VerbQuery {
    fn read(parts: &Parts, known: &'static [(&'static str, FieldKind)]) -> Result<VerbQuery, Refusal> {
        let fields: Vec<VerbField> = known.iter().map(|(name, kind)| may(name, *kind, "")).collect();
        super::admin::query(parts, &fields).map(VerbQuery)
    }

    fn number(&mut self, name: &str, default: u32) -> u32 {
        self.0.remove(name).and_then(|number| u32::try_from(number.as_i64()?).ok()).unwrap_or(default)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).and_then(|text| text.as_str().map(str::to_owned))
    }
}

pub(super) fn wrong(name: &str, wanted: &str) -> Refusal {
    Refusal::about(Code::InvalidParameter, name, format!("`{name}` is {wanted}."))
}

pub(super) fn call_id(name: &str, text: &str) -> Result<CallId, Refusal> {
    text.parse().map_err(|_| wrong(name, "the id of a call"))
}

fn after() -> Value {
    json!({ "name": "after", "in": "query", "description": "The id of the last task of the page before", "schema": { "type": "string", "pattern": "^task_[0-7][0-9a-hjkmnp-tv-z]{25}$" } })
}

fn before() -> Value {
    json!({ "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": { "type": "integer", "minimum": 1 } })
}

fn usage_parameters() -> Vec<Value> {
    let id = json!({ "type": "string", "pattern": "^call_[0-7][0-9a-hjkmnp-tv-z]{25}$" });
    let mut all = super::usage_sums::narrowing();
    all.push(json!({ "name": "call_id", "in": "query", "description": "This call only", "schema": id }));
    all.push(number("limit", 1, 500, 50));
    all.push(
        json!({ "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": id }),
    );
    all
}

fn schemas() -> Value {
    json!({
        "Delivery": record("A try to deliver the news of a task", &["seq", "task_id", "at_ms", "url", "attempt", "outcome"]),
        "DeliveryPage": page("Delivery", "next_before", &json!({ "type": ["integer", "null"] })),
        "Resent": record("News that are due again", &["task_id", "sent"]),
    })
}
