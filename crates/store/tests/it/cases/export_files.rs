//! Files of exports in pieces: nobody sees half of one, all together have a bound, and none
//! outlives its time or a job that came to no good end.

use serde_json::{Value, json};
use tollgate_store::{Attribution, ExportPut, JobProgress, JobState, OperatorJob};

use crate::common::House;

const MOST: i64 = 100;

/// A job that runs, with an empty file.
async fn begun(h: &House, id: &str) {
    let job = OperatorJob {
        job_id: id.to_owned(),
        kind: id.to_owned(),
        state: JobState::Running,
        actor: "test".to_owned(),
        replica: h.store.replica_name(),
        asked: json!({}),
        started_at_ms: h.clock.now(),
        ended_at_ms: None,
        progress: JobProgress::default(),
        cancel_asked: false,
        result: Value::Null,
    };
    assert!(h.store.begin_job(&job, &Attribution::by("test", "a test")).await.expect("written"));
    assert!(h.store.begin_export(id).await.expect("written"));
}

async fn put(h: &House, id: &str, number: i64, data: &[u8]) -> ExportPut {
    h.store.put_export_piece(id, number, data, MOST).await.expect("written")
}

async fn done(h: &House, id: &str, until: i64) {
    assert!(h.store.finish_export(id, until).await.expect("written"));
    h.store.end_job(id, JobState::Done, "null").await.expect("written");
}

async fn pieces(h: &House, id: &str) -> Option<(i64, Vec<Vec<u8>>)> {
    let file = h.store.shared_export(id).await.expect("read")?;
    let mut all = Vec::new();
    for number in 0..file.pieces {
        all.push(h.store.export_piece(id, number).await.expect("read").expect("a piece"));
    }
    Some((file.bytes, all))
}

pub async fn the_file_of_an_export_is_seen_once_it_is_whole(h: House) {
    assert!(!h.store.begin_export("job_0").await.expect("written"), "there is no such job");
    begun(&h, "job_1").await;
    assert_eq!(put(&h, "job_1", 0, b"one").await, ExportPut::Written);
    assert_eq!(put(&h, "job_1", 0, b"again").await, ExportPut::Full, "a piece is written once");
    assert_eq!(put(&h, "job_1", 1, b"\0\xfftwo").await, ExportPut::Written);
    assert_eq!(pieces(&h, "job_1").await, None, "half of it is not seen");
    done(&h, "job_1", h.clock.now() + 1_000).await;
    assert_eq!(pieces(&h, "job_1").await, Some((8, vec![b"one".to_vec(), b"\0\xfftwo".to_vec()])));
    assert_eq!(put(&h, "job_1", 2, b"three").await, ExportPut::Ended);
    h.store.sweep_exports().await.expect("swept");
    assert!(pieces(&h, "job_1").await.is_some(), "its time is not over");
    h.clock.advance(1_001);
    assert_eq!(pieces(&h, "job_1").await, None, "also before anybody has swept");
    assert_eq!(h.store.sweep_exports().await.expect("swept"), 1);
    assert_eq!(h.store.export_piece("job_1", 0).await.expect("read"), None);
    h.close().await;
}

pub async fn files_of_exports_have_a_bound_and_an_end(h: House) {
    begun(&h, "job_1").await;
    begun(&h, "job_2").await;
    assert_eq!(put(&h, "job_1", 0, &[7; 60]).await, ExportPut::Written);
    assert_eq!(put(&h, "job_2", 0, &[7; 41]).await, ExportPut::Full, "all files together");
    assert_eq!(put(&h, "job_2", 0, &[7; 40]).await, ExportPut::Written);
    // One is cancelled: it writes nothing more, is never whole, and makes room.
    let stop = Attribution::by("test", "enough");
    assert!(h.store.cancel_job("job_1", &stop).await.expect("written"));
    assert_eq!(put(&h, "job_1", 1, b"").await, ExportPut::Ended);
    assert!(!h.store.finish_export("job_1", i64::MAX).await.expect("written"));
    assert_eq!(h.store.sweep_exports().await.expect("swept"), 0, "it may still run");
    h.store.end_job("job_1", JobState::Cancelled, "null").await.expect("written");
    assert_eq!(h.store.sweep_exports().await.expect("swept"), 1);
    assert_eq!(h.store.export_piece("job_1", 0).await.expect("read"), None);
    assert_eq!(put(&h, "job_2", 1, &[7; 60]).await, ExportPut::Written);
    // Many pieces go in several writes.
    for number in 2..200 {
        assert_eq!(put(&h, "job_2", number, b"").await, ExportPut::Written);
    }
    // One whose process says nothing any more is taken for dead, and what it left goes.
    h.clock.advance(tollgate_store::JOB_SILENCE_MS + 1);
    h.store.interrupt_jobs(None).await.expect("written");
    assert_eq!(h.store.sweep_exports().await.expect("swept"), 1);
    assert_eq!(h.store.export_piece("job_2", 0).await.expect("read"), None);
    assert_eq!(h.store.export_piece("job_2", 199).await.expect("read"), None);
    h.close().await;
}
