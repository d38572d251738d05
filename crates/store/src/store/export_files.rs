//! The files of exports that replicas share, piece by piece: written while their job runs, seen
//! once they are whole, gone after their time or with a job that came to no good end.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::operator_job::{ExportPut, SharedExport};
use crate::person::statement::{may, must, values};

/// Of so many files pieces are taken away in one round, and so many pieces in one write.
const FILES_A_ROUND: i64 = 16;
const PIECES_A_WRITE: i64 = 64;

impl Store {
    /// Whether several processes use this database, none of which sees the others' folders.
    pub fn has_replicas(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    /// The file of a job that runs, with nothing in it. `false`: the job does not run.
    pub async fn begin_export(&self, job: &str) -> Result<bool, StoreError> {
        const SQL: &str = "INSERT INTO export_file (job_id, bytes, pieces, whole, until) SELECT $1, 0, 0, 0, 0 \
             WHERE EXISTS (SELECT 1 FROM operator_job WHERE id = $1 AND state = 'running' AND cancel = 0)";
        Ok(self.write_people(vec![must(SQL, values![job])]).await?.is_none())
    }

    /// The piece of this number, if the job runs and all files together stay within `most` bytes.
    pub async fn put_export_piece(
        &self,
        job: &str,
        number: i64,
        data: &[u8],
        most: i64,
    ) -> Result<ExportPut, StoreError> {
        // A job that was taken for dead, and was not, writes nothing more.
        const RUNS: &str = "UPDATE operator_job SET seen_at = $2 WHERE id = $1 AND state = 'running' AND cancel = 0";
        const GROW: &str = "UPDATE export_file SET bytes = bytes + $2, pieces = pieces + 1 \
             WHERE job_id = $1 AND pieces = $3 AND whole = 0 \
             AND (SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM export_file) + $2 <= $4";
        const PUT: &str = "INSERT INTO export_piece (job_id, number, data) VALUES ($1, $2, $3)";
        let bytes = i64::try_from(data.len()).unwrap_or(i64::MAX);
        let write = vec![
            must(RUNS, values![job, self.people_now()]),
            must(GROW, values![job, bytes, number, most]),
            must(PUT, values![job, number, data]),
        ];
        Ok(match self.write_people(write).await? {
            None => ExportPut::Written,
            Some(0) => ExportPut::Ended,
            Some(_) => ExportPut::Full,
        })
    }

    /// From here on it can be fetched, until then. `false`: its job does not run any more.
    pub async fn finish_export(&self, job: &str, until: i64) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE export_file SET whole = 1, until = $2 WHERE job_id = $1 AND whole = 0 \
             AND EXISTS (SELECT 1 FROM operator_job WHERE id = $1 AND state = 'running' AND cancel = 0)";
        Ok(self.write_people(vec![must(SQL, values![job, until])]).await?.is_none())
    }

    /// A file that is whole and whose time is not over.
    pub async fn shared_export(&self, job: &str) -> Result<Option<SharedExport>, StoreError> {
        const SQL: &str = "SELECT bytes, pieces FROM export_file WHERE job_id = $1 AND whole = 1 AND until > $2";
        let rows = self.people_rows(SQL, values![job, self.people_now()]).await?;
        let file = |row: &crate::person::statement::SqlRow| {
            Ok(SharedExport { job_id: job.to_owned(), bytes: row.int(0)?, pieces: row.int(1)? })
        };
        rows.first().map(file).transpose()
    }

    /// One piece of it. Nothing: the file went while it was read.
    pub async fn export_piece(&self, job: &str, number: i64) -> Result<Option<Vec<u8>>, StoreError> {
        const SQL: &str = "SELECT data FROM export_piece WHERE job_id = $1 AND number = $2";
        let rows = self.people_rows(SQL, values![job, number]).await?;
        rows.first().map(|row| row.bytes(0)).transpose()
    }

    /// Takes away what nobody may fetch any more. The number of files that went.
    pub async fn sweep_exports(&self) -> Result<usize, StoreError> {
        // A job that is done has a whole file; one that runs may have half of one.
        const OVER: &str = "SELECT f.job_id, f.pieces FROM export_file f LEFT JOIN operator_job j ON j.id = f.job_id \
             WHERE j.id IS NULL OR j.state NOT IN ('running', 'done') OR (f.whole = 0 AND j.state = 'done') \
             OR (f.whole = 1 AND f.until <= $1) LIMIT $2";
        const CLOSE: &str = "UPDATE export_file SET whole = 0, until = 0 WHERE job_id = $1";
        const PIECES: &str = "DELETE FROM export_piece WHERE job_id = $1 AND number >= $2 AND number < $3";
        const FILE: &str = "DELETE FROM export_file WHERE job_id = $1";
        let over = self.people_rows(OVER, values![self.people_now(), FILES_A_ROUND]).await?;
        for row in &over {
            let (job, mut left) = (row.text(0)?, row.int(1)?);
            self.write_people(vec![may(CLOSE, values![&job])]).await?;
            while left > 0 {
                let from = left.saturating_sub(PIECES_A_WRITE).max(0);
                self.write_people(vec![may(PIECES, values![&job, from, left])]).await?;
                left = from;
            }
            self.write_people(vec![may(FILE, values![&job])]).await?;
        }
        Ok(over.len())
    }
}
