//! One life of the gateway: from opening its store to a crash, or to a quiet end. The scheduler
//! decides by chance who goes on next, when the database commits, when time passes, when the disk
//! is full, and when it is over.

use super::actors;
use super::oracle;
use super::outside::{Actor, Outside, lock};
use super::provider;
use super::runs;
use super::sessions;
use super::tasks;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tollgate_gateway::app::App;
use tollgate_gateway::endpoints::router;
use tollgate_gateway::endpoints::table::lost_reply;
use tollgate_gateway::sale::Serving;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::start::{Indoors, indoors};
use tollgate_gateway::workers::{self, poller};
use tollgate_store::Options;
use tollgate_store::testing::{BegunSync, Crash, Simulated, StepDone, fill_disk, free_disk};
use tollgate_upstream::Client;

/// Longer than any credit of a customer lasts.
const WRONG: i64 = 400 * 24 * HOUR;
const HOUR: i64 = 3_600_000;
/// A life that does not end is a hang.
const STEPS: u64 = 400_000;

/// What is the same in all lives of a house.
pub struct House {
    pub outside: Arc<Outside>,
    pub config: PathBuf,
    pub sabotage: Sabotage,
}

/// Faults built in on purpose, to see that they are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sabotage {
    pub journal_is_not_synced: bool,
    pub database_is_not_synced: bool,
    pub marks_are_not_written: bool,
    pub runs_have_no_cap: bool,
    pub run_keys_change: bool,
    pub lost_keys_are_free: bool,
}

/// One that takes part, and whether it has a reason to go on.
struct Part {
    actor: Actor,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub struct Life<'a> {
    house: &'a House,
    dir: &'a Path,
    number: u32,
    simulated: Simulated,
    parts: Vec<Part>,
    steps: u64,
    /// Its first event.
    began: u64,
    /// The group that could not be committed: events up to here are in it, and since when it is
    /// tried.
    failing: Option<(u64, i64)>,
    /// A sync of the journal that has begun with this event.
    syncing: Option<(u64, BegunSync)>,
    full: bool,
}

impl House {
    /// Lives in `dir`; a crash after so many steps leaves its remains in `next`. Returns how the
    /// life ended.
    pub fn live(&self, dir: &Path, number: u32, ends: Option<(u64, Crash)>, next: &Path) -> Option<Crash> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let simulated = Simulated::new(dir);
        let Sabotage { journal_is_not_synced, database_is_not_synced, marks_are_not_written, .. } = self.sabotage;
        simulated.disk.ignore_syncs(journal_is_not_synced, database_is_not_synced);
        simulated.disk.lose_marks(marks_are_not_written);
        let ended = runtime.block_on(async {
            let (parts, steps, began) = (Vec::new(), 0, self.outside.event());
            let (failing, syncing, full) = (None, None, false);
            let mut life = Life { house: self, dir, number, simulated, parts, steps, began, failing, syncing, full };
            let ended = life.run(ends).await;
            if let Some(how) = ended {
                life.die(how, next);
            }
            ended
        });
        free_disk(dir);
        // Connections that a crash cut off stay behind in no life.
        drop(runtime);
        drop(self.outside.joined());
        ended
    }
}

impl Life<'_> {
    fn outside(&self) -> &Arc<Outside> {
        &self.house.outside
    }

    async fn run(&mut self, ends: Option<(u64, Crash)>) -> Option<Crash> {
        let done = Arc::new(AtomicBool::new(false));
        self.outside().join(whole_life(
            self.outside().clone(),
            self.settings(),
            self.number,
            ends.is_none(),
            done.clone(),
        ));
        loop {
            let joined = self.outside().joined();
            self.parts.extend(joined.into_iter().map(|actor| Part { actor, woken: Arc::new(Woken(true.into())) }));
            if done.load(Ordering::Relaxed) {
                return None;
            }
            if let Some((after, how)) = ends
                && self.steps >= after
            {
                return Some(how);
            }
            self.steps += 1;
            assert!(self.steps < STEPS, "nothing comes to an end");
            self.step().await;
        }
    }

    fn settings(&self) -> Opening {
        let environment = [("TOLLGATE__DATA_DIR".to_owned(), self.dir.display().to_string())];
        Opening {
            source: ConfigSource {
                file: self.house.config.clone(),
                environment: Arc::new(BTreeMap::from(environment)),
            },
            options: Options {
                sums_apart: 8,
                journal_segment: 8 << 10,
                old_after: 8,
                simulated: Some(self.simulated.clone()),
                lost_reply: if self.house.sabotage.lost_keys_are_free { |_| None } else { lost_reply },
                ..Options::default()
            },
            sabotage: self.house.sabotage,
        }
    }

    /// One thing happens.
    async fn step(&mut self) {
        let woken: Vec<usize> =
            (0..self.parts.len()).filter(|at| self.parts[*at].woken.0.load(Ordering::Relaxed)).collect();
        let dice = self.outside().draw().below(1_000);
        match dice {
            0..700 if !woken.is_empty() => {
                let at = self.outside().draw().one(&woken);
                self.poll(at);
            }
            0..800 => tokio::task::yield_now().await,
            800..880 => self.sync_journal(),
            880..930 => {
                self.commit();
            }
            930..933 => {
                self.outside().note("checkpoint", 0);
                self.simulated.checkpoint();
            }
            933..936 => self.fill_or_free(),
            936..938 => {
                let outside = self.outside();
                let by = outside.draw().one(&[-2 * HOUR, 2 * HOUR, WRONG]);
                // Now and then it is put right. Nobody sets it ever further.
                let right = outside.draw().percent(30) || (outside.shift() + by).abs() > WRONG + 8 * HOUR;
                let by = if right { -outside.shift() } else { by };
                outside.note("the clock is set", by.unsigned_abs());
                outside.wall.fetch_add(by, Ordering::Relaxed);
            }
            _ => {
                // Where nobody has a reason to go on, somebody may wait for the disk.
                if woken.is_empty() {
                    self.sync_journal();
                }
                let idle = woken.is_empty() && self.failing.is_none() && self.commit() == StepDone::Idle;
                let ms = if idle {
                    self.outside().draw().one(&[1, 5, 20, 100, 400])
                } else {
                    self.outside().draw().one(&[1, 1, 2, 5, 20])
                };
                self.pass(ms).await;
            }
        }
    }

    /// A sync of the journal begins, or the one that has begun ends. Others write between the two,
    /// and what they write is not synced by it.
    fn sync_journal(&mut self) {
        let outside = self.house.outside.clone();
        match self.syncing.take() {
            None => self.syncing = self.simulated.begin_sync().map(|sync| (outside.event(), sync)),
            Some((upto, sync)) => {
                let synced = self.simulated.end_sync(sync);
                outside.note(if synced { "the journal is synced up to" } else { "a sync is worth nothing" }, upto);
                if synced {
                    outside.synced.store(upto, Ordering::Relaxed);
                }
            }
        }
    }

    fn poll(&mut self, at: usize) {
        self.house.outside.note("goes on", at as u64);
        let part = &mut self.parts[at];
        part.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(part.woken.clone());
        if part.actor.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            // The others keep their places: the order is part of what repeats.
            drop(self.parts.remove(at));
        }
    }

    fn commit(&mut self) -> StepDone {
        let outside = self.house.outside.clone();
        let (upto, since) = self.failing.unwrap_or_else(|| (outside.event(), outside.now()));
        let step = self.simulated.commit();
        match step {
            StepDone::Idle => {}
            StepDone::Committed => {
                outside.note("commits up to", upto);
                outside.committed.store(upto, Ordering::Relaxed);
                self.failing = None;
            }
            StepDone::Failed => {
                outside.note("cannot commit up to", upto);
                self.failing = Some((upto, since));
                // When commits are late the journal is synced (docs/decisions/0003).
                if outside.now() - since > 50 {
                    outside.journalled.store(outside.event(), Ordering::Relaxed);
                }
            }
        }
        step
    }

    fn fill_or_free(&mut self) {
        self.full = !self.full;
        self.outside().note("the disk is full", u64::from(self.full));
        if self.full { fill_disk(self.dir) } else { free_disk(self.dir) }
    }

    async fn pass(&mut self, ms: u64) {
        // A full disk is emptied sooner or later.
        if self.full && self.outside().draw().percent(10) {
            self.fill_or_free();
        }
        let outside = self.outside();
        let millis = i64::try_from(ms).expect("small");
        outside.steady.fetch_add(millis, Ordering::Relaxed);
        outside.wall.fetch_add(millis, Ordering::Relaxed);
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    fn die(&mut self, how: Crash, next: &Path) {
        let outside = self.house.outside.clone();
        outside.note(if how == Crash::Killed { "killed at" } else { "the power is cut at" }, self.steps);
        let torn = outside.draw().below(100);
        if torn < 25 {
            self.simulated.torn_commit();
        } else if torn < 35 {
            self.simulated.torn_checkpoint();
        }
        let mut draw = outside.draw();
        self.simulated.disk.crash(how, next, &mut |below| usize::try_from(draw.below(below as u64)).expect("small"));
        drop(draw);
        outside.crashed(how, self.began);
        self.parts.clear();
    }
}

struct Opening {
    source: ConfigSource,
    options: Options,
    sabotage: Sabotage,
}

impl Opening {
    /// What is on sale when the steps of runs are dear.
    fn dear(&self) -> Arc<Serving> {
        let mut source = self.source.clone();
        let dear = source.file.with_file_name("dear").display().to_string();
        Arc::make_mut(&mut source.environment).insert("TOLLGATE__CATALOG_DIR".to_owned(), dear);
        Arc::new(source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}")).serving)
    }
}

/// Opens, looks at what a crash left, lets everybody in, and at the last life waits for the end and
/// looks again.
async fn whole_life(outside: Arc<Outside>, opening: Opening, number: u32, last: bool, done: Arc<AtomicBool>) {
    let mut loaded = opening.source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let dear = outside.runs_workflows.then(|| opening.dear());
    // The file of the secrets is not on the simulated disk: each life makes its own.
    loaded.settings.new_secrets = true;
    let client = Client::in_memory(provider::dial(&outside));
    let opened = indoors(loaded, opening.options, client, outside.world()).await;
    let Indoors { app, .. } = opened.expect("the store opens, whatever the crash left");
    oracle::check(&outside, &app, "after the start").await;
    let left = let_in(&outside, &app, number);
    if let Some(dear) = dear {
        let catalogs = [app.serving.load_full(), dear];
        let _ = app.look_at_workflows().await;
        outside.join(runs::merchant(outside.clone(), app.clone(), catalogs));
        run_workflows(&outside, &app, &left, (opening.sabotage, number));
    }
    if last {
        end(&outside, &app, &left).await;
        oracle::check(&outside, &app, "at the end").await;
        done.store(true, Ordering::Relaxed);
    }
}

/// Starts all who take part in this life; returns how many are still at it.
fn let_in(outside: &Arc<Outside>, app: &Arc<App>, life: u32) -> Arc<AtomicUsize> {
    let router = router(app.clone());
    let left = Arc::new(AtomicUsize::new(0));
    let join = |actor: Actor| takes_part(outside, &left, actor);
    let requests = outside.requests().clone();
    for (number, request) in requests.iter().enumerate() {
        let again = request.idem && request.born < life && !answered(outside, number);
        if request.born != life && !again {
            continue;
        }
        for _ in 0..request.copies {
            let wait = if again { outside.draw().below(1_000) } else { request.wait_ms };
            join(Box::pin(actors::client(outside.clone(), router.clone(), number, wait)));
        }
    }
    if outside.sells_videos || outside.runs_workflows {
        // Two of them, as two replicas would have.
        for _ in 0..2 {
            outside.join(poller::run(app.clone()));
        }
    }
    if outside.sells_videos {
        let mut orders = tasks::open_orders(outside);
        let new = outside.draw().between(1, 5);
        orders.extend((0..new).map(|_| tasks::order(outside)));
        for slot in orders {
            let copies = 1 + u8::from(lock(&outside.orders)[slot].idem);
            for _ in 0..copies {
                join(Box::pin(tasks::client(outside.clone(), router.clone(), slot)));
            }
        }
    }
    let talks = outside.draw().below(4);
    for _ in 0..talks {
        let plan = sessions::plan(outside);
        join(Box::pin(sessions::client(outside.clone(), app.clone(), plan)));
    }
    outside.join(actors::auditor(app.clone()));
    let raws = outside.draw().between(1, 8);
    for _ in 0..raws {
        join(Box::pin(actors::raw(outside.clone(), app.clone())));
    }
    join(Box::pin(actors::operator(outside.clone(), app.clone(), life)));
    join(Box::pin(actors::reader(outside.clone(), router)));
    left
}

/// Lets somebody in who is counted until it has finished.
fn takes_part(outside: &Outside, left: &Arc<AtomicUsize>, actor: Actor) {
    left.fetch_add(1, Ordering::Relaxed);
    let left = left.clone();
    outside.join(async move {
        actor.await;
        left.fetch_sub(1, Ordering::Relaxed);
    });
}

/// The workers of runs, two as two replicas would have, and their customers.
fn run_workflows(outside: &Arc<Outside>, app: &Arc<App>, left: &Arc<AtomicUsize>, spoilt: (Sabotage, u32)) {
    let router = router(app.clone());
    for _ in 0..2 {
        outside.join(workers::runs::run(app.clone(), runs::spoiled(router.clone(), spoilt.0, spoilt.1)));
    }
    let mut slots = runs::open(outside);
    let new = outside.draw().between(1, 3);
    slots.extend((0..new).map(|_| runs::wanted(outside)));
    for slot in slots {
        takes_part(outside, left, Box::pin(runs::customer(outside.clone(), router.clone(), slot)));
    }
}

fn answered(outside: &Outside, number: usize) -> bool {
    lock(&outside.attempts).iter().any(|attempt| {
        attempt.request == number && matches!(attempt.seen, Some((super::outside::Seen::Answered { .. }, _)))
    })
}

/// Until everybody has finished, nothing is open and all is written.
async fn end(outside: &Arc<Outside>, app: &Arc<App>, left: &AtomicUsize) {
    let began = outside.now();
    loop {
        let gauges = app.store.gauges();
        let open = gauges.open_holds + gauges.task_holds + gauges.queue_len;
        if left.load(Ordering::Relaxed) == 0 && app.running.load(Ordering::Relaxed) == 0 && open == 0 {
            return;
        }
        if outside.now() - began >= 300_000 {
            let tasks = tasks::open(outside, app).await;
            panic!("after five minutes something is still open: {gauges:?} {tasks:#?}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
