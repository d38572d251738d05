//! The audit by itself: rows that no engine would write.

use super::*;
use crate::chain::Content;

const ACCOUNT: [u8; 16] = [7; 16];

/// Follows the account's chain, as the engines do.
fn chained(auditor: &mut Auditor, seq: i64, content: Content<'_>) {
    let end = auditor.accounts.get(&AccountId(ACCOUNT)).map(|running| running.end).unwrap_or_default();
    let content = Content { account: &ACCOUNT, ..content };
    let link = content.after(&end);
    auditor.entry(&Stored { seq, content, link: Some(link.number), hash: Some(&link.hash) });
}

fn unchained(auditor: &mut Auditor, seq: i64) {
    let content =
        Content { op_id: &[0; 17], kind: Kind::Adjust as i64, account: &ACCOUNT, at: seq, ..Content::default() };
    auditor.entry(&Stored { seq, content, link: None, hash: None });
}

fn rows(auditor: &Auditor, invariant: &str) -> usize {
    auditor.report.breaches.iter().filter(|b| b.invariant == invariant).map(|b| b.rows.len()).sum()
}

#[test]
fn a_breach_shows_its_first_rows_and_no_more() {
    let mut auditor = Auditor::default();
    for n in 0..SHOWN + 5 {
        auditor.breach("I1", n.to_string());
        assert_eq!(rows(&auditor, "I1"), (n + 1).min(SHOWN));
    }
    auditor.breach("I2", "another".to_owned());
    assert_eq!(rows(&auditor, "I2"), 1);
    assert_eq!(show(Some(&[0x0a, 0xff]), "why"), "0aff why");
    assert_eq!(show(None, "why"), " why");
}

#[test]
fn each_pot_alone_may_not_fall_below_nothing() {
    let credit =
        |trial, paid| Content { op_id: &[1; 17], kind: Kind::Adjust as i64, trial, paid, at: 1, ..Content::default() };
    for (trial, paid, breaches) in [(0, 0, 0), (5, 5, 0), (-1, 5, 1), (5, -1, 1)] {
        let mut auditor = Auditor::default();
        chained(&mut auditor, 1, credit(trial, paid));
        assert_eq!(rows(&auditor, "I3"), breaches, "available {trial} {paid}");
    }
    // Given back what was never held: each of the held pots.
    for (trial, paid) in [(1, 0), (0, 1)] {
        let mut auditor = Auditor::default();
        chained(&mut auditor, 1, credit(5, 5));
        let void = Content { op_id: &[2; 17], kind: Kind::Void as i64, trial, paid, at: 2, ..Content::default() };
        chained(&mut auditor, 2, void);
        assert_eq!(rows(&auditor, "I3"), 1, "held {trial} {paid}");
    }
}

#[test]
fn entries_from_before_the_chain_are_told_to_the_strict_and_none_may_follow_it() {
    let mut auditor = Auditor::default();
    unchained(&mut auditor, 1);
    unchained(&mut auditor, 2);
    assert_eq!((auditor.unchained, rows(&auditor, "I19")), (2, 0));
    auditor.strictly();
    assert_eq!(rows(&auditor, "I19"), 1);
    let mut auditor = Auditor::default();
    chained(&mut auditor, 1, Content { op_id: &[1; 17], kind: Kind::Adjust as i64, at: 1, ..Content::default() });
    auditor.strictly();
    assert_eq!(rows(&auditor, "I19"), 0);
    unchained(&mut auditor, 2);
    assert_eq!(rows(&auditor, "I19"), 1, "the chain has begun");
}
