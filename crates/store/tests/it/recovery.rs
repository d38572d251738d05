//! What a crash left open, put right by the next start of the embedded engine: one entry for each
//! call, however many there are, and the same books when another crash comes on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Customer, House, idem, options};
use crate::power::{Planted, cut_short, open};
use tollgate_catalog::Money;
use tollgate_store::testing::{Crash, Simulated, TestClock};
use tollgate_store::{CallId, Credit, CreditKind, EntryPage, Hold, Limits, Options, Pot, UsagePage};

/// How many entries each call has, by the call.
async fn entries(h: &House) -> BTreeMap<CallId, usize> {
    let page = EntryPage { account: None, from: None, to: None, after: 0, until: None, limit: 100_000 };
    let mut found = BTreeMap::new();
    for call in h.store.entries(page).await.expect("the ledger").into_iter().filter_map(|entry| entry.call) {
        *found.entry(call).or_default() += 1;
    }
    found
}

/// More than the writer takes at once: while it writes the first of them, others are decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_that_only_the_journal_knows_is_one_entry_after_a_crash() {
    const CALLS: u64 = 5_000;
    let h = House::open_with("sqlite", Options { journal_segment: 4 << 20, ..options() }).await;
    let c = h.customer(0, 1_000_000).await;
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let mut open = Vec::new();
    for n in 0..CALLS {
        let call = h.store.hold(h.wish(&c, 10)).await.expect("a hold").call;
        if n % 3 == 0 {
            h.store.mark(h.mark(&c, call, 7));
        }
        open.push(call);
    }
    let copy = h.crashed_copy().await;
    let marked = CALLS.div_ceil(3);
    assert_eq!((copy.recovered.settled, copy.recovered.voided), (marked, CALLS - marked));
    assert!(copy.store.gauges().commits > 1, "more than one group");
    let found = entries(&copy).await;
    assert_eq!(found.len(), open.len());
    assert!(found.values().all(|entries| *entries == 1), "{:?}", found.iter().find(|(_, entries)| **entries > 1));
    assert_eq!(copy.pots(&c).await, (0, 1_000_000 - 7 * i64::try_from(marked).expect("few"), 0, 0));
    copy.close().await;
    blocker.execute_batch("ROLLBACK").expect("released");
    for call in open {
        h.store.close(h.ending(&c, call, 0));
    }
    h.close().await;
}

/// A process that was killed with many calls open, some of them ended, none of them in the
/// database; its customers, and the calls that had not ended and pay with what never expires.
async fn left(dir: &Arc<tempfile::TempDir>, clock: &TestClock) -> (Simulated, [Customer; 2], Vec<CallId>) {
    let (h, simulated) = open(dir, "0", clock, (1 << 20, Planted::Nothing)).await;
    let [lasting, expiring] =
        [simulated.stepped(h.customer(50, 900)).await, simulated.stepped(h.customer(50, 900)).await];
    let gift = Credit {
        id: "gift".into(),
        account: expiring.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: Money::from_nano(60),
        expires_at: Some(clock.now() + 40_000_000),
        reason: String::new(),
        actor: String::new(),
    };
    simulated.stepped(h.store.credit(gift)).await.expect("credit");
    let mut single = Vec::new();
    for n in 0..60u8 {
        let of = if n % 4 == 3 { &expiring } else { &lasting };
        let key = (n % 9 == 2).then(|| idem(n, 1));
        let call = h.store.hold(Hold { idem: key, ..h.wish(of, 10) }).await.expect("a hold").call;
        clock.advance(7);
        if n % 5 == 0 {
            h.store.mark(h.mark(of, call, i64::from(n % 7)));
        }
        if n % 6 == 5 {
            // Some for more than was held.
            h.store.close(h.ending(of, call, i64::from(n % 16)));
        } else if n % 4 != 3 {
            single.push(call);
        }
    }
    clock.advance(1_000);
    (simulated, [lasting, expiring], single)
}

/// What somebody can see of the books.
async fn books(h: &House, simulated: &Simulated, customers: &[Customer; 2]) -> String {
    let report = simulated.stepped(h.store.verify()).await.expect("the audit runs");
    assert!(report.breaches.is_empty(), "the audit found {:#?}", report.breaches);
    let mut seen = String::new();
    for c in customers {
        let account = simulated.stepped(h.store.account(c.account)).await.expect("read").expect("the account");
        let key = simulated.stepped(h.store.key(c.key)).await.expect("read").expect("the key");
        assert_eq!((account.limits, key.limits), (Limits::default(), Limits::default()));
        seen += &format!("{:?} {:?}\n", simulated.stepped(h.pots(c)).await, account.used);
        seen += &format!("{:?} {:?} {:?}\n", key.spent, key.held, key.used);
    }
    let page = UsagePage { before: None, limit: 1_000 };
    for row in simulated.stepped(h.store.usage(None, page)).await.expect("the log") {
        let money = (row.hold, row.charge, row.write_off);
        seen += &format!("{} {money:?} {:?} {} {}\n", row.call, row.ending, row.reason, row.at);
    }
    seen
}

/// Another crash after any of the commits of a recovery, by the power or without it.
#[tokio::test(start_paused = true)]
async fn a_recovery_that_is_cut_short_is_taken_up_where_it_was() {
    let (dir, clock) = (Arc::new(tempfile::tempdir().expect("a folder")), TestClock::default());
    let (first, customers, single) = left(&dir, &clock).await;
    let crashed = |simulated: &Simulated, how, name: &str| {
        std::fs::create_dir(dir.path().join(name)).expect("a folder");
        simulated.disk.crash(how, &dir.path().join(name), &mut |below| below / 2);
    };
    crashed(&first, Crash::Killed, "whole");
    let (h, simulated) = open(&dir, "whole", &clock, (2 << 20, Planted::Nothing)).await;
    let expected = books(&h, &simulated, &customers).await;
    assert_eq!(expected.lines().count(), 64, "{expected}");
    for commits in (1u64..).step_by(3) {
        let (begun, next) = (format!("begun {commits}"), format!("next {commits}"));
        crashed(&first, Crash::Killed, &begun);
        let of = ((2 + commits) << 20, Planted::Nothing);
        let how = if commits % 2 == 0 { Crash::Killed } else { Crash::PowerCut };
        if !cut_short((&dir, &begun, &next), &clock, of, commits, (how, &mut |below| below / 2)).await {
            assert!(commits > 10, "{commits}: some of it is committed before all of it is decided");
            break;
        }
        let (again, simulated) = open(&dir, &next, &clock, of).await;
        assert_eq!(books(&again, &simulated, &customers).await, expected, "after {commits} commits");
        let found = simulated.stepped(entries(&again)).await;
        assert!(single.iter().all(|call| found[call] == 1), "after {commits} commits: {found:?}");
    }
}
