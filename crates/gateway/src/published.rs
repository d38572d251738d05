//! The public keys of receipts as this replica publishes them: cached in memory, because anybody
//! may ask for them, and read anew every second, because another replica may have made a new one.

use arc_swap::ArcSwapOption;
use std::sync::Arc;
use tollgate_store::receipt::PublicKeys;
use tollgate_store::{Store, StoreError};

#[derive(Default)]
pub struct Published(ArcSwapOption<PublicKeys>);

impl Published {
    pub async fn refresh(&self, store: &Store) -> Result<Arc<PublicKeys>, StoreError> {
        let keys = Arc::new(store.receipt_keys().await?);
        self.0.store(Some(keys.clone()));
        Ok(keys)
    }

    pub async fn keys(&self, store: &Store) -> Result<Arc<PublicKeys>, StoreError> {
        match self.0.load_full() {
            Some(keys) => Ok(keys),
            None => self.refresh(store).await,
        }
    }

    /// A receipt leaves this replica no earlier than the key that verifies it.
    pub async fn know(&self, store: &Store, kid: &str) -> Result<(), StoreError> {
        if !self.keys(store).await?.keys.iter().any(|key| key.kid == kid) {
            self.refresh(store).await?;
        }
        Ok(())
    }
}
