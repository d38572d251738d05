//! The work of jobs: what was asked for, checked before anything is begun, and done while the store
//! hears every few seconds how far it is.

use super::export_file::ExportFile;
use super::{Form, provider_test, wrong};
use crate::app::App;
use crate::csv::csv_line;
use crate::endpoints::usage_sums::{operators_text, wrong_sum};
use crate::jobs::JobCounter;
use crate::reconcile::{Bill, BillSpan, Tolerance, first_call_at, millionths, read_bill, time, usd};
use crate::refusal::Refusal;
use crate::sale::ProviderTest;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tollgate_catalog::form::parse_duration;
use tollgate_store::{
    AccountId, ENTRY_COLUMNS, EntryPage, ExportPage, JobState, StoreError, SumAsk, SumViewer, USAGE_EXPORT_PAGE,
    UsagePage,
};
use tollgate_wire::error::Code;

/// How often the store hears of a job, and a job of whether it was cancelled.
const BEAT: Duration = Duration::from_secs(2);
/// Entries and calls are read in pages of this size.
const PAGE: u32 = 2_000;

/// Why a job came to no good end, for whoever began it.
pub struct JobFailed(String);

impl JobFailed {
    pub fn because(why: String) -> JobFailed {
        JobFailed(why)
    }
}

impl From<StoreError> for JobFailed {
    fn from(error: StoreError) -> JobFailed {
        tracing::warn!(%error, "a job that an operator began failed");
        JobFailed("The store could not be read to the end; the log says why.".to_owned())
    }
}

impl From<io::Error> for JobFailed {
    fn from(error: io::Error) -> JobFailed {
        tracing::warn!(%error, "a job that an operator began failed");
        JobFailed("The file could not be written; the log says why.".to_owned())
    }
}

/// What is to be done.
pub enum JobWork {
    Verify { strict: bool },
    ExportUsage { asked: Box<SumAsk>, csv: bool },
    ExportLedger { page: EntryPage, csv: bool },
    Reconcile { bill: Box<Bill>, span: BillSpan },
    ProviderTest(ProviderTest),
}

impl JobWork {
    /// The fields of one kind; those of others are unknown to it.
    pub fn read(app: &App, form: &mut Form) -> Result<JobWork, Refusal> {
        let kinds = "`verify`, `export`, `reconcile` or `provider_test`";
        match form.0.remove("kind") {
            Some(Value::String(kind)) => match kind.as_str() {
                "verify" => Ok(JobWork::Verify { strict: flag(form, "strict")? }),
                "export" => JobWork::export(app, form),
                "reconcile" => JobWork::reconcile(form),
                "provider_test" => provider_test::read(app, form).map(JobWork::ProviderTest),
                _ => Err(wrong("kind", kinds)),
            },
            None => Err(Refusal::about(Code::MissingParameter, "kind", format!("`kind` is required: {kinds}."))),
            Some(_) => Err(wrong("kind", kinds)),
        }
    }

    fn export(app: &App, form: &mut Form) -> Result<JobWork, Refusal> {
        let csv = match word(form, "format")?.as_deref() {
            None | Some("jsonl") => false,
            Some("csv") => true,
            Some(_) => return Err(wrong("format", "`csv` or `jsonl`")),
        };
        let account = word(form, "account")?;
        let account: Option<AccountId> =
            account.map(|text| text.parse().map_err(|_| wrong("account", "an account's id"))).transpose()?;
        match word(form, "what")?.as_deref() {
            Some("usage") => {
                let [from, to] = [moment_text(form, "from")?, moment_text(form, "to")?];
                let from = Some(from.unwrap_or_else(|| "2020-01-01".to_owned()));
                let account = account.map(|account| account.to_string());
                let asked = SumAsk { account, from, to, ..SumAsk::default() };
                asked.checked(SumViewer::Operator, app.world.now_ms()).map_err(wrong_sum)?;
                Ok(JobWork::ExportUsage { asked: Box::new(asked), csv })
            }
            Some("ledger") => {
                let (from, to) = (moment(form, "from")?, moment(form, "to")?);
                Ok(JobWork::ExportLedger {
                    page: EntryPage { account, from, to, after: 0, until: None, limit: PAGE },
                    csv,
                })
            }
            Some(_) => Err(wrong("what", "`usage` or `ledger`")),
            None => Err(Refusal::about(Code::MissingParameter, "what", "`what` is required: `usage` or `ledger`.")),
        }
    }

    fn reconcile(form: &mut Form) -> Result<JobWork, Refusal> {
        let bill = word(form, "bill")?;
        let bill = bill.ok_or_else(|| {
            Refusal::about(Code::MissingParameter, "bill", "`bill` is required: the text of the provider's bill.")
        })?;
        let number = |form: &mut Form, name: &str, default: &str| {
            let text = word(form, name)?.unwrap_or_else(|| default.to_owned());
            millionths(&text).ok_or_else(|| wrong(name, "a number such as \"0.85\""))
        };
        let (ratio, relative) = (number(form, "ratio", "1")?, number(form, "tolerance", "1")? / 100);
        let absolute = word(form, "tolerance_usd")?.unwrap_or_else(|| "0.000001".to_owned());
        let window = word(form, "window")?.unwrap_or_else(|| "2m".to_owned());
        let window = parse_duration(&window).map_err(|_| wrong("window", "a time such as \"2m\""))?;
        let terms = Tolerance {
            ratio,
            relative,
            absolute: usd(&absolute).ok_or_else(|| wrong("tolerance_usd", "an amount"))?,
            window_ms: i64::try_from(window.as_millis()).unwrap_or(i64::MAX),
        };
        let (from, to, provider) = (moment(form, "from")?, moment(form, "to")?, word(form, "provider")?);
        let bad =
            |why: crate::reconcile::BadBill| Refusal::about(Code::InvalidParameter, "bill", format!("`bill`: {why}."));
        let bill = Bill::read(&read_bill(&bill).map_err(bad)?, terms).map_err(bad)?;
        let span = BillSpan::of(&bill, from, to, provider).map_err(bad)?;
        Ok(JobWork::Reconcile { bill: Box::new(bill), span })
    }

    pub fn kind(&self) -> &'static str {
        match self {
            JobWork::Verify { .. } => "verify",
            JobWork::ExportUsage { .. } | JobWork::ExportLedger { .. } => "export",
            JobWork::Reconcile { .. } => "reconcile",
            JobWork::ProviderTest(_) => "provider_test",
        }
    }

    pub fn is_audit(&self) -> bool {
        matches!(self, JobWork::Verify { .. })
    }

    /// Whether it spends the house's own money.
    pub fn costs_money(&self) -> bool {
        matches!(self, JobWork::ProviderTest(_))
    }

    /// What was asked for, as it is shown. A bill is not: it is the provider's.
    pub fn asked(&self) -> Value {
        let format = |csv: bool| if csv { "csv" } else { "jsonl" };
        match self {
            JobWork::Verify { strict } => json!({ "strict": strict, "counts": "entries" }),
            JobWork::ExportUsage { asked, csv } => {
                json!({ "what": "usage", "format": format(*csv), "account": asked.account, "from": asked.from, "to": asked.to, "counts": "rows" })
            }
            JobWork::ExportLedger { page, csv } => {
                json!({ "what": "ledger", "format": format(*csv), "account": page.account, "from_ms": page.from, "to_ms": page.to, "counts": "entries" })
            }
            JobWork::Reconcile { span, .. } => {
                json!({ "provider": span.provider, "from_ms": span.own.0, "to_ms": span.own.1, "counts": "milliseconds of the log" })
            }
            JobWork::ProviderTest(test) => provider_test::asked(test),
        }
    }

    /// How much there is to do, and until where.
    pub async fn prepared(self, app: &App) -> Result<(JobWork, Arc<JobCounter>), Refusal> {
        let last = app.store.last_entry().await?;
        Ok(match self {
            JobWork::ExportLedger { page, csv } => {
                // All pages together are one moment, whatever is written meanwhile.
                (JobWork::ExportLedger { page: EntryPage { until: Some(last), ..page }, csv }, JobCounter::of(last))
            }
            JobWork::ExportUsage { asked, csv } => {
                let query = asked.checked(SumViewer::Operator, app.world.now_ms()).map_err(wrong_sum)?;
                // Where the sums are not there yet, nobody knows how many there are.
                let sums = app.store.usage_sums(&query).await.unwrap_or_default();
                let rows = sums["totals"]["requests"].as_i64().unwrap_or(0);
                (JobWork::ExportUsage { asked, csv }, JobCounter::of(rows))
            }
            JobWork::Reconcile { bill, span } => {
                let counter = JobCounter::of(span.wide.1.saturating_sub(span.wide.0));
                (JobWork::Reconcile { bill, span }, counter)
            }
            JobWork::ProviderTest(test) => {
                let counter = provider_test::prepared(app, &test)?;
                (JobWork::ProviderTest(test), counter)
            }
            verify => (verify, JobCounter::of(last)),
        })
    }
}

pub fn word(form: &mut Form, name: &str) -> Result<Option<String>, Refusal> {
    match form.0.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, "a text")),
    }
}

pub fn flag(form: &mut Form, name: &str) -> Result<bool, Refusal> {
    match form.0.remove(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(wrong(name, "`true` or `false`")),
    }
}

/// A time as it was written.
fn moment_text(form: &mut Form, name: &str) -> Result<Option<String>, Refusal> {
    match form.0.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(wrong(name, "a time")),
    }
}

fn moment(form: &mut Form, name: &str) -> Result<Option<i64>, Refusal> {
    let text = moment_text(form, name)?;
    text.map(|text| time(&text).ok_or_else(|| wrong(name, "a time"))).transpose()
}

/// Does it, and writes its end down.
pub async fn run(app: Arc<App>, id: String, work: JobWork, counter: Arc<JobCounter>, token: CancellationToken) {
    let (state, result) = tokio::select! {
        outcome = worked(&app, &id, work, &counter) => match outcome {
            Ok(result) => {
                counter.finish();
                (JobState::Done, result)
            }
            Err(JobFailed(why)) => (JobState::Failed, json!({ "error": why })),
        },
        () = token.cancelled() => (JobState::Cancelled, Value::Null),
        () = app.shutdown.ended.cancelled() => (JobState::Interrupted, Value::Null),
        () = goes_on(&app, &id, &counter) => (JobState::Cancelled, Value::Null),
    };
    if state != JobState::Done {
        // What of a file is written is half of it.
        let _ = tokio::fs::remove_file(app.jobs.part(&id)).await;
    }
    let noted = match state {
        JobState::Done => app.store.note_job(&id, counter.now()).await.map(drop),
        _ => Ok(()),
    };
    if let Err(error) = match noted {
        Ok(()) => app.store.end_job(&id, state, &result.to_string()).await,
        Err(error) => Err(error),
    } {
        tracing::warn!(%error, "the end of a job could not be written down; it will be shown as interrupted");
    }
    app.jobs.end(&id);
}

/// Says every few seconds how far it is, beside the work: both may wait for the same connection.
/// Ends when the job is to end.
async fn goes_on(app: &App, id: &str, counter: &JobCounter) {
    let mut beat = tokio::time::interval(BEAT);
    loop {
        beat.tick().await;
        match app.store.note_job(id, counter.now()).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "how far a job is could not be written down"),
        }
    }
}

async fn worked(app: &Arc<App>, id: &str, work: JobWork, counter: &Arc<JobCounter>) -> Result<Value, JobFailed> {
    match work {
        JobWork::Verify { strict: true } => Ok(json!(app.store.verify_strictly().await?)),
        JobWork::Verify { strict: false } => Ok(json!(app.store.verify().await?)),
        JobWork::ProviderTest(test) => provider_test::run(app, test, counter.clone()).await,
        JobWork::ExportUsage { asked, csv } => {
            let mut file = ExportFile::open(app, id).await?;
            let query = asked.checked(SumViewer::Operator, app.world.now_ms());
            let query = query.map_err(|why| JobFailed(format!("{why}.")))?;
            let (from_ms, to_ms) = query.range_ms();
            let filter = query.filter().clone();
            let mut page = ExportPage { filter, from_ms, to_ms, after: None, limit: USAGE_EXPORT_PAGE };
            loop {
                let rows = app.store.usage_export(page.clone()).await?;
                let text = operators_text(app, &rows, csv, file.is_empty()).await?;
                file.write(&text, rows.len()).await?;
                counter.at(file.rows);
                page.after = rows.last().map(|row| (row.account, row.call));
                if rows.len() < USAGE_EXPORT_PAGE as usize {
                    return file.finish().await;
                }
            }
        }
        JobWork::ExportLedger { mut page, csv } => {
            let mut file = ExportFile::open(app, id).await?;
            if csv {
                file.write(&csv_line(&ENTRY_COLUMNS.map(|name| json!(name))), 0).await?;
            }
            loop {
                let entries = app.store.entries(page).await?;
                let mut text = String::new();
                for entry in entries.iter().map(|entry| json!(entry)) {
                    match csv {
                        true => text.push_str(&csv_line(ENTRY_COLUMNS.iter().map(|column| &entry[*column]))),
                        false => text.push_str(&format!("{entry}\n")),
                    }
                }
                file.write(&text, entries.len()).await?;
                match entries.last() {
                    Some(last) if entries.len() == page.limit as usize => page.after = last.seq,
                    _ => return file.finish().await,
                }
                counter.at(page.after);
            }
        }
        JobWork::Reconcile { mut bill, span } => {
            let mut before = Some(first_call_at(span.wide.1));
            loop {
                let calls = app.store.usage(None, UsagePage { before, limit: PAGE }).await?;
                before = calls.last().map(|call| call.call);
                let more = span.compare(&mut bill, &calls).map_err(|why| JobFailed(format!("The bill: {why}.")))?;
                if !more || calls.len() < PAGE as usize {
                    let report = bill.finish();
                    let mut shown = json!(report);
                    shown["clean"] = json!(report.is_clean());
                    return Ok(shown);
                }
                counter.at(span.wide.1.saturating_sub(calls.last().map_or(span.wide.1, |call| call.call.made_at())));
            }
        }
    }
}
