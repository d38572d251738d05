//! Kept responses and conversations on the embedded engine. They are written by the writer's thread and waited for; only
//! calls that keep something come here, so the ledger's way stays as short as it is.

use rusqlite::{OptionalExtension, Row, params};

use super::Engine;
use super::apply::Apply;
use super::ops::Op;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::response::{CHAIN_BYTES, CHAIN_LENGTH, Conversation, Item, ItemPage, NewResponse, Said, StoredResponse};

/// What the writer is asked to write; it answers how many rows of the kind there were.
pub(super) enum ResponseOp {
    Keep(NewResponse),
    Delete(AccountId, String),
    Converse(AccountId, Conversation, Vec<Item>),
    Change(AccountId, Conversation),
    EndConversation(AccountId, String),
    Add(AccountId, String, Vec<Item>, i64),
    DeleteItem(AccountId, String, String),
    Unsay(AccountId, String, Said),
    Forget(i64),
}

/// Expired rows erased in one commit.
const AT_ONCE: i64 = 500;

const COLUMNS: &str = "r.id, r.previous, r.conversation, r.created_at, r.expires_at, r.input, r.object";

fn response(r: &Row<'_>) -> rusqlite::Result<StoredResponse> {
    Ok(StoredResponse {
        id: r.get(0)?,
        previous: r.get(1)?,
        conversation: r.get(2)?,
        created_at: r.get(3)?,
        expires_at: r.get(4)?,
        input: r.get(5)?,
        object: r.get(6)?,
    })
}

impl Engine {
    async fn write_response(&self, op: ResponseOp) -> Result<u64, StoreError> {
        self.ask(|reply| Op::Response(Box::new(op), reply)).await
    }

    pub async fn keep_response(&self, new: NewResponse) -> Result<bool, StoreError> {
        Ok(self.write_response(ResponseOp::Keep(new)).await? > 0)
    }

    pub async fn delete_response(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        Ok(self.write_response(ResponseOp::Delete(account, id.to_owned())).await? > 0)
    }

    pub async fn forget_responses(&self, now: i64) -> Result<u64, StoreError> {
        self.write_response(ResponseOp::Forget(now)).await
    }

    pub async fn create_conversation(
        &self,
        account: AccountId,
        new: Conversation,
        items: Vec<Item>,
    ) -> Result<(), StoreError> {
        self.write_response(ResponseOp::Converse(account, new, items)).await.map(drop)
    }

    pub async fn change_conversation(&self, account: AccountId, new: Conversation) -> Result<bool, StoreError> {
        Ok(self.write_response(ResponseOp::Change(account, new)).await? > 0)
    }

    pub async fn delete_conversation(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        Ok(self.write_response(ResponseOp::EndConversation(account, id.to_owned())).await? > 0)
    }

    pub async fn add_items(
        &self,
        account: AccountId,
        conversation: &str,
        items: Vec<Item>,
        expires_at: i64,
    ) -> Result<bool, StoreError> {
        let op = ResponseOp::Add(account, conversation.to_owned(), items, expires_at);
        Ok(self.write_response(op).await? > 0)
    }

    pub async fn delete_item(&self, account: AccountId, conversation: &str, id: &str) -> Result<bool, StoreError> {
        let op = ResponseOp::DeleteItem(account, conversation.to_owned(), id.to_owned());
        Ok(self.write_response(op).await? > 0)
    }

    pub async fn unsay(&self, account: AccountId, conversation: &str, said: Said) -> Result<bool, StoreError> {
        Ok(self.write_response(ResponseOp::Unsay(account, conversation.to_owned(), said)).await? > 0)
    }

    pub async fn response(&self, account: AccountId, id: &str) -> Result<Option<StoredResponse>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM response r WHERE account_id = ?1 AND id = ?2 AND expires_at > ?3");
        let (id, now) = (id.to_owned(), self.now());
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(&sql)?.query_row(params![account.0, id, now], response).optional()?)
        };
        self.readers.read(find).await
    }

    /// The response and what it continues, going back, as far as the limits allow.
    pub async fn response_chain(&self, account: AccountId, id: &str) -> Result<Vec<StoredResponse>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE back (id, previous, depth, total) AS (
               SELECT id, previous, 1, bytes FROM response WHERE account_id = ?1 AND id = ?2 AND expires_at > ?3
               UNION ALL
               SELECT r.id, r.previous, depth + 1, total + r.bytes FROM back
                 JOIN response r ON r.account_id = ?1 AND r.id = back.previous
                 WHERE r.expires_at > ?3 AND depth < ?4 AND total + r.bytes <= ?5)
             SELECT {COLUMNS} FROM back JOIN response r ON r.account_id = ?1 AND r.id = back.id ORDER BY depth"
        );
        let (id, now) = (id.to_owned(), self.now());
        let most = i64::try_from(CHAIN_BYTES).unwrap_or(i64::MAX);
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement.query_map(params![account.0, id, now, CHAIN_LENGTH, most], response)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.read(find).await
    }

    pub async fn responses_with_items(
        &self,
        account: AccountId,
        items: Vec<String>,
    ) -> Result<Vec<StoredResponse>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM response r WHERE r.account_id = ?1 AND r.expires_at > ?2 AND r.id IN \
             (SELECT i.response_id FROM response_item i \
              WHERE i.account_id = ?1 AND i.id IN (SELECT value FROM json_each(?3)))"
        );
        let (now, list) = (self.now(), serde_json::to_string(&items).unwrap_or_default());
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement.query_map(params![account.0, now, list], response)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.read(find).await
    }

    pub async fn items_named(&self, account: AccountId, ids: Vec<String>) -> Result<Vec<Item>, StoreError> {
        // The row of the highest number is the one that is read (a rule of this engine).
        let sql = "SELECT i.id, i.item, max(i.seq) FROM conversation_item i \
                   JOIN conversation c ON c.account_id = i.account_id AND c.id = i.conversation \
                   WHERE i.account_id = ?1 AND i.id IN (SELECT value FROM json_each(?3)) AND c.expires_at > ?2 \
                   GROUP BY i.id";
        let (now, list) = (self.now(), serde_json::to_string(&ids).unwrap_or_default());
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(sql)?;
            let item = |r: &Row<'_>| Ok(Item { id: r.get(0)?, json: r.get(1)? });
            let rows = statement.query_map(params![account.0, now, list], item)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.read(find).await
    }

    pub async fn conversation(&self, account: AccountId, id: &str) -> Result<Option<Conversation>, StoreError> {
        let sql = "SELECT id, created_at, expires_at, metadata FROM conversation \
                   WHERE account_id = ?1 AND id = ?2 AND expires_at > ?3";
        let (id, now) = (id.to_owned(), self.now());
        let one = |r: &Row<'_>| {
            Ok(Conversation { id: r.get(0)?, created_at: r.get(1)?, expires_at: r.get(2)?, metadata: r.get(3)? })
        };
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(sql)?.query_row(params![account.0, id, now], one).optional()?)
        };
        self.readers.read(find).await
    }

    pub async fn items(&self, account: AccountId, conversation: &str, page: ItemPage) -> Result<Vec<Item>, StoreError> {
        let (beyond, order) = if page.newest_first { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT id, item FROM conversation_item i WHERE account_id = ?1 AND conversation = ?2 AND (?3 IS NULL OR seq {beyond} \
             (SELECT seq FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3)) \
             ORDER BY seq {order} LIMIT ?4"
        );
        let conversation = conversation.to_owned();
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(&sql)?;
            let item = |r: &Row<'_>| Ok(Item { id: r.get(0)?, json: r.get(1)? });
            let rows = statement.query_map(params![account.0, conversation, page.after, page.limit], item)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.read(find).await
    }

    pub async fn item(&self, account: AccountId, conversation: &str, id: &str) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT item FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
        let (conversation, id) = (conversation.to_owned(), id.to_owned());
        let find = move |c: &rusqlite::Connection| {
            let row = params![account.0, conversation, id];
            let json: Option<String> = c.prepare_cached(sql)?.query_row(row, |r| r.get(0)).optional()?;
            Ok(json.map(|json| Item { id, json }))
        };
        self.readers.read(find).await
    }

    pub async fn conversation_bytes(&self, account: AccountId, conversation: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(length(CAST(item AS BLOB))), 0) FROM conversation_item \
                   WHERE account_id = ?1 AND conversation = ?2";
        let conversation = conversation.to_owned();
        let find = move |c: &rusqlite::Connection| {
            let bytes: i64 = c.prepare_cached(sql)?.query_row(params![account.0, conversation], |r| r.get(0))?;
            Ok(u64::try_from(bytes).unwrap_or_default())
        };
        self.readers.read(find).await
    }
}

impl Apply<'_> {
    pub(super) fn response(&mut self, op: &ResponseOp) -> rusqlite::Result<Result<u64, StoreError>> {
        let done = match op {
            ResponseOp::Keep(new) => self.keep(new)?,
            ResponseOp::Delete(account, id) => {
                let names = "DELETE FROM response_item WHERE account_id = ?1 AND response_id = ?2";
                self.statement(names)?.execute(params![account.0, id])?;
                let sql = "DELETE FROM response WHERE account_id = ?1 AND id = ?2";
                self.statement(sql)?.execute(params![account.0, id])?
            }
            ResponseOp::Converse(account, c, items) => {
                let sql = "INSERT OR IGNORE INTO conversation (account_id, id, created_at, expires_at, metadata) \
                           VALUES (?1, ?2, ?3, ?4, ?5)";
                self.statement(sql)?.execute(params![account.0, c.id, c.created_at, c.expires_at, c.metadata])?;
                self.say(*account, &c.id, items.iter().map(|item| (item, None)), c.expires_at)?
            }
            ResponseOp::Change(account, c) => {
                let sql = "UPDATE conversation SET metadata = ?3, expires_at = max(expires_at, ?4) \
                           WHERE account_id = ?1 AND id = ?2";
                self.statement(sql)?.execute(params![account.0, c.id, c.metadata, c.expires_at])?
            }
            ResponseOp::EndConversation(account, id) => {
                let items = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2";
                self.statement(items)?.execute(params![account.0, id])?;
                let sql = "DELETE FROM conversation WHERE account_id = ?1 AND id = ?2";
                self.statement(sql)?.execute(params![account.0, id])?
            }
            ResponseOp::Add(account, id, items, expires_at) => {
                self.say(*account, id, items.iter().map(|item| (item, None)), *expires_at)?
            }
            ResponseOp::DeleteItem(account, conversation, id) => {
                let sql = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
                self.statement(sql)?.execute(params![account.0, conversation, id])?
            }
            ResponseOp::Unsay(account, conversation, said) => {
                let sql = "DELETE FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
                match self.statement(sql)?.execute(params![account.0, conversation, said.spare])? {
                    0 => {
                        let (sql, item) = (format!("{sql} AND item = ?4"), &said.item);
                        self.statement(&sql)?.execute(params![account.0, conversation, item.id, item.json])?
                    }
                    gone => gone,
                }
            }
            ResponseOp::Forget(now) => self.forget(*now)?,
        };
        Ok(Ok(u64::try_from(done).unwrap_or_default()))
    }

    fn keep(&mut self, new: &NewResponse) -> rusqlite::Result<usize> {
        let (account, r) = (new.account.0, &new.response);
        let sql = "INSERT OR IGNORE INTO response \
                   (account_id, id, previous, conversation, created_at, expires_at, bytes, input, object) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let bytes = i64::try_from(r.bytes()).unwrap_or(i64::MAX);
        let row =
            params![account, r.id, r.previous, r.conversation, r.created_at, r.expires_at, bytes, r.input, r.object];
        let kept = self.statement(sql)?.execute(row)?;
        if kept == 0 {
            return Ok(0);
        }
        let name = "INSERT OR IGNORE INTO response_item (account_id, id, response_id) VALUES (?1, ?2, ?3)";
        for item in &new.items {
            self.statement(name)?.execute(params![account, item, r.id])?;
        }
        if let Some(previous) = &r.previous {
            let sql = "UPDATE response SET expires_at = max(expires_at, ?3) WHERE account_id = ?1 AND id IN (
                         WITH RECURSIVE back (id) AS (SELECT ?2 UNION
                           SELECT r.previous FROM back JOIN response r ON r.account_id = ?1 AND r.id = back.id)
                         SELECT id FROM back)";
            self.statement(sql)?.execute(params![account, previous, r.expires_at])?;
        }
        if let Some(conversation) = &r.conversation {
            let said = new.said.iter().map(|said| (&said.item, Some(said.spare.as_str())));
            self.say(new.account, conversation, said, r.expires_at)?;
        }
        Ok(kept)
    }

    /// Adds items to a conversation that is there. One whose id is taken has its spare one, or is there already.
    fn say<'i>(
        &mut self,
        account: AccountId,
        id: &str,
        items: impl Iterator<Item = (&'i Item, Option<&'i str>)>,
        expires_at: i64,
    ) -> rusqlite::Result<usize> {
        let sql = "UPDATE conversation SET expires_at = max(expires_at, ?3) WHERE account_id = ?1 AND id = ?2";
        let there = self.statement(sql)?.execute(params![account.0, id, expires_at])?;
        let sql =
            "INSERT OR IGNORE INTO conversation_item (account_id, conversation, id, item) VALUES (?1, ?2, ?3, ?4)";
        for (item, spare) in items.filter(|_| there > 0) {
            let added = self.statement(sql)?.execute(params![account.0, id, item.id, item.json])?;
            if let Some(spare) = spare.filter(|_| added == 0) {
                self.statement(sql)?.execute(params![account.0, id, spare, item.json])?;
            }
        }
        Ok(there)
    }

    fn forget(&mut self, now: i64) -> rusqlite::Result<usize> {
        let due = "SELECT account_id, id FROM response WHERE expires_at <= ?1 LIMIT ?2";
        let due = format!("({due})");
        let names = format!("DELETE FROM response_item WHERE (account_id, response_id) IN {due}");
        self.statement(&names)?.execute(params![now, AT_ONCE])?;
        let gone = format!("DELETE FROM response WHERE (account_id, id) IN {due}");
        let responses = self.statement(&gone)?.execute(params![now, AT_ONCE])?;
        let due = "(SELECT account_id, id FROM conversation WHERE expires_at <= ?1 LIMIT ?2)";
        let items = format!("DELETE FROM conversation_item WHERE (account_id, conversation) IN {due}");
        self.statement(&items)?.execute(params![now, AT_ONCE])?;
        let gone = format!("DELETE FROM conversation WHERE (account_id, id) IN {due}");
        Ok(responses + self.statement(&gone)?.execute(params![now, AT_ONCE])?)
    }
}
