//! What calls cost beside what they were charged, added up by day, model and route.

use tollgate_catalog::Money;
use tollgate_store::{Close, Ending, UsageFacts};

use crate::common::House;

pub async fn margins_are_added_up_by_day_model_and_route(h: House) {
    let customer = h.customer(0, 10_000).await;
    let began = h.clock.now();
    for (charge, cost, provider) in
        [(100, Some(40), "one"), (200, Some(260), "one"), (50, None, "one"), (70, Some(0), "two"), (0, None, "two")]
    {
        let call = h.held(&customer, 500).await;
        let facts = h.facts(&customer, charge);
        let row = UsageFacts { cost: cost.map(Money::from_nano), provider: Some(provider.to_owned()), ..facts };
        let close = Close {
            call,
            account: customer.account,
            ending: Ending::Answered,
            reason: String::new(),
            charge: Money::from_nano(charge),
            most: None,
            row,
            reply: None,
        };
        assert!(h.store.close(close).await.expect("closed").applied);
        let row = h.store.usage_of(customer.account, call).await.expect("read").expect("a row");
        assert_eq!(row.cost, cost.map(Money::from_nano));
        assert_eq!(row.margin(), cost.map(|cost| Money::from_nano(charge - cost)));
    }
    let rows = h.store.margins(began, h.clock.now() + 1).await.expect("added up");
    let shown: Vec<(&str, i64, i64, i64, i64, i64)> = rows
        .iter()
        .map(|row| {
            let provider = row.provider.as_deref().unwrap_or("");
            (provider, row.calls, row.sold.nano(), row.cost_unknown, row.sold_unknown.nano(), row.cost.nano())
        })
        .collect();
    assert_eq!(shown, [("one", 3, 350, 1, 50, 300), ("two", 1, 70, 0, 0, 0)]);
    assert!(rows.iter().all(|row| row.day == began.div_euclid(86_400_000) && row.model == "test"));
    assert_eq!(rows[0].margin(), Some(Money::ZERO), "of those calls whose cost is known");
    assert!(h.store.margins(h.clock.now() + 1, h.clock.now() + 2).await.expect("read").is_empty());
    assert!(h.store.margins(0, h.clock.now()).await.is_err(), "so long a time is not added up at once");
    h.close().await;
}
