//! Trial credit that is given by itself when somebody verifies an e-mail. A grant is a row in the
//! transaction of the verification, so that it is given once; its credit follows by an id of its
//! own, and is made up for when a process dies in between.

use tollgate_catalog::Money;

use crate::account::{Credit, CreditKind, Pot};
use crate::ids::{AccountId, PersonId};

/// How the id of such a credit begins.
pub const TRIAL_REFERENCE: &str = "trial:";

/// What somebody is to be given, if all limits allow it.
#[derive(Clone, Debug)]
pub struct NewTrialGrant {
    pub account: AccountId,
    pub amount: Money,
    pub expires_at: Option<i64>,
    /// Of the address, without what providers of mail ignore in it.
    pub address_hash: [u8; 32],
    /// Of the neighbours of the address on the network that it was asked from.
    pub block_hash: [u8; 32],
    pub limits: TrialLimits,
}

/// How many grants there may be. Exact over all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialLimits {
    /// From one block of addresses, in a UTC day.
    pub per_block: i64,
    /// In a UTC day, in nano-USD.
    pub day: i64,
    /// In all, in nano-USD.
    pub total: i64,
}

/// A grant whose credit is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialGrant {
    pub person: PersonId,
    pub account: AccountId,
    pub amount: Money,
    pub expires_at: Option<i64>,
}

impl TrialGrant {
    pub(crate) fn credit(&self, now: i64) -> Credit {
        Credit {
            id: format!("{TRIAL_REFERENCE}{}", self.person),
            account: self.account,
            kind: CreditKind::TopUp,
            pot: Pot::Trial,
            amount: self.amount,
            // One that ends before it could be credited would be refused for ever.
            expires_at: self.expires_at.map(|at| at.max(now + 60_000)),
            reason: "trial credit for a verified e-mail".to_owned(),
            actor: "trial".to_owned(),
        }
    }
}
