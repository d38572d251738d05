//! What was used and charged, and the proof of it: `/api/admin/usage`, `/api/admin/ledger`,
//! `/api/admin/receipts`, `/api/admin/prices`.

use super::field::{FieldKind, TIME, VerbField, may, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorVerb, PlannedCommand, ShownAs};
use super::{ACCOUNT, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::endpoints::usage_sums::{operators_export, wrong_sum};
use crate::margin_report::margin_report;
use serde_json::{Value, json};
use tollgate_store::admin::AdminCommand;
use tollgate_store::receipt::price_id;
use tollgate_store::{EntryPage, LONGEST_REPORT_MS, SumAsk, SumViewer, UsagePage};

pub const FAMILY: Family = Family { tag: "operators: books", rows, schemas };

fn rows() -> Vec<Row> {
    let of_account = "/api/admin/accounts/{account}/usage/{call_id}";
    let verify = "Adds up the whole ledger again; the report lists what does not add up";
    vec![
        USAGE.get("/api/admin/usage", "The usage log of one account or of all, newest first").gives(named("CallPage")),
        SUMS.get("/api/admin/usage/sums", "Usage, charges and costs added up, of one account or of all")
            .gives(named("UsageSums"))
            .refused_with(&[409]),
        operators_export(),
        CALL.get(of_account, "One call of an account, with its route and its frozen price").gives(named("Call")),
        MARGINS
            .get("/api/admin/margins", "What was sold and what it cost, by day, model and route")
            .gives(named("MarginReport")),
        RECEIPT
            .get("/api/admin/accounts/{account}/usage/{call_id}/receipt", "The signed receipt of a call that has ended")
            .gives(named("Receipt"))
            .refused_with(&[409]),
        VERIFY.post("/api/admin/ledger/verify", verify).gives(named("AuditReport")),
        LAST.get("/api/admin/ledger/last", "The number of the last ledger entry").gives(named("LastEntry")),
        ENTRIES
            .get("/api/admin/ledger/entries", "Ledger entries in the order they were written")
            .gives(named("EntryPage")),
        KEYS.get("/api/admin/receipts/keys", "The public keys of receipts, the one that signs first")
            .gives(named("ReceiptKeys")),
        ROTATE
            .post("/api/admin/receipts/keys/rotate", "Ends the key that signs receipts and begins a new one")
            .gives(named("ReceiptKeys")),
        PRICE
            .get("/api/admin/prices/{price_id}", "The price that a receipt names, as it was when the call was held")
            .gives(named("PriceVersion")),
    ]
}

const CALL_ID: VerbField = must("call_id", FieldKind::Id("call_"), "The call");
const OF_ACCOUNT: VerbField = may("account", FieldKind::Id("acct_"), "Of this account only");
const SEQ: FieldKind = FieldKind::Number(0, i64::MAX);

static USAGE: OperatorVerb = OperatorVerb {
    command: "usage_list",
    fields: &[OF_ACCOUNT, may("before", FieldKind::Id("call_"), "`next_before` of the page before"), super::PAGE],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let page = UsagePage { before: asked.may("before")?, limit: limit + 1 };
        let shown = AnswerPage { limit, by: "call_id", next: "next_before", after: None };
        Ok(PlannedCommand::from(AdminCommand::UsageList { account: asked.may("account")?, page })
            .shown(ShownAs::Page(shown)))
    },
};

const NAME: FieldKind = FieldKind::Text(200);
const ROWS: FieldKind = FieldKind::Number(1, 1_000);

static SUMS: OperatorVerb = OperatorVerb {
    command: "usage_sums",
    fields: &[
        must(
            "from",
            NAME,
            "Calls from then on: a date, a time in the zone or with an offset, or milliseconds; at a full quarter of an hour",
        ),
        may("to", NAME, "Calls before then; left out: now"),
        may("tz", NAME, "The time zone of dates and spans; UTC where none is given"),
        may(
            "by",
            NAME,
            "With commas, four at most: one of `hour`, `day`, `week`, `month`, and `model`, `key`, `endpoint`, `ending`, `account`, `group`, `provider`, `route`",
        ),
        OF_ACCOUNT,
        may("model", NAME, "Calls of this model only"),
        may("key", FieldKind::Id("key_"), "Calls of this key only"),
        may("endpoint", NAME, "Calls to this endpoint only"),
        may("ending", NAME, "Calls that ended so only"),
        may("provider", NAME, "Calls of this provider only"),
        may("upstream_model", NAME, "Calls of this model of a provider only"),
        may("top", ROWS, "The groups with the largest charge, and the rest of them in one; without pages"),
        may("limit", ROWS, "Rows of a page; 100 unless said otherwise"),
        may("after", FieldKind::Text(4_000), "`next_after` of the page before"),
    ],
    plan: |asked| {
        let ask = SumAsk {
            account: asked.may("account")?,
            from: asked.may("from")?,
            to: asked.may("to")?,
            tz: asked.may("tz")?,
            by: asked.may("by")?,
            model: asked.may("model")?,
            key: asked.may("key")?,
            endpoint: asked.may("endpoint")?,
            ending: asked.may("ending")?,
            provider: asked.may("provider")?,
            upstream_model: asked.may("upstream_model")?,
            top: asked.may("top")?,
            limit: asked.may("limit")?,
            after: asked.may("after")?,
        };
        ask.checked(SumViewer::Operator, asked.app.world.now_ms()).map_err(wrong_sum)?;
        Ok(AdminCommand::UsageSums { asked: Box::new(ask) }.into())
    },
};

static CALL: OperatorVerb = OperatorVerb {
    command: "usage_show",
    fields: &[ACCOUNT, CALL_ID],
    plan: |asked| Ok(AdminCommand::UsageShow { account: asked.get("account")?, call: asked.get("call_id")? }.into()),
};

static MARGINS: OperatorVerb = OperatorVerb {
    command: "margins",
    fields: &[
        must("from_ms", TIME, "Calls that began at this time or later"),
        must("to_ms", TIME, "Calls that began before this time, at most 92 days later"),
        may(
            "by",
            FieldKind::Word(&["day", "model", "route", "all"]),
            "What is added up; left out, `all`: each day of each route",
        ),
    ],
    plan: |asked| {
        let (from_ms, to_ms): (i64, i64) = (asked.get("from_ms")?, asked.get("to_ms")?);
        if to_ms <= from_ms || to_ms - from_ms > LONGEST_REPORT_MS {
            return Err(wrong("to_ms", "a time after `from_ms`, at most 92 days later"));
        }
        let by: String = asked.or("by", "all".to_owned())?;
        let shown = move |rows: Value| margin_report(rows, &by);
        Ok(PlannedCommand::from(AdminCommand::Margins { from_ms, to_ms }).shown(ShownAs::With(Box::new(shown))))
    },
};

static RECEIPT: OperatorVerb = OperatorVerb {
    command: "receipt",
    fields: &[ACCOUNT, CALL_ID],
    plan: |asked| Ok(AdminCommand::Receipt { account: asked.get("account")?, call: asked.get("call_id")? }.into()),
};

static VERIFY: OperatorVerb = OperatorVerb {
    command: "ledger_verify",
    fields: &[must(
        "how",
        FieldKind::Word(&["full", "strict", "changed"]),
        "`strict`: nothing is let pass; `changed`: what changed since the server's last audit",
    )],
    plan: |asked| Ok(AdminCommand::LedgerVerify { how: asked.get("how")? }.into()),
};

static LAST: OperatorVerb = OperatorVerb {
    command: "ledger_last",
    fields: &[],
    plan: |_| {
        Ok(PlannedCommand::from(AdminCommand::LedgerLast).shown(ShownAs::With(Box::new(|seq| json!({ "seq": seq })))))
    },
};

static ENTRIES: OperatorVerb = OperatorVerb {
    command: "ledger_entries",
    fields: &[
        OF_ACCOUNT,
        may("from_ms", TIME, "Written at this time or later"),
        may("to_ms", TIME, "Written before this time"),
        may("after", SEQ, "`next_after` of the page before"),
        may("until", SEQ, "The last entry wanted, so that all pages together are one moment"),
        super::PAGE,
    ],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let page = EntryPage {
            account: asked.may("account")?,
            from: asked.may("from_ms")?,
            to: asked.may("to_ms")?,
            after: asked.or("after", 0)?,
            until: asked.may("until")?,
            limit: limit + 1,
        };
        let shown = AnswerPage { limit, by: "seq", next: "next_after", after: None };
        Ok(PlannedCommand::from(AdminCommand::LedgerEntries { page }).shown(ShownAs::Page(shown)))
    },
};

static KEYS: OperatorVerb =
    OperatorVerb { command: "receipt_keys", fields: &[], plan: |_| Ok(AdminCommand::ReceiptKeys.into()) };

static ROTATE: OperatorVerb = OperatorVerb {
    command: "receipt_rotate",
    fields: &[super::REASON],
    plan: |asked| Ok(AdminCommand::ReceiptRotate { done: asked.done()? }.into()),
};

static PRICE: OperatorVerb = OperatorVerb {
    command: "price_version",
    fields: &[must("price_id", FieldKind::Text(32), "32 hexadecimal digits")],
    plan: |asked| {
        let text: String = asked.get("price_id")?;
        let id = price_id(&text).ok_or_else(|| wrong("price_id", "32 hexadecimal digits"))?;
        // It is stored as the text that was hashed.
        let parsed = |text: Value| text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(text);
        Ok(PlannedCommand::from(AdminCommand::PriceVersion { id }).shown(ShownAs::With(Box::new(parsed))))
    },
};

fn schemas() -> Value {
    json!({
        "Call": record("A row of the usage log; amounts in nano-USD, times in milliseconds", &["call_id", "account_id", "model"]),
        "CallPage": page("Call", "next_before", &json!({ "type": ["string", "null"] })),
        "Entry": record("An entry of the ledger; amounts in nano-USD, times in milliseconds", &["seq", "kind"]),
        "EntryPage": page("Entry", "next_after", &json!({ "type": ["integer", "null"] })),
        "AuditReport": record("What was looked at; no breach: every number adds up", &["entries", "breaches"]),
        "MarginReport": {
            "type": "object", "required": ["object", "data"],
            "properties": { "object": { "const": "list" }, "data": { "type": "array", "items": record(
                "What was sold and what it cost, in nano-USD; `margin_nano_usd` is of those calls whose cost is known",
                &["calls", "sold_nano_usd", "cost_nano_usd", "cost_unknown", "margin_nano_usd"],
            ) } },
        },
        "LastEntry": { "type": "object", "required": ["seq"], "properties": { "seq": { "type": "integer" } } },
    })
}
