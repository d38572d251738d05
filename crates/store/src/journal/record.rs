//! What one journal record says. JSON, so that a record can be read by a person after an accident.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tollgate_catalog::{Money, Price};

use crate::call::{Close, Ending, Hold, Mark, StoredReply, UsageFacts};
use crate::ids::{AccountId, CallId, KeyId};
use crate::price::KnownPrices;

/// Replies above this size are not journalled: after a crash a repeated request learns the call, not the reply.
const REPLY_LIMIT: usize = 256 << 10;

#[derive(Serialize, Deserialize)]
struct Written<'a> {
    call: CallId,
    account: AccountId,
    /// `None`: a mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Cow<'a, str>,
    charge: Money,
    row: Cow<'a, UsageFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_id: Option<[u8; 16]>,
    /// Only until the database has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Cow<'a, Price>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<WrittenReply<'a>>,
}

#[derive(Serialize, Deserialize)]
struct WrittenReply<'a> {
    status: u16,
    content_type: Cow<'a, str>,
    body: Cow<'a, str>,
}

/// What is known of a call when it begins, short because every call writes one. Reads back as a mark without a charge.
#[derive(Serialize)]
struct Begun<'a> {
    call: CallId,
    account: AccountId,
    charge: Money,
    row: BegunRow<'a>,
}

#[derive(Serialize)]
struct BegunRow<'a> {
    key: KeyId,
    at: i64,
    ended_at: i64,
    endpoint: &'a str,
    model: &'a str,
    status: u16,
    counters: Nothing,
    estimated: bool,
    attempts: u32,
}

/// All counters at zero.
#[derive(Serialize)]
struct Nothing {}

/// A record read back.
pub(crate) enum Record {
    Close { close: Box<Close>, price_id: Option<[u8; 16]> },
    Mark { mark: Box<Mark>, price_id: Option<[u8; 16]> },
}

pub(crate) fn write_hold(hold: &Hold) -> Vec<u8> {
    write(&Begun {
        call: hold.call,
        account: hold.account,
        charge: Money::ZERO,
        row: BegunRow {
            key: hold.key,
            at: hold.at,
            ended_at: hold.at,
            endpoint: hold.endpoint,
            model: &hold.model,
            status: 0,
            counters: Nothing {},
            estimated: false,
            attempts: 0,
        },
    })
}

pub(crate) fn write_close(close: &Close, known: &KnownPrices) -> Vec<u8> {
    let reply = close.reply.as_ref().filter(|r| r.body.len() <= REPLY_LIMIT).and_then(|r| {
        Some(WrittenReply {
            status: r.status,
            content_type: Cow::Borrowed(&r.content_type),
            body: Cow::Borrowed(std::str::from_utf8(&r.body).ok()?),
        })
    });
    write(&Written {
        call: close.call,
        account: close.account,
        ending: Some(close.ending),
        reason: Cow::Borrowed(&close.reason),
        charge: close.charge,
        row: Cow::Borrowed(&close.row),
        price_id: price_id(&close.row),
        price: new_price(&close.row, known),
        reply,
    })
}

pub(crate) fn write_mark(mark: &Mark, known: &KnownPrices) -> Vec<u8> {
    write(&Written {
        call: mark.call,
        account: mark.account,
        ending: None,
        reason: Cow::Borrowed(""),
        charge: mark.charge,
        row: Cow::Borrowed(&mark.row),
        price_id: price_id(&mark.row),
        price: new_price(&mark.row, known),
        reply: None,
    })
}

fn price_id(row: &UsageFacts) -> Option<[u8; 16]> {
    row.price.as_ref().map(|p| p.id())
}

fn new_price<'a>(row: &'a UsageFacts, known: &KnownPrices) -> Option<Cow<'a, Price>> {
    row.price.as_deref().filter(|p| !known.has(&p.id())).map(Cow::Borrowed)
}

fn write(written: &impl Serialize) -> Vec<u8> {
    let mut buffer = super::buffer();
    // Writing to memory cannot fail, and every map in the record has text keys.
    if let Err(error) = serde_json::to_writer(&mut buffer, written) {
        tracing::error!(%error, "cannot write a journal record");
    }
    buffer
}

/// `None`: not a record of this version.
pub(crate) fn read(payload: &[u8]) -> Option<Record> {
    let written: Written<'_> = serde_json::from_slice(payload)
        .inspect_err(|error| tracing::error!(%error, "unreadable journal record"))
        .ok()?;
    let mut row = written.row.into_owned();
    row.price = written.price.map(|p| Arc::new(p.into_owned()));
    let (call, account, charge, price_id) = (written.call, written.account, written.charge, written.price_id);
    Some(match written.ending {
        None => Record::Mark { mark: Box::new(Mark { call, account, charge, row }), price_id },
        Some(ending) => {
            let reply = written.reply.map(|r| StoredReply {
                status: r.status,
                content_type: r.content_type.into_owned(),
                body: r.body.into_owned().into(),
            });
            let reason = written.reason.into_owned();
            let close = Close { call, account, ending, reason, charge, row, reply };
            Record::Close { close: Box::new(close), price_id }
        }
    })
}
