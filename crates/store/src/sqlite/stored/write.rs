//! Every write of what customers store. Whether there is room is looked up in the same transaction
//! in which the triggers count.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::WrittenRows;
use crate::ids::AccountId;
use crate::response::quota::{NoRoom, Quota, StorageUsed};
use crate::response::{AddedItem, Item, NewResponse, StoredConversation};

/// What is asked to be written; the answer is how many rows of the kind there were.
pub(in crate::sqlite) enum ResponseOp {
    Keep(NewResponse, Quota),
    Delete(AccountId, String),
    Converse(AccountId, StoredConversation, Vec<Item>, Quota),
    Change(AccountId, StoredConversation, Quota),
    EndConversation(AccountId, String),
    Add(AccountId, String, Vec<Item>, i64, Quota),
    DeleteItem(AccountId, String, String),
    Unsay(AccountId, String, AddedItem),
    Forget(i64),
}

/// Expired rows erased in one commit.
const AT_ONCE: i64 = 500;

impl ResponseOp {
    pub fn erases(&self) -> bool {
        self.needs().is_none()
    }

    /// What it may add.
    pub fn bytes(&self) -> u64 {
        self.needs().map_or(0, |(_, more, _)| more.bytes)
    }

    /// Whose room it needs, how much at most, and what that account may have.
    fn needs(&self) -> Option<(AccountId, StorageUsed, Quota)> {
        match self {
            ResponseOp::Keep(new, quota) => Some((new.account, new.needs(), *quota)),
            ResponseOp::Converse(account, new, items, quota) => Some((*account, new.needs(items), *quota)),
            ResponseOp::Change(account, new, quota) => Some((*account, StorageUsed::text(&new.metadata), *quota)),
            ResponseOp::Add(account, id, items, _, quota) => Some((*account, Item::need(id, items), *quota)),
            ResponseOp::Delete(..)
            | ResponseOp::EndConversation(..)
            | ResponseOp::DeleteItem(..)
            | ResponseOp::Unsay(..)
            | ResponseOp::Forget(_) => None,
        }
    }
}

/// Writes one operation, if there is room for it. `most`: all that may be stored.
pub(super) fn write(tx: &Connection, op: &ResponseOp, most: u64) -> rusqlite::Result<WrittenRows> {
    if let Some((account, more, quota)) = op.needs() {
        tx.prepare_cached("INSERT OR IGNORE INTO stored (account_id) VALUES (?1)")?.execute(params![account.0])?;
        let used = stored(tx, &account.0)?;
        if !quota.has_room(used, more) {
            return Ok(Err(NoRoom::Account(used)));
        }
        if !(Quota { bytes: most, ..Quota::UNLIMITED }).has_room(stored(tx, &[])?, more) {
            return Ok(Err(NoRoom::All));
        }
    }
    let done = match op {
        ResponseOp::Keep(new, _) => keep(tx, new)?,
        ResponseOp::Delete(account, id) => {
            let names = "DELETE FROM response_item WHERE account_id = ?1 AND response_id = ?2";
            tx.prepare_cached(names)?.execute(params![account.0, id])?;
            let sql = "DELETE FROM response WHERE account_id = ?1 AND id = ?2";
            tx.prepare_cached(sql)?.execute(params![account.0, id])?
        }
        ResponseOp::Converse(account, c, items, _) => {
            let sql = "INSERT OR IGNORE INTO conversation (account_id, id, created_at, expires_at, metadata) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            tx.prepare_cached(sql)?.execute(params![account.0, c.id, c.created_at, c.expires_at, c.metadata])?;
            say(tx, *account, &c.id, items.iter().map(|item| (item, None)), c.expires_at)?
        }
        ResponseOp::Change(account, c, _) => {
            let sql = "UPDATE conversation SET metadata = ?3, expires_at = max(expires_at, ?4) \
                       WHERE account_id = ?1 AND id = ?2";
            tx.prepare_cached(sql)?.execute(params![account.0, c.id, c.metadata, c.expires_at])?
        }
        ResponseOp::EndConversation(account, id) => {
            let items = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2";
            tx.prepare_cached(items)?.execute(params![account.0, id])?;
            let sql = "DELETE FROM conversation WHERE account_id = ?1 AND id = ?2";
            tx.prepare_cached(sql)?.execute(params![account.0, id])?
        }
        ResponseOp::Add(account, id, items, expires_at, _) => {
            say(tx, *account, id, items.iter().map(|item| (item, None)), *expires_at)?
        }
        ResponseOp::DeleteItem(account, conversation, id) => {
            let sql = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
            tx.prepare_cached(sql)?.execute(params![account.0, conversation, id])?
        }
        ResponseOp::Unsay(account, conversation, said) => remove_said(tx, *account, conversation, said)?,
        ResponseOp::Forget(now) => forget(tx, *now)?,
    };
    Ok(Ok(u64::try_from(done).unwrap_or_default()))
}

/// What is stored under an id: of an account, or of all under an empty one.
pub(super) fn stored(conn: &Connection, id: &[u8]) -> rusqlite::Result<StorageUsed> {
    let sql = "SELECT bytes, objects, items FROM stored WHERE account_id = ?1";
    let count = |r: &Row<'_>, at| Ok::<_, rusqlite::Error>(u64::try_from(r.get::<_, i64>(at)?).unwrap_or_default());
    let one = |r: &Row<'_>| Ok(StorageUsed { bytes: count(r, 0)?, objects: count(r, 1)?, items: count(r, 2)? });
    Ok(conn.prepare_cached(sql)?.query_row(params![id], one).optional()?.unwrap_or_default())
}

fn remove_said(tx: &Connection, account: AccountId, conversation: &str, said: &AddedItem) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
    match tx.prepare_cached(sql)?.execute(params![account.0, conversation, said.spare])? {
        0 => {
            let (sql, item) = (format!("{sql} AND item = ?4"), &said.item);
            tx.prepare_cached(&sql)?.execute(params![account.0, conversation, item.id, item.json])
        }
        gone => Ok(gone),
    }
}

fn keep(tx: &Connection, new: &NewResponse) -> rusqlite::Result<usize> {
    let (account, r) = (new.account.0, &new.response);
    let sql = "INSERT OR IGNORE INTO response \
               (account_id, id, previous, conversation, created_at, expires_at, bytes, input, object) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let bytes = i64::try_from(r.bytes()).unwrap_or(i64::MAX);
    let row = params![account, r.id, r.previous, r.conversation, r.created_at, r.expires_at, bytes, r.input, r.object];
    let rows = tx.prepare_cached(sql)?.execute(row)?;
    if rows == 0 {
        return Ok(0);
    }
    let name = "INSERT OR IGNORE INTO response_item (account_id, id, response_id) VALUES (?1, ?2, ?3)";
    for item in &new.items {
        tx.prepare_cached(name)?.execute(params![account, item, r.id])?;
    }
    if let Some(previous) = &r.previous {
        let sql = "UPDATE response SET expires_at = max(expires_at, ?3) WHERE account_id = ?1 AND id IN (
                     WITH RECURSIVE back (id) AS (SELECT ?2 UNION
                       SELECT r.previous FROM back JOIN response r ON r.account_id = ?1 AND r.id = back.id)
                     SELECT id FROM back)";
        tx.prepare_cached(sql)?.execute(params![account, previous, r.expires_at])?;
    }
    if let Some(conversation) = &r.conversation {
        let said = new.said.iter().map(|said| (&said.item, Some(said.spare.as_str())));
        say(tx, new.account, conversation, said, r.expires_at)?;
    }
    Ok(rows)
}

/// Adds items to a conversation that is there. One whose id is taken has its spare one, or is there
/// already.
fn say<'i>(
    tx: &Connection,
    account: AccountId,
    id: &str,
    items: impl Iterator<Item = (&'i Item, Option<&'i str>)>,
    expires_at: i64,
) -> rusqlite::Result<usize> {
    let sql = "UPDATE conversation SET expires_at = max(expires_at, ?3) WHERE account_id = ?1 AND id = ?2";
    let there = tx.prepare_cached(sql)?.execute(params![account.0, id, expires_at])?;
    let sql = "INSERT OR IGNORE INTO conversation_item (account_id, conversation, id, item) VALUES (?1, ?2, ?3, ?4)";
    for (item, spare) in items.filter(|_| there > 0) {
        let added = tx.prepare_cached(sql)?.execute(params![account.0, id, item.id, item.json])?;
        if let Some(spare) = spare.filter(|_| added == 0) {
            tx.prepare_cached(sql)?.execute(params![account.0, id, spare, item.json])?;
        }
    }
    Ok(there)
}

fn forget(tx: &Connection, now: i64) -> rusqlite::Result<usize> {
    let due = "SELECT account_id, id FROM response WHERE expires_at <= ?1 LIMIT ?2";
    let due = format!("({due})");
    let names = format!("DELETE FROM response_item WHERE (account_id, response_id) IN {due}");
    tx.prepare_cached(&names)?.execute(params![now, AT_ONCE])?;
    let gone = format!("DELETE FROM response WHERE (account_id, id) IN {due}");
    let responses = tx.prepare_cached(&gone)?.execute(params![now, AT_ONCE])?;
    let due = "(SELECT account_id, id FROM conversation WHERE expires_at <= ?1 LIMIT ?2)";
    let items = format!("DELETE FROM conversation_item WHERE (account_id, conversation) IN {due}");
    tx.prepare_cached(&items)?.execute(params![now, AT_ONCE])?;
    let gone = format!("DELETE FROM conversation WHERE (account_id, id) IN {due}");
    Ok(responses + tx.prepare_cached(&gone)?.execute(params![now, AT_ONCE])?)
}
