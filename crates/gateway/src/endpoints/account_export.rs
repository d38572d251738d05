//! `GET /api/account/export`: everything that an account can read of itself, one JSON line after
//! the other, read page by page while it is written. It begins with what it is and ends with how
//! many lines it has, so that a file that broke off does not look whole.

use super::account::{row_json, with_runs};
use super::admin::house::of_operators;
use super::manage::look;
use super::openapi::shapes::text;
use super::row::{Access, Row};
use super::topups::order_json;
use crate::app::App;
use crate::exports::Exporting;
use crate::refusal::Refusal;
use crate::who::holder::{AccountHolder, AccountRole};
use crate::work::video::show::ShownTask;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use tollgate_store::{
    AccountId, Attribution, AuditPage, CallId, CallReach, EventPage, ExportPage, OrderFilter, OrderId, StoreError,
    TaskId, TaskPage,
};
use tollgate_wire::error::Code;

/// Exports of an account within a day: each reads all there is.
const MOST_A_DAY: u32 = 10;
const DAY_MS: i64 = 86_400_000;
/// Rows of a piece.
const PAGE: u32 = 500;
const NOTED: &str = "account.export";

pub(super) fn row() -> Row {
    let summary = "Everything of the account as JSON lines, without secrets; one at a time, ten a day";
    Row::get("/api/account/export", Access::Account(AccountRole::Owner), export, summary)
        .gives_one_of(json!({ "application/jsonl": { "schema": text() } }))
        .refused_with(&[429, 503])
}

async fn export(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, AccountRole::Owner, async |holder, parts| {
        if parts.uri.query().is_some_and(|query| !query.is_empty()) {
            return Err(Refusal::new(Code::UnknownParameter, "This endpoint takes no parameters."));
        }
        begin(&app, &holder).await
    })
    .await
}

async fn begin(app: &Arc<App>, holder: &AccountHolder) -> Result<Response, Refusal> {
    if !holder.strong {
        let text = "Prove again who you are: POST /api/session/step-up, then within ten minutes this.";
        return Err(Refusal::new(Code::StepUpRequired, text));
    }
    let (account, now) = (holder.id(), app.world.now_ms());
    let busy = || Refusal::new(Code::Overloaded, "An export of this account is being read, or too many of others are.");
    let place = app.exports.begin_whole(account, now).ok_or_else(|| busy().after(10))?;
    let lately = AuditPage {
        before: None,
        limit: MOST_A_DAY,
        account: Some(account),
        actor: None,
        action: Some(NOTED.to_owned()),
        subject: None,
        from_ms: Some(now.saturating_sub(DAY_MS)),
        to_ms: None,
    };
    if app.store.audit_page(lately).await?.len() >= MOST_A_DAY as usize {
        let text = format!("An account is exported {MOST_A_DAY} times within a day; wait.");
        return Err(Refusal::new(Code::RateLimitExceeded, text).because("exports").after(3_600));
    }
    let done = Attribution { person: holder.person, ..Attribution::by(holder.actor.clone(), "") };
    app.store.note_audit(&done, NOTED, &account.to_string(), Some(account), "").await?;
    let export = AccountExport { app: app.clone(), account, now, lines: 0, place };
    let pieces = stream::try_unfold(Some((export, ExportSection::Account)), async |state| match state {
        Some((export, section)) => export.piece(section).await.map(Some),
        None => Ok(None),
    });
    let mut reply = Response::new(Body::from_stream(pieces));
    let name = format!("attachment; filename=\"{account}.jsonl\"");
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.extend(HeaderValue::try_from(name).map(|name| (header::CONTENT_DISPOSITION, name)));
    Ok(reply)
}

/// What is written next, after the last row of the piece before.
enum ExportSection {
    Account,
    Members,
    Keys,
    History(Option<i64>),
    Orders(Option<OrderId>),
    Usage(Option<(AccountId, CallId)>),
    Tasks(Option<TaskId>),
    Deliveries,
    Log(Option<i64>),
    End,
}

struct AccountExport {
    app: Arc<App>,
    account: AccountId,
    now: i64,
    lines: u64,
    place: Exporting,
}

/// A piece, and where the next one begins.
type ExportPiece = (Bytes, Option<(AccountExport, ExportSection)>);

/// The section goes on behind its last row, or the next one begins.
fn onwards<T>(rows: &[T], last: impl FnOnce(&T) -> ExportSection, then: ExportSection) -> ExportSection {
    rows.last().filter(|_| rows.len() >= PAGE as usize).map_or(then, last)
}

impl AccountExport {
    /// A store that goes away breaks the stream off: what was read of it does not look whole.
    async fn piece(mut self, section: ExportSection) -> Result<ExportPiece, StoreError> {
        if !self.place.goes_on(self.app.world.now_ms()) {
            return Err(StoreError::Conflict("the export was read too slowly, and another has its place".to_owned()));
        }
        if matches!(section, ExportSection::End) {
            let text = format!("{}\n", json!({ "type": "end", "lines": self.lines + 1 }));
            return Ok((text.into(), None));
        }
        let mut text = String::new();
        let next = self.write(section, &mut text).await?;
        Ok((text.into(), Some((self, next))))
    }

    fn line(&mut self, text: &mut String, kind: &str, data: &impl Serialize) {
        self.lines += 1;
        let _ = writeln!(text, "{}", json!({ "type": kind, "data": data }));
    }

    async fn write(&mut self, section: ExportSection, text: &mut String) -> Result<ExportSection, StoreError> {
        let (app, account) = (self.app.clone(), self.account);
        let store = &app.store;
        Ok(match section {
            ExportSection::Account => {
                let about = json!({ "format": 1, "account_id": account, "at_ms": self.now });
                self.line(text, "export", &about);
                self.line(text, "account", &store.account(account).await?);
                self.line(text, "notice", &store.balance_notice(account).await?);
                ExportSection::Members
            }
            ExportSection::Members => {
                store.members(account).await?.iter().for_each(|row| self.line(text, "member", row));
                store.invites(Some(account)).await?.iter().for_each(|row| self.line(text, "invite", row));
                ExportSection::Keys
            }
            ExportSection::Keys => {
                store.keys(account).await?.iter().for_each(|row| self.line(text, "key", row));
                ExportSection::History(None)
            }
            ExportSection::History(before) => {
                let rows = store.events(account, EventPage { before, limit: PAGE }).await?;
                rows.iter().for_each(|row| self.line(text, "ledger", row));
                onwards(&rows, |row| ExportSection::History(Some(row.seq)), ExportSection::Orders(None))
            }
            ExportSection::Orders(before) => {
                let asked = OrderFilter { account: Some(account), before, limit: PAGE, ..OrderFilter::default() };
                let rows = store.orders(asked).await?;
                rows.iter().for_each(|row| self.line(text, "order", &order_json(row)));
                onwards(&rows, |row| ExportSection::Orders(Some(row.id)), ExportSection::Usage(None))
            }
            ExportSection::Usage(after) => {
                let (filter, to_ms) = (CallReach::from(account).filter(), self.now.saturating_add(DAY_MS));
                let rows = store.usage_export(ExportPage { filter, from_ms: 0, to_ms, after, limit: PAGE }).await?;
                let mut shown: Vec<Value> = rows.iter().map(row_json).collect();
                with_runs(&app, &rows, &mut shown).await?;
                shown.iter().for_each(|row| self.line(text, "usage", row));
                let last = |row: &tollgate_store::UsageRow| ExportSection::Usage(Some((row.account, row.call)));
                onwards(&rows, last, ExportSection::Tasks(None))
            }
            ExportSection::Tasks(after) => {
                let rows = store.tasks(account, TaskPage { after, limit: PAGE, oldest_first: true }).await?;
                for task in &rows {
                    // Without links: whoever has one sees the video.
                    let shown = ShownTask::of(&app.video, None, task).openai();
                    let shown: Value = serde_json::from_slice(&shown).unwrap_or_default();
                    self.line(text, "task", &shown);
                }
                onwards(&rows, |row| ExportSection::Tasks(Some(row.id)), ExportSection::Deliveries)
            }
            ExportSection::Deliveries => {
                let rows = store.deliveries(account, None, PAGE).await?;
                rows.iter().for_each(|row| self.line(text, "webhook_delivery", row));
                ExportSection::Log(None)
            }
            ExportSection::Log(before) => {
                let rows = store.audit_page(log_page(account, before)).await?;
                for row in &rows {
                    let mut shown = json!(row);
                    of_operators(&mut shown);
                    self.line(text, "log", &shown);
                }
                onwards(&rows, |row| ExportSection::Log(Some(row.seq)), ExportSection::End)
            }
            ExportSection::End => ExportSection::End,
        })
    }
}

fn log_page(account: AccountId, before: Option<i64>) -> AuditPage {
    let (actor, action, subject) = (None, None, None);
    AuditPage { before, limit: PAGE, account: Some(account), actor, action, subject, from_ms: None, to_ms: None }
}
