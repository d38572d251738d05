//! The ledger as a whole: the audit, the export, and a provider's bill against our calls.

use crate::args;
use crate::keys::ask;
use crate::show::Output;
use anyhow::{Context as _, anyhow};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Money;
use tollgate_catalog::form::parse_duration;
use tollgate_gateway::reconcile::{
    Bill, BillReport, BillSpan, Tolerance, first_call_at, millionths, read_bill, time, usd,
};
use tollgate_store::admin::{AdminCommand, Audit};
use tollgate_store::{AccountId, ENTRY_COLUMNS, EntryPage, INVARIANTS, UsagePage, UsageRow};

/// Entries and calls are read in pages of this size.
const PAGE: u32 = 5_000;

pub async fn ledger(config: &Path, command: args::LedgerCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::LedgerCommand::Verify { strict, online } => {
            let how = match (strict, online) {
                (true, _) => Audit::Strict,
                (_, true) => Audit::Changed,
                _ => Audit::Full,
            };
            verify(config, how, out).await
        }
        args::LedgerCommand::Export(export) => match write(config, export).await {
            // Whoever read it has seen enough.
            Err(error) if reader_left(&error) => Ok(ExitCode::SUCCESS),
            done => done,
        },
        args::LedgerCommand::Reconcile(bill) => compare(config, bill, out).await,
    }
}

async fn verify(config: &Path, how: Audit, out: &Output) -> anyhow::Result<ExitCode> {
    let report = ask(config, AdminCommand::LedgerVerify { how }).await?;
    let breaches = report["breaches"].as_array().cloned().unwrap_or_default();
    let checked = report["checked"].as_array().cloned().unwrap_or_default();
    out.say(&report, || {
        let mut text = String::new();
        for (number, says, _) in INVARIANTS {
            let broken = breaches.iter().any(|breach| breach["invariant"] == number);
            let verdict = if broken {
                "BROKEN"
            } else if checked.iter().any(|looked_at| looked_at == number) {
                "holds"
            } else {
                "-"
            };
            text.push_str(&format!("{number:<4} {verdict:<7} {says}\n"));
        }
        for breach in &breaches {
            text.push_str(&format!("\n{}\n", breach["invariant"].as_str().unwrap_or("?")));
            for row in breach["rows"].as_array().into_iter().flatten() {
                text.push_str(&format!("  {}\n", row.as_str().unwrap_or_default()));
            }
        }
        let verdict = if breaches.is_empty() { "every number adds up" } else { "BROKEN" };
        let (accounts, entries, rows) = (&report["accounts"], &report["entries"], &report["usage_rows"]);
        text.push_str(&format!("{accounts} accounts, {entries} entries, {rows} usage rows: {verdict}"));
        if let (Some(unhashed @ 1..), Some(until)) = (report["unhashed_rows"].as_u64(), report["unhashed_until_ms"].as_i64()) {
            let until = crate::show::utc(until);
            text.push_str(&format!("\n{unhashed} usage rows are from before rows were hashed, the last of {until}: only their money was checked"));
        }
        text
    });
    Ok(if breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The pipe was closed by its reader, as in `tollgate ledger export | head`.
fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

async fn write(config: &Path, export: args::ExportArgs) -> anyhow::Result<ExitCode> {
    let account = export.account.map(|text| text.parse::<AccountId>().context("--account")).transpose()?;
    let (from, to) = (moment("--from", export.from.as_deref())?, moment("--to", export.to.as_deref())?);
    let target: Box<dyn std::io::Write> = match &export.output {
        Some(path) => Box::new(std::fs::File::create(path).with_context(|| path.display().to_string())?),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut target = std::io::BufWriter::new(target);
    if export.format == args::ExportFormat::Csv {
        writeln!(target, "{}", ENTRY_COLUMNS.join(","))?;
    }
    // All pages together are one moment, whatever is written meanwhile.
    let until = ask(config, AdminCommand::LedgerLast).await?.as_i64();
    let mut after = 0;
    loop {
        let page = EntryPage { account, from, to, after, until, limit: PAGE };
        let found = ask(config, AdminCommand::LedgerEntries { page }).await?;
        let entries = found.as_array().map_or(&[][..], Vec::as_slice);
        for entry in entries {
            match export.format {
                args::ExportFormat::Jsonl => writeln!(target, "{entry}")?,
                args::ExportFormat::Csv => {
                    let cells: Vec<String> = ENTRY_COLUMNS.iter().map(|column| csv_value(&entry[column])).collect();
                    writeln!(target, "{}", cells.join(","))?;
                }
            }
        }
        match entries.last() {
            Some(last) if entries.len() == PAGE as usize => after = last["seq"].as_i64().unwrap_or(i64::MAX),
            _ => break,
        }
    }
    target.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(config: &Path, wanted: args::ReconcileArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(&wanted.file).with_context(|| wanted.file.display().to_string())?;
    let rows = read_bill(&text).with_context(|| wanted.file.display().to_string())?;
    let window = parse_duration(&wanted.window).map_err(|why| anyhow::anyhow!("--window {}: {why}", wanted.window))?;
    let terms = Tolerance {
        ratio: part("--ratio", &wanted.ratio)?,
        relative: part("--tolerance", &wanted.tolerance)? / 100,
        absolute: usd(&wanted.tolerance_usd).context("--tolerance-usd: not an amount")?,
        window_ms: i64::try_from(window.as_millis())?,
    };
    let mut bill = Bill::read(&rows, terms).with_context(|| wanted.file.display().to_string())?;
    let from = moment("--from", wanted.from.as_deref())?;
    let to = moment("--to", wanted.to.as_deref())?;
    let span = BillSpan::of(&bill, from, to, wanted.provider)?;
    let mut before = Some(first_call_at(span.wide.1));
    loop {
        let page = UsagePage { before, limit: PAGE };
        let found = ask(config, AdminCommand::UsageList { account: None, page }).await?;
        let calls: Vec<UsageRow> = serde_json::from_value(found)?;
        before = calls.last().map(|call| call.call);
        if !span.compare(&mut bill, &calls)? || calls.len() < PAGE as usize {
            break;
        }
    }
    let report = bill.finish();
    out.say(&report, || shown(&report));
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(report: &BillReport) -> String {
    let mut text = String::new();
    for row in &report.rows {
        let place = row.line.map_or_else(|| "-".to_owned(), |line| format!("line {line}"));
        let call = row.call.map_or_else(|| "-".to_owned(), |call| call.to_string());
        let amount = |name: &str, amount: Option<Money>| amount.map_or_else(String::new, |m| format!("  {name} {m}"));
        let amounts =
            amount("billed", row.billed) + &amount("expected", row.expected) + &amount("charged", row.charged);
        text.push_str(&format!("{:<12}  {place:<10}  {call}{amounts}\n", row.kind));
    }
    text + &format!(
        "{} lines, {} calls: {} agree, {} differ, {} only billed, {} only ours, {} billed twice; billed {} USD, charged {} USD",
        report.lines,
        report.calls,
        report.matched,
        report.differing,
        report.only_billed,
        report.only_ours,
        report.billed_twice,
        report.billed,
        report.charged
    )
}

fn moment(option: &str, text: Option<&str>) -> anyhow::Result<Option<i64>> {
    text.map(|text| time(text).with_context(|| format!("{option} {text}: not a time"))).transpose()
}

/// A decimal such as 0.85, exact to six places.
fn part(option: &str, text: &str) -> anyhow::Result<i64> {
    millionths(text).ok_or_else(|| anyhow!("{option} {text}: not a number"))
}

/// A value as it stands in a line of CSV.
fn csv_value(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::Null => return String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_the_command_line() {
        assert_eq!(first_call_at(1_770_000_000_000).made_at(), 1_770_000_000_000);
        assert_eq!(part("--ratio", "0.85").expect("a number"), 850_000);
        assert!(part("--ratio", "x").is_err() && part("--ratio", "-1").is_err());
    }

    #[test]
    fn what_is_written_can_be_read() {
        for text in ["plain", "a,b", "say \"x\"", "two\nlines", ""] {
            let written = format!("a,b\n{},1\n", csv_value(&serde_json::json!(text)));
            let rows = read_bill(&written).expect("readable");
            assert_eq!(rows[0].get(&["a"]).unwrap_or_default(), text);
        }
    }
}
