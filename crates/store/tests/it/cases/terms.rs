//! Trial credit that expires, spending limits and corrections, as tables that can be read aloud.
//! Behind `=>` is the answer, behind `|` the pots after the line: trial available, paid available,
//! trial held, paid held. Days are counted from the first one, 2 February 2026; the clock shows
//! 02:40 at the beginning and credit lasts whole days from the moment it is given.

use std::collections::HashMap;

use tollgate_catalog::Money;
use tollgate_store::{CallId, Change, Close, Credit, CreditKind, HoldRefused, LimitKind, LimitReached, NewLimits, Pot};

use crate::common::{Customer, House};

const DAY: i64 = 86_400_000;
const FIRST: i64 = 1_769_990_400_000;

struct Play {
    h: House,
    c: Customer,
    calls: HashMap<String, CallId>,
    lines: usize,
}

impl Play {
    async fn begin(h: House) -> Self {
        let c = h.customer(0, 0).await;
        Self { h, c, calls: HashMap::new(), lines: 0 }
    }

    async fn table(mut self, table: &str) -> Self {
        for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
            self.lines += 1;
            let (wish, rest) = line.split_once("=>").unwrap_or((line, ""));
            let (answer, pots) = rest.split_once('|').unwrap_or((rest, ""));
            let words: Vec<&str> = wish.split_whitespace().collect();
            assert_eq!(self.line(&words).await, answer.trim(), "{line}");
            let wanted: Vec<&str> = pots.split_whitespace().collect();
            if !wanted.is_empty() {
                let (trial, paid, trial_held, paid_held) = self.h.pots(&self.c).await;
                assert_eq!(format!("{trial} {paid} {trial_held} {paid_held}"), wanted.join(" "), "{line}");
            }
        }
        self
    }

    async fn restart(self) -> Self {
        Self { h: self.h.reopen().await, ..self }
    }

    async fn end(self) {
        self.h.close().await;
    }

    async fn line(&mut self, words: &[&str]) -> String {
        let amount = |i: usize| words[i].parse::<i64>().expect("a number");
        match words[0] {
            "at" => {
                self.h.clock.advance(moment(words[1], words[2]) - self.h.clock.now());
                String::new()
            }
            "sweep" => {
                let lapsed = self.h.store.sweep(self.h.clock.now()).await.expect("a sweep").lapsed;
                format!("lapsed {lapsed}")
            }
            "give" | "adjust" => {
                let days = words.get(4).map(|_| amount(5));
                self.credit(words[0], words[1], words[2], amount(3), days).await
            }
            "refund" => {
                let kind = CreditKind::Refund { call: self.calls[words[1]] };
                let done = self.h.credit(&self.c, "refund", kind, Pot::Paid, amount(2)).await;
                if done.is_ok() { "ok" } else { "refused" }.into()
            }
            "hold" => {
                let mut wish = self.h.wish(&self.c, amount(2));
                wish.paid_only = words.get(3) == Some(&"paid-only");
                wish.expires_at += 1_000 * DAY;
                match self.h.hold(wish).await {
                    Ok(held) => {
                        self.calls.insert(words[1].to_owned(), held.call);
                        "ok".into()
                    }
                    Err(refused) => refusal(&refused),
                }
            }
            "more" => {
                let more = self.h.more(&self.c, self.calls[words[1]], 1, amount(2));
                self.h.extend(more).await.map_or_else(|refused| refusal(&refused), |_| "ok".into())
            }
            "close" => {
                let closing = self.h.store.close(self.h.ending(&self.c, self.calls[words[1]], amount(2)));
                let closed = closing.await.expect("closed");
                match closed.write_off.nano() {
                    0 => format!("charged {}", closed.captured.nano()),
                    lost => format!("charged {} lost {lost}", closed.captured.nano()),
                }
            }
            "limit" => self.limit(words[1], words[2], words[3]).await,
            "ends" => self.ends().await,
            "used" => self.used().await,
            other => panic!("no verb {other}"),
        }
    }

    async fn credit(&self, verb: &str, id: &str, pot: &str, amount: i64, days: Option<i64>) -> String {
        let credit = Credit {
            id: id.into(),
            account: self.c.account,
            kind: if verb == "give" { CreditKind::TopUp } else { CreditKind::Adjust },
            pot: if pot == "trial" { Pot::Trial } else { Pot::Paid },
            amount: Money::from_nano(amount),
            expires_at: days.map(|days| self.h.clock.now() + days * DAY),
            reason: format!("because of {id}"),
            actor: "Ada".into(),
        };
        match self.h.store.credit(credit).await {
            Ok(done) if done.applied => "ok".into(),
            Ok(_) => "as before".into(),
            Err(_) => "refused".into(),
        }
    }

    async fn limit(&self, whose: &str, span: &str, limit: &str) -> String {
        let change = limit.parse().map_or(Change::Lift, |nano| Change::Set(Money::from_nano(nano)));
        let mut limits = NewLimits::default();
        *match span {
            "day" => &mut limits.day,
            "month" => &mut limits.month,
            _ => &mut limits.total,
        } = change;
        let done = match whose {
            "key" => self.h.store.change_key(self.c.key, limits.into(), Default::default()).await.map(|k| k.is_some()),
            _ => self
                .h
                .store
                .change_account(self.c.account, limits.into(), Default::default())
                .await
                .map(|a| a.is_some()),
        };
        if done.is_ok_and(|found| found) { "ok" } else { "refused" }.into()
    }

    /// Credit that expires: its id, what is available and held of it, and when it ends.
    async fn ends(&self) -> String {
        let expiring = self.h.store.expiring(self.c.account).await.expect("reading");
        let shown = expiring
            .iter()
            .map(|e| format!("{} {}+{} {}", e.credit, e.available.nano(), e.held.nano(), shown_moment(e.expires_at)));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// What the key and the account have used this day and month.
    async fn used(&self) -> String {
        let key = &self.h.store.keys(self.c.account).await.expect("keys")[0].used;
        let account = self.h.store.account(self.c.account).await.expect("reading").expect("the account").used;
        assert_eq!((key.day, key.month), (account.day, account.month), "the account has one key");
        format!("{} {}", key.day.nano(), key.month.nano())
    }
}

fn moment(day: &str, time: &str) -> i64 {
    let (hours, minutes) = time.split_once(':').expect("a time");
    let number = |text: &str| text.parse::<i64>().expect("a number");
    FIRST + number(day) * DAY + number(hours) * 3_600_000 + number(minutes) * 60_000
}

fn shown_moment(at: i64) -> String {
    let (day, time) = ((at - FIRST).div_euclid(DAY), (at - FIRST).rem_euclid(DAY) / 60_000);
    format!("{day} {:02}:{:02}", time / 60, time % 60)
}

fn refusal(refused: &HoldRefused) -> String {
    let HoldRefused::Limit(LimitReached { kind, frees_at, .. }) = refused else {
        assert!(matches!(refused, HoldRefused::Insufficient { .. }), "{refused}");
        return "no money".into();
    };
    let kind = match kind {
        LimitKind::KeyTotal => "key total",
        LimitKind::KeyDay => "key day",
        LimitKind::KeyMonth => "key month",
        LimitKind::AccountDay => "account day",
        LimitKind::AccountMonth => "account month",
    };
    frees_at.map_or_else(|| kind.to_owned(), |at| format!("{kind} until {}", shown_moment(at)))
}

pub async fn trial_credit_expires(h: House) {
    let play = Play::begin(h).await.table(
        "give gift  trial 100 for 10 => ok                                       | 100   0  0  0
         give bonus trial  50 for 5  => ok                                       | 150   0  0  0
         give keep  trial  20        => ok                                       | 170   0  0  0
         give pay   paid  100        => ok                                       | 170 100  0  0
         ends                        => bonus 50+0 5 02:40, gift 100+0 10 02:40
         hold A 60                   => ok                                       | 110 100 60  0
         ends                        => bonus 0+50 5 02:40, gift 90+10 10 02:40
         close A 55                  => charged 55                               | 115 100  0  0
         ends                        => gift 95+0 10 02:40
         at 10 02:39
         sweep                       => lapsed 0                                 | 115 100  0  0
         at 10 02:40
         sweep                       => lapsed 1                                 |  20 100  0  0
         sweep                       => lapsed 0                                 |  20 100  0  0
         ends                        =>
         hold B 130                  => no money                                 |  20 100  0  0
         hold B 120                  => ok                                       |   0   0 20 100
         close B 130                 => charged 120 lost 10                      |   0   0  0  0",
    );
    let play = play.await;
    let events = play.h.store.events(play.c.account, tollgate_store::EventPage::default()).await.expect("reading");
    let shown: Vec<_> =
        events.iter().map(|e| (e.kind.as_str(), e.trial.nano(), e.reference.as_str(), e.reason.as_str())).collect();
    assert_eq!(shown[0], ("lapse", 95, "gift", "expired"), "the expiry names the credit it takes back");
    assert_eq!(events[0].actor, "tollgate");
    assert_eq!(
        shown[1..],
        [
            ("top_up", 0, "pay", "because of pay"),
            ("trial_credit", 20, "keep", "because of keep"),
            ("trial_credit", 50, "bonus", "because of bonus"),
            ("trial_credit", 100, "gift", "because of gift"),
        ]
    );
    play.end().await;
}

pub async fn expiry_never_takes_what_is_held(h: House) {
    let play = Play::begin(h).await.table(
        "give gift trial 100 for 1 => ok                   | 100   0   0   0
         give pay  paid  100       => ok                   | 100 100   0   0
         hold A 70                 => ok                   |  30 100  70   0
         at 1 02:40
         sweep                     => lapsed 1             |   0 100  70   0
         ends                      => gift 0+70 1 02:40
         hold B 50                 => ok                   |   0  50  70  50
         close A 20                => charged 20           |   0  50   0  50
         close B 0                 => charged 0            |   0 100   0   0
         sweep                     => lapsed 0             |   0 100   0   0
         give late trial 40 for 1  => ok                   |  40 100   0   0
         hold C 60                 => ok                   |   0  80  40  20
         at 5 00:00
         more C 30                 => ok                   |   0  50  40  50
         close C 200               => charged 140 lost 60  |   0   0   0   0
         ends                      =>",
    );
    play.await.end().await;
}

pub async fn a_hold_needs_no_sweep_to_see_what_has_expired(h: House) {
    let play = Play::begin(h).await.table(
        "give gift trial 100 for 1 => ok          | 100  0 0  0
         give pay  paid   10       => ok          | 100 10 0  0
         hold A 5 paid-only        => ok          | 100  5 0  5
         at 1 02:40
         hold B 6                  => no money    |   0  5 0  5
         hold B 5                  => ok          |   0  0 0 10
         close A 8                 => charged 5 lost 3 | 0 0 0 5
         close B 1                 => charged 1   |   0  4 0  0",
    );
    play.await.end().await;
}

pub async fn corrections_of_credit_that_expires(h: House) {
    let play = Play::begin(h).await.table(
        "give   gift  trial  100 for 2 => ok                  | 100   0  0  0
         give   gift  trial  100 for 9 => as before           | 100   0  0  0
         give   gift  trial  101 for 2 => refused             | 100   0  0  0
         give   past  trial   10 for 0 => refused             | 100   0  0  0
         give   cash  paid    10 for 2 => refused             | 100   0  0  0
         adjust more  trial   20 for 1 => ok                  | 120   0  0  0
         adjust less  trial  -30       => ok                  |  90   0  0  0
         ends                          => gift 90+0 2 02:40
         adjust less  trial  -30       => as before           |  90   0  0  0
         adjust much  trial  -91       => refused             |  90   0  0  0
         adjust down  paid    -1       => refused             |  90   0  0  0
         hold A 50                     => ok                  |  40   0 50  0
         adjust much  trial  -41       => refused             |  40   0 50  0
         close A 50                    => charged 50          |  40   0  0  0
         at 2 02:40
         sweep                         => lapsed 1            |   0   0  0  0
         adjust less  trial  -30       => as before           |   0   0  0  0
         refund A 51                   => refused             |   0   0  0  0
         refund A 50                   => ok                  |  50   0  0  0
         at 300 00:00
         sweep                         => lapsed 0            |  50   0  0  0",
    );
    play.await.end().await;
}

pub async fn limits_by_day_and_month(h: House) {
    let play = Play::begin(h).await.table(
        "give  pay   paid 10000 => ok
         limit key day 100      => ok
         limit key month 250    => ok
         hold A 60              => ok
         hold B 41              => key day until 1 00:00
         hold B 40              => ok
         used                   => 100 100
         close A 10             => charged 10
         used                   => 50 50
         hold C 51              => key day until 1 00:00
         hold C 101             => key day
         hold C 50              => ok
         close C 0              => charged 0
         close B 40             => charged 40
         at 0 23:59
         hold D 50              => ok
         at 1 00:00
         used                   => 0 100
         hold E 100             => ok
         close D 0              => charged 0
         used                   => 100 150
         close E 100            => charged 100
         at 2 12:00
         hold F 101             => key day
         hold F 100             => ok
         hold G 1               => key day until 3 00:00
         limit key day none     => ok
         hold G 1               => key month until 27 00:00
         close F 99             => charged 99
         hold G 1               => ok
         close G 1              => charged 1
         used                   => 100 250
         at 26 23:59
         hold H 1               => key month until 27 00:00
         limit key month none   => ok
         hold H 1               => ok
         limit key month 250    => ok
         limit key day 100      => ok
         at 27 00:00
         used                   => 0 0
         hold I 100             => ok
         close H 1              => charged 1
         used                   => 100 100
         close I 30             => charged 30
         used                   => 30 30",
    );
    play.await.end().await;
}

pub async fn limits_of_an_account_and_in_total(h: House) {
    let play = Play::begin(h).await.table(
        "give  pay paid 10000     => ok
         limit account day 100    => ok
         limit account total 100  => refused
         limit account day -1     => refused
         limit key total 150      => ok
         hold A 101               => account day
         hold A 100               => ok
         hold B 1                 => account day until 1 00:00
         close A 60               => charged 60",
    );
    let play = play.await;
    let other = play.h.key(play.c.account, None).await;
    let mut wish = play.h.wish(&play.c, 41);
    wish.key = other.id;
    assert!(matches!(play.h.hold(wish).await, Err(HoldRefused::Limit(_))), "all keys of the account count");
    let play = play.table(
        "hold B 40             => ok
         more B 1              => account day until 1 00:00
         close B 40            => charged 40
         at 1 00:00
         hold C 50             => ok
         more C 1              => key total
         close C 55            => charged 55
         limit account day none => ok
         limit account month 200 => ok
         limit key total none  => ok
         hold D 45             => ok
         hold E 1              => account month until 27 00:00
         close D 0             => charged 0",
    );
    play.await.end().await;
}

pub async fn an_extension_counts_on_the_day_it_is_made(h: House) {
    let play = Play::begin(h).await.table(
        "give  pay paid 10000 => ok
         limit key day 100    => ok
         at 0 23:59
         hold A 80            => ok
         more A 21            => key day until 1 00:00
         at 1 00:00
         more A 60            => ok
         used                 => 60 140
         hold B 41            => key day until 2 00:00
         close A 100          => charged 100
         used                 => 20 100
         hold B 80            => ok
         close B 80           => charged 80",
    );
    play.await.end().await;
}

pub async fn a_clock_set_back_opens_no_day_again(h: House) {
    let play = Play::begin(h).await.table(
        "give  pay  paid  1000      => ok
         give  gift trial   50 for 1 => ok
         limit key day 100          => ok
         at 3 00:00
         hold A 100                 => ok | 0 900 0 100
         at 2 12:00
         hold B 1                   => key day until 4 00:00
         close A 100                => charged 100
         hold B 1                   => key day until 4 00:00
         at 3 23:59
         hold B 1                   => key day until 4 00:00
         at 4 00:00
         hold B 100                 => ok
         close B 100                => charged 100",
    );
    play.await.end().await;
}

pub async fn a_refund_gives_back_to_the_limit_for_all_time_only(h: House) {
    let play = Play::begin(h).await.table(
        "give  pay paid 1000  => ok
         limit key total 100  => ok
         limit key day 100    => ok
         hold A 100           => ok
         close A 100          => charged 100
         refund A 60          => ok
         hold B 1             => key day until 1 00:00
         at 1 00:00
         hold B 61            => key total
         hold B 60            => ok
         close B 60           => charged 60",
    );
    play.await.end().await;
}

/// Whichever replica was asked for it.
pub async fn a_new_limit_is_in_force_with_the_next_call(h: House) {
    let c = h.customer(0, 1_000).await;
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 10)).await.expect("closed");
    let other = if h.place.url == "sqlite" { None } else { Some(House::open(&h.place.url).await) };
    let changed = other.as_ref().map_or(&h.store, |other| &other.store);
    let day = |nano| NewLimits { day: Change::Set(Money::from_nano(nano)), ..NewLimits::default() };
    changed.change_key(c.key, day(20).into(), Default::default()).await.expect("limited");
    assert!(matches!(h.hold(h.wish(&c, 11)).await, Err(HoldRefused::Limit(_))));
    changed.change_key(c.key, day(30).into(), Default::default()).await.expect("limited");
    changed.change_account(c.account, day(15).into(), Default::default()).await.expect("limited");
    assert!(matches!(h.hold(h.wish(&c, 11)).await, Err(HoldRefused::Limit(_))));
    let call = h.held(&c, 5).await;
    h.store.close(h.ending(&c, call, 5)).await.expect("closed");
    if let Some(other) = other {
        other.store.shut().await;
    }
    h.close().await;
}

pub async fn limits_and_expiry_survive_a_restart(h: House) {
    let play = Play::begin(h).await.table(
        "give  gift trial 40 for 1 => ok
         give  pay  paid 1000      => ok
         limit key day 100         => ok
         limit account month 150   => ok
         hold A 60                 => ok         | 0 980 40 20
         close A 60                => charged 60 | 0 980  0  0
         give  more trial 30 for 2 => ok         | 30 980 0 0
         hold B 40                 => ok         | 0 970 30 10",
    );
    let play = play.await.restart().await.table(
        "used                      => 60 60
         ends                      => more 30+0 2 02:40
         hold C 41                 => key day until 1 00:00
         hold C 40                 => ok         | 0 970 30 10
         close C 10                => charged 10 | 20 980 0 0
         at 1 12:00
         hold D 81                 => account month until 27 00:00
         hold D 30                 => ok         | 0 970 20 10
         at 2 12:00",
    );
    let play = play.await.restart().await.table(
        "ends                      =>            | 0 980 0 0
         used                      => 0 70",
    );
    play.await.end().await;
}

pub async fn a_charge_above_its_hold_says_which_credit_it_took(h: House) {
    let play = Play::begin(h).await.table(
        "give gift trial 30 for 1 => ok          | 30  0  0  0
         give next trial 50 for 2 => ok          | 80  0  0  0
         hold A 10                => ok          | 70  0 10  0
         close A 45               => charged 45  | 35  0  0  0
         ends                     => next 35+0 2 02:40
         hold B 5                 => ok          | 30  0  5  0
         close B 0                => charged 0   | 35  0  0  0",
    );
    let play = play.await.restart().await;
    // One that was cut short, and cost more than it held.
    let cut = play.h.held(&play.c, 5).await;
    let close = Close { reason: "client_left".into(), ..play.h.ending(&play.c, cut, 9) };
    play.h.store.close(close).await.expect("closed");
    let grown = play.h.held(&play.c, 5).await;
    play.h.extend(play.h.more(&play.c, grown, 1, 8)).await.expect("extended");
    play.h.store.close(play.h.ending(&play.c, grown, 0)).await.expect("closed");
    let page = tollgate_store::EntryPage {
        account: Some(play.c.account),
        from: None,
        to: None,
        after: 0,
        until: None,
        limit: 100,
    };
    let entries = play.h.store.entries(page).await.expect("entries");
    let kinds: Vec<(&str, usize, bool)> = entries
        .iter()
        .filter(|entry| entry.call.is_some())
        .map(|entry| {
            let lots = entry.lots.as_deref().map_or(0, |lots| lots.split(',').count());
            (entry.kind.as_str(), lots, entry.reason.is_some())
        })
        .collect();
    let wanted = [
        ("hold", 1, false),
        ("extend", 2, false),
        ("settle", 0, false),
        ("hold", 1, false),
        ("void", 0, true),
        ("hold", 1, false),
        ("extend", 1, false),
        ("settle", 0, false),
        ("hold", 1, false),
        ("extend", 1, false),
        ("void", 0, true),
    ];
    assert_eq!(kinds, wanted, "kind, credits it came from, whether it says why");
    play.end().await;
}

pub async fn many_at_once_keep_the_limit_of_the_day(h: House) {
    let h = std::sync::Arc::new(h);
    let c = std::sync::Arc::new(h.customer(100, 100_000).await);
    let day = Change::Set(Money::from_nano(1_000));
    h.store
        .change_account(c.account, NewLimits { day, ..NewLimits::default() }.into(), Default::default())
        .await
        .expect("limited");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..500i64 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move {
            let held = h.hold(h.wish(&c, 50)).await.ok()?;
            let grown = h.extend(h.more(&c, held.call, 1, 30)).await.map_or(50, |(trial, paid)| trial + paid);
            h.store.close(h.ending(&c, held.call, grown - n % 7)).await.ok()
        });
    }
    let mut captured = 0;
    while let Some(done) = tasks.join_next().await {
        captured += done.expect("no panic").map_or(0, |closed| closed.captured.nano());
    }
    let used = h.store.account(c.account).await.expect("reading").expect("the account").used;
    assert_eq!(used.day.nano(), captured);
    assert!((900..=1_000).contains(&captured), "captured {captured}");
    std::sync::Arc::into_inner(h).expect("all tasks are done").close().await;
}

pub async fn a_rich_account_is_held_like_a_poor_one(h: House) {
    let h = std::sync::Arc::new(h);
    let c = std::sync::Arc::new(h.customer(0, 1_000_000_000_000).await);
    let call = h.held(&c, 400_000_000_000).await;
    assert_eq!(h.pots(&c).await, (0, 600_000_000_000, 0, 400_000_000_000), "held, however much there is");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move { h.hold(h.wish(&c, 1_000_000_000)).await.map(|held| held.call).ok() });
    }
    let held: Vec<CallId> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(held.len(), 600, "as many as there is money for");
    assert_eq!(h.pots(&c).await.1, 0);
    for call in held.into_iter().chain([call]) {
        h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    }
    assert_eq!(h.pots(&c).await, (0, 1_000_000_000_000, 0, 0));
    std::sync::Arc::into_inner(h).expect("all tasks are done").close().await;
}

pub async fn revoking_a_key_moves_no_money(h: House) {
    let c = h.capped_customer(50, 100, Some(120)).await;
    let spent = h.held(&c, 60).await;
    h.store.close(h.ending(&c, spent, 60)).await.expect("closed");
    let running = h.held(&c, 30).await;
    let before = h.pots(&c).await;
    let entries = h.store.verify().await.expect("audited").entries;
    h.store.revoke_key(c.key).await.expect("revoked").expect("found");
    assert_eq!(h.pots(&c).await, before);
    assert_eq!(h.store.verify().await.expect("audited").entries, entries, "no entry");
    let closed = h.store.close(h.ending(&c, running, 20)).await.expect("what runs is settled");
    assert_eq!((closed.captured.nano(), h.pots(&c).await), (20, (0, 70, 0, 0)));
    h.close().await;
}
