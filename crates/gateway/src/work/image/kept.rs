//! Results that may be asked for again by their Idempotency-Key and are too long for the database:
//! most pictures in base64. All of such a result is spooled and put where links of ours lead, under
//! a name that no link has; only then does it go to its client.

use super::call::Making;
use crate::call::{Begun, Call, Passed, stored_elsewhere};
use crate::work::files::Uncopied;
use crate::work::spooled_answer::{self, SpooledAnswer};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_upstream::{Fault, SpooledFile};

/// The longest that putting a result there takes.
const LONGEST: Duration = Duration::from_secs(20);

impl Making<'_> {
    /// The same answer, stored if it may be asked for again and there is room for it.
    pub(super) async fn kept(&self, call: &mut Call, begun: Begun) -> Result<Begun, Fault> {
        let Begun::Passing(passed) = begun else { return Ok(begun) };
        let Some(store) = self.desk.store.as_ref().filter(|_| call.idempotent) else {
            return Ok(Begun::Passing(passed));
        };
        if !store.has_room(self.account, self.till.world.now_ms()).await {
            return Ok(Begun::Passing(passed));
        }
        let content_type = passed.content_type.clone();
        let file = self.spooled(call, *passed).await?;
        let until = self.deadline.min(Instant::now() + LONGEST);
        let cut = async {
            tokio::time::sleep_until(until).await;
            Uncopied::TooSlow
        };
        let now = self.till.world.now_ms();
        match store.put_reply(&self.call_id, self.account, file.clone(), now, cut).await {
            Ok(name) => {
                let kind = content_type.to_str().unwrap_or("application/json");
                call.answer = Some(stored_elsewhere(&name, kind));
            }
            Err(why) => tracing::warn!(call = %call.id, ?why, "a result is not stored for its Idempotency-Key"),
        }
        Ok(spooled_answer::passing(content_type, Bytes::new(), spooled_answer::pieces(file)))
    }

    /// All of an answer that would pass.
    async fn spooled(&self, call: &mut Call, passed: Passed) -> Result<SpooledFile, Fault> {
        let Passed { first, mut body, mut rewrite, mut left, .. } = passed;
        let mut file = SpooledAnswer::begin(&self.desk.spool, call, usize::MAX).await?;
        file.push(&first).await?;
        while let Some(piece) = body.chunk().await? {
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.deadline {
                return Err(Fault::idle());
            }
            file.push(&rewrite.feed(piece)?).await?;
        }
        file.push(&rewrite.end()?).await?;
        if let Some(meter) = rewrite.meter() {
            call.meter = meter;
        }
        file.finish().await
    }
}
