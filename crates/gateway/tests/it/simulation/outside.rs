//! The world outside of the gateway: its clock, its clients and their memory of what they
//! learned, the provider, the disk. It survives the crashes of a simulation, and what it remembers
//! is what the oracle goes by.

use super::draw::Draw;
use super::media;
use super::provider::{self, Plan, Received};
use super::runs::{self, Ran};
use super::sessions::{self, Sessions};
use super::tasks::Ordered;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tollgate_gateway::world::World;
use tollgate_store::testing::Crash;
use tollgate_store::{AccountId, KeyId};

/// When a simulation begins, in milliseconds since 1970.
pub const BEGINNING: i64 = 1_790_000_000_000;

pub type Actor = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A customer of the simulated house.
#[derive(Clone)]
pub struct Customer {
    pub account: AccountId,
    pub key: KeyId,
    pub secret: String,
}

/// A request as a client means it, however often it is sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub customer: usize,
    pub model: &'static str,
    pub streams: bool,
    pub idem: bool,
    /// Sent so many times at once.
    pub copies: u64,
    /// The client hangs up after so many words.
    pub leaves_after: Option<usize>,
    /// In which life it is first sent, and when.
    pub born: u32,
    pub wait_ms: u64,
    pub plan: Plan,
}

/// One sending of a request, and what came of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub request: usize,
    pub call: Option<String>,
    /// When each word arrived, by the steady clock.
    pub words: Vec<i64>,
    pub seen: Option<(Seen, u64)>,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Answered { body: String, replayed: bool, charge: Option<i64> },
    Failed { status: u16, code: String },
    Left,
}

/// What a crash may have done to something that a client learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Whole,
    /// A crash came while it was under way, at this time.
    CutOff(Crash, i64),
    /// It was finished, but the power went before it had to be safe.
    InDoubt,
}

/// A call of somebody who speaks to the store itself: every amount is known to the last digit.
#[derive(Clone, Debug)]
pub struct Raw {
    pub call: Option<tollgate_store::CallId>,
    pub granted: bool,
    pub durable: Option<u64>,
    /// What it had cost, by its marks and its close, and when it was said.
    pub said: Vec<(i64, u64)>,
    pub closed: bool,
    /// It went on for so long that the sweeper may have ended it.
    pub overdue: bool,
    pub fate: Fate,
    /// Up to this number of `said` a power cut must not lose anything.
    pub safe: usize,
}

/// A top-up or a refund with its own id.
#[derive(Clone, Debug)]
pub struct Gift {
    pub id: String,
    pub customer: usize,
    pub amount: i64,
    /// The call it gives back.
    pub refund: Option<tollgate_store::CallId>,
    pub confirmed: bool,
}

pub struct Outside {
    draw: Mutex<Draw>,
    /// Milliseconds since 1970, as the gateway's machine believes.
    pub wall: AtomicI64,
    /// Milliseconds that have really passed.
    pub steady: AtomicI64,
    events: AtomicU64,
    /// Whatever was closed before this event is in the database; by the journal, also whatever was
    /// marked.
    pub committed: AtomicU64,
    pub journalled: AtomicU64,
    /// Whatever was held or closed before this event is in the journal, and that was synced. A mark
    /// may have been carried over since, into what was not.
    pub synced: AtomicU64,
    pub customers: Vec<Customer>,
    requests: Mutex<Vec<Request>>,
    pub attempts: Mutex<Vec<Attempt>>,
    pub raws: Mutex<Vec<Raw>>,
    pub gifts: Mutex<Vec<Gift>>,
    pub orders: Mutex<Vec<Ordered>>,
    pub sessions: Mutex<Sessions>,
    pub runs: Mutex<Vec<Ran>>,
    /// Whether videos are ordered.
    pub sells_videos: bool,
    /// Whether workflows are run.
    pub runs_workflows: bool,
    received: Mutex<Vec<Received>>,
    joining: Mutex<Vec<Actor>>,
    /// A fingerprint of all that happened.
    trace: AtomicU64,
    pub talks: bool,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Outside {
    pub fn new(seed: u64, customers: Vec<Customer>, lives: u32, talks: bool) -> Arc<Self> {
        let mut draw = Draw::new(seed);
        let count = draw.between(4, 16);
        let requests = (0..count).map(|_| request(&mut draw, lives)).collect();
        Arc::new(Self {
            draw: Mutex::new(draw),
            wall: AtomicI64::new(BEGINNING),
            steady: AtomicI64::new(0),
            events: AtomicU64::new(1),
            committed: AtomicU64::new(0),
            journalled: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            customers,
            requests: Mutex::new(requests),
            attempts: Mutex::default(),
            raws: Mutex::default(),
            gifts: Mutex::default(),
            orders: Mutex::default(),
            sessions: Mutex::default(),
            runs: Mutex::default(),
            sells_videos: seed.is_multiple_of(2),
            runs_workflows: seed.is_multiple_of(5),
            received: Mutex::default(),
            joining: Mutex::default(),
            trace: AtomicU64::new(0),
            talks,
        })
    }

    pub fn draw(&self) -> MutexGuard<'_, Draw> {
        lock(&self.draw)
    }

    /// The number of a new event.
    pub fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    pub fn now(&self) -> i64 {
        self.steady.load(Ordering::Relaxed)
    }

    /// How far the gateway's clock was set.
    pub fn shift(&self) -> i64 {
        self.wall.load(Ordering::Relaxed) - BEGINNING - self.now()
    }

    pub fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        lock(&self.requests)
    }

    pub fn received(&self, one: Received) {
        lock(&self.received).push(one);
    }

    pub fn all_received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    /// Something more takes part from now on.
    pub fn join(&self, actor: impl Future<Output = ()> + Send + 'static) {
        lock(&self.joining).push(Box::pin(actor));
    }

    pub fn joined(&self) -> Vec<Actor> {
        std::mem::take(&mut *lock(&self.joining))
    }

    /// Notes what happened, for the fingerprint and for people.
    pub fn note(&self, what: &str, number: u64) {
        let mut print = self.trace.load(Ordering::Relaxed);
        for byte in what.bytes().chain(number.to_le_bytes()) {
            print = (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.trace.store(print, Ordering::Relaxed);
        if self.talks {
            println!("{:>8} ms  {what} {number}", self.now());
        }
    }

    pub fn fingerprint(&self) -> u64 {
        self.trace.load(Ordering::Relaxed)
    }

    /// The gateway's clock and randomness.
    pub fn world(self: &Arc<Self>) -> World {
        let (clock, chance) = (self.clone(), self.clone());
        World::new(
            move || clock.wall.load(Ordering::Relaxed),
            move |bytes| {
                let mut draw = chance.draw();
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&draw.next().to_le_bytes()[..chunk.len()]);
                }
            },
        )
    }

    /// The machine is gone that began to live with event `began`: what was under way is cut off,
    /// and after a power cut what was not safe yet is in doubt.
    pub fn crashed(&self, how: Crash, began: u64) {
        let now = self.now();
        let (committed, journalled) = (self.committed.load(Ordering::Relaxed), self.journalled.load(Ordering::Relaxed));
        let synced = self.synced.load(Ordering::Relaxed);
        let safe = committed.max(journalled).max(synced);
        for attempt in lock(&self.attempts).iter_mut().filter(|attempt| attempt.fate == Fate::Whole) {
            match &attempt.seen {
                None => attempt.fate = Fate::CutOff(how, now),
                // Who left does not know when the call is closed.
                Some((Seen::Left, at)) if *at >= began => attempt.fate = Fate::CutOff(how, now),
                Some((_, at)) if how == Crash::PowerCut && *at >= safe => attempt.fate = Fate::InDoubt,
                Some(_) => {}
            }
        }
        sessions::crashed(self, how, safe);
        runs::crashed(self, how, safe);
        // A hold that was not safe is lost with the power, and so is the call's row.
        for one in lock(&self.received).iter_mut().filter(|one| how == Crash::PowerCut && one.event >= safe) {
            one.event = 0;
        }
        for raw in lock(&self.raws).iter_mut().filter(|raw| raw.fate == Fate::Whole && raw.granted) {
            let last = raw.said.last().map_or(0, |(_, at)| *at);
            let durable = how == Crash::Killed || last < journalled;
            if raw.closed && (last < committed.max(synced) || (durable && raw.durable.is_some())) {
                continue;
            }
            raw.fate = Fate::CutOff(how, now);
            raw.safe = match how {
                Crash::Killed => raw.said.len(),
                Crash::PowerCut => raw.said.iter().take_while(|(_, at)| *at < journalled).count(),
            };
        }
    }
}

fn request(draw: &mut Draw, lives: u32) -> Request {
    use provider::Ending::{Cut, Fine, NoReport, Reset, ServerError, Silence};
    let model = draw.one(&[
        "plain",
        "plain",
        "plain",
        "stubborn",
        "by-the-call",
        "vectors",
        "pictures",
        "painted",
        "retouched",
        "voice",
        "ears",
        "songs",
        "rank",
        "judge",
    ]);
    let media = media::is_media(model);
    let streams = draw.percent(60) && !media;
    // Crashes in the middle of what is begun once are what its keys are for.
    let idem = draw.percent(if media::is_begun_once(model) { 70 } else { 40 });
    let words = draw.between(1, 30);
    Request {
        customer: usize::from(draw.percent(35)),
        model,
        streams,
        idem,
        copies: if idem { draw.between(1, 3) } else { 1 },
        leaves_after: ((streams || model == "voice" || model == "songs") && !idem && draw.percent(30))
            .then(|| usize::try_from(draw.below(words)).expect("few")),
        born: u32::try_from(draw.below(u64::from(lives))).expect("few"),
        wait_ms: draw.below(3_000),
        plan: Plan {
            think_ms: draw.one(&[0, 1, 5, 40, 300, 2_500]),
            words,
            delay_ms: draw.one(&[0, 1, 10, 200, 900]),
            ending: draw.one(&[Fine, Fine, Fine, Fine, NoReport, ServerError, Reset, Cut, Silence]),
        },
    }
}
