//! What one journal record says. Every call writes two (its hold and its close), so they are
//! packed, not JSON; the reader is the writer's mirror and lives beside it.

use std::borrow::Cow;
use std::sync::Arc;

use tollgate_catalog::{Money, Price};

use crate::account::lots::Parts;

use super::pack::{Pack, Unpack};
use crate::call::counters::Counters;
use crate::call::price::KnownPrices;
use crate::call::{Close, Ending, Hold, Idem, MAX_STORED_REPLY, Mark, StoredReply, UsageFacts};
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;

/// The first byte of a record. Another format gets other bytes. `BEGUN` is what earlier versions
/// wrote of a hold: enough for its row in the usage log, not for its entry.
const BEGUN: u8 = 1;
const HOLD: u8 = 4;
pub(super) const MARK: u8 = 2;
pub(super) const CLOSE: u8 = 3;

/// Stands for no limit of what the customer pays, where something follows: no amount is so small.
const NO_MOST: i64 = i64::MIN;

/// A record read back.
pub(crate) enum JournalRecord {
    Close {
        close: Box<Close>,
        price_id: Option<[u8; 16]>,
    },
    /// Also what a hold reads back as: a mark without a charge, and the hold itself.
    Mark {
        mark: Box<Mark>,
        price_id: Option<[u8; 16]>,
        hold: Option<Box<HoldRecord>>,
    },
}

/// All that recovery needs to make the entry of a hold that the database does not have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HoldRecord {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub endpoint: String,
    pub model: String,
    pub expires_at: i64,
    pub paid_only: bool,
    pub idem: Option<Idem>,
    pub price_id: [u8; 16],
    /// Only until the database has it.
    pub price: Option<Arc<Price>>,
    pub at: i64,
    pub pots: Pots,
    pub lots: Parts,
}

/// What is known of a hold before it is decided; [`decided`] adds the rest.
pub(crate) fn write_hold(hold: &Hold, known: &KnownPrices) -> Vec<u8> {
    let mut pack = begin(HOLD, hold.call, hold.account);
    pack.id(&hold.key.0);
    pack.text(hold.endpoint);
    pack.text(&hold.model);
    pack.signed(hold.expires_at);
    pack.flag(hold.paid_only);
    pack.option(hold.idem.as_ref(), |pack, idem| {
        pack.bytes(&idem.key_hash);
        pack.bytes(&idem.fingerprint);
    });
    pack.id(&hold.price.id());
    new_price(&mut pack, Some(&hold.price), known);
    pack.0
}

/// When the hold was made, and what it took from which pots and lots.
pub(crate) fn decided(buffer: &mut Vec<u8>, at: i64, pots: Pots, lots: &[([u8; 16], i64)]) {
    let mut pack = Pack(std::mem::take(buffer));
    pack.signed(at);
    pack.signed(pots.trial);
    pack.signed(pots.paid);
    pack.number(lots.len() as u64);
    for (credit, part) in lots {
        pack.id(credit);
        pack.signed(*part);
    }
    *buffer = pack.0;
}

pub(crate) fn write_mark(mark: &Mark, known: &KnownPrices) -> Vec<u8> {
    let mut pack = begin(MARK, mark.call, mark.account);
    pack.signed(mark.charge.nano());
    facts(&mut pack, &mark.row, known);
    tail(&mut pack, &mark.row, mark.most);
    pack.0
}

pub(crate) fn write_close(close: &Close, known: &KnownPrices) -> Vec<u8> {
    let mut pack = begin(CLOSE, close.call, close.account);
    pack.signed(close.charge.nano());
    facts(&mut pack, &close.row, known);
    pack.number(u64::try_from(close.ending.code()).unwrap_or(0));
    pack.text(&close.reason);
    let reply = close.reply.as_ref().filter(|reply| reply.body.len() <= MAX_STORED_REPLY);
    pack.option(reply, |pack, reply| {
        pack.number(u64::from(reply.status));
        pack.text(&reply.content_type);
        pack.bytes(&reply.body);
    });
    tail(&mut pack, &close.row, close.most);
    pack.0
}

/// Behind everything else, and nothing where there is none: records without it are as they always
/// were.
fn tail(pack: &mut Pack, row: &UsageFacts, most: Option<Money>) {
    let tools = row.counters.tools.text();
    let cost = row.cost.is_some();
    if row.dropped.is_some() || tools.is_some() || most.is_some() || cost {
        pack.text(row.dropped.as_deref().unwrap_or_default());
    }
    if tools.is_some() || most.is_some() || cost {
        pack.text(tools.as_deref().unwrap_or_default());
    }
    if most.is_some() || cost {
        pack.signed(most.map_or(NO_MOST, Money::nano));
    }
    if let Some(cost) = row.cost {
        pack.signed(cost.nano());
    }
}

fn begin(kind: u8, call: CallId, account: AccountId) -> Pack {
    let mut pack = Pack(super::buffer());
    pack.byte(kind);
    pack.id(&call.0);
    pack.id(&account.0);
    pack
}

fn facts(pack: &mut Pack, row: &UsageFacts, known: &KnownPrices) {
    pack.id(&row.key.0);
    pack.signed(row.at);
    pack.signed(row.ended_at);
    pack.text(&row.endpoint);
    pack.text(&row.model);
    pack.option(row.provider.as_deref(), Pack::text);
    pack.option(row.upstream_model.as_deref(), Pack::text);
    pack.number(u64::from(row.status));
    pack.counters(&row.counters);
    pack.flag(row.estimated);
    pack.option(row.raw_usage.as_deref(), Pack::text);
    pack.number(u64::from(row.attempts));
    pack.option(row.first_byte_ms, |pack, ms| pack.number(u64::from(ms)));
    pack.option(row.tier.as_deref(), Pack::text);
    pack.option(row.price.as_ref().map(|price| price.id()), |pack, id| pack.id(&id));
    new_price(pack, row.price.as_deref(), known);
}

/// The price itself only until the database has it.
fn new_price(pack: &mut Pack, price: Option<&Price>, known: &KnownPrices) {
    let new = price.filter(|price| !known.has(&price.id()));
    pack.option(new.and_then(|price| serde_json::to_vec(price).ok()), |pack, json| pack.bytes(&json));
}

/// `None`: not a record of this version.
pub(crate) fn read(payload: &[u8]) -> Option<JournalRecord> {
    let record = unpack(&mut Unpack(payload));
    if record.is_none() {
        tracing::error!("unreadable journal record");
    }
    record
}

fn unpack(from: &mut Unpack<'_>) -> Option<JournalRecord> {
    let kind = from.byte()?;
    let (call, account) = (CallId(from.id()?), AccountId(from.id()?));
    match kind {
        BEGUN => {
            let (key, at) = (KeyId(from.id()?), from.signed()?);
            Some(begun(call, account, key, at, (from.text()?, from.text()?), None))
        }
        HOLD => {
            let hold = unpack_hold(from, call, account)?;
            let words = (hold.endpoint.clone(), hold.model.clone());
            Some(begun(call, account, hold.key, hold.at, words, Some(Box::new(hold))))
        }
        MARK => {
            let charge = Money::from_nano(from.signed()?);
            let (mut row, price_id) = unpack_facts(from)?;
            let most = unpack_tail(from, &mut row)?;
            let mark = Box::new(Mark { call, account, charge, most, row });
            Some(JournalRecord::Mark { mark, price_id, hold: None })
        }
        CLOSE => {
            let charge = Money::from_nano(from.signed()?);
            let (mut row, price_id) = unpack_facts(from)?;
            let ending = Ending::from_code(i64::try_from(from.number()?).ok()?);
            let reason = from.text()?;
            let reply = from.option(|from| {
                let status = u16::try_from(from.number()?).ok()?;
                Some(StoredReply { status, content_type: from.text()?, body: from.bytes()?.to_vec().into() })
            })?;
            let most = unpack_tail(from, &mut row)?;
            let close = Close { call, account, ending, reason, charge, most, row, reply };
            Some(JournalRecord::Close { close: Box::new(close), price_id })
        }
        _ => None,
    }
}

/// What was dropped and which tools ran goes to the row; returned is the most that the customer
/// pays.
fn unpack_tail(from: &mut Unpack<'_>, row: &mut UsageFacts) -> Option<Option<Money>> {
    if from.0.is_empty() {
        return Some(None);
    }
    row.dropped = Some(from.text()?).filter(|dropped| !dropped.is_empty());
    if from.0.is_empty() {
        return Some(None);
    }
    row.counters = row.counters.with_tools(Some(&from.text()?));
    if from.0.is_empty() {
        return Some(None);
    }
    let most = Some(from.signed()?).filter(|most| *most != NO_MOST).map(Money::from_nano);
    if !from.0.is_empty() {
        row.cost = Some(Money::from_nano(from.signed()?));
    }
    Some(most)
}

/// A call of which nothing is known but that it began.
fn begun(
    call: CallId,
    account: AccountId,
    key: KeyId,
    at: i64,
    (endpoint, model): (String, String),
    hold: Option<Box<HoldRecord>>,
) -> JournalRecord {
    let row = UsageFacts::unanswered(key, at, at, Cow::Owned(endpoint), model);
    let mark = Box::new(Mark { call, account, charge: Money::ZERO, most: None, row });
    JournalRecord::Mark { mark, price_id: None, hold }
}

fn unpack_hold(from: &mut Unpack<'_>, call: CallId, account: AccountId) -> Option<HoldRecord> {
    let key = KeyId(from.id()?);
    let (endpoint, model) = (from.text()?, from.text()?);
    let (expires_at, paid_only) = (from.signed()?, from.flag()?);
    let hash = |from: &mut Unpack<'_>| from.bytes()?.try_into().ok();
    let idem = from.option(|from| Some(Idem { key_hash: hash(from)?, fingerprint: hash(from)? }))?;
    let price_id = from.id()?;
    let price = unpack_price(from)?;
    let at = from.signed()?;
    let pots = Pots { trial: from.signed()?, paid: from.signed()? };
    let mut lots = Parts::new();
    for _ in 0..from.number()? {
        lots.push((from.id()?, from.signed()?));
    }
    let hold =
        HoldRecord { call, account, key, endpoint, model, expires_at, paid_only, idem, price_id, price, at, pots, lots };
    Some(hold)
}

#[expect(clippy::option_option, reason = "the outer one is the reading, the inner one the value")]
fn unpack_price(from: &mut Unpack<'_>) -> Option<Option<Arc<Price>>> {
    from.option(|from| serde_json::from_slice::<Price>(from.bytes()?).ok().map(Arc::new))
}

fn unpack_facts(from: &mut Unpack<'_>) -> Option<(UsageFacts, Option<[u8; 16]>)> {
    let mut row = UsageFacts {
        key: KeyId(from.id()?),
        at: from.signed()?,
        ended_at: from.signed()?,
        endpoint: Cow::Owned(from.text()?),
        model: from.text()?,
        provider: from.option(Unpack::text)?,
        upstream_model: from.option(Unpack::text)?,
        status: u16::try_from(from.number()?).ok()?,
        counters: Counters::default(),
        estimated: false,
        raw_usage: None,
        attempts: 0,
        first_byte_ms: None,
        tier: None,
        dropped: None,
        cost: None,
        price: None,
    };
    row.counters = from.counters()?;
    row.estimated = from.flag()?;
    row.raw_usage = from.option(Unpack::text)?;
    row.attempts = u32::try_from(from.number()?).ok()?;
    row.first_byte_ms = from.option(|from| u32::try_from(from.number()?).ok())?;
    row.tier = from.option(Unpack::text)?;
    let price_id = from.option(Unpack::id)?;
    row.price = unpack_price(from)?;
    Some((row, price_id))
}

#[cfg(test)]
mod tests {
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
        match read(&written[super::super::RECORD_HEADER..]) {
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
                let (read, price_id) = read_back(&write_close(&written, &known));
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
        match read(&written[super::super::RECORD_HEADER..]) {
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
        let (read, _) = read_back(&write_close(&written, &known));
        assert_eq!((read.row.cost, read.most, read.row.dropped), (Some(Money::ZERO), None, None));
    }

    #[test]
    fn a_price_is_written_until_the_database_has_it() {
        let known = KnownPrices::default();
        let before = write_close(&close(None, None, None), &known);
        known.add([price().id()]);
        let after = write_close(&close(None, None, None), &known);
        assert!(after.len() < before.len());
        let (read, price_id) = read_back(&after);
        assert_eq!((read.row.price.is_none(), price_id), (true, Some(price().id())));
    }
}
