//! Kept responses and conversations on PostgreSQL: each verb is one statement, so that it happens whole or not at all.

use tokio_postgres::Row;

use super::Engine;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::response::{CHAIN_BYTES, CHAIN_LENGTH, Conversation, Item, ItemPage, NewResponse, Said, StoredResponse};

const COLUMNS: &str = "r.id, r.previous, r.conversation, r.created_at, r.expires_at, r.input, r.object";
/// Expired rows erased in one statement.
const AT_ONCE: i64 = 500;

const KEEP: &str = "
WITH RECURSIVE back (id) AS (
  SELECT $3::text UNION SELECT r.previous FROM back JOIN response r ON r.account_id = $1 AND r.id = back.id
), made AS (
  INSERT INTO response (account_id, id, previous, conversation, created_at, expires_at, bytes, input, object)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING id
), older AS (
  UPDATE response SET expires_at = greatest(expires_at, $6)
    WHERE account_id = $1 AND id IN (SELECT id FROM back) AND EXISTS (SELECT FROM made)
), named AS (
  INSERT INTO response_item (account_id, id, response_id)
    SELECT $1, unnest($10::text[]), made.id FROM made ON CONFLICT DO NOTHING
), talk AS (
  UPDATE conversation SET expires_at = greatest(expires_at, $6)
    WHERE account_id = $1 AND id = $4 AND EXISTS (SELECT FROM made) RETURNING id
), said AS (
  SELECT tollgate_say($1, talk.id, $11::text[], $12::text[], $13::text[]) AS n FROM talk
)
SELECT (SELECT count(*) FROM made), (SELECT sum(n) FROM said)";

const SAY: &str = "
WITH talk AS (
  UPDATE conversation SET expires_at = greatest(expires_at, $5) WHERE account_id = $1 AND id = $2 RETURNING id
), said AS (
  INSERT INTO conversation_item (account_id, conversation, id, item)
    SELECT $1, talk.id, i.id, i.item FROM talk, unnest($3::text[], $4::text[]) WITH ORDINALITY AS i (id, item, n)
    ORDER BY i.n ON CONFLICT DO NOTHING
)
SELECT count(*) FROM talk";

const CONVERSE: &str = "
WITH talk AS (
  INSERT INTO conversation (account_id, id, created_at, expires_at, metadata) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING id
)
INSERT INTO conversation_item (account_id, conversation, id, item)
  SELECT $1, talk.id, i.id, i.item FROM talk, unnest($6::text[], $7::text[]) WITH ORDINALITY AS i (id, item, n)
  ORDER BY i.n ON CONFLICT DO NOTHING";

const FORGET: &str = "
WITH due AS (SELECT account_id, id FROM response WHERE expires_at <= $1 LIMIT $2),
gone AS (
  DELETE FROM response r USING due WHERE r.account_id = due.account_id AND r.id = due.id RETURNING 1
), named AS (
  DELETE FROM response_item i USING due WHERE i.account_id = due.account_id AND i.response_id = due.id
), ended AS (SELECT account_id, id FROM conversation WHERE expires_at <= $1 LIMIT $2),
talks AS (
  DELETE FROM conversation c USING ended WHERE c.account_id = ended.account_id AND c.id = ended.id RETURNING 1
), items AS (
  DELETE FROM conversation_item i USING ended WHERE i.account_id = ended.account_id AND i.conversation = ended.id
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM talks)";

fn response(r: &Row) -> StoredResponse {
    StoredResponse {
        id: r.get(0),
        previous: r.get(1),
        conversation: r.get(2),
        created_at: r.get(3),
        expires_at: r.get(4),
        input: r.get(5),
        object: r.get(6),
    }
}

fn columns(items: &[Item]) -> (Vec<&str>, Vec<&str>) {
    items.iter().map(|item| (item.id.as_str(), item.json.as_str())).unzip()
}

fn count(rows: &[Row]) -> u64 {
    let number: i64 = rows.first().map_or(0, |row| row.get(0));
    u64::try_from(number).unwrap_or_default()
}

impl Engine {
    pub async fn keep_response(&self, new: NewResponse) -> Result<bool, StoreError> {
        let (r, account) = (&new.response, new.account.0.as_slice());
        let bytes = i64::try_from(r.bytes()).unwrap_or(i64::MAX);
        let (ids, items): (Vec<&str>, Vec<&str>) =
            new.said.iter().map(|said| (said.item.id.as_str(), said.item.json.as_str())).unzip();
        let spare: Vec<&str> = new.said.iter().map(|said| said.spare.as_str()).collect();
        let made = self
            .rows(
                KEEP,
                &[
                    &account,
                    &r.id,
                    &r.previous,
                    &r.conversation,
                    &r.created_at,
                    &r.expires_at,
                    &bytes,
                    &r.input,
                    &r.object,
                    &new.items,
                    &ids,
                    &spare,
                    &items,
                ],
            )
            .await?;
        Ok(count(&made) > 0)
    }

    pub async fn response(&self, account: AccountId, id: &str) -> Result<Option<StoredResponse>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM response r WHERE account_id = $1 AND id = $2 AND expires_at > $3");
        Ok(self.rows(&sql, &[&account.0.as_slice(), &id, &self.now()]).await?.first().map(response))
    }

    /// The response and what it continues, going back, as far as the limits allow.
    pub async fn response_chain(&self, account: AccountId, id: &str) -> Result<Vec<StoredResponse>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE back (id, previous, depth, total) AS (
               SELECT id, previous, 1, bytes FROM response WHERE account_id = $1 AND id = $2 AND expires_at > $3
               UNION ALL
               SELECT r.id, r.previous, depth + 1, total + r.bytes FROM back
                 JOIN response r ON r.account_id = $1 AND r.id = back.previous
                 WHERE r.expires_at > $3 AND depth < $4 AND total + r.bytes <= $5)
             SELECT {COLUMNS} FROM back JOIN response r ON r.account_id = $1 AND r.id = back.id ORDER BY depth"
        );
        let most = i64::try_from(CHAIN_BYTES).unwrap_or(i64::MAX);
        let length = i32::try_from(CHAIN_LENGTH).unwrap_or(i32::MAX);
        let rows = self.rows(&sql, &[&account.0.as_slice(), &id, &self.now(), &length, &most]).await?;
        Ok(rows.iter().map(response).collect())
    }

    pub async fn responses_with_items(
        &self,
        account: AccountId,
        items: Vec<String>,
    ) -> Result<Vec<StoredResponse>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM response r WHERE r.account_id = $1 AND r.expires_at > $2 AND r.id IN \
             (SELECT i.response_id FROM response_item i WHERE i.account_id = $1 AND i.id = ANY ($3))"
        );
        let rows = self.rows(&sql, &[&account.0.as_slice(), &self.now(), &items]).await?;
        Ok(rows.iter().map(response).collect())
    }

    pub async fn items_named(&self, account: AccountId, ids: Vec<String>) -> Result<Vec<Item>, StoreError> {
        let sql = "SELECT DISTINCT ON (i.id) i.id, i.item FROM conversation_item i \
                   JOIN conversation c ON c.account_id = i.account_id AND c.id = i.conversation \
                   WHERE i.account_id = $1 AND i.id = ANY ($3) AND c.expires_at > $2 ORDER BY i.id, i.seq DESC";
        let rows = self.rows(sql, &[&account.0.as_slice(), &self.now(), &ids]).await?;
        Ok(rows.iter().map(|row| Item { id: row.get(0), json: row.get(1) }).collect())
    }

    pub async fn delete_response(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        let sql = "WITH gone AS (DELETE FROM response WHERE account_id = $1 AND id = $2 RETURNING 1), \
                   named AS (DELETE FROM response_item WHERE account_id = $1 AND response_id = $2) \
                   SELECT count(*) FROM gone";
        Ok(count(&self.rows(sql, &[&account.0.as_slice(), &id]).await?) > 0)
    }

    pub async fn create_conversation(
        &self,
        account: AccountId,
        new: Conversation,
        items: Vec<Item>,
    ) -> Result<(), StoreError> {
        let (ids, texts) = columns(&items);
        let account = account.0.as_slice();
        self.rows(CONVERSE, &[&account, &new.id, &new.created_at, &new.expires_at, &new.metadata, &ids, &texts])
            .await?;
        Ok(())
    }

    pub async fn conversation(&self, account: AccountId, id: &str) -> Result<Option<Conversation>, StoreError> {
        let sql = "SELECT id, created_at, expires_at, metadata FROM conversation \
                   WHERE account_id = $1 AND id = $2 AND expires_at > $3";
        let one =
            |r: &Row| Conversation { id: r.get(0), created_at: r.get(1), expires_at: r.get(2), metadata: r.get(3) };
        Ok(self.rows(sql, &[&account.0.as_slice(), &id, &self.now()]).await?.first().map(one))
    }

    pub async fn change_conversation(&self, account: AccountId, new: Conversation) -> Result<bool, StoreError> {
        let sql = "UPDATE conversation SET metadata = $3, expires_at = greatest(expires_at, $4) \
                   WHERE account_id = $1 AND id = $2 RETURNING 1::bigint";
        let account = account.0.as_slice();
        Ok(count(&self.rows(sql, &[&account, &new.id, &new.metadata, &new.expires_at]).await?) > 0)
    }

    pub async fn delete_conversation(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        let sql = "WITH gone AS (DELETE FROM conversation WHERE account_id = $1 AND id = $2 RETURNING 1), \
                   items AS (DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2) \
                   SELECT count(*) FROM gone";
        Ok(count(&self.rows(sql, &[&account.0.as_slice(), &id]).await?) > 0)
    }

    pub async fn add_items(
        &self,
        account: AccountId,
        conversation: &str,
        items: Vec<Item>,
        expires_at: i64,
    ) -> Result<bool, StoreError> {
        let (ids, texts) = columns(&items);
        let account = account.0.as_slice();
        Ok(count(&self.rows(SAY, &[&account, &conversation, &ids, &texts, &expires_at]).await?) > 0)
    }

    pub async fn items(&self, account: AccountId, conversation: &str, page: ItemPage) -> Result<Vec<Item>, StoreError> {
        let (beyond, order) = if page.newest_first { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT id, item FROM conversation_item WHERE account_id = $1 AND conversation = $2 \
             AND ($3::text IS NULL OR seq {beyond} \
               (SELECT seq FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3)) \
             ORDER BY seq {order} LIMIT $4"
        );
        let limit = i64::from(page.limit);
        let rows = self.rows(&sql, &[&account.0.as_slice(), &conversation, &page.after, &limit]).await?;
        Ok(rows.iter().map(|row| Item { id: row.get(0), json: row.get(1) }).collect())
    }

    pub async fn item(&self, account: AccountId, conversation: &str, id: &str) -> Result<Option<Item>, StoreError> {
        let sql = "SELECT id, item FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3";
        let rows = self.rows(sql, &[&account.0.as_slice(), &conversation, &id]).await?;
        Ok(rows.first().map(|row| Item { id: row.get(0), json: row.get(1) }))
    }

    pub async fn delete_item(&self, account: AccountId, conversation: &str, id: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3 \
                   RETURNING 1::bigint";
        Ok(count(&self.rows(sql, &[&account.0.as_slice(), &conversation, &id]).await?) > 0)
    }

    pub async fn unsay(&self, account: AccountId, conversation: &str, said: Said) -> Result<bool, StoreError> {
        let sql = "WITH spare AS (
             DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3 RETURNING 1
           ), own AS (
             DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $4 AND item = $5
               AND NOT EXISTS (SELECT FROM spare) RETURNING 1
           )
           SELECT (SELECT count(*) FROM spare) + (SELECT count(*) FROM own)";
        let (account, Said { item, spare }) = (account.0.as_slice(), &said);
        Ok(count(&self.rows(sql, &[&account, &conversation, spare, &item.id, &item.json]).await?) > 0)
    }

    pub async fn conversation_bytes(&self, account: AccountId, conversation: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(octet_length(item)), 0)::bigint FROM conversation_item \
                   WHERE account_id = $1 AND conversation = $2";
        Ok(count(&self.rows(sql, &[&account.0.as_slice(), &conversation]).await?))
    }

    pub async fn forget_responses(&self, now: i64) -> Result<u64, StoreError> {
        Ok(count(&self.rows(FORGET, &[&now, &AT_ONCE]).await?))
    }
}
