//! Admin keys on PostgreSQL. What is done and the row that says who did it are one statement.

use tokio_postgres::Row;

use super::PostgresEngine;
use crate::error::StoreError;
use crate::ids::AdminKeyId;
use crate::operator::workflow::{WorkflowMove, WorkflowVerb};
use crate::operator::{AdminKey, Attribution, CREATED, NewAdminKey, OperatorEvent, REVOKED};

const KEY: &str = "id, hash, prefix, name, created_at, expires_at, revoked_at";

impl PostgresEngine {
    pub async fn create_admin_key(&self, new: NewAdminKey, secret: &str) -> Result<AdminKey, StoreError> {
        let (key, done) = new.made(self.ids.admin_key(), secret, self.now())?;
        let sql = "WITH made AS (INSERT INTO admin_key (id, hash, prefix, name, created_at, expires_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1) \
                   INSERT INTO operator_event (at, actor, action, subject, reason) \
                   SELECT $5, $7, $8, $9, $10 FROM made RETURNING 1";
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
                   INSERT INTO operator_event (at, actor, action, subject, reason) SELECT $2, $3, $4, $5, $6 FROM changed";
        let subject = id.to_string();
        self.rows(sql, &[&id.0.as_slice(), &self.now(), &done.actor, &REVOKED, &subject, &done.reason]).await?;
        let sql = format!("SELECT {KEY} FROM admin_key WHERE id = $1");
        self.rows(&sql, &[&id.0.as_slice()]).await?.first().map(key).transpose()
    }

    pub async fn operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, StoreError> {
        let sql =
            "SELECT seq, at, actor, action, subject, reason, detail FROM operator_event ORDER BY seq DESC LIMIT $1";
        let event = |r: &Row| {
            Ok(OperatorEvent {
                seq: r.try_get(0)?,
                at: r.try_get(1)?,
                actor: r.try_get(2)?,
                action: r.try_get(3)?,
                subject: r.try_get(4)?,
                reason: r.try_get(5)?,
                detail: r.try_get(6)?,
            })
        };
        self.rows(sql, &[&i64::from(limit)]).await?.iter().map(event).collect()
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
