//! One file on its way to where it is stored: whole where it is small, else in parts, one after
//! the other. In memory is one part and nothing more, however large the file is and however slow
//! either side.

use super::Uncopied;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use object_store::path::Path as Name;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use std::sync::Arc;
use std::time::Duration;
use tollgate_upstream::Fault;

/// All parts but the last are of this size, the smallest that all makes of buckets take.
const PART: usize = 5 << 20;
/// For taking parts back.
const ABORT: Duration = Duration::from_secs(5);

pub(super) struct ShelfUpload {
    store: Arc<dyn ObjectStore>,
    name: Name,
    /// Once there was more than one part of it.
    parts: Option<Box<dyn MultipartUpload>>,
}

impl ShelfUpload {
    pub fn new(store: Arc<dyn ObjectStore>, name: Name) -> ShelfUpload {
        ShelfUpload { store, name, parts: None }
    }

    pub async fn write(
        &mut self,
        mut pieces: impl Stream<Item = Result<Bytes, Fault>> + Unpin,
    ) -> Result<(), Uncopied> {
        let mut part = BytesMut::with_capacity(PART);
        while let Some(piece) = pieces.next().await {
            let mut piece = piece.map_err(|fault| Uncopied::Trouble(fault.message))?;
            while !piece.is_empty() {
                part.extend_from_slice(&piece.split_to(piece.len().min(PART - part.len())));
                if part.len() == PART {
                    self.send(std::mem::take(&mut part).freeze()).await?;
                    part.reserve(PART);
                }
            }
        }
        if self.parts.is_none() {
            self.store.put(&self.name, part.freeze().into()).await?;
            return Ok(());
        }
        if !part.is_empty() {
            self.send(part.freeze()).await?;
        }
        if let Some(parts) = &mut self.parts {
            parts.complete().await?;
        }
        // Whole: there is nothing to take back.
        self.parts = None;
        Ok(())
    }

    async fn send(&mut self, part: Bytes) -> Result<(), Uncopied> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => self.parts.insert(self.store.put_multipart(&self.name).await?),
        };
        Ok(parts.put_part(part.into()).await?)
    }

    /// Takes back what was sent of a file that did not become whole.
    pub async fn abort(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        match tokio::time::timeout(ABORT, parts.abort()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(name = %self.name, %error, "parts of a copy that was not finished stay where they are")
            }
            Err(_) => {
                tracing::warn!(name = %self.name, "parts of a copy that was not finished may stay where they are")
            }
        }
    }
}
