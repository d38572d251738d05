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
    let hold = HoldRecord {
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
        at,
        pots,
        lots,
    };
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
mod tests;
