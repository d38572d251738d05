use std::sync::Arc;

use serde_json::json;
use tollgate_catalog::Money;

use super::*;
use crate::call::{Close, Hold, Idem, UsageFacts};
use crate::postgres::queue::OpReply;

const ACCOUNT: AccountId = AccountId([1; 16]);
const KEY: KeyId = KeyId([2; 16]);
const REPLICA: [u8; 16] = [9; 16];
const AT: i64 = 1_000_000;

fn call(n: u8) -> CallId {
    CallId([n; 16])
}

fn hold(n: u8, amount: i64) -> QueuedHold {
    let price = json!({
        "model": "m", "version": "v", "tier": null, "group": "default", "paid": false,
        "unit": "tokens", "faces": {"input": 1}, "multiplier": "1",
    });
    let hold = Hold {
        call: call(n),
        account: ACCOUNT,
        key: KEY,
        amount: Money::from_nano(amount),
        least: Money::from_nano(amount),
        price: Arc::new(serde_json::from_value(price).expect("a price")),
        model: "m".into(),
        endpoint: "/v1",
        paid_only: false,
        topped_up: true,
        expires_at: AT + 1_000,
        at: AT,
        idem: None,
    };
    QueuedHold { hold, price_id: [7; 16], price_is_new: false, life: 1_000, at: AT, sure: AT }
}

fn close(n: u8, charge: i64) -> QueuedClose {
    let row = UsageFacts::unanswered(KEY, AT, AT, "/v1".into(), "m".into());
    let close = Close::unanswered(call(n), ACCOUNT, Ending::Answered, "", row);
    let close = Close { charge: Money::from_nano(charge), ..close };
    QueuedClose { close, price_id: None, price_is_new: false, at: AT, sure: AT, reply_room: 0 }
}

/// An account with so much paid money, its key, and open holds of so much.
fn locked(paid: i64, holds: &[(u8, i64)]) -> Locked {
    let mut locked = Locked::default();
    let held: i64 = holds.iter().map(|(_, amount)| amount).sum();
    let account = LockedAccount {
        available: Pots { trial: 0, paid },
        held: Pots { trial: 0, paid: held },
        last_at: 0,
        suspended: false,
        topped_up: false,
        limits: Limits::default(),
        used: Used::default(),
        end: ChainLink::default(),
        changed: false,
        in_order: false,
    };
    locked.accounts.insert(ACCOUNT, account);
    let key = LockedKey {
        account: ACCOUNT,
        revoked: false,
        limits: Limits::default(),
        spent: 0,
        held,
        used: Used::default(),
        changed: false,
    };
    locked.keys.insert(KEY, key);
    for (n, amount) in holds {
        let hold = LockedHold {
            account: ACCOUNT,
            key: KEY,
            replica: REPLICA,
            pots: Pots { trial: 0, paid: *amount },
            paid_only: false,
            price_id: [7; 16],
            special: false,
            counted: Used::default(),
        };
        locked.holds.insert(call(*n), hold);
    }
    locked
}

fn queued(op: QueuedOp) -> PendingOp {
    PendingOp { op, answer: OpReply::Nobody }
}

fn holds(all: Vec<QueuedHold>) -> Vec<PendingOp> {
    all.into_iter().map(|hold| queued(QueuedOp::Hold(Box::new(hold)))).collect()
}

fn closes(all: Vec<QueuedClose>) -> Vec<PendingOp> {
    all.into_iter().map(|close| queued(QueuedOp::Close(Box::new(close)))).collect()
}

/// Which of them are plain.
fn plain(part: &[PendingOp], locked: Locked) -> Vec<bool> {
    Decisions::of(part, locked, &REPLICA).outcomes.iter().map(Option::is_some).collect()
}

#[test]
fn a_hold_that_is_not_plain_is_left_to_the_functions() {
    type Change = fn(&mut Locked, &mut QueuedHold);
    let table: [(&str, Change); 10] = [
        ("idempotency key", |_, waits| waits.hold.idem = Some(Idem { key_hash: [0; 32], fingerprint: [0; 32] })),
        ("another account", |locked, _| locked.accounts.clear()),
        ("another key", |locked, _| locked.keys.clear()),
        ("a key of another account", |locked, _| key(locked).account = AccountId([5; 16])),
        ("revoked", |locked, _| key(locked).revoked = true),
        ("suspended", |locked, _| account(locked).suspended = true),
        ("trial credit", |locked, _| account(locked).available.trial = 1),
        ("a price for those who have not topped up", |locked, waits| {
            account(locked).topped_up = true;
            waits.hold.topped_up = false;
        }),
        ("too little", |locked, _| account(locked).available.paid = 9),
        ("a limit", |locked, _| key(locked).limits.day = Some(Money::from_nano(9))),
    ];
    assert_eq!(plain(&holds(vec![hold(1, 10)]), locked(10, &[])), [true]);
    for (name, change) in table {
        let (mut locked, mut waits) = (locked(100, &[]), hold(1, 10));
        change(&mut locked, &mut waits);
        assert_eq!(plain(&holds(vec![waits]), locked), [false], "{name}");
    }
}

fn account(locked: &mut Locked) -> &mut LockedAccount {
    locked.accounts.get_mut(&ACCOUNT).expect("the account")
}

fn key(locked: &mut Locked) -> &mut LockedKey {
    locked.keys.get_mut(&KEY).expect("the key")
}

fn held(locked: &mut Locked) -> &mut LockedHold {
    locked.holds.get_mut(&call(1)).expect("the hold")
}

#[test]
fn an_end_that_is_not_plain_is_left_to_the_functions() {
    type Change = fn(&mut Locked, &mut QueuedClose);
    let table: [(&str, Change); 8] = [
        ("not open", |locked, _| locked.holds.clear()),
        ("above its hold", |_, waits| waits.close.charge = Money::from_nano(11)),
        ("not all of it paid", |_, waits| waits.close.most = Some(Money::from_nano(9))),
        ("of another replica", |locked, _| held(locked).replica = [8; 16]),
        ("special", |locked, _| held(locked).special = true),
        ("of another account", |locked, _| held(locked).account = AccountId([5; 16])),
        ("of another key", |locked, _| held(locked).key = KeyId([5; 16])),
        ("of nobody", |locked, _| locked.accounts.clear()),
    ];
    assert_eq!(plain(&closes(vec![close(1, 10)]), locked(0, &[(1, 10)])), [true]);
    for (name, change) in table {
        let (mut locked, mut waits) = (locked(0, &[(1, 10)]), close(1, 10));
        change(&mut locked, &mut waits);
        assert_eq!(plain(&closes(vec![waits]), locked), [false], "{name}");
    }
    let twice = closes(vec![close(1, 10), close(2, 10), close(1, 10)]);
    assert_eq!(plain(&twice, locked(0, &[(1, 10), (2, 10)])), [false, true, false], "twice");
}

/// What ends gives back what is held next; a hold that waits for the functions is not overtaken.
#[test]
fn ends_come_first_and_nobody_overtakes() {
    let mut part = holds(vec![hold(3, 30), hold(4, 20), hold(5, 1)]);
    part.extend(closes(vec![close(1, 4), close(2, 0)]));
    let decisions = Decisions::of(&part, locked(5, &[(1, 20), (2, 10)]), &REPLICA);
    let done: Vec<bool> = decisions.outcomes.iter().map(Option::is_some).collect();
    assert_eq!(done, [true, false, false, true, true], "31 are there: 30 are held, 20 and what follows are not");
    let account = &decisions.locked.accounts[&ACCOUNT];
    assert_eq!((account.available.paid, account.held.paid), (1, 30));
    let key = &decisions.locked.keys[&KEY];
    assert_eq!((key.spent, key.held), (4, 30));
    let kinds: Vec<EntryKind> = decisions.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Settle, EntryKind::Void, EntryKind::Hold]);
    // Each entry follows the one before it, and the account ends with the last.
    let mut last = ChainLink::default();
    for entry in &decisions.entries {
        assert_eq!(entry.link, entry.content(&REPLICA).after(&last));
        last = entry.link;
    }
    assert_eq!((account.end, last.number), (last, 3));
}
