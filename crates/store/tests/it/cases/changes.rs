//! What operators change about accounts and keys, and the rows that say so.

use tollgate_catalog::Money;
use tollgate_store::{
    Account, AccountChange, Attribution, Change, HoldRefused, Key, KeyChange, LimitKind, NewAccount, NewLimits,
    PauseChange, PauseKind,
};

use crate::common::{Customer, House};

fn done() -> Attribution {
    Attribution::by("ada".to_owned(), "asked for".to_owned())
}

fn suspended(suspended: bool) -> AccountChange {
    AccountChange { suspended: Some(suspended), ..AccountChange::default() }
}

async fn account(h: &House, c: &Customer) -> Account {
    h.store.account(c.account).await.expect("read").expect("an account")
}

async fn key(h: &House, c: &Customer) -> Key {
    let keys = h.store.keys(c.account).await.expect("read");
    keys.into_iter().find(|one| one.id == c.key).expect("the key")
}

pub async fn a_suspended_account_gets_no_hold_and_ends_what_runs(h: House) {
    let c = h.customer(0, 1_000).await;
    let (ends, grows) = (h.held(&c, 100).await, h.held(&c, 100).await);
    let since = h.store.change_account(c.account, suspended(true), done()).await.expect("asked").expect("changed");
    assert!(since.suspended_at.is_some());
    assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Suspended)), "whatever a cached key says");
    let again = h.store.change_account(c.account, suspended(true), done()).await.expect("asked").expect("changed");
    assert_eq!(again.suspended_at, since.suspended_at, "since the first time");
    // What runs goes on under the rules of before, and is settled.
    let closed = h.store.close(h.ending(&c, ends, 60)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (60, 0));
    h.extend(h.more(&c, grows, 1, 50)).await.expect("it fits");
    let closed = h.store.close(h.ending(&c, grows, 140)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (140, 0));
    assert_eq!(h.pots(&c).await, (0, 800, 0, 0));
    let found = h.store.key_by_hash(key(&h, &c).await.hash).await.expect("read").expect("a key");
    assert!(matches!(
        found.would_hold(Money::from_nano(1), Money::from_nano(1), false, 0),
        Err(HoldRefused::Suspended)
    ));

    h.store.change_account(c.account, suspended(false), done()).await.expect("asked").expect("changed");
    assert_eq!(account(&h, &c).await.suspended_at, None);
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 10)).await.expect("closed");
    let events = h.store.operator_events(9).await.expect("read");
    let events: Vec<&str> = events.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(events, ["account.reopen", "account.suspend", "account.suspend"]);
    h.close().await;
}

pub async fn an_account_is_in_the_groups_it_is_in(h: House) {
    let made = |groups: &[&str]| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        h.store.create_account(NewAccount { name: "a".to_owned(), groups, ..NewAccount::default() })
    };
    assert_eq!(made(&[]).await.expect("made").groups, ["default"], "who is put into none");
    let partner = made(&["partner"]).await.expect("made");
    assert_eq!(partner.groups, ["partner"], "and in no other");
    let other = made(&["partner"]).await.expect("made");
    let change = AccountChange {
        name: Some("b".to_owned()),
        groups: Some(vec!["vip".to_owned(), "default".to_owned()]),
        limits: NewLimits { day: Change::Set(Money::from_nano(5_000_000_000)), ..NewLimits::default() },
        suspended: None,
        members_see_all_usage: Some(true),
    };
    let changed = h.store.change_account(partner.id, change, done()).await.expect("asked").expect("changed");
    assert_eq!((changed.name.as_str(), &changed.groups[..]), ("b", &["vip".to_owned(), "default".to_owned()][..]));
    assert_eq!((changed.limits.day, changed.limits.month), (Some(Money::from_nano(5_000_000_000)), None));
    assert!(changed.members_see_all && !other.members_see_all, "nobody else's");
    let unchanged = h.store.change_account(partner.id, AccountChange::default(), done()).await.expect("asked");
    let unchanged = unchanged.expect("changed");
    assert_eq!(
        (unchanged.name, unchanged.groups, unchanged.limits),
        (changed.name, changed.groups, changed.limits),
        "what is not named"
    );
    let mut in_use = h.store.groups_in_use().await.expect("read");
    in_use.sort();
    let list = |groups: &[&str]| groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>();
    assert_eq!(in_use, [(list(&["default"]), 1), (list(&["partner"]), 1), (list(&["vip", "default"]), 1)]);
    let events = h.store.operator_events(9).await.expect("read");
    assert_eq!(events.len(), 1, "nothing changed is nothing done");
    let event = &events[0];
    assert_eq!((event.actor.as_str(), event.reason.as_str()), ("ada", "asked for"));
    assert_eq!((event.action.as_str(), event.subject.clone()), ("account.update", partner.id.to_string()));
    assert_eq!(
        event.detail,
        "name: a -> b; groups: partner -> vip,default; limit_day: none -> 5; members_see_all_usage: false -> true"
    );
    assert_eq!(h.store.account(other.id).await.expect("read").expect("an account").groups, ["partner"]);
    h.close().await;
}

pub async fn a_key_is_changed_and_everybody_hears_of_it(h: House) {
    let c = h.customer(0, 1_000).await;
    let before = h.store.keys_changed_since(i64::MAX, 0).await.expect("read").read_at;
    let change = KeyChange {
        name: Some("new".to_owned()),
        models: Change::Set(vec!["m".to_owned()]),
        cidrs: Change::Set(vec!["10.0.0.0/8".to_owned()]),
        expires_at: Change::Set(i64::MAX),
        limits: NewLimits { total: Change::Set(Money::from_nano(50)), ..NewLimits::default() },
    };
    let changed = h.store.change_key(c.key, change, done()).await.expect("asked").expect("changed");
    assert_eq!((changed.name.as_str(), changed.expires_at), ("new", Some(i64::MAX)));
    assert_eq!(
        (changed.models.as_deref(), changed.cidrs.as_deref().map(<[_]>::len)),
        (Some(&["m".to_owned()][..]), Some(1))
    );
    let heard = h.store.keys_changed_since(before, 0).await.expect("read");
    assert!(heard.keys.iter().any(|one| one.key == changed), "a cache of keys learns of it");
    let refused = h.hold(h.wish(&c, 51)).await.map(drop);
    assert!(matches!(refused, Err(HoldRefused::Limit(reached)) if reached.kind == LimitKind::KeyTotal));
    let lift = KeyChange {
        models: Change::Lift,
        cidrs: Change::Lift,
        expires_at: Change::Lift,
        limits: NewLimits { total: Change::Lift, ..NewLimits::default() },
        ..KeyChange::default()
    };
    let lifted = h.store.change_key(c.key, lift, done()).await.expect("asked").expect("changed");
    assert_eq!((lifted.models, lifted.cidrs, lifted.expires_at, lifted.limits.total), (None, None, None, None));
    assert_eq!(lifted.name, "new", "what is not named");
    let unknown = "key_00000000000000000000000000".parse().expect("an id");
    assert!(h.store.change_key(unknown, KeyChange::default(), done()).await.expect("asked").is_none());
    let nobody = "acct_00000000000000000000000000".parse().expect("an id");
    assert!(h.store.change_account(nobody, suspended(true), done()).await.expect("asked").is_none());
    assert_eq!(h.store.operator_events(9).await.expect("read").len(), 2, "what was not done is not logged");
    h.close().await;
}

pub async fn a_pause_of_a_provider_is_not_one_of_a_model(h: House) {
    let change = |kind, paused, at| {
        let (name, actor, reason) = ("x".to_owned(), "ada".to_owned(), "why".to_owned());
        PauseChange { kind, name, paused, at, actor, reason }
    };
    let (model, provider) = (change(PauseKind::Model, true, 1), change(PauseKind::Provider, true, 2));
    h.store.change_pause(model.clone()).await.expect("written");
    h.store.change_pause(provider.clone()).await.expect("written");
    assert_eq!(h.store.pause_states().await.expect("read"), [model.clone(), provider]);
    let resumed = change(PauseKind::Provider, false, 3);
    h.store.change_pause(resumed.clone()).await.expect("written");
    assert_eq!(h.store.pause_states().await.expect("read"), [model, resumed]);
    assert_eq!(h.store.pause_changes(9).await.expect("read").len(), 3);
    h.close().await;
}
