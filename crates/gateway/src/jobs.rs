//! What an operator begins and comes back for: audits, exports and comparisons take minutes where
//! there is much, longer than anybody holds a connection open. The store knows all jobs of all
//! replicas; here are those that run in this process, how far they are, and the files of exports
//! where no replica shares them (`endpoints/admin/export_file.rs`).
//!
//! A file is `….part` while it is written and gets its name when it is whole, so nobody fetches
//! half of one. All of them together are bounded, and each goes after a time.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use tollgate_store::{CallId, JobProgress};

/// How far a job is, in what its kind counts.
#[derive(Debug, Default)]
pub struct JobCounter {
    done: AtomicI64,
    total: AtomicI64,
}

impl JobCounter {
    pub fn of(total: i64) -> Arc<JobCounter> {
        let counter = JobCounter::default();
        counter.total.store(total, Ordering::Relaxed);
        Arc::new(counter)
    }

    pub fn at(&self, done: i64) {
        self.done.store(done, Ordering::Relaxed);
    }

    pub fn finish(&self) {
        self.done.store(self.total.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub fn now(&self) -> JobProgress {
        let total = self.total.load(Ordering::Relaxed);
        JobProgress { done: self.done.load(Ordering::Relaxed).clamp(0, total), total }
    }
}

/// Bounds of the files of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportRoom {
    /// Of one file, and of all.
    pub file_bytes: u64,
    pub all_bytes: u64,
    pub life_ms: i64,
}

/// Jobs of this process.
pub struct Jobs {
    running: Mutex<HashMap<String, CancellationToken>>,
    pub folder: PathBuf,
    pub room: ExportRoom,
}

impl Jobs {
    pub fn new(folder: PathBuf, room: ExportRoom) -> Jobs {
        Jobs { running: Mutex::default(), folder, room }
    }

    pub fn begin(&self, id: &str) -> CancellationToken {
        let token = CancellationToken::new();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(id.to_owned(), token.clone());
        token
    }

    pub fn end(&self, id: &str) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// A job of this process stops at once; those of others see it when they next say that they
    /// run.
    pub fn cancel(&self, id: &str) {
        if let Some(token) = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            token.cancel();
        }
    }

    fn runs(&self, id: &str) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Where the file of a job lies, once it is whole.
    pub fn file(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    pub fn part(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.part"))
    }

    /// Bytes of all files there are.
    pub fn used(&self) -> u64 {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Takes files away whose time is over, and halves that nobody writes any more.
    pub async fn sweep(self: &Arc<Self>, now: i64) {
        // Where nothing was ever exported no other thread is asked: a seed of the simulation has
        // to repeat.
        if !self.folder.is_dir() {
            return;
        }
        let jobs = self.clone();
        match tokio::task::spawn_blocking(move || jobs.sweep_now(now)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "files of exports could not be looked through"),
            Err(error) => tracing::warn!(%error, "files of exports could not be looked through"),
        }
    }

    fn sweep_now(&self, now: i64) -> io::Result<()> {
        let files = match std::fs::read_dir(&self.folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for file in files {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let (id, half) = name.strip_suffix(".part").map_or((&*name, false), |id| (id, true));
            let made = id.replacen("job_", "call_", 1).parse::<CallId>().map(|id| id.made_at());
            let over = made.map_or(true, |made| made.saturating_add(self.room.life_ms) < now);
            if (over || half) && !self.runs(id) {
                std::fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_go_after_their_time_and_halves_with_their_process() {
        let dir = tempfile::tempdir().expect("a folder");
        let room = ExportRoom { file_bytes: 10, all_bytes: 20, life_ms: 1_000 };
        let jobs = Arc::new(Jobs::new(dir.path().join("exports"), room));
        jobs.sweep(0).await;
        std::fs::create_dir(&jobs.folder).expect("a folder");
        let id = |ms: i64| {
            let mut bytes = [7; 16];
            bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
            CallId(bytes).to_string().replacen("call_", "job_", 1)
        };
        let (old, new, running) = (id(1_000), id(5_000), id(900));
        for path in [jobs.file(&old), jobs.file(&new), jobs.part(&new), jobs.part(&running), jobs.folder.join("x")] {
            std::fs::write(path, "12345").expect("written");
        }
        let _token = jobs.begin(&running);
        jobs.sweep(5_500).await;
        let mut left: Vec<_> = std::fs::read_dir(&jobs.folder).expect("a folder").flatten().map(|f| f.path()).collect();
        left.sort();
        let mut expected = vec![jobs.file(&new), jobs.part(&running)];
        expected.sort();
        assert_eq!((left, jobs.used()), (expected, 10));
    }

    #[test]
    fn a_cancelled_job_hears_of_it_and_a_count_stays_within_its_total() {
        let jobs = Jobs::new(PathBuf::new(), ExportRoom { file_bytes: 0, all_bytes: 0, life_ms: 0 });
        let token = jobs.begin("job_1");
        jobs.cancel("job_2");
        assert!(!token.is_cancelled());
        jobs.cancel("job_1");
        assert!(token.is_cancelled());
        let counter = JobCounter::of(5);
        counter.at(9);
        assert_eq!(counter.now(), JobProgress { done: 5, total: 5 });
    }
}
