//! How much the poller asks: of a provider with very many open tasks, and of the store when nothing
//! is due.

use super::money::{create, ended, request};
use super::table::quick;
use crate::engine::Engine;
use crate::house::{House, Plan, second};
use std::time::{Duration, Instant};
use tollgate_catalog::Money;
use tollgate_gateway::app::App;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::testing::price;
use tollgate_store::{Hold, HoldRefused, NewTask, SentTo, TaskNaming, TaskState, TurnWish};

/// Polls a second that the provider allows.
const LIMIT: usize = 40;
const OPEN: usize = 2_000;

/// Stretches of time that are looked at until one is quiet.
const TRIES: usize = 30;

/// Two gateways look after the open tasks of one provider and, together, ask it no more often than
/// it allows.
#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_together_stay_below_a_providers_limit() {
    let [_, postgres] = Engine::both().await;
    let mut house = House::with(Plan {
        videos: true,
        usd: "100000",
        database: postgres.url.clone(),
        tasks: "refresh_after = \"1h\"",
        ..Plan::default()
    })
    .await;
    let file = house.dir.join("tollgate.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    let (before, kling) = text.split_once("[provider.kling]").expect("its section");
    let kling = kling.replacen("requests_per_second = 1000", &format!("requests_per_second = {LIMIT}"), 1);
    std::fs::write(&file, format!("{before}[provider.kling]{kling}")).expect("written");
    reload(&house.running().app, &house.source).await.expect("reloaded");
    let other = second(&house).await;
    let urls = [house.url("/v1/videos"), format!("http://{}/v1/videos", other.address)];
    let body = request("kling-v3", "[[sim:ok queue=1000000]]");
    let doors = tokio::sync::Semaphore::new(64);
    let creating = (0..OPEN).map(|number| {
        let (house, doors, url, body) = (&house, &doors, &urls[number % 2], &body);
        async move {
            let _door = doors.acquire().await.expect("open");
            let create = || house.http.post(url).bearer_auth(&house.key).json(body).send();
            loop {
                match create().await.expect("a reply").status().as_u16() {
                    200 => break,
                    // A ledger that is slow for a moment refuses, for free, and what it refused may
                    // be sent again.
                    status => assert_eq!(status, 503),
                }
            }
        }
    });
    futures_util::future::join_all(creating).await;
    // On a machine that stands still, what left evenly arrives in heaps. So the whole is counted
    // and not each second, and a second more is allowed for what was on its way. Who asks too much,
    // with thousands of tasks that are due, has asked far too much by then.
    house.sim.clear();
    let began = Instant::now();
    let asked = loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let asked = house.sim.asked().get("kling").map_or(0, |asked| asked.all);
        if asked >= 3 * LIMIT as u64 {
            break u128::from(asked);
        }
        assert!(began.elapsed() < crate::watch::HANG, "what is allowed is not used: {asked}");
    };
    let took = began.elapsed().as_millis();
    assert!(asked * 1_000 <= LIMIT as u128 * (took + 1_000), "{LIMIT} a second are allowed: {asked} in {took} ms");
    let report = house.running().app.store.verify().await.expect("verified");
    assert_eq!(report.breaches, []);
    // Its tasks stay open for ever; all their money is held.
    house.checked = true;
    other.stop().await;
    house.running.take().expect("running").stop().await;
}

/// Somebody who accepts connections and never says anything.
fn silent() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, url)
}

/// A provider with more due tasks than there are places answers none of its questions: the tasks of
/// the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_holds_up_nobody_elses_tasks() {
    let (listener, url) = silent();
    let config = format!(
        "[provider.silent]\nkind = \"kling\"\nbase_url = \"{url}\"\nsecret_file = \"sim.key\"\nfirst_byte_time = \"10m\"\n"
    );
    let tasks = "refresh_after = \"1h\"\nlook_time = \"5m\"\nparallel = 32";
    let mut house = House::with(Plan { videos: true, usd: "1000", config, tasks, ..Plan::default() }).await;
    let app = house.running().app.clone();
    let made = create(&house, "kling-v3", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    let plan = app.store.task(house.account, made).await.expect("read").expect("the task").plan;
    for _ in 0..200 {
        let hold = hold(&app, &house).await;
        let new = NewTask { plan: plan.clone(), webhook_url: None, lease_ms: 60_000 };
        let begun = app.store.begin_task(hold, new).await.expect("begun");
        let provider = app.serving.load().providers["silent"].clone();
        let to = SentTo {
            provider: "silent".into(),
            upstream_model: "kling-v3".into(),
            host: provider.base_url.place(),
            key: provider.key_print().to_owned(),
        };
        assert!(app.store.task_sending(begun, to, 60_000).await.expect("written"));
        let named = app.store.task_accepted(begun.id, begun.id.to_string(), 0).await.expect("written");
        assert_eq!(named, TaskNaming::Done);
    }
    // They have their places by now, for five minutes.
    tokio::time::sleep(Duration::from_millis(500)).await;
    for number in 0..40 {
        let id = create(&house, "kling-v3", &format!("{number} [[sim:ok queue=1 run=1]]")).await.expect("taken");
        if number % 10 == 9 {
            let (task, row) = ended(&house, id).await;
            assert!(task.state == TaskState::Completed && row.charge.nano() > 0, "{task:?}");
        }
    }
    house.checked = true;
    // With it go the connections that wait, and the looks that a stop would wait for.
    drop(listener);
    house.running.take().expect("running").stop().await;
}

/// Nobody looks at its tasks by itself for an hour: whoever reads one has its provider asked,
/// unless it was heard of lately.
#[tokio::test(flavor = "multi_thread")]
async fn reading_a_task_asks_its_provider() {
    for (after, asks) in [("10ms", true), ("1h", false)] {
        let tasks = if asks { "refresh_after = \"10ms\"" } else { "refresh_after = \"1h\"" };
        let mut house = House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::default() }).await;
        let file = house.dir.join("tollgate.toml");
        let text = std::fs::read_to_string(&file).expect("read");
        std::fs::write(&file, text.replace("poll_every = \"40ms\"", "poll_every = \"1h\"")).expect("written");
        reload(&house.running().app, &house.source).await.expect("reloaded");
        let id = create(&house, "kling-v3", "[[sim:ok queue=1 run=1]]").await.expect("taken");
        let mut seen = Vec::new();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let reply = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
            let task: serde_json::Value = reply.json().await.expect("JSON");
            seen.push(task["status"].as_str().expect("a status").to_owned());
        }
        let expected = if asks { ["queued", "in_progress", "completed"] } else { ["queued"; 3] };
        assert_eq!(seen, expected, "{after}");
        assert_eq!(house.sim.asked().get("kling").map_or(0, |asked| asked.all), if asks { 3 } else { 0 });
        house.checked = !asks;
    }
}

/// A call with a hold of its own, as tasks begin.
pub async fn hold(app: &App, house: &House) -> Hold {
    Hold {
        call: app.new_call_id(),
        account: house.account,
        key: app.store.keys(house.account).await.expect("read")[0].id,
        amount: Money::from_nano(1_000),
        least: Money::from_nano(1_000),
        price: price(1),
        model: "kling-v3".to_owned(),
        endpoint: "/v1/videos",
        paid_only: false,
        topped_up: true,
        expires_at: app.world.steady_ms() + 86_400_000,
        at: app.world.now_ms(),
        idem: None,
    }
}

/// Ten thousand tasks that wait: looking for due ones costs as many questions as without them.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_are_not_due_cost_nothing() {
    for engine in Engine::both().await {
        let mut house = quick(Plan { database: engine.url.clone(), ..Plan::default() }).await;
        let app = house.running().app.clone();
        let model = hold(&app, &house).await;
        let begin = |_| {
            let hold = Hold { call: app.new_call_id(), ..model.clone() };
            let new = NewTask { plan: "{}".to_owned(), webhook_url: None, lease_ms: 3_600_000 };
            app.store.begin_task(hold, new)
        };
        let mut open = 0;
        while open < 10_000 {
            for begun in futures_util::future::join_all((0..200).map(begin)).await {
                match begun {
                    Ok(_) => open += 1,
                    // Not durable in time: so it is with a ledger that is slow, and it is asked for
                    // again.
                    Err(refused) => assert!(matches!(refused, HoldRefused::Unavailable), "{refused:?}"),
                }
            }
        }
        // What the other workers were late with may all come at once: one second in which little is
        // asked shows that a round asks little, for it has as many rounds as any other.
        let mut seen = Vec::new();
        loop {
            let (before, began) = (app.store.gauges(), Instant::now());
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (now, spent) = (app.store.gauges(), began.elapsed());
            let rounds = u64::try_from(spent.as_millis() / 20).expect("small");
            let others = 20 * (spent.as_secs() + 1);
            let (asked, written) = (now.queries - before.queries, now.committed_ops - before.committed_ops);
            if asked <= rounds + others && written <= others {
                break;
            }
            seen.push((asked, written, spent));
            assert!(seen.len() < TRIES, "{}: questions, writings and time of each try: {seen:?}", engine.name);
        }
        assert!(house.sim.received().is_empty(), "nobody was asked about them");
        house.checked = true;
        house.running.take().expect("running").stop().await;
    }
}

/// A line in which nobody gets a turn does not keep a task open for ever: at the time of its last
/// look it is decided without one.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_look_is_not_put_off_for_want_of_a_turn() {
    let tasks = "refresh_after = \"1h\"\npatience = \"500ms\"\nunknown_time = \"500ms\"\nabsent_time = \"1h\"";
    let house = House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::default() }).await;
    let app = house.running().app.clone();
    // Somebody else has the line for most of a minute.
    let wish = TurnWish { line: "kling", every_us: 55_000_000, count: 1, patience_us: 1_000_000 };
    assert_eq!(app.store.turns(wish).await.expect("taken").count, 1);
    let polled = create(&house, "kling-v3", "[[sim:ok queue=1000000]]").await.expect("taken");
    let lost = create(&house, "kling-v3", "[[sim:lost queue=1000000]]").await.expect("taken");
    for id in [polled, lost] {
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, super::money::code(&task)), (TaskState::Failed, "task_unknown"), "{task:?}");
        assert_eq!((row.charge, row.write_off), (Money::ZERO, row.hold), "the operator's loss");
    }
    let asked = house.sim.asked().get("kling").map_or(0, |asked| asked.all);
    assert_eq!(asked, 0, "decided before the line was free again");
}

/// The question for a finished file's link is a question like any other: it waits for a turn of its
/// own.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_step_waits_for_its_own_turn() {
    let house =
        House::with(Plan { videos: true, usd: "1000", tasks: "refresh_after = \"1h\"", ..Plan::default() }).await;
    let file = house.dir.join("tollgate.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    let (before, minimax) = text.split_once("[provider.minimax]").expect("its section");
    let minimax = minimax.replacen("requests_per_second = 1000", "requests_per_second = 1", 1);
    std::fs::write(&file, format!("{before}[provider.minimax]{minimax}")).expect("written");
    reload(&house.running().app, &house.source).await.expect("reloaded");
    let begun = Instant::now();
    let id = create(&house, "MiniMax-Hailuo-2.3", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    let (task, row) = ended(&house, id).await;
    assert!(task.state == TaskState::Completed && row.charge.nano() > 0, "{task:?}");
    let asked: Vec<String> = house
        .sim
        .received()
        .into_iter()
        .filter(|one| one.method == "GET" && one.path.starts_with("/video/minimax/"))
        .map(|one| one.path.trim_start_matches("/video/minimax").to_owned())
        .collect();
    assert_eq!(asked, ["/v1/query/video_generation", "/v1/files/retrieve"]);
    // One a second, both steps together: however slow all else is, it cannot be quicker.
    assert!(begun.elapsed() >= Duration::from_millis(990), "{:?}", begun.elapsed());
}

/// A look that waits long for its turn is still the only one when it has it: its lease is longer
/// than any look.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_waits_for_its_turn_keeps_its_task() {
    let tasks = "refresh_after = \"1h\"\nlook_time = \"1s\"";
    let house = House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::default() }).await;
    // Somebody else has the line for a while.
    let wish = TurnWish { line: "kling", every_us: 4_000_000, count: 1, patience_us: 1_000_000 };
    assert_eq!(house.running().app.store.turns(wish).await.expect("taken").count, 1);
    let id = create(&house, "kling-v3", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    assert_eq!(ended(&house, id).await.0.state, TaskState::Completed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(house.sim.asked()["kling"].all, 1, "nobody else asked meanwhile");
}
