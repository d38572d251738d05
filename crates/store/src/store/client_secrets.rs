//! The verbs of client secrets. Those past their time are erased by `sweep`.

use super::{Engine, Store};
use crate::client_secret::{ClientSecret, ClientSecretLimits, ClientSecretsFull, NewClientSecret};
use crate::error::StoreError;

impl Store {
    /// Keeps a secret; it works on every replica when this returns. Both limits are exact.
    pub async fn create_client_secret(
        &self,
        new: NewClientSecret,
        limits: ClientSecretLimits,
    ) -> Result<Result<(), ClientSecretsFull>, StoreError> {
        let number = on_engine!(self, e => e.create_client_secret(new, limits).await)?;
        Ok(ClientSecretsFull::numbered(number).map_or(Ok(()), Err))
    }

    /// `None`: there never was such a secret, or it has expired.
    pub async fn client_secret(&self, hash: [u8; 32]) -> Result<Option<ClientSecret>, StoreError> {
        on_engine!(self, e => e.client_secret(hash).await)
    }

    /// Takes one of the uses of a secret that has a number of them. `false`: none is left, or it
    /// has expired. Exact over all replicas.
    pub async fn use_client_secret(&self, hash: [u8; 32]) -> Result<bool, StoreError> {
        on_engine!(self, e => e.use_client_secret(hash).await)
    }
}
