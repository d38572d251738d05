//! The largest amounts: refused where they enter, in both engines alike, with the name of the field
//! and the bound.

use tollgate_catalog::Money;
use tollgate_store::{
    Change, CreditKind, Limits, MOST_AT_ONCE, MOST_IN_ACCOUNT, NewAccount, NewKey, NewLimits, Pot, StoreError,
};

use crate::common::House;

pub async fn a_balance_has_a_bound(h: House) {
    let c = h.customer(0, 0).await;
    let most = MOST_AT_ONCE.nano();
    for (kind, amount) in [(CreditKind::TopUp, most + 1), (CreditKind::TopUp, i64::MAX), (CreditKind::Adjust, i64::MIN)]
    {
        for pot in [Pot::Trial, Pot::Paid] {
            let refused = h.credit(&c, "too much", kind, pot, amount).await.expect_err("too much at once");
            assert!(refused.starts_with("amount: ") && refused.contains("100000000 USD"), "{refused}");
        }
    }
    assert_eq!(h.pots(&c).await, (0, 0, 0, 0));
    // Both pots, what is free and what is held: they have one bound together.
    for n in 0..5 {
        h.credit(&c, &format!("trial {n}"), CreditKind::TopUp, Pot::Trial, most).await.expect("within the bound");
        h.credit(&c, &format!("paid {n}"), CreditKind::TopUp, Pot::Paid, most).await.expect("within the bound");
    }
    let call = h.held(&c, 5 * most + 7).await;
    for (kind, pot) in
        [(CreditKind::TopUp, Pot::Paid), (CreditKind::TopUp, Pot::Trial), (CreditKind::Adjust, Pot::Paid)]
    {
        let refused = h.credit(&c, "one more", kind, pot, 1).await.expect_err("the account is full");
        assert!(refused.starts_with("amount: ") && refused.contains("1000000000 USD"), "{refused}");
    }
    assert!(
        !h.credit(&c, "paid 0", CreditKind::TopUp, Pot::Paid, most).await.expect("known"),
        "asked again it was before"
    );
    h.store.close(h.ending(&c, call, 7)).await.expect("closed");
    h.credit(&c, "what was spent", CreditKind::TopUp, Pot::Paid, 7).await.expect("there is room again");
    h.credit(&c, "one more", CreditKind::TopUp, Pot::Paid, 1).await.expect_err("and no more than that");
    h.credit(&c, "less", CreditKind::Adjust, Pot::Paid, -most).await.expect("less is always possible");
    let h = h.reopen().await;
    let (trial, paid, ..) = h.pots(&c).await;
    assert_eq!(trial + paid, MOST_IN_ACCOUNT.nano() - most);
    h.close().await;
}

pub async fn a_refund_into_a_full_account_changes_nothing(h: House) {
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 50).await;
    h.store.close(h.ending(&c, call, 50)).await.expect("closed");
    for n in 0..10 {
        let amount = MOST_AT_ONCE.nano() - if n == 0 { 50 } else { 0 };
        h.credit(&c, &format!("fill {n}"), CreditKind::TopUp, Pot::Paid, amount).await.expect("within the bound");
    }
    let refund = CreditKind::Refund { call };
    let refused = h.credit(&c, "back", refund, Pot::Paid, 50).await.expect_err("the account is full");
    assert!(refused.starts_with("amount: "), "{refused}");
    h.credit(&c, "room", CreditKind::Adjust, Pot::Paid, -50).await.expect("taken away");
    assert!(h.credit(&c, "back", refund, Pot::Paid, 50).await.expect("there is room"));
    h.close().await;
}

pub async fn limits_of_spending_have_a_bound(h: House) {
    let c = h.customer(0, 100).await;
    for nano in [-1, MOST_IN_ACCOUNT.nano() + 1, i64::MAX] {
        let limits = Limits { month: Some(Money::from_nano(nano)), ..Limits::default() };
        let named = |error: Option<StoreError>| {
            let error = error.expect("not a limit").to_string();
            assert!(error.starts_with("limits.month: "), "{error}");
        };
        named(h.store.create_account(NewAccount { limits, ..NewAccount::default() }).await.err());
        let new = NewKey {
            account: c.account,
            name: String::new(),
            expires_at: None,
            models: None,
            cidrs: None,
            limits,
            scope: Default::default(),
        };
        named(h.store.create_key(new, "sk-limits").await.err());
        let change = NewLimits { month: Change::Set(Money::from_nano(nano)), ..NewLimits::default() };
        named(h.store.change_key(c.key, change.into(), Default::default()).await.err());
        named(h.store.change_account(c.account, change.into(), Default::default()).await.err());
    }
    h.close().await;
}
