//! How much PostgreSQL reads for an answer about usage: counted, not timed. A month of all accounts
//! must not read a row for each account and quarter of an hour.

use crate::common::House;
use tollgate_store::testing::{PostgresServer, run_sql};
use tollgate_store::{AccountId, SumAsk, SumViewer};

const DAY: i64 = 86_400_000;
const DAYS: i64 = 8;
const ACCOUNTS: usize = 100;
const MODELS: usize = 2;

/// Sums of every quarter of some days: each account with one key, and each with two models.
fn sums(first_day: i64) -> String {
    let columns = "requests, estimated, charge, refunded, write_off, cost, cost_unknown, duration_ms, first_bytes, first_byte_ms, \
        input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output, \
        calls, seconds";
    let ones = vec!["1"; columns.split(',').count()].join(", ");
    format!(
        "INSERT INTO usage_quarter (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model, {columns}) \
         SELECT decode(lpad(to_hex(a), 32, '0'), 'hex'), q, decode(lpad(to_hex(a), 32, '0'), 'hex'), 'model-' || m, '/v1/chat', 0, 'p', 'u', {ones} \
         FROM generate_series(1, {ACCOUNTS}) a, generate_series({first_day} * 96, ({first_day} + {DAYS}) * 96 - 1) q, generate_series(1, {MODELS}) m"
    )
}

/// Rows that the scans of a plan went through, those that did not fit with them.
fn rows_read(plan: &[String]) -> usize {
    let number = |text: &str, after: &str| -> Option<usize> {
        let (_, rest) = text.split_once(after)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let mut read = 0;
    let mut loops = 1;
    for line in plan {
        if let Some((_, actual)) = line.split_once("(actual ") {
            loops = number(actual, "loops=").unwrap_or(1);
            if line.contains("Scan") && !line.contains("Bitmap Index Scan") && !line.contains("Subquery Scan") {
                read += number(actual, "rows=").unwrap_or(0) * loops;
            }
        } else if let Some(removed) = number(line, "Rows Removed by Filter: ") {
            read += removed * loops;
        }
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_reads_few_rows() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let url = server.database("read").await.expect("a database");
    let h = House::open(&url).await;
    let first = h.clock.now().div_euclid(DAY) - DAYS - 1;
    run_sql(&url, &sums(first)).await.expect("sums");
    while h.store.fold_sums().await.expect("a step") {}
    for table in ["usage_quarter", "usage_day", "usage_house"] {
        run_sql(&url, &format!("VACUUM ANALYZE {table}")).await.expect("looked at");
    }
    let days = DAYS as usize;
    let one = Some(AccountId(5u128.to_be_bytes()).to_string());
    for (by, tz, account, most) in [
        ("", "UTC", None, days * MODELS),
        ("day,model", "UTC", None, days * MODELS),
        ("hour", "UTC", None, days * 96 * MODELS),
        ("day,model", "Asia/Kathmandu", None, days * 96 * MODELS),
        ("week,route", "Asia/Kolkata", None, days * 96 * MODELS),
        ("account", "UTC", None, days * ACCOUNTS * MODELS),
        ("day,key", "UTC", None, days * ACCOUNTS * MODELS),
        // The first and the last day are cut.
        ("key,model", "Asia/Kathmandu", None, (days + 2 * 96) * ACCOUNTS * MODELS),
        ("day,key", "Asia/Kathmandu", one.clone(), days * 96 * MODELS),
        ("month,key", "UTC", one, days * MODELS),
    ] {
        // By the clocks of the zone, so that both ends are within a day of UTC.
        let ask = SumAsk {
            from: Some(date(first)),
            to: Some(date(first + DAYS)),
            tz: Some(tz.to_owned()),
            by: (!by.is_empty()).then(|| by.to_owned()),
            account,
            ..SumAsk::default()
        };
        let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
        let answer = h.store.usage_sums(&query).await.expect("added up");
        let plan = h.store.explain_sums(&query).await.expect("a plan");
        let read = rows_read(&plan);
        // Once to count them, once to add them up. Rows of days of the house stand among those of
        // its quarters, and are read by themselves too. A few rows say which days are folded.
        let most = 2 * (most + 2 * days * MODELS) + 10;
        assert!(read > 0 && read <= most, "by {by} in {tz}: {read} rows, not {most}\n{}", plan.join("\n"));
        assert!(answer["totals"]["requests"].as_i64() > Some(0), "{answer}");
    }
    h.store.shut().await;
}

/// A day since 1970 as its date.
fn date(day: i64) -> String {
    let at = jiff::Timestamp::from_second(day * 86_400).expect("a time");
    at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}
