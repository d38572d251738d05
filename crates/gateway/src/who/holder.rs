//! Who manages an account over `/api/account/*`: which one is meant, and what may be done there.
//!
//! That is a key made with the scope `manage`, which may what an owner may, or a person who is
//! signed in, with the role of a membership. [`authenticate`] is the only way to an
//! [`AccountHolder`].

use super::Register;
use super::caller::{self, Caller};
use super::person;
use crate::refusal::Refusal;
use http::request::Parts;
pub use tollgate_store::AccountRole;
use tollgate_store::{Account, AccountId, KeyId, KeyScope, Membership, PersonId};
use tollgate_wire::error::Code;

/// Somebody who manages an account.
#[derive(Clone, Debug)]
pub struct AccountHolder {
    pub account: Account,
    pub role: AccountRole,
    /// What stands in the log beside everything that is done.
    pub actor: String,
    /// They have proved within the last minutes who they are; a key is a proof.
    pub strong: bool,
    /// The person, where it is no key.
    pub person: Option<PersonId>,
}

impl AccountHolder {
    fn by_key(caller: &Caller) -> AccountHolder {
        let name = caller.key.name.trim();
        let id = caller.key.id;
        let actor = if name.is_empty() { format!("key ({id})") } else { format!("{name} ({id})") };
        AccountHolder { account: caller.account.clone(), role: AccountRole::Owner, actor, strong: true, person: None }
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

    /// Whether they may see what is done with a key of the account.
    pub fn sees_usage_of(&self, _key: KeyId) -> bool {
        true
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
    // A key weighs more than a cookie that a browser sends along.
    if !caller::presents_key(&parts.headers) && person::has_cookie(register.people, &parts.headers) {
        return signed_in(register, parts).await;
    }
    let caller = caller::known(register, parts).await?;
    match caller.key.scope {
        KeyScope::Manage => Ok(AccountHolder::by_key(&caller)),
        KeyScope::Call => Err(Refusal::new(
            Code::KeyScope,
            "This key makes calls. Managing an account takes a key that was made with the scope `manage`.",
        )),
    }
}

async fn signed_in(register: &Register<'_>, parts: &Parts) -> Result<AccountHolder, Refusal> {
    let person = person::authenticate(register, parts).await?;
    let Membership { account: id, role } = person.membership(parts, AccountRole::Viewer)?;
    let account =
        register.store.account(id).await?.ok_or_else(|| Refusal::new(Code::NotFound, "There is no such account."))?;
    Ok(AccountHolder { account, role, actor: person.actor(), strong: person.strong, person: Some(person.id) })
}
