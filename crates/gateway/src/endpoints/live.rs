//! `GET /api/account/events` and `GET /api/admin/events`: what happens, as server-sent events, for
//! as long as somebody watches and may (`live/`, decision 37).
//!
//! Whatever would refuse to open a stream ends one that is open, with an event that says why. A
//! reader that takes nothing costs its place in the feed and nothing else: the body makes the next
//! piece when it is asked for one.

use super::admin::{OPERATOR, Query};
use super::live_schemas::{ACCOUNT_EVENT, ADMIN_EVENT, schemas};
use super::openapi::shapes::named;
use super::reading;
use super::row::{Access, Family, MembersSee, Row};
use crate::app::App;
use crate::live::{self, AccountFeed, HouseFeed, LiveAddress, LiveEvent, LiveMark, LiveSlot, Watcher};
use crate::refusal::Refusal;
use crate::watching::{begin_account, begin_house, missed};
use crate::who::holder::{self, AccountHolder, AccountRole};
use crate::who::person::ACCOUNT_HEADER;
use crate::who::{caller, operator, proof};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, MissedTickBehavior};
use tollgate_store::{AccountId, KeyId};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "live events", rows, schemas };

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Proxies that gather a reply before they pass it on leave this one alone.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// So often in a row it may be impossible to tell whether somebody may watch.
const UNKNOWN: u32 = 3;
/// Keys of which a stream remembers whether they are shown.
const MOST_KEYS: usize = 1_000;
/// A comment, so that nobody takes the connection for dead.
const HEARTBEAT: Bytes = Bytes::from_static(b": \n\n");

fn rows() -> Vec<Row> {
    let own = "What happens in the account, as server-sent events: calls that end, balance, tasks, runs, keys";
    let all = "What happens in the house, as server-sent events: calls by the second, routes, alerts, catalog, jobs";
    vec![
        Row::get("/api/account/events", Access::Account(AccountRole::Viewer), account_events, own)
            .with(|| vec![account_parameter(), last_event()])
            .replies_with(200, "text/event-stream", named(ACCOUNT_EVENT))
            .to_members(MembersSee::OwnKeys)
            .refused_with(&[429, 503]),
        Row::get("/api/admin/events", OPERATOR, admin_events, all)
            .with(|| vec![last_event()])
            .replies_with(200, "text/event-stream", named(ADMIN_EVENT))
            .refused_with(&[429, 503]),
    ]
}

fn account_parameter() -> Value {
    json!({
        "name": "account", "in": "query", "schema": { "type": "string", "pattern": "^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$" },
        "description": "Which account is meant, where the header `Tollgate-Account` cannot be sent",
    })
}

fn last_event() -> Value {
    json!({
        "name": "Last-Event-ID", "in": "header", "schema": { "type": "string" },
        "description": "The `id` of the last event that was seen: what came after it is sent first, or `reset`",
    })
}

async fn account_events(State(app): State<Arc<App>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let outcome = async {
        let mut query = Query::read(parts.uri.query().unwrap_or(""))?;
        if let Some(account) = query.take("account") {
            let value = HeaderValue::try_from(account).map_err(|_| super::admin::wrong("account", "no account"))?;
            parts.headers.entry(ACCOUNT_HEADER).or_insert(value);
        }
        query.finish()?;
        let holder = holder::authenticate(&app.register(), &parts).await?;
        holder.must_be(AccountRole::Viewer)?;
        let account = holder.id();
        let slot = slot(&app, &parts, Some(account))?;
        let feed = app.live.account(account);
        let receiver = feed.listen();
        let mark = begin_account(&app, &feed, account).await?;
        let last = parts.headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().parse());
        let replay = match last {
            Some(Ok(from)) => missed(&app, account, from).await?,
            _ => None,
        };
        let mut viewer = AccountViewer::new(holder);
        let (entry, first) = greeting(&app, &mut viewer, mark, last.is_some(), replay).await;
        let viewer = LiveViewer::Account(Box::new(viewer));
        Ok(LiveStream::new(&app, parts, (viewer, Feed::Account(feed)), (receiver, first, entry), slot).reply())
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

/// What a stream begins with: `ready`, and what was missed; or that nobody can tell what was.
async fn greeting(
    app: &App,
    viewer: &mut AccountViewer,
    mark: LiveMark,
    asked: bool,
    replay: Option<(Vec<LiveEvent>, i64)>,
) -> (i64, VecDeque<Bytes>) {
    let (resumed, entry) = (replay.is_some(), replay.as_ref().map_or(mark.entry, |(_, entry)| *entry));
    let heartbeat = app.settings.limits.heartbeat.as_secs();
    let data = json!({
        "account_id": viewer.holder.id(), "resumed": resumed, "at_ms": app.world.now_ms(), "heartbeat_seconds": heartbeat,
    });
    // Whoever loses the connection while it gets what it missed begins again where it was.
    let mut first = VecDeque::from([live::opened((!resumed).then_some(mark), data)]);
    for event in replay.into_iter().flat_map(|(events, _)| events) {
        first.extend(viewer.shown(app, &event).await);
    }
    if asked && !resumed {
        app.live.meter.reset("unknown_mark");
        first.push_back(live::reset("unknown_mark", Some(mark)));
    }
    (entry, first)
}

async fn admin_events(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        Query::read(parts.uri.query().unwrap_or(""))?.finish()?;
        let slot = slot(&app, &parts, None)?;
        let feed = app.live.house();
        let receiver = feed.listen();
        begin_house(&app, &feed).await?;
        let heartbeat = app.settings.limits.heartbeat.as_secs();
        let data = json!({
            "replica": app.store.replica_name(), "resumed": false, "at_ms": app.world.now_ms(),
            "heartbeat_seconds": heartbeat,
        });
        let mut first = VecDeque::from([live::opened(None, data)]);
        // Events of the house have no place to go on from.
        if parts.headers.contains_key(LAST_EVENT_ID) {
            app.live.meter.reset("unknown_mark");
            first.push_back(live::reset("unknown_mark", None));
        }
        let watched = (LiveViewer::House, Feed::House(feed));
        Ok(LiveStream::new(&app, parts, watched, (receiver, first, i64::MIN), slot).reply())
    };
    let outcome = reading::guarded(outcome).await;
    outcome.unwrap_or_else(|refusal| reading::refused(&app, ErrorFormat::OpenAi, refusal, ""))
}

/// A place to watch from.
fn slot(app: &App, parts: &Parts, account: Option<AccountId>) -> Result<LiveSlot, Refusal> {
    if app.shutdown.stopping.is_cancelled() {
        return Err(Refusal::new(Code::ServerDraining, "The gateway is being stopped; another replica will answer."));
    }
    let proof = proof(&app.settings.people, parts).unwrap_or_default();
    let address = LiveAddress::of(caller::client_address(&app.settings.trusted_proxies, parts));
    app.live.places.take(Watcher { account, proof, address }).map_err(|whose| {
        let text = format!("Too many streams of events {whose} are open: close one, or ask every few seconds instead.");
        Refusal::new(Code::RateLimitExceeded, text).after(15)
    })
}

/// Who watches, for what may be shown.
enum LiveViewer {
    Account(Box<AccountViewer>),
    House,
}

/// Somebody who watches an account, and whose keys they see.
struct AccountViewer {
    holder: AccountHolder,
    /// Of keys that were asked for: who made a key never changes.
    seen: HashMap<KeyId, bool>,
}

impl AccountViewer {
    fn new(holder: AccountHolder) -> AccountViewer {
        AccountViewer { holder, seen: HashMap::new() }
    }

    /// The event as they see it; nothing, where it is of a key that they do not see.
    async fn shown(&mut self, app: &App, event: &LiveEvent) -> Option<Bytes> {
        let reach = self.holder.reach();
        let key = event.key.filter(|_| !reach.is_whole());
        let Some(key) = key else { return Some(event.text.clone()) };
        if let Some(seen) = self.seen.get(&key) {
            return seen.then(|| event.text.clone());
        }
        let Ok(seen) = app.store.reaches(reach, key).await else {
            // Nobody can tell now; what is missing is said.
            app.live.meter.reset("gap");
            return Some(live::reset("gap", None));
        };
        if self.seen.len() >= MOST_KEYS {
            self.seen.clear();
        }
        self.seen.insert(key, seen);
        seen.then(|| event.text.clone())
    }
}

/// What is watched: it goes on for as long as somebody has it.
#[expect(dead_code, reason = "held for its life")]
enum Feed {
    Account(Arc<AccountFeed>),
    House(Arc<HouseFeed>),
}

/// A stream that is open.
struct LiveStream {
    app: Arc<App>,
    parts: Parts,
    viewer: LiveViewer,
    receiver: broadcast::Receiver<Arc<LiveEvent>>,
    /// Pieces that are to be sent first.
    waiting: VecDeque<Bytes>,
    /// Entries up to this one were sent already.
    entry: i64,
    check: tokio::time::Interval,
    /// How often in a row nobody could tell whether they may watch.
    unknown: u32,
    until: Instant,
    over: bool,
    _feed: Feed,
    _slot: LiveSlot,
}

/// What a stream hears next.
enum Heard {
    Event(Result<Arc<LiveEvent>, RecvError>),
    Check,
    Quiet,
    Stop,
    TooLong,
}

impl LiveStream {
    fn new(
        app: &Arc<App>,
        parts: Parts,
        (viewer, feed): (LiveViewer, Feed),
        (receiver, waiting, entry): (broadcast::Receiver<Arc<LiveEvent>>, VecDeque<Bytes>, i64),
        slot: LiveSlot,
    ) -> LiveStream {
        let every = app.live.settings.check_every;
        let mut check = tokio::time::interval_at(Instant::now() + every, every);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let until = Instant::now() + app.live.settings.longest;
        let (app, over, unknown) = (app.clone(), false, 0);
        LiveStream {
            app,
            parts,
            viewer,
            receiver,
            waiting,
            entry,
            check,
            unknown,
            until,
            over,
            _feed: feed,
            _slot: slot,
        }
    }

    fn reply(self) -> Response {
        let pieces = stream::unfold(self, async |mut stream| {
            let piece = stream.next().await?;
            Some((Ok::<Bytes, Infallible>(piece), stream))
        });
        let mut reply = Response::new(Body::from_stream(pieces));
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(BUFFERING, HeaderValue::from_static("no"));
        reply
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.waiting.pop_front() {
                return Some(piece);
            }
            if self.over {
                return None;
            }
            match self.hear().await {
                Heard::Event(Ok(event)) => self.take(&event).await,
                Heard::Event(Err(RecvError::Lagged(missed))) => {
                    self.app.live.meter.dropped.inc_by(missed);
                    self.app.live.meter.reset("slow");
                    self.waiting.push_back(live::reset("slow", None));
                }
                // The feed lives as long as this stream.
                Heard::Event(Err(RecvError::Closed)) => self.over = true,
                Heard::Check => self.check_again().await,
                Heard::Quiet => return Some(HEARTBEAT),
                Heard::Stop => self.end(Code::ServerDraining.code(), "The gateway is being stopped; come back."),
                Heard::TooLong => self.end("too_long", "The stream has been open for as long as it may; come back."),
            }
        }
    }

    async fn hear(&mut self) -> Heard {
        let heartbeat: Duration = self.app.settings.limits.heartbeat;
        // Whether somebody may watch comes before what they would see.
        tokio::select! {
            biased;
            () = self.app.shutdown.stopping.cancelled() => Heard::Stop,
            _ = self.check.tick() => Heard::Check,
            event = self.receiver.recv() => Heard::Event(event),
            () = tokio::time::sleep_until(self.until) => Heard::TooLong,
            () = tokio::time::sleep(heartbeat) => Heard::Quiet,
        }
    }

    async fn take(&mut self, event: &LiveEvent) {
        if event.entry.is_some_and(|entry| entry <= self.entry) {
            return;
        }
        let shown = match &mut self.viewer {
            LiveViewer::Account(viewer) => viewer.shown(&self.app, event).await,
            LiveViewer::House => Some(event.text.clone()),
        };
        self.waiting.extend(shown);
    }

    /// What opened the stream must open it still.
    async fn check_again(&mut self) {
        let register = self.app.register().quietly();
        let outcome = match &self.viewer {
            LiveViewer::House => operator::authenticate(&register, &self.parts).await.map(|_| LiveViewer::House),
            LiveViewer::Account(before) => match holder::authenticate(&register, &self.parts).await {
                Ok(holder) if holder.id() != before.holder.id() => {
                    Err(Refusal::new(Code::NotFound, "There is no such account among yours."))
                }
                Ok(holder) => Ok(LiveViewer::Account(Box::new(AccountViewer::new(holder)))),
                Err(refusal) => Err(refusal),
            },
        };
        match outcome {
            Ok(viewer) => (self.viewer, self.unknown) = (viewer, 0),
            // The store is away: that is no reason to believe that somebody may no longer.
            Err(refusal) if refusal.code.status() >= 500 && self.unknown + 1 < UNKNOWN => self.unknown += 1,
            Err(refusal) => self.end(refusal.code.code(), &refusal.message),
        }
    }

    fn end(&mut self, reason: &str, message: &str) {
        self.waiting.push_back(live::ended(reason, message));
        self.over = true;
    }
}
