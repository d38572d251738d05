//! The verbs of accounts that are closed. Nothing of the money moves at the close: what is left is
//! written down as given up, and is taken off when the account cannot come back any more, together
//! with what is known of its people. Ledger, usage log and the log of changes stay.

use tollgate_catalog::Money;

use super::account_letters::put_account_letter;
use super::people::noted_in;
use super::{Engine, Store};
use crate::account::{Account, Credit, CreditKind, Pot};
use crate::alert::notice::LetterCause;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::operator::Attribution;
use crate::payment::OrderState;
use crate::person::statement::{PersonStatement, may, must, values};

/// So long an operator can reopen an account; then it is erased.
pub const CLOSE_GRACE_MS: i64 = 30 * 86_400_000;
/// Closed accounts that are erased in one round.
const AT_ONCE: i64 = 20;

/// `changed_at` as [`LATER`](crate::person::statement::LATER) has it.
const END_KEYS: &str = "UPDATE key SET revoked_at = $1, changed_at = greatest(tollgate_now(), changed_at + 1) \
     WHERE account_id = $2 AND revoked_at IS NULL";
/// Unless the account was suspended before it was closed.
const REOPEN: &str = "UPDATE account SET changed_at = greatest(tollgate_now(), changed_at + 1), \
     closed_at = CASE WHEN closed_at = ended_at THEN NULL ELSE closed_at END, \
     ended_at = NULL, given_up_trial = NULL, given_up_paid = NULL \
     WHERE id = $2 AND ended_at IS NOT NULL AND erased_at IS NULL AND CAST($1 AS bigint) > 0";
const ERASE: &str = "UPDATE account SET changed_at = greatest(tollgate_now(), changed_at + 1), name = $3, webhook_url = NULL, \
     erased_at = $1 WHERE id = $2 AND ended_at IS NOT NULL AND erased_at IS NULL";

/// What somebody who closes an account says of its money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftMoney {
    pub trial: i64,
    pub paid: i64,
}

impl LeftMoney {
    pub fn of(account: &Account) -> Self {
        Self { trial: account.trial_available.nano(), paid: account.paid_available.nano() }
    }

    fn sum(self) -> Money {
        Money::from_nano(self.trial.saturating_add(self.paid))
    }
}

/// Why an account cannot be closed now, with so much of it given up.
fn may_close(account: &Account, give_up: Option<Money>) -> Result<LeftMoney, StoreError> {
    let (left, held) = (LeftMoney::of(account), account.trial_held.nano().saturating_add(account.paid_held.nano()));
    let conflict = |why: String| Err(StoreError::Conflict(why));
    if held != 0 {
        let held = Money::from_nano(held);
        return conflict(format!(
            "{held} USD are held for calls or tasks that are under way; close it when they have ended"
        ));
    }
    let sum = left.sum();
    let wrong = |why: String| Err(StoreError::ConflictOf { field: "give_up_nano_usd", why });
    match give_up {
        None if sum.is_zero() => Ok(left),
        Some(amount) if amount == sum => Ok(left),
        None => wrong(format!(
            "{sum} USD are left: spend them, have the operator pay them out, or give them up with `give_up_nano_usd`: {}",
            sum.nano()
        )),
        Some(amount) => wrong(format!("{amount} USD are given up, and {sum} USD ({} nano-USD) are left", sum.nano())),
    }
}

impl Store {
    /// Closes an account: nothing begins in it, its keys are revoked, nobody is in it any more.
    /// What is left of its money must be given up to the nano-dollar. Closed twice is closed once.
    pub async fn close_account(
        &self,
        id: AccountId,
        give_up: Option<Money>,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        // Credit past its time is taken off before anybody says what is left.
        self.expiring(id).await?;
        let _turn = self.changing.lock().await;
        let Some(before) = self.account(id).await? else { return Ok(None) };
        if before.closed_at.is_some() {
            return Ok(Some(before));
        }
        let left = may_close(&before, give_up)?;
        self.no_open_order(id).await?;
        let now = self.people_now();
        let detail = serde_json::json!({ "given_up": { "trial_nano_usd": left.trial, "paid_nano_usd": left.paid } });
        let after = vec![
            may(END_KEYS, values![now, id.0]),
            may("DELETE FROM invite WHERE account_id = $1", values![id.0]),
            may("DELETE FROM webhook WHERE account_id = $1", values![id.0]),
            may("UPDATE alert_delivery SET due_at = NULL WHERE account_id = $1 AND due_at IS NOT NULL", values![id.0]),
            put_account_letter(id, LetterCause::Closed, now),
            noted_in(Some(id), now, &done, "account.close", &id.to_string(), &detail.to_string()),
        ];
        if !on_engine!(self, e => e.close_account(id, left, now, after).await)? {
            return Err(StoreError::Conflict("money has moved in it just now; look at it and try again".into()));
        }
        self.account(id).await
    }

    /// Somebody may still pay it, and the money would come to an account that is not there.
    async fn no_open_order(&self, account: AccountId) -> Result<(), StoreError> {
        const SQL: &str = "SELECT count(*) FROM pay_order WHERE account_id = $1 AND state IN ($2, $3)";
        let open = values![account.0, OrderState::New.name(), OrderState::Pending.name()];
        let rows = self.people_rows(SQL, open).await?;
        match rows.first().map_or(Ok(0), |row| row.int(0))? {
            0 => Ok(()),
            open => Err(StoreError::Conflict(format!(
                "{open} orders are open and may still be paid; wait until they have ended"
            ))),
        }
    }

    /// Refuses what nobody may begin in an account that is closed.
    pub(super) async fn not_closed(&self, account: AccountId) -> Result<(), StoreError> {
        match self.account(account).await? {
            Some(account) if account.closed_at.is_some() => {
                Err(StoreError::Conflict(format!("{} is closed", account.id)))
            }
            _ => Ok(()),
        }
    }

    /// Opens an account again that was closed, while it is not erased. Its keys stay revoked.
    pub async fn reopen_account(&self, id: AccountId, done: Attribution) -> Result<Option<Account>, StoreError> {
        let _turn = self.changing.lock().await;
        let Some(before) = self.account(id).await? else { return Ok(None) };
        if before.erased_at.is_some() {
            return Err(StoreError::Conflict("it was closed too long ago, and is erased".into()));
        }
        if before.closed_at.is_none() {
            return Err(StoreError::Conflict("it is not closed".into()));
        }
        let now = self.people_now();
        let write = vec![
            must(REOPEN, values![now, id.0]),
            put_account_letter(id, LetterCause::Reopened, now),
            noted_in(Some(id), now, &done, "account.reopen_closed", &id.to_string(), ""),
        ];
        let suspended = before.suspended_at != before.closed_at;
        if !on_engine!(self, e => e.reopen_account(id, suspended, write).await)? {
            return Err(StoreError::Conflict("somebody else has changed it just now".into()));
        }
        self.account(id).await
    }

    /// Erases some of the accounts that were closed before then, and says how many.
    pub async fn erase_closed(&self, before: i64) -> Result<usize, StoreError> {
        const SQL: &str = "SELECT id, ended_at, coalesce(given_up_trial, 0), coalesce(given_up_paid, 0) FROM account \
             WHERE ended_at <= $1 AND erased_at IS NULL ORDER BY ended_at LIMIT $2";
        let rows = self.people_rows(SQL, values![before, AT_ONCE]).await?;
        let mut done = 0;
        for row in &rows {
            let (id, ended_at) = (AccountId(row.id(0)?), row.int(1)?);
            let left = LeftMoney { trial: row.int(2)?, paid: row.int(3)? };
            // One that cannot be erased is not in the way of others.
            match self.erase(id, ended_at, left).await {
                Ok(()) => done += 1,
                Err(error) => tracing::warn!(account = %id, %error, "a closed account could not be erased"),
            }
        }
        Ok(done)
    }

    async fn erase(&self, id: AccountId, ended_at: i64, left: LeftMoney) -> Result<(), StoreError> {
        self.give_up(id, ended_at, left).await?;
        while self.write_people(vec![must(FORGET_ADDRESSES, values![id.0])]).await?.is_none() {}
        self.write_people(erasing(id, self.people_now())).await.map(drop)
    }

    /// Takes off what was given up, as far as it is there. What has come in since stays.
    async fn give_up(&self, account: AccountId, ended_at: i64, left: LeftMoney) -> Result<(), StoreError> {
        for (pot, word, given) in [(Pot::Trial, "trial", left.trial), (Pot::Paid, "paid", left.paid)] {
            self.expiring(account).await?;
            let Some(now) = self.account(account).await? else { return Ok(()) };
            let there = if pot == Pot::Trial { now.trial_available } else { now.paid_available };
            let amount = there.nano().min(given);
            if amount <= 0 {
                continue;
            }
            let credit = Credit {
                id: format!("closed:{account}:{ended_at}:{word}"),
                account,
                kind: CreditKind::Adjust,
                pot,
                amount: Money::from_nano(-amount),
                expires_at: None,
                reason: "given up when the account was closed".to_owned(),
                actor: "tollgate".to_owned(),
            };
            match self.credit(credit).await {
                // Another replica, or this one before it died, has done it.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Some at a time: an account may have had many tasks.
const FORGET_ADDRESSES: &str = "UPDATE task SET webhook_url = NULL WHERE call_id IN \
     (SELECT t.call_id FROM task t WHERE t.account_id = $1 AND t.webhook_url IS NOT NULL LIMIT 500)";

/// People who are in this account and nothing else go with it; of those who are elsewhere, only
/// that they were here.
fn erasing(id: AccountId, now: i64) -> Vec<PersonStatement> {
    macro_rules! theirs {
        ($before:literal) => {
            concat!(
                $before,
                " IN (SELECT m.person_id FROM membership m WHERE m.account_id = $1 \
                 AND NOT EXISTS (SELECT 1 FROM membership o WHERE o.person_id = m.person_id AND o.account_id <> $1) \
                 AND NOT EXISTS (SELECT 1 FROM house_role h WHERE h.person_id = m.person_id))"
            )
        };
    }
    let mut write = vec![must(ERASE, values![now, id.0, "closed account"])];
    let of_account = [
        theirs!("DELETE FROM session WHERE person_id"),
        theirs!("DELETE FROM credential WHERE person_id"),
        theirs!("DELETE FROM mail_token WHERE person_id"),
        theirs!("DELETE FROM issuer_link WHERE person_id"),
        theirs!("DELETE FROM passkey WHERE person_id"),
        theirs!("DELETE FROM person WHERE id"),
        "DELETE FROM membership WHERE account_id = $1",
        "DELETE FROM invite WHERE account_id = $1",
        "DELETE FROM webhook WHERE account_id = $1",
        "DELETE FROM webhook_delivery WHERE account_id = $1",
        "DELETE FROM alert_delivery WHERE account_id = $1",
        "DELETE FROM balance_notice WHERE account_id = $1",
        "DELETE FROM account_letter WHERE account_id = $1",
        "UPDATE key SET name = '', cidrs = NULL WHERE account_id = $1",
    ];
    write.extend(of_account.into_iter().map(|sql| may(sql, values![id.0])));
    let done = Attribution::by("tollgate", "its time to come back is over");
    write.push(noted_in(Some(id), now, &done, "account.erase", &id.to_string(), ""));
    write
}
