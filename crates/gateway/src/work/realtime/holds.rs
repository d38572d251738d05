//! The holds of a session: one for the next response stands while anybody speaks, and grows with
//! what that response would read. A quiet session gives its hold back and takes another one when
//! it is spoken in again.

use super::context::InputEstimate;
use super::ending::LastWords;
use super::needs::NextResponse;
use super::talk::{LAST_RESPONSE, Talk};
use crate::call::SessionCall;
use crate::refusal::Refusal;
use tollgate_store::Ending;

/// Output of a response that begins when there is no money any more: it is stopped at once.
const STOPPED_OUTPUT: u64 = 64;

impl Talk {
    /// Is what the next response would read held for? If not, and there is no more money, the
    /// session ends.
    pub async fn covers_input(&mut self) -> bool {
        if self.is_covered() {
            return true;
        }
        let covered = Box::pin(self.cover()).await;
        if let Err(refusal) = covered {
            self.end_soon(LastWords::refused(refusal), LAST_RESPONSE);
        }
        self.ending.is_none()
    }

    /// It is, without asking anybody: so it is for nearly every piece of audio.
    pub fn is_covered(&self) -> bool {
        let needed = self.context.needed();
        let holds = |call: &Option<SessionCall>| call.as_ref().is_some_and(|call| call.input_held() >= needed);
        self.ending.is_none()
            && self.listening.covers(self.context.uncommitted())
            && (self.transcription || holds(&self.standing))
            && (self.transcription || !self.turns.is_by_itself() || holds(&self.reserve))
    }

    async fn cover(&mut self) -> Result<(), Refusal> {
        if self.ending.is_some() {
            return Ok(());
        }
        self.listening.cover(&self.shared, &self.provider, self.context.uncommitted()).await?;
        if self.transcription {
            return Ok(());
        }
        if self.standing.is_none() {
            let more = if self.running.is_empty() { 0 } else { self.shared.settings.first_hold };
            self.stand(more).await?;
        }
        if let Some(standing) = &mut self.standing {
            grow(standing, &self.context).await?;
        }
        if !self.turns.is_by_itself() {
            return Ok(());
        }
        match &mut self.reserve {
            Some(reserve) => grow(reserve, &self.context).await,
            None => {
                self.reserve = Some(self.hold(self.context.with_room(), STOPPED_OUTPUT).await?);
                Ok(())
            }
        }
    }

    async fn hold(&mut self, input: u64, output: u64) -> Result<SessionCall, Refusal> {
        let next = NextResponse { model: self.names.public.clone(), input, output, ceiling: self.limit };
        let (shared, provider) = (&self.shared, self.provider.clone());
        shared.terms.next(shared.caller.clone(), shared.ids.call(), next, provider, &self.names.upstream).await
    }

    /// Holds for the next response, which may read so much more than is known now.
    async fn stand(&mut self, more: u64) -> Result<(), Refusal> {
        let input = self.context.with_room().saturating_add(more);
        self.standing = Some(self.hold(input, self.shared.settings.first_hold).await?);
        Ok(())
    }

    /// A hold for the response after the one that has begun. Without money the session ends with
    /// that one.
    pub async fn stand_again(&mut self) {
        if self.ending.is_none()
            && self.standing.is_none()
            && let Err(refusal) = self.stand(self.shared.settings.first_hold).await
        {
            self.end_soon(LastWords::refused(refusal), LAST_RESPONSE);
        }
    }

    /// The hold of a response that begins: the one that stands, or a new one for a quiet session.
    /// Else it is to be stopped, which is said beside its hold: the small one that is there for
    /// that, or another one for what it has read, as long as there is money for that much.
    pub async fn take_hold(&mut self) -> Option<(SessionCall, bool)> {
        if self.standing.is_none() && self.reserve.is_none() {
            self.stand_again().await;
        }
        if let Some(call) = self.standing.take() {
            return Some((call, false));
        }
        let small = match self.reserve.take() {
            Some(call) => Some(call),
            None => Box::pin(self.hold(self.context.needed(), STOPPED_OUTPUT)).await.ok(),
        };
        small.map(|call| (call, true))
    }

    /// Nothing is under way that could become a response.
    pub fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.promised.is_none() && self.ending.is_none() && !self.turns.is_due()
    }

    /// Nothing was said for long: nothing is held until something is.
    pub fn rest(&mut self) {
        self.let_holds_go();
        if self.context.uncommitted().is_zero() {
            self.listening.rest();
        }
    }

    pub fn let_holds_go(&mut self) {
        for call in self.standing.take().into_iter().chain(self.reserve.take()) {
            call.let_go(Ending::ClientLeft, "no_response");
        }
    }
}

/// Holds for what the response would read, if that is more than was held for.
async fn grow(call: &mut SessionCall, context: &InputEstimate) -> Result<(), Refusal> {
    let held = call.input_held();
    if context.needed() <= held {
        return Ok(());
    }
    Box::pin(call.cover_input(context.with_room().saturating_sub(held))).await
}
