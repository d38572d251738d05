//! What an answer of a step comes to: bytes in memory, or a file of the run. A body is always read
//! to its end: what is paid for is not cut off.

use super::attempt::{caller, sent, task_request};
use super::drive::RunInHand;
use crate::app::App;
use crate::door::spool::{IN_MEMORY, SpoolTerms};
use crate::endpoints::runs::assets::{shelve, whose};
use crate::refusal::Refusal;
use crate::work::run_files::RunFileWatch;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::sync::Arc;
use tollgate_store::{AccountId, StoreError};
use tollgate_wire::error::Code;

/// The longest answer that is read into memory.
const ANSWER_BYTES: usize = 1 << 20;

/// An answer that was read.
pub(super) enum StepAnswer {
    Bytes(Bytes),
    /// A file of the run.
    File(String),
}

/// Why there is none.
pub(super) enum NoStepAnswer {
    /// It broke off, or is more than is taken.
    Faulty(String),
    /// There is no place for it.
    NoRoom(String),
    /// It can be had another time.
    Later(String),
}

fn broken() -> NoStepAnswer {
    NoStepAnswer::Faulty("the answer broke off".to_owned())
}

async fn drained(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// Reads a body of at most [`ANSWER_BYTES`].
pub(super) async fn whole(mut body: Body) -> Result<Bytes, NoStepAnswer> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| broken())?.into_data() else { continue };
        if all.len() + piece.len() > ANSWER_BYTES {
            drained(body).await;
            return Err(NoStepAnswer::Faulty(format!("the answer is longer than {ANSWER_BYTES} bytes")));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// Reads a body into a file of the run.
pub(super) async fn file(app: &Arc<App>, account: AccountId, mut body: Body) -> Result<String, NoStepAnswer> {
    let most = app.settings.limits.upload_bytes as u64;
    let terms = SpoolTerms { whose: Some(whose(account)), most, in_memory: IN_MEMORY };
    let mut spooling = match app.spool.begin(terms, RunFileWatch::default()).await {
        Ok(spooling) => spooling,
        Err(refusal) => {
            drained(body).await;
            return Err(unstored(refusal));
        }
    };
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| broken())?.into_data() else { continue };
        if let Err(refusal) = spooling.push(&piece).await {
            drained(body).await;
            return Err(unstored(refusal));
        }
    }
    let spooled = spooling.finish().await.map_err(unstored)?;
    shelve(app, account, spooled.file, spooled.watch).await.map_err(unstored)
}

fn unstored(refusal: Refusal) -> NoStepAnswer {
    match refusal.code {
        Code::BodyTooLarge => NoStepAnswer::Faulty(refusal.message),
        _ => NoStepAnswer::NoRoom(refusal.message),
    }
}

/// The file of a video that is made.
pub(super) async fn video(
    hand: &RunInHand<'_>,
    key: &str,
    shown: &Value,
) -> Result<Result<StepAnswer, NoStepAnswer>, StoreError> {
    let later = |why: String| Ok(Err(NoStepAnswer::Later(why)));
    let Some(caller) = caller(hand, key).await? else { return later("its key does not work any more".to_owned()) };
    let id = shown["id"].as_str().unwrap_or_default();
    let Some(request) = task_request(&caller, id, "/content") else {
        return later("the task has no name".to_owned());
    };
    let reply = sent(hand, request).await;
    if !reply.status().is_success() {
        return later(format!("its file is refused with {}", reply.status()));
    }
    Ok(match file(hand.app, hand.run.account, reply.into_body()).await {
        // The maker still has it.
        Err(NoStepAnswer::Faulty(why)) => Err(NoStepAnswer::Later(why)),
        other => other.map(StepAnswer::File),
    })
}
