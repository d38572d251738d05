//! Admin keys on the embedded engine.

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::ids::AdminKeyId;
use crate::operator::workflow::{WorkflowMove, WorkflowVerb};
use crate::operator::{AdminKey, Attribution, CREATED, NewAdminKey, OperatorEvent, REVOKED};

/// What the writer is asked to write, with the row that says who and why.
pub(super) enum OperatorOp {
    Create(AdminKey, Attribution),
    Revoke(AdminKeyId, i64, Attribution),
    Workflow(WorkflowMove),
}

const KEY: &str = "id, hash, prefix, name, created_at, expires_at, revoked_at";

impl SqliteEngine {
    pub async fn create_admin_key(&self, new: NewAdminKey, secret: &str) -> Result<AdminKey, StoreError> {
        let (key, done) = new.made(self.ids.admin_key(), secret, self.now())?;
        let made = key.clone();
        self.ask(|reply| Op::Operator(Box::new(OperatorOp::Create(key, done)), reply)).await?;
        Ok(made)
    }

    pub async fn admin_key_by_hash(&self, hash: [u8; 32]) -> Result<Option<AdminKey>, StoreError> {
        let sql = format!("SELECT {KEY} FROM admin_key WHERE hash = ?1");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row(params![hash], key).optional()?)).await
    }

    pub async fn admin_keys(&self) -> Result<Vec<AdminKey>, StoreError> {
        let sql = format!("SELECT {KEY} FROM admin_key ORDER BY id");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_map([], key)?.collect::<Result<_, _>>()?)).await
    }

    pub async fn revoke_admin_key(&self, id: AdminKeyId, done: Attribution) -> Result<Option<AdminKey>, StoreError> {
        let now = self.now();
        self.ask(|reply| Op::Operator(Box::new(OperatorOp::Revoke(id, now, done)), reply)).await?;
        let sql = format!("SELECT {KEY} FROM admin_key WHERE id = ?1");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row(params![id.0], key).optional()?)).await
    }

    pub async fn operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, StoreError> {
        let sql =
            "SELECT seq, at, actor, action, subject, reason, detail FROM operator_event ORDER BY seq DESC LIMIT ?1";
        let event = |r: &Row<'_>| {
            Ok(OperatorEvent {
                seq: r.get(0)?,
                at: r.get(1)?,
                actor: r.get(2)?,
                action: r.get(3)?,
                subject: r.get(4)?,
                reason: r.get(5)?,
                detail: r.get(6)?,
            })
        };
        self.readers
            .read(move |c| Ok(c.prepare_cached(sql)?.query_map(params![limit], event)?.collect::<Result<_, _>>()?))
            .await
    }

    pub async fn move_workflow(&self, moved: WorkflowMove) -> Result<(), StoreError> {
        self.ask(|reply| Op::Operator(Box::new(OperatorOp::Workflow(moved)), reply)).await
    }

    pub async fn workflow_states(&self) -> Result<Vec<WorkflowMove>, StoreError> {
        let sql = "SELECT subject, action, at, actor, reason, detail FROM operator_event WHERE seq IN \
                   (SELECT max(seq) FROM operator_event WHERE substr(action, 1, 9) = 'workflow.' GROUP BY subject) ORDER BY subject";
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_map([], moved)?.collect::<Result<_, _>>()?)).await
    }

    pub async fn workflow_moves(&self, slug: String, limit: u32) -> Result<Vec<WorkflowMove>, StoreError> {
        let sql = "SELECT subject, action, at, actor, reason, detail FROM operator_event \
                   WHERE subject = ?1 AND substr(action, 1, 9) = 'workflow.' ORDER BY seq DESC LIMIT ?2";
        self.readers
            .read(move |c| {
                Ok(c.prepare_cached(sql)?.query_map(params![slug, limit], moved)?.collect::<Result<_, _>>()?)
            })
            .await
    }
}

fn moved(r: &Row<'_>) -> rusqlite::Result<WorkflowMove> {
    let action: String = r.get(1)?;
    Ok(WorkflowMove {
        slug: r.get(0)?,
        // A word of a later version stands for no contract.
        verb: WorkflowVerb::of(&action).unwrap_or(WorkflowVerb::Unlock),
        at: r.get(2)?,
        actor: r.get(3)?,
        reason: r.get(4)?,
        evidence: r.get(5)?,
    })
}

fn key(r: &Row<'_>) -> rusqlite::Result<AdminKey> {
    Ok(AdminKey {
        id: AdminKeyId(r.get(0)?),
        hash: r.get(1)?,
        prefix: r.get(2)?,
        name: r.get(3)?,
        created_at: r.get(4)?,
        expires_at: r.get(5)?,
        revoked_at: r.get(6)?,
    })
}

impl Apply<'_> {
    pub(super) fn operator(&mut self, op: &OperatorOp) -> rusqlite::Result<Result<(), StoreError>> {
        let (changed, at, action, id, done) = match op {
            OperatorOp::Create(k, done) => {
                let sql = "INSERT OR IGNORE INTO admin_key (id, hash, prefix, name, created_at, expires_at) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let row = params![k.id.0, k.hash, k.prefix, k.name, k.created_at, k.expires_at];
                if self.statement(sql)?.execute(row)? == 0 {
                    return Ok(Err(StoreError::Conflict("this secret is in use already".into())));
                }
                (1, k.created_at, CREATED, k.id, done)
            }
            OperatorOp::Revoke(id, at, done) => {
                let sql = "UPDATE admin_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
                (self.statement(sql)?.execute(params![id.0, at])?, *at, REVOKED, *id, done)
            }
            OperatorOp::Workflow(moved) => {
                let done = Attribution { actor: moved.actor.clone(), reason: moved.reason.clone() };
                self.note_event(moved.at, &done, moved.verb.action(), &moved.slug, &moved.evidence)?;
                return Ok(Ok(()));
            }
        };
        if changed == 1 {
            self.note_event(at, done, action, &id.to_string(), "")?;
        }
        Ok(Ok(()))
    }

    /// The row that says what was done, who did it and why.
    pub(super) fn note_event(
        &mut self,
        at: i64,
        done: &Attribution,
        action: &str,
        subject: &str,
        detail: &str,
    ) -> rusqlite::Result<()> {
        let sql =
            "INSERT INTO operator_event (at, actor, action, subject, reason, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.statement(sql)?.execute(params![at, done.actor, action, subject, done.reason, detail])?;
        Ok(())
    }
}
