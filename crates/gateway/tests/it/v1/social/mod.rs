//! GET /v1/social/{platform}/{capability} and GET /api/social/catalog, every cell of the shipped table against the simulator.

mod answers;
mod capacity;
mod cells;
mod checks;
mod paging;
mod pauses;
mod quote;

use crate::house::{House, Plan, call_id, error_of};
use reqwest::Response;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use tollgate_catalog::social::{Cell, Kind, Param, SHIPPED};
use tollgate_store::UsageRow;

/// The shipped cells as one file of the catalog.
static CELLS: LazyLock<String> = LazyLock::new(|| SHIPPED.map(|(_, text)| text).join("\n"));

/// A house that sells all cells; what would make 101 calls slow or remembered is off, unless the test says otherwise.
async fn house(social: &str) -> House {
    let calm = "[social]\nretry_pause = \"5ms\"\nno_results_per_hour = 1000000\nno_result_lists = \"0\"\nno_result_things = \"0\"\nauto_pause = false\n";
    let config = if social.is_empty() { calm.to_owned() } else { social.to_owned() };
    House::with(Plan { usd: "100", config, catalog: &CELLS, ..Plan::default() }).await
}

fn cells(house: &House) -> Vec<Arc<Cell>> {
    house.running().app.serving.load().catalog.social.cells().cloned().collect()
}

fn cell(house: &House, platform: &str, capability: &str) -> Arc<Cell> {
    house.running().app.serving.load().catalog.social.cell(platform, capability).expect("a cell").clone()
}

/// A value that passes.
fn good(param: &Param) -> String {
    match param.kind {
        Kind::Text if !param.choices().is_empty() => param.choices()[0].clone(),
        Kind::Text => param.example.clone().unwrap_or_else(|| "7411193113223371043".to_owned()),
        Kind::Integer => param.min.unwrap_or(1).max(1).to_string(),
        Kind::Boolean => "true".to_owned(),
    }
}

/// All that is required and the first member of each group.
fn plain(cell: &Cell) -> Vec<(String, String)> {
    let first = |at: usize| cell.require_one_of.iter().any(|group| group[0] == at);
    let needed = cell.params.iter().enumerate().filter(|(at, param)| param.required || first(*at));
    needed.map(|(_, param)| (param.name.clone(), good(param))).collect()
}

/// The path of a call with its parameters.
fn address(cell: &Cell, params: &[(String, String)]) -> String {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs: Vec<String> =
        params.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    format!("{}?{}", cell.path(), pairs.join("&"))
}

async fn ask(house: &House, cell: &Cell, params: &[(String, String)]) -> Response {
    house.get(&address(cell, params)).send().await.expect("a reply")
}

/// The error, and the row of a call that cost nothing.
async fn free(house: &House, reply: Response) -> (u16, Value, UsageRow) {
    let id = call_id(&reply);
    let (status, error) = error_of(reply).await;
    let row = house.row(id).await;
    assert_eq!((row.charge.nano(), row.status), (0, status), "{error}");
    (status, error, row)
}
