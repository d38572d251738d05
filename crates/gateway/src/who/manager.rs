//! Who manages an account over `/api/account/*`: which account is meant, and what may be done there.
//!
//! Today that is a key made with the scope `manage`, which may what an owner may. Whoever signs in
//! as a person comes in at the same place, with the role of a membership: [`authenticate`] is the
//! only way to an [`AccountHolder`].

use super::Register;
use super::caller::{self, Caller};
use crate::refusal::Refusal;
use http::request::Parts;
use tollgate_store::{Account, AccountId, KeyScope};
use tollgate_wire::error::Code;

/// What somebody may do in an account; each may what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountRole {
    /// Reads everything of the account.
    Viewer,
    /// Makes keys and changes its own.
    Member,
    /// Whatever the account may decide for itself.
    Owner,
}

/// Somebody who manages an account.
#[derive(Clone, Debug)]
pub struct AccountHolder {
    pub account: Account,
    pub role: AccountRole,
    /// What stands in the log beside everything that is done.
    pub actor: String,
    /// With a key of scope `manage`, rather than signed in.
    pub by_key: bool,
}

impl AccountHolder {
    fn by_key(caller: &Caller) -> AccountHolder {
        let name = caller.key.name.trim();
        let id = caller.key.id;
        let actor = if name.is_empty() { format!("key ({id})") } else { format!("{name} ({id})") };
        AccountHolder { account: caller.account.clone(), role: AccountRole::Owner, actor, by_key: true }
    }

    pub fn id(&self) -> AccountId {
        self.account.id
    }

    /// Refuses whoever may less.
    pub fn must_be(&self, role: AccountRole) -> Result<(), Refusal> {
        if self.role >= role {
            return Ok(());
        }
        Err(Refusal::new(Code::RoleNotAllowed, "Your role in this account does not allow this."))
    }

    /// Refuses changes in an account that the operator has suspended; reading goes on.
    pub fn may_change(&self) -> Result<(), Refusal> {
        match self.account.suspended_at {
            None => Ok(()),
            Some(_) => Err(Refusal::new(
                Code::AccountSuspended,
                "The operator has suspended this account: nothing in it can be changed.",
            )),
        }
    }
}

/// Finds whoever manages an account or says why not. Keys that buy are known and refused; all other
/// keys get the answer of unknown ones.
pub async fn authenticate(register: &Register<'_>, parts: &Parts) -> Result<AccountHolder, Refusal> {
    let caller = caller::known(register, parts).await?;
    match caller.key.scope {
        KeyScope::Manage => Ok(AccountHolder::by_key(&caller)),
        KeyScope::Call => Err(Refusal::new(
            Code::KeyScope,
            "This key makes calls. Managing an account takes a key that was made with the scope `manage`.",
        )),
    }
}
