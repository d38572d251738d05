//! Money in, for operators: `/api/admin/orders` and `/api/admin/codes`.

use super::field::{FieldKind, TIME, VerbField, may, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorVerb, PlannedCommand, ShownAs};
use super::{REASON, TEXT};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::payments::codes;
use serde_json::{Value, json};
use tollgate_store::admin::AdminCommand;
use tollgate_store::{CODES_AT_ONCE, MOST_AT_ONCE, NewCodeBatch, OrderFilter, Pot};

pub const FAMILY: Family = Family { tag: "operators: money in", rows, schemas };

fn rows() -> Vec<Row> {
    let codes = "/api/admin/codes";
    vec![
        ORDERS.get("/api/admin/orders", "Orders of one account or of all, newest first").gives(named("PayOrderPage")),
        ORDER.get("/api/admin/orders/{order}", "One order with all that is known of it").gives(named("PayOrder")),
        FORGIVE
            .post("/api/admin/orders/{order}/forgive", "Lets go of what an account still owes for an order")
            .gives(named("PayOrder")),
        CODES.get(codes, "Batches of redemption codes, newest first").gives(named("CodeBatchPage")),
        CREATE.post(codes, "Makes redemption codes; they are shown in this answer only").gives(named("NewCodeBatch")),
        REVOKE
            .post("/api/admin/codes/{batch}/revoke", "What was not used of a batch works no more")
            .gives(named("CodeBatch")),
    ]
}

const ORDER_ID: VerbField = must("order", FieldKind::Id("ord_"), "The order");
const BATCH_ID: VerbField = must("batch", FieldKind::Id("batch_"), "The batch");
const STATES: FieldKind =
    FieldKind::Word(&["new", "pending", "paid", "credited", "expired", "failed", "refunded", "disputed", "mismatch"]);

static ORDERS: OperatorVerb = OperatorVerb {
    command: "order_list",
    fields: &[
        may("account", FieldKind::Id("acct_"), "Of this account only"),
        may("state", STATES, "In this state only"),
        may("before", FieldKind::Id("ord_"), "`next_before` of the page before"),
        super::PAGE,
    ],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let filter = OrderFilter {
            account: asked.may("account")?,
            state: asked.may("state")?,
            before: asked.may("before")?,
            limit: limit + 1,
        };
        let shown = AnswerPage { limit, by: "order_id", next: "next_before", after: None };
        Ok(PlannedCommand::from(AdminCommand::OrderList { filter }).shown(ShownAs::Page(shown)))
    },
};

static ORDER: OperatorVerb = OperatorVerb {
    command: "order_show",
    fields: &[ORDER_ID],
    plan: |asked| Ok(AdminCommand::OrderShow { order: asked.get("order")? }.into()),
};

static FORGIVE: OperatorVerb = OperatorVerb {
    command: "order_forgive",
    fields: &[ORDER_ID, REASON],
    plan: |asked| Ok(AdminCommand::OrderForgive { order: asked.get("order")?, done: asked.done()? }.into()),
};

static CODES: OperatorVerb = OperatorVerb {
    command: "codes_list",
    fields: &[may("before", FieldKind::Id("batch_"), "`next_before` of the page before"), super::PAGE],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let command = AdminCommand::CodesList { before: asked.may("before")?, limit: limit + 1 };
        let shown = AnswerPage { limit, by: "batch_id", next: "next_before", after: None };
        Ok(PlannedCommand::from(command).shown(ShownAs::Page(shown)))
    },
};

static CREATE: OperatorVerb = OperatorVerb {
    command: "codes_create",
    fields: &[
        must("amount_nano_usd", FieldKind::Number(1, MOST_AT_ONCE.nano()), "What each code is worth"),
        must("count", FieldKind::Number(1, CODES_AT_ONCE as i64), "How many"),
        may("pot", FieldKind::Word(&["trial", "paid"]), "`paid` unless said otherwise"),
        may("per_account", FieldKind::Number(1, CODES_AT_ONCE as i64), "How many of them an account may use; one"),
        may("ends_at_ms", TIME, "When they stop working; left out: never"),
        may("note", TEXT, "For people"),
        REASON,
    ],
    plan: |asked| {
        let count: usize = asked.get("count")?;
        let made: Vec<String> = (0..count).map(|_| codes::new_code(|bytes| asked.app.world.fill(bytes))).collect();
        let done = asked.done()?;
        let batch = NewCodeBatch {
            amount: asked.get("amount_nano_usd")?,
            pot: asked.or("pot", Pot::Paid)?,
            per_account: asked.or("per_account", 1)?,
            ends_at: asked.may("ends_at_ms")?,
            note: asked.or("note", String::new())?,
            actor: done.actor,
            reason: done.reason,
            hashes: made.iter().filter_map(|code| codes::read(code)).collect(),
        };
        let shown = move |mut batch: Value| {
            batch["codes"] = json!(made);
            batch
        };
        Ok(PlannedCommand::from(AdminCommand::CodesCreate { batch: Box::new(batch) })
            .shown(ShownAs::With(Box::new(shown))))
    },
};

static REVOKE: OperatorVerb = OperatorVerb {
    command: "codes_revoke",
    fields: &[BATCH_ID, REASON],
    plan: |asked| Ok(AdminCommand::CodesRevoke { batch: asked.get("batch")?, done: asked.done()? }.into()),
};

fn schemas() -> Value {
    let mut new = record("A batch and its codes", &["batch_id", "codes"]);
    new["properties"]["codes"] =
        json!({ "type": "array", "items": { "type": "string" }, "description": "Shown in this answer only" });
    let next = json!({ "type": ["string", "null"] });
    json!({
        "PayOrder": record("An order; amounts of credit in nano-USD, times in milliseconds", &["order_id", "state"]),
        "PayOrderPage": page("PayOrder", "next_before", &next),
        "CodeBatch": record("Redemption codes that were made together", &["batch_id", "count", "used"]),
        "CodeBatchPage": page("CodeBatch", "next_before", &next),
        "NewCodeBatch": new,
    })
}
