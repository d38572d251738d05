//! The hash chain: each entry carries a hash over its own content and the hash of the entry before
//! it of the same account. The account's row keeps the last one and how many there are, so an entry
//! that was changed, left out, put in or cut off shows. A chain per account and not one for all:
//! replicas that write for different accounts need not wait for each other. PostgreSQL computes the
//! same in `chain.sql`; the audit recomputes it here for both engines.

use ring::digest::{self, SHA256};

pub(crate) type Hash = [u8; 32];

/// The end of an account's chain: how many links it has, and the hash of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub number: i64,
    pub hash: Hash,
}

/// All that an entry says, but its place in the table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Content<'a> {
    pub op_id: &'a [u8],
    pub kind: i64,
    pub account: &'a [u8],
    pub key: Option<&'a [u8]>,
    pub trial: i64,
    pub paid: i64,
    pub take_trial: i64,
    pub take_paid: i64,
    pub at: i64,
    pub price_id: Option<&'a [u8]>,
    pub model: Option<&'a str>,
    pub endpoint: Option<&'a str>,
    pub expires_at: Option<i64>,
    pub paid_only: Option<bool>,
    /// The replica that wrote it; SQLite has one writer and no such column.
    pub replica: Option<&'a [u8]>,
    pub reference: Option<&'a str>,
    pub actor: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub lots: Option<&'a str>,
}

impl Content<'_> {
    /// The link that follows `last`.
    pub fn after(&self, last: &ChainLink) -> ChainLink {
        let mut packed = Packed::new();
        self.pack(last, &mut packed);
        ChainLink { number: last.number + 1, hash: packed.hash() }
    }

    /// What is hashed for the link that follows `last`.
    pub fn pack(&self, last: &ChainLink, packed: &mut impl HashText) {
        packed.raw(&last.hash);
        packed.number(last.number + 1);
        packed.bytes(Some(self.op_id));
        packed.number(self.kind);
        packed.bytes(Some(self.account));
        packed.bytes(self.key);
        for amount in [self.trial, self.paid, self.take_trial, self.take_paid, self.at] {
            packed.number(amount);
        }
        packed.bytes(self.price_id);
        packed.bytes(self.model.map(str::as_bytes));
        packed.bytes(self.endpoint.map(str::as_bytes));
        packed.bytes(self.expires_at.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
        packed.bytes(self.paid_only.map(|flag| [u8::from(flag)]).as_ref().map(<[u8; 1]>::as_slice));
        packed.bytes(self.replica);
        for text in [self.reference, self.actor, self.reason, self.lots] {
            packed.bytes(text.map(str::as_bytes));
        }
    }
}

/// How what is hashed is put together.
pub(crate) trait HashText {
    fn raw(&mut self, bytes: &[u8]);

    fn number(&mut self, number: i64) {
        self.raw(&number.to_be_bytes());
    }

    /// Its length and then itself; all ones when there is nothing, which no length is.
    #[inline]
    fn bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else { return self.raw(&u32::MAX.to_be_bytes()) };
        self.raw(&u32::try_from(bytes.len()).unwrap_or(u32::MAX - 1).to_be_bytes());
        self.raw(bytes);
    }
}

/// To be hashed later, with others.
impl HashText for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What is hashed, in one piece where it is short: most entries are. By `ring`, which takes half
/// the time of `sha2` on processors that have no instructions for it.
pub(crate) struct Packed {
    buffer: [u8; 512],
    len: usize,
    /// What came before the buffer, where it was too much for it.
    before: Option<digest::Context>,
}

impl Packed {
    pub fn new() -> Self {
        Self { buffer: [0; 512], len: 0, before: None }
    }

    pub fn hash(self) -> Hash {
        let last = &self.buffer[..self.len];
        let digest = match self.before {
            None => digest::digest(&SHA256, last),
            Some(mut before) => {
                before.update(last);
                before.finish()
            }
        };
        let mut hash = Hash::default();
        hash.copy_from_slice(digest.as_ref());
        hash
    }
}

impl HashText for Packed {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        if let Some(space) = self.buffer.get_mut(self.len..self.len + bytes.len()) {
            space.copy_from_slice(bytes);
            self.len += bytes.len();
            return;
        }
        let before = self.before.get_or_insert_with(|| digest::Context::new(&SHA256));
        before.update(&self.buffer[..self.len]);
        before.update(bytes);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Content<'static> {
        Content { op_id: b"call", account: b"account", trial: 1, paid: 2, at: 3, ..Content::default() }
    }

    #[test]
    fn every_field_counts() {
        let last = ChainLink { number: 7, hash: [1; 32] };
        let first = entry().after(&last);
        assert_eq!(first.number, 8);
        assert_eq!(first, entry().after(&last));
        let others = [
            Content { op_id: b"cal", ..entry() },
            Content { kind: 1, ..entry() },
            Content { account: b"accounT", ..entry() },
            Content { key: Some(b""), ..entry() },
            Content { trial: 2, paid: 1, ..entry() },
            Content { take_trial: 1, ..entry() },
            Content { take_paid: 1, ..entry() },
            Content { at: 4, ..entry() },
            Content { price_id: Some(b"p"), ..entry() },
            Content { model: Some("m"), ..entry() },
            Content { endpoint: Some("m"), ..entry() },
            Content { expires_at: Some(0), ..entry() },
            Content { paid_only: Some(false), ..entry() },
            Content { paid_only: Some(true), ..entry() },
            Content { replica: Some(b"r"), ..entry() },
            Content { reference: Some("m"), ..entry() },
            Content { actor: Some("m"), ..entry() },
            Content { reason: Some("m"), ..entry() },
            Content { lots: Some("m"), ..entry() },
            Content { reason: Some(""), ..entry() },
        ];
        let mut hashes: Vec<Hash> = others.iter().map(|other| other.after(&last).hash).collect();
        hashes.push(first.hash);
        hashes.push(entry().after(&ChainLink { number: 8, ..last }).hash);
        hashes.push(entry().after(&ChainLink { hash: [2; 32], ..last }).hash);
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all, "two of them are the same");
    }

    #[test]
    fn long_texts_are_hashed_whole() {
        let long = "x".repeat(5_000);
        let with = |reason: &str| Content { reason: Some(reason), ..entry() }.after(&ChainLink::default()).hash;
        assert_ne!(with(&long), with(&long[1..]));
        assert_ne!(with(&long), with(&format!("{}y", &long[1..])));
    }
}
