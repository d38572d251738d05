//! The verbs of notices of a low balance.

use super::{Engine, Store};
use crate::account::limits::day_of;
use crate::alert::MOST_WAITING;
use crate::alert::notice::{BalanceNotice, DueNotice, MOST_OWNERS, NOTICES_A_DAY, NoticeMail, NoticeOwner, NoticeWish};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::operator::Attribution;
use crate::person::statement::{SqlRow, may, must, values};

/// An account has news of its own waiting at most.
const EACH_WAITING: i64 = 10;
pub(super) const CROSSED: &str = "SELECT n.account_id, n.threshold, n.mail, n.webhook, n.low_at, n.day, n.sent, \
     a.trial_available + a.paid_available + a.trial_held + a.paid_held \
     FROM balance_notice AS n JOIN account AS a ON a.id = n.account_id \
     WHERE n.account_id > $1 AND a.ended_at IS NULL ORDER BY n.account_id LIMIT $2";

impl Store {
    /// What an account wants to hear of; without a wish it hears nothing.
    pub async fn balance_notice(&self, account: AccountId) -> Result<BalanceNotice, StoreError> {
        const SQL: &str = "SELECT threshold, mail, webhook, low_at, day, sent, last_sent_at FROM balance_notice WHERE account_id = $1";
        let today = day_of(self.people_now());
        let nothing = BalanceNotice {
            account_id: account,
            threshold_nano_usd: None,
            mail: true,
            webhook: true,
            low_since_ms: None,
            last_sent_at_ms: None,
            sent_today: 0,
        };
        let rows = self.people_rows(SQL, values![account.0]).await?;
        let Some(row) = rows.first() else { return Ok(nothing) };
        // A threshold of zero is below every balance: the row stays for what was sent in the day.
        Ok(BalanceNotice {
            threshold_nano_usd: Some(row.int(0)?).filter(|threshold| *threshold > 0),
            mail: row.int(1)? != 0,
            webhook: row.int(2)? != 0,
            low_since_ms: row.opt_int(3)?,
            last_sent_at_ms: row.opt_int(6)?,
            sent_today: if row.int(4)? == today { row.int(5)? } else { 0 },
            ..nothing
        })
    }

    /// What was sent in the day stays counted, however often this is changed.
    pub async fn set_balance_notice(
        &self,
        account: AccountId,
        wish: NoticeWish,
        done: Attribution,
    ) -> Result<BalanceNotice, StoreError> {
        if self.balance_of(account).await?.is_none() {
            return Err(StoreError::NotFound(account.to_string()));
        }
        let sql = "INSERT INTO balance_notice (account_id, threshold, mail, webhook, day, sent, changed_at) \
             VALUES ($1, $2, $3, $4, 0, 0, $5) ON CONFLICT (account_id) DO UPDATE SET threshold = excluded.threshold, \
             mail = excluded.mail, webhook = excluded.webhook, changed_at = excluded.changed_at, \
             low_at = CASE WHEN balance_notice.threshold = excluded.threshold THEN balance_notice.low_at ELSE NULL END";
        let (now, threshold) = (self.people_now(), wish.threshold_nano_usd.unwrap_or(0));
        let detail = serde_json::to_string(&wish).map_err(StoreError::broken)?;
        let put = may(sql, values![account.0, threshold, i64::from(wish.mail), i64::from(wish.webhook), now]);
        self.write_people(vec![put]).await?;
        self.note_audit(&done, "notice.change", &account.to_string(), Some(account), &detail).await?;
        self.balance_notice(account).await
    }

    /// Some of the accounts that want notices, after this one in the order of their ids: those
    /// whose balance has crossed, and the last that was looked at, if there may be more.
    pub async fn crossed_notices(
        &self,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<(Vec<DueNotice>, Option<AccountId>), StoreError> {
        let today = day_of(self.people_now());
        let after = after.map_or([0; 16], |account| account.0);
        let rows = self.people_rows(CROSSED, values![after, i64::from(limit)]).await?;
        let due = |row: &SqlRow| -> Result<Option<DueNotice>, StoreError> {
            let (threshold, balance, was_low) = (row.int(1)?, row.int(7)?, row.opt_int(4)?.is_some());
            let low = balance < threshold;
            let sent = if row.int(5)? == today { row.int(6)? } else { 0 };
            Ok((low != was_low).then_some(DueNotice {
                account: AccountId(row.id(0)?),
                threshold,
                balance,
                mail: row.int(2)? != 0,
                webhook: row.int(3)? != 0,
                low,
                may_send: sent < NOTICES_A_DAY,
                day: today,
                sent,
            }))
        };
        let last = match rows.last().filter(|_| rows.len() == limit as usize) {
            Some(row) => Some(AccountId(row.id(0)?)),
            None => None,
        };
        let crossed: Vec<Option<DueNotice>> = rows.iter().map(due).collect::<Result<_, _>>()?;
        Ok((crossed.into_iter().flatten().collect(), last))
    }

    /// Who owns an account and has an e-mail that was verified.
    pub async fn notice_owners(&self, account: AccountId) -> Result<Vec<NoticeOwner>, StoreError> {
        const SQL: &str = "SELECT p.email, p.locale FROM membership AS m JOIN person AS p ON p.id = m.person_id \
             WHERE m.account_id = $1 AND m.role = 'owner' AND p.verified_at IS NOT NULL AND p.disabled_at IS NULL \
             ORDER BY p.id LIMIT $2";
        let owner = |row: &SqlRow| Ok(NoticeOwner { email: row.text(0)?, locale: row.text(1)? });
        self.people_rows(SQL, values![account.0, MOST_OWNERS]).await?.iter().map(owner).collect()
    }

    /// It has crossed, and what goes out about it. `false`: somebody else has written it.
    pub async fn cross_notice(&self, due: &DueNotice, out: NoticeMail) -> Result<bool, StoreError> {
        let now = self.people_now();
        if !due.low {
            let sql = "UPDATE balance_notice SET low_at = NULL WHERE account_id = $1 AND low_at IS NOT NULL";
            return Ok(self.write_people(vec![must(sql, values![due.account.0])]).await?.is_none());
        }
        let sends = due.may_send && (!out.letters.is_empty() || out.webhook.is_some());
        let sent = due.sent + i64::from(sends);
        let sql = "UPDATE balance_notice SET low_at = $2, day = $3, sent = $4, last_sent_at = coalesce($5, last_sent_at) \
             WHERE account_id = $1 AND low_at IS NULL AND threshold = $6";
        let mut write =
            vec![must(sql, values![due.account.0, now, due.day, sent, sends.then_some(now), due.threshold])];
        if sends {
            write.extend(out.letters.into_iter().map(|sealed| self.put_mail(sealed, now)));
            write.extend(out.webhook.map(|news| {
                let event = on_engine!(self, e => e.people_ids().alert_event());
                let sql = "INSERT INTO alert_delivery (id, event_id, account_id, news, created_at, due_at, tries) \
                     SELECT $1, $1, $2, $3, $4, $5, 0 WHERE (SELECT count(*) FROM alert_delivery \
                     WHERE due_at IS NOT NULL AND account_id = $2) < $6 \
                     AND (SELECT count(*) FROM alert_delivery WHERE due_at IS NOT NULL AND account_id IS NOT NULL) < $7";
                may(sql, values![event.0, due.account.0, news, now, now, EACH_WAITING, 10 * MOST_WAITING])
            }));
        }
        Ok(self.write_people(write).await?.is_none())
    }
}
