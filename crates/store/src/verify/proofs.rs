//! Hashes that the audit computes again, many at a time: links of the chains, each from the stored
//! hash of the one before it, and rows of the usage log.

use crate::call::row_hash::{Decided, RowFacts};
use crate::ids::{AccountId, CallId};
use crate::ledger::chain::{ChainLink, Content, Hash};
use crate::ledger::hash_batch::HashBatch;

use super::Auditor;
use super::books::changed;

/// So many are computed at a time.
const TOGETHER: usize = 256;

/// Links whose hashes are to be compared.
#[derive(Default)]
pub(super) struct LinkProofs {
    texts: HashBatch,
    claims: Vec<LinkClaim>,
}

/// What is stored as the hash of an entry.
struct LinkClaim {
    seq: i64,
    account: AccountId,
    hash: Hash,
}

/// Usage rows whose hashes are to be compared.
#[derive(Default)]
pub(crate) struct SealProofs {
    facts: HashBatch,
    /// What is hashed behind the hash of the facts, one after the other.
    decided: Vec<u8>,
    claims: Vec<SealClaim>,
}

/// What is stored as the hash of a row.
struct SealClaim {
    call: CallId,
    hash: Hash,
    /// Where its part of `decided` ends.
    ends: usize,
}

impl SealProofs {
    pub fn add(&mut self, call: CallId, facts: &RowFacts<'_>, decided: &Decided<'_>, hash: Hash) {
        self.facts.add(|text| facts.pack(text));
        decided.pack(&mut self.decided);
        self.claims.push(SealClaim { call, hash, ends: self.decided.len() });
    }
}

impl Auditor {
    /// The entry `seq` that follows `last` says that this is its hash.
    pub(super) fn claim_link(
        &mut self,
        (seq, account): (i64, AccountId),
        content: &Content<'_>,
        last: &ChainLink,
        hash: Hash,
    ) {
        self.links.texts.add(|text| content.pack(last, text));
        self.links.claims.push(LinkClaim { seq, account, hash });
        if self.links.claims.len() == TOGETHER {
            self.prove_links();
        }
    }

    /// Whether enough rows have come together to look at them.
    pub(super) fn prove_some_seals(&mut self) {
        if self.seals.claims.len() >= TOGETHER {
            self.prove_seals();
        }
    }

    /// Everything that was put off.
    pub(super) fn prove(&mut self) {
        self.prove_links();
        self.prove_seals();
    }

    fn prove_links(&mut self) {
        let hashes = self.links.texts.take();
        let mut claims = std::mem::take(&mut self.links.claims);
        for (LinkClaim { seq, account, hash }, found) in claims.drain(..).zip(hashes) {
            if hash != found {
                self.breach("I19", format!("entry {seq} of {account}: its hash is not that of its content"));
            }
        }
        self.links.claims = claims;
    }

    fn prove_seals(&mut self) {
        let SealProofs { facts, decided, claims } = &mut self.seals;
        let (mut rows, mut from) = (HashBatch::default(), 0);
        for (claim, facts) in claims.iter().zip(facts.take()) {
            rows.add(|text| {
                text.extend_from_slice(&facts);
                text.extend_from_slice(&decided[from..claim.ends]);
            });
            from = claim.ends;
        }
        decided.clear();
        let mut claims = std::mem::take(claims);
        for (claim, found) in claims.drain(..).zip(rows.take()) {
            if claim.hash != found {
                self.breach("I19", changed(claim.call));
            }
        }
        self.seals.claims = claims;
    }
}
