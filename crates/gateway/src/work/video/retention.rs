//! Takes away copies of videos that have been retained long enough. A folder is read by ourselves,
//! name by name: what else lies there, under whatever name, is nobody's business and stops nothing.
//! A bucket tells its names through the library, a page at a time.

use super::copies::{CopyStore, own};
use futures_util::StreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Name;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// What was left of a copy by a gateway that died is of no use; nobody is still at it after so
/// long.
const UNFINISHED: Duration = Duration::from_secs(24 * 3_600);

/// What became of the copies past their time.
#[derive(Debug, Default)]
pub struct SweptCopies {
    pub gone: u64,
    pub failed: u64,
    /// The first reason why.
    pub why: Option<io::Error>,
}

impl SweptCopies {
    fn count(&mut self, gone: io::Result<()>) {
        match gone {
            Ok(()) => self.gone += 1,
            // Another replica was here first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                self.failed += 1;
                self.why.get_or_insert(error);
            }
        }
    }
}

impl CopyStore {
    /// Takes away what is past its time. What cannot be taken away now is in nobody's way.
    pub async fn sweep(&self, now_ms: i64) -> SweptCopies {
        let mut swept = SweptCopies::default();
        match &self.folder {
            Some(folder) => {
                if let Err(error) = self.sweep_folder(folder, now_ms, &mut swept).await {
                    swept.count(Err(error));
                }
            }
            None => self.sweep_bucket(now_ms, &mut swept).await,
        }
        swept
    }

    async fn sweep_folder(&self, folder: &Path, now_ms: i64, swept: &mut SweptCopies) -> io::Result<()> {
        let mut all = tokio::fs::read_dir(folder).await?;
        while let Some(one) = all.next_entry().await? {
            let Some(keep) = one.file_name().to_str().and_then(|name| self.retained_for(name)) else { continue };
            let gone = async {
                let facts = one.metadata().await?;
                let written = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
                let is_past = facts.is_file() && millis(written) < now_ms.saturating_sub(millis(keep));
                if is_past { tokio::fs::remove_file(one.path()).await.map(Some) } else { Ok(None) }
            };
            if let Some(gone) = gone.await.transpose() {
                swept.count(gone);
            }
        }
        Ok(())
    }

    /// How long a file of this name is retained; `None`: for ever, or it is none of ours.
    fn retained_for(&self, name: &str) -> Option<Duration> {
        match name.split_once('#') {
            None => own(name).and(self.keep),
            // So the library calls what it has not finished.
            Some((name, number)) => {
                let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                own(name).filter(|_| is_number).map(|_| UNFINISHED)
            }
        }
    }

    async fn sweep_bucket(&self, now_ms: i64, swept: &mut SweptCopies) {
        let Some(keep) = self.keep else { return };
        let before = now_ms.saturating_sub(millis(keep));
        let prefix = (!self.prefix.is_empty()).then(|| Name::from(self.prefix.as_str()));
        let mut all = self.store.list(prefix.as_ref());
        while let Some(found) = all.next().await {
            let gone = match found {
                Ok(one) if one.last_modified.timestamp_millis() >= before || !self.is_copy(&one.location) => continue,
                Ok(one) => self.store.delete(&one.location).await,
                Err(error) => Err(error),
            };
            swept.count(gone.map_err(io::Error::from));
        }
    }

    /// Whether this is a name that we give: a task's, and at the place where we put it.
    fn is_copy(&self, name: &Name) -> bool {
        name.filename().and_then(own).is_some_and(|id| self.name(id) == *name)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
