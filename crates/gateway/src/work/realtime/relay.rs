//! The loop of a session: two sockets, one task.
//!
//! A side is read only while the other side's queue has room, so a slow reader stops the one that
//! speaks to it and nothing piles up here. Whoever leaves, whatever breaks and whoever runs out of
//! money, the calls that run are closed by what they produced, and both sides hear of it.

use super::ending::{LastWords, error_event};
use super::pace::ClientPace;
use super::socket::{SessionSocket, SocketInput};
use super::talk::{CANCELLED, LAST_RESPONSE, OWN_UPDATE, RunningResponse, Talk};
use crate::door::bodies::BodyShare;
use crate::refusal::Refusal;
use crate::settings::RealtimeSettings;
use crate::shutdown::Shutdown;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tollgate_media::realtime::{LiveFault, LiveForm, LiveFrame};
use tollgate_store::Ending;
use tollgate_upstream::Upgraded;
use tollgate_wire::error::Code;

/// Messages of one side that are taken before the other side gets what there is.
const IN_A_ROW: u8 = 8;
/// How often clocks and keys are looked at.
const TICK: Duration = Duration::from_secs(1);
/// A response that nobody hears any more is given so long to say what it used.
const ABANDONED: Duration = Duration::from_secs(5);
/// One that was asked for is waited for so long: until then no other may be.
const UNBEGUN: Duration = Duration::from_secs(30);
/// Bytes of audio that may wait here until it may be spoken.
const UNSPOKEN: usize = 1 << 20;

/// Both sockets and what lies between them.
pub struct Relay<T> {
    client: SessionSocket<T>,
    server: SessionSocket<Upgraded>,
    client_form: Option<Box<dyn LiveForm>>,
    server_form: Option<Box<dyn LiveForm>>,
    settings: RealtimeSettings,
    talk: Talk,
    pace: ClientPace,
    /// Who is read first, and how often that one was by now.
    client_first: bool,
    in_a_row: u8,
    /// When clocks and keys are looked at next, and what wakes the session for that.
    tick_at: Instant,
    alarm: Pin<Box<Sleep>>,
    shutdown: Arc<Shutdown>,
    /// The client sent too fast and is read again from then on.
    resume_at: Option<Instant>,
    /// Events of the client that wait, the first of them for a response that was asked for before.
    unasked: VecDeque<Utf8Bytes>,
    /// Output that waits for money, with its response, and what came after it.
    withheld: Option<(String, Utf8Bytes)>,
    unheard: VecDeque<Utf8Bytes>,
    /// What the message that is being read takes of the budget, by the side that it goes to.
    room_to_client: Option<BodyShare>,
    room_to_server: Option<BodyShare>,
    /// When anybody last said something.
    said_at: Instant,
    began: Instant,
}

/// What came, and from whom.
enum Frame {
    OfClient(SocketInput),
    OfServer(SocketInput),
}

/// How the loop goes on.
enum Next {
    Go,
    Over(LastWords),
    /// The client is not there any more.
    ClientGone,
    /// The provider is not there any more.
    ProviderGone(LastWords),
}

impl<T: AsyncRead + AsyncWrite + Unpin> Relay<T> {
    /// `forms` are those of the client and of the provider.
    pub fn new(
        client: SessionSocket<T>,
        server: SessionSocket<Upgraded>,
        forms: [Option<Box<dyn LiveForm>>; 2],
        talk: Talk,
    ) -> Relay<T> {
        let now = Instant::now();
        let [client_form, server_form] = forms;
        let settings = talk.shared.settings.clone();
        Relay {
            client,
            server,
            client_form,
            server_form,
            pace: ClientPace::new(&settings, now),
            client_first: true,
            in_a_row: 0,
            tick_at: now + TICK,
            alarm: Box::pin(tokio::time::sleep_until(now + TICK)),
            shutdown: talk.shared.terms.till.shutdown.clone(),
            resume_at: None,
            unasked: VecDeque::new(),
            withheld: None,
            unheard: VecDeque::new(),
            room_to_client: None,
            room_to_server: None,
            said_at: now,
            began: now,
            settings,
            talk,
        }
    }

    pub async fn run(mut self: Box<Self>, configured: Option<Value>) {
        // The first thing that a provider hears: no response without an end.
        self.talk.own_update = true;
        let session = match self.talk.transcription {
            true => {
                let transcription = json!({ "model": self.talk.names.upstream });
                json!({ "type": "transcription", "audio": { "input": { "transcription": transcription } } })
            }
            false => {
                let mut session = json!({ "type": "realtime", "max_output_tokens": self.talk.limit });
                if let Some(detection) = self.talk.turns.own_setting() {
                    session["audio"]["input"]["turn_detection"] = detection;
                }
                session
            }
        };
        let update = json!({ "type": "session.update", "event_id": OWN_UPDATE, "session": session });
        self.talk.to_provider.push(update.to_string().into());
        if let Some(session) = configured {
            let update = json!({ "type": "session.update", "session": session }).to_string();
            self.talk.client_said(update.into()).await;
        }
        let next = loop {
            match self.follow().await {
                Next::Go => {}
                over => break over,
            }
            match self.step().await {
                Next::Go => {}
                over => break over,
            }
        };
        Box::pin(self.finish(next)).await;
    }

    /// Delivers what there is, and what the forms of both sides say by themselves after it.
    async fn follow(&mut self) -> Next {
        loop {
            self.ask_on().await;
            match self.deliver() {
                Next::Go => {}
                over => return over,
            }
            let more = |form: &mut Option<Box<dyn LiveForm>>| form.as_mut().map(|form| form.more()).unwrap_or_default();
            let (asked, to_client) = more(&mut self.client_form);
            let (said, to_server) = more(&mut self.server_form);
            to_client.into_iter().for_each(|frame| self.client.say(message(frame)));
            to_server.into_iter().for_each(|frame| self.server.say(message(frame)));
            if asked.is_empty() && said.is_empty() {
                return Next::Go;
            }
            self.unasked.extend(asked.into_iter().map(Utf8Bytes::from));
            self.unheard.extend(said.into_iter().map(Utf8Bytes::from));
            match self.hear().await {
                Next::Go => {}
                over => return over,
            }
        }
    }

    /// Puts what the talk has to say into the queues of both sides.
    fn deliver(&mut self) -> Next {
        for event in self.talk.to_provider.drain(..) {
            match self.server_form.as_mut().map(|form| form.write(event.as_str().to_owned())) {
                None => self.server.say_text(event),
                Some(Ok(frames)) => frames.into_iter().for_each(|frame| self.server.say(message(frame))),
                Some(Err(fault)) => {
                    self.talk.errors += 1;
                    let refusal = Refusal::new(Code::UnsupportedValue, fault.0);
                    self.talk.to_client.push(error_event(self.talk.errors, &refusal, None).to_string().into());
                }
            }
        }
        // There is no other way to say it in this form.
        if let Err(fault) = self.tell_client() {
            return Next::Over(LastWords::plain(CloseCode::Invalid, &fault.0));
        }
        self.client.keep(self.room_to_client.take());
        self.server.keep(self.room_to_server.take());
        match &self.talk.ending {
            Some((_, until)) if self.talk.running.is_empty() || Instant::now() >= *until => {
                let (words, _) = self.talk.ending.take().expect("looked at just now");
                Next::Over(words)
            }
            _ => Next::Go,
        }
    }

    /// What the client is to hear goes into its queue, in its form.
    fn tell_client(&mut self) -> Result<(), LiveFault> {
        for event in self.talk.to_client.drain(..) {
            match &mut self.client_form {
                None => self.client.say_text(event),
                Some(form) => {
                    form.write(event.as_str().to_owned())?
                        .into_iter()
                        .for_each(|frame| self.client.say(message(frame)));
                }
            }
        }
        Ok(())
    }

    async fn step(&mut self) -> Next {
        let now = Instant::now();
        if self.shutdown.cut.is_cancelled() {
            return Next::Over(stopping());
        }
        if self.talk.ending.is_none() && self.shutdown.stopping.is_cancelled() {
            self.talk.end_soon(stopping(), self.talk.shared.terms.till.limits.drain_time);
            return Next::Go;
        }
        let paced = self.resume_at.is_none_or(|at| now >= at);
        let hears_client = self.may_ask() && paced && self.talk.ending.is_none() && self.server.has_room();
        let hears_server = self.withheld.is_none() && self.client.has_room();
        let wake = self.wake_at(now);
        if wake <= now {
            self.tick_at = now + TICK;
            return self.tick(hears_client, hears_server);
        }
        if self.alarm.deadline() != wake {
            self.alarm.as_mut().reset(wake);
        }
        let goes_on = self.talk.ending.is_none();
        let sides = poll_fn(|cx| {
            let (client, server) = (&mut self.client, &mut self.server);
            if self.client_first {
                if let Poll::Ready(heard) = client.poll(cx, hears_client) {
                    return Poll::Ready(Frame::OfClient(heard));
                }
                server.poll(cx, hears_server).map(Frame::OfServer)
            } else {
                if let Poll::Ready(heard) = server.poll(cx, hears_server) {
                    return Poll::Ready(Frame::OfServer(heard));
                }
                client.poll(cx, hears_client).map(Frame::OfClient)
            }
        });
        // What costs a lock to look at comes last: while frames come, the clock is read above.
        let frame = tokio::select! {
            biased;
            (response, extended) = extended(&mut self.talk.running) => {
                self.extended(&response, extended);
                return self.hear().await;
            }
            frame = sides => frame,
            () = self.shutdown.cut.cancelled() => return Next::Go,
            () = self.shutdown.stopping.cancelled(), if goes_on => return Next::Go,
            () = self.alarm.as_mut() => return Next::Go,
        };
        let of_client = matches!(frame, Frame::OfClient(_));
        self.takes_turns(of_client);
        match frame {
            Frame::OfClient(heard) => self.client_frame(heard).await,
            Frame::OfServer(heard) => self.server_frame(heard).await,
        }
    }

    /// A side that has more to say says some of it before the other one gets what there is: it is
    /// written in one go.
    fn takes_turns(&mut self, of_client: bool) {
        if self.client_first != of_client {
            (self.client_first, self.in_a_row) = (of_client, 0);
        }
        self.in_a_row += 1;
        if self.in_a_row >= IN_A_ROW {
            (self.client_first, self.in_a_row) = (!of_client, 0);
        }
    }

    /// May the client go on? Not while an event of its waits, unless that is audio that waits to
    /// be spoken: behind it pings and a close are read.
    fn may_ask(&self) -> bool {
        let waiting = || self.unasked.iter().map(|event| event.as_str().len()).sum::<usize>();
        self.unasked.is_empty() || (self.talk.turns.ready_at().is_some() && waiting() < UNSPOKEN)
    }

    fn wake_at(&self, now: Instant) -> Instant {
        let ending = self.talk.ending.as_ref().map(|(_, until)| *until);
        [self.resume_at, ending, self.talk.turns.ready_at()]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .fold(self.tick_at, Instant::min)
    }

    async fn client_frame(&mut self, heard: SocketInput) -> Next {
        let now = Instant::now();
        let (frame, room) = match heard {
            SocketInput::Text(text, room) => (Message::Text(text), room),
            SocketInput::Binary(..) if self.client_form.is_none() => {
                let words = LastWords::plain(CloseCode::Unsupported, "events are text");
                return Next::Over(words);
            }
            SocketInput::Binary(bytes, room) => (Message::Binary(bytes), room),
            SocketInput::Closed(_) | SocketInput::Gone => return Next::ClientGone,
            SocketInput::TooLarge => {
                let text = format!("A message has at most {} bytes.", self.settings.message_bytes);
                return Next::Over(LastWords::fault(Code::BodyTooLarge, &text));
            }
            SocketInput::NoRoom => {
                let text = "Too many large messages are being served; open the session again.";
                return Next::Over(LastWords::fault(Code::Overloaded, text));
            }
            SocketInput::Garbage => {
                return Next::Over(LastWords::plain(CloseCode::Protocol, "not a WebSocket message"));
            }
        };
        self.said_at = now;
        self.room_to_server = room;
        self.resume_at = self.pace.came(frame.len(), now);
        match read(self.client_form.as_deref_mut(), frame) {
            Ok(events) => self.unasked.extend(events),
            Err(text) => self.talk.refuse(&Refusal::new(Code::InvalidRequest, text), None),
        }
        Next::Go
    }

    /// Takes the client's events one by one, up to one that has to wait.
    async fn ask_on(&mut self) {
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

    async fn server_frame(&mut self, heard: SocketInput) -> Next {
        let garbage = || LastWords::fault(Code::UpstreamInvalidReply, "The provider sent what is no event.");
        let (frame, room) = match heard {
            SocketInput::Text(text, room) => (Message::Text(text), room),
            SocketInput::Binary(..) if self.server_form.is_none() => return Next::ProviderGone(garbage()),
            SocketInput::Binary(bytes, room) => (Message::Binary(bytes), room),
            SocketInput::Closed(frame) => return Next::ProviderGone(LastWords::closed_by_provider(frame.as_ref())),
            SocketInput::Gone => return Next::ProviderGone(LastWords::closed_by_provider(None)),
            SocketInput::NoRoom => {
                let text = "There is no room for what the provider sends; open the session again.";
                return Next::ProviderGone(LastWords::fault(Code::Overloaded, text));
            }
            SocketInput::TooLarge | SocketInput::Garbage => return Next::ProviderGone(garbage()),
        };
        self.said_at = Instant::now();
        let Ok(events) = read(self.server_form.as_deref_mut(), frame) else { return Next::ProviderGone(garbage()) };
        self.room_to_client = room;
        self.unheard.extend(events);
        self.hear().await
    }

    /// Takes the provider's events one by one, up to one that has to wait for money.
    async fn hear(&mut self) -> Next {
        while self.withheld.is_none()
            && let Some(event) = self.unheard.pop_front()
        {
            match self.talk.provider_said(event).await {
                Ok(withheld) => self.withheld = withheld,
                Err(words) => return Next::ProviderGone(words),
            }
        }
        Next::Go
    }

    /// More is held for a response, or is not.
    fn extended(&mut self, response: &str, extended: Result<(), Refusal>) {
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

    /// Looks at the clocks, the sockets and the key.
    fn tick(&mut self, hears_client: bool, hears_server: bool) -> Next {
        let now = Instant::now();
        let (every, silence) = (self.settings.ping_every, self.settings.silence);
        let client = self.client.look(now, hears_client, every, silence);
        if !self.server.look(now, hears_server, every, silence) {
            let text = "The provider does not answer any more.";
            return Next::ProviderGone(LastWords::fault(Code::UpstreamTimeout, text));
        }
        if !client {
            return Next::ClientGone;
        }
        self.talk.running.values_mut().for_each(|one| one.call.look());
        if self.talk.promised.as_ref().is_some_and(|promised| now - promised.at > UNBEGUN) {
            self.talk.promised = None;
        }
        if self.talk.ending.is_some() {
            return Next::Go;
        }
        if let Some(words) = self.talk.key_is_gone() {
            self.talk.end_soon(words, CANCELLED);
        } else if now - self.began >= self.settings.longest {
            let text = "The session is as long as a session may be; open another one.";
            self.talk.end_soon(over_time("session_expired", text), LAST_RESPONSE);
        } else if now - self.said_at >= self.settings.hold_time && self.talk.is_quiet() {
            self.talk.rest();
        }
        if now - self.said_at >= self.settings.idle_time {
            let text = "Nothing was said for a long time; open another session.";
            self.talk.end_soon(over_time("session_idle", text), LAST_RESPONSE);
        }
        Next::Go
    }

    /// Whatever still runs is closed, and both sides hear of it.
    async fn finish(mut self: Box<Self>, next: Next) {
        let (ending, reason, words) = match next {
            Next::Go => return,
            Next::ClientGone => {
                self.hear_out().await;
                (Ending::ClientLeft, "client_gone", None)
            }
            Next::ProviderGone(words) => (Ending::UpstreamFault, "upstream_gone", Some(words)),
            Next::Over(words) => (Ending::Refused, "session_ended", Some(words)),
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

    /// The client has left: what runs is cancelled, and has a moment to say what it used.
    async fn hear_out(&mut self) {
        let ids: Vec<String> = self.talk.running.keys().cloned().collect();
        for id in &ids {
            self.talk.cancel(id);
        }
        let until = Instant::now() + ABANDONED;
        let cut = self.talk.shared.terms.till.shutdown.cut.clone();
        while self.talk.owes() {
            self.talk.to_client.clear();
            if !matches!(self.deliver(), Next::Go | Next::Over(_)) {
                return;
            }
            let heard = tokio::select! {
                heard = self.server.heard(true) => heard,
                () = tokio::time::sleep_until(until) => return,
                () = cut.cancelled() => return,
            };
            if !matches!(self.server_frame(heard).await, Next::Go) {
                return;
            }
        }
    }
}

fn stopping() -> LastWords {
    LastWords::fault(Code::ServerDraining, "The server is stopping; open the session again.")
}

fn over_time(reason: &str, text: &str) -> LastWords {
    let refusal = Refusal::new(Code::InvalidRequest, text);
    LastWords { code: CloseCode::Away, reason: reason.to_owned(), error: Some(Box::new(refusal)) }
}

fn message(frame: LiveFrame) -> Message {
    match frame {
        LiveFrame::Text(text) => Message::Text(text.into()),
        LiveFrame::Binary(bytes) => Message::Binary(bytes),
    }
}

/// The events of a frame; where it is one already, as it came.
fn read(form: Option<&mut (dyn LiveForm + 'static)>, frame: Message) -> Result<Vec<Utf8Bytes>, String> {
    match (form, frame) {
        (None, Message::Text(text)) => Ok(vec![text]),
        (Some(form), Message::Text(text)) => {
            let events = form.read(LiveFrame::Text(text.as_str().to_owned())).map_err(|fault| fault.0)?;
            Ok(events.into_iter().map(Utf8Bytes::from).collect())
        }
        (Some(form), Message::Binary(bytes)) => {
            let events = form.read(LiveFrame::Binary(bytes)).map_err(|fault| fault.0)?;
            Ok(events.into_iter().map(Utf8Bytes::from).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// The answer to what the first of all running responses asked for.
async fn extended(running: &mut BTreeMap<String, RunningResponse>) -> (String, Result<(), Refusal>) {
    poll_fn(|cx| {
        for (id, one) in running.iter_mut() {
            if let Poll::Ready(answer) = one.call.poll_extended(cx) {
                return Poll::Ready((id.clone(), answer));
            }
        }
        Poll::Pending
    })
    .await
}
