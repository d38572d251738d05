//! GET /v1/social/{platform}/{capability} and GET /api/social/catalog, every cell of the shipped
//! table against the simulator.

mod answers;
mod capacity;
mod cells;
mod checks;
mod closed;
mod described;
mod large;
mod left;
mod paging;
mod pauses;
mod probes;
mod quote;
mod repeated;
mod sources;

use crate::house::{House, Plan, call_id, error_of};
use reqwest::Response;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use tollgate_catalog::Money;
use tollgate_catalog::social::{Cell, Param, ParamKind, SHIPPED};
use tollgate_store::{Credit, CreditKind, Limits, NewAccount, NewKey, Pot, UsageRow};

/// The shipped cells as one file of the catalog.
static CELLS: LazyLock<String> = LazyLock::new(|| SHIPPED.map(|(_, text)| text).join("\n"));

/// A house that sells all cells; what would make 101 calls slow or remembered is off, unless the
/// test says otherwise.
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
        ParamKind::Text if !param.choices().is_empty() => param.choices()[0].clone(),
        ParamKind::Text => param.example.clone().unwrap_or_else(|| "7411193113223371043".to_owned()),
        ParamKind::Integer => param.min.unwrap_or(1).max(1).to_string(),
        ParamKind::Boolean => "true".to_owned(),
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

/// A key of another account, which was topped up with so much if it was at all.
async fn other_key(house: &House, topped_up: Option<i64>) -> String {
    let store = &house.running().app.store;
    let account = NewAccount { name: "other".to_owned(), ..NewAccount::default() };
    let account = store.create_account(account).await.expect("an account").id;
    if let Some(nano) = topped_up {
        let id = format!("first-{account}");
        let (reason, actor) = ("test".to_owned(), "test".to_owned());
        let (kind, pot, amount) = (CreditKind::TopUp, Pot::Paid, Money::from_nano(nano));
        store
            .credit(Credit { id, account, kind, pot, amount, expires_at: None, reason, actor })
            .await
            .expect("credited");
    }
    let mut bytes = [0; 24];
    house.running().app.world.fill(&mut bytes);
    let secret = format!("sk-{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let (name, limits) = ("other".to_owned(), Limits::default());
    let key = NewKey { account, name, expires_at: None, models: None, cidrs: None, limits, scope: Default::default() };
    store.create_key(key, &secret).await.expect("a key");
    secret
}

/// The same with another key.
async fn ask_as(house: &House, key: &str, cell: &Cell, params: &[(String, String)]) -> Response {
    house.http.get(house.url(&address(cell, params))).bearer_auth(key).send().await.expect("a reply")
}

/// Asks, and leaves before the answer comes: the source answers once the leaving was noticed.
async fn ask_and_leave(house: &House, cell: &Cell, params: &[(String, String)]) {
    leave_it_open(house, cell, params).await;
    house.sim.open();
}

/// The same, and the source does not answer before the test opens its door.
async fn leave_it_open(house: &House, cell: &Cell, params: &[(String, String)]) {
    let before = house.all_rows().await.len();
    house.sim.shut("/api/");
    house.leave(house.get(&address(cell, params))).await;
    until("the leaving is noticed", async || house.all_rows().await.len() > before).await;
}

/// Waits for what follows a call whose client did not wait for it.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// How the public catalog shows a cell.
async fn listed(house: &House, model: &str) -> Value {
    let catalog: Value =
        house.http.get(house.url("/api/social/catalog")).send().await.expect("a reply").json().await.expect("JSON");
    let cells = catalog["cells"].as_array().expect("cells");
    cells.iter().find(|one| one["model"] == model).expect("the cell").clone()
}

async fn status_of(house: &House, model: &str) -> String {
    listed(house, model).await["status"].as_str().expect("text").to_owned()
}
