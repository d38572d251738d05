//! The verbs of trial credit.

use tollgate_catalog::Money;

use super::Store;
use super::people::noted;
use crate::account::limits::day_of;
use crate::error::StoreError;
use crate::ids::{AccountId, PersonId};
use crate::operator::Attribution;
use crate::person::PersonRecord;
use crate::person::statement::{PersonStatement, SqlRow, may, values};
use crate::trial_grant::{NewTrialGrant, TrialGrant};

/// Grants that are credited in one round.
const AT_ONCE: i64 = 100;

/// The row of a grant, if all limits allow it; else nothing.
pub(super) fn put_grant(grant: &NewTrialGrant, person: PersonId, now: i64) -> PersonStatement {
    const SQL: &str = "INSERT INTO trial_grant (person_id, address_hash, account_id, block_hash, amount, expires_at, at, day) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8 \
         WHERE (SELECT count(*) FROM trial_grant WHERE day = $8 AND block_hash = $4) < $9 \
         AND coalesce((SELECT CAST(sum(amount) AS bigint) FROM trial_grant WHERE day = $8), 0) <= $10 \
         AND coalesce((SELECT CAST(sum(amount) AS bigint) FROM trial_grant), 0) <= $11 \
         ON CONFLICT DO NOTHING";
    let (amount, limits) = (grant.amount.nano(), grant.limits);
    let values = values![
        person.0,
        grant.address_hash,
        grant.account.0,
        grant.block_hash,
        amount,
        grant.expires_at,
        now,
        day_of(now),
        limits.per_block,
        limits.day.saturating_sub(amount),
        limits.total.saturating_sub(amount),
    ];
    may(SQL, values)
}

impl Store {
    /// Grants somebody trial credit whose e-mail was verified otherwise than by its own token, and
    /// notes how.
    pub async fn grant_trial(&self, grant: NewTrialGrant, person: &PersonRecord, how: &str) -> Result<(), StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let write =
            vec![put_grant(&grant, person.id, now), noted(now, &done, "person.verify", &person.id.to_string(), how)];
        self.write_people(write).await.map(drop)
    }

    /// Credits grants that have no credit yet, and says how many. Twice is once: the credit has an
    /// id of its own.
    pub async fn credit_trials(&self) -> Result<usize, StoreError> {
        const SQL: &str = "SELECT person_id, account_id, amount, expires_at FROM trial_grant \
             WHERE credited_at IS NULL ORDER BY at LIMIT $1";
        let rows = self.people_rows(SQL, values![AT_ONCE]).await?;
        let grants: Vec<TrialGrant> = rows.iter().map(grant).collect::<Result<_, _>>()?;
        for grant in &grants {
            self.credit_trial(grant).await?;
        }
        Ok(grants.len())
    }

    /// The same for one person.
    pub async fn credit_trial_of(&self, person: PersonId) -> Result<Option<Money>, StoreError> {
        const SQL: &str = "SELECT person_id, account_id, amount, expires_at FROM trial_grant \
             WHERE credited_at IS NULL AND person_id = $1";
        let rows = self.people_rows(SQL, values![person.0]).await?;
        let Some(grant) = rows.first().map(grant).transpose()? else { return Ok(None) };
        self.credit_trial(&grant).await?;
        Ok(Some(grant.amount))
    }

    async fn credit_trial(&self, grant: &TrialGrant) -> Result<(), StoreError> {
        const SQL: &str = "UPDATE trial_grant SET credited_at = $2 WHERE person_id = $1 AND credited_at IS NULL";
        let now = self.people_now();
        match self.credit(grant.credit(now)).await {
            Ok(_) => {}
            // An account that is full, or gone, gets nothing, and nothing is tried again.
            Err(StoreError::Conflict(why) | StoreError::NotFound(why)) => {
                tracing::warn!(person = %grant.person, why, "trial credit was not given");
            }
            Err(error) => return Err(error),
        }
        self.write_people(vec![may(SQL, values![grant.person.0, now])]).await.map(drop)
    }

    /// How many grants there are, and what they come to.
    pub async fn trial_sums(&self) -> Result<(i64, Money), StoreError> {
        const SQL: &str = "SELECT count(*), coalesce(CAST(sum(amount) AS bigint), 0) FROM trial_grant";
        let rows = self.people_rows(SQL, Vec::new()).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        Ok((row.int(0)?, Money::from_nano(row.int(1)?)))
    }
}

fn grant(row: &SqlRow) -> Result<TrialGrant, StoreError> {
    Ok(TrialGrant {
        person: PersonId(row.id(0)?),
        account: AccountId(row.id(1)?),
        amount: Money::from_nano(row.int(2)?),
        expires_at: row.opt_int(3)?,
    })
}
