//! A statement as people read it: CSV, HTML that prints well, and PDF (`pdf.rs`). It is no tax
//! invoice, and says so.

mod pdf;

use crate::csv::csv_line;
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::Statement;

/// How a statement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementForm {
    Json,
    Csv,
    Html,
    Pdf,
}

impl StatementForm {
    pub const ALL: [(&'static str, StatementForm); 4] =
        [("json", Self::Json), ("csv", Self::Csv), ("html", Self::Html), ("pdf", Self::Pdf)];

    pub fn of(name: &str) -> Option<StatementForm> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, form)| form)
    }

    pub fn media(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Pdf => "application/pdf",
        }
    }

    pub fn write(self, statement: &Statement) -> Vec<u8> {
        match self {
            Self::Json => serde_json::to_vec(statement).unwrap_or_default(),
            Self::Csv => csv(statement).into_bytes(),
            Self::Html => html(statement).into_bytes(),
            Self::Pdf => pdf::write(&lines(statement)),
        }
    }
}

const NOT_AN_INVOICE: &str = "This is a statement of account, not a tax invoice.";

/// What the balance went through, in order; the sum of all but the last is the last.
fn sums(s: &Statement) -> [(&'static str, Money); 8] {
    let less = |money: Money| Money::from_nano(-money.nano());
    [
        ("Opening balance", s.opening),
        ("Top-ups", s.top_ups),
        ("Trial credit", s.trial_credits),
        ("Corrections", s.corrections),
        ("Refunds", s.refunds),
        ("Expired credit", less(s.expired)),
        ("Charges", less(s.charges)),
        ("Closing balance", s.closing),
    ]
}

fn csv(s: &Statement) -> String {
    let row = |cells: [Value; 6]| csv_line(cells.iter());
    let head = ["line", "day_or_time_ms", "what", "reference", "count", "nano_usd"].map(|name| json!(name));
    let mut text = csv_line(head.iter());
    for (what, amount) in sums(s) {
        text += &row([json!("sum"), Value::Null, json!(what), Value::Null, Value::Null, json!(amount.nano())]);
    }
    for line in &s.charges_by_day {
        let amount = -line.charge.nano();
        text +=
            &row([json!("charge"), json!(line.day), json!(line.model), Value::Null, json!(line.calls), json!(amount)]);
    }
    for event in &s.events {
        let amount = event_amount(event);
        text +=
            &row([json!("event"), json!(event.at), json!(event.kind), json!(event.reference), json!(1), json!(amount)]);
    }
    if s.more_events > 0 {
        text += &row([json!("not_listed"), Value::Null, Value::Null, Value::Null, json!(s.more_events), Value::Null]);
    }
    text
}

/// What an event changed the balance by.
fn event_amount(event: &tollgate_store::BalanceEvent) -> i64 {
    let amount = event.trial.nano().saturating_add(event.paid.nano());
    if event.kind == "lapse" { -amount } else { amount }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn html(s: &Statement) -> String {
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Statement {month}</title><style>\
         body{{font:14px/1.4 sans-serif;max-width:48em;margin:2em auto;color:#111}}table{{border-collapse:collapse;width:100%}}\
         td,th{{padding:.2em .5em;border-bottom:1px solid #ccc;text-align:left}}td.n{{text-align:right;font-family:monospace}}\
         @media print{{body{{margin:0}}tr{{break-inside:avoid}}}}</style></head><body>\
         <h1>Statement {month}</h1><p>{name} ({account})<br>Time zone {zone}{open}</p><p>{NOT_AN_INVOICE}</p><table>",
        month = escaped(&s.month),
        name = escaped(&s.name),
        account = s.account,
        zone = escaped(&s.zone),
        open = if s.is_final { "" } else { "<br>The month is not over: this will change." },
    );
    for (what, amount) in sums(s) {
        text += &format!("<tr><td>{what}</td><td class=\"n\">{amount} USD</td></tr>");
    }
    text +=
        "</table><h2>Charges by day and model</h2><table><tr><th>Day</th><th>Model</th><th>Calls</th><th>USD</th></tr>";
    for line in &s.charges_by_day {
        let (day, model, calls, charge) = (&line.day, escaped(&line.model), line.calls, line.charge);
        text += &format!(
            "<tr><td>{day}</td><td>{model}</td><td class=\"n\">{calls}</td><td class=\"n\">{charge}</td></tr>"
        );
    }
    text += "</table><h2>Other changes of balance</h2><table><tr><th>What</th><th>Reference</th><th>USD</th></tr>";
    for event in &s.events {
        let (kind, reference) = (escaped(&event.kind), escaped(&event.reference));
        let amount = Money::from_nano(event_amount(event));
        text += &format!("<tr><td>{kind}</td><td>{reference}</td><td class=\"n\">{amount}</td></tr>");
    }
    if s.more_events > 0 {
        text += &format!("<tr><td colspan=\"3\">and {} more, which are in the sums</td></tr>", s.more_events);
    }
    text + &format!("</table><p><small>SHA-256 {}</small></p></body></html>\n", s.content_hash)
}

/// The lines of the printed form.
fn lines(s: &Statement) -> Vec<pdf::PdfLine> {
    use pdf::PdfLine;
    let mut lines = vec![
        PdfLine::title(format!("Statement {}", s.month)),
        PdfLine::text(format!("Account {}", s.account)),
        PdfLine::text(format!("Name {}", s.name)),
        PdfLine::text(format!("Time zone {}", s.zone)),
    ];
    if !s.is_final {
        lines.push(PdfLine::text("The month is not over: this will change.".to_owned()));
    }
    lines.extend([PdfLine::text(NOT_AN_INVOICE.to_owned()), PdfLine::text(String::new())]);
    let columns = |left: &str, right: String| PdfLine::columns(format!("{:<52} {right:>30}", cut(left, 52)));
    lines.extend(sums(s).map(|(what, amount)| columns(what, format!("{amount} USD"))));
    lines.extend([PdfLine::text(String::new()), PdfLine::heading("Charges by day and model".to_owned())]);
    for line in &s.charges_by_day {
        let left = format!("{}  {:<30} {:>7}", line.day, cut(&line.model, 30), line.calls);
        lines.push(columns(&left, line.charge.to_string()));
    }
    lines.extend([PdfLine::text(String::new()), PdfLine::heading("Other changes of balance".to_owned())]);
    for event in &s.events {
        let left = format!("{:<8} {}", event.kind, cut(&event.reference, 42));
        lines.push(columns(&left, Money::from_nano(event_amount(event)).to_string()));
    }
    if s.more_events > 0 {
        lines.push(PdfLine::text(format!("and {} more, which are in the sums", s.more_events)));
    }
    lines.extend([PdfLine::text(String::new()), PdfLine::text(format!("SHA-256 {}", s.content_hash))]);
    lines
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_store::{AccountId, StatementLine};

    fn statement() -> Statement {
        let money = Money::from_nano;
        Statement {
            account: AccountId([7; 16]),
            name: "<b>张三 & Söhne".to_owned(),
            month: "2026-10".to_owned(),
            zone: "UTC".to_owned(),
            from: 0,
            to: 1,
            is_final: true,
            opening: money(5),
            top_ups: money(10),
            trial_credits: money(6),
            corrections: money(-1),
            refunds: money(2),
            expired: money(3),
            charges: money(4),
            closing: money(15),
            charges_by_day: vec![StatementLine {
                day: "2026-10-02".to_owned(),
                model: "=evil(\"m\")".to_owned(),
                calls: 2,
                charge: money(4),
            }],
            events: Vec::new(),
            more_events: 0,
            content_hash: "ab".to_owned(),
        }
    }

    #[test]
    fn what_is_shown_adds_up() {
        let all = sums(&statement()).map(|(_, amount)| amount.nano());
        assert_eq!(all[..7].iter().sum::<i64>(), all[7]);
        let text = csv(&statement());
        assert!(text.contains("sum,,Top-ups,,,10\r\nsum,,Trial credit,,,6\r\n"), "what nobody paid is apart: {text}");
        assert!(text.contains("sum,,Closing balance,,,15\r\n"), "{text}");
        assert!(text.contains("'=evil"), "a cell that a spreadsheet would calculate: {text}");
        assert!(text.contains(",-4\r\n"), "{text}");
    }

    #[test]
    fn what_customers_wrote_is_no_markup() {
        let page = html(&statement());
        assert!(page.contains("&lt;b&gt;张三 &amp; Söhne") && !page.contains("<b>"), "{page}");
        assert!(page.contains(NOT_AN_INVOICE));
    }

    #[test]
    fn a_document_has_all_of_its_pages() {
        let mut long = statement();
        long.charges_by_day = vec![long.charges_by_day[0].clone(); 200];
        for (statement, pages) in [(statement(), 1), (long, 4)] {
            let bytes = StatementForm::Pdf.write(&statement);
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.starts_with("%PDF-1.4") && text.ends_with("%%EOF\n"));
            assert_eq!(text.matches("/Type /Page ").count(), pages);
            assert!(text.contains("U+5F20"), "a letter the fonts lack is named");
            // Every offset of the table leads to its object.
            let table = text.rfind("\nxref\n").expect("a table") + 1;
            assert!(text.contains(&format!("startxref\n{table}\n")));
        }
    }
}
