//! An operation as it waits in the queue. Holds and ends of calls wait as they are, for most of
//! them are decided here (`plain`); the functions of the database read the others as JSON.

use std::borrow::Cow;

use serde_json::Value;
use tollgate_catalog::{Money, Price};

use super::ops::{CloseBody, Hex, HoldBody, KeptReplyBody, RowBody, text};
use crate::call::row_hash::RowFacts;
use crate::call::{Close, Hold};

pub(super) enum QueuedOp {
    /// As the functions read it.
    Written(String),
    Hold(Box<QueuedHold>),
    Close(Box<QueuedClose>),
}

pub(super) struct QueuedHold {
    pub hold: Hold,
    pub price_id: [u8; 16],
    /// The database may not have the price.
    pub price_is_new: bool,
    /// How long until it is past its time.
    pub life: i64,
    pub at: i64,
    /// The time that is certain, by which credit expires.
    pub sure: i64,
}

pub(super) struct QueuedClose {
    pub close: Close,
    /// Of the row, where it is not that of the hold.
    pub price_id: Option<[u8; 16]>,
    pub price_is_new: bool,
    pub at: i64,
    pub sure: i64,
    /// How many bytes of replies may be stored for an account.
    pub reply_room: u64,
}

impl QueuedOp {
    /// As the functions of the database read it.
    pub fn written(&self, replica: &[u8; 16]) -> Cow<'_, str> {
        match self {
            Self::Written(text) => Cow::Borrowed(text),
            Self::Hold(hold) => Cow::Owned(hold.written(replica, None)),
            Self::Close(close) => Cow::Owned(close.written(replica, None)),
        }
    }

    /// About as many bytes as are sent for it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Written(text) => text.len(),
            Self::Hold(_) => 1_000,
            Self::Close(waits) => {
                let close = &waits.close;
                // Bytes are written as digits.
                let reply = close.reply.as_ref().map_or(0, |reply| 2 * reply.body.len());
                1_500 + reply + close.row.raw_usage.as_ref().map_or(0, String::len)
            }
        }
    }

    /// A price that the database may not have.
    pub fn new_price(&self) -> Option<([u8; 16], &Price)> {
        match self {
            Self::Written(_) => None,
            Self::Hold(hold) => hold.price_is_new.then(|| (hold.price_id, &*hold.hold.price)),
            Self::Close(waits) => {
                let price = waits.close.row.price.as_deref().filter(|_| waits.price_is_new)?;
                Some((waits.price_id?, price))
            }
        }
    }
}

impl QueuedHold {
    pub fn written(&self, replica: &[u8; 16], task: Option<Value>) -> String {
        let hold = &self.hold;
        text(&HoldBody {
            kind: "hold",
            call: Hex(&hold.call.0),
            account: Hex(&hold.account.0),
            key: Hex(&hold.key.0),
            amount: hold.amount.nano(),
            least: hold.least.nano(),
            price_id: Hex(&self.price_id),
            model: &hold.model,
            endpoint: hold.endpoint,
            paid_only: hold.paid_only,
            topped_up: hold.topped_up,
            expires_at: hold.expires_at,
            life: self.life,
            at: self.at,
            sure: self.sure,
            replica: Hex(replica),
            price: self.price_is_new.then(|| price_text(&hold.price)),
            key_hash: hold.idem.as_ref().map(|idem| Hex(&idem.key_hash)),
            fingerprint: hold.idem.as_ref().map(|idem| Hex(&idem.fingerprint)),
            task,
        })
    }
}

impl QueuedClose {
    /// Of a task with its own end, and whether that is found by whoever repeats its key.
    pub fn written(&self, replica: &[u8; 16], task: Option<(Value, bool)>) -> String {
        let close = &self.close;
        let facts = RowFacts::of(&close.call, &close.account, close.ending, &close.reason, &close.row);
        let hash = facts.hash();
        let mut row = RowBody::of(&facts, &close.row.key.0, &hash);
        row.price_id = self.price_id.as_ref().map(|id| Hex(id));
        let (task, kept) = task.map_or((None, false), |(task, kept)| (Some(task), kept));
        text(&CloseBody {
            kind: "close",
            call: Hex(&close.call.0),
            account: Hex(&close.account.0),
            charge: close.charge.nano(),
            at: self.at,
            sure: self.sure,
            replica: Hex(replica),
            keep: kept || close.keeps_key(),
            row,
            most: close.most.map(Money::nano),
            price: close.row.price.as_deref().filter(|_| self.price_is_new).map(price_text),
            reply: close.reply.as_ref().map(|reply| KeptReplyBody {
                status: reply.status,
                content_type: &reply.content_type,
                reply: Hex(&reply.body),
                reply_bytes: reply.counted_bytes(),
                reply_room: i64::try_from(self.reply_room).unwrap_or(i64::MAX),
            }),
            task,
        })
    }
}

pub(super) fn price_text(price: &Price) -> String {
    serde_json::to_string(price).unwrap_or_default()
}
