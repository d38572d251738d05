//! The embedded engine on a disk that loses what was not synced, from one number: holds, ends,
//! marks, extensions, tasks and credits in any order, with the steps of the journal's sync and of
//! the database's commit between any two of them, and a crash at the end of each life. What
//! somebody was promised is then looked for in the ledger. `TOLLGATE_SIM_SEEDS=10000` runs more of
//! it.

use std::future::ready;
use std::sync::Arc;

use crate::common::{Customer, House, options};
use tollgate_catalog::Money;
use tollgate_store::testing::{BegunSync, Crash, Simulated, TestClock};
use tollgate_store::{BegunTask, CallId, Credit, CreditKind, DataLocation, Held, NewTask, Options, Pot, UsagePage};

const SEEDS: u64 = 60;

/// A fault on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// The disk says that it has synced the journal, and has not.
    Deaf,
    /// Holds count as durable by the journal that rest on what it does not know.
    Overrated,
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn amount(&mut self, below: u64) -> i64 {
        i64::try_from(self.below(below)).expect("small")
    }
}

/// A call as somebody outside knows it.
struct Call {
    held: Held,
    customer: usize,
    amount: i64,
    until: i64,
    /// Nothing of an answer goes out before this.
    promised: bool,
    extended: bool,
    /// What it had cost by its marks, and whether it has ended with that.
    said: i64,
    closed: bool,
    /// By when the last of that was said.
    at: u64,
}

struct Life {
    house: House,
    simulated: Simulated,
    customers: Vec<Customer>,
    calls: Vec<Call>,
    tasks: Vec<(BegunTask, usize)>,
    syncing: Option<(u64, BegunSync)>,
    events: u64,
    /// What ended before this event is in the database, or in a journal that was synced.
    safe: u64,
    credited: i64,
}

/// What it says at once.
pub async fn now<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = ready(()) => None,
    }
}

pub async fn open(
    dir: &Arc<tempfile::TempDir>,
    name: &str,
    clock: &TestClock,
    of: (u64, Planted),
) -> (House, Simulated) {
    let (opening, simulated) = begin(dir, name, clock, of);
    (simulated.stepped(opening).await, simulated)
}

/// A store that is about to open, and what commits for it.
pub fn begin(
    dir: &Arc<tempfile::TempDir>,
    name: &str,
    clock: &TestClock,
    (seed, planted): (u64, Planted),
) -> (impl Future<Output = House> + use<>, Simulated) {
    let data = dir.path().join(name);
    std::fs::create_dir_all(&data).expect("a folder");
    let simulated = Simulated::new(&data);
    simulated.disk.ignore_syncs(planted == Planted::Deaf, false);
    let tight = Options {
        sums_apart: 8,
        journal_segment: 4 << 10,
        old_after: 8,
        simulated: Some(simulated.clone()),
        journal_is_overrated: planted == Planted::Overrated,
        ..options()
    };
    let place = DataLocation { url: "sqlite".into(), data_dir: data };
    (House::open_in(dir.clone(), place, tight, clock.clone(), seed), simulated)
}

/// A start of which there are only so many commits before the next crash.
pub async fn cut_short(
    (dir, from, to): (&Arc<tempfile::TempDir>, &str, &str),
    clock: &TestClock,
    of: (u64, Planted),
    commits: u64,
    (how, any): (Crash, &mut dyn FnMut(usize) -> usize),
) -> bool {
    let (opening, simulated) = begin(dir, from, clock, of);
    let mut opening = Box::pin(opening);
    let mut opened = now(opening.as_mut()).await;
    for _ in 0..commits {
        if opened.is_none() {
            simulated.commit();
            opened = now(opening.as_mut()).await;
        }
    }
    std::fs::create_dir(dir.path().join(to)).expect("a folder");
    simulated.disk.crash(how, &dir.path().join(to), any);
    opened.is_none()
}

impl Life {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    async fn give(&mut self, customer: usize, pot: Pot, amount: i64, expires: bool) {
        let credit = Credit {
            id: format!("{customer} {}", self.house.maker.call()),
            account: self.customers[customer].account,
            kind: CreditKind::TopUp,
            pot,
            amount: Money::from_nano(amount),
            expires_at: expires.then(|| self.house.clock.now() + 40_000_000),
            reason: String::new(),
            actor: String::new(),
        };
        self.simulated.stepped(self.house.store.credit(credit)).await.expect("credited");
        self.credited += amount;
    }

    /// One thing happens.
    async fn step(&mut self, draw: &mut Draw) {
        let open: Vec<usize> = (0..self.calls.len()).filter(|n| !self.calls[*n].closed).collect();
        let one = |draw: &mut Draw| open[usize::try_from(draw.below(open.len() as u64)).expect("few")];
        match draw.below(100) {
            0..30 => self.hold(draw).await,
            30..40 if !open.is_empty() => {
                let call = &mut self.calls[one(draw)];
                if now(call.held.durable()).await.is_some_and(|done| done.is_ok()) {
                    call.promised = true;
                }
            }
            40..55 if !open.is_empty() => self.close(one(draw), draw),
            55..60 if !open.is_empty() => {
                let call = &mut self.calls[one(draw)];
                call.said += draw.amount(1 + call.amount.unsigned_abs() / 4);
                let customer = &self.customers[call.customer];
                self.house.store.mark(self.house.mark(customer, call.held.call, call.said));
            }
            60..64 if !open.is_empty() => {
                let call = &mut self.calls[one(draw)];
                let more = self.house.more(&self.customers[call.customer], call.held.call, 1, draw.amount(300) + 1);
                call.extended |= self.house.store.extend(more).await.is_ok();
            }
            64..68 => self.task(draw).await,
            68..69 => self.give(usize::from(draw.below(2) == 0), Pot::Trial, 200, true).await,
            69..71 => self.house.clock.advance(draw.amount(4_000)),
            71..72 => self.sweep().await,
            72..90 => self.sync(),
            90..93 => self.simulated.checkpoint(),
            _ => {
                let event = self.event();
                self.simulated.commit();
                self.safe = event;
            }
        }
    }

    /// Some calls are past their time, and are ended with what their marks say.
    async fn sweep(&mut self) {
        let (at, event) = (self.house.clock.now(), self.event());
        // What it asks the database for is not waited for.
        let _ = now(self.house.store.sweep(at)).await;
        for call in self.calls.iter_mut().filter(|call| !call.closed && call.until <= at) {
            (call.closed, call.at) = (true, event);
        }
    }

    async fn hold(&mut self, draw: &mut Draw) {
        let customer = usize::from(draw.below(2) == 0);
        let amount = draw.amount(400) + 1;
        let mut wish = self.house.wish(&self.customers[customer], amount);
        wish.paid_only = draw.below(4) == 0;
        wish.expires_at = self.house.clock.now() + 1 + draw.amount(30_000);
        let until = wish.expires_at;
        if let Ok(held) = self.house.store.hold(wish).await {
            let (promised, extended, said, closed) = (false, false, 0, false);
            self.calls.push(Call { held, customer, amount, until, promised, extended, said, closed, at: 0 });
        }
    }

    fn close(&mut self, number: usize, draw: &mut Draw) {
        let event = self.event();
        let call = &mut self.calls[number];
        (call.closed, call.at) = (true, event);
        call.said = if draw.below(3) == 0 { 0 } else { draw.amount(call.amount.unsigned_abs() + 1) };
        let customer = &self.customers[call.customer];
        drop(self.house.store.close(self.house.ending(customer, call.held.call, call.said)));
    }

    /// Begins a task, or ends one: what it gives back is in no journal.
    async fn task(&mut self, draw: &mut Draw) {
        if let Some((begun, customer)) = self.tasks.pop() {
            let end = self.house.refused_task(&self.customers[customer], begun);
            let _ = now(self.house.store.finish_task(end)).await;
            return;
        }
        let customer = usize::from(draw.below(2) == 0);
        let wish = self.house.wish(&self.customers[customer], draw.amount(600) + 1);
        let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
        if let Ok(begun) = self.simulated.stepped(self.house.store.begin_task(wish, new)).await {
            self.tasks.push((begun, customer));
        }
    }

    fn sync(&mut self) {
        match self.syncing.take() {
            None => {
                let event = self.event();
                self.syncing = self.simulated.begin_sync().map(|sync| (event, sync));
            }
            Some((upto, sync)) => {
                assert!(self.simulated.end_sync(sync), "this disk can be synced");
                self.safe = self.safe.max(upto);
            }
        }
    }
}

/// What must be true after a crash of what was known before it.
async fn check(life: &Life, calls: &[Call], (how, safe): (Crash, u64), what: &str) {
    let store = &life.house.store;
    let report = life.simulated.stepped(store.verify()).await.expect("the audit runs");
    assert!(report.breaches.is_empty(), "{what}: the audit found {:#?}", report.breaches);
    let page = UsagePage { before: None, limit: 100_000 };
    let rows = life.simulated.stepped(store.usage(None, page)).await.expect("the log");
    let row_of = |call: CallId| rows.iter().find(|row| row.call == call);
    for call in calls {
        let row = row_of(call.held.call);
        let id = call.held.call;
        assert!(row.is_some() || !call.promised, "{what}: {id} was durable and is in no log");
        assert!(row.is_some() || how == Crash::PowerCut, "{what}: {id} was written and is in no log");
        let Some(row) = row else { continue };
        let kept = row.hold.nano() == call.amount || call.extended && row.hold.nano() > call.amount;
        assert!(kept || !call.promised, "{what}: {id} held {} and now {row:#?}", call.amount);
        let total = row.charge.nano() + row.write_off.nano();
        let whole = how == Crash::Killed || call.at < safe;
        if call.closed && whole {
            assert_eq!(total, call.said, "{what}: {id} has ended with that");
        }
        if !call.closed && how == Crash::Killed {
            assert_eq!(total, call.said, "{what}: {id} was marked with that");
        }
        assert!(call.said > 0 || total == 0 || !whole, "{what}: {id} costs {total}");
    }
    let (mut left, mut charged) = (0, 0);
    for customer in &life.customers {
        let account = store.account(customer.account).await.expect("reading").expect("the account");
        left += account.trial_available.nano() + account.paid_available.nano();
        left += account.trial_held.nano() + account.paid_held.nano();
        charged += rows.iter().filter(|row| row.account == customer.account).map(|row| row.charge.nano()).sum::<i64>();
    }
    assert_eq!(left + charged, life.credited, "{what}: all of the money is somewhere");
    assert_eq!(store.gauges().open_holds, 0, "{what}: every call has ended");
}

async fn simulate(seed: u64, planted: Planted) {
    let mut draw = Draw(seed);
    let dir = Arc::new(tempfile::tempdir().expect("a folder"));
    let clock = TestClock::default();
    let (house, simulated) = open(&dir, "0", &clock, (seed << 20, planted)).await;
    let mut life = Life {
        house,
        simulated,
        customers: Vec::new(),
        calls: Vec::new(),
        tasks: Vec::new(),
        syncing: None,
        events: 0,
        safe: 0,
        credited: 0,
    };
    for n in 0..2 {
        let made = life.simulated.stepped(life.house.customer(0, 0)).await;
        life.customers.push(made);
        life.give(n, Pot::Paid, 1_500, false).await;
        life.give(n, Pot::Trial, 400, true).await;
        life.give(n, Pot::Trial, 100, false).await;
    }
    for number in 1..=draw.below(4) + 1 {
        for _ in 0..draw.below(160) {
            life.step(&mut draw).await;
        }
        let how = if draw.below(2) == 0 { Crash::Killed } else { Crash::PowerCut };
        if draw.below(4) == 0 {
            life.simulated.torn_commit();
        }
        let mut name = number.to_string();
        std::fs::create_dir(dir.path().join(&name)).expect("a folder");
        let mut any = |below: usize| usize::try_from(draw.below(below as u64)).expect("small");
        life.simulated.disk.crash(how, &dir.path().join(&name), &mut any);
        // What the next one does not live to put right is for the one after it.
        let mut again = Draw(!seed.wrapping_add(number << 32));
        while again.below(5) == 0 {
            let (next, commits) = (format!("{name} again"), again.below(20));
            let how = if again.below(2) == 0 { Crash::Killed } else { Crash::PowerCut };
            let mut any = |below: usize| usize::try_from(again.below(below as u64)).expect("small");
            let of = ((seed << 20) + number, planted);
            cut_short((&dir, &name, &next), &clock, of, commits, (how, &mut any)).await;
            name = next;
        }
        let (calls, safe) = (std::mem::take(&mut life.calls), life.safe);
        (life.syncing, life.tasks) = (None, Vec::new());
        clock.advance(1_000);
        (life.house, life.simulated) = open(&dir, &name, &clock, ((seed << 20) + number, planted)).await;
        check(&life, &calls, (how, safe), &format!("seed {seed}, life {number}, {how:?}")).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "which seeds to run is said from outside")]
fn asked(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number"))
}

fn run(seed: u64, planted: Planted) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(simulate(seed, planted));
}

#[test]
fn nothing_that_was_promised_is_lost_with_the_power() {
    let seeds = asked("TOLLGATE_SIM_SEED").map_or(0..asked("TOLLGATE_SIM_SEEDS").unwrap_or(SEEDS), |one| one..one + 1);
    for seed in seeds {
        run(seed, Planted::Nothing);
    }
}

/// What it is good for: holds that are called durable before the disk has them are found.
#[test]
fn holds_that_are_not_on_the_disk_are_found() {
    assert!(is_found(Planted::Deaf, 0..SEEDS));
}

/// And holds that rest on the end of a task, which no journal has.
#[test]
fn holds_on_what_the_journal_does_not_know_are_found() {
    // One in some hundred seeds shows it: this is the first of those that do.
    assert!(is_found(Planted::Overrated, 337..2_000));
}

fn is_found(planted: Planted, mut seeds: std::ops::Range<u64>) -> bool {
    seeds.any(|seed| {
        let found = std::panic::catch_unwind(|| run(seed, planted)).is_err();
        if found {
            println!("{planted:?} is found by seed {seed}");
        }
        found
    })
}
