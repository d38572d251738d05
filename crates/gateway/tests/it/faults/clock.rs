//! A wall clock that is wrong by years: calls go on, nothing is taken away by it, everybody is
//! reported, and all is well when it is right again.

use crate::engine::Engine;
use crate::house::{House, Plan};
use tollgate_catalog::Money;
use tollgate_store::{Change, Credit, CreditKind, NewLimits, Pot};

const DAY: i64 = 86_400_000;
const WRONG: i64 = 400 * DAY;

async fn text(house: &House, path: &str) -> String {
    house.http.get(house.url(path)).send().await.expect("a reply").text().await.expect("text")
}

async fn trial(house: &House) -> Money {
    house.balance().await.trial_available
}

pub async fn the_clock_is_wrong_by_years() {
    for engine in &Engine::both().await {
        let mut house = House::with(Plan { database: engine.url.clone(), ..Plan::default() }).await;
        let store = house.running().app.store.clone();
        // As if it had run for a day.
        store.accept_clock().await.expect("accepted");
        let credit = Credit {
            id: format!("trial {}", house.account),
            account: house.account,
            kind: CreditKind::TopUp,
            pot: Pot::Trial,
            amount: Money::from_nano(1_000_000_000),
            expires_at: Some(house.running().app.world.now_ms() + 30 * DAY),
            reason: String::new(),
            actor: String::new(),
        };
        store.credit(credit).await.expect("credited");
        let tomorrow = house.running().app.world.now_ms() + DAY;
        house.key = house.new_key(|key| key.expires_at = Some(tomorrow)).await;
        assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
        house.quiet().await;
        // The day's limit is used up.
        let key =
            store.keys(house.account).await.expect("keys").into_iter().find(|key| !key.spent.is_zero()).expect("used");
        let limit = |day| NewLimits { day, ..NewLimits::default() };
        store.change_key(key.id, limit(Change::Set(key.used.day)).into(), Default::default()).await.expect("limited");
        let left = trial(&house).await;
        for wrong in [WRONG, -WRONG] {
            house.clock.set(wrong);
            assert_eq!(house.ask("a new day?").await.status(), 402, "no day has passed");
            assert_eq!(house.get("/v1/balance").send().await.expect("a reply").status(), 200, "nor has the key ended");
            let swept = store.sweep(house.running().app.world.steady_ms()).await.expect("swept");
            assert_eq!((swept.lapsed, trial(&house).await), (0, left), "no credit is taken away");
            let ready = text(&house, "/readyz").await;
            assert!(ready.starts_with("ready\nclock: refused"), "{ready}");
            assert!(text(&house, "/metrics").await.contains("tollgate_clock_refused 1"));
            house.clock.set(0);
            assert_eq!(text(&house, "/readyz").await, "ready\n");
        }
        assert!(text(&house, "/metrics").await.contains("tollgate_clock_refusals_total 2"));
        // As if nothing had been: today is today.
        store.change_key(key.id, limit(Change::Lift).into(), Default::default()).await.expect("lifted");
        assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
        house.quiet().await;
        assert_eq!(store.verify_strictly().await.expect("audited").breaches, [], "times in the ledger are in order");
    }
}
