//! Monthly statements: `/api/account/statements/{month}`, and the operator's of any account.

use super::reading;
use super::row::{Access, AccessRole, Family, MembersSee, Row, no_schemas};
use crate::app::App;
use crate::refusal::Refusal;
use crate::statements::StatementForm;
use crate::who::holder::{self, AccountRole};
use crate::who::operator;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::social::pairs;
use tollgate_store::{AccountId, StatementSpan};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "statements", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    let forms = || {
        let text = json!({ "schema": { "type": "string" } });
        json!({ "application/json": { "schema": { "type": "object" } }, "text/csv": text, "text/html": text,
            "application/pdf": { "schema": { "type": "string", "format": "binary" } } })
    };
    let own = "/api/account/statements/{month}";
    let any = "/api/admin/accounts/{account}/statements/{month}";
    vec![
        Row::get(own, Access::Account(AccountRole::Viewer), of_own, "The statement of a month such as 2026-10")
            .with(words)
            .gives_one_of(forms())
            .to_members(MembersSee::Nothing),
        Row::get(any, Access::Role(AccessRole::Operator), of_any, "The statement of an account and a month")
            .with(words)
            .gives_one_of(forms())
            .refused_with(&[404])
            .carries_out("statement"),
    ]
}

fn words() -> Vec<Value> {
    let names = StatementForm::ALL.map(|(name, _)| name);
    vec![
        json!({ "name": "tz", "in": "query", "description": "The time zone of the month and its days; UTC where none is given", "schema": { "type": "string" } }),
        json!({ "name": "format", "in": "query", "schema": { "enum": names, "default": "json" } }),
    ]
}

async fn of_own(
    State(app): State<Arc<App>>,
    Path(month): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        let holder = holder::authenticate(&app.register(), &parts).await?;
        holder.must_be(AccountRole::Viewer)?;
        holder.must_see_all()?;
        statement(&app, holder.id(), &month, query.as_deref().unwrap_or("")).await
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

async fn of_any(
    State(app): State<Arc<App>>,
    Path((account, month)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        let wrong =
            |_| Refusal::about(Code::InvalidParameter, "account", "`account` is an identifier of the form acct_….");
        let account: AccountId = account.parse().map_err(wrong)?;
        statement(&app, account, &month, query.as_deref().unwrap_or("")).await
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

async fn statement(app: &App, account: AccountId, month: &str, query: &str) -> Result<Response, Refusal> {
    let (mut tz, mut form) = (None, StatementForm::Json);
    let all = pairs(query).map_err(|_| Refusal::new(Code::InvalidRequest, "The query string cannot be read."))?;
    for (name, value) in all {
        match name.as_ref() {
            "tz" => tz = Some(value.into_owned()),
            "format" => {
                let known = StatementForm::ALL.map(|(name, _)| name).join(", ");
                let why = || Refusal::about(Code::InvalidParameter, "format", format!("`format` is one of {known}."));
                form = StatementForm::of(&value).ok_or_else(why)?;
            }
            other => {
                let name: String = other.chars().take(64).collect();
                let why = format!("`{name}` is not a parameter of this endpoint.");
                return Err(Refusal::about(Code::UnknownParameter, &name, why));
            }
        }
    }
    let span = StatementSpan::read(month, tz.as_deref()).map_err(|field| {
        let why = if field == "tz" {
            "`tz` is not a time zone such as Europe/Berlin."
        } else {
            "`month` is a month such as 2026-10."
        };
        Refusal::about(Code::InvalidParameter, field, why)
    })?;
    let missing = || Refusal::about(Code::NotFound, "account", "There is no such account.");
    let found = app.store.statement(account, span).await?.ok_or_else(missing)?;
    let mut reply = Response::new(Body::from(form.write(&found)));
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.media()));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    if matches!(form, StatementForm::Pdf | StatementForm::Csv) {
        let ending = if form == StatementForm::Pdf { "pdf" } else { "csv" };
        let name = format!("attachment; filename=\"statement-{}-{}.{ending}\"", found.account, found.month);
        headers.extend(HeaderValue::try_from(name).map(|name| (header::CONTENT_DISPOSITION, name)));
    }
    Ok(reply)
}
