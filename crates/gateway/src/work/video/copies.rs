//! Our own copies of finished videos. A copy is made before its task counts as completed, under the
//! task's id, so that making it twice changes nothing; it is retained for as long as the operator
//! says.

use crate::settings::VideoSettings;
use crate::work::files::{FileStore, Missing, StoredFile, SweptFiles, Uncopied};
use bytes::Bytes;
use futures_util::Stream;
use object_store::GetRange;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollgate_store::TaskId;
use tollgate_upstream::{Client, Fault};

/// Where copies are.
#[derive(Clone, Debug)]
pub struct CopyStore {
    files: FileStore,
    /// As many copies are made at once.
    places: Arc<Semaphore>,
}

fn file_name(id: &str) -> String {
    format!("{id}.mp4")
}

/// Whether this is the name of a task's copy.
fn own(name: &str) -> bool {
    let known = |id: &str| id.parse::<TaskId>().is_ok_and(|known| known.to_string() == id);
    name.strip_suffix(".mp4").is_some_and(known)
}

impl CopyStore {
    /// The store of these settings; `None` where nothing is copied.
    pub fn open(settings: &VideoSettings, client: &Client) -> std::io::Result<Option<CopyStore>> {
        let Some(place) = &settings.copy_to else { return Ok(None) };
        let places = Arc::new(Semaphore::new(settings.copies_at_once));
        Ok(Some(CopyStore { files: FileStore::open(place, settings.keep, own, client)?, places }))
    }

    /// A place for one more copy, if there is one.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// When a copy made at this time (milliseconds) is taken away, in unix seconds.
    pub fn ends(&self, made_ms: i64) -> Option<i64> {
        self.files.ends(made_ms)
    }

    /// Copies a file, piece by piece; gives the name of the copy.
    pub async fn put(
        &self,
        id: TaskId,
        pieces: impl Stream<Item = Result<Bytes, Fault>> + Unpin,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<String, Uncopied> {
        let id = id.to_string();
        self.files.put(&file_name(&id), pieces, cut).await?;
        Ok(id)
    }

    pub async fn get(&self, copy: &str, range: Option<GetRange>) -> Result<StoredFile, Missing> {
        self.files.get(&file_name(copy), range).await
    }

    /// Takes a copy away; that there is none is fine.
    pub async fn remove(&self, copy: &str) -> object_store::Result<()> {
        self.files.remove(&file_name(copy)).await
    }

    /// Takes away what is past its time.
    pub async fn sweep(&self, now_ms: i64) -> SweptFiles {
        self.files.sweep(now_ms, &mut |_, _| ()).await
    }
}
