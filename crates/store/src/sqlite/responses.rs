//! Stored responses and conversations on the embedded engine: read here, written by `stored`, in
//! a file of their own.

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteEngine;
use super::stored::ResponseOp;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::response::quota::{NoRoom, Quota, StorageUsed};
use crate::response::{
    AddedItem, CHAIN_BYTES, CHAIN_LENGTH, Item, ItemPage, NewResponse, StoredConversation, StoredResponse,
};

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

impl SqliteEngine {
    async fn erase(&self, op: ResponseOp) -> Result<u64, StoreError> {
        // What erases needs no room.
        self.responses.write(op).await.map(Result::unwrap_or_default)
    }

    pub async fn stored(&self, account: AccountId) -> Result<StorageUsed, StoreError> {
        self.responses.stored(account).await
    }

    pub async fn store_response(&self, new: NewResponse, quota: Quota) -> Result<Result<bool, NoRoom>, StoreError> {
        Ok(self.responses.write(ResponseOp::Keep(new, quota)).await?.map(|rows| rows > 0))
    }

    pub async fn delete_response(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        Ok(self.erase(ResponseOp::Delete(account, id.to_owned())).await? > 0)
    }

    pub async fn forget_responses(&self, now: i64) -> Result<u64, StoreError> {
        self.erase(ResponseOp::Forget(now)).await
    }

    pub async fn create_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        items: Vec<Item>,
        quota: Quota,
    ) -> Result<Result<(), NoRoom>, StoreError> {
        Ok(self.responses.write(ResponseOp::Converse(account, new, items, quota)).await?.map(drop))
    }

    pub async fn change_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        Ok(self.responses.write(ResponseOp::Change(account, new, quota)).await?.map(|rows| rows > 0))
    }

    pub async fn delete_conversation(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        Ok(self.erase(ResponseOp::EndConversation(account, id.to_owned())).await? > 0)
    }

    pub async fn add_items(
        &self,
        account: AccountId,
        conversation: &str,
        items: Vec<Item>,
        expires_at: i64,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        let op = ResponseOp::Add(account, conversation.to_owned(), items, expires_at, quota);
        Ok(self.responses.write(op).await?.map(|rows| rows > 0))
    }

    pub async fn delete_item(&self, account: AccountId, conversation: &str, id: &str) -> Result<bool, StoreError> {
        let op = ResponseOp::DeleteItem(account, conversation.to_owned(), id.to_owned());
        Ok(self.erase(op).await? > 0)
    }

    pub async fn remove_said(
        &self,
        account: AccountId,
        conversation: &str,
        said: AddedItem,
    ) -> Result<bool, StoreError> {
        Ok(self.erase(ResponseOp::Unsay(account, conversation.to_owned(), said)).await? > 0)
    }

    pub async fn response(&self, account: AccountId, id: &str) -> Result<Option<StoredResponse>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM response r WHERE account_id = ?1 AND id = ?2 AND expires_at > ?3");
        let (id, now) = (id.to_owned(), self.now());
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(&sql)?.query_row(params![account.0, id, now], response).optional()?)
        };
        self.responses.read(find).await
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
        self.responses.read(find).await
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
        self.responses.read(find).await
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
        self.responses.read(find).await
    }

    pub async fn conversation(&self, account: AccountId, id: &str) -> Result<Option<StoredConversation>, StoreError> {
        let sql = "SELECT id, created_at, expires_at, metadata FROM conversation \
                   WHERE account_id = ?1 AND id = ?2 AND expires_at > ?3";
        let (id, now) = (id.to_owned(), self.now());
        let one = |r: &Row<'_>| {
            Ok(StoredConversation { id: r.get(0)?, created_at: r.get(1)?, expires_at: r.get(2)?, metadata: r.get(3)? })
        };
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(sql)?.query_row(params![account.0, id, now], one).optional()?)
        };
        self.responses.read(find).await
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
            let (mut found, mut bytes) = (Vec::new(), 0);
            for row in statement.query_map(params![account.0, conversation, page.after, page.limit], item)? {
                if found.len() > 1 && bytes > page.most_bytes {
                    break;
                }
                let row = row?;
                bytes += row.json.len() as u64;
                found.push(row);
            }
            Ok(found)
        };
        self.responses.read(find).await
    }

    pub async fn item(&self, account: AccountId, conversation: &str, id: &str) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT item FROM conversation_item WHERE account_id = ?1 AND conversation = ?2 AND id = ?3";
        let (conversation, id) = (conversation.to_owned(), id.to_owned());
        let find = move |c: &rusqlite::Connection| {
            let row = params![account.0, conversation, id];
            let json: Option<String> = c.prepare_cached(sql)?.query_row(row, |r| r.get(0)).optional()?;
            Ok(json.map(|json| Item { id, json }))
        };
        self.responses.read(find).await
    }

    pub async fn conversation_bytes(&self, account: AccountId, conversation: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(length(CAST(item AS BLOB))), 0) FROM conversation_item \
                   WHERE account_id = ?1 AND conversation = ?2";
        let conversation = conversation.to_owned();
        let find = move |c: &rusqlite::Connection| {
            let bytes: i64 = c.prepare_cached(sql)?.query_row(params![account.0, conversation], |r| r.get(0))?;
            Ok(u64::try_from(bytes).unwrap_or_default())
        };
        self.responses.read(find).await
    }
}
