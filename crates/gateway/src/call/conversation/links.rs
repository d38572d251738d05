//! Pictures and documents that a request gives by their address, for a provider that takes the data only: Gemini, chat completions for
//! documents, and whoever is configured so. They are fetched once the call's money is held and before a byte of it is sent,
//! and put in the place of the links; then the request is translated like any other.
//!
//! The same link is fetched once for a call, whatever its routes. Before the hold it is only seen that the links are such as may be
//! fetched and that the request could be translated with data in their place.

use super::Conversation;
use crate::app::App;
use crate::call::open::Call;
use crate::call::why_refused;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::{StreamExt as _, stream};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use tollgate_catalog::Route;
use tollgate_upstream::{Fault, Provider, Room, Unfetched};
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Link, LinkKind, Linked as Data, Problem, Request, Sent};

/// Files of one call that are fetched at the same time.
const PARALLEL: usize = 4;
/// How often each link of a request may stand there, on the average: every place gets the data.
const PLACES_PER_LINK: usize = 16;
/// Data in the place of a link that was not fetched yet.
const PICTURE: Data<'static> = Data { mime: "image/png", base64: "" };
const DOCUMENT: Data<'static> = Data { mime: "application/pdf", base64: "" };

/// What is known of the links of one request.
#[derive(Default)]
pub(super) struct Linked {
    links: OnceLock<Vec<Link>>,
    fetched: Mutex<HashMap<String, Result<File, Problem>>>,
}

struct File {
    mime: &'static str,
    base64: String,
}

/// Which links a provider must get the data of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    None,
    Files,
    All,
}

impl Wants {
    fn has(self, link: &Link) -> bool {
        self == Wants::All || self == Wants::Files && link.kind == LinkKind::File
    }
}

impl Conversation {
    fn wants(&self, provider: &Provider, dialect: Dialect) -> Wants {
        match dialect {
            _ if !provider.settings.takes_links => Wants::All,
            // Where both speak the same, the client knows which links its model takes.
            _ if dialect == self.request.dialect => Wants::None,
            Dialect::Gemini => Wants::All,
            Dialect::Chat => Wants::Files,
            Dialect::Anthropic | Dialect::Responses => Wants::None,
        }
    }

    fn wanted(&self, wants: Wants) -> impl Iterator<Item = &Link> {
        let links = || self.linked.links.get_or_init(|| self.request.links().unwrap_or_default());
        let links = if wants == Wants::None { &[][..] } else { links() };
        links.iter().filter(move |link| wants.has(link))
    }

    /// Does this provider need the data of something that the request gives by its address?
    pub(super) fn wants_data(&self, provider: &Provider, dialect: Dialect) -> bool {
        self.wanted(self.wants(provider, dialect)).next().is_some()
    }

    /// Refuses links that are never fetched. The request comes back as if there were data already, to see whether it can be translated.
    pub(super) fn check_links(&self, app: &App, provider: &Provider, dialect: Dialect) -> Result<Request, Problem> {
        let settings = &app.settings.fetch;
        let wants = self.wants(provider, dialect);
        let most_places = settings.links_per_call.saturating_mul(PLACES_PER_LINK);
        let mut seen: Vec<&str> = Vec::new();
        for (place, link) in self.wanted(wants).enumerate() {
            if !settings.links {
                let message = format!("`{}`: the model's provider takes no links: send the data itself.", link.at);
                return Err(Problem { code: Code::UnsupportedValue, param: Some(link.at.clone()), message });
            }
            if place >= most_places {
                let why = format!("is one too many: data are put in at most {most_places} places of a request");
                return Err(wrong(link, &why));
            }
            if seen.contains(&link.url.as_str()) {
                continue;
            }
            app.links.address(&link.url).map_err(|why| told(app, link, why))?;
            seen.push(&link.url);
            if seen.len() > settings.links_per_call {
                let most = settings.links_per_call;
                return Err(wrong(link, &format!("is one too many: at most {most} links of a request are fetched")));
            }
        }
        let stand_in = |link: &Link| if link.kind == LinkKind::Picture { PICTURE } else { DOCUMENT };
        self.request.with_data(|link| wants.has(link).then(|| stand_in(link)))
    }

    /// The request for one route, with data in the place of its links.
    pub(super) async fn with_links(
        &self,
        call: &mut Call,
        provider: &Provider,
        route: &Route,
        dialect: Dialect,
    ) -> Result<Sent, Fault> {
        self.check_links(&call.app, provider, dialect).map_err(Fault::refusal)?;
        let wants = self.wants(provider, dialect);
        let until = call.deadline.min(Instant::now() + call.app.settings.fetch.time);
        let mut fetched = self.linked.fetched.lock().await;
        self.fetch(&call.app, wants, until, &mut fetched).await.map_err(Fault::refusal)?;
        let request = self.request.with_data(|link| {
            let file = fetched.get(&link.url).filter(|_| wants.has(link))?.as_ref().ok()?;
            Some(Data { mime: file.mime, base64: &file.base64 })
        });
        let request = request.map_err(Fault::refusal)?;
        cover(call, &request).await?;
        self.make(&request, &call.model, route, dialect).map_err(Fault::refusal)
    }

    /// Fetches what is wanted and not there yet. The first link that fails ends it, and is not tried again.
    async fn fetch(
        &self,
        app: &App,
        wants: Wants,
        until: Instant,
        fetched: &mut HashMap<String, Result<File, Problem>>,
    ) -> Result<(), Problem> {
        let mut missing: Vec<Link> = Vec::new();
        for link in self.wanted(wants) {
            if !fetched.contains_key(&link.url) && !missing.iter().any(|one| one.url == link.url) {
                missing.push(link.clone());
            }
        }
        // No more than the client could have sent itself, counted in letters of base64.
        let there: usize = fetched.values().flatten().map(|file| file.base64.len()).sum();
        let letters = app.settings.limits.body_bytes.saturating_sub(self.request.body().len() + there);
        let room = Room::new(letters / 4 * 3);
        let mut coming = stream::iter(missing).map(|link| fetch_one(app, link, &room, until)).buffered(PARALLEL);
        while let Some((url, outcome)) = coming.next().await {
            let failed = outcome.is_err();
            fetched.insert(url, outcome);
            if failed {
                break;
            }
        }
        let mut letters = self.request.body().len();
        for link in self.wanted(wants) {
            match fetched.get(&link.url) {
                Some(Err(problem)) => return Err(problem.clone()),
                // One file may be a picture in one place and a document in another.
                Some(Ok(file)) if link.kind == LinkKind::Picture && !file.mime.starts_with("image/") => {
                    return Err(wrong(link, "is not a picture"));
                }
                // Fetched once, it is written as often as the link stands there.
                Some(Ok(file)) => letters = letters.saturating_add(file.base64.len()),
                None => {}
            }
            if letters > app.settings.limits.body_bytes {
                return Err(told(app, link, Unfetched::TooMuch));
            }
        }
        Ok(())
    }
}

async fn fetch_one(app: &App, link: Link, room: &Room, until: Instant) -> (String, Result<File, Problem>) {
    let outcome = fetched_in_turn(app, &link, room, until).await;
    (link.url, outcome)
}

async fn fetched_in_turn(app: &App, link: &Link, room: &Room, until: Instant) -> Result<File, Problem> {
    let address = app.links.address(&link.url).map_err(|why| told(app, link, why))?;
    let Ok(Ok(_turn)) = timeout_at(until, app.fetches.acquire()).await else {
        let message = "The gateway is fetching too many files at the moment.".to_owned();
        return Err(Problem { code: Code::Overloaded, param: Some(link.at.clone()), message });
    };
    let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let fetched = app.links.fetch(&address, app.settings.fetch.link_bytes, room, left).await;
    let fetched = fetched.map_err(|why| told(app, link, why))?;
    Ok(File { mime: fetched.mime, base64: BASE64_STANDARD.encode(&fetched.bytes) })
}

/// Pictures are held for whatever their size; a document only now shows how long it is.
async fn cover(call: &mut Call, request: &Request) -> Result<(), Fault> {
    let known = call.meter.tokens().prompt_tokens;
    let Some(more) = request.prompt_tokens.checked_sub(known).filter(|more| *more > 0) else { return Ok(()) };
    if let Err(refused) = call.cover_input(more).await {
        let refusal = why_refused(&refused, call.app.world.now_ms());
        let problem = Problem { code: refusal.code, param: refusal.param, message: refusal.message };
        return Err(Fault { retry_after: refusal.retry_after, ..Fault::refusal(problem) });
    }
    call.meter.tokens().prompt_tokens = request.prompt_tokens;
    Ok(())
}

fn wrong(link: &Link, why: &str) -> Problem {
    let message = format!("`{}` {why}.", link.at);
    Problem { code: Code::InvalidParameter, param: Some(link.at.clone()), message }
}

fn told(app: &App, link: &Link, why: Unfetched) -> Problem {
    let settings = &app.settings.fetch;
    match why {
        Unfetched::NotAnAddress => wrong(link, "is not an http(s) address"),
        Unfetched::Personal => wrong(link, "must carry no user or password"),
        Unfetched::Inside => wrong(link, "must lead to a public address"),
        Unfetched::Unreachable => wrong(link, "cannot be fetched: its server cannot be reached"),
        Unfetched::TooManyRedirects => wrong(link, "cannot be fetched: it leads from one address to another"),
        Unfetched::Status(status) => wrong(link, &format!("cannot be fetched: its server answered with {status}")),
        Unfetched::Encoded => wrong(link, "cannot be fetched: its server sends it compressed"),
        Unfetched::TooLarge => wrong(link, &format!("leads to more than {} bytes", settings.link_bytes)),
        Unfetched::TooMuch => {
            let most = app.settings.limits.body_bytes;
            wrong(link, &format!("makes the request larger than {most} bytes with the data of its links"))
        }
        Unfetched::NotMedia => wrong(link, "leads to neither a picture (PNG, JPEG, GIF, WebP, HEIC) nor a PDF"),
        Unfetched::Late => wrong(link, "cannot be fetched: it did not arrive in time"),
    }
}
