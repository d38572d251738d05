//! What is refused before anything is charged or sent, and in which order.

use super::{ask, cell, cells, good, house, plain};
use crate::house::{House, Plan, error_of};
use tollgate_catalog::Money;
use tollgate_catalog::social::{Capability, Cell, Param, ParamKind};
use tollgate_store::{Credit, CreditKind, Pot};

type Query = Vec<(String, String)>;

fn with(cell: &Cell, name: &str, value: &str) -> Query {
    let mut pairs = plain(cell);
    pairs.retain(|(other, _)| other != name);
    pairs.push((name.to_owned(), value.to_owned()));
    pairs
}

/// Query, parameter, code and reason of every refusal of one parameter.
fn refusals(cell: &Cell, at: usize, param: &Param) -> Vec<(Query, &'static str, &'static str)> {
    let name = param.name.as_str();
    let mut twice = with(cell, name, &good(param));
    twice.push((name.to_owned(), good(param)));
    let mut list = vec![(twice, "invalid_parameter", "repeated")];
    let mut bad = |value: String, reason| list.push((with(cell, name, &value), "invalid_parameter", reason));
    match param.kind {
        ParamKind::Text => {
            bad("x".repeat(param.max_length + 1), "too_long");
            if !param.choices().is_empty() {
                bad("nope".to_owned(), "not_allowed");
            }
        }
        ParamKind::Integer => {
            bad("x".to_owned(), "wrong_type");
            bad("1.5".to_owned(), "wrong_type");
            bad("+1".to_owned(), "wrong_type");
            param.min.into_iter().for_each(|min| bad((min - 1).to_string(), "out_of_range"));
            param.max.into_iter().for_each(|max| bad((max + 1).to_string(), "out_of_range"));
        }
        ParamKind::Boolean => bad("yes".to_owned(), "wrong_type"),
    }
    let leads = cell.require_one_of.iter().any(|group| group[0] == at);
    if (param.required && param.default.is_none()) || leads {
        let reason = if leads { "none_of_group" } else { "missing" };
        let mut absent = plain(cell);
        absent.retain(|(other, _)| other != name);
        list.push((absent, "missing_parameter", reason));
        list.push((with(cell, name, ""), "missing_parameter", reason));
    }
    list
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_every_parameter_of_every_cell() {
    let house = house("").await;
    let before = house.available().await;
    let mut cases = 0;
    for cell in cells(&house) {
        let mut list: Vec<(String, Query, &str, &str)> = Vec::new();
        for name in cell.never_send.iter().map(String::as_str).chain(["zz", "Keyword", "page[]"]) {
            list.push((name.to_owned(), with(&cell, name, "1"), "unknown_parameter", "unknown"));
        }
        for (at, param) in cell.params.iter().enumerate() {
            let own = refusals(&cell, at, param).into_iter();
            list.extend(own.map(|(query, code, reason)| (param.name.clone(), query, code, reason)));
        }
        for (param, query, code, reason) in list {
            let (status, error) = error_of(ask(&house, &cell, &query).await).await;
            let got = (status, error["code"].as_str(), error["param"].as_str(), error["reason"].as_str());
            assert_eq!(got, (400, Some(code), Some(param.as_str()), Some(reason)), "{} {query:?}", cell.model.name);
            cases += 1;
        }
    }
    assert!(cases > 1_200, "{cases} cases");
    assert!(house.sim.received().is_empty(), "nothing was sent");
    assert_eq!(house.available().await, before);
    assert!(
        house
            .running()
            .app
            .store
            .usage(None, tollgate_store::UsagePage { before: None, limit: 1 })
            .await
            .expect("read")
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_pair_is_404() {
    let house = house("").await;
    let social = house.running().app.serving.load_full();
    let mut absent = 0;
    for platform in social.catalog.social.platforms() {
        for capability in Capability::ALL {
            if social.catalog.social.cell(&platform.key, capability.name()).is_none() {
                let path = format!("/v1/social/{}/{}", platform.key, capability.name());
                let (status, error) = error_of(house.get(&path).send().await.expect("a reply")).await;
                assert_eq!((status, error["code"].as_str()), (404, Some("social_endpoint_not_found")), "{path}");
                absent += 1;
            }
        }
    }
    assert_eq!(absent, 19);
    for path in ["/v1/social/myspace/user", "/v1/social/douyin/likes", "/v1/social/Douyin/user"] {
        assert_eq!(house.get(path).send().await.expect("a reply").status(), 404, "{path}");
    }
    let post = house.http.post(house.url("/v1/social/douyin/user")).bearer_auth(&house.key);
    assert_eq!(post.send().await.expect("a reply").status(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_come_in_the_decided_order() {
    // No top-up yet, trial credit only.
    let house = House::with(Plan {
        usd: "0",
        config: "[social]\ndaily_calls = 0\n".to_owned(),
        catalog: &super::CELLS,
        ..Plan::default()
    })
    .await;
    house.credit("trial", Pot::Trial, Money::from_usd(5).expect("an amount")).await;
    let app = house.running().app.clone();
    app.social.change("social-zhihu-user", true, "ada", "test").await.expect("paused");
    let code = async |path: &str, key: &str| {
        let reply = house.http.get(house.url(path)).bearer_auth(key).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        (status, error["code"].as_str().unwrap_or_default().to_owned())
    };
    let said = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(code("/v1/social/nowhere/user?zz=1", "sk-wrong").await, said(401, "invalid_api_key"));
    assert_eq!(code("/v1/social/nowhere/user?zz=1", &house.key).await, said(404, "social_endpoint_not_found"));
    assert_eq!(code("/v1/social/zhihu/user?zz=1", &house.key).await, said(503, "social_data_unavailable"));
    assert_eq!(code("/v1/social/weibo/user?zz=1", &house.key).await, said(403, "model_requires_topup"));
    // Topped up with too little: a nano-dollar.
    house.credit("tiny", Pot::Paid, Money::from_nano(1)).await;
    assert_eq!(code("/v1/social/weibo/user?zz=1", &house.key).await, said(400, "unknown_parameter"));
    assert_eq!(code("/v1/social/weibo/user?uid=1", &house.key).await, said(402, "insufficient_balance"));
    let reply = house.get("/v1/social/weibo/user?uid=1").send().await.expect("a reply");
    let (_, error) = error_of(reply).await;
    assert_eq!(error["available_nano_usd"], 1, "what of the account may pay for it");
    assert!(error["needed_nano_usd"].as_i64().is_some_and(|needed| needed > 1), "{error}");
    assert!(!error["message"].as_str().expect("a message").contains("token"), "{error}");
    house.credit("enough", Pot::Paid, Money::from_usd(1).expect("an amount")).await;
    assert_eq!(code("/v1/social/weibo/user?uid=1", &house.key).await, said(429, "social_data_capacity_reached"));
    assert!(house.sim.received().is_empty(), "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_counts_with_the_next_call() {
    let house = House::with(Plan { usd: "0", catalog: &super::CELLS, ..Plan::default() }).await;
    let cell = cell(&house, "weibo", "user");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 403);
    // As another replica does it: this one has read the key a moment ago.
    let (reason, actor) = ("test".to_owned(), "test".to_owned());
    let (kind, pot, amount) = (CreditKind::TopUp, Pot::Paid, Money::from_usd(1).expect("an amount"));
    let credit =
        Credit { id: "one".to_owned(), account: house.account, kind, pot, amount, expires_at: None, reason, actor };
    house.running().app.store.credit(credit).await.expect("credited");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_paid_credit_is_spent() {
    let house = house("").await;
    house.credit("trial", Pot::Trial, Money::from_usd(5).expect("an amount")).await;
    let cell = cell(&house, "linkedin", "comments");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    house.quiet().await;
    let account = house.balance().await;
    assert_eq!(
        (account.trial_available.to_string(), account.paid_available.to_string()),
        ("5".to_owned(), "99.9".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_not_utf8_or_absurdly_long_is_refused() {
    let house = house("").await;
    for query in ["keyword=%ff", "keyword=%4"] {
        let (status, error) =
            error_of(house.get(&format!("/v1/social/weibo/search?{query}")).send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (400, Some("invalid_parameter")), "{query}");
    }
    // Several cursors of the longest kind must fit into an address.
    let cell = cell(&house, "xiaohongshu", "search");
    let long: Query = vec![
        ("keyword".to_owned(), "咖".repeat(200)),
        ("search_id".to_owned(), "s".repeat(8_192)),
        ("search_session_id".to_owned(), "t".repeat(8_192)),
    ];
    assert_eq!(ask(&house, &cell, &long).await.status(), 200);
}
