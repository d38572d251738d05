//! The verbs of receipts, of the prices they name, and of the secrets that sign.

use super::{Engine, Receipted, Store};
use crate::call::row_hash::RowSeal;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::receipt::{self, PublicKeys};

impl Store {
    /// The receipt of a call that has ended, made and signed now.
    pub async fn receipt(&self, account: AccountId, call: CallId) -> Result<Receipted, StoreError> {
        // In this order: a call that ends in between is found by the second question.
        if on_engine!(self, e => e.is_open(account, call).await)? {
            return Ok(Receipted::StillOpen);
        }
        let Some(row) = self.usage_of(account, call).await? else {
            return Ok(Receipted::NoSuchCall);
        };
        if on_engine!(self, e => e.seal_of(account, call).await)? == RowSeal::Changed {
            return Err(StoreError::broken(format!("the usage row of {call} is not the one that was written")));
        }
        let now = on_engine!(self, e => e.now());
        let secret = on_engine!(self, e => e.receipt_secret().await)?;
        let prefix = on_engine!(self, e => e.key_prefix(row.key).await)?.unwrap_or_default();
        Ok(Receipted::Signed(Box::new(receipt::sign(&row, prefix, &secret, now)?)))
    }

    /// A price that calls were held at, whatever the catalog says today, in the form whose hash
    /// receipts name. `None`: no call ever was, or what is stored under this id is something else
    /// by now.
    pub async fn price_version(&self, id: [u8; 16]) -> Result<Option<String>, StoreError> {
        let Some(text) = on_engine!(self, e => e.price_json(id).await)? else { return Ok(None) };
        let written: serde_json::Value = serde_json::from_str(&text).map_err(StoreError::broken)?;
        let price: tollgate_catalog::Price = serde_json::from_value(written.clone()).map_err(StoreError::broken)?;
        Ok((price.id() == id).then(|| receipt::price_text(&written)))
    }

    /// The public keys of receipts, those of before included; the one that signs first.
    pub async fn receipt_keys(&self) -> Result<PublicKeys, StoreError> {
        Ok(PublicKeys { keys: on_engine!(self, e => e.receipt_keys().await)? })
    }

    /// Ends the key that signs receipts, erases its secret, and begins a new one; for all replicas.
    pub async fn rotate_receipt_key(&self) -> Result<PublicKeys, StoreError> {
        on_engine!(self, e => e.rotate_receipt_key().await)?;
        self.receipt_keys().await
    }

    /// Those that this store was ever served with.
    pub async fn signing_secrets(&self) -> Result<Vec<String>, StoreError> {
        on_engine!(self, e => e.signing_secrets().await)
    }

    /// It is served with these from now on.
    pub async fn note_signing_secrets(&self, names: Vec<String>) -> Result<(), StoreError> {
        on_engine!(self, e => e.note_signing_secrets(names).await)
    }
}
