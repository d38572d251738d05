//! Client secrets on PostgreSQL: replicas share them, so their number is decided in the database.

use tokio_postgres::Row;

use super::PostgresEngine;
use crate::client_secret::{ClientSecret, ClientSecretLimits, NewClientSecret};
use crate::error::StoreError;

impl PostgresEngine {
    pub async fn create_client_secret(
        &self,
        new: NewClientSecret,
        limits: ClientSecretLimits,
    ) -> Result<u64, StoreError> {
        let sql = "SELECT tollgate_client_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let (hash, account, key) = (new.hash.as_slice(), new.account.0.as_slice(), new.key.0.as_slice());
        let (of_account, of_key) = (i64::from(limits.account), i64::from(limits.key));
        let (now, uses) = (self.now(), new.uses.map(i64::from));
        let values: [super::records::SqlParam<'_>; 10] =
            [&hash, &account, &key, &new.model, &new.session, &now, &new.expires_at, &of_account, &of_key, &uses];
        let rows = self.change(sql, &values).await?;
        let number: i16 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        Ok(u64::try_from(number).unwrap_or_default())
    }

    pub async fn client_secret(&self, hash: [u8; 32]) -> Result<Option<ClientSecret>, StoreError> {
        let sql = "SELECT k.hash, s.model, s.session, s.expires_at, s.uses_left FROM client_secret s \
                   JOIN key k ON k.id = s.key_id WHERE s.hash = $1 AND s.expires_at > $2";
        // A client waits for this one.
        let rows = self.rows_within(self.options.hold_deadline, sql, &[&hash.as_slice(), &self.now()]).await?;
        rows.first().map(secret).transpose()
    }

    pub async fn use_client_secret(&self, hash: [u8; 32]) -> Result<bool, StoreError> {
        let sql = "UPDATE client_secret SET uses_left = uses_left - 1 \
                   WHERE hash = $1 AND expires_at > $2 AND uses_left > 0 RETURNING 1";
        Ok(!self.change(sql, &[&hash.as_slice(), &self.now()]).await?.is_empty())
    }

    pub(super) async fn forget_client_secrets(&self, now: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM client_secret WHERE expires_at <= $1", &[&now]).await?;
        Ok(())
    }
}

fn secret(r: &Row) -> Result<ClientSecret, StoreError> {
    let key_hash = r.try_get::<_, &[u8]>(0)?.try_into().map_err(|_| StoreError::broken("not a hash"))?;
    let (model, session) = (r.try_get(1)?, r.try_get(2)?);
    let uses_left = r.try_get::<_, Option<i64>>(4)?.map(|left| u32::try_from(left).unwrap_or_default());
    Ok(ClientSecret { key_hash, model, session, expires_at: r.try_get(3)?, uses_left })
}
