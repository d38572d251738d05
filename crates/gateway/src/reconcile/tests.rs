//! Bills as tables: what each line of a provider's file means for a handful of calls.

use super::*;
use tollgate_store::{AccountId, Counters, Ending, KeyId};

const MINUTE: i64 = 60_000;
const NOON: i64 = 1_770_000_000_000;

/// The call made `minute` minutes after noon.
fn id(minute: i64) -> CallId {
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&(NOON + minute * MINUTE).to_be_bytes()[2..]);
    CallId(bytes)
}

fn call(minute: i64, input: u64, output: u64, nano: i64) -> UsageRow {
    let at = NOON + minute * MINUTE;
    UsageRow {
        call: id(minute),
        account: AccountId([0; 16]),
        key: KeyId([0; 16]),
        at,
        ended_at: at + 2_000,
        endpoint: "/v1/chat/completions".into(),
        model: "ours".into(),
        provider: Some("p".into()),
        upstream_model: Some("theirs".into()),
        ending: Ending::Answered,
        reason: String::new(),
        status: 200,
        counters: Counters { input, output, ..Counters::default() },
        estimated: false,
        hold: Money::from_nano(nano),
        charge: Money::from_nano(nano),
        refunded: Money::ZERO,
        write_off: Money::ZERO,
        raw_usage: None,
        attempts: 1,
        first_byte_ms: None,
        tier: None,
        dropped: None,
        cost: None,
        price: None,
    }
}

const EXACT: Tolerance = Tolerance { ratio: 1_000_000, relative: 0, absolute: Money::ZERO, window_ms: 120_000 };

fn reconcile(bill: &str, terms: Tolerance, calls: &[UsageRow]) -> BillReport {
    let rows = read_bill(bill).expect("a readable bill");
    let mut bill = Bill::read(&rows, terms).expect("a bill");
    for call in calls {
        bill.ours(call, true).expect("sums");
    }
    bill.finish()
}

/// Matched, differing, only billed, only ours.
fn counts(report: &BillReport) -> [usize; 4] {
    [report.matched, report.differing, report.only_billed, report.only_ours]
}

#[test]
fn by_call_id() {
    let bill = format!("call_id,cost\n{},0.000001\n{},0.000003\n{},5\n", id(1), id(2), id(9));
    let calls = [call(1, 1, 1, 1_000), call(2, 1, 1, 2_000), call(3, 1, 1, 7), call(4, 1, 1, 0)];
    let report = reconcile(&bill, EXACT, &calls);
    assert_eq!(counts(&report), [1, 1, 1, 1], "{report:?}");
    assert_eq!((report.billed.to_string(), report.charged.nano()), ("5.000004".to_owned(), 3_007));
    let kinds: Vec<_> = report.rows.iter().map(|r| (r.kind, r.call, r.line)).collect();
    let wanted =
        [("differs", Some(id(2)), Some(3)), ("only_ours", Some(id(3)), None), ("only_billed", Some(id(9)), Some(4))];
    assert_eq!(kinds, wanted);
    assert!(!report.is_clean());
}

/// Each line more is reported; what the call was billed is their sum, and the rest of the bill is
/// read.
#[test]
fn a_call_that_is_billed_twice() {
    let bill = format!("call_id,cost\n{},0.000001\n{},0.000002\n{},0.000003\n", id(1), id(2), id(1));
    let report = reconcile(&bill, EXACT, &[call(1, 1, 1, 1_000), call(2, 1, 1, 2_000)]);
    assert_eq!((counts(&report), report.billed_twice), ([1, 1, 0, 0], 1), "{report:?}");
    assert_eq!((report.lines, report.billed.nano(), report.charged.nano()), (3, 6_000, 3_000));
    let rows: Vec<_> = report.rows.iter().map(|r| (r.kind, r.call, r.line, r.billed.map(Money::nano))).collect();
    let wanted = [("billed_twice", Some(id(1)), Some(4), Some(3_000)), ("differs", Some(id(1)), Some(2), Some(4_000))];
    assert_eq!(rows, wanted);
    // Two halves of one call are no difference, and are reported all the same.
    let halves = format!("call_id,cost\n{},0.0000005\n{},0.0000005\n", id(1), id(1));
    let report = reconcile(&halves, EXACT, &[call(1, 1, 1, 1_000)]);
    assert_eq!((counts(&report), report.billed_twice, report.is_clean()), ([1, 0, 0, 0], 1, false));
}

#[test]
fn by_facts_the_nearest_in_time() {
    let moment = |minute: i64| NOON + minute * MINUTE + 1_000;
    let bill = format!(
        "{{\"id\":\"gen-1\",\"model\":\"theirs\",\"prompt_tokens\":10,\"completion_tokens\":5,\"created_at\":{},\"cost\":1e-6}}\n\
         {{\"id\":\"gen-2\",\"model\":\"theirs\",\"prompt_tokens\":10,\"completion_tokens\":5,\"created_at\":{},\"cost\":2e-6}}\n\
         {{\"id\":\"gen-3\",\"model\":\"theirs\",\"prompt_tokens\":10,\"completion_tokens\":6,\"created_at\":{},\"cost\":2e-6}}\n",
        moment(0),
        moment(1),
        moment(1),
    );
    let mut second = call(1, 8, 3, 2_000);
    second.counters.cache_read = 2;
    second.counters.reasoning = 2;
    let report = reconcile(&bill, EXACT, &[second, call(0, 10, 5, 1_000), call(30, 10, 6, 2_000)]);
    assert_eq!(counts(&report), [2, 0, 1, 1], "too far apart in time is not the same: {report:?}");
}

/// What bills of real providers look like: empty columns before the filled one, ids of their own
/// beside ours, and lines of things that have no tokens.
#[test]
fn columns_that_are_empty_and_lines_without_tokens() {
    let header = "id,request_id,call_id,cost,total_cost,model,input_tokens,output_tokens,at";
    let bill = format!(
        "{header}\ngen-1,req_7, {},,0.000001,theirs,1,1,\ngen-2,,,,0.000002,theirs,10,5,{}\n\
         gen-3,,,0.5,,their-pictures,,,{}\nfee,,,2,,,,,\n",
        id(1),
        NOON + 2 * MINUTE,
        NOON + 3 * MINUTE,
    );
    let report = reconcile(&bill, EXACT, &[call(1, 1, 1, 1_000), call(2, 10, 5, 2_000)]);
    assert_eq!(counts(&report), [2, 0, 2, 0], "{report:?}");
    let rows: Vec<_> = report.rows.iter().map(|r| (r.kind, r.line, r.billed.map(Money::nano))).collect();
    let wanted = [("only_billed", Some(4), Some(500_000_000)), ("only_billed", Some(5), Some(2_000_000_000))];
    assert_eq!(rows, wanted);
    assert_eq!((report.lines, report.billed.nano()), (4, 2_500_003_000));
}

#[test]
fn tolerance_and_ratio() {
    let bill = format!("call,amount\n{},0.000000850\n{},0.000000701\n", id(1), id(2));
    let calls = [call(1, 1, 1, 1_000), call(2, 1, 1, 1_000)];
    let at = |relative, absolute| Tolerance { ratio: 800_000, relative, absolute: Money::from_nano(absolute), ..EXACT };
    assert_eq!(counts(&reconcile(&bill, at(0, 0), &calls)), [0, 2, 0, 0]);
    assert_eq!(counts(&reconcile(&bill, at(100_000, 0), &calls)), [1, 1, 0, 0], "a tenth of 800 is 80");
    assert_eq!(counts(&reconcile(&bill, at(0, 99), &calls)), [2, 0, 0, 0]);
    assert!(reconcile(&bill, at(0, 99), &calls).is_clean());
}

#[test]
fn what_is_no_bill() {
    for (bill, why) in [
        ("call\ncall_x\n", "line 2"),
        ("call,amount\n,1\n", "nothing to compare"),
        ("call,amount\nx,abc\n", "line 2"),
        ("model,input,output,at,amount\nm,1,2,soon,1\n", "line 2"),
    ] {
        let rows = read_bill(bill).expect("a table");
        let error = Bill::read(&rows, EXACT).err().map(|e| format!("{e:#}")).unwrap_or_default();
        assert!(error.contains(why), "{bill}: {error}");
    }
}

#[test]
fn amounts_and_times_as_providers_write_them() {
    let table = [
        ("1", Some(1_000_000_000)),
        ("$0.0123456789", Some(12_345_679)),
        ("1.2e-05", Some(12_000)),
        ("5E-10", Some(1)),
        ("4e-10", Some(0)),
        ("1e-99", Some(0)),
        ("-0.5", Some(-500_000_000)),
        (".5", Some(500_000_000)),
        ("1e99", None),
        ("", None),
        ("abc", None),
        ("1.2.3", None),
    ];
    for (text, wanted) in table {
        assert_eq!(usd(text).map(Money::nano), wanted, "{text}");
    }
    for text in ["1770000000", "1770000000000", "2026-02-02T02:40:00Z", "2026-02-02T03:40:00+01:00"] {
        assert_eq!(time(text), Some(NOON), "{text}");
    }
    assert_eq!(time("2026-02-02"), Some(NOON - 9_600_000));
    assert_eq!(time("yesterday"), None);
}
