//! Admin keys on PostgreSQL. What is done and the row that says who did it are one statement.

use tokio_postgres::Row;

use super::PostgresEngine;
use super::records::SqlParam;
use crate::error::StoreError;
use crate::ids::{AccountId, AdminKeyId};
use crate::operator::workflow::{WorkflowMove, WorkflowVerb};
use crate::operator::{AdminKey, Attribution, AuditPage, AuditRow, CREATED, NewAdminKey, OperatorEvent, REVOKED};

const KEY: &str = "id, hash, prefix, name, created_at, expires_at, revoked_at";

impl PostgresEngine {
    pub async fn create_admin_key(&self, new: NewAdminKey, secret: &str) -> Result<AdminKey, StoreError> {
        let (key, done) = new.made(self.ids.admin_key(), secret, self.now())?;
        let sql = "WITH made AS (INSERT INTO admin_key (id, hash, prefix, name, created_at, expires_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1) \
                   INSERT INTO operator_event (at, actor, action, subject, reason, request_id) \
                   SELECT $5, $7, $8, $9, $10, $11 FROM made RETURNING 1";
        let (id, hash) = (key.id.0, key.hash);
        let made = self
            .rows(
                sql,
                &[
                    &id.as_slice(),
                    &hash.as_slice(),
                    &key.prefix,
                    &key.name,
                    &key.created_at,
                    &key.expires_at,
                    &done.actor,
                    &CREATED,
                    &key.id.to_string(),
                    &done.reason,
                    &done.request,
                ],
            )
            .await?;
        if made.is_empty() {
            return Err(StoreError::Conflict("this secret is in use already".into()));
        }
        Ok(key)
    }

    pub async fn admin_key_by_hash(&self, hash: [u8; 32]) -> Result<Option<AdminKey>, StoreError> {
        let sql = format!("SELECT {KEY} FROM admin_key WHERE hash = $1");
        self.rows(&sql, &[&hash.as_slice()]).await?.first().map(key).transpose()
    }

    pub async fn admin_keys(&self) -> Result<Vec<AdminKey>, StoreError> {
        let sql = format!("SELECT {KEY} FROM admin_key ORDER BY id");
        self.rows(&sql, &[]).await?.iter().map(key).collect()
    }

    pub async fn revoke_admin_key(&self, id: AdminKeyId, done: Attribution) -> Result<Option<AdminKey>, StoreError> {
        let sql = "WITH changed AS (UPDATE admin_key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING 1) \
                   INSERT INTO operator_event (at, actor, action, subject, reason, request_id) SELECT $2, $3, $4, $5, $6, $7 FROM changed";
        let subject = id.to_string();
        self.rows(sql, &[&id.0.as_slice(), &self.now(), &done.actor, &REVOKED, &subject, &done.reason, &done.request])
            .await?;
        let sql = format!("SELECT {KEY} FROM admin_key WHERE id = $1");
        self.rows(&sql, &[&id.0.as_slice()]).await?.first().map(key).transpose()
    }

    pub async fn operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, StoreError> {
        let sql = format!(
            "SELECT {EVENT} FROM operator_event WHERE NOT starts_with(action, 'credit.') AND NOT starts_with(action, 'pause.') \
             ORDER BY seq DESC LIMIT $1"
        );
        self.rows(&sql, &[&i64::from(limit)]).await?.iter().map(event).collect()
    }

    pub async fn audit_page(&self, page: AuditPage) -> Result<Vec<OperatorEvent>, StoreError> {
        let sql = format!(
            "SELECT {EVENT} FROM operator_event WHERE seq < $1 AND ($2::bytea IS NULL OR account_id = $2) \
             AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4) \
             AND ($5::text IS NULL OR subject = $5) AND ($6::bigint IS NULL OR at >= $6) \
             AND ($7::bigint IS NULL OR at < $7) ORDER BY seq DESC LIMIT $8"
        );
        let before = page.before.unwrap_or(i64::MAX);
        let account = page.account.map(|account| account.0.to_vec());
        let values: [SqlParam<'_>; 8] = [
            &before,
            &account,
            &page.actor,
            &page.action,
            &page.subject,
            &page.from_ms,
            &page.to_ms,
            &i64::from(page.limit),
        ];
        self.rows(&sql, &values).await?.iter().map(event).collect()
    }

    pub async fn changes_since(&self, account: AccountId, since: i64, most: u32) -> Result<u32, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT at FROM operator_event WHERE account_id = $1 ORDER BY seq DESC LIMIT $3) \
                   AS newest WHERE at >= $2";
        let rows = self.rows(sql, &[&account.0.as_slice(), &since, &i64::from(most)]).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        Ok(u32::try_from(row.try_get::<_, i64>(0)?).unwrap_or(u32::MAX))
    }

    pub async fn note_audit(&self, row: AuditRow) -> Result<(), StoreError> {
        self.noted("SELECT 1 AS id", &[], Some(row)).await.map(drop)
    }

    /// A statement that returns an `id` for what it did, and the row of the log for it, in one.
    pub(super) async fn noted(
        &self,
        sql: &str,
        params: &[SqlParam<'_>],
        row: Option<AuditRow>,
    ) -> Result<Vec<Row>, StoreError> {
        self.noted_if(sql, "true", params, row).await
    }

    /// The same where the row is written only if this is so of what was returned.
    pub(super) async fn noted_if(
        &self,
        sql: &str,
        condition: &str,
        params: &[SqlParam<'_>],
        row: Option<AuditRow>,
    ) -> Result<Vec<Row>, StoreError> {
        let Some(row) = row else { return self.change(sql, params).await };
        let places: Vec<String> = (params.len() + 1..=params.len() + 8).map(|number| format!("${number}")).collect();
        let [at, actor, action, subject, reason, detail, account, request] = places.as_slice() else {
            return Err(StoreError::broken("eight places"));
        };
        let sql = format!(
            "WITH done AS ({sql}), noted AS (INSERT INTO operator_event \
             (at, actor, action, subject, reason, detail, account_id, request_id) \
             SELECT {at}::bigint, {actor}::text, {action}::text, {subject}::text, {reason}::text, {detail}::text, \
             {account}::bytea, {request}::text FROM done WHERE {condition}) SELECT id FROM done"
        );
        let of = row.account.map(|account| account.0.to_vec());
        let more: [SqlParam<'_>; 8] =
            [&row.at, &row.actor, &row.action, &row.subject, &row.reason, &row.detail, &of, &row.request];
        let all: Vec<SqlParam<'_>> = params.iter().copied().chain(more).collect();
        self.change(&sql, &all).await
    }

    pub async fn move_workflow(&self, moved: WorkflowMove) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO operator_event (at, actor, action, subject, reason, detail) VALUES ($1, $2, $3, $4, $5, $6)";
        let m = &moved;
        self.rows(sql, &[&m.at, &m.actor, &m.verb.action(), &m.slug, &m.reason, &m.evidence]).await?;
        Ok(())
    }

    pub async fn workflow_states(&self) -> Result<Vec<WorkflowMove>, StoreError> {
        let sql = "SELECT subject, action, at, actor, reason, detail FROM operator_event WHERE seq IN \
                   (SELECT max(seq) FROM operator_event WHERE starts_with(action, 'workflow.') GROUP BY subject) \
                   ORDER BY subject COLLATE \"C\"";
        self.rows(sql, &[]).await?.iter().map(moved).collect()
    }

    pub async fn workflow_moves(&self, slug: String, limit: u32) -> Result<Vec<WorkflowMove>, StoreError> {
        let sql = "SELECT subject, action, at, actor, reason, detail FROM operator_event \
                   WHERE subject = $1 AND starts_with(action, 'workflow.') ORDER BY seq DESC LIMIT $2";
        self.rows(sql, &[&slug, &i64::from(limit)]).await?.iter().map(moved).collect()
    }
}

const EVENT: &str = "seq, at, actor, action, subject, reason, detail, account_id, request_id";

fn event(r: &Row) -> Result<OperatorEvent, StoreError> {
    Ok(OperatorEvent {
        seq: r.try_get(0)?,
        at: r.try_get(1)?,
        actor: r.try_get(2)?,
        action: r.try_get(3)?,
        subject: r.try_get(4)?,
        reason: r.try_get(5)?,
        detail: r.try_get(6)?,
        account_id: r.try_get::<_, Option<&[u8]>>(7)?.and_then(AccountId::from_slice),
        request_id: r.try_get(8)?,
    })
}

fn moved(r: &Row) -> Result<WorkflowMove, StoreError> {
    let action: &str = r.try_get(1)?;
    Ok(WorkflowMove {
        slug: r.try_get(0)?,
        // A word of a later version stands for no contract.
        verb: WorkflowVerb::of(action).unwrap_or(WorkflowVerb::Unlock),
        at: r.try_get(2)?,
        actor: r.try_get(3)?,
        reason: r.try_get(4)?,
        evidence: r.try_get(5)?,
    })
}

fn key(r: &Row) -> Result<AdminKey, StoreError> {
    let bad = || StoreError::broken("not an admin key");
    Ok(AdminKey {
        id: AdminKeyId::from_slice(r.try_get(0)?).ok_or_else(bad)?,
        hash: r.try_get::<_, &[u8]>(1)?.try_into().map_err(|_| bad())?,
        prefix: r.try_get(2)?,
        name: r.try_get(3)?,
        created_at: r.try_get(4)?,
        expires_at: r.try_get(5)?,
        revoked_at: r.try_get(6)?,
    })
}
