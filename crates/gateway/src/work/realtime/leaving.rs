//! The end of a session: calls that run are closed by what they produced, and both sides hear why.

use super::ending::LastWords;
use super::relay::{Relay, SessionNext};
use crate::refusal::Refusal;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tollgate_store::Ending;
use tollgate_wire::error::Code;

/// A response that nobody hears any more is given so long to say what it used.
const ABANDONED: Duration = Duration::from_secs(5);

impl<T: AsyncRead + AsyncWrite + Unpin> Relay<T> {
    /// Whatever still runs is closed, and both sides hear of it.
    pub(super) async fn finish(mut self: Box<Self>, next: SessionNext) {
        let (ending, reason, words) = match next {
            SessionNext::Go => return,
            SessionNext::ClientGone => {
                // Its close is answered before anything else.
                self.client.flush().await;
                self.hear_out().await;
                (Ending::ClientLeft, "client_gone", None)
            }
            SessionNext::ProviderGone(words) => (Ending::UpstreamFault, "upstream_gone", Some(words)),
            SessionNext::Over(words) => (Ending::Refused, "session_ended", Some(words)),
        };
        self.talk.close_calls(ending, reason);
        if let Some(refusal) = words.as_ref().and_then(|words| words.error.as_ref()) {
            self.talk.refuse(refusal, None);
        }
        // A form without a word for it has the close.
        let _unsaid = self.tell_client();
        let Relay { client, server, .. } = *self;
        let closing = server.close(CloseCode::Normal, String::new());
        match words {
            Some(words) => drop(tokio::join!(client.close(words.code, words.short_reason()), closing)),
            None => closing.await,
        }
    }

    /// The client has left: what runs is cancelled, and has a moment to say what it used. So is
    /// what was asked for and begins only now; its provider has read for it.
    async fn hear_out(&mut self) {
        // Nobody waits for it any more, and what comes after it says what was used.
        self.withheld = None;
        let until = Instant::now() + ABANDONED;
        let cut = self.talk.shared.terms.till.shutdown.cut.clone();
        loop {
            let now = Instant::now();
            if now >= until || !self.talk.owes(now) {
                return;
            }
            let running = self.talk.running.iter().filter(|(_, one)| !one.cancelled);
            let ids: Vec<String> = running.map(|(id, _)| id.clone()).collect();
            for id in &ids {
                self.talk.cancel(id);
            }
            self.talk.to_client.clear();
            if !matches!(self.deliver(), SessionNext::Go | SessionNext::Over(_)) {
                return;
            }
            let again = self.talk.turns.may_begin_until().filter(|at| *at > now);
            let again = again.map_or(until, |at| at.min(until));
            let heard = tokio::select! {
                heard = self.server.heard() => heard,
                () = tokio::time::sleep_until(again) => continue,
                () = cut.cancelled() => return,
            };
            if !matches!(self.server_frame(heard, Instant::now()).await, SessionNext::Go) {
                return;
            }
        }
    }
}

pub fn stopping() -> LastWords {
    LastWords::fault(Code::ServerDraining, "The server is stopping; open the session again.")
}

pub fn over_time(reason: &str, text: &str) -> LastWords {
    let refusal = Refusal::new(Code::InvalidRequest, text);
    LastWords { code: CloseCode::Away, reason: reason.to_owned(), error: Some(Box::new(refusal)) }
}
