//! Opening a session: the first hold, the provider, and then everything that its loop needs.

use super::checks::ModelNames;
use super::context::InputEstimate;
use super::dial::{Dialled, SessionDial};
use super::listening::Listening;
use super::needs::{NextResponse, NextTranscript};
use super::places::SessionPlace;
use super::relay::Relay;
use super::socket::SessionSocket;
use super::talk::{AskedResponse, Shared, Talk};
use super::{ENDPOINT, RealtimeDesk};
use crate::call::{SessionCall, SessionTerms};
use crate::door::bodies::Whose;
use crate::door::counted::Counted;
use crate::refusal::Refusal;
use crate::settings::RealtimeSettings;
use crate::who::caller::Caller;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::Role;
use tollgate_media::realtime::{AudioFormat, LiveForm};
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
    pub async fn open(self: &Arc<Self>, id: CallId, opening: Opening) -> Result<OpenSession, Refusal> {
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
        Ok(OpenSession { desk: self.clone(), shared, place, call, dialled, opening })
    }
}

/// What the first response of a session with this model is held for.
pub fn first_response(serving: &crate::sale::Serving, settings: &RealtimeSettings, model: &str) -> NextResponse {
    let listed = serving.catalog.model(model).and_then(|model| model.max_output_tokens);
    let ceiling = settings.max_output_tokens.min(listed.unwrap_or(u64::MAX)).max(1);
    let input = InputEstimate::new(0).with_room();
    NextResponse { model: model.to_owned(), input, output: settings.first_hold, ceiling }
}

impl OpenSession {
    /// Runs until it is over. `io` is the client's connection.
    pub async fn run<T: AsyncRead + AsyncWrite + Unpin>(self, io: T) {
        let OpenSession { desk, shared, place, call, dialled, opening } = self;
        let Some((provider, upstream)) = call.provider().map(|(provider, name)| (provider, name.to_owned())) else {
            return;
        };
        let Dialled { io: server, form: mut server_form } = dialled;
        let Opening { transcription, configured, form: mut client_form, .. } = opening;
        if let (Some(ours), Some(theirs)) = (&mut client_form, &mut server_form)
            && !ours.kind().is_empty()
            && ours.kind() == theirs.kind()
        {
            ours.pair();
            theirs.pair();
        }
        let settings = shared.settings.clone();
        let whose = Whose::Account(shared.caller.account.id);
        let client = Counted::new(io, desk.bodies.clone(), whose, settings.message_bytes);
        let server = Counted::new(server, desk.bodies.clone(), whose, settings.provider_message_bytes);
        let hears_itself = server_form.as_ref().is_some_and(|form| form.hears_itself());
        let talk = first_talk(shared, call, provider, upstream, transcription, hears_itself);
        let relay = Relay::new(
            SessionSocket::new(client, Role::Server, settings.message_bytes).await,
            SessionSocket::new(server, Role::Client, settings.provider_message_bytes).await,
            [client_form, server_form],
            talk,
        );
        relay.run(configured).await;
        drop(place);
    }
}

/// A session in which nothing was said, with the hold for what is said first.
fn first_talk(
    shared: Shared,
    call: SessionCall,
    provider: Arc<Provider>,
    upstream: String,
    transcription: bool,
    hears_itself: bool,
) -> Talk {
    let model = call.model().clone();
    let settings = &shared.settings;
    let most_output = model.max_output_tokens.unwrap_or(u64::MAX).max(1);
    let limit = settings.max_output_tokens.min(most_output);
    let most_output = most_output.min(settings.max_output_tokens.max(4_096));
    let (standing, listening) = match transcription {
        true => (None, Listening::with(call, upstream.clone())),
        false => (Some(call), Listening::default()),
    };
    Talk {
        names: ModelNames { public: model.name.clone(), upstream },
        session_id: shared.terms.session.clone(),
        provider,
        standing,
        promised: None,
        asked: AskedResponse::default(),
        running: BTreeMap::new(),
        unpaid_items: HashSet::new(),
        context: InputEstimate::new(model.chat.image_tokens),
        spoken: AudioFormat::PCM,
        limit,
        most_output,
        listening,
        hears_itself,
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
