//! A storm: what customers, banks and the line to Stripe do to many orders at once. Each session
//! has a fate; its news come late, twice, in another order, or never, and between them come news
//! that somebody forged. The same seed gives the same storm.

use super::{StripeSim, signature};

/// What is done next.
#[derive(Clone, Debug)]
pub enum StormStep {
    /// Somebody does something at Stripe; nobody hears of it yet.
    Act(StormAct),
    /// A message arrives.
    Message { body: String, header: String, forged: bool },
}

#[derive(Clone, Debug)]
pub struct StormAct {
    pub session: String,
    kind: ActKind,
    /// Which news follow, how many at which times.
    news: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum ActKind {
    Pay,
    Promise,
    Fail,
    Expire,
    Refund(i64),
    Dispute(i64),
    Decide(bool),
    Tamper(i64),
}

/// A plan for all sessions.
pub struct Storm {
    /// In order of their time: acts, and news of an act that was done before.
    timeline: Vec<(u64, usize, Planned)>,
    next: usize,
    written: std::collections::BTreeMap<usize, String>,
    acts: Vec<StormAct>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Planned {
    Act,
    News,
    Forged,
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        // SplitMix64: the same everywhere.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

impl Storm {
    /// The fate of each session, of these amounts in the smallest unit.
    pub fn new(sessions: &[(String, i64)], seed: u64) -> Storm {
        let mut random = Random(seed);
        let (mut acts, mut timeline) = (Vec::new(), Vec::new());
        for (session, amount) in sessions {
            let mut at = random.below(100);
            for (kind, news) in fate(&mut random, *amount) {
                let number = acts.len();
                timeline.push((at, number, Planned::Act));
                acts.push(StormAct { session: session.clone(), kind, news });
                // One in twenty is never told.
                let copies = if random.below(20) == 0 { 0 } else { 1 + random.below(3) };
                for _ in 0..copies {
                    timeline.push((at + 1 + random.below(60), number, Planned::News));
                }
                if random.below(5) == 0 {
                    timeline.push((at + 1 + random.below(60), number, Planned::Forged));
                }
                at += 1 + random.below(30);
            }
        }
        timeline.sort_by_key(|(at, number, _)| (*at, *number));
        Storm { timeline, next: 0, written: std::collections::BTreeMap::new(), acts, random }
    }

    /// Does what is next at Stripe, or gives the message that arrives. `None`: it is over.
    pub fn step(&mut self, sim: &StripeSim) -> Option<StormStep> {
        loop {
            let (_, number, planned) = *self.timeline.get(self.next)?;
            self.next += 1;
            let act = self.acts[number].clone();
            match planned {
                Planned::Act => {
                    act.kind.done(sim, &act.session);
                    if act.news.is_some() {
                        self.written.insert(number, sim.event(act.news.unwrap_or_default(), &act.session).0);
                    }
                    return Some(StormStep::Act(act));
                }
                Planned::News => {
                    let Some(body) = self.written.get(&number).cloned() else { continue };
                    let header = sim.signed(&body, sim.now_s());
                    return Some(StormStep::Message { body, header, forged: false });
                }
                Planned::Forged => {
                    let Some(body) = self.written.get(&number).cloned() else { continue };
                    return Some(self.forged(sim, &body));
                }
            }
        }
    }

    /// A message that must not be believed.
    fn forged(&mut self, sim: &StripeSim, body: &str) -> StormStep {
        let now = sim.now_s();
        let good = sim.signed(body, now);
        let (body, header) = match self.random.below(5) {
            0 => (body.to_owned(), signature("", body, now)),
            1 => (body.to_owned(), signature("whsec_somebody_elses_secret", body, now)),
            2 => (body.replace("\"livemode\":false", "\"livemode\":false "), good),
            3 => (body.to_owned(), sim.signed(body, now - 301)),
            _ => (body.to_owned(), good.replace("v1=", "v2=")),
        };
        StormStep::Message { body, header, forged: true }
    }
}

/// What is left of a session's money for whom it was paid, in the smallest unit, once all is done.
pub fn left_of(sim: &StripeSim, session: &str, ordered: i64) -> i64 {
    let book = sim.book();
    let Some(one) = book.sessions.get(session) else { return 0 };
    if one.payment != super::book::Payment::Paid || one.amount != ordered {
        return 0;
    }
    let disputed: i64 = one.disputes.iter().filter(|(_, status)| *status != "won").map(|(amount, _)| amount).sum();
    (one.amount - one.refunded - disputed).max(0)
}

impl ActKind {
    fn done(self, sim: &StripeSim, session: &str) {
        let mut book = sim.book();
        match self {
            ActKind::Pay => book.pay(session),
            ActKind::Promise => book.promise(session),
            ActKind::Fail => book.fail(session),
            ActKind::Expire => book.expire(session),
            ActKind::Refund(minor) => book.refund(session, minor),
            ActKind::Dispute(minor) => book.dispute(session, minor),
            ActKind::Decide(won) => book.decide(session, won),
            ActKind::Tamper(amount) => book.tamper(session, amount, "usd", false),
        }
    }
}

fn fate(random: &mut Random, amount: i64) -> Vec<(ActKind, Option<&'static str>)> {
    let paid = (ActKind::Pay, Some("checkout.session.completed"));
    let some = |random: &mut Random| 1 + i64::try_from(random.below(amount.unsigned_abs())).unwrap_or_default();
    match random.below(12) {
        0..4 => vec![paid],
        4 => vec![
            (ActKind::Promise, Some("checkout.session.completed")),
            (ActKind::Pay, Some("checkout.session.async_payment_succeeded")),
        ],
        5 => vec![
            (ActKind::Promise, Some("checkout.session.completed")),
            (ActKind::Fail, Some("checkout.session.async_payment_failed")),
        ],
        6 => vec![(ActKind::Expire, Some("checkout.session.expired"))],
        7 => vec![paid, (ActKind::Refund(some(random)), Some("charge.refunded"))],
        8 => vec![paid, (ActKind::Refund(amount), Some("refund.updated"))],
        9 => vec![paid, (ActKind::Dispute(some(random)), Some("charge.dispute.created"))],
        10 => vec![
            paid,
            (ActKind::Dispute(amount), Some("charge.dispute.created")),
            (ActKind::Decide(random.below(2) == 0), Some("charge.dispute.closed")),
        ],
        _ => vec![(ActKind::Tamper(amount + 1), None), paid],
    }
}
