//! What one journal record says. Every call writes two (its hold and its close), so they are
//! packed, not JSON; the reader is the writer's mirror and lives beside it.

use std::borrow::Cow;
use std::sync::Arc;

use tollgate_catalog::{Money, Price};

use super::pack::{Pack, Unpack};
use crate::call::counters::Counters;
use crate::call::price::KnownPrices;
use crate::call::{Close, Ending, Hold, MAX_STORED_REPLY, Mark, StoredReply, UsageFacts};
use crate::ids::{AccountId, CallId, KeyId};

/// The first byte of a record. Another format gets other bytes.
const HOLD: u8 = 1;
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
    /// Also what a hold reads back as: a mark without a charge.
    Mark {
        mark: Box<Mark>,
        price_id: Option<[u8; 16]>,
    },
}

/// What is known of a call when it begins.
pub(crate) fn write_hold(hold: &Hold) -> Vec<u8> {
    let mut pack = begin(HOLD, hold.call, hold.account);
    pack.id(&hold.key.0);
    pack.signed(hold.at);
    pack.text(hold.endpoint);
    pack.text(&hold.model);
    pack.0
}

pub(crate) fn write_mark(mark: &Mark, known: &KnownPrices) -> Vec<u8> {
    let mut pack = begin(MARK, mark.call, mark.account);
    pack.signed(mark.charge.nano());
    facts(&mut pack, &mark.row, None, known);
    tail(&mut pack, &mark.row, mark.most);
    pack.0
}

/// `price_id` is that of a close whose price is not at hand.
pub(crate) fn write_close(close: &Close, price_id: Option<[u8; 16]>, known: &KnownPrices) -> Vec<u8> {
    let mut pack = begin(CLOSE, close.call, close.account);
    pack.signed(close.charge.nano());
    facts(&mut pack, &close.row, price_id, known);
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

fn facts(pack: &mut Pack, row: &UsageFacts, price_id: Option<[u8; 16]>, known: &KnownPrices) {
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
    pack.option(row.price.as_ref().map(|price| price.id()).or(price_id), |pack, id| pack.id(&id));
    // The price itself only until the database has it.
    let new = row.price.as_deref().filter(|price| !known.has(&price.id()));
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
        HOLD => {
            let row = unpack_begun(from)?;
            Some(JournalRecord::Mark {
                mark: Box::new(Mark { call, account, charge: Money::ZERO, most: None, row }),
                price_id: None,
            })
        }
        MARK => {
            let charge = Money::from_nano(from.signed()?);
            let (mut row, price_id) = unpack_facts(from)?;
            let most = unpack_tail(from, &mut row)?;
            Some(JournalRecord::Mark { mark: Box::new(Mark { call, account, charge, most, row }), price_id })
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

fn unpack_begun(from: &mut Unpack<'_>) -> Option<UsageFacts> {
    let (key, at) = (KeyId(from.id()?), from.signed()?);
    Some(UsageFacts::unanswered(key, at, at, Cow::Owned(from.text()?), from.text()?))
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
    let price = from.option(|from| serde_json::from_slice::<Price>(from.bytes()?).ok())?;
    row.price = price.map(Arc::new);
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
}
