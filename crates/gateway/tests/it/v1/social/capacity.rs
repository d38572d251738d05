//! The day's capacity, questions asked in vain, and the pace of a route.

use super::{address, ask, cell, free, house, plain};
use serde_json::Value;
use tollgate_store::SocialDay;

fn today(house: &crate::house::House) -> i64 {
    house.running().app.world.now_ms().div_euclid(86_400_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_so_many_calls_and_no_more() {
    let house = house("[social]\ndaily_calls = 30\n[social.platform.weibo]\ndaily_calls = 12\n").await;
    let cells = [cell(&house, "weibo", "user"), cell(&house, "zhihu", "user")];
    let mut calls = Vec::new();
    for n in 0..60 {
        let cell = cells[n % 2].clone();
        calls.push(house.get(&address(&cell, &plain(&cell))).send());
    }
    let mut done = 0;
    for reply in futures_util::future::join_all(calls).await {
        let reply = reply.expect("a reply");
        if reply.status() == 200 {
            done += 1;
            continue;
        }
        let seconds: u32 = reply.headers()["retry-after"].to_str().expect("text").parse().expect("seconds");
        assert!((1..=86_400).contains(&seconds));
        assert_eq!(reply.headers()["x-should-retry"], "false");
        let (status, error, _) = free(&house, reply).await;
        assert_eq!(
            (status, error["code"].as_str(), error["reason"].as_str()),
            (429, Some("social_data_capacity_reached"), Some("daily"))
        );
    }
    assert_eq!(done, 30);
    assert_eq!(house.sim.received().len(), 30, "nothing beyond was sent");
    let days = house.running().app.store.social_days(today(&house)).await.expect("read");
    let calls = |platform: &str| days.iter().find(|day| day.platform == platform).map_or(0, |day| day.calls);
    assert_eq!((calls(""), calls("weibo") + calls("zhihu")), (30, 30));
    assert!(calls("weibo") <= 12, "{days:?}");
}

/// A house whose clock stands still at this time of a day.
async fn at(config: &str, of_day: i64) -> crate::house::House {
    let now = 20_000 * 86_400_000 + of_day;
    let plan = crate::house::Plan {
        usd: "10",
        config: config.to_owned(),
        now: Some(now),
        catalog: &super::CELLS,
        ..Default::default()
    };
    crate::house::House::with(plan).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_begins_anew_at_midnight() {
    let house = at("[social]\ndaily_calls = 1\n", 86_390_000).await;
    let cell = cell(&house, "weibo", "user");
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (429, &"10".parse().expect("a value")));
    house.clock.set(9_999);
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (429, &"1".parse().expect("a value")));
    house.clock.set(11_000);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 429, "and ends again");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_in_vain_learns_how_long_the_hour_lasts() {
    let house = at("[social]\nno_results_per_hour = 1\n", 12 * 3_600_000 + 600_000).await;
    let cell = cell(&house, "weibo", "user");
    assert_eq!(ask(&house, &cell, &[("uid".to_owned(), "[[sim:empty]]".to_owned())]).await.status(), 404);
    let reply = ask(&house, &cell, &plain(&cell)).await;
    assert_eq!(reply.headers()["x-should-retry"], "false");
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (429, &"3000".parse().expect("a value")));
    house.clock.set(3_000_000);
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_believed_for_ten_minutes_of_lists_and_an_hour_of_things() {
    let house = at("[social]\n", 600_000).await;
    let (list, thing) = (cell(&house, "weibo", "search"), cell(&house, "weibo", "user"));
    let asked = async |what: &str| {
        house.sim.clear();
        let (cell, name) = if what == "list" { (&list, "query") } else { (&thing, "uid") };
        assert_eq!(ask(&house, cell, &[(name.to_owned(), "[[sim:empty]]".to_owned())]).await.status(), 404);
        house.sim.received().len()
    };
    assert_eq!((asked("list").await, asked("thing").await), (1, 1));
    house.clock.set(599_999);
    assert_eq!((asked("list").await, asked("thing").await), (0, 0));
    house.clock.set(600_000);
    assert_eq!((asked("list").await, asked("thing").await), (1, 0), "ten minutes are over");
    house.clock.set(3_599_999);
    assert_eq!(asked("thing").await, 0);
    house.clock.set(3_600_000);
    assert_eq!(asked("thing").await, 1, "an hour is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_so_much_cost_and_free_failures_do_not_count() {
    let house = house("[social]\nretry_pause = \"0\"\ndaily_cost = 2_500\n").await;
    let cell = cell(&house, "weibo", "user");
    house.sim.social_order("", "error500");
    for _ in 0..5 {
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 502);
    }
    house.sim.social_order("", "");
    for _ in 0..2 {
        assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 200);
    }
    assert_eq!(ask(&house, &cell, &plain(&cell)).await.status(), 429, "1,000 each: a third does not fit");
    let days = house.running().app.store.social_days(today(&house)).await.expect("read");
    assert_eq!(days[0], SocialDay { day: today(&house), platform: String::new(), calls: 7, cost: 2_000 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vain_question_is_not_sent_twice() {
    let house = house("[social]\nno_results_per_hour = 3\n").await;
    let cell = cell(&house, "weibo", "user");
    let asked = |id: &str| vec![("uid".to_owned(), id.to_owned())];
    for _ in 0..5 {
        let reply = ask(&house, &cell, &asked("[[sim:empty]]")).await;
        let (status, error, _) = free(&house, reply).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("social_data_no_result")));
    }
    assert_eq!(house.sim.received().len(), 1, "the source was asked once");
    assert_eq!(ask(&house, &cell, &asked("7")).await.status(), 200, "another question is sent");
    for n in 0..2 {
        assert_eq!(ask(&house, &cell, &asked(&format!("[[sim:empty]]{n}"))).await.status(), 404);
    }
    let reply = ask(&house, &cell, &asked("8")).await;
    let (status, error, _) = free(&house, reply).await;
    assert_eq!(
        (status, error["reason"].as_str()),
        (429, Some("no_result_limit")),
        "three answers without data cost the operator"
    );
    assert_eq!(ask(&house, &cell, &asked("[[sim:empty]]")).await.status(), 404, "what is known is still shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vain_question_is_remembered_over_a_restart() {
    let mut house = house("[social]\nno_results_per_hour = 2\n").await;
    let cell = cell(&house, "weibo", "user");
    let asked = |id: &str| vec![("uid".to_owned(), id.to_owned())];
    for id in ["[[sim:empty]]", "[[sim:empty]]2"] {
        assert_eq!(ask(&house, &cell, &asked(id)).await.status(), 404);
    }
    house.quiet().await;
    house.restart().await;
    house.running().app.social.refresh().await.expect("refreshed");
    let (status, error, _) = free(&house, ask(&house, &cell, &asked("[[sim:empty]]")).await).await;
    assert_eq!((status, error["reason"].as_str()), (404, Some("known")));
    let (status, error, _) = free(&house, ask(&house, &cell, &asked("7")).await).await;
    assert_eq!((status, error["reason"].as_str()), (429, Some("no_result_limit")));
    assert_eq!(house.sim.received().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_one_route_wait_for_their_turn() {
    let plan = crate::house::Plan {
        usd: "10",
        config: "[social]\npatience = \"1500ms\"\n".to_owned(),
        catalog: &super::CELLS,
        ..Default::default()
    };
    let house = crate::house::House::with(plan).await;
    // The house turns the limit off for speed; this provider has the default.
    let file = house.dir.join("tollgate.toml");
    let text = std::fs::read_to_string(&file).expect("read").replace("requests_per_second = 0\n", "");
    std::fs::write(&file, text).expect("written");
    tollgate_gateway::workers::reload::reload(&house.running().app, &house.source).await.expect("reloaded");
    let cell = cell(&house, "weibo", "user");
    // On a machine that stands still the calls do not come together, and what left in turn arrives
    // in heaps: not every try shows the turns, but one without a disturbance has to.
    let mut seen = Vec::new();
    loop {
        house.sim.clear();
        let began = std::time::Instant::now();
        let calls = (0..25).map(|_| house.get(&address(&cell, &plain(&cell))).send());
        let replies = futures_util::future::join_all(calls).await;
        let count =
            |wanted: u16| replies.iter().filter(|one| one.as_ref().expect("a reply").status() == wanted).count();
        let times: Vec<i64> = house.sim.received().iter().map(|one| one.at_ms).collect();
        let (done, busy) = (count(200), count(429));
        assert_eq!((done + busy, times.len()), (25, done), "who has no turn is refused, and not sent");
        assert!(
            done <= 10 || began.elapsed().as_millis() >= 1_000,
            "the eleventh waits for the first to be a second old"
        );
        // Ten at once, ten a second later, and the rest would wait too long.
        if (done, busy) == (20, 5) && times.windows(11).all(|window| window[10] - window[0] >= 900) {
            break;
        }
        seen.push((done, busy, times));
        assert!(seen.len() < 15, "turns, refusals and times of arrival of each try: {seen:?}");
        // All turns that were given are a second old.
        tokio::time::sleep(std::time::Duration::from_millis(2_600)).await;
    }
    let body: Value =
        house.http.get(house.url("/api/social/catalog")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(body["cells"].as_array().map(Vec::len), Some(101));
}
