//! How much PostgreSQL reads for an answer about usage: counted, not timed. A month of all accounts
//! must not read a row for each account and quarter of an hour.

use crate::common::{House, ask};
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
    // Who asks for days of Nepal has them made.
    let nepal = SumAsk {
        from: Some(date(first)),
        to: Some(date(first + DAYS)),
        tz: Some("Asia/Kathmandu".to_owned()),
        by: Some("day,account".to_owned()),
        ..SumAsk::default()
    };
    let query = nepal.checked(SumViewer::Operator, h.clock.now()).expect("a question");
    let before = h.store.usage_sums(&query).await.expect("added up");
    while h.store.fold_sums().await.expect("a step") {}
    assert_eq!(h.store.usage_sums(&query).await.expect("added up"), before);
    for table in ["usage_quarter", "usage_account_sum", "usage_house_sum", "usage_day_packed"] {
        run_sql(&url, &format!("VACUUM ANALYZE {table}")).await.expect("looked at");
    }
    let days = DAYS as usize;
    let one = Some(AccountId(5u128.to_be_bytes()).to_string());
    for (by, tz, account, most) in [
        ("", "UTC", None, days * MODELS),
        ("day,model", "UTC", None, days * MODELS),
        ("hour", "UTC", None, days * 24 * MODELS),
        // Quarters of the house, or all of so small a table: hours and days stand in it too.
        ("hour", "Asia/Kathmandu", None, days * (96 + 24 + 1) * MODELS),
        ("day,model", "Asia/Kathmandu", None, days * (96 + 24 + 1) * MODELS),
        ("week,route", "Asia/Kolkata", None, days * (96 + 24 + 1) * MODELS),
        ("account", "UTC", None, days * ACCOUNTS * MODELS),
        ("day,key", "UTC", None, days * ACCOUNTS * MODELS),
        ("day,key", "Asia/Kathmandu", None, days * ACCOUNTS * MODELS),
        ("week,account", "Asia/Kathmandu", None, days * ACCOUNTS * MODELS),
        // Quarters of a day are one row, in any zone.
        ("hour,account", "UTC", None, days * ACCOUNTS * MODELS),
        ("hour,key", "Asia/Kathmandu", None, (days + 1) * ACCOUNTS * MODELS),
        ("key,model", "Asia/Kathmandu", None, days * ACCOUNTS * MODELS),
        // Nobody asked for these. Where a day is cut, some blocks of six hours are read, and for
        // the rest the day once more.
        ("key,model", "Asia/Kolkata", None, (days + 2 * 4) * ACCOUNTS * MODELS),
        ("month,account", "America/St_Johns", None, (days + 3 * 4) * ACCOUNTS * MODELS),
        ("day,key", "Asia/Kathmandu", one.clone(), days * MODELS),
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
        // Once to count them, once to add them up. A few rows say what is folded.
        let most = 2 * (most + 2 * days * MODELS) + 20;
        assert!(read > 0 && read <= most, "by {by} in {tz}: {read} rows, not {most}\n{}", plan.join("\n"));
        assert!(answer["totals"]["requests"].as_i64() > Some(0), "{answer}");
    }
    too_large_for_a_column(&h, &url, first).await;
    zones_come_and_go(&h, &url, first).await;
    h.store.shut().await;
}

/// Numbers that no column holds are cut, and there is an answer.
async fn too_large_for_a_column(h: &House, url: &str, first: i64) {
    let large = format!(
        "UPDATE usage_quarter SET input = 8000000000000000000 WHERE quarter >= {first} * 96 AND quarter < {first} * 96 + 2"
    );
    run_sql(url, &large).await.expect("changed");
    run_sql(url, &format!("INSERT INTO usage_day_touched VALUES ({first})")).await.expect("touched");
    let ask = SumAsk { from: Some(date(first)), to: Some(date(first + 1)), ..SumAsk::default() };
    let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
    let answer = h.store.usage_sums(&query).await.expect("added up");
    assert_eq!(answer["totals"]["usage"]["input"], 9_000_000_000_000_000_000i64);
    assert_eq!(answer["totals"]["requests"], 96 * ACCOUNTS * MODELS);
}

/// Days of as many zones are made as there is a bound for, and of none that nobody asks for.
async fn zones_come_and_go(h: &House, url: &str, first: i64) {
    for hours in -11..=11 {
        // The sign of these names is the other way round.
        let ask = SumAsk {
            from: Some(date(first)),
            to: Some(date(first + 2)),
            tz: Some(format!("Etc/GMT{hours:+}")),
            by: Some("day,account".to_owned()),
            ..SumAsk::default()
        };
        let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
        h.store.usage_sums(&query).await.expect("added up");
    }
    assert_eq!(ask(url, "SELECT count(*)::text FROM usage_zone").await, "8");
    h.clock.advance(32 * DAY);
    while h.store.fold_sums().await.expect("a step") {}
    assert_eq!(ask(url, "SELECT count(*)::text FROM usage_zone").await, "0");
    assert_eq!(ask(url, "SELECT count(*)::text FROM usage_account_sum WHERE shift > 0").await, "0");
}

/// A day since 1970 as its date.
fn date(day: i64) -> String {
    let at = jiff::Timestamp::from_second(day * 86_400).expect("a time");
    at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}
