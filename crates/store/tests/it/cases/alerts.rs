//! Alerts and notices: written once with what is to be sent, whoever dies; every list has a bound.

use crate::common::House;
use tollgate_store::{
    AlertChange, AlertCondition, AlertMove, AlertPlaceKind, AlertRule, AlertSilence, Attribution, CreditKind,
    MOST_ALERT_PLACES, MOST_ALERT_RULES, NOTICES_A_DAY, NewAdminKey, NewAlertPlace, NewAlertRule, NewTask, NoticeMail,
    NoticeWish, Pot, SentTo, StoreError, TaskEnd, TaskState, TaskStep, Word,
};

const DAY: i64 = 86_400_000;
const LEASE: i64 = 60_000;
/// Later than any clock.
const LATE: i64 = i64::MAX / 4;

fn test() -> Attribution {
    Attribution::by("tester", "a test")
}

fn place(name: &str) -> NewAlertPlace {
    let shown = "hooks.example".to_owned();
    NewAlertPlace { name: name.to_owned(), kind: AlertPlaceKind::Webhook, shown, sealed: b"sealed".to_vec() }
}

async fn rule(h: &House, condition: AlertCondition) -> AlertRule {
    let place = h.store.create_alert_place(place("ops"), test()).await.expect("a place").id;
    let new = NewAlertRule { name: "low".to_owned(), condition, places: vec![place] };
    h.store.create_alert_rule(new, test()).await.expect("a rule")
}

/// What is written in the background is there after a while.
async fn comes(read: impl AsyncFn() -> i64, expected: i64) {
    for _ in 0..12_000 {
        if read().await == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{} instead of {expected}", read().await);
}

async fn waiting(h: &House) -> i64 {
    h.store.alerts_waiting().await.expect("read")
}

pub async fn an_alert_is_written_once_with_what_is_to_be_sent(h: House) {
    let rule = rule(&h, AlertCondition::Disk { bytes: 1 }).await;
    let (a, b) = tokio::join!(
        h.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None),
        h.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None)
    );
    assert_eq!(a.expect("asked") as u8 + b.expect("asked") as u8, 1, "one of two wrote it");
    assert_eq!((waiting(&h).await, h.store.alerts_firing().await.expect("read").len()), (1, 1));
    // Whoever decided is dead; the next process sends it.
    let h = h.reopen().await;
    let taken = h.store.take_alerts(false, 8, LEASE, &[]).await.expect("taken");
    assert_eq!((taken.len(), taken[0].tries), (1, 1));
    assert_eq!(h.store.take_alerts(false, 8, LEASE, &[]).await.expect("taken").len(), 0, "it is in other hands");
    assert_eq!(h.store.take_alerts(true, 8, LEASE, &[]).await.expect("taken").len(), 0, "it is not a customer's");
    // And dies too, in the middle of sending.
    let h = h.reopen_after(LEASE).await;
    let again = h.store.take_alerts(false, 8, LEASE, &[]).await.expect("taken").remove(0);
    assert_eq!((again.event, again.tries), (taken[0].event, 2), "the same id");
    // Who comes back late changes nothing.
    h.store.alert_tried(&taken[0], ("delivered", Some(204)), None, None).await.expect("asked");
    assert_eq!(waiting(&h).await, 1);
    h.store.alert_tried(&again, ("refused", Some(500)), Some(5_000), None).await.expect("written");
    assert_eq!(h.store.take_alerts(false, 8, LEASE, &[]).await.expect("taken").len(), 0);
    h.clock.advance(5_000);
    let last = h.store.take_alerts(false, 8, LEASE, &[]).await.expect("taken").remove(0);
    h.store.alert_tried(&last, ("delivered", Some(204)), None, None).await.expect("written");
    assert_eq!(waiting(&h).await, 0);
    let was = h.store.alerts_firing().await.expect("read").remove(0);
    for expected in [true, false] {
        let moved = h.store.move_alert(&rule, AlertMove::Cleared, "r1", "room", Some(&was)).await.expect("asked");
        assert_eq!(moved, expected);
    }
    let events = h.store.alert_events(None, 10).await.expect("read");
    assert_eq!(events.iter().map(|one| one.what).collect::<Vec<_>>(), [AlertMove::Cleared, AlertMove::Firing]);
    let first = &events[1].deliveries[0];
    assert_eq!((first.tries, first.status, first.outcome.as_str()), (3, Some(204), "delivered"));
    h.close().await;
}

pub async fn a_silenced_rule_says_nothing_until_then(h: House) {
    let rule = rule(&h, AlertCondition::Disk { bytes: 1 }).await;
    let until = h.clock.now() + DAY;
    let silence = AlertSilence { until_ms: Some(until) };
    let silent = h.store.silence_alert_rule(rule.id, silence, test()).await.expect("silenced");
    assert_eq!((silent.silenced_until, silent.silence_reason.as_deref()), (Some(until), Some("a test")));
    assert!(h.store.move_alert(&silent, AlertMove::Firing, "r1", "full", None).await.expect("asked"));
    let was = h.store.alerts_firing().await.expect("read").remove(0);
    assert_eq!((waiting(&h).await, was.notified_at), (0, None), "it fires, and nobody hears of it");
    assert!(!h.store.move_alert(&silent, AlertMove::Firing, "r1", "full", Some(&was)).await.expect("asked"));
    h.clock.advance(DAY + 1);
    assert!(h.store.move_alert(&silent, AlertMove::Firing, "r1", "full", Some(&was)).await.expect("asked"));
    assert_eq!(waiting(&h).await, 1, "the silence is over, and it still fires");
    assert!(!h.store.move_alert(&silent, AlertMove::Firing, "r1", "full", Some(&was)).await.expect("asked"));
    // Changed into something else it begins anew; the place goes, and what waits for it.
    let change = AlertChange { condition: Some(AlertCondition::Disk { bytes: 2 }), ..AlertChange::default() };
    h.store.change_alert_rule(rule.id, change, test()).await.expect("changed");
    assert_eq!(h.store.alerts_firing().await.expect("read").len(), 0);
    h.store.remove_alert_place(rule.places[0], test()).await.expect("removed");
    assert_eq!(waiting(&h).await, 0);
    h.store.remove_alert_rule(rule.id, test()).await.expect("removed");
    assert!(
        !h.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None).await.expect("asked"),
        "there is no rule"
    );
    assert!(matches!(h.store.remove_alert_rule(rule.id, test()).await, Err(StoreError::NotFound(_))));
    h.close().await;
}

pub async fn alerts_have_bounds(h: House) {
    let rule = rule(&h, AlertCondition::Disk { bytes: 1 }).await;
    for number in 1..MOST_ALERT_PLACES {
        h.store.create_alert_place(place(&number.to_string()), test()).await.expect("a place");
    }
    assert!(matches!(h.store.create_alert_place(place("one more"), test()).await, Err(StoreError::Conflict(_))));
    for number in 1..MOST_ALERT_RULES {
        let new = NewAlertRule {
            name: number.to_string(),
            condition: AlertCondition::Disk { bytes: number },
            places: Vec::new(),
        };
        h.store.create_alert_rule(new, test()).await.expect("a rule");
    }
    let new = NewAlertRule { name: "x".to_owned(), condition: AlertCondition::Disk { bytes: 1 }, places: Vec::new() };
    assert!(matches!(h.store.create_alert_rule(new, test()).await, Err(StoreError::Conflict(_))));
    // A rule that swings: it is in the list each time, and sent 48 times in a day.
    for _ in 0..30 {
        h.clock.advance(1_000);
        assert!(h.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None).await.expect("asked"));
        let was = h.store.alerts_firing().await.expect("read").remove(0);
        assert!(h.store.move_alert(&rule, AlertMove::Cleared, "r1", "room", Some(&was)).await.expect("asked"));
    }
    let events = h.store.alert_events(None, 100).await.expect("read");
    assert_eq!((events.len(), events.iter().filter(|one| one.sent).count()), (60, 48));
    assert_eq!(waiting(&h).await, 20, "for one place");
    h.clock.advance(31 * DAY);
    h.store.forget_alerts().await.expect("forgotten");
    assert_eq!(h.store.alert_events(None, 100).await.expect("read").len(), 0);
    h.close().await;
}

pub async fn what_rules_measure(h: House) {
    let c = h.customer(300, 1_000).await;
    let now = h.clock.now();
    assert_eq!(h.store.balance_of(c.account).await.expect("read"), Some(1_300));
    let call = h.held(&c, 200).await;
    assert_eq!(h.store.balance_of(c.account).await.expect("read"), Some(1_300), "what is held is still theirs");
    h.store.close(h.ending(&c, call, 150)).await.expect("closed");
    comes(async || h.store.balance_of(c.account).await.expect("read").unwrap_or(0), 1_150).await;
    comes(async || h.store.charged_since(Some(c.account), now - 60_000).await.expect("read"), 150).await;
    assert_eq!(h.store.charged_since(None, now - 60_000).await.expect("read"), 150);
    assert_eq!(h.store.charged_since(None, now + 3_600_000).await.expect("read"), 0);
    // Keys that end.
    assert_eq!(h.store.next_key_end(Some(c.account)).await.expect("read"), None);
    assert_eq!(h.store.next_key_end(None).await.expect("read"), None);
    for days in [9, 3] {
        let new = NewAdminKey { name: "key".to_owned(), expires_at: Some(now + days * DAY), done: test() };
        h.store.create_admin_key(new, &format!("ak-{days}")).await.expect("a key");
    }
    assert_eq!(h.store.next_key_end(None).await.expect("read"), Some(now + 3 * DAY));
    // Tasks whose fate nobody knows.
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    let begun = h.store.begin_task(h.wish(&c, 100), new).await.expect("a task");
    let to = SentTo { provider: "sim".into(), upstream_model: "m".into(), host: "h".into(), key: "k".into() };
    assert!(h.store.task_sending(begun, to, 60_000).await.expect("sent"));
    assert_eq!(h.store.unknown_tasks(LATE, 10).await.expect("read"), 0);
    let step = TaskStep::new(begun.id, begun.fence, TaskState::Unknown, Word::Absent, 0);
    assert!(h.store.put_back_task(step).await.expect("put back"));
    comes(async || h.store.unknown_tasks(LATE, 10).await.expect("read"), 1).await;
    assert_eq!(h.store.unknown_tasks(1, 10).await.expect("read"), 0, "not for so long");
    let wish = h.store.take_tasks(1, 60_000, &[]).await.expect("taken").remove(0);
    let end = TaskEnd {
        fence: wish.fence,
        state: TaskState::Failed,
        result: None,
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: h.ending(&c, begun.id.call(), 0),
    };
    h.store.finish_task(end).await.expect("ended").expect("by us");
    comes(async || h.store.unknown_tasks(LATE, 10).await.expect("read"), 0).await;
    // What replicas say.
    h.store.put_alert_fact("disk", "r1", 7).await.expect("written");
    h.store.put_alert_fact("disk", "r1", 5).await.expect("written");
    let facts = h.store.alert_facts("disk", now).await.expect("read");
    assert_eq!((facts.len(), facts[0].value), (1, 5));
    assert!(h.store.take_alert_turn("look", 30_000).await.expect("asked"));
    assert!(!h.store.take_alert_turn("look", 30_000).await.expect("asked"), "somebody looks already");
    h.clock.advance(30_000);
    assert!(h.store.take_alert_turn("look", 30_000).await.expect("asked"));
    h.close().await;
}

pub async fn a_low_balance_is_noticed_once_and_not_more_than_thrice_a_day(h: House) {
    let c = h.customer(0, 1_000).await;
    let wish = NoticeWish { threshold_nano_usd: Some(500), mail: true, webhook: true };
    let set = h.store.set_balance_notice(c.account, wish, test()).await.expect("set");
    assert_eq!((set.threshold_nano_usd, set.low_since_ms), (Some(500), None));
    let crossed = async || h.store.crossed_notices(None, 10).await.expect("read").0;
    assert_eq!(crossed().await, []);
    let out = || NoticeMail { letters: vec![b"sealed".to_vec()], webhook: Some("{}".to_owned()) };
    // Money goes down and up all day long.
    for round in 0..10 {
        let id = |what: &str| format!("{what} {round}");
        h.credit(&c, &id("less"), CreditKind::Adjust, Pot::Paid, -600).await.expect("less");
        let due = crossed().await.remove(0);
        assert_eq!((due.low, due.balance, due.may_send), (true, 400, round < NOTICES_A_DAY), "{round}");
        assert!(
            h.store.cross_notice(&due, if due.may_send { out() } else { NoticeMail::default() }).await.expect("asked")
        );
        assert!(!h.store.cross_notice(&due, out()).await.expect("asked"), "somebody else was first");
        assert_eq!(crossed().await, [], "once");
        // Another threshold and back is no way around.
        if round == 5 {
            for threshold in [600, 500] {
                let other = NoticeWish { threshold_nano_usd: Some(threshold), ..wish };
                h.store.set_balance_notice(c.account, other, test()).await.expect("set");
            }
            let due = crossed().await.remove(0);
            assert!(due.low && !due.may_send);
            assert!(h.store.cross_notice(&due, NoticeMail::default()).await.expect("asked"));
        }
        h.credit(&c, &id("more"), CreditKind::Adjust, Pot::Paid, 600).await.expect("more");
        let due = crossed().await.remove(0);
        assert!(!due.low && h.store.cross_notice(&due, NoticeMail::default()).await.expect("asked"));
    }
    assert_eq!(h.store.mail_waiting().await.expect("read"), NOTICES_A_DAY);
    assert_eq!(waiting(&h).await, NOTICES_A_DAY);
    assert_eq!(h.store.take_alerts(true, 8, LEASE, &[]).await.expect("taken").len(), 1, "one at a time of an account");
    h.clock.advance(DAY);
    h.credit(&c, "tomorrow", CreditKind::Adjust, Pot::Paid, -600).await.expect("less");
    assert!(crossed().await[0].may_send, "another day");
    let never = NoticeWish { threshold_nano_usd: None, ..wish };
    assert_eq!(h.store.set_balance_notice(c.account, never, test()).await.expect("set").threshold_nano_usd, None);
    assert_eq!(crossed().await, [], "it wants to hear nothing");
    h.close().await;
}
