//! The audit by itself: rows that no engine would write.

use super::rows::EntryRow;
use super::*;
use crate::ledger::chain::Content;

const ACCOUNT: [u8; 16] = [7; 16];

/// Follows the account's chain, as the engines do.
fn chained(auditor: &mut Auditor, seq: i64, content: Content<'_>) {
    let end = auditor.accounts.get(&AccountId(ACCOUNT)).map(|running| running.end).unwrap_or_default();
    let content = Content { account: &ACCOUNT, ..content };
    let link = content.after(&end);
    auditor.entry(&StoredEntry { seq, content, link: Some(link.number), hash: Some(&link.hash) });
}

fn unchained(auditor: &mut Auditor, seq: i64) {
    let content =
        Content { op_id: &[0; 17], kind: EntryKind::Adjust as i64, account: &ACCOUNT, at: seq, ..Content::default() };
    auditor.entry(&StoredEntry { seq, content, link: None, hash: None });
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
    let credit = |trial, paid| Content {
        op_id: &[1; 17],
        kind: EntryKind::Adjust as i64,
        trial,
        paid,
        at: 1,
        ..Content::default()
    };
    for (trial, paid, breaches) in [(0, 0, 0), (5, 5, 0), (-1, 5, 1), (5, -1, 1)] {
        let mut auditor = Auditor::default();
        chained(&mut auditor, 1, credit(trial, paid));
        assert_eq!(rows(&auditor, "I3"), breaches, "available {trial} {paid}");
    }
    // Given back what was never held: each of the held pots.
    for (trial, paid) in [(1, 0), (0, 1)] {
        let mut auditor = Auditor::default();
        chained(&mut auditor, 1, credit(5, 5));
        let void = Content { op_id: &[2; 17], kind: EntryKind::Void as i64, trial, paid, at: 2, ..Content::default() };
        chained(&mut auditor, 2, void);
        assert_eq!(rows(&auditor, "I3"), 1, "held {trial} {paid}");
    }
}

#[test]
fn entries_from_before_the_chain_are_reported_to_the_strict_and_none_may_follow_it() {
    let mut auditor = Auditor::default();
    unchained(&mut auditor, 1);
    unchained(&mut auditor, 2);
    assert_eq!((auditor.unchained, rows(&auditor, "I19")), (2, 0));
    auditor.strictly();
    assert_eq!(rows(&auditor, "I19"), 1);
    let mut auditor = Auditor::default();
    chained(&mut auditor, 1, Content { op_id: &[1; 17], kind: EntryKind::Adjust as i64, at: 1, ..Content::default() });
    auditor.strictly();
    assert_eq!(rows(&auditor, "I19"), 0);
    unchained(&mut auditor, 2);
    assert_eq!(rows(&auditor, "I19"), 1, "the chain has begun");
}

/// An entry of call 1, at the beginning of time.
fn row(kind: EntryKind, trial: i64, paid: i64) -> EntryRow<'static> {
    EntryRow {
        seq: 1,
        kind,
        account: AccountId(ACCOUNT),
        call: Some(CallId([1; 16])),
        pots: Pots { trial, paid },
        take: Pots::default(),
        at: 0,
        expires_at: None,
        key: None,
        paid_only: false,
        lots: None,
        credit: None,
        settling: false,
        whole: false,
    }
}

/// A call that is one entry: what it held must have been there, it ends no hold of its own entry,
/// and it charges no more than it held.
#[test]
fn a_whole_call_is_a_hold_and_its_end() {
    let whole = |paid, take| EntryRow {
        take: Pots { trial: 0, paid: take },
        expires_at: Some(1_000),
        whole: true,
        ..row(EntryKind::Settle, 0, paid)
    };
    let mut running = Running { available: Pots { trial: 3, paid: 10 }, ..Running::default() };
    running.moves(&whole(8, 5));
    assert_eq!((running.available, running.held), (Pots { trial: 3, paid: 5 }, Pots::default()));
    let mut key = KeySums::default();
    key.entry(&whole(8, 5));
    assert_eq!((key.spent, key.held), (5, 0));
    let found = |entries: &[EntryRow<'_>]| {
        let mut auditor = Auditor::default();
        entries.iter().for_each(|e| auditor.hold_life(e));
        assert!(auditor.open.is_empty());
        auditor.report.breaches.iter().map(|breach| breach.invariant).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found(&[whole(8, 5)]), "");
    assert_eq!(found(&[whole(8, 9)]), "I6");
    assert_eq!(found(&[row(EntryKind::Hold, 0, 8), whole(8, 5)]), "I4");
    assert_eq!(found(&[whole(8, 5), row(EntryKind::Void, 0, 8)]), "I5");
    assert_eq!(found(&[EntryRow { paid_only: true, pots: Pots { trial: 1, paid: 8 }, ..whole(8, 5) }]), "I16");
}

#[test]
fn a_day_of_loss_is_one_on_which_a_ten_thousandth_was_written_off() {
    let lost = |settled: &[i64], written_off: i64| {
        let mut platform = PlatformBooks::default();
        for paid in settled {
            platform.entry(&EntryRow { take: Pots { trial: 0, paid: *paid }, ..row(EntryKind::Settle, 0, *paid) });
        }
        if written_off > 0 {
            platform.entry(&row(EntryKind::WriteOff, 0, written_off));
        }
        platform.days_of_loss().len()
    };
    assert_eq!(lost(&[60_000, 40_000], 10), 1);
    assert_eq!(lost(&[60_000, 40_001], 10), 0);
    assert_eq!(lost(&[60_000, 40_000], 9), 0);
    assert_eq!(lost(&[], 1), 1, "nothing was captured at all");
    assert_eq!(lost(&[0], 0), 0);
    let mut platform = PlatformBooks::default();
    platform.entry(&row(EntryKind::TopUp, 0, 5));
    assert_eq!(platform.difference(), Some(-5));
    let mut auditor = Auditor::default();
    auditor.account(&AccountRow {
        id: AccountId(ACCOUNT),
        available: Pots { trial: 0, paid: 7 },
        held: Pots::default(),
        end: ChainLink::default(),
        used: Default::default(),
        topped_up: false,
    });
    auditor.platform.forget_customers();
    assert_eq!(auditor.platform.difference(), None);
}

#[test]
fn a_hold_ends_for_its_account_and_not_late() {
    let held = |auditor: &mut Auditor| {
        auditor.hold_life(&EntryRow { expires_at: Some(1_000), ..row(EntryKind::Hold, 0, 5) });
    };
    let mut auditor = Auditor::default();
    held(&mut auditor);
    auditor.hold_life(&EntryRow { account: AccountId([8; 16]), ..row(EntryKind::Void, 0, 5) });
    assert_eq!(rows(&auditor, "I6"), 1, "another account's");
    for (trial, paid, breaches) in [(5, 5, 0), (6, 5, 1), (5, 6, 1)] {
        let mut auditor = Auditor::default();
        auditor.hold_life(&row(EntryKind::Hold, 5, 5));
        auditor.hold_life(&EntryRow { take: Pots { trial, paid }, ..row(EntryKind::Settle, 5, 5) });
        assert_eq!(rows(&auditor, "I6"), breaches, "captured {trial} {paid}");
    }
    for (now, late) in [(121_000, 0), (121_001, 1)] {
        let mut auditor = Auditor::default();
        held(&mut auditor);
        auditor.late_holds(now);
        assert_eq!(rows(&auditor, "I7"), late, "{now}");
    }
}

#[test]
fn what_is_listed_as_open_is_open_in_the_ledger() {
    let call = CallId([1; 16]);
    let open = || {
        let mut auditor = Auditor::default();
        auditor.hold_life(&row(EntryKind::Hold, 0, 5));
        auditor
    };
    for (task, of, breaches) in [(call, ACCOUNT, 0), (CallId([2; 16]), ACCOUNT, 1), (call, [8; 16], 1)] {
        let mut auditor = open();
        auditor.open_task(task, AccountId(of));
        assert_eq!(rows(&auditor, "I14"), breaches);
    }
    let five = Pots { trial: 0, paid: 5 };
    let listed = |list: &[(CallId, Pots)]| {
        let mut auditor = open();
        auditor.open_holds(list);
        rows(&auditor, "I5")
    };
    assert_eq!(listed(&[(call, five)]), 0);
    assert_eq!(listed(&[(call, Pots { trial: 1, paid: 4 })]), 1);
    assert_eq!(listed(&[(CallId([2; 16]), five)]), 1);
    assert_eq!(listed(&[]), 1);
}

#[test]
fn two_mistakes_that_cancel_out_in_the_sums_still_show() {
    // As real ids are: a time, and what is drawn.
    let numbered = |call: u8| CallId(std::array::from_fn(|n| if n < 8 { 0 } else { call }));
    let charge = |call: u8, charge, write_off, refunded| ChargeRow {
        account: AccountId(ACCOUNT),
        call: numbered(call),
        price_id: Some([0; 16]),
        charge,
        write_off,
        refunded,
        counters: Default::default(),
        summed: Default::default(),
        ended_at: 0,
        hash: None,
        seal: crate::call::row_hash::RowSeal::Whole,
    };
    let settle = |call: u8, paid| EntryRow {
        call: Some(numbered(call)),
        take: Pots { trial: 0, paid },
        ..row(EntryKind::Settle, 0, paid)
    };
    let left = |usage: [ChargeRow; 2]| {
        let mut sums = Sums::default();
        sums.entry(&settle(1, 5));
        sums.entry(&settle(2, 7));
        usage.iter().for_each(|row| sums.usage(row));
        sums.left().is_some()
    };
    assert!(!left([charge(1, 5, 0, 0), charge(2, 7, 0, 0)]));
    assert!(left([charge(1, 7, 0, 0), charge(2, 5, 0, 0)]), "the charges were exchanged");
    assert!(left([charge(1, 5, 0, 0), charge(3, 7, 0, 0)]), "another call");
    // A hold that was given up is open again: its first end does not count.
    let mut sums = Sums::default();
    sums.entry(&EntryRow { call: Some(numbered(1)), ..row(EntryKind::Void, 0, 5) });
    sums.entry(&EntryRow { call: Some(numbered(1)), ..row(EntryKind::Reopen, 0, 0) });
    sums.entry(&settle(1, 5));
    sums.usage(&charge(1, 5, 0, 0));
    assert_eq!(sums.left(), None);
    // Computed elsewhere.
    let numbers: [u8; 16] = std::array::from_fn(|n| n as u8 + 1);
    assert_eq!(sums::print(CallId(numbers), 1, 5), 0xbfee_9838_c29f_3d17);
    assert_eq!(sums::print(CallId([255; 16]), 3, -7), 0x5705_ecac_eeb9_4e01);
}

#[test]
fn trial_credit_is_not_taken_twice_nor_beyond_what_there_is() {
    let given = |amount| {
        let mut terms = SpendingAudit::default();
        let gift = EntryRow { credit: Some([9; 16]), expires_at: Some(100), ..row(EntryKind::TopUp, amount, 0) };
        assert!(terms.credit(&gift));
        terms
    };
    let lots = "09090909090909090909090909090909:5";
    let held = |amount: i64, trial: i64| {
        let mut terms = given(amount);
        terms.hold(&mut Default::default(), &EntryRow { lots: Some(lots), ..row(EntryKind::Hold, trial, 0) })
    };
    assert!(held(5, 5) && held(6, 7));
    assert!(!held(5, 4), "more of the credit than of trial money");
    assert!(!held(4, 5), "more than was given");
    let lapsed = |amount, at| {
        let lapse = EntryRow { credit: Some([9; 16]), at, ..row(EntryKind::Lapse, amount, 0) };
        given(5).lapse(&lapse)
    };
    assert!(lapsed(5, 100));
    assert!(!lapsed(5, 99), "not before its time");
    assert!(!lapsed(6, 100), "no more than there was");

    let account = AccountId(ACCOUNT);
    let mut terms = given(10);
    terms.hold(&mut Default::default(), &EntryRow { lots: Some(lots), ..row(EntryKind::Hold, 5, 0) });
    let within =
        |available, held| terms.lots_within(account, Pots { trial: available, paid: 0 }, Pots { trial: held, paid: 0 });
    assert!(within(5, 5) && within(6, 6) && !within(4, 5) && !within(5, 4) && !within(0, 10) && !within(10, 0));
    assert_eq!(terms.lots_given_to(&[account].into()), 1);
    assert_eq!(terms.lots_given_to(&[AccountId([8; 16])].into()), 0);
}

#[test]
fn the_audit_that_goes_on_asks_for_what_changed() {
    let mut touched = Touched::default();
    touched.entry(&EntryRow { take: Pots { trial: 0, paid: 4 }, ..row(EntryKind::Settle, 0, 5) });
    touched.entry(&row(EntryKind::WriteOff, 0, 3));
    touched.entry(&row(EntryKind::Refund, 1, 1));
    let expected = format!("{:?}", touched.calls[&CallId([1; 16])]);
    for part in ["charge: Some(4)", "write_off: Some(3)", "refunded: Some(2)"] {
        assert!(expected.contains(part), "{expected}");
    }
    let mut auditor = Auditor::default();
    assert!(auditor.needs_price(&[1; 16]));
    auditor.price([1; 16], None);
    assert!(!auditor.needs_price(&[1; 16]), "asked for once, also where there is none");
}

#[test]
fn an_account_is_doubted_whose_rows_have_other_hashes_than_its_entries() {
    let row = |call: u8, hash| ChargeRow {
        account: AccountId(ACCOUNT),
        call: CallId([call; 16]),
        price_id: Some([0; 16]),
        charge: 0,
        write_off: 0,
        refunded: 0,
        counters: Default::default(),
        summed: Default::default(),
        ended_at: 5,
        hash,
        seal: crate::call::row_hash::RowSeal::Whole,
    };
    let doubted = |key: u8, references: [Option<&str>; 2], rows: [ChargeRow; 2]| {
        let random: FillRandom = std::sync::Arc::new(move |bytes: &mut [u8]| bytes.fill(key));
        let mut auditor = Auditor::new(&random);
        for (n, reference) in (1..).zip(references) {
            let op_id = [n; 17];
            let end = Content { op_id: &op_id, kind: EntryKind::Void as i64, at: 1, reference, ..Content::default() };
            chained(&mut auditor, n.into(), end);
        }
        rows.iter().for_each(|row| auditor.usage(row));
        let doubtful = auditor.doubtful();
        assert_eq!(auditor.doubtful(), [], "reported once");
        !doubtful.is_empty()
    };
    let (one, two) = (crate::call::row_hash::reference(&[1; 32]), crate::call::row_hash::reference(&[2; 32]));
    let entries = [Some(one.as_str()), Some(two.as_str())];
    for key in [0, 7] {
        assert!(!doubted(key, entries, [row(1, Some([1; 32])), row(2, Some([2; 32]))]));
        assert!(!doubted(key, [None, None], [row(1, None), row(2, None)]), "all from before");
        assert!(!doubted(key, [None, entries[1]], [row(1, None), row(2, Some([2; 32]))]));
        assert!(doubted(key, entries, [row(1, Some([1; 32])), row(2, Some([3; 32]))]));
        assert!(doubted(key, entries, [row(1, Some([1; 32])), row(2, None)]));
        assert!(doubted(key, [entries[0], None], [row(1, Some([1; 32])), row(2, Some([2; 32]))]));
        assert!(doubted(key, [entries[0], Some("usage-1:")], [row(1, Some([1; 32])), row(2, Some([2; 32]))]));
        let refusal = ChargeRow { price_id: None, ..row(2, Some([2; 32])) };
        assert!(!doubted(key, [entries[0], None], [row(1, Some([1; 32])), refusal]), "it has no entry");
    }
}

#[test]
fn a_changed_row_is_reported_once_and_one_of_before_is_counted() {
    use crate::call::row_hash::RowSeal;
    let row = |seal, ended_at| ChargeRow {
        account: AccountId(ACCOUNT),
        call: CallId([1; 16]),
        price_id: None,
        charge: 0,
        write_off: 0,
        refunded: 0,
        counters: Default::default(),
        summed: Default::default(),
        ended_at,
        hash: None,
        seal,
    };
    let mut auditor = Auditor::default();
    auditor.charge(&row(RowSeal::Changed, 5));
    auditor.compared(&row(RowSeal::Changed, 5));
    auditor.compared(&row(RowSeal::Whole, 5));
    assert_eq!(rows(&auditor, "I19"), 1);
    for ended_at in [3, 9, 6] {
        auditor.charge(&row(RowSeal::Missing, ended_at));
    }
    assert_eq!((auditor.report.unhashed_rows, auditor.report.unhashed_until_ms), (3, Some(9)));
}
