//! The verbs of what alerts and notices send: taken by one replica for a while, tried again a
//! bounded number of times, and over.

use super::Store;
use crate::alert::DueAlert;
use crate::error::StoreError;
use crate::ids::{AccountId, AlertEventId, AlertPlaceId};
use crate::person::statement::{may, must, values};

impl Store {
    /// Takes what is due for so long: should the taker die, it is due again afterwards. Of one
    /// place or account there is one at a time, so that a slow one does not hold up the others;
    /// those in `except` have theirs already.
    pub async fn take_alerts(
        &self,
        of_accounts: bool,
        limit: usize,
        lease_ms: i64,
        except: &[[u8; 16]],
    ) -> Result<Vec<DueAlert>, StoreError> {
        const OF_PLACES: &str = "SELECT id, event_id, place_id, account_id, news, created_at, due_at, tries \
             FROM alert_delivery WHERE due_at IS NOT NULL AND due_at <= $1 AND place_id IS NOT NULL ORDER BY due_at, id LIMIT 200";
        const OF_ACCOUNTS: &str = "SELECT id, event_id, place_id, account_id, news, created_at, due_at, tries \
             FROM alert_delivery WHERE due_at IS NOT NULL AND due_at <= $1 AND account_id IS NOT NULL ORDER BY due_at, id LIMIT 200";
        let now = self.people_now();
        let sql = if of_accounts { OF_ACCOUNTS } else { OF_PLACES };
        let mut taken: Vec<DueAlert> = Vec::new();
        for row in self.people_rows(sql, values![now]).await? {
            let (id, due) = (row.id(0)?, row.int(6)?);
            let place = row.opt_id(2)?.map(AlertPlaceId);
            let account = row.opt_id(3)?.map(AccountId);
            let (lease, event) = (now.saturating_add(lease_ms), AlertEventId(row.id(1)?));
            let (news, created_at, tries) = (row.text(4)?, row.int(5)?, row.int(7)? + 1);
            let one = DueAlert { id, event, place, account, news, created_at, tries, lease };
            let whose = one.whose();
            if taken.len() >= limit || except.contains(&whose) || taken.iter().any(|other| other.whose() == whose) {
                continue;
            }
            let sql = "UPDATE alert_delivery SET due_at = $3, tries = tries + 1 WHERE id = $1 AND due_at = $2";
            if self.write_people(vec![must(sql, values![id, due, lease])]).await?.is_none() {
                taken.push(one);
            }
        }
        Ok(taken)
    }

    /// What became of a try: over, or once more after so long. A letter that stands for it is
    /// queued with that.
    pub async fn alert_tried(
        &self,
        due: &DueAlert,
        (outcome, status): (&str, Option<u16>),
        again_in_ms: Option<i64>,
        letter: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let now = self.people_now();
        let sql = "UPDATE alert_delivery SET due_at = $3, outcome = $4, status = $5 WHERE id = $1 AND due_at = $2";
        let next = again_in_ms.map(|wait| now.saturating_add(wait));
        let mut write = vec![must(sql, values![due.id, due.lease, next, outcome, status.map(i64::from)])];
        write.extend(letter.map(|sealed| self.put_mail(sealed, now)));
        // Somebody else has it by now: it took longer than the lease.
        self.write_people(write).await.map(drop)
    }

    /// How many wait.
    pub async fn alerts_waiting(&self) -> Result<i64, StoreError> {
        const SQL: &str = "SELECT count(*) FROM alert_delivery WHERE due_at IS NOT NULL";
        self.people_rows(SQL, Vec::new()).await?.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Nothing of an account's is to be sent any more: it has no address.
    pub async fn drop_alert(&self, due: &DueAlert) -> Result<(), StoreError> {
        let sql = "UPDATE alert_delivery SET due_at = NULL, outcome = 'given_up' WHERE id = $1";
        self.write_people(vec![may(sql, values![due.id])]).await.map(drop)
    }
}
