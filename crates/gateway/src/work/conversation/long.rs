//! Whole answers with pictures or voices in them may be long. Beyond a megabyte they take of the
//! room of all bodies, as requests do, until they have left.

use crate::call::Call;
use crate::door::bodies::{Bodies, BodyShare, Whose};
use crate::work::spooled_answer::no_room;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_upstream::{Fault, HeldReply, ReplyBody};

/// Shorter ones are not counted; room is asked for in steps of this size.
const STEP: usize = 1 << 20;

/// All of an answer of at most so many bytes, and what it takes.
pub(super) async fn counted(
    body: ReplyBody,
    most: usize,
    call: &Call,
    bodies: &Arc<Bodies>,
) -> Result<(Bytes, Option<BodyShare>), Fault> {
    let (start, mut rest) = match body.up_to(STEP, most, call.deadline).await? {
        HeldReply::Whole(bytes) => return Ok((bytes, None)),
        HeldReply::Large { start, rest } => (start, rest),
    };
    let mut room = bodies.room(Whose::Account(call.caller.account.id), start.len()).await.map_err(no_room)?;
    let mut all = BytesMut::from(start);
    while let Some(piece) = rest.chunk().await? {
        let length = all.len() + piece.len();
        if length > most {
            return Err(Fault::too_long());
        }
        if Instant::now() > call.deadline {
            return Err(Fault::idle());
        }
        room.grow(length.next_multiple_of(STEP)).await.map_err(no_room)?;
        all.extend_from_slice(&piece);
    }
    Ok((all.freeze(), Some(room)))
}
