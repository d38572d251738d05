//! Models with two routes: a creation goes to the second only where the first was surely not asked,
//! or refused it. From the first byte that may have been taken on there is one maker, whatever it
//! answers.

use super::money::{FINDS, MAKERS, create, ended, request, sent};
use crate::house::{House, Plan, call_id};
use serde_json::Value;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{TaskState, UsageRow};

const FUNDED: i64 = 1_000_000_000_000;

/// The shipped models, each with a second route to another account of its maker, which would take
/// whatever it is sent.
async fn house(tasks: &'static str, patience: &'static str) -> House {
    let house = House::with(Plan { videos: true, usd: "1000", tasks, patience, ..Plan::default() }).await;
    let catalog = house.dir.join("catalog/video.toml");
    let models = std::fs::read_to_string(&catalog).expect("read");
    let mut routes = 0;
    let models: Vec<String> = models
        .lines()
        .map(|line| match line.strip_prefix("route = [{ ").and_then(|rest| rest.strip_suffix(" }]")) {
            Some(one) => {
                routes += 1;
                let other = one.replacen("\",", "-two\",", 1);
                format!("route = [{{ {one}, priority = 1 }}, {{ {other}, priority = 2 }}]")
            }
            None => line.to_owned(),
        })
        .collect();
    assert!(routes >= MAKERS.len(), "the catalog writes its routes otherwise");
    std::fs::write(&catalog, models.join("\n")).expect("written");
    std::fs::write(house.dir.join("two.key"), "two-key").expect("written");
    let file = house.dir.join("tollgate.toml");
    let mut config = std::fs::read_to_string(&file).expect("read");
    for kind in ["dashscope", "ark", "kling", "minimax", "openai", "gemini"] {
        let url = house.sim.video_url(kind);
        config += &format!(
            "[provider.{kind}-two]\nkind = \"{kind}\"\nbase_url = \"{url}\"\nsecret_file = \"two.key\"\n\
             idle_time = \"{patience}\"\nfirst_byte_time = \"{patience}\"\npoll_every = \"40ms\"\nrequests_per_second = 1000\n"
        );
    }
    std::fs::write(&file, config).expect("written");
    reload(&house.running().app, &house.source).await.expect("reloaded");
    house
}

/// How often makers were asked to make something.
fn creates(house: &House) -> usize {
    house.sim.received().iter().filter(|one| one.method == "POST").count()
}

/// A creation that nobody takes: what the caller gets to read, and what its row says.
async fn refused(house: &House, model: &str, prompt: &str) -> (u16, UsageRow) {
    let ask = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&request(model, prompt));
    let reply = ask.send().await.expect("a reply");
    let (status, call) = (reply.status().as_u16(), call_id(&reply));
    assert_ne!(status, 200, "{model} {prompt}: {}", reply.text().await.expect("text"));
    (status, house.row(call).await)
}

/// The answer is lost, late, a proxy's page, garbage, or says that it waited too long for itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_taken_goes_nowhere_else() {
    let house = house("patience = \"8s\"\nunknown_time = \"1s\"\nabsent_time = \"500ms\"", "2s").await;
    let scenarios = ["lost", "page", "garbage", "slow ms=5000"];
    let sending = MAKERS.into_iter().flat_map(|(model, provider)| {
        scenarios.map(|scenario| {
            let house = &house;
            async move {
                let prompt = format!("[[sim:{scenario} queue=0 run=0]]");
                (model, provider, scenario, sent(house, model, &prompt).await)
            }
        })
    });
    let tasks = futures_util::future::join_all(sending).await;
    let count = tasks.len();
    for (model, provider, scenario, id) in tasks {
        let (task, row) = ended(&house, id).await;
        assert_eq!(task.provider.as_deref(), Some(provider), "{model} {scenario}: {task:?}");
        assert_eq!(row.provider.as_deref(), Some(provider), "{model} {scenario}: {row:?}");
        let found = FINDS.contains(&provider);
        assert_eq!(task.state == TaskState::Completed, found, "{model} {scenario}: {task:?}");
    }
    assert_eq!((creates(&house), house.sim.videos()), (count, count), "each was sent once, and made once");
}

/// A maker that failed in its own words says that it made nothing; nobody else is asked all the
/// same.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_makers_own_words_goes_nowhere_else() {
    let house = house("patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"500ms\"", "20s").await;
    for (model, codes) in [
        ("wan2.7-t2v", "InternalError InternalError.Algo"),
        ("seedance-2.5", "InternalServiceError"),
        ("kling-v3", "5000"),
        ("kling-3.0-turbo", "5000"),
        ("kling-v3-omni", "5000"),
        ("MiniMax-Hailuo-2.3", "1000 1024 1033"),
        ("MiniMax-H3", "1000 1024 1033"),
        ("sora-2", "server_error"),
        ("veo-3.1", "INTERNAL UNAVAILABLE"),
    ] {
        let provider = MAKERS.iter().find(|maker| maker.0 == model).expect("a maker").1;
        let codes = codes.split(' ').map(|code| format!("[[sim:refuse code={code}]]"));
        // The second of these would be taken.
        for prompt in codes.chain(["[[sim:broken_once]]".to_owned()]) {
            let before = creates(&house);
            let (status, row) = refused(&house, model, &prompt).await;
            assert_eq!((status, creates(&house)), (502, before + 1), "{model} {prompt}");
            assert_eq!((row.provider.as_deref(), row.attempts), (Some(provider), 1), "{model} {prompt}: {row:?}");
        }
    }
    for (model, code) in [("wan2.7-t2v", "RequestTimeOut"), ("kling-v3", "5002"), ("veo-3.1", "DEADLINE_EXCEEDED")] {
        let before = creates(&house);
        let id = sent(&house, model, &format!("[[sim:refuse code={code}]]")).await;
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, creates(&house)), (TaskState::Failed, before + 1), "{model} {code}");
        assert!(row.charge.is_zero(), "{model} {code}: {row:?}");
    }
    assert_eq!((house.sim.videos(), house.available().await), (0, FUNDED));
}

/// What a maker refuses because of itself, and did not begin, is offered to the next; what it
/// refuses because of the caller is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_clear_refusal_goes_to_the_next() {
    let house = house("", "20s").await;
    for (model, operator, caller) in [
        ("wan2.7-t2v", "Arrearage", "InvalidParameter"),
        ("seedance-2.5", "AccountOverdueError", "InvalidParameter"),
        ("kling-v3", "1102", "1201"),
        ("kling-3.0-turbo", "1102", "1201"),
        ("kling-v3-omni", "1102", "1201"),
        ("MiniMax-Hailuo-2.3", "1008", "2013"),
        ("MiniMax-H3", "1008", "2013"),
        ("sora-2", "insufficient_quota", "invalid_value"),
        ("veo-3.1", "PERMISSION_DENIED", "INVALID_ARGUMENT"),
    ] {
        for (prompt, status, asked) in [
            (format!("[[sim:refuse code={operator}]]"), 502, 2),
            ("[[sim:limited]]".to_owned(), 429, 2),
            (format!("[[sim:refuse code={caller}]]"), 400, 1),
        ] {
            let before = creates(&house);
            let (got, row) = refused(&house, model, &prompt).await;
            assert_eq!((got, creates(&house) - before), (status, asked), "{model} {prompt}");
            assert_eq!(usize::try_from(row.attempts).expect("few"), asked, "{model} {prompt}: {row:?}");
        }
    }
    assert_eq!((house.sim.videos(), house.available().await), (0, FUNDED));
    // The first account's key is no good any more: the second makes the video.
    for name in ["sim.key", "access.key"] {
        std::fs::write(house.dir.join(name), "wrong-key").expect("written");
    }
    reload(&house.running().app, &house.source).await.expect("reloaded");
    for (model, provider) in MAKERS {
        let id = create(&house, model, "[[sim:ok queue=0 run=0]]").await.unwrap_or_else(|why: (u16, Value)| {
            panic!("{model}: {why:?}");
        });
        let (task, _) = ended(&house, id).await;
        let expected = format!("{provider}-two");
        assert_eq!((task.state, task.provider), (TaskState::Completed, Some(expected)), "{model}");
    }
    assert_eq!(house.sim.videos(), MAKERS.len());
}
