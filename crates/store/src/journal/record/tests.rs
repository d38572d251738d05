//! Records come back as they were written, also those of earlier versions.

use super::*;
use tollgate_catalog::{Face, Uses};

fn price() -> Price {
    serde_json::from_str(
        r#"{"model":"m","version":"v","tier":null,"group":"default","paid":false,"faces":{"input":1,"output":2},"multiplier":"1"}"#,
    )
    .expect("a price")
}

fn close(dropped: Option<&str>, body: Option<usize>, most: Option<i64>) -> Close {
    let row = UsageFacts::unanswered(KeyId([3; 16]), 4, 5, Cow::Borrowed("chat"), "m".to_owned());
    let dropped = dropped.map(str::to_owned);
    Close {
        call: CallId([1; 16]),
        account: AccountId([2; 16]),
        ending: Ending::Answered,
        reason: "why".to_owned(),
        charge: Money::from_nano(-7),
        most: most.map(Money::from_nano),
        row: UsageFacts { dropped, price: Some(Arc::new(price())), ..row },
        reply: body.map(|length| StoredReply {
            status: 200,
            content_type: "text/plain".to_owned(),
            body: vec![b'x'; length].into(),
        }),
    }
}

fn read_back(written: &[u8]) -> (Box<Close>, Option<[u8; 16]>) {
    match read(&written[crate::journal::RECORD_HEADER..]) {
        Some(JournalRecord::Close { close, price_id }) => (close, price_id),
        _ => panic!("not a close"),
    }
}

#[test]
fn a_close_comes_back_with_all_it_said() {
    let known = KnownPrices::default();
    let searched = Uses::NONE.with(Face::WebSearch, 3);
    for (dropped, tools) in
        [(None, Uses::NONE), (Some("seed,top_k"), Uses::NONE), (None, searched), (Some("seed,top_k"), searched)]
    {
        for (length, stored) in [
            (None, None),
            (Some(0), Some(0)),
            (Some(MAX_STORED_REPLY), Some(1 << 20)),
            (Some(MAX_STORED_REPLY + 1), None),
        ] {
            let most = length.map(|length| i64::try_from(length).expect("fits"));
            let mut written = close(dropped, length, most);
            written.row.counters.tools = tools;
            written.row.cost = length.filter(|length| *length != 0).map(|_| Money::from_nano(77));
            let (read, price_id) = read_back(&write_close(&written, None, &known));
            assert_eq!((read.call, read.account, read.ending), (written.call, written.account, written.ending));
            assert_eq!((read.reason, read.charge), (written.reason, written.charge));
            assert_eq!((read.row.dropped.as_deref(), read.most), (dropped, written.most));
            assert_eq!((read.row.counters.tools, read.row.cost), (tools, written.row.cost));
            assert_eq!(read.reply.map(|reply| reply.body.len()), stored, "a longer reply is not journalled");
            assert_eq!(price_id, Some(price().id()));
            assert_eq!(read.row.price.map(|price| price.id()), price_id);
        }
    }
}

fn hold(idem: bool, lots: Parts) -> (Hold, HoldRecord) {
    let idem = idem.then_some(Idem { key_hash: [7; 32], fingerprint: [8; 32] });
    let (call, account, key) = (CallId([1; 16]), AccountId([2; 16]), KeyId([3; 16]));
    let price = Arc::new(price());
    let hold = Hold {
        call,
        account,
        key,
        amount: Money::from_nano(30),
        least: Money::from_nano(30),
        price: price.clone(),
        model: "m".to_owned(),
        endpoint: "chat",
        paid_only: true,
        topped_up: false,
        expires_at: 99,
        at: 3,
        idem,
    };
    let (endpoint, model) = ("chat".to_owned(), "m".to_owned());
    let (expires_at, paid_only, price_id) = (99, true, price.id());
    let pots = Pots { trial: 10, paid: 20 };
    let price = Some(price);
    let read = HoldRecord {
        call,
        account,
        key,
        endpoint,
        model,
        expires_at,
        paid_only,
        idem,
        price_id,
        price,
        at: 4,
        pots,
        lots,
    };
    (hold, read)
}

fn hold_read_back(written: &[u8]) -> (Box<Mark>, Option<Box<HoldRecord>>) {
    match read(&written[crate::journal::RECORD_HEADER..]) {
        Some(JournalRecord::Mark { mark, price_id: None, hold }) => (mark, hold),
        _ => panic!("not a hold"),
    }
}

#[test]
fn a_hold_comes_back_with_all_that_its_entry_needs() {
    for (idem, lots) in [(false, Parts::new()), (true, vec![([5; 16], 4), ([6; 16], 6)])] {
        let (wish, expected) = hold(idem, lots.clone());
        let known = KnownPrices::default();
        let mut written = write_hold(&wish, &known);
        decided(&mut written, 4, expected.pots, &lots);
        let (mark, read) = hold_read_back(&written);
        assert_eq!(read.as_deref(), Some(&expected));
        assert_eq!((mark.call, mark.charge, mark.row.key, mark.row.at), (wish.call, Money::ZERO, wish.key, 4));
        // Once the database has the price, its name is enough.
        known.add([price().id()]);
        let mut shorter = write_hold(&wish, &known);
        decided(&mut shorter, 4, expected.pots, &lots);
        assert!(shorter.len() < written.len());
        let expected = HoldRecord { price: None, ..expected };
        assert_eq!(hold_read_back(&shorter).1.as_deref(), Some(&expected));
    }
}

/// As the version before this one wrote it: an upgrade may find it after a crash.
#[test]
fn a_hold_of_an_earlier_version_is_a_call_that_began() {
    let mut pack = begin(BEGUN, CallId([1; 16]), AccountId([2; 16]));
    pack.id(&[3; 16]);
    pack.signed(4);
    pack.text("chat");
    pack.text("m");
    let (mark, hold) = hold_read_back(&pack.0);
    assert!(hold.is_none());
    assert_eq!((mark.row.key, mark.row.at, mark.row.model.as_str()), (KeyId([3; 16]), 4, "m"));
}

#[test]
fn a_cost_needs_neither_a_limit_nor_tools() {
    let known = KnownPrices::default();
    let mut written = close(None, None, None);
    written.row.cost = Some(Money::ZERO);
    let (read, _) = read_back(&write_close(&written, None, &known));
    assert_eq!((read.row.cost, read.most, read.row.dropped), (Some(Money::ZERO), None, None));
}

#[test]
fn a_price_is_written_until_the_database_has_it() {
    let known = KnownPrices::default();
    let before = write_close(&close(None, None, None), None, &known);
    known.add([price().id()]);
    let after = write_close(&close(None, None, None), None, &known);
    assert!(after.len() < before.len());
    let (read, price_id) = read_back(&after);
    assert_eq!((read.row.price.is_none(), price_id), (true, Some(price().id())));
}
