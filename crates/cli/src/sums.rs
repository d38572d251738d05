//! `tollgate usage --from …`: usage and charges added up.

use crate::args::{SumArgs, SumFormat};
use crate::keys::ask;
use crate::show::{Output, print, print_line};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_gateway::csv::csv_line;
use tollgate_store::SumAsk;
use tollgate_store::admin::AdminCommand;

/// What a row can be of, before what it comes to.
const PARTS: [&str; 12] = [
    "hour",
    "day",
    "week",
    "month",
    "account_id",
    "groups",
    "model",
    "key_id",
    "endpoint",
    "ending",
    "provider",
    "upstream_model",
];
const SUMS: [&str; 9] = [
    "requests",
    "input_tokens",
    "output_tokens",
    "charge_nano_usd",
    "refunded_nano_usd",
    "net_nano_usd",
    "cost_nano_usd",
    "cost_unknown",
    "margin_nano_usd",
];
/// Rows of a page.
const PAGE: u32 = 1_000;

pub async fn sums(config: &Path, account: Option<String>, asked: SumArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let report = whole(config, account, &asked).await?;
    if out.json || asked.format == SumFormat::Json {
        print_line(&report.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let rows = rows(&report, asked.format == SumFormat::Table);
    let parts = PARTS.into_iter().filter(|part| rows.iter().any(|row| row.get(part).is_some()));
    let columns: Vec<&str> = parts.chain(SUMS).collect();
    if asked.format == SumFormat::Csv {
        let heads: Vec<Value> = columns.iter().map(|column| json!(column)).collect();
        print(&csv_line(&heads));
        for row in &rows {
            print(&csv_line(columns.iter().map(|column| &row[*column])));
        }
        return Ok(ExitCode::SUCCESS);
    }
    out.table(&report, &rows, &columns);
    Ok(ExitCode::SUCCESS)
}

/// The answer with the rows of all its pages.
async fn whole(config: &Path, account: Option<String>, asked: &SumArgs) -> anyhow::Result<Value> {
    let mut all: Option<Value> = None;
    let mut after = None;
    loop {
        let ask_for = SumAsk {
            account: account.clone(),
            from: asked.from.clone(),
            to: asked.to.clone(),
            tz: asked.tz.clone(),
            by: asked.by.clone(),
            model: asked.model.clone(),
            key: asked.key.clone(),
            endpoint: asked.endpoint.clone(),
            ending: asked.ending.clone(),
            provider: asked.provider.clone(),
            upstream_model: None,
            top: asked.top,
            limit: asked.top.is_none().then_some(PAGE),
            after,
        };
        let mut page = ask(config, AdminCommand::UsageSums { asked: Box::new(ask_for) }).await?;
        after = page["next_after"].as_str().map(str::to_owned);
        if let Some(before) = all {
            let mut rows = before["data"].as_array().cloned().unwrap_or_default();
            rows.extend(page["data"].as_array().cloned().unwrap_or_default());
            page["data"] = json!(rows);
        }
        if after.is_none() {
            return Ok(page);
        }
        all = Some(page);
    }
}

/// The rows of an answer, what is left of them in one, and in a table what they come to.
fn rows(report: &Value, with_totals: bool) -> Vec<Value> {
    let mut rows = report["data"].as_array().cloned().unwrap_or_default();
    let first = |row: &Value| PARTS.into_iter().find(|part| row.get(part).is_some());
    let part = rows.first().and_then(first).unwrap_or("model");
    let mut add = |name: &str, sum: &Value| {
        if sum.is_object() {
            let mut row = sum.clone();
            row[part] = json!(name);
            rows.push(row);
        }
    };
    add("(rest)", &report["rest"]);
    if with_totals {
        add("(total)", &report["totals"]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_and_what_all_comes_to_stand_below() {
        let report = json!({
            "data": [{ "day": "2026-10-01", "model": "m", "requests": 1 }],
            "rest": { "requests": 2 }, "totals": { "requests": 3 },
        });
        let named: Vec<Value> = rows(&report, true).iter().map(|row| row["day"].clone()).collect();
        assert_eq!(named, ["2026-10-01", "(rest)", "(total)"]);
        assert_eq!(rows(&report, false).len(), 2, "a file of rows is added up by whoever reads it");
        let none = json!({ "data": [], "rest": null, "totals": { "requests": 0 } });
        assert_eq!(rows(&none, true), [json!({ "requests": 0, "model": "(total)" })]);
    }
}
