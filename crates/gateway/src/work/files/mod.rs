//! Where files of customers are stored for a while: a folder, or a bucket that speaks S3. What kind
//! of file it is, and what it is called, says whoever keeps it.

mod counted;
mod links;
mod s3;
mod sweep;
mod upload;

pub use counted::{CountedFiles, FileRoom, NotStored};
pub use links::{link_ended, opens, signed_query};
pub use sweep::SweptFiles;

use crate::settings::CopyTo;
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
use tollgate_upstream::{Client, Fault};
use upload::FileUpload;

/// A place for files of one kind.
#[derive(Clone, Debug)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// Where they are files of our own.
    folder: Option<PathBuf>,
    /// How long they are stored; `None`: for ever.
    keep: Option<Duration>,
    /// Whether a file of this name is one of ours.
    own: fn(&str) -> bool,
}

/// Why a file was not put there.
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

/// A file that is being read.
pub struct StoredFile {
    pub length: u64,
    /// First and last byte of what is read, if not all.
    pub range: Option<(u64, u64)>,
    pub etag: Option<String>,
    pub pieces: BoxStream<'static, object_store::Result<Bytes>>,
}

/// Why a file is not read.
#[derive(Debug)]
pub enum Missing {
    /// There is none, or none any more.
    Gone,
    /// The range lies outside of it, which has so many bytes.
    Outside(u64),
    Trouble(object_store::Error),
}

impl FileStore {
    pub fn open(
        place: &CopyTo,
        keep: Option<Duration>,
        own: fn(&str) -> bool,
        client: &Client,
    ) -> std::io::Result<FileStore> {
        let wrong = |error: object_store::Error| std::io::Error::other(format!("files of customers: {error}"));
        Ok(match place {
            CopyTo::Folder(path) => {
                // For the owner alone, like all that is made here.
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                let store = LocalFileSystem::new_with_prefix(path).map_err(wrong)?.with_fsync(true);
                FileStore { store: Arc::new(store), prefix: String::new(), folder: Some(path.clone()), keep, own }
            }
            CopyTo::S3(bucket) => {
                let store = s3::open(bucket, client).map_err(wrong)?;
                FileStore { store, prefix: bucket.prefix.clone(), folder: None, keep, own }
            }
        })
    }

    /// The folder, where there is one.
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.folder.as_deref()
    }

    fn name(&self, file: &str) -> Name {
        Name::from(format!("{}/{file}", self.prefix))
    }

    /// When a file made at this time (milliseconds) is taken away, in unix seconds.
    pub fn ends(&self, made_ms: i64) -> Option<i64> {
        Some((made_ms + i64::try_from(self.keep?.as_millis()).ok()?).div_euclid(1000))
    }

    /// Puts a file there, piece by piece. Whoever reads it sees all of it or nothing. What is cut
    /// short, or does not work, leaves nothing behind: parts of an upload would lie in a bucket,
    /// unseen and paid for, until somebody tells it otherwise.
    pub async fn put(
        &self,
        file: &str,
        pieces: impl Stream<Item = Result<Bytes, Fault>> + Unpin,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<(), Uncopied> {
        let mut upload = FileUpload::new(self.store.clone(), self.name(file));
        let written = tokio::select! {
            written = upload.write(pieces) => written,
            why = cut => Err(why),
        };
        if written.is_err() {
            upload.abort().await;
        }
        written
    }

    pub async fn get(&self, file: &str, range: Option<GetRange>) -> Result<StoredFile, Missing> {
        let asked = range.is_some();
        let found = self.store.head(&self.name(file)).await.map_err(Missing::of)?;
        if range.as_ref().is_some_and(|range| outside(range, found.size)) {
            return Err(Missing::Outside(found.size));
        }
        let options = GetOptions { range, ..GetOptions::default() };
        let got = self.store.get_opts(&self.name(file), options).await.map_err(Missing::of)?;
        let range = asked.then(|| (got.range.start, got.range.end.saturating_sub(1)));
        Ok(StoredFile { length: found.size, range, etag: got.meta.e_tag.clone(), pieces: got.into_stream() })
    }

    /// Takes a file away; that there is none is fine.
    pub async fn remove(&self, file: &str) -> object_store::Result<()> {
        match self.store.delete(&self.name(file)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            other => other,
        }
    }
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
