//! The suite that every engine passes. Each case gets an empty house and leaves one in which all
//! money adds up.

mod alerts;
mod audits;
mod bounds;
mod changes;
mod client_secrets;
mod clock;
mod credit;
mod export_files;
mod folded;
mod group;
mod idem;
mod margins;
mod operator;
mod partial;
mod payments;
mod receipts;
mod responses;
mod route_health;
mod social;
mod statements;
mod stored;
mod sums;
mod task_homes;
mod task_words;
mod tasks;
mod terms;
mod wish;
mod workflow_runs;

pub use alerts::*;
pub use audits::*;
pub use bounds::*;
pub use changes::*;
pub use client_secrets::*;
pub use clock::*;
pub use credit::*;
pub use export_files::*;
pub use folded::*;
pub use group::*;
pub use idem::*;
pub use operator::{admin_keys_are_hashes_with_a_log, the_newest_move_says_how_far_a_workflow_is};
pub use social::{
    a_social_day_is_exact, a_social_day_is_taken_and_given_back_at_once, social_pauses_are_rows,
    turns_on_a_route_are_shared, vain_calls_are_remembered_while_they_matter,
};

pub use workflow_runs::{a_run_is_not_put_off_by_a_clock_that_is_set_back, a_run_is_one_workers_at_a_time};

use std::sync::Arc;

use tollgate_catalog::Money;
use tollgate_store::{Close, CreditKind, Ending, HoldRefused, Limits, NewAccount, Pot, UsagePage};

use crate::common::{Customer, House, idem, reply};

pub use margins::*;
pub use partial::*;
pub use payments::*;
pub use receipts::*;
pub use responses::*;
pub use route_health::*;
pub use statements::*;
pub use stored::*;
pub use sums::*;
pub use task_homes::*;
pub use task_words::*;
pub use tasks::*;
pub use terms::*;
pub use wish::*;

pub async fn settle_below_the_hold(h: House) {
    let c = h.customer(100, 1_000).await;
    let call = h.held(&c, 300).await;
    assert_eq!(h.pots(&c).await, (0, 800, 100, 200), "trial is held first");
    let mut close = h.ending(&c, call, 250);
    // The clock was set back while it ran.
    close.row.ended_at -= 7_200_000;
    let closed = h.store.close(close).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano(), closed.applied), (250, 0, true));
    assert_eq!(h.pots(&c).await, (0, 850, 0, 0));
    let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!(row.ended_at, row.at, "it did not end before it began");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.ending), (300, 250, Ending::Answered));
    assert_eq!(row.raw_usage.as_deref(), Some("{\"prompt_tokens\":1}"), "no NUL survives");
    assert_eq!(row.dropped.as_deref(), Some("seed,top_k"));
    assert_eq!(row.counters.tools.text().as_deref(), Some("tool:web_search=2"));
    assert_eq!(row.price.expect("the frozen price")["model"], "test");
    let stranger = h.customer(0, 0).await;
    assert!(h.store.usage_of(stranger.account, call).await.expect("reading").is_none());
    h.close().await;
}

pub async fn void_gives_all_back(h: House) {
    let c = h.customer(100, 100).await;
    let call = h.held(&c, 150).await;
    let closed = h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    assert_eq!(closed.captured, Money::ZERO);
    assert_eq!(h.pots(&c).await, (100, 100, 0, 0));
    h.close().await;
}

pub async fn charge_above_the_hold_is_extended_then_written_off(h: House) {
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 40).await;
    let closed = h.store.close(h.ending(&c, call, 70)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (70, 0), "the account can pay");
    let call = h.held(&c, 10).await;
    let closed = h.store.close(h.ending(&c, call, 50)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (30, 20), "it cannot pay all");
    assert_eq!(h.pots(&c).await, (0, 0, 0, 0));
    let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.write_off.nano()), (30, 20));
    h.close().await;
}

pub async fn an_open_hold_grows(h: House) {
    let c = h.customer(30, 1_000).await;
    let call = h.held(&c, 20).await;
    assert_eq!(h.extend(h.more(&c, call, 1, 50)).await.expect("it fits"), (30, 40), "trial first, as for a hold");
    assert_eq!(h.extend(h.more(&c, call, 1, 50)).await.expect("it was done"), (30, 40), "once for each step");
    assert_eq!(h.extend(h.more(&c, call, 2, 30)).await.expect("it fits"), (30, 70));
    assert_eq!(h.extend(h.more(&c, call, 1, 50)).await.expect("it was done"), (30, 70));
    assert_eq!(h.pots(&c).await, (0, 930, 30, 70));
    let closed = h.store.close(h.ending(&c, call, 90)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (90, 0));
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0), "the rest of hold and extensions came back");
    let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (100, 90), "the row shows the hold with its extensions");
    assert!(matches!(h.extend(h.more(&c, call, 3, 1)).await, Err(HoldRefused::NotOpen)));
    assert!(matches!(h.extend(h.more(&c, call, 2, 30)).await, Err(HoldRefused::NotOpen)));
    // An extended call may still cost nothing, or more than all that was held.
    for (charge, captured, lost) in [(0, 0, 0), (1_000, 940, 60)] {
        let call = h.held(&c, 10).await;
        h.extend(h.more(&c, call, 1, 15)).await.expect("it fits");
        let closed = h.store.close(h.ending(&c, call, charge)).await.expect("closed");
        assert_eq!((closed.captured.nano(), closed.write_off.nano()), (captured, lost));
    }
    h.close().await;
}

pub async fn an_extension_obeys_the_rules_of_a_hold(h: House) {
    let c = h.capped_customer(100, 60, Some(120)).await;
    let mut paid_only = h.wish(&c, 20);
    paid_only.paid_only = true;
    let call = h.hold(paid_only).await.expect("a hold").call;
    let refused = h.extend(h.more(&c, call, 1, 41)).await;
    assert!(matches!(refused, Err(HoldRefused::Insufficient { .. })), "trial money does not count");
    assert!(matches!(h.extend(h.more(&c, call, 1, -1)).await, Err(HoldRefused::Insufficient { .. })));
    assert_eq!(h.extend(h.more(&c, call, 1, 40)).await.expect("a refused step can be asked again"), (0, 60));
    let other = h.held(&c, 60).await;
    assert!(matches!(h.extend(h.more(&c, other, 1, 1)).await, Err(HoldRefused::Limit(_))));
    assert_eq!(h.pots(&c).await, (40, 0, 60, 60), "what was refused changed nothing");
    let stranger = h.customer(100, 100).await;
    assert!(matches!(h.extend(h.more(&stranger, call, 2, 1)).await, Err(HoldRefused::NotOpen)));
    assert!(matches!(h.extend(h.more(&c, h.maker.call(), 1, 1)).await, Err(HoldRefused::NotOpen)));
    // Nobody ends it: the sweep gives the whole back.
    h.clock.advance(61_000);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("sweep").expired, 2);
    assert_eq!(h.pots(&c).await, (100, 60, 0, 0));
    assert!(matches!(h.extend(h.more(&c, call, 2, 1)).await, Err(HoldRefused::NotOpen)));
    h.close().await;
}

pub async fn many_extensions_at_once_never_overspend(h: House) {
    let c = Arc::new(h.customer(100, 900).await);
    let h = Arc::new(h);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move {
            let call = h.held(&c, 1).await;
            let mut held = 1;
            for step in 1..=10 {
                match h.extend(h.more(&c, call, step, 7)).await {
                    Ok((trial, paid)) => held = trial + paid,
                    Err(HoldRefused::Insufficient { .. }) => break,
                    Err(other) => panic!("{other}"),
                }
            }
            let closed = h.store.close(h.ending(&c, call, held)).await.expect("closed");
            assert_eq!((closed.captured.nano(), closed.write_off.nano()), (held, 0));
            held
        });
    }
    let mut captured = 0;
    while let Some(done) = tasks.join_next().await {
        captured += done.expect("no panic");
    }
    assert!((994..=1_000).contains(&captured), "captured {captured}");
    let (trial, paid, ..) = h.pots(&c).await;
    assert_eq!(trial + paid, 1_000 - captured);
    Arc::into_inner(h).expect("all tasks are done").close().await;
}

pub async fn a_hold_that_does_not_fit_is_refused(h: House) {
    let c = h.customer(50, 50).await;
    assert!(matches!(h.hold(h.wish(&c, 101)).await, Err(HoldRefused::Insufficient { .. })));
    let mut paid_only = h.wish(&c, 51);
    paid_only.paid_only = true;
    assert!(matches!(h.hold(paid_only).await, Err(HoldRefused::Insufficient { .. })), "trial money does not count");
    let mut paid_only = h.wish(&c, 50);
    paid_only.paid_only = true;
    let call = h.hold(paid_only).await.expect("a hold").call;
    let closed = h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (50, 10), "trial money does not extend it either");
    assert_eq!(h.pots(&c).await, (50, 0, 0, 0));
    let mut nobody = h.wish(&c, 1);
    nobody.account = h.maker.account();
    assert!(matches!(h.hold(nobody).await, Err(HoldRefused::NoAccount)));
    let other = h.customer(10, 0).await;
    let mut foreign_key = h.wish(&c, 1);
    foreign_key.key = other.key;
    assert!(matches!(h.hold(foreign_key).await, Err(HoldRefused::NoAccount)));
    h.close().await;
}

pub async fn a_close_happens_once(h: House) {
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 50).await;
    h.store.close(h.ending(&c, call, 20)).await.expect("closed");
    let again = h.store.close(h.ending(&c, call, 50)).await.expect("closed");
    assert!(!again.applied);
    let never_held = h.store.close(h.ending(&c, h.maker.call(), 50)).await.expect("closed");
    assert!(!never_held.applied);
    assert_eq!(h.pots(&c).await, (0, 80, 0, 0));
    h.close().await;
}

pub async fn a_key_cap_is_exact(h: House) {
    let c = h.capped_customer(0, 1_000, Some(100)).await;
    let first = h.held(&c, 60).await;
    assert!(matches!(h.hold(h.wish(&c, 41)).await, Err(HoldRefused::Limit(_))), "held money counts");
    let second = h.held(&c, 40).await;
    h.store.close(h.ending(&c, first, 10)).await.expect("closed");
    h.store.close(h.ending(&c, second, 40)).await.expect("closed");
    assert!(matches!(h.hold(h.wish(&c, 51)).await, Err(HoldRefused::Limit(_))), "spent money counts");
    let third = h.held(&c, 50).await;
    h.store.close(h.ending(&c, third, 0)).await.expect("closed");
    let keys = h.store.keys(c.account).await.expect("keys");
    assert_eq!((keys[0].spent.nano(), keys[0].held.nano()), (50, 0));
    h.close().await;
}

pub async fn many_at_once_never_overspend(h: House) {
    let c = Arc::new(h.capped_customer(100, 900, Some(700)).await);
    let h = Arc::new(h);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move {
            match h.hold(h.wish(&c, 30)).await {
                Ok(held) => h.store.close(h.ending(&c, held.call, 25)).await.expect("closed").captured.nano(),
                Err(_) => 0,
            }
        });
    }
    let mut captured = 0;
    while let Some(done) = tasks.join_next().await {
        captured += done.expect("no panic");
    }
    assert!(captured <= 700, "captured {captured}");
    assert!(captured >= 575, "23 holds fit at once, only {captured} captured");
    let (trial, paid, ..) = h.pots(&c).await;
    assert_eq!(trial + paid, 1_000 - captured);
    Arc::into_inner(h).expect("all tasks are done").close().await;
}

pub async fn credits_happen_once(h: House) {
    let c = h.customer(0, 0).await;
    assert!(!h.store.account(c.account).await.expect("reading").expect("there").topped_up);
    assert_eq!(h.credit(&c, "pay-1", CreditKind::TopUp, Pot::Paid, 500).await, Ok(true));
    assert_eq!(h.credit(&c, "pay-1", CreditKind::TopUp, Pot::Paid, 500).await, Ok(false));
    assert!(h.credit(&c, "pay-1", CreditKind::TopUp, Pot::Paid, 501).await.is_err(), "another amount");
    assert!(h.credit(&c, "zero", CreditKind::TopUp, Pot::Paid, 0).await.is_err());
    assert!(h.credit(&c, "minus", CreditKind::TopUp, Pot::Paid, -5).await.is_err());
    assert_eq!(h.credit(&c, "fix-1", CreditKind::Adjust, Pot::Paid, -200).await, Ok(true));
    assert_eq!(h.credit(&c, "fix-1", CreditKind::Adjust, Pot::Paid, -200).await, Ok(false));
    assert!(h.credit(&c, "fix-2", CreditKind::Adjust, Pot::Paid, -301).await.is_err(), "below zero");
    assert_eq!(h.credit(&c, "gift", CreditKind::TopUp, Pot::Trial, 7).await, Ok(true));
    assert_eq!(h.pots(&c).await, (7, 300, 0, 0));
    assert!(h.store.account(c.account).await.expect("reading").expect("there").topped_up);
    h.close().await;
}

pub async fn refunds_go_back_once_and_within_the_charge(h: House) {
    let c = h.capped_customer(30, 100, Some(200)).await;
    let call = h.held(&c, 80).await;
    h.store.close(h.ending(&c, call, 80)).await.expect("closed");
    let refund = CreditKind::Refund { call };
    assert!(h.credit(&c, "r", refund, Pot::Paid, 81).await.is_err(), "above the charge");
    assert_eq!(h.credit(&c, "r", refund, Pot::Paid, 60).await, Ok(true));
    assert_eq!(h.credit(&c, "r", refund, Pot::Paid, 60).await, Ok(false));
    assert!(h.credit(&c, "r2", refund, Pot::Paid, 10).await.is_err(), "a second refund of the call");
    assert_eq!(h.pots(&c).await, (10, 100, 0, 0), "50 of paid money first, then 10 of trial");
    let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!(row.refunded.nano(), 60);
    assert_eq!(h.store.keys(c.account).await.expect("keys")[0].spent.nano(), 20);
    let other = h.customer(0, 0).await;
    assert!(h.credit(&other, "r3", refund, Pot::Paid, 1).await.is_err(), "another account's call");
    h.close().await;
}

pub async fn idempotency_keys(h: House) {
    let c = h.customer(0, 1_000).await;
    let with = |key, body| {
        let mut wish = h.wish(&c, 10);
        wish.idem = Some(idem(key, body));
        wish
    };
    let first = h.hold(with(1, 1)).await.expect("new").call;
    assert!(matches!(h.hold(with(1, 1)).await, Err(HoldRefused::IdemRunning(call)) if call == first));
    assert!(matches!(h.hold(with(1, 2)).await, Err(HoldRefused::IdemConflict)));
    let mut ending = h.ending(&c, first, 5);
    ending.reply = Some(reply("first"));
    h.store.close(ending).await.expect("closed");
    match h.hold(with(1, 1)).await {
        Err(HoldRefused::IdemDone { call, reply: Some(stored) }) => {
            assert_eq!((call, stored), (first, reply("first")));
        }
        other => panic!("expected the first reply, got {:?}", other.map(|held| held.call)),
    }
    assert!(matches!(h.hold(with(1, 2)).await, Err(HoldRefused::IdemConflict)));
    // A failed call does not use its key up.
    let failed = h.hold(with(2, 1)).await.expect("new").call;
    h.store.close(h.ending(&c, failed, 0)).await.expect("closed");
    let second = h.hold(with(2, 1)).await.expect("free again").call;
    assert_ne!(failed, second);
    h.store.close(h.ending(&c, second, 1)).await.expect("closed");
    // Memory forgets finished keys, the database does not; after a day both do.
    h.store.sweep(h.clock.now()).await.expect("sweep");
    assert!(matches!(h.hold(with(1, 1)).await, Err(HoldRefused::IdemDone { reply: Some(_), .. })));
    assert!(matches!(h.hold(with(2, 1)).await, Err(HoldRefused::IdemDone { reply: None, .. })));
    assert!(matches!(h.hold(with(1, 2)).await, Err(HoldRefused::IdemConflict)), "the database knows the body too");
    h.clock.advance(25 * 3_600_000);
    let swept = h.store.sweep(h.clock.now()).await.expect("sweep");
    assert_eq!(swept.forgotten, 2);
    let third = h.hold(with(1, 2)).await.expect("new after retention").call;
    h.store.close(h.ending(&c, third, 0)).await.expect("closed");
    h.close().await;
}

pub async fn what_was_charged_or_answered_uses_its_key_up(h: House) {
    let c = h.customer(0, 1_000).await;
    for (n, charge, ending, answer, used) in [
        (1, 1, Ending::UpstreamFault, None, true),
        (2, 0, Ending::UpstreamFault, Some("no"), true),
        (3, 0, Ending::Answered, None, true),
        (4, 0, Ending::ClientLeft, None, false),
        (5, 0, Ending::UpstreamFault, None, false),
    ] {
        let with = || {
            let mut wish = h.wish(&c, 10);
            wish.idem = Some(idem(n, 1));
            wish
        };
        let first = h.hold(with()).await.expect("new").call;
        let close = h.ending(&c, first, charge);
        h.store.close(Close { ending, reply: answer.map(reply), ..close }).await.expect("closed");
        // From memory, and from the database when memory has forgotten.
        for _ in 0..2 {
            match h.hold(with()).await {
                Ok(again) if !used => {
                    h.store.close(Close { ending, ..h.ending(&c, again.call, 0) }).await.expect("closed");
                }
                Err(HoldRefused::IdemDone { call, reply: stored }) if used => {
                    assert_eq!((call, stored), (first, answer.map(reply)), "{n}");
                }
                other => panic!("{n}: {:?}", other.map(|held| held.call)),
            }
            h.store.sweep(h.clock.now()).await.expect("sweep");
        }
    }
    h.close().await;
}

pub async fn the_sweep_resolves_holds_past_their_time(h: House) {
    let c = h.customer(0, 1_000).await;
    let silent = h.held(&c, 100).await;
    let marked = h.held(&c, 100).await;
    h.store.mark(h.mark(&c, marked, 30));
    h.store.mark(h.mark(&c, marked, 35));
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("sweep").expired, 0);
    h.clock.advance(61_000);
    let late = h.held(&c, 100).await;
    assert_eq!(h.store.gauges().open_holds, 3);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("sweep").expired, 2);
    let of = |call| h.store.usage_of(c.account, call);
    let row = of(silent).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.ending, row.reason.as_str()), (0, Ending::Expired, "expired"));
    assert_eq!((row.model.as_str(), row.key), ("test", c.key));
    let row = of(marked).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.ending), (35, Ending::Expired), "the last mark is charged");
    let closed = h.store.close(h.ending(&c, silent, 50)).await.expect("closed");
    assert!(!closed.applied, "the hold is gone");
    h.store.close(h.ending(&c, late, 0)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 965, 0, 0));
    h.close().await;
}

pub async fn the_usage_log_is_paged_newest_first(h: House) {
    let c = h.customer(0, 1_000).await;
    let other = h.customer(0, 1_000).await;
    let mut calls = Vec::new();
    for i in 0..5 {
        let owner = if i == 2 { &other } else { &c };
        let call = h.held(owner, 10).await;
        h.store.close(h.ending(owner, call, 1)).await.expect("closed");
        calls.push(call);
    }
    let refused = h.maker.call();
    h.store.note_refusal(refused, c.account, "insufficient_balance".into(), h.facts(&c, 0));
    let page = UsagePage { before: None, limit: 3 };
    let rows = h.store.usage(Some(c.account), page).await.expect("a page");
    assert_eq!(rows.iter().map(|r| r.call).collect::<Vec<_>>(), [refused, calls[4], calls[3]]);
    assert_eq!((rows[0].ending, rows[0].reason.as_str()), (Ending::Refused, "insufficient_balance"));
    let page = UsagePage { before: Some(calls[3]), limit: 3 };
    let rows = h.store.usage(Some(c.account), page).await.expect("a page");
    assert_eq!(rows.iter().map(|r| r.call).collect::<Vec<_>>(), [calls[1], calls[0]]);
    let all = h.store.usage(None, UsagePage { before: None, limit: 100 }).await.expect("a page");
    assert_eq!(all.len(), 6);
    assert_eq!(all[3].account, other.account);
    h.close().await;
}

pub async fn accounts_and_keys(h: House) {
    let id = h.maker.account();
    let new = NewAccount { id: Some(id), name: "Ada".into(), groups: vec!["vip".into()], ..NewAccount::default() };
    let made = h.store.create_account(new.clone()).await.expect("an account");
    let again = h.store.create_account(new).await.expect("the same account");
    assert_eq!(made, again);
    assert_eq!(made.groups, ["vip"]);
    let other = h.customer(0, 0).await;
    let all = h.store.accounts(None, 10).await.expect("accounts");
    assert_eq!(all.len(), 2);
    assert_eq!(h.store.accounts(Some(all[0].id), 10).await.expect("accounts"), all[1..]);
    assert!(h.store.account(h.maker.account()).await.expect("reading").is_none());

    let secret = "sk-abcdefghijklmnop";
    let new = tollgate_store::NewKey {
        account: id,
        name: "laptop".into(),
        expires_at: Some(5),
        models: Some(vec!["m".into()]),
        cidrs: Some(vec!["10.0.0.0/8".into()]),
        limits: Limits { total: Some(Money::from_nano(9)), ..Limits::default() },
        scope: Default::default(),
    };
    let key = h.store.create_key(new.clone(), secret).await.expect("a key");
    assert_eq!(key.prefix, "sk-abcd");
    assert!(h.store.create_key(new.clone(), secret).await.is_err(), "a secret is used once");
    let stranger = tollgate_store::NewKey { account: h.maker.account(), ..new };
    assert!(h.store.create_key(stranger, "sk-another").await.is_err(), "no such account");
    let found = h.store.key_by_hash(tollgate_store::hash_secret(secret)).await.expect("reading").expect("found");
    assert_eq!((found.key.clone(), found.account.id), (key.clone(), id));
    assert!(h.store.key_by_hash([0; 32]).await.expect("reading").is_none());

    h.clock.advance(10);
    let mark = h.clock.now();
    // From now on, by the store's own clock; what was made in this very millisecond is in it too.
    let seen_at = loop {
        let seen = h.store.keys_changed_since(i64::MAX, 0).await.expect("reading");
        if seen.keys.is_empty() {
            break seen.read_at;
        }
    };
    assert_eq!(h.store.keys_changed_since(seen_at, i64::MAX).await.expect("reading").keys.len(), 2, "all looked back");
    let revoked = h.store.revoke_key(key.id).await.expect("revoked").expect("found");
    assert_eq!(revoked.revoked_at, Some(mark));
    assert!(h.store.revoke_key(h.maker.key()).await.expect("reading").is_none());
    let changed = h.store.keys_changed_since(seen_at, 0).await.expect("reading").keys;
    assert_eq!(changed.iter().map(|k| k.key.id).collect::<Vec<_>>(), [key.id]);
    h.credit(&other, "first", CreditKind::TopUp, Pot::Paid, 1).await.expect("credit");
    let changed = h.store.keys_changed_since(seen_at, 0).await.expect("reading").keys;
    assert_eq!(changed.len(), 2, "the account's change counts");
    let revoked = Customer { account: id, key: key.id };
    assert!(matches!(h.hold(h.wish(&revoked, 0)).await, Err(HoldRefused::NoAccount)), "a revoked key holds nothing");
    h.close().await;
}

pub async fn a_restart_keeps_everything(h: House) {
    let c = h.customer(10, 100).await;
    let settled = h.held(&c, 50).await;
    h.store.close(h.ending(&c, settled, 30));
    let left = h.held(&c, 30).await;
    h.extend(h.more(&c, left, 1, 10)).await.expect("more");
    let streaming = h.held(&c, 30).await;
    h.extend(h.more(&c, streaming, 1, 10)).await.expect("more");
    h.store.mark(h.mark(&c, streaming, 12));
    let h = h.reopen().await;
    assert_eq!((h.recovered.voided, h.recovered.settled, h.recovered.dropped), (1, 1, 0));
    assert_eq!(h.pots(&c).await, (0, 68, 0, 0));
    let row = h.store.usage_of(c.account, left).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Expired, "crashed", 0));
    let row = h.store.usage_of(c.account, streaming).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Expired, "crashed", 12));
    let call = h.held(&c, 68).await;
    h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    h.close().await;
}
