//! Every cell: data, nothing, an error in disguise, a failing source; and what each does to the
//! ledger.

use super::{ask, cells, free, house, plain};
use crate::house::call_id;
use serde_json::Value;
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn data_is_charged_once_at_the_cells_price() {
    let house = house("").await;
    for cell in cells(&house) {
        let name = &cell.model.name;
        let before = house.available().await;
        let reply = ask(&house, &cell, &plain(&cell)).await;
        let id = call_id(&reply);
        assert_eq!(reply.status(), 200, "{name}: {}", reply.text().await.unwrap_or_default());
        let price = cell.price().expect("a price");
        assert_eq!(reply.headers()["x-tollgate-charge-usd"].to_str().ok(), Some(price.to_string().as_str()), "{name}");
        let body: Value = reply.json().await.expect("JSON");
        assert_eq!(
            (&body["object"], &body["platform"]),
            (&"social.result".into(), &cell.platform.as_str().into()),
            "{name}"
        );
        assert_eq!(body["capability"], cell.capability.name());
        assert!(body["data"].as_object().is_some_and(|data| !data.is_empty()), "{name}");
        for supplier in ["cookie", "debug_id", "cache_url", "router"] {
            assert!(!body.to_string().contains(supplier), "{name} shows the supplier's {supplier}");
        }
        let row = house.row(id).await;
        assert_eq!((row.model.as_str(), row.ending, row.status), (name.as_str(), Ending::Answered, 200));
        assert_eq!((row.charge, row.counters.calls), (price, 1), "{name}");
        assert_eq!(before - house.available().await, price.nano(), "{name}");
    }
    assert_eq!(house.sim.received().len(), 101, "one request for each call");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_found_is_404_and_free() {
    let house = house("").await;
    let before = house.available().await;
    for scenario in ["empty", "null", "empty_object", "hollow", "deleted", "not_found", "error404"] {
        house.sim.social_order("", scenario);
        for cell in cells(&house) {
            let reply = ask(&house, &cell, &plain(&cell)).await;
            let (status, error, row) = free(&house, reply).await;
            assert_eq!(
                (status, error["code"].as_str()),
                (404, Some("social_data_no_result")),
                "{} {scenario}",
                cell.model.name
            );
            assert_eq!((row.ending, row.reason.as_str()), (Ending::Answered, "social_data_no_result"));
        }
    }
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_inside_200_is_502_and_free() {
    let house = house("").await;
    let before = house.available().await;
    for scenario in ["error_inside", "scalar", "code", "garbage", "packed", "cut"] {
        house.sim.social_order("", scenario);
        for cell in cells(&house) {
            house.sim.clear();
            let reply = ask(&house, &cell, &plain(&cell)).await;
            let (status, error, row) = free(&house, reply).await;
            // Without a status field an error looks like an empty answer.
            let expected = match scenario == "error_inside" && cell.answer.ok.is_empty() {
                true => (404, Some("social_data_no_result")),
                false => (502, Some("social_data_upstream_error")),
            };
            assert_eq!((status, error["code"].as_str()), expected, "{} {scenario}", cell.model.name);
            assert!(expected.0 == 404 || row.ending == Ending::UpstreamFault);
            let explained = error["message"].as_str().is_some_and(|text| text.contains("compressed"));
            assert_eq!(explained, scenario == "packed", "{error}");
            assert_eq!(house.sim.received().len(), 1, "it was billed: no second try");
        }
    }
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_source_is_502_and_free() {
    let house = house("").await;
    let before = house.available().await;
    for (scenario, tries) in [
        ("error400", 2),
        ("error500", 1),
        ("html502", 1),
        ("error401", 1),
        ("error402", 1),
        ("error403", 1),
        ("gone", 1),
    ] {
        house.sim.social_order("", scenario);
        for cell in cells(&house) {
            house.sim.clear();
            let reply = ask(&house, &cell, &plain(&cell)).await;
            let (status, error, row) = free(&house, reply).await;
            let name = format!("{} {scenario}", cell.model.name);
            assert_eq!((status, error["code"].as_str()), (502, Some("social_data_upstream_error")), "{name}");
            assert_eq!(row.ending, Ending::UpstreamFault, "{name}");
            let message = error["message"].as_str().expect("a message");
            assert!(!message.contains("sim.internal") && !message.contains("sk-"), "{message}");
            let routes = cell.routes.len().min(3);
            assert_eq!(
                house.sim.received().len(),
                routes - 1 + tries,
                "{name}: each route once, a failed fetch once more"
            );
        }
    }
    assert_eq!(house.available().await, before);
    assert!(!house.sim.received().iter().any(|one| one.accepted), "nothing was billed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_works_the_second_time_is_a_success() {
    let house = house("").await;
    house.sim.social_order("", "once400");
    for cell in cells(&house) {
        house.sim.clear();
        let reply = ask(&house, &cell, &plain(&cell)).await;
        assert_eq!((reply.status().as_u16(), house.sim.received().len()), (200, 2), "{}", cell.model.name);
        let row = house.row(call_id(&reply)).await;
        let price = cell.price().expect("a price");
        assert_eq!((row.charge, row.ending, row.attempts), (price, Ending::Answered, 1), "{}", cell.model.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alternative_route_helps_when_the_first_one_fails() {
    let house = house("").await;
    house.sim.social_order("fetch_general_search_v1", "error500");
    let cell = super::cell(&house, "douyin", "search");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!(reply.status(), 200);
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.charge.nano(), row.ending, row.attempts), (20_000_000, Ending::Answered, 2), "charged once");
    let paths: Vec<String> = house.sim.received().iter().map(|one| one.path.clone()).collect();
    assert_eq!(
        paths,
        ["/api/v1/douyin/search/fetch_general_search_v1", "/api/v1/douyin/search/fetch_general_search_v2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_platform_is_429_with_its_own_time() {
    let house = house("").await;
    house.sim.social_order("", "busy retry_after=9");
    let cell = super::cell(&house, "lemon8", "user");
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!(reply.headers()["retry-after"], "9");
    let (status, error, _) = free(&house, reply).await;
    assert_eq!(
        (status, error["code"].as_str(), error["reason"].as_str()),
        (429, Some("social_data_capacity_reached"), Some("busy"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_only_the_source_refuses_is_named() {
    let house = house("").await;
    house.sim.social_order("", "shape param=aweme_id");
    let cell = super::cell(&house, "douyin", "comments");
    let (status, error, row) = free(&house, ask(&house, &cell, &plain(&cell)).await).await;
    assert_eq!(
        (status, error["code"].as_str(), error["param"].as_str()),
        (400, Some("invalid_parameter"), Some("aweme_id"))
    );
    assert_eq!(row.reason, "invalid_parameter");
}
