//! Stored responses and conversations on PostgreSQL: each verb is one statement, so that it happens
//! whole or not at all.

use std::sync::Mutex;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{PostgresEngine, lock};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::response::quota::{NoRoom, Quota, StorageUsed};
use crate::response::{
    AddedItem, CHAIN_BYTES, CHAIN_LENGTH, Item, ItemPage, NewResponse, StoredConversation, StoredResponse,
};

const COLUMNS: &str = "r.id, r.previous, r.conversation, r.created_at, r.expires_at, r.input, r.object";
/// Expired rows erased in one statement.
const AT_ONCE: i64 = 500;

/// Locks what the account has stored, if there is room for more beside it: bytes, objects and items
/// of what comes ($2), and of what there may be ($3). Two that add to one account at the same time
/// wait for each other here.
const ROOM: &str = "room AS (
  SELECT 1 FROM stored WHERE account_id = $1 AND ($2::bigint[])[1] + bytes <= ($3::bigint[])[1]
    AND (($2::bigint[])[2] = 0 OR ($2::bigint[])[2] + objects <= ($3::bigint[])[2])
    AND (($2::bigint[])[3] = 0 OR ($2::bigint[])[3] + items <= ($3::bigint[])[3])
  FOR UPDATE
)";

const KEEP: &str = "
WITH RECURSIVE back (id) AS (
  SELECT $5::text UNION SELECT r.previous FROM back JOIN response r ON r.account_id = $1 AND r.id = back.id
), {ROOM}, made AS (
  INSERT INTO response (account_id, id, previous, conversation, created_at, expires_at, bytes, input, object)
    SELECT $1::bytea, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bigint, $10::text, $11::text FROM room ON CONFLICT DO NOTHING RETURNING id
), older AS (
  UPDATE response SET expires_at = greatest(expires_at, $8)
    WHERE account_id = $1 AND id IN (SELECT id FROM back) AND EXISTS (SELECT FROM made)
), named AS (
  INSERT INTO response_item (account_id, id, response_id)
    SELECT $1, unnest($12::text[]), made.id FROM made ON CONFLICT DO NOTHING
), talk AS (
  UPDATE conversation SET expires_at = greatest(expires_at, $8)
    WHERE account_id = $1 AND id = $6 AND EXISTS (SELECT FROM made) RETURNING id
), said AS (
  SELECT tollgate_say($1, talk.id, $13::text[], $14::text[], $15::text[]) AS n FROM talk
)
SELECT (SELECT count(*) FROM room), (SELECT count(*) FROM made), (SELECT sum(n) FROM said)";

const SAY: &str = "
WITH {ROOM}, talk AS (
  UPDATE conversation SET expires_at = greatest(expires_at, $7)
    WHERE account_id = $1 AND id = $4 AND EXISTS (SELECT FROM room) RETURNING id
), said AS (
  INSERT INTO conversation_item (account_id, conversation, id, item)
    SELECT $1, talk.id, i.id, i.item FROM talk, unnest($5::text[], $6::text[]) WITH ORDINALITY AS i (id, item, n)
    ORDER BY i.n ON CONFLICT DO NOTHING
)
SELECT (SELECT count(*) FROM room), (SELECT count(*) FROM talk)";

const CONVERSE: &str = "
WITH {ROOM}, talk AS (
  INSERT INTO conversation (account_id, id, created_at, expires_at, metadata)
    SELECT $1::bytea, $4::text, $5::bigint, $6::bigint, $7::text FROM room
    ON CONFLICT DO NOTHING RETURNING id
), said AS (
  INSERT INTO conversation_item (account_id, conversation, id, item)
    SELECT $1, talk.id, i.id, i.item FROM talk, unnest($8::text[], $9::text[]) WITH ORDINALITY AS i (id, item, n)
    ORDER BY i.n ON CONFLICT DO NOTHING
)
SELECT (SELECT count(*) FROM room), (SELECT count(*) FROM talk)";

const CHANGE: &str = "
WITH {ROOM}, talk AS (
  UPDATE conversation SET metadata = $5, expires_at = greatest(expires_at, $6)
    WHERE account_id = $1 AND id = $4 AND EXISTS (SELECT FROM room) RETURNING id
)
SELECT (SELECT count(*) FROM room), (SELECT count(*) FROM talk)";

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

/// A number as the database has it; one beyond is no limit.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// How old what is known of all accounts together may be, in milliseconds.
const TOTAL_AGE: i64 = 5_000;

/// What all accounts have stored together, as far as this replica knows. Others add to it
/// meanwhile, each under this same bound.
#[derive(Default)]
pub(super) struct Total {
    /// Bytes, and when they were counted.
    known: Mutex<Option<(u64, i64)>>,
}

impl PostgresEngine {
    pub async fn stored(&self, account: AccountId) -> Result<StorageUsed, StoreError> {
        let sql = "SELECT bytes, objects, items FROM stored WHERE account_id = $1";
        let rows = self.rows(sql, &[&account.0.as_slice()]).await?;
        let number = |row: &Row, at| u64::try_from(row.get::<_, i64>(at)).unwrap_or_default();
        let stored = |row: &Row| StorageUsed { bytes: number(row, 0), objects: number(row, 1), items: number(row, 2) };
        Ok(rows.first().map(stored).unwrap_or_default())
    }

    /// Whether all accounts together have room for more, which is counted in until somebody counts
    /// again.
    async fn has_room_for_all(&self, more: u64) -> Result<bool, StoreError> {
        let now = self.steady();
        let fresh = |known: &(u64, i64)| (now - TOTAL_AGE..=now).contains(&known.1);
        if lock(&self.total.known).as_ref().filter(|known| fresh(known)).is_none() {
            let counted = self.rows("SELECT coalesce(sum(bytes), 0)::bigint FROM stored", &[]).await?;
            *lock(&self.total.known) = Some((count(&counted), now));
        }
        let mut known = lock(&self.total.known);
        let (bytes, _) = known.get_or_insert((0, now));
        let then = bytes.saturating_add(more);
        let fits = then <= self.options.stored_bytes;
        if fits {
            *bytes = then;
        }
        Ok(fits)
    }

    /// Runs a statement with [`ROOM`] in it. The answer is its second number.
    async fn with_room(
        &self,
        account: AccountId,
        sql: &str,
        (more, quota): (StorageUsed, Quota),
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Result<u64, NoRoom>, StoreError> {
        if !self.has_room_for_all(more.bytes).await? {
            return Ok(Err(NoRoom::All));
        }
        let sql = sql.replace("{ROOM}", ROOM);
        let account_id = account.0.as_slice();
        let need = vec![whole(more.bytes), whole(more.objects), whole(more.items)];
        let most = vec![whole(quota.bytes), whole(quota.objects), whole(quota.items)];
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&account_id, &need, &most];
        all.extend(params);
        let mut first = true;
        loop {
            let rows = self.change(&sql, &all).await?;
            if count(&rows) > 0 {
                let number: i64 = rows.first().map_or(0, |row| row.get(1));
                return Ok(Ok(u64::try_from(number).unwrap_or_default()));
            }
            // No room, or nothing was ever stored: then there is nothing to lock yet.
            let row = "INSERT INTO stored (account_id) VALUES ($1) ON CONFLICT DO NOTHING";
            if first {
                self.change(row, &[&account_id]).await?;
            }
            let used = self.stored(account).await?;
            if !std::mem::take(&mut first) || !quota.has_room(used, more) {
                return Ok(Err(NoRoom::Account(used)));
            }
        }
    }

    pub async fn store_response(&self, new: NewResponse, quota: Quota) -> Result<Result<bool, NoRoom>, StoreError> {
        let r = &new.response;
        let bytes = i64::try_from(r.bytes()).unwrap_or(i64::MAX);
        let (ids, items): (Vec<&str>, Vec<&str>) =
            new.said.iter().map(|said| (said.item.id.as_str(), said.item.json.as_str())).unzip();
        let spare: Vec<&str> = new.said.iter().map(|said| said.spare.as_str()).collect();
        let params: [&(dyn ToSql + Sync); 12] = [
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
        ];
        Ok(self.with_room(new.account, KEEP, (new.needs(), quota), &params).await?.map(|made| made > 0))
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
        Ok(count(&self.change(sql, &[&account.0.as_slice(), &id]).await?) > 0)
    }

    pub async fn create_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        items: Vec<Item>,
        quota: Quota,
    ) -> Result<Result<(), NoRoom>, StoreError> {
        let (ids, texts) = columns(&items);
        let params: [&(dyn ToSql + Sync); 6] = [&new.id, &new.created_at, &new.expires_at, &new.metadata, &ids, &texts];
        Ok(self.with_room(account, CONVERSE, (new.needs(&items), quota), &params).await?.map(drop))
    }

    pub async fn conversation(&self, account: AccountId, id: &str) -> Result<Option<StoredConversation>, StoreError> {
        let sql = "SELECT id, created_at, expires_at, metadata FROM conversation \
                   WHERE account_id = $1 AND id = $2 AND expires_at > $3";
        let one = |r: &Row| StoredConversation {
            id: r.get(0),
            created_at: r.get(1),
            expires_at: r.get(2),
            metadata: r.get(3),
        };
        Ok(self.rows(sql, &[&account.0.as_slice(), &id, &self.now()]).await?.first().map(one))
    }

    pub async fn change_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        let more = StorageUsed::text(&new.metadata);
        let params: [&(dyn ToSql + Sync); 3] = [&new.id, &new.metadata, &new.expires_at];
        Ok(self.with_room(account, CHANGE, (more, quota), &params).await?.map(|changed| changed > 0))
    }

    pub async fn delete_conversation(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        let sql = "WITH gone AS (DELETE FROM conversation WHERE account_id = $1 AND id = $2 RETURNING 1), \
                   items AS (DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2) \
                   SELECT count(*) FROM gone";
        Ok(count(&self.change(sql, &[&account.0.as_slice(), &id]).await?) > 0)
    }

    pub async fn add_items(
        &self,
        account: AccountId,
        conversation: &str,
        items: Vec<Item>,
        expires_at: i64,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        let (ids, texts) = columns(&items);
        let params: [&(dyn ToSql + Sync); 4] = [&conversation, &ids, &texts, &expires_at];
        let more = Item::need(conversation, &items);
        Ok(self.with_room(account, SAY, (more, quota), &params).await?.map(|added| added > 0))
    }

    pub async fn items(&self, account: AccountId, conversation: &str, page: ItemPage) -> Result<Vec<Item>, StoreError> {
        let (beyond, order) = if page.newest_first { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT id, item FROM (
               SELECT id, item, seq, row_number() OVER page AS n,
                 sum(octet_length(item)) OVER page - octet_length(item) AS before
               FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND ($3::text IS NULL OR seq {beyond}
                 (SELECT seq FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3))
               WINDOW page AS (ORDER BY seq {order}) ORDER BY seq {order} LIMIT $4) one
             WHERE n <= 2 OR before <= $5::bigint ORDER BY seq {order}"
        );
        let (limit, most) = (i64::from(page.limit), whole(page.most_bytes));
        let rows = self.rows(&sql, &[&account.0.as_slice(), &conversation, &page.after, &limit, &most]).await?;
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
        Ok(count(&self.change(sql, &[&account.0.as_slice(), &conversation, &id]).await?) > 0)
    }

    pub async fn remove_said(
        &self,
        account: AccountId,
        conversation: &str,
        said: AddedItem,
    ) -> Result<bool, StoreError> {
        let sql = "WITH spare AS (
             DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $3 RETURNING 1
           ), own AS (
             DELETE FROM conversation_item WHERE account_id = $1 AND conversation = $2 AND id = $4 AND item = $5
               AND NOT EXISTS (SELECT FROM spare) RETURNING 1
           )
           SELECT (SELECT count(*) FROM spare) + (SELECT count(*) FROM own)";
        let (account, AddedItem { item, spare }) = (account.0.as_slice(), &said);
        Ok(count(&self.change(sql, &[&account, &conversation, spare, &item.id, &item.json]).await?) > 0)
    }

    pub async fn conversation_bytes(&self, account: AccountId, conversation: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(octet_length(item)), 0)::bigint FROM conversation_item \
                   WHERE account_id = $1 AND conversation = $2";
        Ok(count(&self.rows(sql, &[&account.0.as_slice(), &conversation]).await?))
    }

    pub async fn forget_responses(&self, now: i64) -> Result<u64, StoreError> {
        Ok(count(&self.change(FORGET, &[&now, &AT_ONCE]).await?))
    }
}
