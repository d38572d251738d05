//! Takes away files that have been retained long enough, and says what is left. A folder is read by
//! ourselves, name by name: what else lies there, under whatever name, is nobody's business and
//! stops nothing. A bucket tells its names through the library, a page at a time.

use super::FileStore;
use futures_util::StreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Name;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// What was left of a file by a gateway that died is of no use; nobody is still at it after so
/// long.
const UNFINISHED: Duration = Duration::from_secs(24 * 3_600);

/// What became of the files past their time.
#[derive(Debug, Default)]
pub struct SweptFiles {
    pub gone: u64,
    pub failed: u64,
    /// The first reason why.
    pub why: Option<io::Error>,
}

/// Is called with each file that stays: its name and its bytes.
type Stays<'a> = &'a mut (dyn FnMut(&str, u64) + Send);

impl SweptFiles {
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

impl FileStore {
    /// Takes away what is past its time. What cannot be taken away now is in nobody's way.
    pub async fn sweep(&self, now_ms: i64, stays: Stays<'_>) -> SweptFiles {
        let mut swept = SweptFiles::default();
        match &self.folder {
            Some(folder) => {
                if let Err(error) = self.sweep_folder(folder, now_ms, &mut swept, stays).await {
                    swept.count(Err(error));
                }
            }
            None => self.sweep_bucket(now_ms, &mut swept, stays).await,
        }
        swept
    }

    async fn sweep_folder(
        &self,
        folder: &Path,
        now_ms: i64,
        swept: &mut SweptFiles,
        stays: Stays<'_>,
    ) -> io::Result<()> {
        let mut all = tokio::fs::read_dir(folder).await?;
        while let Some(one) = all.next_entry().await? {
            let name = one.file_name();
            let Some(keep) = name.to_str().and_then(|name| self.retained_for(name)) else { continue };
            let gone = async {
                let facts = one.metadata().await?;
                let written = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
                let is_past = keep.is_some_and(|keep| millis(written) < now_ms.saturating_sub(millis(keep)));
                if facts.is_file() && is_past {
                    return tokio::fs::remove_file(one.path()).await.map(Some);
                }
                stays(name.to_str().unwrap_or_default(), facts.len());
                Ok(None)
            };
            if let Some(gone) = gone.await.transpose() {
                swept.count(gone);
            }
        }
        Ok(())
    }

    /// How long a file of this name is retained, if it is one of ours.
    fn retained_for(&self, name: &str) -> Option<Option<Duration>> {
        match name.split_once('#') {
            None => (self.own)(name).then_some(self.keep),
            // So the library calls what it has not finished.
            Some((name, number)) => {
                let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                ((self.own)(name) && is_number).then_some(Some(UNFINISHED))
            }
        }
    }

    async fn sweep_bucket(&self, now_ms: i64, swept: &mut SweptFiles, stays: Stays<'_>) {
        let Some(keep) = self.keep else { return };
        let before = now_ms.saturating_sub(millis(keep));
        let prefix = (!self.prefix.is_empty()).then(|| Name::from(self.prefix.as_str()));
        let mut all = self.store.list(prefix.as_ref());
        while let Some(found) = all.next().await {
            let gone = match found {
                Ok(one) if !self.is_own(&one.location) => continue,
                Ok(one) if one.last_modified.timestamp_millis() >= before => {
                    stays(one.location.filename().unwrap_or_default(), one.size);
                    continue;
                }
                Ok(one) => self.store.delete(&one.location).await,
                Err(error) => Err(error),
            };
            swept.count(gone.map_err(io::Error::from));
        }
    }

    /// Whether this is a name that we give, and at the place where we put it.
    fn is_own(&self, name: &Name) -> bool {
        name.filename().is_some_and(|file| (self.own)(file) && self.name(file) == *name)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
