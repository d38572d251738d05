//! Changes of accounts and keys by an operator, and how the log tells of them.

use serde::{Deserialize, Serialize};

use crate::account::limits::{Change, Limits, NewLimits};
use crate::account::{Account, Key};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::ledger::bounds;
use crate::operator::Attribution;

/// The most characters of a name.
const NAME: usize = 200;
/// The most groups, models or networks in a list.
const LIST: usize = 1_000;

/// A change of an account; what is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountChange {
    pub name: Option<String>,
    /// All the price groups it is in from now on.
    pub groups: Option<Vec<String>>,
    /// By day and month.
    pub limits: NewLimits,
    /// `true`: nothing new begins in it; `false`: all is as before.
    pub suspended: Option<bool>,
    /// Whether members see what all keys of it use.
    pub members_see_all_usage: Option<bool>,
}

/// A change of a key; what is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyChange {
    pub name: Option<String>,
    /// Models it may use; lifted: all.
    pub models: Change<Vec<String>>,
    /// Networks it may be used from; lifted: all.
    pub cidrs: Change<Vec<String>>,
    /// When it stops working; lifted: never.
    pub expires_at: Change<i64>,
    pub limits: NewLimits,
}

/// What stands in the log about a change.
pub(crate) struct Logged {
    pub action: &'static str,
    /// What was changed into what.
    pub detail: String,
    pub done: Attribution,
    /// Whose it is.
    pub account: AccountId,
}

impl From<NewLimits> for AccountChange {
    fn from(limits: NewLimits) -> AccountChange {
        AccountChange { limits, ..AccountChange::default() }
    }
}

impl From<NewLimits> for KeyChange {
    fn from(limits: NewLimits) -> KeyChange {
        KeyChange { limits, ..KeyChange::default() }
    }
}

impl AccountChange {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        bounds::new_limits(self.limits)?;
        named(self.name.as_deref())?;
        listed("groups", self.groups.as_deref())?;
        if self.limits.total != Change::Keep {
            return Err(StoreError::Conflict("an account is limited by day and month".into()));
        }
        Ok(())
    }

    pub(crate) fn logged(&self, before: &Account, done: Attribution) -> Logged {
        let action = match self.suspended {
            Some(true) => "account.suspend",
            Some(false) => "account.reopen",
            None => "account.update",
        };
        let mut lines = ChangeLines::default();
        lines.note("name", Some(&before.name), self.name.as_ref().map(Some));
        let groups = self.groups.as_ref().map(|groups| groups.join(","));
        lines.note("groups", Some(&before.groups.join(",")), groups.as_ref().map(Some));
        lines.limits(&before.limits, self.limits);
        let seen = self.members_see_all_usage.as_ref();
        lines.note("members_see_all_usage", Some(&before.members_see_all), seen.map(Some));
        Logged { action, detail: lines.0.join("; "), done, account: before.id }
    }
}

impl KeyChange {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        bounds::new_limits(self.limits)?;
        named(self.name.as_deref())?;
        listed("models", self.models.set().map(Vec::as_slice))?;
        listed("networks", self.cidrs.set().map(Vec::as_slice))
    }

    pub(crate) fn logged(&self, before: &Key, done: Attribution) -> Logged {
        let mut lines = ChangeLines::default();
        lines.note("name", Some(&before.name), self.name.as_ref().map(Some));
        lines.list("models", before.models.as_ref(), &self.models);
        lines.list("networks", before.cidrs.as_ref(), &self.cidrs);
        lines.note("expires_at_ms", before.expires_at.as_ref(), self.expires_at.after());
        lines.limits(&before.limits, self.limits);
        Logged { action: "key.update", detail: lines.0.join("; "), done, account: before.account }
    }
}

/// Lines such as `groups: default -> partner`.
#[derive(Default)]
struct ChangeLines(Vec<String>);

impl ChangeLines {
    fn note<T: ToString>(&mut self, what: &str, before: Option<&T>, after: Option<Option<&T>>) {
        let Some(after) = after else { return };
        let text = |value: Option<&T>| value.map_or("none".to_owned(), ToString::to_string);
        self.0.push(format!("{what}: {} -> {}", text(before), text(after)));
    }

    fn list(&mut self, what: &str, before: Option<&Vec<String>>, change: &Change<Vec<String>>) {
        let text = |list: &Vec<String>| list.join(",");
        let after = change.after().map(|after| after.map(text));
        self.note(what, before.map(text).as_ref(), after.as_ref().map(Option::as_ref));
    }

    fn limits(&mut self, before: &Limits, change: NewLimits) {
        self.note("limit_total", before.total.as_ref(), change.total.after());
        self.note("limit_day", before.day.as_ref(), change.day.after());
        self.note("limit_month", before.month.as_ref(), change.month.after());
    }
}

fn named(name: Option<&str>) -> Result<(), StoreError> {
    let fits = name.is_none_or(|name| !name.trim().is_empty() && name.chars().count() <= NAME);
    if fits { Ok(()) } else { Err(StoreError::Conflict(format!("a name has 1 to {NAME} characters"))) }
}

fn listed(what: &str, list: Option<&[String]>) -> Result<(), StoreError> {
    let fits = list.is_none_or(|list| !list.is_empty() && list.len() <= LIST);
    if fits { Ok(()) } else { Err(StoreError::Conflict(format!("a list of {what} has 1 to {LIST} names"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::KeyScope;
    use crate::account::limits::Used;
    use crate::ids::KeyId;
    use tollgate_catalog::Money;

    fn key() -> Key {
        Key {
            id: KeyId([1; 16]),
            account: AccountId([2; 16]),
            hash: [0; 32],
            prefix: String::new(),
            name: "old".to_owned(),
            created_at: 0,
            changed_at: 0,
            expires_at: None,
            revoked_at: None,
            models: Some(vec!["a".to_owned(), "b".to_owned()]),
            cidrs: None,
            limits: Limits { total: None, day: Some(Money::from_nano(1_000_000_000)), month: None },
            spent: Money::ZERO,
            held: Money::ZERO,
            used: Used::default(),
            scope: KeyScope::Call,
            former_until: None,
            person: None,
            origin: Default::default(),
        }
    }

    #[test]
    fn the_log_says_what_became_what() {
        let change = KeyChange {
            name: Some("new".to_owned()),
            models: Change::Lift,
            cidrs: Change::Set(vec!["10.0.0.0/8".to_owned()]),
            expires_at: Change::Set(5),
            limits: NewLimits { day: Change::Lift, ..NewLimits::default() },
        };
        let logged = change.logged(&key(), Attribution::default());
        assert_eq!(
            logged.detail,
            "name: old -> new; models: a,b -> none; networks: none -> 10.0.0.0/8; expires_at_ms: none -> 5; limit_day: 1 -> none"
        );
        assert_eq!(KeyChange::default().logged(&key(), Attribution::default()).detail, "");
    }

    #[test]
    fn what_nobody_means_is_refused() {
        let list = |count: usize| vec!["x".to_owned(); count];
        for (change, fits) in [
            (KeyChange::default(), true),
            (KeyChange { name: Some(" ".to_owned()), ..KeyChange::default() }, false),
            (KeyChange { name: Some("x".repeat(NAME + 1)), ..KeyChange::default() }, false),
            (KeyChange { models: Change::Set(list(0)), ..KeyChange::default() }, false),
            (KeyChange { models: Change::Set(list(LIST)), ..KeyChange::default() }, true),
            (KeyChange { cidrs: Change::Set(list(LIST + 1)), ..KeyChange::default() }, false),
        ] {
            assert_eq!(change.check().is_ok(), fits, "{change:?}");
        }
        let total = NewLimits { total: Change::Set(Money::ZERO), ..NewLimits::default() };
        assert!(AccountChange::from(total).check().is_err(), "an account has no limit in all");
        assert!(AccountChange { groups: Some(Vec::new()), ..AccountChange::default() }.check().is_err());
    }
}
