//! Calls that begin and end within one group of the writer (SQLite): one entry each, which says
//! what hold and end say elsewhere.

use std::time::Duration;

use crate::common::{Customer, House, options};
use crate::hand::Hand;
use tollgate_catalog::Money;
use tollgate_store::{CallId, Credit, CreditKind, Entry, EntryPage, Options, Pot, Receipted};

const DAY_MS: i64 = 86_400_000;

/// One group is all that comes before somebody reads.
async fn house() -> House {
    House::open_with("sqlite", Options { commit_patience: Duration::from_secs(3_600), ..options() }).await
}

/// The entries that are new, as `kind`, or `kind+` where one is a hold too.
async fn kinds(h: &House, seen: &mut i64) -> Vec<String> {
    let page = EntryPage { account: None, from: None, to: None, after: *seen, until: None, limit: 1_000 };
    let entries = h.store.entries(page).await.expect("the ledger");
    *seen = entries.last().map_or(*seen, |entry| entry.seq);
    let is_end = |kind: &str| matches!(kind, "settle" | "void" | "expire");
    let whole = |entry: &Entry| is_end(&entry.kind) && entry.expires_at.is_some();
    entries.iter().map(|entry| format!("{}{}", entry.kind, if whole(entry) { "+" } else { "" })).collect()
}

/// What the postings leave in the pots of the customer: available and held, of both.
fn postings(h: &House) -> (i64, i64, i64, i64) {
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    let sum = |book: &str| {
        let sql = "SELECT coalesce(sum(credit - debit), 0) FROM posting WHERE book = ?1";
        file.query_row(sql, [book], |r| r.get(0)).expect("a sum")
    };
    (sum("trial_available"), sum("paid_available"), sum("trial_held"), sum("paid_held"))
}

async fn call(h: &House, c: &Customer, held: i64, charge: i64) -> CallId {
    let call = h.held(c, held).await;
    h.store.close(h.ending(c, call, charge));
    call
}

#[tokio::test]
async fn a_call_within_one_group_is_one_entry() {
    let h = house().await;
    let c = h.customer(0, 1_000).await;
    let mut seen = 0;
    assert_eq!(kinds(&h, &mut seen).await, ["top_up"]);
    // Two of them at a time, and a third that stays open.
    let (first, second, third) = (h.held(&c, 30).await, h.held(&c, 50).await, h.held(&c, 5).await);
    h.store.close(h.ending(&c, second, 7));
    h.store.close(h.ending(&c, first, 0));
    assert_eq!(kinds(&h, &mut seen).await, ["hold", "settle+", "void+"]);
    assert_eq!(h.pots(&c).await, (0, 988, 0, 5));
    assert_eq!(postings(&h), (0, 988, 0, 5));
    // Its movements are told as those of every other call.
    let told = |entries: Vec<tollgate_store::CallEntry>| -> Vec<(&str, i64, i64, i64)> {
        entries.iter().map(|one| (one.kind, one.trial.nano(), one.paid.nano(), one.taken.nano())).collect()
    };
    let entries = h.store.entries_of(c.account, second).await.expect("entries");
    assert!(entries.is_sorted_by_key(|entry| entry.at), "{entries:?}");
    assert_eq!(told(entries), [("hold", 0, 50, 0), ("settle", 0, 50, 7)]);
    assert!(matches!(h.store.receipt(c.account, second).await.expect("asked"), Receipted::Signed(_)));
    assert_eq!(h.credit(&c, "back", CreditKind::Refund { call: second }, Pot::Paid, 7).await, Ok(true));
    h.store.close(h.ending(&c, third, 5));
    assert_eq!(kinds(&h, &mut seen).await, ["refund", "settle"]);
    assert_eq!((h.pots(&c).await, postings(&h)), ((0, 995, 0, 0), (0, 995, 0, 0)));
    // Trial money first, as always.
    let both = h.customer(20, 100).await;
    call(&h, &both, 50, 30).await;
    assert_eq!(kinds(&h, &mut seen).await[2..], ["settle+"]);
    assert_eq!((h.pots(&both).await, postings(&h)), ((0, 90, 0, 0), (0, 1_085, 0, 0)));
    assert!(h.store.verify_strictly().await.expect("audited").breaches.is_empty());
    h.close().await;
}

/// What one entry cannot say is written as several.
#[tokio::test]
async fn a_call_with_more_to_say_is_several_entries() {
    let h = house().await;
    let c = h.customer(0, 1_000).await;
    let mut seen = 0;
    kinds(&h, &mut seen).await;
    let extended = h.held(&c, 10).await;
    h.extend(h.more(&c, extended, 1, 10)).await.expect("more");
    h.store.close(h.ending(&c, extended, 15));
    assert_eq!(kinds(&h, &mut seen).await, ["hold", "extend", "settle"]);
    call(&h, &c, 10, 15).await;
    assert_eq!(kinds(&h, &mut seen).await, ["hold", "extend", "settle"], "more than was held");
    let late = h.held(&c, 10).await;
    h.clock.advance(DAY_MS);
    h.store.close(h.ending(&c, late, 5));
    assert_eq!(kinds(&h, &mut seen).await, ["hold", "settle"], "each counts for its day");
    let gift = Credit {
        id: "gift".into(),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: Money::from_nano(10),
        expires_at: Some(h.clock.now() + 1_000_000),
        reason: String::new(),
        actor: "operator".into(),
    };
    h.store.credit(gift).await.expect("credit");
    call(&h, &c, 10, 5).await;
    assert_eq!(kinds(&h, &mut seen).await, ["trial_credit", "hold", "settle"], "credit that expires");
    assert_eq!((h.pots(&c).await, postings(&h)), ((5, 965, 0, 0), (5, 965, 0, 0)));
    assert!(h.store.verify_strictly().await.expect("audited").breaches.is_empty());
    h.close().await;
}

/// A hold by a clock that was put right is the step back of its account, and is seen as one.
#[tokio::test]
async fn a_call_whose_hold_steps_back_in_time_is_two_entries() {
    let h = house().await;
    let c = h.customer(0, 1_000).await;
    h.clock.set_wrong(2 * 3_600_000);
    let h = h.reopen().await;
    let mut seen = 0;
    call(&h, &c, 10, 5).await;
    assert_eq!(kinds(&h, &mut seen).await, ["top_up", "settle+"]);
    h.clock.set_wrong(0);
    let h = h.reopen().await;
    call(&h, &c, 10, 5).await;
    assert_eq!(kinds(&h, &mut seen).await, ["hold", "settle"]);
    call(&h, &c, 10, 5).await;
    assert_eq!(kinds(&h, &mut seen).await, ["settle+"]);
    assert!(h.store.verify().await.expect("audited").breaches.is_empty());
    h.close().await;
}

/// The journal still has the hold when the database has the call: it is not held again.
#[tokio::test]
async fn a_crash_holds_no_whole_call_again() {
    let h = house().await;
    let c = h.customer(0, 1_000).await;
    let mut seen = 0;
    call(&h, &c, 50, 7).await;
    assert_eq!(kinds(&h, &mut seen).await, ["top_up", "settle+"]);
    let only_in_the_journal = call(&h, &c, 50, 3).await;
    let open = h.held(&c, 9).await;
    let copy = h.crashed_copy().await;
    assert_eq!((copy.pots(&c).await, postings(&copy)), ((0, 990, 0, 0), (0, 990, 0, 0)));
    let row = copy.store.usage_of(c.account, only_in_the_journal).await.expect("asked").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (50, 3));
    assert_eq!(copy.store.usage_of(c.account, open).await.expect("asked").expect("a row").reason, "crashed");
    let mut seen = 0;
    assert_eq!(kinds(&copy, &mut seen).await[..2], ["top_up", "settle+"]);
    copy.close().await;
    h.store.close(h.ending(&c, open, 0));
    h.close().await;
}

/// What somebody changes in such an entry is found.
#[tokio::test]
async fn damage_to_a_whole_call_is_found() {
    let damages = [
        ("I1", "UPDATE entry SET take_paid = take_paid - 1 WHERE kind = 1"),
        // Money that was not there.
        ("I3", "UPDATE entry SET paid = 5000 WHERE kind = 1"),
        // Its hold is taken for another entry, which there is not.
        ("I5", "UPDATE entry SET expires_at = NULL WHERE kind = 1"),
        ("I11", "DELETE FROM entry WHERE kind = 2; UPDATE entry SET take_paid = 6 WHERE kind = 1"),
        ("I16", "UPDATE entry SET paid_only = true, trial = 1 WHERE kind = 1"),
        ("I19", "UPDATE entry SET expires_at = expires_at + 1 WHERE kind = 1"),
        ("I19", "UPDATE entry SET model = 'other' WHERE kind = 1"),
        ("I19", "UPDATE entry SET reference = NULL WHERE kind = 1"),
        ("I19", "DELETE FROM entry WHERE kind = 2"),
    ];
    for (invariant, damage) in damages {
        let h = house().await;
        let c = h.customer(0, 1_000).await;
        call(&h, &c, 50, 7).await;
        call(&h, &c, 50, 0).await;
        let mut seen = 0;
        assert_eq!(kinds(&h, &mut seen).await[1..], ["settle+", "void+"]);
        Hand::without_triggers(&h).await.change(damage).await.unwrap_or_else(|e| panic!("{damage}: {e}"));
        let report = h.store.verify().await.expect("the audit runs");
        let found: Vec<_> = report.breaches.iter().map(|breach| breach.invariant).collect();
        assert!(found.contains(&invariant), "{damage}: found {found:?}");
        assert_eq!(report, h.store.verify_quietly().await.expect("the audit runs"), "{damage}");
        h.store.shut().await;
    }
}
