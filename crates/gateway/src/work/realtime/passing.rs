//! What passes in a session: frames become events, events are looked at one by one, and what waits
//! for money or for its turn waits in order. Most frames are audio that is held for already: it
//! goes from what was read of one socket into what is written to the other.

use super::ending::LastWords;
use super::relay::{Relay, SessionNext};
use super::socket::SocketInput;
use crate::refusal::Refusal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tollgate_media::realtime::{LiveForm, LiveFrame};
use tollgate_wire::error::Code;

impl<T: AsyncRead + AsyncWrite + Unpin> Relay<T> {
    /// Takes what was read of both sides already. Nothing: all of it is passed on, or may not be
    /// now.
    pub(super) async fn take_read(&mut self, now: Instant) -> Option<SessionNext> {
        while self.hears_server()
            && let Some(input) = self.next_of_server()
        {
            if !matches!(input, SocketInput::Passed) {
                return Some(self.server_frame(input, now).await);
            }
            self.said_at = now;
        }
        while self.hears_client(now)
            && let Some(input) = self.next_of_client(now)
        {
            if !matches!(input, SocketInput::Passed) {
                return Some(self.client_frame(input, now).await);
            }
            self.said_at = now;
        }
        None
    }

    fn next_of_server(&mut self) -> Option<SocketInput> {
        let plain = self.server_form.is_none() && self.client_form.is_none();
        let Relay { talk, client, server, .. } = self;
        server.next_read(|event| {
            let passes = plain && talk.passes_output(event);
            if passes {
                client.say_text(event);
            }
            passes
        })
    }

    fn next_of_client(&mut self, now: Instant) -> Option<SocketInput> {
        let plain = self.server_form.is_none() && self.client_form.is_none() && self.unasked.is_empty();
        let Relay { talk, client, server, pace, resume_at, .. } = self;
        client.next_read(|event| {
            let passes = plain && talk.passes_audio(event, now);
            if passes {
                *resume_at = pace.came(event.len(), now);
                server.say_text(event);
            }
            passes
        })
    }

    pub(super) async fn client_frame(&mut self, heard: SocketInput, now: Instant) -> SessionNext {
        let (frame, room) = match heard {
            SocketInput::Text(text, room) => (Received::Text(text), room),
            SocketInput::Binary(..) if self.client_form.is_none() => {
                let words = LastWords::plain(CloseCode::Unsupported, "events are text");
                return SessionNext::Over(words);
            }
            SocketInput::Binary(bytes, room) => (Received::Other(LiveFrame::Binary(bytes)), room),
            SocketInput::Passed => return SessionNext::Go,
            SocketInput::Aside => {
                // Nobody is paid by it, and nobody says anything by it; but it is work.
                self.resume_at = self.pace.came(0, now);
                return SessionNext::Go;
            }
            SocketInput::Closed(_) | SocketInput::Gone => return SessionNext::ClientGone,
            SocketInput::TooLarge => {
                let text = format!("A message has at most {} bytes.", self.settings.message_bytes);
                return SessionNext::Over(LastWords::fault(Code::BodyTooLarge, &text));
            }
            SocketInput::NoRoom => {
                let text = "Too many large messages are being served; open the session again.";
                return SessionNext::Over(LastWords::fault(Code::Overloaded, text));
            }
            SocketInput::Garbage => {
                return SessionNext::Over(LastWords::plain(CloseCode::Protocol, "not a WebSocket message"));
            }
        };
        self.said_at = now;
        self.rooms_to_server.extend(room);
        self.resume_at = self.pace.came(frame.len(), now);
        match read(self.client_form.as_deref_mut(), frame) {
            Ok(events) => self.unasked.extend(events),
            Err(text) => self.talk.refuse(&Refusal::new(Code::InvalidRequest, text), None),
        }
        SessionNext::Go
    }

    /// Takes the client's events one by one, up to one that has to wait.
    pub(super) async fn ask_on(&mut self) {
        self.talk.answer_turn().await;
        while self.talk.ending.is_none()
            && let Some(event) = self.unasked.pop_front()
        {
            if let Some(pieces) = self.talk.in_pieces(&event) {
                pieces.into_iter().rev().for_each(|piece| self.unasked.push_front(piece.into()));
                continue;
            }
            if let Some(waiting) = self.talk.client_said(event).await {
                self.unasked.push_front(waiting);
                return;
            }
        }
    }

    pub(super) async fn server_frame(&mut self, heard: SocketInput, now: Instant) -> SessionNext {
        let garbage = || LastWords::fault(Code::UpstreamInvalidReply, "The provider sent what is no event.");
        let (frame, room) = match heard {
            SocketInput::Text(text, room) => (Received::Text(text), room),
            SocketInput::Binary(..) if self.server_form.is_none() => return SessionNext::ProviderGone(garbage()),
            SocketInput::Binary(bytes, room) => (Received::Other(LiveFrame::Binary(bytes)), room),
            SocketInput::Passed | SocketInput::Aside => return SessionNext::Go,
            SocketInput::Closed(frame) => {
                return SessionNext::ProviderGone(LastWords::closed_by_provider(frame.as_ref()));
            }
            SocketInput::Gone => return SessionNext::ProviderGone(LastWords::closed_by_provider(None)),
            SocketInput::NoRoom => {
                let text = "There is no room for what the provider sends; open the session again.";
                return SessionNext::ProviderGone(LastWords::fault(Code::Overloaded, text));
            }
            SocketInput::TooLarge | SocketInput::Garbage => return SessionNext::ProviderGone(garbage()),
        };
        self.said_at = now;
        let Ok(events) = read(self.server_form.as_deref_mut(), frame) else {
            return SessionNext::ProviderGone(garbage());
        };
        self.rooms_to_client.extend(room);
        self.unheard.extend(events);
        self.hear().await
    }

    /// Takes the provider's events one by one, up to one that has to wait for money.
    pub(super) async fn hear(&mut self) -> SessionNext {
        while self.withheld.is_none()
            && let Some(event) = self.unheard.pop_front()
        {
            match self.talk.provider_said(event).await {
                Ok(withheld) => self.withheld = withheld,
                Err(words) => return SessionNext::ProviderGone(words),
            }
        }
        SessionNext::Go
    }

    /// More is held for a response, or is not.
    pub(super) fn extended(&mut self, response: &str, extended: Result<(), Refusal>) {
        match extended {
            Ok(()) => {
                if let Some((id, event)) = self.withheld.take() {
                    self.withheld = self.talk.pass_output(&id, event);
                }
            }
            Err(refusal) => {
                self.withheld = None;
                self.talk.stop_response(response, LastWords::refused(refusal));
            }
        }
    }
}

/// A message; of text nothing is copied where it passes as it came.
enum Received {
    Text(Utf8Bytes),
    Other(LiveFrame),
}

impl Received {
    fn len(&self) -> usize {
        match self {
            Received::Text(text) => text.len(),
            Received::Other(LiveFrame::Text(text)) => text.len(),
            Received::Other(LiveFrame::Binary(bytes)) => bytes.len(),
        }
    }
}

/// The events of a frame; where it is one already, as it came.
fn read(form: Option<&mut (dyn LiveForm + 'static)>, frame: Received) -> Result<Vec<Utf8Bytes>, String> {
    let frame = match (&form, frame) {
        (None, Received::Text(text)) => return Ok(vec![text]),
        (Some(_), Received::Text(text)) => LiveFrame::Text(text.as_str().to_owned()),
        (_, Received::Other(frame)) => frame,
    };
    let Some(form) = form else { return Ok(Vec::new()) };
    let events = form.read(frame).map_err(|fault| fault.0)?;
    Ok(events.into_iter().map(Utf8Bytes::from).collect())
}
