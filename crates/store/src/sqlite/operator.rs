//! Admin keys on the embedded engine.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::ids::{AccountId, AdminKeyId};
use crate::operator::workflow::{WorkflowMove, WorkflowVerb};
use crate::operator::{AdminKey, Attribution, AuditPage, AuditRow, CREATED, NewAdminKey, OperatorEvent, REVOKED};

/// What the writer is asked to write, with the row that says who and why.
pub(super) enum OperatorOp {
    Create(AdminKey, Attribution),
    Revoke(AdminKeyId, i64, Attribution),
    Workflow(WorkflowMove),
    Note(AuditRow),
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
        let sql = format!(
            "SELECT {EVENT} FROM operator_event WHERE substr(action, 1, 7) <> 'credit.' AND substr(action, 1, 6) <> 'pause.' \
             ORDER BY seq DESC LIMIT ?1"
        );
        self.readers
            .read(move |c| Ok(c.prepare_cached(&sql)?.query_map(params![limit], event)?.collect::<Result<_, _>>()?))
            .await
    }

    pub async fn audit_page(&self, page: AuditPage) -> Result<Vec<OperatorEvent>, StoreError> {
        let (mut conditions, mut values) =
            ("seq < ?".to_owned(), vec![Value::Integer(page.before.unwrap_or(i64::MAX))]);
        let mut add = |condition: &str, value: Option<Value>| {
            if let Some(value) = value {
                conditions.push_str(&format!(" AND {condition} ?"));
                values.push(value);
            }
        };
        add("account_id =", page.account.map(|account| Value::Blob(account.0.to_vec())));
        add("actor =", page.actor.map(Value::Text));
        add("action =", page.action.map(Value::Text));
        add("subject =", page.subject.map(Value::Text));
        add("at >=", page.from_ms.map(Value::Integer));
        add("at <", page.to_ms.map(Value::Integer));
        values.push(Value::Integer(page.limit.into()));
        let sql = format!("SELECT {EVENT} FROM operator_event WHERE {conditions} ORDER BY seq DESC LIMIT ?");
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(&sql)?;
                Ok(statement.query_map(params_from_iter(values), event)?.collect::<Result<_, _>>()?)
            })
            .await
    }

    pub async fn changes_since(&self, account: AccountId, since: i64, most: u32) -> Result<u32, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT at FROM operator_event WHERE account_id = ?1 ORDER BY seq DESC LIMIT ?3) \
                   WHERE at >= ?2";
        let values = (account.0, since, most);
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_row(values, |r| r.get(0))?)).await
    }

    pub async fn note_audit(&self, row: AuditRow) -> Result<(), StoreError> {
        self.ask(|reply| Op::Operator(Box::new(OperatorOp::Note(row)), reply)).await
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

const EVENT: &str = "seq, at, actor, action, subject, reason, detail, account_id, request_id";

fn event(r: &Row<'_>) -> rusqlite::Result<OperatorEvent> {
    Ok(OperatorEvent {
        seq: r.get(0)?,
        at: r.get(1)?,
        actor: r.get(2)?,
        action: r.get(3)?,
        subject: r.get(4)?,
        reason: r.get(5)?,
        detail: r.get(6)?,
        account_id: r.get::<_, Option<[u8; 16]>>(7)?.map(AccountId),
        request_id: r.get(8)?,
    })
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
            OperatorOp::Note(row) => {
                self.note(Some(row.clone()))?;
                return Ok(Ok(()));
            }
            OperatorOp::Workflow(moved) => {
                let done = Attribution::by(moved.actor.clone(), moved.reason.clone());
                let row = AuditRow::new(moved.at, &done, moved.verb.action(), &moved.slug, None);
                // Evidence is JSON that is read again: it is bounded where it is made.
                self.note(row.map(|row| AuditRow { detail: moved.evidence.clone(), ..row }))?;
                return Ok(Ok(()));
            }
        };
        if changed == 1 {
            self.note(AuditRow::new(at, done, action, &id.to_string(), None))?;
        }
        Ok(Ok(()))
    }

    /// The row that says what was done, who did it and why.
    pub(super) fn note(&mut self, row: Option<AuditRow>) -> rusqlite::Result<()> {
        let Some(row) = row else { return Ok(()) };
        let sql = "INSERT INTO operator_event (at, actor, action, subject, reason, detail, account_id, request_id) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let account = row.account.map(|account| account.0);
        self.statement(sql)?.execute(params![
            row.at,
            row.actor,
            row.action,
            row.subject,
            row.reason,
            row.detail,
            account,
            row.request
        ])?;
        Ok(())
    }
}
