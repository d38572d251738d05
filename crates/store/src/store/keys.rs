//! The verbs of API keys.

use super::{Engine, Store};
use crate::account::change::KeyChange;
use crate::account::limits::Change;
use crate::account::{ChangedKeys, Key, KeyAndAccount, KeyOrigin, NewKey};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::ledger::bounds;
use crate::operator::Attribution;
use crate::person::statement::{may, values};

impl Store {
    /// The caller made the secret and shows it once; stored are its hash and first characters.
    /// The log has no row of it.
    pub async fn create_key(&self, new: NewKey, secret: &str) -> Result<Key, StoreError> {
        self.create_key_as(new, secret, Attribution::default()).await
    }

    pub async fn create_key_as(&self, new: NewKey, secret: &str, done: Attribution) -> Result<Key, StoreError> {
        bounds::limits(&new.limits)?;
        self.not_closed(new.account).await?;
        on_engine!(self, e => e.create_key(new, secret, KeyOrigin::Made, done).await)
    }

    /// The key of somebody's playground: one for each person and account. Whoever asks again gets
    /// another secret of it; the last one works on until its own end, those before it stop.
    pub async fn console_key(&self, new: NewKey, secret: &str, done: Attribution) -> Result<Key, StoreError> {
        const OWN: &str = "SELECT id, coalesce(expires_at, 0) FROM key WHERE account_id = $1 AND person_id = $2 \
             AND origin = 'console' AND revoked_at IS NULL ORDER BY id LIMIT 1";
        const EARLIER: &str = "UPDATE key_former SET until = $2 WHERE key_id = $1 AND until > $2";
        let person = done.person.ok_or_else(|| StoreError::Conflict("a playground belongs to a person".into()))?;
        bounds::limits(&new.limits)?;
        self.not_closed(new.account).await?;
        let rows = self.people_rows(OWN, values![new.account.0, person.0]).await?;
        let Some(row) = rows.first() else {
            return on_engine!(self, e => e.create_key(new, secret, KeyOrigin::Console, done).await);
        };
        let (id, ends, now) = (KeyId(row.id(0)?), row.int(1)?, self.people_now());
        self.write_people(vec![may(EARLIER, values![id.0, now])]).await?;
        // That it has another secret is no news for the log; that it is there, is.
        self.rotate_key(id, secret, ends.saturating_sub(now).max(0), Attribution::default()).await?;
        let change = KeyChange { expires_at: new.expires_at.map_or(Change::Keep, Change::Set), ..KeyChange::default() };
        let changed = self.change_key(id, change, Attribution::default()).await?;
        changed.ok_or_else(|| StoreError::NotFound(id.to_string()))
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyAndAccount>, StoreError> {
        on_engine!(self, e => e.key_by_hash(hash).await)
    }

    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>, StoreError> {
        on_engine!(self, e => e.keys(account).await)
    }

    /// `None`: no such key. Revoking twice keeps the first time.
    pub async fn revoke_key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        self.revoke_key_as(id, Attribution::default()).await
    }

    pub async fn revoke_key_as(&self, id: KeyId, done: Attribution) -> Result<Option<Key>, StoreError> {
        on_engine!(self, e => e.revoke_key(id, done).await)
    }

    /// In force with the next hold, and on other replicas when they look for changed keys. `None`:
    /// no such key.
    pub async fn change_key(&self, id: KeyId, change: KeyChange, done: Attribution) -> Result<Option<Key>, StoreError> {
        self.change_key_if(id, change, done, None).await
    }

    /// The same, unless it is another version than was seen.
    pub async fn change_key_if(
        &self,
        id: KeyId,
        change: KeyChange,
        done: Attribution,
        seen: Option<String>,
    ) -> Result<Option<Key>, StoreError> {
        change.check()?;
        let _turn = self.changing.lock().await;
        let Some(before) = self.key(id).await? else { return Ok(None) };
        if seen.as_ref().is_some_and(|seen| *seen != before.version()) {
            return Err(StoreError::Stale(id.to_string()));
        }
        let seen = seen.map(|_| before.changed_at);
        if change == KeyChange::default() {
            return Ok(Some(before));
        }
        let logged = change.logged(&before, done);
        on_engine!(self, e => e.change_key(id, change, logged, seen).await)
    }

    /// Keys whose own record, or whose account's, changed at `since` or later, or up to `overlap`
    /// milliseconds before. `since` is the `read_at` of the answer before: the clock is the store's
    /// own, which is nobody else's. One to come is now.
    pub async fn keys_changed_since(&self, since: i64, overlap: i64) -> Result<ChangedKeys, StoreError> {
        on_engine!(self, e => e.keys_changed_since(since, overlap).await)
    }
}
