//! The file of an export: written while its job runs, handed out afterwards. Where replicas share a
//! database it lies there in pieces, so that whichever is asked has it; otherwise in the data
//! folder ([decision 38](../../../../../docs/decisions/0038-files-of-exports.md)).

use super::job_runs::JobFailed;
use crate::app::App;
use crate::door::spool::has_room;
use crate::refusal::Refusal;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_store::{ExportPut, SharedExport, Store};
use tollgate_wire::error::Code;

/// What is read of a file in the data folder at a time.
const READ: usize = 64 << 10;
/// A piece in the database: small enough that others who write do not wait for it.
const PIECE: usize = 256 << 10;

/// One that is being written.
pub struct ExportFile<'a> {
    app: &'a App,
    id: &'a str,
    place: ExportHome,
    bytes: u64,
    pub rows: i64,
    /// What it may have at most.
    left: u64,
}

enum ExportHome {
    Folder(tokio::fs::File),
    /// So many pieces are written, and these bytes are not.
    Shared(i64, Vec<u8>),
}

impl<'a> ExportFile<'a> {
    pub async fn open(app: &'a App, id: &'a str) -> Result<ExportFile<'a>, JobFailed> {
        let jobs = &app.jobs;
        let (place, left) = if app.store.has_replicas() {
            if !app.store.begin_export(id).await? {
                return Err(ended());
            }
            (ExportHome::Shared(0, Vec::new()), jobs.room.file_bytes)
        } else {
            tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(&jobs.folder).await?;
            let left = jobs.room.all_bytes.saturating_sub(jobs.used()).min(jobs.room.file_bytes);
            let part = jobs.part(id);
            let file = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(part).await?;
            (ExportHome::Folder(file), left)
        };
        Ok(ExportFile { app, id, place, bytes: 0, rows: 0, left })
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub async fn write(&mut self, text: &str, rows: usize) -> Result<(), JobFailed> {
        let bytes = text.len() as u64;
        if self.bytes.saturating_add(bytes) > self.left {
            return Err(too_large(self.left));
        }
        match &mut self.place {
            ExportHome::Folder(file) => {
                if !has_room(&self.app.jobs.folder, self.app.settings.storage.disk_reserve, bytes) {
                    let why = "The disk is full: what `disk_reserve` says is left alone.";
                    return Err(JobFailed::because(why.to_owned()));
                }
                file.write_all(text.as_bytes()).await?;
            }
            ExportHome::Shared(_, waiting) => {
                waiting.extend_from_slice(text.as_bytes());
                self.put(PIECE).await?;
            }
        }
        (self.bytes, self.rows) = (self.bytes + bytes, self.rows + i64::try_from(rows).unwrap_or(0));
        Ok(())
    }

    /// Puts pieces into the database while so many bytes wait.
    async fn put(&mut self, least: usize) -> Result<(), JobFailed> {
        let ExportHome::Shared(pieces, waiting) = &mut self.place else { return Ok(()) };
        let all = self.app.jobs.room.all_bytes;
        let most = i64::try_from(all).unwrap_or(i64::MAX);
        let mut put = 0;
        while waiting.len() - put >= least.max(1) {
            let piece = &waiting[put..waiting.len().min(put + PIECE)];
            match self.app.store.put_export_piece(self.id, *pieces, piece, most).await? {
                ExportPut::Written => {}
                ExportPut::Full => return Err(too_large(all)),
                ExportPut::Ended => return Err(ended()),
            }
            (put, *pieces) = (put + piece.len(), *pieces + 1);
        }
        waiting.drain(..put);
        Ok(())
    }

    /// From here on it can be fetched.
    pub async fn finish(mut self) -> Result<Value, JobFailed> {
        let until = self.app.world.now_ms().saturating_add(self.app.jobs.room.life_ms);
        self.put(0).await?;
        match &mut self.place {
            ExportHome::Folder(file) => {
                file.flush().await?;
                file.sync_all().await?;
                tokio::fs::rename(self.app.jobs.part(self.id), self.app.jobs.file(self.id)).await?;
            }
            ExportHome::Shared(..) => {
                if !self.app.store.finish_export(self.id, until).await? {
                    return Err(ended());
                }
            }
        }
        Ok(json!({
            "rows": self.rows, "bytes": self.bytes, "file": format!("/api/admin/jobs/{}/file", self.id), "file_until_ms": until,
        }))
    }
}

fn too_large(most: u64) -> JobFailed {
    JobFailed::because(format!(
        "The export is larger than the {most} bytes there is room for: ask for a shorter time, or wait until older files are gone."
    ))
}

fn ended() -> JobFailed {
    JobFailed::because("The job was stopped, or taken for dead by another replica.".to_owned())
}

/// The file of a job that is done, and its length.
pub async fn body(app: &Arc<App>, id: &str) -> Result<(Body, u64), Refusal> {
    if app.store.has_replicas()
        && let Some(file) = app.store.shared_export(id).await?
    {
        let length = u64::try_from(file.bytes).unwrap_or(0);
        return Ok((shared(app.clone(), file), length));
    }
    let gone = |_| Refusal::about(Code::NotFound, "job", "The file is gone: it was there for a while.");
    let file = tokio::fs::File::open(app.jobs.file(id)).await.map_err(gone)?;
    let length = file.metadata().await.map_err(gone)?.len();
    let pieces = stream::try_unfold(file, async |mut file| {
        let mut piece = Vec::with_capacity(READ);
        let read = (&mut file).take(READ as u64).read_to_end(&mut piece).await?;
        Ok::<_, io::Error>((read > 0).then_some((Bytes::from(piece), file)))
    });
    Ok((Body::from_stream(pieces), length))
}

/// Piece by piece, as its reader takes them. A file that goes meanwhile breaks the answer off: half
/// of it must not look like all.
fn shared(app: Arc<App>, file: SharedExport) -> Body {
    let pieces = stream::try_unfold((app, file, 0), async |(app, file, number)| {
        if number >= file.pieces {
            return Ok(None);
        }
        let piece = piece(&app.store, &file, number).await?;
        Ok::<_, io::Error>(Some((piece, (app, file, number + 1))))
    });
    Body::from_stream(pieces)
}

async fn piece(store: &Store, file: &SharedExport, number: i64) -> io::Result<Bytes> {
    let read = store.export_piece(&file.job_id, number).await.map_err(io::Error::other)?;
    read.map(Bytes::from).ok_or_else(|| io::Error::other("the file of an export went while it was read"))
}
