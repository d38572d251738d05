//! Opening a session: the first hold, the provider, and then everything that its loop needs.

use super::checks::ModelNames;
use super::context::InputEstimate;
use super::dial::{Dialled, SessionDial};
use super::listening::Listening;
use super::needs::{NextResponse, NextTranscript};
use super::outgoing::Masks;
use super::places::SessionPlace;
use super::relay::Relay;
use super::rooms::MessageRoom;
use super::socket::SessionSocket;
use super::talk::{AskedResponse, Shared, Talk};
use super::turns::TurnTaking;
use super::{ENDPOINT, RealtimeDesk};
use crate::call::{SessionCall, SessionTerms};
use crate::door::bodies::Whose;
use crate::refusal::Refusal;
use crate::settings::RealtimeSettings;
use crate::who::caller::Caller;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tollgate_media::realtime::{AudioFormat, LiveForm, LiveHearing};
use tollgate_store::CallId;
use tollgate_upstream::Provider;

/// What a client asks for when it opens a session.
pub struct Opening {
    pub caller: Arc<Caller>,
    pub model: String,
    /// The session only writes down what it hears; the model is one that does that.
    pub transcription: bool,
    /// The first configuration, where somebody has fixed one: a JSON object.
    pub configured: Option<Value>,
    /// The longest that this session may be, where that is less than the setting.
    pub longest: Option<Duration>,
    /// How the client speaks, where that is not OpenAI's GA interface.
    pub form: Option<Box<dyn LiveForm>>,
}

/// A session that is paid for and open at its provider; its client is not answered yet.
pub struct OpenSession {
    desk: Arc<RealtimeDesk>,
    shared: Shared,
    place: SessionPlace,
    call: SessionCall,
    dialled: Dialled,
    opening: Opening,
}

impl RealtimeDesk {
    /// Holds for the first response and opens the session at a provider.
    pub async fn open(self: &Arc<Self>, id: CallId, opening: Opening) -> Result<Box<OpenSession>, Refusal> {
        let place = self.places.take(&opening.caller, &self.settings)?;
        let session: Arc<str> = id.to_string().replacen("call_", "sess_", 1).into();
        let mut settings = self.settings.clone();
        settings.longest = opening.longest.map_or(settings.longest, |longest| longest.min(settings.longest));
        let terms = SessionTerms { till: self.till.clone(), session, endpoint: ENDPOINT, life: settings.longest };
        let dial = SessionDial { transcription: opening.transcription };
        let caller = opening.caller.clone();
        let (call, dialled) = if opening.transcription {
            let first = NextTranscript::first(&self.till.serving.load(), &opening.model)?;
            terms.first(caller, id, first, &dial).await?
        } else {
            let first = first_response(&self.till.serving.load(), &self.settings, &opening.model);
            terms.first(caller, id, first, &dial).await?
        };
        let shared = Shared { terms, caller: opening.caller.clone(), ids: self.ids.clone(), settings };
        Ok(Box::new(OpenSession { desk: self.clone(), shared, place, call, dialled, opening }))
    }
}

/// What the first response of a session with this model is held for.
pub fn first_response(serving: &crate::sale::Serving, settings: &RealtimeSettings, model: &str) -> NextResponse {
    let listed = serving.catalog.model(model).and_then(|model| model.max_output_tokens);
    let ceiling = settings.max_output_tokens.min(listed.unwrap_or(u64::MAX)).max(1);
    let input = InputEstimate::new(0, LiveHearing::default().per_second).with_room();
    NextResponse { model: model.to_owned(), input, output: settings.first_hold, ceiling }
}

impl OpenSession {
    /// Runs until it is over. `io` is the client's connection.
    pub async fn run<T: AsyncRead + AsyncWrite + Unpin>(self: Box<Self>, io: T) {
        // Apart, and gone when the session begins: there are many, and most of them are quiet.
        if let Some((relay, configured, _place)) = self.prepare(io) {
            relay.run(configured).await;
        }
    }

    fn prepare<T: AsyncRead + AsyncWrite + Unpin>(
        self: Box<Self>,
        io: T,
    ) -> Option<(Box<Relay<T>>, Option<Value>, SessionPlace)> {
        let OpenSession { desk, shared, place, call, dialled, opening } = *self;
        let (provider, upstream) = call.provider().map(|(provider, name)| (provider, name.to_owned()))?;
        let Dialled { io: server, form: mut server_form } = dialled;
        let Opening { transcription, configured, form: mut client_form, .. } = opening;
        if let (Some(ours), Some(theirs)) = (&mut client_form, &mut server_form)
            && !ours.kind().is_empty()
            && ours.kind() == theirs.kind()
        {
            ours.pair();
            theirs.pair();
        }
        let (ours, theirs) = (shared.settings.message_bytes, shared.settings.provider_message_bytes);
        let whose = Whose::Account(shared.caller.account.id);
        let room = |longest| MessageRoom::new(desk.bodies.clone(), whose, longest);
        let mut seed = [0; 8];
        desk.till.world.fill(&mut seed);
        let hearing = server_form.as_ref().map(|form| form.hearing()).unwrap_or_default();
        let hearing = hearing.at(provider.settings.live_heard, provider.settings.live_said);
        let talk = first_talk(shared, call, provider, upstream, transcription, hearing);
        let relay = Relay::new(
            SessionSocket::of_client(io, room(ours)),
            SessionSocket::of_provider(server, room(theirs), Masks::new(seed)),
            [client_form, server_form],
            talk,
        );
        Some((Box::new(relay), configured, place))
    }
}

/// A session in which nothing was said, with the hold for what is said first.
fn first_talk(
    shared: Shared,
    call: SessionCall,
    provider: Arc<Provider>,
    upstream: String,
    transcription: bool,
    hearing: LiveHearing,
) -> Talk {
    let model = call.model().clone();
    let settings = &shared.settings;
    let most_output = model.max_output_tokens.unwrap_or(u64::MAX).max(1);
    let limit = settings.max_output_tokens.min(most_output);
    let most_output = most_output.min(settings.max_output_tokens.max(4_096));
    let (standing, listening) = match transcription {
        true => (None, Listening::with(call, upstream.clone(), hearing.per_second)),
        false => (Some(call), Listening::at(hearing.per_second)),
    };
    Talk {
        names: ModelNames { public: model.name.clone(), upstream },
        session_id: shared.terms.session.clone(),
        provider,
        standing,
        reserve: None,
        promised: None,
        turns: TurnTaking::new(hearing.answers_itself, Instant::now()),
        asked: AskedResponse::default(),
        running: BTreeMap::new(),
        unpaid_items: HashSet::new(),
        context: InputEstimate::new(model.chat.image_tokens, hearing.per_second),
        spoken: AudioFormat::PCM,
        said_per_second: hearing.said_per_second,
        limit,
        most_output,
        listening,
        hears_itself: hearing.writes_down,
        transcription,
        own_update: false,
        warnings: Vec::new(),
        to_client: Vec::new(),
        to_provider: Vec::new(),
        errors: 0,
        ending: None,
        shared,
    }
}
