//! Keys: plain, signed, wrong, ended. A key's trouble is the operator's.

use crate::house::{House, apis};
use crate::makers::{MAKERS, Maker};
use tollgate_media::video::Api;
use tollgate_sim::video::{KLING_ACCESS, KLING_SECRET};
use tollgate_upstream::Blame;

#[tokio::test]
async fn a_wrong_key_is_the_operators_trouble() {
    for maker in MAKERS {
        let house = House::with_key(*maker, "wrong-region-key").await;
        let fault = house.create("p").await.expect_err("refused");
        assert_eq!((fault.blame, fault.maybe_charged), (Blame::Operator, false), "{maker:?}: {fault:?}");
        assert!(!fault.message.contains("key"), "nothing about our account: {}", fault.message);
        assert_eq!(house.sim.videos(), 0);
    }
}

#[tokio::test]
async fn signed_keys() {
    let pair = format!("{KLING_ACCESS}|{KLING_SECRET}");
    for maker in apis(&[Api::KlingV1, Api::Kling2, Api::KlingOmni]) {
        let house = House::with_key(maker, &pair).await;
        let id = house.create("p").await.expect("a token that is good now");
        assert!(house.polls(&id).await.pop().expect("a poll").expect("a report").is_ready());
        let sent = house.submissions().pop().expect("a submission");
        assert!(
            sent.has_authorization() && !sent.authorization_is(&format!("Bearer {pair}")),
            "the secret is not sent"
        );
        for (seconds, code) in [(-2000, "ended"), (2000, "not begun")] {
            let odd = House { now: house.now + seconds, ..House::with_key(maker, &pair).await };
            let fault = odd.create("p").await.expect_err(code);
            assert_eq!((fault.blame, fault.upstream_status), (Blame::Operator, Some(401)), "{code}");
        }
    }
    let house = House::with_key(Maker::of(Api::KlingV1), &format!("{KLING_ACCESS}|other-secret")).await;
    assert_eq!(house.create("p").await.expect_err("another secret").blame, Blame::Operator);
}

#[tokio::test]
async fn secrets_are_not_shown() {
    for maker in MAKERS {
        let house = House::with_key(*maker, "hidden-access|hidden-secret").await;
        let plan = house.plan(&maker.plain("p"));
        let job = tollgate_upstream::video::Job { plan: &plan, model: maker.model, external_id: "t" };
        let request = house.video().create(&house.asking(), &job).expect("a request");
        assert!(!format!("{request:?} {:?}", house.provider).contains("hidden"), "{maker:?}");
    }
}
