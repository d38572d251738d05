//! Our own copies of finished videos: a folder, or a bucket that speaks S3. A copy is made before
//! its task counts as completed, under the task's id, so that making it twice changes nothing; it
//! is retained for as long as the operator says.

use super::s3;
use super::upload::CopyUpload;
use crate::settings::{CopyTo, VideoSettings};
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollgate_store::TaskId;
use tollgate_upstream::{Client, Fault};

/// Where copies are.
#[derive(Clone, Debug)]
pub struct CopyStore {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: String,
    /// Where the copies are files of our own.
    pub(super) folder: Option<PathBuf>,
    pub(super) keep: Option<Duration>,
    /// As many copies are made at once.
    places: Arc<Semaphore>,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum Uncopied {
    #[error("this process is being stopped")]
    Stopped,
    #[error("it took longer than a copy may")]
    TooSlow,
    #[error("{0}")]
    Trouble(String),
}

impl From<object_store::Error> for Uncopied {
    fn from(error: object_store::Error) -> Uncopied {
        Uncopied::Trouble(error.to_string())
    }
}

/// A copy that is being read.
pub struct Copy {
    pub length: u64,
    /// First and last byte of what is read, if not all.
    pub range: Option<(u64, u64)>,
    pub etag: Option<String>,
    pub pieces: BoxStream<'static, object_store::Result<Bytes>>,
}

/// Why a copy is not read.
#[derive(Debug)]
pub enum Missing {
    /// There is none, or none any more.
    Gone,
    /// The range lies outside of it, which has so many bytes.
    Outside(u64),
    Trouble(object_store::Error),
}

impl CopyStore {
    /// The shelf of these settings; `None` where nothing is copied.
    pub fn open(settings: &VideoSettings, client: &Client) -> std::io::Result<Option<CopyStore>> {
        let Some(place) = &settings.copy_to else { return Ok(None) };
        let wrong = |error: object_store::Error| std::io::Error::other(format!("copies of videos: {error}"));
        let keep = settings.keep;
        let places = Arc::new(Semaphore::new(settings.copies_at_once));
        Ok(Some(match place {
            CopyTo::Folder(path) => {
                // Videos of customers: for the owner alone, like all that is made here.
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                let store = LocalFileSystem::new_with_prefix(path).map_err(wrong)?.with_fsync(true);
                CopyStore { store: Arc::new(store), prefix: String::new(), folder: Some(path.clone()), keep, places }
            }
            CopyTo::S3(bucket) => {
                let store = s3::open(bucket, client).map_err(wrong)?;
                CopyStore { store, prefix: bucket.prefix.clone(), folder: None, keep, places }
            }
        }))
    }

    /// A place for one more copy, if there is one.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    pub(super) fn name(&self, id: &str) -> Name {
        Name::from(format!("{}/{id}.mp4", self.prefix))
    }

    /// When a copy made at this time (milliseconds) is taken away, in unix seconds.
    pub fn ends(&self, made_ms: i64) -> Option<i64> {
        Some((made_ms + i64::try_from(self.keep?.as_millis()).ok()?).div_euclid(1000))
    }

    /// Copies a file, piece by piece; gives the name of the copy. Whoever reads it sees all of it
    /// or nothing. What is cut short, or does not work, leaves nothing behind: parts of an upload
    /// would lie in a bucket, unseen and paid for, until somebody tells it otherwise.
    pub async fn put(
        &self,
        id: TaskId,
        pieces: impl Stream<Item = Result<Bytes, Fault>> + Unpin,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<String, Uncopied> {
        let id = id.to_string();
        let mut upload = CopyUpload::new(self.store.clone(), self.name(&id));
        let written = tokio::select! {
            written = upload.write(pieces) => written,
            why = cut => Err(why),
        };
        if let Err(why) = written {
            upload.abort().await;
            return Err(why);
        }
        Ok(id)
    }

    pub async fn get(&self, copy: &str, range: Option<GetRange>) -> Result<Copy, Missing> {
        let asked = range.is_some();
        let found = self.store.head(&self.name(copy)).await.map_err(Missing::of)?;
        if range.as_ref().is_some_and(|range| outside(range, found.size)) {
            return Err(Missing::Outside(found.size));
        }
        let options = GetOptions { range, ..GetOptions::default() };
        let got = self.store.get_opts(&self.name(copy), options).await.map_err(Missing::of)?;
        let range = asked.then(|| (got.range.start, got.range.end.saturating_sub(1)));
        Ok(Copy { length: found.size, range, etag: got.meta.e_tag.clone(), pieces: got.into_stream() })
    }

    /// Takes a copy away; that there is none is fine.
    pub async fn remove(&self, copy: &str) -> object_store::Result<()> {
        match self.store.delete(&self.name(copy)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            other => other,
        }
    }
}

/// The task whose copy has this name.
pub(super) fn own(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".mp4")?;
    id.parse::<TaskId>().is_ok_and(|known| known.to_string() == id).then_some(id)
}

fn outside(range: &GetRange, length: u64) -> bool {
    match range {
        GetRange::Bounded(range) => range.start >= length || range.is_empty(),
        GetRange::Offset(start) => *start >= length,
        GetRange::Suffix(count) => *count == 0,
    }
}

impl Missing {
    fn of(error: object_store::Error) -> Missing {
        match error {
            object_store::Error::NotFound { .. } => Missing::Gone,
            other => Missing::Trouble(other),
        }
    }
}

/// The one range a `Range` header asks for; `None` for what we do not serve in parts (several
/// ranges, other units).
pub fn asked(header: &str) -> Option<GetRange> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (first.trim(), last.trim()) {
        ("", last) => Some(GetRange::Suffix(number(last)?)),
        (first, "") => Some(GetRange::Offset(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| GetRange::Bounded(first..last.saturating_add(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(asked("bytes=4-7"), Some(GetRange::Bounded(4..8)));
        assert_eq!(asked("bytes=4-"), Some(GetRange::Offset(4)));
        assert_eq!(asked("bytes=-4"), Some(GetRange::Suffix(4)));
        for bad in ["bytes=7-4", "bytes=0-1,3-4", "lines=1-2", "bytes=", "bytes=a-b", ""] {
            assert_eq!(asked(bad), None, "{bad}");
        }
    }
}
