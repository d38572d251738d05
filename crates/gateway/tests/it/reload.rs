//! A changed configuration is taken over without a restart, all or nothing.

use crate::house::{House, chat, error_of};
use serde_json::json;
use std::time::Duration;

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..2_400 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen within half a minute");
}

fn stale(house: &House) -> i64 {
    house.running().app.metrics.catalog_stale.get()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_price_is_taken_over_and_a_broken_file_is_not() {
    let house = House::new().await;
    let file = house.dir.join("catalog/models.toml");
    let good = std::fs::read_to_string(&file).expect("read");
    let version = || house.running().app.serving.load().catalog.pricing_version(0).to_owned();
    let first = version();

    std::fs::write(&file, good.replace("output = 2_000_000", "output = 3_000_000")).expect("written");
    until("the new price", async || version() != first).await;
    let row = house.row(crate::house::call_id(&house.ask("[[sim:tokens=2]]").await)).await;
    assert_eq!(row.charge.nano(), 1_000 + 2 * 3_000);

    let second = version();
    std::fs::write(&file, good.replace("input = 1_000_000", "input = -1")).expect("written");
    until("the alarm", async || stale(&house) == 1).await;
    assert_eq!(version(), second, "the old snapshot stays");
    assert_eq!(house.ask("still served").await.status(), 200);

    std::fs::write(&file, &good).expect("written");
    until("the recovery", async || stale(&house) == 0 && version() == first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_keeps_the_price_it_began_with() {
    let house = House::new().await;
    let file = house.dir.join("catalog/models.toml");
    let good = std::fs::read_to_string(&file).expect("read");
    let first = house.running().app.serving.load().catalog.pricing_version(0).to_owned();
    house.sim.shut("/v1/chat/completions");
    let running = house.post(&chat("hello [[sim:tokens=2]]")).send();
    let change = async {
        until("the call", async || house.sim.waited() > 0).await;
        std::fs::write(&file, good.replace("output = 2_000_000", "output = 9_000_000")).expect("written");
        until("the new price", async || house.running().app.serving.load().catalog.pricing_version(0) != first).await;
        house.sim.open();
    };
    let (reply, ()) = tokio::join!(running, change);
    let row = house.row(crate::house::call_id(&reply.expect("a reply"))).await;
    assert_eq!(row.charge.nano(), 2 * 1_000 + 2 * 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_name_file_line_field_and_reason_all_at_once() {
    let house = House::new().await;
    std::fs::write(
        house.dir.join("catalog/models.toml"),
        "[model.\"a\"]\nsupported_endpoint_types = [\"openai\"]\n[model.\"a\".price]\ninput = -5\noutput = 1\n[[model.\"a\".route]]\nprovider = \"simm\"\nupstream_model = \"x\"\n",
    )
    .expect("written");
    std::fs::write(house.dir.join("tollgate.toml"), "lisen = \"127.0.0.1:0\"\n[limits]\nheader_time = 5\n[provider.sim]\nkind = \"opnai\"\nbase_url = \"nonsense\"\n").expect("written");
    let Err(mistakes) = house.source.load() else { panic!("accepted") };
    let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let all = all.join("\n").replace(&house.dir.display().to_string(), "");
    for expected in [
        "/tollgate.toml:1: lisen",
        "listen",
        "/tollgate.toml:3: limits.header_time",
        "/tollgate.toml:5: provider.sim.kind",
        "/tollgate.toml:6: provider.sim.base_url",
        "/catalog/models.toml:4: model.a.price.input",
        "no provider is called \"simm\"",
    ] {
        assert!(all.contains(expected), "{expected} is missing in\n{all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_everything_again() {
    let house = House::new().await;
    let loads = || house.running().app.metrics.catalog_loads.get();
    assert_eq!(loads(), 0);
    // The shell's own word: a Debian that has just been unpacked has no program of that name.
    let kill = std::process::Command::new("sh").args(["-c", &format!("kill -HUP {}", std::process::id())]).status();
    assert!(kill.expect("kill").success());
    until("the reload", async || loads() == 1).await;
}

#[test]
fn every_key_can_be_set_from_the_environment() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), "[limits]\ncalls = 5\n").expect("written");
    let load = |pairs: &[(&str, &str)]| {
        let environment = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let environment = std::sync::Arc::new(environment);
        tollgate_gateway::settings::ConfigSource { file: dir.path().join("tollgate.toml"), environment }.load()
    };
    let plain = load(&[]).map_err(|mistakes| mistakes.len()).expect("no mistakes");
    assert_eq!(plain.settings.limits.calls, 5);
    let set = load(&[
        ("TOLLGATE__LISTEN", "127.0.0.1:4000"),
        ("TOLLGATE__LIMITS__CALLS", "7"),
        ("TOLLGATE__LIMITS__BODY_BYTES", "1MiB"),
        ("TOLLGATE__PROVIDER__NEW__KIND", "openai"),
        ("TOLLGATE__PROVIDER__NEW__BASE_URL", "http://127.0.0.1:1/v1"),
    ])
    .map_err(|mistakes| mistakes.len())
    .expect("no mistakes");
    assert_eq!((set.settings.listen.port(), set.settings.limits.calls), (4000, 7));
    assert_eq!(set.settings.limits.body_bytes, 1 << 20);
    assert!(set.serving.providers.contains_key("new"));
    let Err(mistakes) = load(&[("TOLLGATE__LIMITS__CALLS", "many")]) else { panic!("accepted") };
    assert_eq!((mistakes[0].file.as_str(), mistakes[0].field.as_str()), ("TOLLGATE__LIMITS__CALLS", "limits.calls"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unpriced_model_is_never_free() {
    let house = House::new().await;
    let mut body = chat("x");
    body["model"] = json!("unpriced");
    let (status, _) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!(status, 404);
    let text = "[model.\"u\"]\nsupported_endpoint_types = [\"openai\"]\n[[model.\"u\".route]]\nprovider = \"sim\"\nupstream_model = \"x\"\n";
    std::fs::write(house.dir.join("catalog/unpriced.toml"), text).expect("written");
    assert!(house.source.load().is_err(), "a model without a price is refused at load");
}

/// One thread serves everything here: if the reading of a catalog ran on it, nothing else could run
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_catalog_is_read_while_calls_go_on() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let house = House::new().await;
    let model = |at: usize| {
        format!(
            "[model.\"large-{at}\"]\nprice = {{ input = {at}, output = 2 }}\nroute = [{{ provider = \"sim\", upstream_model = \"x\" }}]\n"
        )
    };
    let text: String = (0..3_000).map(model).collect();
    let (app, source) = (Arc::clone(&house.running().app), house.source.clone());
    std::fs::write(house.dir.join("catalog/large.toml"), text).expect("written");
    let ticks = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    let count = Arc::clone(&ticks);
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let count = Arc::clone(&ticks);
    let mut reload = tokio::task::JoinSet::new();
    reload.spawn(async move {
        let before = count.load(Ordering::Relaxed);
        let result = tollgate_gateway::workers::reload::reload(&app, &source).await;
        (result.is_ok(), count.load(Ordering::Relaxed) - before)
    });
    let (taken, ticked) = reload.join_next().await.expect("a task").expect("no panic");
    assert!(taken && house.running().app.serving.load().catalog.models.len() > 3_000);
    assert!(ticked >= 5, "the serving thread came round only {ticked} times while 3,000 models were read");
    tasks.abort_all();
    assert_eq!(house.ask("still served").await.status(), 200);
}
