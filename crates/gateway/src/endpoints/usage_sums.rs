//! What was used and charged, added up (`/v1/usage/sums`), and the usage log written out while it
//! is read (`/v1/usage/export`). Operators ask the same of all accounts below `/api/admin`.

use super::account::{answer, row_json, with_runs};
use super::manage::{call_id, look, wrong};
use super::openapi::shapes::{named, nano, text};
use super::reading;
use super::row::{Access, AccessRole, Family, MembersSee, Row};
use crate::app::App;
use crate::csv::csv_line;
use crate::exports::Exporting;
use crate::refusal::Refusal;
use crate::who::holder::AccountRole;
use crate::who::operator;
use axum::body::Body;
use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::social::pairs;
use tollgate_store::{
    CallId, CallReach, Counter, Ending, ExportPage, StoreError, SumAsk, SumFault, SumQuery, SumViewer,
    USAGE_EXPORT_PAGE, UsageRow, WrongSum,
};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "usage added up", rows, schemas };

fn rows() -> Vec<Row> {
    let sums = "Usage and charges added up by time, model, key, endpoint or ending, in any time zone";
    vec![
        Row::get("/v1/usage/sums", Access::Key, own_sums, sums)
            .with(sum_parameters)
            .gives(named("UsageSums"))
            .to_members(MembersSee::OwnKeys),
        Row::get("/v1/usage/export", Access::Key, own_export, "The usage log as CSV or JSON lines")
            .with(export_parameters)
            .gives_one_of(export_media())
            .to_members(MembersSee::OwnKeys),
    ]
}

/// The row of operators, which stands with their books.
pub(super) fn operators_export() -> Row {
    let summary = "The usage log of one account or of all as CSV or JSON lines";
    Row::get("/api/admin/usage/export", Access::Role(AccessRole::Operator), all_export, summary)
        .with(|| [export_parameters(), operators_parameters()].concat())
        .gives_one_of(export_media())
}

/// What a question about sums can be narrowed by and how it is cut, besides what it is grouped by.
const SHARED: [&str; 7] = ["from", "to", "tz", "model", "key", "endpoint", "ending"];
const OF_SUMS: [&str; 4] = ["by", "top", "limit", "after"];
const OF_OPERATORS: [&str; 3] = ["account", "provider", "upstream_model"];

/// How a log is written out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportForm {
    Csv,
    JsonLines,
}

async fn own_sums(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    answer(&app, request, async |caller| {
        sums_of(&app, query.as_deref().unwrap_or(""), caller.reach(&app.store).await?).await
    })
    .await
}

async fn own_export(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    answer(&app, request, async |caller| {
        let (ask, form) = asked(query.as_deref().unwrap_or(""), &[&SHARED[..], &["format"]])?;
        export(&app, &ask, form, caller.reach(&app.store).await?.viewer()).await
    })
    .await
}

async fn all_export(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        let (ask, form) = asked(query.as_deref().unwrap_or(""), &[&SHARED[..], &OF_OPERATORS, &["format"]])?;
        export(&app, &ask, form, SumViewer::Operator).await
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

/// The same for whoever manages the account.
pub(super) fn own_sums_row(path: &'static str) -> Row {
    let sums = "Usage and charges added up by time, model, key, endpoint or ending, in any time zone";
    Row::get(path, Access::Account(AccountRole::Viewer), holders_sums, sums)
        .with(sum_parameters)
        .gives(named("UsageSums"))
        .to_members(MembersSee::OwnKeys)
}

pub(super) fn own_export_row(path: &'static str) -> Row {
    Row::get(path, Access::Account(AccountRole::Viewer), holders_export, "The usage log as CSV or JSON lines")
        .with(export_parameters)
        .gives_one_of(export_media())
        .to_members(MembersSee::OwnKeys)
}

async fn holders_sums(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    look(&app, request, AccountRole::Viewer, async |holder, _| {
        sums_of(&app, query.as_deref().unwrap_or(""), holder.reach()).await
    })
    .await
}

async fn holders_export(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    look(&app, request, AccountRole::Viewer, async |holder, _| {
        let (ask, form) = asked(query.as_deref().unwrap_or(""), &[&SHARED[..], &["format"]])?;
        export(&app, &ask, form, holder.reach().viewer()).await
    })
    .await
}

async fn sums_of(app: &App, query: &str, reach: CallReach) -> Result<Response, Refusal> {
    let (ask, _) = asked(query, &[&SHARED[..], &OF_SUMS])?;
    let query = ask.checked(reach.viewer(), app.world.now_ms()).map_err(wrong_sum)?;
    Ok(reading::json(&app.store.usage_sums(&query).await.map_err(not_added_up)?))
}

/// Which rows of the log are wanted.
pub(super) struct UsageAsked {
    pub query: SumQuery,
    pub call: Option<CallId>,
    pub before: Option<CallId>,
    pub limit: u32,
}

/// The words of a question about rows; without a time it is about all there are.
pub(super) fn usage_asked(query: &str, reach: CallReach, now_ms: i64) -> Result<UsageAsked, Refusal> {
    let mut rest = Vec::new();
    let (mut call, mut before, mut limit) = (None, None, 50);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "call_id" => call = Some(call_id(name, value)?),
            "before" => before = Some(call_id(name, value)?),
            "limit" => {
                let number = value.parse().ok().filter(|limit| (1..=500).contains(limit));
                limit = number.ok_or_else(|| wrong(name, "a number from 1 to 500"))?;
            }
            _ => rest.push(pair),
        }
    }
    let (mut ask, _) = asked(&rest.join("&"), &[&SHARED])?;
    ask.from.get_or_insert_with(|| "2020-01-01".to_owned());
    let query = ask.checked(reach.viewer(), now_ms).map_err(wrong_sum)?;
    Ok(UsageAsked { query, call, before, limit })
}

/// What rows are narrowed by; none is required.
pub(super) fn narrowing() -> Vec<Value> {
    let mut all = range_parameters();
    all.iter_mut().for_each(|parameter| parameter["required"] = json!(false));
    all
}

/// The words of a query. One that is not known is refused, and so is one that is said twice.
fn asked(query: &str, known: &[&[&str]]) -> Result<(SumAsk, ExportForm), Refusal> {
    let all = pairs(query).map_err(|_| Refusal::new(Code::InvalidRequest, "The query string cannot be read."))?;
    let mut words = serde_json::Map::new();
    let mut form = ExportForm::JsonLines;
    for (name, value) in all {
        if !known.iter().any(|some| some.contains(&name.as_ref())) {
            let name: String = name.chars().take(64).collect();
            let why = format!("`{name}` is not a parameter of this endpoint.");
            return Err(Refusal::about(Code::UnknownParameter, &name, why));
        }
        let wrong = |why: &str| Refusal::about(Code::InvalidParameter, &name, format!("`{name}` is {why}."));
        let read = match name.as_ref() {
            "format" => {
                form = match value.as_ref() {
                    "csv" => ExportForm::Csv,
                    "jsonl" => ExportForm::JsonLines,
                    _ => return Err(wrong("`csv` or `jsonl`")),
                };
                Value::Null
            }
            "top" | "limit" => json!(value.parse::<u32>().map_err(|_| wrong("a number from 1 to 1000"))?),
            _ => json!(value),
        };
        if words.insert(name.to_string(), read).is_some() {
            return Err(wrong("given twice"));
        }
    }
    words.remove("format");
    let ask = serde_json::from_value(Value::Object(words));
    Ok((ask.map_err(|_| Refusal::new(Code::InvalidRequest, "The query string cannot be read."))?, form))
}

/// What is wrong with a question, to who asked it.
pub(super) fn wrong_sum(wrong: WrongSum) -> Refusal {
    let code = match wrong.fault {
        SumFault::Missing => Code::MissingParameter,
        SumFault::Unknown => Code::UnknownParameter,
        SumFault::Invalid => Code::InvalidParameter,
    };
    Refusal::about(code, wrong.field, format!("{wrong}."))
}

/// Why a question has no answer.
fn not_added_up(error: StoreError) -> Refusal {
    match error {
        StoreError::Conflict(why) => Refusal::about(Code::InvalidParameter, "by", format!("`by` is too fine: {why}.")),
        other => other.into(),
    }
}

/// A log that is being written out, a page at a time, as fast as its reader reads.
struct Export {
    app: Arc<App>,
    page: ExportPage,
    form: ExportForm,
    for_operator: bool,
    /// Rows that are read and not written.
    rows: Vec<UsageRow>,
    begun: bool,
    place: Exporting,
}

async fn export(app: &Arc<App>, ask: &SumAsk, form: ExportForm, viewer: SumViewer) -> Result<Response, Refusal> {
    let query = ask.checked(viewer, app.world.now_ms()).map_err(wrong_sum)?;
    let of = match viewer {
        SumViewer::Customer(account) | SumViewer::Person(account, _) => Some(account),
        SumViewer::Operator => None,
    };
    let busy = || Refusal::new(Code::Overloaded, "Too many exports are being read; try again when one has ended.");
    let place = app.exports.begin(of, app.world.now_ms()).ok_or_else(|| busy().after(10))?;
    let (from_ms, to_ms) = query.range_ms();
    let page = ExportPage { filter: query.filter().clone(), from_ms, to_ms, after: None, limit: USAGE_EXPORT_PAGE };
    // A store that is away is said with a status, while there is none yet.
    let rows = app.store.usage_export(page.clone()).await?;
    let for_operator = viewer == SumViewer::Operator;
    let export = Export { app: app.clone(), page, form, for_operator, rows, begun: false, place };
    let pieces = stream::try_unfold(Some(export), async |export| match export {
        Some(export) => export.piece().await,
        None => Ok(None),
    });
    let mut reply = Response::new(Body::from_stream(pieces));
    let (media, name) = match form {
        ExportForm::Csv => ("text/csv; charset=utf-8; header=present", "attachment; filename=\"usage.csv\""),
        ExportForm::JsonLines => ("application/jsonl", "attachment; filename=\"usage.jsonl\""),
    };
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(reply)
}

impl Export {
    /// The next piece, and what is left to write. A store that goes away breaks the stream off:
    /// what was read of it does not look whole.
    async fn piece(mut self) -> Result<Option<(Bytes, Option<Export>)>, StoreError> {
        if !self.place.goes_on(self.app.world.now_ms()) {
            return Err(StoreError::Conflict("the export was read too slowly, and another has its place".to_owned()));
        }
        let last = (self.rows.len() as u64) < u64::from(self.page.limit);
        let rows = std::mem::take(&mut self.rows);
        let first = !std::mem::replace(&mut self.begun, true);
        let text = written(&self.app, &rows, (self.form, self.for_operator), first).await?;
        let end = rows.last().map(|row| (row.account, row.call));
        if last {
            return Ok(Some((text.into(), None)));
        }
        self.page.after = end;
        self.rows = self.app.store.usage_export(self.page.clone()).await?;
        Ok(Some((text.into(), Some(self))))
    }
}

/// Rows as they stand in a file; before the first of them the names of the columns.
async fn written(
    app: &App,
    rows: &[UsageRow],
    (form, for_operator): (ExportForm, bool),
    first: bool,
) -> Result<String, StoreError> {
    let mut text = String::new();
    if first && form == ExportForm::Csv {
        text.push_str(&csv_line(&columns(for_operator).iter().map(|name| json!(name)).collect::<Vec<_>>()));
    }
    let mut shown: Vec<Value> =
        rows.iter().map(|row| if for_operator { row.record() } else { row_json(row) }).collect();
    with_runs(app, rows, &mut shown).await?;
    for value in &shown {
        match form {
            ExportForm::JsonLines => text.push_str(&format!("{value}\n")),
            ExportForm::Csv => text.push_str(&csv_row(value, for_operator)),
        }
    }
    Ok(text)
}

/// The same for files that operators have made.
pub(super) async fn operators_text(app: &App, rows: &[UsageRow], csv: bool, first: bool) -> Result<String, StoreError> {
    let form = if csv { ExportForm::Csv } else { ExportForm::JsonLines };
    written(app, rows, (form, true), first).await
}

/// The columns of a line: a name, or the counter of that name.
fn columns(for_operator: bool) -> Vec<&'static str> {
    let first = ["call_id", "account_id", "key_id", "started_at", "started_at_ms", "ended_at_ms", "endpoint", "model"];
    let then = ["ending", "reason", "status", "estimated"];
    let money = ["charge_nano_usd", "charge_usd", "refunded_nano_usd", "write_off_nano_usd", "first_byte_ms", "tier"];
    let own: &[&str] = if for_operator {
        &["provider", "upstream_model", "attempts", "cost_nano_usd", "margin_nano_usd"]
    } else {
        &[]
    };
    let counters = Counter::ALL.map(Counter::name);
    first.iter().chain(&then).chain(&counters).chain(&money).chain(own).chain(&["run_id"]).copied().collect()
}

fn csv_row(value: &Value, for_operator: bool) -> String {
    let at = value["started_at_ms"].as_i64().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let at = json!(at.map(|at| at.to_string()));
    let cells: Vec<&Value> = columns(for_operator)
        .into_iter()
        .map(|name| match name {
            "started_at" => &at,
            name => value.get(name).unwrap_or_else(|| &value["usage"][name]),
        })
        .collect();
    csv_line(cells)
}

fn parameter(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "required": name == "from", "description": about, "schema": schema })
}

fn range_parameters() -> Vec<Value> {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    let endings = json!({ "enum": Ending::ALL.map(Ending::name) });
    vec![
        parameter(
            "from",
            "Calls that began at this time or later: a date (`2026-10-01`), a time (`2026-10-01T09:30`, in the zone, or with an offset) or milliseconds since 1970, at a full quarter of an hour",
            &text(),
        ),
        parameter("to", "Calls that began before this time; left out: now", &text()),
        parameter("tz", "The time zone of dates and spans, such as `Asia/Kathmandu`; UTC where none is given", &text()),
        parameter("model", "Calls of this model only", &name),
        parameter(
            "key",
            "Calls of this key only",
            &json!({ "type": "string", "pattern": "^key_[0-7][0-9a-hjkmnp-tv-z]{25}$" }),
        ),
        parameter("endpoint", "Calls to this endpoint only, such as `/v1/chat/completions`", &name),
        parameter("ending", "Calls that ended so only", &endings),
    ]
}

fn sum_parameters() -> Vec<Value> {
    let most = json!({ "type": "integer", "minimum": 1, "maximum": 1_000 });
    let mut all = range_parameters();
    all.extend([
        parameter("by", "What is grouped by, with commas, four at most: one of `hour`, `day`, `week`, `month`, and `model`, `key`, `endpoint`, `ending`", &text()),
        parameter("top", "The groups with the largest charge, and the rest of them in one; without pages", &most),
        parameter("limit", "Rows of a page; 100 unless said otherwise", &most),
        parameter("after", "`next_after` of the page before", &text()),
    ]);
    all
}

fn export_parameters() -> Vec<Value> {
    let mut all = range_parameters();
    all.push(parameter("format", "`jsonl` unless said otherwise", &json!({ "enum": ["csv", "jsonl"] })));
    all
}

fn operators_parameters() -> Vec<Value> {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    vec![
        parameter(
            "account",
            "Of this account only",
            &json!({ "type": "string", "pattern": "^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$" }),
        ),
        parameter("provider", "Calls of this provider only", &name),
        parameter("upstream_model", "Calls of this model of a provider only", &name),
    ]
}

fn export_media() -> Value {
    json!({ "text/csv": { "schema": text() }, "application/jsonl": { "schema": text() } })
}

fn schemas() -> Value {
    let (text, nano, int) = (text(), nano(), json!({ "type": "integer" }));
    let mean = json!({ "type": ["integer", "null"], "description": "In milliseconds" });
    let of_operators = json!({ "type": ["integer", "null"], "description": "For operators only" });
    json!({
        "UsageSum": { "type": "object", "required": ["requests", "charge_nano_usd", "net_nano_usd", "usage"], "properties": {
            "hour": text, "day": text, "week": text, "month": text, "from_ms": int, "to_ms": int,
            "model": text, "key_id": text, "endpoint": text, "ending": { "enum": Ending::ALL.map(Ending::name) },
            "account_id": text, "groups": text, "provider": text, "upstream_model": text,
            "requests": int, "estimated": int, "input_tokens": int, "output_tokens": int, "usage": { "type": "object" },
            "charge_nano_usd": nano, "charge_usd": text, "refunded_nano_usd": nano, "net_nano_usd": nano, "net_usd": text,
            "write_off_nano_usd": nano, "mean_duration_ms": mean, "mean_first_byte_ms": mean,
            "cost_nano_usd": of_operators, "cost_unknown": of_operators, "margin_nano_usd": of_operators,
        } },
        "UsageSums": { "type": "object", "required": ["object", "from_ms", "to_ms", "tz", "by", "data", "totals", "has_more"], "properties": {
            "object": { "const": "usage_sums" }, "from_ms": int, "to_ms": int, "tz": text,
            "by": { "type": "array", "items": text },
            "data": { "type": "array", "items": named("UsageSum") },
            "rest": { "anyOf": [named("UsageSum"), { "type": "null" }], "description": "What is not among the largest, where `top` was asked for" },
            "totals": named("UsageSum"), "has_more": { "type": "boolean" }, "next_after": { "type": ["string", "null"] },
        } },
    })
}
