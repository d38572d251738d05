//! What credit leaves behind: who gave it and why, and whether it was a top-up.

use tollgate_catalog::Money;
use tollgate_store::{Credit, CreditKind, EntryPage, EventPage, HoldRefused, NewAccount, Pot};

use crate::common::House;

pub async fn a_price_from_before_the_first_top_up_is_computed_again(h: House) {
    let c = h.customer(100, 0).await;
    let wish = |topped_up| {
        let mut wish = h.wish(&c, 10);
        wish.topped_up = topped_up;
        wish
    };
    let call = h.hold(wish(false)).await.expect("the account never topped up").call;
    h.credit(&c, "first", CreditKind::TopUp, Pot::Paid, 50).await.expect("a top-up");
    assert!(matches!(h.hold(wish(false)).await, Err(HoldRefused::ToppedUp)));
    assert_eq!(h.pots(&c).await, (90, 50, 10, 0), "nothing was held");
    let other = h.hold(wish(true)).await.expect("the right price").call;
    for call in [call, other] {
        h.store.close(h.ending(&c, call, 5)).await.expect("a running call keeps its price");
    }
    h.close().await;
}

pub async fn only_money_that_was_paid_is_a_top_up(h: House) {
    let c = h.customer(0, 0).await;
    let credits = [(CreditKind::TopUp, Pot::Trial), (CreditKind::Adjust, Pot::Paid), (CreditKind::Adjust, Pot::Trial)];
    for (n, (kind, pot)) in credits.into_iter().enumerate() {
        h.credit(&c, &format!("gift {n}"), kind, pot, 50).await.expect("credit");
    }
    let h = h.reopen().await;
    let topped_up =
        async |h: &House| h.store.account(c.account).await.expect("reading").expect("the account").topped_up;
    assert!(!topped_up(&h).await);
    h.credit(&c, "paid", CreditKind::TopUp, Pot::Paid, 50).await.expect("credit");
    let h = h.reopen().await;
    assert!(topped_up(&h).await);
    // Whoever gave it, histories and exports tell it from money that came in.
    let events = h.store.events(c.account, EventPage { before: None, limit: 10 }).await.expect("read");
    let events: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(events, ["top_up", "adjust", "adjust", "trial_credit"]);
    let page = EntryPage { account: Some(c.account), from: None, to: None, after: 0, until: None, limit: 10 };
    let entries = h.store.entries(page).await.expect("read");
    let entries: Vec<&str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(entries, ["trial_credit", "adjust", "adjust", "top_up"]);
    assert!(h.store.verify_strictly().await.expect("audited").breaches.is_empty());
    h.close().await;
}

pub async fn changes_of_balance_keep_who_and_why(h: House) {
    let new = NewAccount { name: "Bob".into(), ..NewAccount::default() };
    let nobody = h.store.create_account(new).await.expect("an account").id;
    let c = h.customer(0, 0).await;
    let events = |page| h.store.events(c.account, page);
    let credit = |id: &str, kind, amount| Credit {
        id: id.into(),
        account: c.account,
        kind,
        pot: Pot::Paid,
        amount: Money::from_nano(amount),
        expires_at: None,
        reason: format!("why {id}"),
        actor: format!("who {id}"),
    };
    h.store.credit(credit("a", CreditKind::TopUp, 100)).await.expect("a top-up");
    let call = h.held(&c, 50).await;
    h.store.close(h.ending(&c, call, 40)).await.expect("closed");
    assert!(h.store.charged(h.maker.call()).await.expect("reading").is_none());
    let charged = h.store.charged(call).await.expect("reading").expect("charged");
    assert_eq!((charged.account, charged.captured.nano()), (c.account, 40));
    h.clock.advance(5);
    h.store.credit(credit("b", CreditKind::Refund { call }, 40)).await.expect("a refund");
    h.store.credit(credit("c", CreditKind::Adjust, -7)).await.expect("a correction");
    let page = tollgate_store::EventPage { before: None, limit: 2 };
    let first = events(page).await.expect("a page");
    let rest = events(tollgate_store::EventPage { before: Some(first[1].seq), ..page }).await.expect("a page");
    let shown = |e: &tollgate_store::BalanceEvent| {
        (e.kind.clone(), e.paid.nano(), e.actor.clone(), e.reason.clone(), e.call, e.at - h.clock.now())
    };
    let wanted = |kind: &str, paid, id: &str, call, ago| {
        (kind.to_owned(), paid, format!("who {id}"), format!("why {id}"), call, ago)
    };
    assert_eq!(
        first.iter().map(shown).collect::<Vec<_>>(),
        [wanted("adjust", -7, "c", None, 0), wanted("refund", 40, "b", Some(call), 0)]
    );
    assert_eq!(rest.iter().map(shown).collect::<Vec<_>>(), [wanted("top_up", 100, "a", None, -5)]);
    assert!(h.store.events(nobody, page).await.expect("a page").is_empty());
    h.close().await;
}
