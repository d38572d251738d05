//! Strangers and accounts without money: sockets that say nothing against a gateway with 1,024
//! descriptors, and large bodies that nobody will pay for. Whoever pays is served all the while.

use crate::experiment::{Experiment, long};
use crate::house::{House, Plan, chat, text};
use bytes::Bytes;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const DESCRIPTORS: u64 = 1_024;

/// Customers, each on a connection of its own; how many were answered.
async fn customers(house: &House, number: usize) -> usize {
    let mut answered = 0;
    while answered < number {
        let calls: JoinSet<_> = (0..10)
            .map(|_| {
                let request = house.post(0, &chat("plain", "[[sim:tokens=2]]")).build().expect("a request");
                async move { reqwest::Client::new().execute(request).await.expect("a reply").status() }
            })
            .collect();
        for status in calls.join_all().await {
            assert_eq!(status, 200);
            answered += 1;
        }
    }
    answered
}

/// A number of the metrics page.
async fn metric(house: &House, name: &str) -> u64 {
    let url = format!("{}/metrics", house.gates[0].url());
    let page = house.http.get(url).send().await.expect("a reply").text().await.expect("text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |number| number.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_that_say_nothing() {
    let mut experiment = Experiment::new("sockets that say nothing, 1,024 descriptors");
    let plan = Plan { descriptors: Some(DESCRIPTORS), usd: "1000", patience: ["30s", "30s"], ..Plan::default() };
    let house = House::new(plan).await;
    let (crowd, calls) = if long() { (6_000, 400) } else { (600, 40) };
    let mut silent = Vec::new();
    for number in 0..crowd {
        let mut socket = TcpStream::connect(("127.0.0.1", house.gates[0].port)).await.expect("connected");
        let part =
            [&b""[..], b"PRI * HTTP/2.0\r\n\r", b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"][number % 3];
        // The gateway may have given its place to another one already.
        let _ = socket.write_all(part).await;
        silent.push(socket);
        if number % (crowd / 4) == crowd / 4 - 1 {
            experiment.count("calls answered meanwhile", customers(&house, calls / 4).await);
        }
    }
    let open = metric(&house, "tollgate_connections").await;
    assert!(open < DESCRIPTORS / 2, "{open} connections are open");
    let evicted = metric(&house, "tollgate_connections_closed_total{reason=\"evicted\"}").await;
    let late = metric(&house, "tollgate_connections_closed_total{reason=\"silent\"}").await;
    assert!(evicted + late >= crowd as u64 - DESCRIPTORS / 2, "{evicted} gave way, {late} were late");
    assert_eq!(metric(&house, "tollgate_connections_closed_total{reason=\"full\"}").await, 0);
    assert!(!house.gates[0].logged().contains("accept failed"), "it has run out of descriptors");
    house.quiet().await;
    house.verified().await;
    experiment.count("silent sockets", silent.len());
    experiment.count("gave way", evicted + late);
    experiment.end();
}

/// The most memory that a process ever had, in bytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

const BODY: usize = 31 << 20;
const AT_ONCE: usize = 40;

/// Sends the same large body many times at once; the statuses, 0 for a connection that was closed
/// on the way.
async fn sent(house: &House, key: &str, path: &str) -> Vec<u16> {
    let body = Bytes::from(format!("{{\"model\":\"none\",\"x\":\"{}\"}}", "x".repeat(BODY)));
    let url = format!("{}{path}", house.gates[0].url());
    let send = |_| {
        let request = house.http.post(&url).bearer_auth(key).header("content-type", "application/json");
        let request = request.body(body.clone()).build().expect("a request");
        async move { reqwest::Client::new().execute(request).await.map_or(0, |reply| reply.status().as_u16()) }
    };
    (0..AT_ONCE).map(send).collect::<JoinSet<_>>().join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_of_accounts_without_money() {
    let mut experiment = Experiment::new("40 bodies of 31 MiB at once");
    let plan = Plan { limits: "bodies_bytes = \"64MiB\"", usd: "1000", patience: ["30s", "30s"], ..Plan::default() };
    let house = Arc::new(House::new(plan).await);
    let poor = text(&house.cli(&["account", "create", "poor"]).await["account_id"]);
    let key = text(&house.cli(&["key", "create", &poor]).await["secret"]);
    let process = house.gates[0].process.as_ref().expect("running").id();
    customers(&house, 10).await;
    let before = peak(process);
    while experiment.more() {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/videos", "/v1/conversations"] {
            let serving = customers(&house, 10);
            let (seen, answered) = tokio::join!(sent(&house, &key, path), serving);
            assert!(seen.iter().all(|status| [0, 402].contains(status)), "{path}: {seen:?}");
            experiment.count("bodies without money", seen.len());
            experiment.count("calls answered meanwhile", answered);
        }
        let grown = peak(process) - before;
        assert!(grown < 100 << 20, "{} MiB more", grown >> 20);
    }
    // With money they are read, within the budget: the others wait, and are asked to come back.
    let (seen, answered) = tokio::join!(sent(&house, &house.key, "/v1/chat/completions"), customers(&house, 10));
    assert!(seen.iter().all(|status| [0, 400, 404, 408, 429, 503].contains(status)), "{seen:?}");
    let grown = peak(process) - before;
    assert!(grown < 300 << 20, "{} MiB more", grown >> 20);
    experiment.count("bodies with money", seen.len());
    experiment.count("calls answered meanwhile", answered);
    experiment.count("MiB more memory at most", grown >> 20);
    house.quiet().await;
    house.verified().await;
    experiment.end();
}
