//! The books by themselves: what is refused before the database is asked, and what memory forgets.

use super::*;
use crate::account::lots::Lot;
use crate::call::{Ending, Extend};
use crate::sqlite::writer::ops::RefusalOp;
use crate::testing::price;

const ACCOUNT: AccountId = AccountId([1; 16]);
const KEY: KeyId = KeyId([2; 16]);

/// One account with money for everything, and its key.
fn books() -> Books {
    let mut books = Books::new(0);
    let account = AccountBalance {
        available: Pots { trial: 0, paid: 1_000 },
        held: Pots::default(),
        suspended: false,
        topped_up: false,
        last_at: 0,
        released: 0,
        limits: Limits::default(),
        used: Used::default(),
        lots: Lots::default(),
    };
    books.accounts.insert(ACCOUNT, account);
    let key = KeyBalance {
        account: ACCOUNT,
        revoked: false,
        limits: Limits::default(),
        spent: 0,
        held: 0,
        used: Used::default(),
    };
    books.keys.insert(KEY, key);
    books
}

fn wish(call: u8) -> Hold {
    Hold {
        call: CallId([call; 16]),
        account: ACCOUNT,
        key: KEY,
        amount: Money::from_nano(10),
        least: Money::from_nano(10),
        price: price(1),
        model: "m".to_owned(),
        endpoint: "chat",
        paid_only: false,
        topped_up: false,
        expires_at: 1_000,
        at: 0,
        idem: None,
    }
}

fn is_held(books: &mut Books, call: u8) -> bool {
    match books.hold(&mut wish(call), None, 1) {
        Decision::Held { .. } => true,
        Decision::Refused(HoldRefused::Unavailable) => false,
        _ => panic!("neither held nor unavailable"),
    }
}

fn refusal() -> Op {
    let row = crate::call::UsageFacts::unanswered(KEY, 0, 0, "chat".into(), "m".to_owned());
    let (call, ending) = (CallId([0; 16]), Ending::Refused);
    Op::Refusal(Box::new(RefusalOp { call, account: ACCOUNT, ending, reason: String::new(), row }))
}

#[test]
fn nothing_is_held_while_the_database_does_not_keep_up_or_the_store_is_closing() {
    let more = |books: &mut Books| {
        let more = Extend {
            call: CallId([1; 16]),
            account: ACCOUNT,
            step: 1,
            more: Money::from_nano(1),
            least: Money::from_nano(1),
        };
        books.extend(&more, 1).map(|(pots, ..)| pots.total()).map_err(|refused| refused.to_string())
    };
    let unavailable = Err(HoldRefused::Unavailable.to_string());
    let mut stopping = books();
    assert!(is_held(&mut stopping, 1));
    stopping.stop = true;
    assert!(!is_held(&mut stopping, 2));
    assert_eq!(more(&mut stopping), unavailable);

    let mut full = books();
    assert!(is_held(&mut full, 1));
    full.queue.resize_with(QUEUE_LIMIT - 1, refusal);
    assert!(is_held(&mut full, 2), "one place is left");
    assert!(!is_held(&mut full, 3));
    assert_eq!(more(&mut full), unavailable);
    full.queue.truncate(10);
    assert!(is_held(&mut full, 3));
    assert_eq!(more(&mut full), Ok(11));
}

#[test]
fn one_call_has_one_hold() {
    let mut books = books();
    assert!(is_held(&mut books, 1));
    assert!(!is_held(&mut books, 1));
    assert!(is_held(&mut books, 2));
    assert_eq!(books.accounts[&ACCOUNT].held.total(), 20);
}

#[test]
fn a_finished_key_is_forgotten_once_the_database_has_it() {
    let mut books = books();
    let known = |state, op| IdemKeys { fingerprint: [0; 32], call: CallId([0; 16]), state, op };
    for (n, state, op) in [
        (1, IdemState::Running, 4),
        (2, IdemState::Done, 4),
        (3, IdemState::Done, 5),
        (4, IdemState::Done, 6),
        (5, IdemState::Free, 5),
        (6, IdemState::Running, 7),
    ] {
        books.idem.insert((ACCOUNT, [n; 32]), known(state, op));
    }
    let left = |books: &Books| {
        let mut left: Vec<u8> = books.idem.keys().map(|(_, hash)| hash[0]).collect();
        left.sort_unstable();
        (left, books.idem_epoch)
    };
    books.drop_finished_idem(5);
    assert_eq!(left(&books), (vec![1, 4, 6], 1));
    books.drop_finished_idem(5);
    assert_eq!(left(&books), (vec![1, 4, 6], 1), "nothing went, so nobody need look again");
    books.drop_finished_idem(6);
    assert_eq!(left(&books), (vec![1, 6], 2));
}

#[test]
fn what_a_settlement_takes_from_lots_is_reported_in_full() {
    let lot = |n: u8, free| Lot {
        credit: [n; 16],
        reference: n.to_string().into(),
        expires_at: n.into(),
        free,
        held: 0,
        lapses: 0,
    };
    let mut lots = Lots::new([lot(1, 15), lot(2, 50)]);
    let held = lots.hold(10);
    // 20 more are taken for a charge of 27: 5 of the first, 15 of the second, and 3 of those go
    // back.
    let (extension, moves) = close_lots(&mut lots, &held, 20, 27);
    assert_eq!(extension, [([1; 16], 5), ([2; 16], 15)]);
    assert_eq!(moves, [([1; 16], 0, -10), ([1; 16], -5, 0), ([2; 16], -15, 0), ([2; 16], 3, 0)]);
}

#[test]
fn refusals_are_noted_while_there_is_room() {
    let mut books = books();
    books.queue.resize_with(REFUSAL_LIMIT - 1, refusal);
    assert!(books.notes_refusals());
    books.queue.push(refusal());
    assert!(!books.notes_refusals());
    books.queue.clear();
    books.stop = true;
    assert!(!books.notes_refusals());
}

#[test]
fn operations_of_a_call_know_it() {
    let mut books = books();
    assert!(is_held(&mut books, 1));
    books
        .extend(
            &Extend {
                call: CallId([1; 16]),
                account: ACCOUNT,
                step: 1,
                more: Money::from_nano(1),
                least: Money::from_nano(1),
            },
            1,
        )
        .ok();
    books.queue.push(refusal());
    let calls: Vec<Option<u8>> = books.queue.iter().map(|op| op.call().map(|call| call.0[0])).collect();
    assert_eq!(calls, [Some(1), Some(1), Some(0)]);
}

#[test]
fn a_refused_extension_is_taken_back_to_what_was_held_before() {
    let mut books = books();
    assert!(is_held(&mut books, 1));
    let before = (books.accounts[&ACCOUNT].available, books.accounts[&ACCOUNT].held, books.keys[&KEY].held);
    books
        .extend(
            &Extend {
                call: CallId([1; 16]),
                account: ACCOUNT,
                step: 1,
                more: Money::from_nano(7),
                least: Money::from_nano(7),
            },
            1,
        )
        .ok();
    assert_eq!(books.keys[&KEY].held, 17);
    let extension = books.queue.pop().expect("queued");
    books.take_back(&extension, &mut IdMap::default());
    assert_eq!((books.accounts[&ACCOUNT].available, books.accounts[&ACCOUNT].held, books.keys[&KEY].held), before);
    assert_eq!(books.open[&CallId([1; 16])].held.total(), 10);
    assert!(matches!(books.queue.last(), Some(Op::Recount(..))), "the database gets what counts now");
}
