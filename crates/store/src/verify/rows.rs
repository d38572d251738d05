//! The rows the audit looks at, in the form both engines can give them.

use crate::account::limits::Used;
use crate::account::lots::CreditKey;
use crate::call::counters::Counters;
use crate::call::row_hash::RowSeal;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::chain::{ChainLink, Content, Hash};
use crate::ledger::{EntryKind, Pots};
use crate::sums::UsageSum;

/// The columns of an entry, in the order of [`StoredEntry`]; PostgreSQL has `replica` after them.
pub(crate) const ENTRY: &str = "seq, op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at, price_id, model, \
     endpoint, expires_at, paid_only, reference, actor, reason, lots, link, hash";
/// The columns of an account, in the order of [`AccountRow`]: id, pots, chain, used, topped up.
pub(crate) const ACCOUNT: &str = "id, trial_available, paid_available, trial_held, paid_held, links, head, day, day_used, month, month_used, \
     topped_up";
/// The columns of a key, in the order of [`KeyRow`].
pub(crate) const KEY: &str = "id, spent, held, day, day_used, month, month_used";
/// The columns of a usage row `u`: all but the counters, which the engines put after these, and
/// then the reference of the entry that ended the call.
pub(crate) const CHARGE: &str = "u.account_id, u.call_id, u.price_id, u.charge, u.write_off, u.refunded, u.key_id, u.at, u.ended_at, u.endpoint, u.model, u.provider, u.upstream_model, u.ending, u.reason, \
     u.status, u.estimated, u.hold, u.raw_usage, u.attempts, u.first_byte_ms, u.tier, u.dropped, u.hash, u.tools, u.cost";
pub(crate) const CHARGE_COLUMNS: usize = 26;

/// A ledger entry as it is stored.
#[derive(Default)]
pub(crate) struct StoredEntry<'a> {
    pub seq: i64,
    pub content: Content<'a>,
    pub link: Option<i64>,
    pub hash: Option<&'a [u8]>,
}

/// A ledger entry as the audit reads it.
pub(crate) struct EntryRow<'a> {
    pub seq: i64,
    pub kind: EntryKind,
    pub account: AccountId,
    pub call: Option<CallId>,
    pub pots: Pots,
    pub take: Pots,
    pub at: i64,
    pub expires_at: Option<i64>,
    pub key: Option<KeyId>,
    pub paid_only: bool,
    /// From which trial credit it comes.
    pub lots: Option<&'a str>,
    /// The credit it is, or the one that expired.
    pub credit: Option<CreditKey>,
    /// An extension that a settlement took.
    pub settling: bool,
    /// The end of a call, and its hold too: the call is this one entry.
    pub whole: bool,
}

impl<'a> StoredEntry<'a> {
    /// `None`: not of a kind we know, or without an account.
    pub fn read(&self) -> Option<EntryRow<'a>> {
        let c = &self.content;
        let kind = EntryKind::from_code(c.kind)?;
        let of_credit = matches!(kind, EntryKind::TopUp | EntryKind::Adjust | EntryKind::Lapse);
        let id: Option<[u8; 16]> = c.op_id.first_chunk().copied();
        Some(EntryRow {
            seq: self.seq,
            kind,
            account: AccountId::from_slice(c.account)?,
            call: id.filter(|_| !of_credit).map(CallId),
            pots: Pots { trial: c.trial, paid: c.paid },
            take: Pots { trial: c.take_trial, paid: c.take_paid },
            at: c.at,
            expires_at: c.expires_at,
            key: c.key.and_then(KeyId::from_slice),
            paid_only: c.paid_only.unwrap_or(false),
            lots: c.lots,
            credit: id.filter(|_| of_credit),
            settling: kind == EntryKind::Extend && c.op_id.len() == 17,
            whole: kind.is_end() && c.expires_at.is_some(),
        })
    }
}

/// What an account's row says.
pub(crate) struct AccountRow {
    pub id: AccountId,
    pub available: Pots,
    pub held: Pots,
    pub end: ChainLink,
    pub used: Used,
    pub topped_up: bool,
}

/// What a key's row says.
pub(crate) struct KeyRow {
    pub id: KeyId,
    pub spent: i64,
    pub held: i64,
    pub used: Used,
}

/// What a usage row says about money, and whether it is the row that was written.
pub(crate) struct ChargeRow {
    pub account: AccountId,
    pub call: CallId,
    /// `None`: a call that had no hold.
    pub price_id: Option<[u8; 16]>,
    pub charge: i64,
    pub write_off: i64,
    pub refunded: i64,
    pub counters: Counters,
    pub ended_at: i64,
    /// Of which sum it is a part, as a number, and what it adds to that.
    pub summed: (u64, UsageSum),
    pub hash: Option<Hash>,
    pub seal: RowSeal,
}
