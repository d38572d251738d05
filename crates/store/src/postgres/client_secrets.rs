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
        let sql = "SELECT tollgate_client_secret($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let (hash, account, key) = (new.hash.as_slice(), new.account.0.as_slice(), new.key.0.as_slice());
        let (of_account, of_key) = (i64::from(limits.account), i64::from(limits.key));
        let now = self.now();
        let values: [super::records::SqlParam<'_>; 9] =
            [&hash, &account, &key, &new.model, &new.session, &now, &new.expires_at, &of_account, &of_key];
        let rows = self.change(sql, &values).await?;
        let number: i16 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        Ok(u64::try_from(number).unwrap_or_default())
    }

    pub async fn client_secret(&self, hash: [u8; 32]) -> Result<Option<ClientSecret>, StoreError> {
        let sql = "SELECT k.hash, s.model, s.session, s.expires_at FROM client_secret s \
                   JOIN key k ON k.id = s.key_id WHERE s.hash = $1 AND s.expires_at > $2";
        // A client waits for this one.
        let rows = self.rows_within(self.options.hold_deadline, sql, &[&hash.as_slice(), &self.now()]).await?;
        rows.first().map(secret).transpose()
    }

    pub(super) async fn forget_client_secrets(&self, now: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM client_secret WHERE expires_at <= $1", &[&now]).await?;
        Ok(())
    }
}

fn secret(r: &Row) -> Result<ClientSecret, StoreError> {
    let key_hash = r.try_get::<_, &[u8]>(0)?.try_into().map_err(|_| StoreError::broken("not a hash"))?;
    let (model, session) = (r.try_get(1)?, r.try_get(2)?);
    Ok(ClientSecret { key_hash, model, session, expires_at: r.try_get(3)? })
}
