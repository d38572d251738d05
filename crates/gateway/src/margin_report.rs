//! Sums of what was sold and what it cost, for the command line and `/api/admin/margins`.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate_catalog::Money;
use tollgate_store::MarginRow;

/// What rows are added up by: day, model, provider, the provider's name of the model.
type Parts = (Option<i64>, Option<String>, Option<String>, Option<String>);

/// The rows of a store, added up by `day`, `model` or `route`, or as they are.
pub fn margin_report(rows: Value, by: &str) -> Value {
    let rows: Vec<MarginRow> = serde_json::from_value(rows).unwrap_or_default();
    let mut sums: BTreeMap<Parts, MarginRow> = BTreeMap::new();
    for row in rows {
        let model = || Some(row.model.clone());
        let parts: Parts = match by {
            "day" => (Some(row.day), None, None, None),
            "model" => (None, model(), None, None),
            "route" => (None, model(), row.provider.clone(), row.upstream_model.clone()),
            _ => (Some(row.day), model(), row.provider.clone(), row.upstream_model.clone()),
        };
        match sums.get_mut(&parts) {
            Some(sum) => add(sum, &row),
            None => {
                sums.insert(parts, row);
            }
        }
    }
    let data: Vec<Value> = sums.into_iter().map(|(parts, sum)| shown(parts, &sum)).collect();
    json!({ "object": "list", "data": data })
}

fn add(sum: &mut MarginRow, row: &MarginRow) {
    let plus = |a: Money, b: Money| a.checked_add(b).unwrap_or(Money::MAX);
    sum.calls = sum.calls.saturating_add(row.calls);
    sum.cost_unknown = sum.cost_unknown.saturating_add(row.cost_unknown);
    sum.sold = plus(sum.sold, row.sold);
    sum.sold_unknown = plus(sum.sold_unknown, row.sold_unknown);
    sum.cost = plus(sum.cost, row.cost);
}

fn shown((day, model, provider, upstream_model): Parts, sum: &MarginRow) -> Value {
    let day = day.and_then(|day| jiff::Timestamp::from_millisecond(day.checked_mul(86_400_000)?).ok());
    let mut value = json!({
        "calls": sum.calls, "sold_nano_usd": sum.sold.nano(), "cost_nano_usd": sum.cost.nano(),
        "cost_unknown": sum.cost_unknown, "sold_at_unknown_cost_nano_usd": sum.sold_unknown.nano(),
        "margin_nano_usd": sum.margin().map(Money::nano), "sold_usd": sum.sold.to_string(),
        "cost_usd": sum.cost.to_string(), "margin_usd": sum.margin().map(|margin| margin.to_string()),
    });
    let parts = [
        ("day", day.map(|day| day.to_string().chars().take(10).collect())),
        ("model", model),
        ("provider", provider),
        ("upstream_model", upstream_model),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            value[name] = json!(part);
        }
    }
    value
}
