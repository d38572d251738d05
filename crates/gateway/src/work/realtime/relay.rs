//! The loop of a session: two sockets, one task.
//!
//! A side is read only while the other side's queue has room, so a slow reader stops the one that
//! speaks to it and nothing piles up here. Whoever leaves, whatever breaks and whoever runs out of
//! money, the calls that run are closed by what they produced, and both sides hear of it.

use super::ending::LastWords;
use super::leaving::{over_time, stopping};
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
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tollgate_media::realtime::{LiveFault, LiveForm};
use tollgate_upstream::Upgraded;
use tollgate_wire::error::Code;

/// How often clocks, keys and the server's own end are looked at.
const TICK: Duration = Duration::from_secs(1);
/// One that was asked for is waited for so long: until then no other may be.
const UNBEGUN: Duration = Duration::from_secs(30);

/// Both sockets and what lies between them.
pub struct Relay<T> {
    pub(super) client: SessionSocket<T>,
    pub(super) server: SessionSocket<Upgraded>,
    pub(super) client_form: Option<Box<dyn LiveForm>>,
    pub(super) server_form: Option<Box<dyn LiveForm>>,
    pub(super) settings: RealtimeSettings,
    pub(super) talk: Talk,
    pub(super) pace: ClientPace,
    /// When clocks and keys are looked at next, and what wakes the session for that.
    tick_at: Instant,
    alarm: Pin<Box<Sleep>>,
    shutdown: Arc<Shutdown>,
    /// The client sent too fast and is read again from then on.
    pub(super) resume_at: Option<Instant>,
    /// Events of the client that wait, the first of them for a response that was asked for before.
    pub(super) unasked: VecDeque<Utf8Bytes>,
    /// Output that waits for money, with its response, and what came after it.
    pub(super) withheld: Option<(String, Utf8Bytes)>,
    pub(super) unheard: VecDeque<Utf8Bytes>,
    /// What long messages that wait here take of the budget, by the side that they go to.
    pub(super) rooms_to_client: Vec<BodyShare>,
    pub(super) rooms_to_server: Vec<BodyShare>,
    /// When anybody last said something.
    pub(super) said_at: Instant,
    began: Instant,
}

/// What woke the session.
enum Woken {
    /// Something was read, or there is room again.
    Go,
    OfClient(SocketInput),
    OfServer(SocketInput),
}

/// How the loop goes on.
pub(super) enum SessionNext {
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
            tick_at: now + TICK,
            alarm: Box::pin(tokio::time::sleep_until(now + TICK)),
            shutdown: talk.shared.terms.till.shutdown.clone(),
            resume_at: None,
            unasked: VecDeque::new(),
            withheld: None,
            unheard: VecDeque::new(),
            rooms_to_client: Vec::new(),
            rooms_to_server: Vec::new(),
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
                SessionNext::Go => {}
                over => break over,
            }
            match self.step().await {
                SessionNext::Go => {}
                over => break over,
            }
        };
        Box::pin(self.finish(next)).await;
    }

    /// Delivers what there is, and what the forms of both sides say by themselves after it.
    async fn follow(&mut self) -> SessionNext {
        loop {
            self.ask_on().await;
            match self.deliver() {
                SessionNext::Go => {}
                over => return over,
            }
            let more = |form: &mut Option<Box<dyn LiveForm>>| form.as_mut().map(|form| form.more()).unwrap_or_default();
            let (asked, to_client) = more(&mut self.client_form);
            let (said, to_server) = more(&mut self.server_form);
            to_client.iter().for_each(|frame| self.client.say(frame));
            to_server.iter().for_each(|frame| self.server.say(frame));
            if asked.is_empty() && said.is_empty() {
                return SessionNext::Go;
            }
            self.unasked.extend(asked.into_iter().map(Utf8Bytes::from));
            self.unheard.extend(said.into_iter().map(Utf8Bytes::from));
            match self.hear().await {
                SessionNext::Go => {}
                over => return over,
            }
        }
    }

    /// Puts what the talk has to say into the queues of both sides.
    pub(super) fn deliver(&mut self) -> SessionNext {
        if self.unasked.is_empty() && !self.rooms_to_server.is_empty() {
            self.rooms_to_server.drain(..).for_each(|room| self.server.adopt(room));
        }
        if self.unheard.is_empty() && self.withheld.is_none() && !self.rooms_to_client.is_empty() {
            self.rooms_to_client.drain(..).for_each(|room| self.client.adopt(room));
        }
        let mut faults = Vec::new();
        for event in self.talk.to_provider.drain(..) {
            match self.server_form.as_mut().map(|form| form.write(event.as_str().to_owned())) {
                None => self.server.say_text(&event),
                Some(Ok(frames)) => frames.iter().for_each(|frame| self.server.say(frame)),
                Some(Err(fault)) => faults.push(fault),
            }
        }
        for fault in faults {
            self.talk.refuse(&Refusal::new(Code::UnsupportedValue, fault.0), None);
        }
        // There is no other way to say it in this form.
        if let Err(fault) = self.tell_client() {
            return SessionNext::Over(LastWords::plain(CloseCode::Invalid, &fault.0));
        }
        self.client.settle();
        self.server.settle();
        if self.talk.ending.is_none() {
            return SessionNext::Go;
        }
        let now = Instant::now();
        // What audio on its way begins is paid for before the session is over.
        let idle = self.talk.running.is_empty() && self.talk.promised.is_none();
        let done = idle && !self.talk.may_begin(now);
        match self.talk.ending.take_if(|(_, until)| done || now >= *until) {
            Some((words, _)) => SessionNext::Over(words),
            None => SessionNext::Go,
        }
    }

    /// What the client is to hear goes into its queue, in its form.
    pub(super) fn tell_client(&mut self) -> Result<(), LiveFault> {
        for event in self.talk.to_client.drain(..) {
            match &mut self.client_form {
                None => self.client.say_text(&event),
                Some(form) => {
                    form.write(event.as_str().to_owned())?.iter().for_each(|frame| self.client.say(frame));
                }
            }
        }
        Ok(())
    }

    async fn step(&mut self) -> SessionNext {
        let now = Instant::now();
        let wake = self.wake_at(now);
        if wake <= now {
            self.tick_at = now + TICK;
            return self.tick(now);
        }
        if let Some(next) = self.take_read(now).await {
            return next;
        }
        if self.alarm.deadline() != wake {
            self.alarm.as_mut().reset(wake);
        }
        let (hears_client, hears_server) = (self.hears_client(now), self.hears_server());
        let withheld = self.withheld.is_some();
        let asks = self.may_hear_client(now);
        let sides = poll_fn(|cx| {
            let (client, server) = (&mut self.client, &mut self.server);
            let of_client = client.poll(cx, hears_client);
            let of_server = server.poll(cx, hears_server);
            match (of_client, of_server) {
                (Poll::Ready(Err(input)), _) => return Poll::Ready(Woken::OfClient(input)),
                (_, Poll::Ready(Err(input))) => return Poll::Ready(Woken::OfServer(input)),
                (Poll::Pending, Poll::Pending) => {}
                _ => return Poll::Ready(Woken::Go),
            }
            // A side that was full takes more: whoever speaks to it is read again.
            let again =
                (!hears_server && !withheld && client.has_room()) || (!hears_client && asks && server.has_room());
            if again { Poll::Ready(Woken::Go) } else { Poll::Pending }
        });
        let woken = tokio::select! {
            biased;
            (response, extended) = extended(&mut self.talk.running) => {
                self.extended(&response, extended);
                return self.hear().await;
            }
            woken = sides => woken,
            () = self.alarm.as_mut() => Woken::Go,
        };
        match woken {
            Woken::Go => SessionNext::Go,
            Woken::OfClient(input) => self.client_frame(input, now).await,
            Woken::OfServer(input) => self.server_frame(input, now).await,
        }
    }

    pub(super) fn hears_client(&self, now: Instant) -> bool {
        self.server.has_room() && self.may_hear_client(now)
    }

    fn may_hear_client(&self, now: Instant) -> bool {
        let paced = self.resume_at.is_none_or(|at| now >= at);
        paced && self.may_ask() && self.talk.ending.is_none()
    }

    pub(super) fn hears_server(&self) -> bool {
        self.withheld.is_none() && self.client.has_room()
    }

    /// May the client go on? Not while an event of its waits, unless that is audio that waits to
    /// be spoken: behind it pings and a close are read. What waits is counted among all bodies.
    fn may_ask(&self) -> bool {
        let waiting = || self.unasked.iter().map(|event| event.as_str().len()).sum::<usize>();
        self.unasked.is_empty() || (self.talk.turns.ready_at().is_some() && waiting() < self.settings.message_bytes)
    }

    fn wake_at(&self, now: Instant) -> Instant {
        let ending = self.talk.ending.as_ref().map(|(_, until)| *until);
        let begun = ending.and_then(|_| self.talk.turns.may_begin_until());
        [self.resume_at, ending, begun, self.talk.turns.ready_at()]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .fold(self.tick_at, Instant::min)
    }

    /// Looks at the clocks, the sockets and the key.
    fn tick(&mut self, now: Instant) -> SessionNext {
        if self.shutdown.cut.is_cancelled() {
            return SessionNext::Over(stopping());
        }
        if self.talk.ending.is_none() && self.shutdown.stopping.is_cancelled() {
            self.talk.end_soon(stopping(), self.talk.shared.terms.till.limits.drain_time);
            return SessionNext::Go;
        }
        let (hears_client, hears_server) = (self.hears_client(now), self.hears_server());
        let (every, silence) = (self.settings.ping_every, self.settings.silence);
        let client = self.client.look(now, hears_client, every, silence);
        if !self.server.look(now, hears_server, every, silence) {
            let text = "The provider does not answer any more.";
            return SessionNext::ProviderGone(LastWords::fault(Code::UpstreamTimeout, text));
        }
        if !client {
            return SessionNext::ClientGone;
        }
        self.talk.running.values_mut().for_each(|one| one.call.look());
        if self.talk.promised.as_ref().is_some_and(|promised| now - promised.at > UNBEGUN) {
            self.talk.promised = None;
        }
        if self.talk.ending.is_some() {
            return SessionNext::Go;
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
        SessionNext::Go
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
