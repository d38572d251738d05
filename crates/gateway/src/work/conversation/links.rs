//! Pictures and documents that a request gives by their address, for a provider that takes the data
//! only: Gemini, chat completions for documents, and whoever is configured so. They are fetched
//! once the call's money is held and before a byte of it is sent, and put in the place of the
//! links; then the request is translated like any other.
//!
//! The same link is fetched once for a call, whatever its routes, and what is spent on waiting for
//! links is counted over all of them. Before the hold it is only seen that the links are such as
//! may be fetched and that the request could be translated with data in their place.

use super::Conversation;
use crate::call::{Call, Needed, why_refused};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::{StreamExt as _, stream};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use tollgate_catalog::Route;
use tollgate_dialects::{CheckedRequest, LinkContent, LinkKind, MediaLink, Sent};
use tollgate_upstream::{ByteBudget, Fault, FetchedFile, Provider, Unfetched};
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Problem};

/// Files of one call that are fetched at the same time.
const PARALLEL: usize = 4;
/// How often each link of a request may stand there, on the average: every place gets the data.
const PLACES_PER_LINK: usize = 16;
/// From here on, bytes are encoded and copied apart.
const LONG: usize = 256 << 10;
/// LinkContent in the place of a link that was not fetched yet.
const PICTURE: LinkContent<'static> = LinkContent { mime: "image/png", base64: "" };
const DOCUMENT: LinkContent<'static> = LinkContent { mime: "application/pdf", base64: "" };

/// What is known of the links of one request.
#[derive(Default)]
pub(super) struct KnownLinks {
    links: OnceLock<Vec<MediaLink>>,
    fetched: Mutex<FetchedLinks>,
}

/// What was fetched for one call so far, or why it could not be.
#[derive(Default)]
struct FetchedLinks {
    files: HashMap<String, Result<Arc<File>, Problem>>,
    /// Time that the call has waited for links, over all routes.
    spent: Duration,
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
    fn has(self, link: &MediaLink) -> bool {
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

    fn wanted(&self, wants: Wants) -> impl Iterator<Item = &MediaLink> {
        let links = || self.linked.links.get_or_init(|| self.request.links().unwrap_or_default());
        let links = if wants == Wants::None { &[][..] } else { links() };
        links.iter().filter(move |link| wants.has(link))
    }

    /// Does this provider need the data of something that the request gives by its address?
    pub(super) fn wants_data(&self, provider: &Provider, dialect: Dialect) -> bool {
        self.wanted(self.wants(provider, dialect)).next().is_some()
    }

    /// Refuses links that are never fetched. The request comes back as if there were data already,
    /// to see whether it can be translated.
    pub(super) fn check_links(
        &self,
        fetcher: &Fetcher,
        provider: &Provider,
        dialect: Dialect,
    ) -> Result<CheckedRequest, Problem> {
        let settings = &fetcher.settings;
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
            fetcher.client.address(&link.url).map_err(|why| not_fetched(fetcher, link, why))?;
            seen.push(&link.url);
            if seen.len() > settings.links_per_call {
                let most = settings.links_per_call;
                return Err(wrong(link, &format!("is one too many: at most {most} links of a request are fetched")));
            }
        }
        let stand_in = |link: &MediaLink| if link.kind == LinkKind::Picture { PICTURE } else { DOCUMENT };
        self.request.with_data(|link| wants.has(link).then(|| stand_in(link)))
    }

    /// The request for one route, with data in the place of its links.
    pub(super) async fn with_links(
        &self,
        fetcher: &Fetcher,
        call: &mut Call,
        provider: &Provider,
        route: &Route,
        dialect: Dialect,
    ) -> Result<Sent, Fault> {
        self.check_links(fetcher, provider, dialect).map_err(Fault::refusal)?;
        let wants = self.wants(provider, dialect);
        let mut fetched = self.linked.fetched.lock().await;
        let began = Instant::now();
        let until = call.deadline.min(began + fetcher.settings.time.saturating_sub(fetched.spent));
        let outcome = self.fetch(fetcher, wants, until, &mut fetched.files).await;
        fetched.spent += began.elapsed();
        let files = outcome.map_err(Fault::refusal)?;
        drop(fetched);
        let asked = self.asked(call).map_err(Fault::refusal)?.into_owned();
        let request = put_in(asked, files).await.map_err(Fault::refusal)?;
        self.cover(call, &request).await?;
        self.make(&request, &call.model, route, provider).map_err(Fault::refusal)
    }

    /// Fetches what is wanted and not there yet. The first link that fails ends it, for every route
    /// that wants it. Returned are the files by the fields that get them.
    async fn fetch(
        &self,
        fetcher: &Fetcher,
        wants: Wants,
        until: Instant,
        files: &mut HashMap<String, Result<Arc<File>, Problem>>,
    ) -> Result<HashMap<String, Arc<File>>, Problem> {
        if let Some(problem) = self.wanted(wants).find_map(|link| files.get(&link.url)?.as_ref().err()) {
            return Err(problem.clone());
        }
        // No more than the client could have sent itself, counted in letters of base64.
        let there: usize = files.values().flatten().map(|file| file.base64.len()).sum();
        let letters = fetcher.body_bytes.saturating_sub(self.request.body().len() + there);
        let room = ByteBudget::new(letters / 4 * 3);
        let missing = self.missing(wants, files);
        let mut coming = stream::iter(missing).map(|link| fetch_one(fetcher, link, &room, until)).buffered(PARALLEL);
        while let Some((url, outcome)) = coming.next().await {
            let problem = outcome.as_ref().err().cloned();
            files.insert(url, outcome.map(Arc::new));
            if let Some(problem) = problem {
                return Err(problem);
            }
        }
        drop(coming);
        self.placed(fetcher, wants, files)
    }

    /// Links to be fetched, each once. Documents come first, and results are taken in this order:
    /// when a picture fails, those who want the documents only have them all, and nothing that was
    /// begun is asked for again.
    fn missing(&self, wants: Wants, files: &HashMap<String, Result<Arc<File>, Problem>>) -> Vec<MediaLink> {
        let mut missing: Vec<MediaLink> = Vec::new();
        for kind in [LinkKind::File, LinkKind::Picture] {
            for link in self.wanted(wants).filter(|link| link.kind == kind) {
                if !files.contains_key(&link.url) && !missing.iter().any(|one| one.url == link.url) {
                    missing.push(link.clone());
                }
            }
        }
        missing
    }

    /// Which field gets which file. One that is fetched once is written as often as its link stands
    /// there, and counted so.
    fn placed(
        &self,
        fetcher: &Fetcher,
        wants: Wants,
        files: &HashMap<String, Result<Arc<File>, Problem>>,
    ) -> Result<HashMap<String, Arc<File>>, Problem> {
        let mut letters = self.request.body().len();
        let mut placed = HashMap::new();
        for link in self.wanted(wants) {
            let Some(Ok(file)) = files.get(&link.url) else { continue };
            // One file may be a picture in one place and a document in another.
            if link.kind == LinkKind::Picture && !file.mime.starts_with("image/") {
                return Err(wrong(link, "is not a picture"));
            }
            letters = letters.saturating_add(file.base64.len());
            if letters > fetcher.body_bytes {
                return Err(not_fetched(fetcher, link, Unfetched::TooMuch));
            }
            placed.insert(link.at.clone(), file.clone());
        }
        Ok(placed)
    }
}

/// The request with the files in the fields that get them.
async fn put_in(request: CheckedRequest, files: HashMap<String, Arc<File>>) -> Result<CheckedRequest, Problem> {
    let bytes = request.body().len() + files.values().map(|file| file.base64.len()).sum::<usize>();
    apart_if_long(bytes, move || {
        request.with_data(|link| files.get(&link.at).map(|file| LinkContent { mime: file.mime, base64: &file.base64 }))
    })
    .await?
}

async fn fetch_one(
    fetcher: &Fetcher,
    link: MediaLink,
    room: &ByteBudget,
    until: Instant,
) -> (String, Result<File, Problem>) {
    let outcome = fetched_in_turn(fetcher, &link, room, until).await;
    (link.url, outcome)
}

async fn fetched_in_turn(
    fetcher: &Fetcher,
    link: &MediaLink,
    room: &ByteBudget,
    until: Instant,
) -> Result<File, Problem> {
    let address = fetcher.client.address(&link.url).map_err(|why| not_fetched(fetcher, link, why))?;
    let Ok(Ok(turn)) = timeout_at(until, fetcher.turns.clone().acquire_owned()).await else {
        let message = "The gateway is fetching too many files at the moment.".to_owned();
        return Err(Problem { code: Code::Overloaded, param: Some(link.at.clone()), message });
    };
    let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let fetched = fetcher.client.fetch(&address, fetcher.settings.link_bytes, room, left).await;
    let FetchedFile { mime, bytes } = fetched.map_err(|why| not_fetched(fetcher, link, why))?;
    apart_if_long(bytes.len(), move || {
        // The bytes go once there are letters, and the turn with them, even if the caller has left.
        let _turn = turn;
        let bytes = bytes;
        File { mime, base64: BASE64_STANDARD.encode(&bytes) }
    })
    .await
}

/// Work on this many bytes: away from the threads that serve everybody, if they are many.
async fn apart_if_long<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= LONG {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem {
        code: Code::Internal,
        param: None,
        message: "The data of a link could not be put in its place.".to_owned(),
    })
}

impl Conversation {
    /// Pictures are held for whatever their size, and documents at the model's context; data that
    /// shows to be more is held for now.
    async fn cover(&self, call: &mut Call, request: &CheckedRequest) -> Result<(), Fault> {
        let most = self.most_input(&call.model, request).map_err(|refusal| Fault::refusal(problem_of(refusal)))?;
        let held = call.quote.need.most.input;
        if let Some(more) = most.checked_sub(held).filter(|more| *more > 0)
            && let Err((refused, needed)) = call.cover_input(more).await
        {
            let refusal = why_refused(&refused, Needed { amount: needed, lower: "" }, call.till.world.now_ms());
            let retry_after = refusal.retry_after;
            return Err(Fault { retry_after, ..Fault::refusal(problem_of(refusal)) });
        }
        let meter = call.meter.tokens();
        meter.prompt_tokens = meter.prompt_tokens.max(request.prompt_tokens);
        Ok(())
    }
}

fn problem_of(refusal: Refusal) -> Problem {
    Problem { code: refusal.code, param: refusal.param, message: refusal.message }
}

fn wrong(link: &MediaLink, why: &str) -> Problem {
    let message = format!("`{}` {why}.", link.at);
    Problem { code: Code::InvalidParameter, param: Some(link.at.clone()), message }
}

fn not_fetched(fetcher: &Fetcher, link: &MediaLink, why: Unfetched) -> Problem {
    wrong(link, &fetcher.in_words(why))
}
