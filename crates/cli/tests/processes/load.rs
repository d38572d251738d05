//! Mixed load: conversations, streams, tools, videos and social data; provider errors, hangs,
//! clients that leave, and clients that ask again with their Idempotency-Key until they are
//! answered. Each call carries a tag, and what its client saw of every try is recorded.

use crate::house::{House, text};
use crate::kinds::{Kind, MIX, Manner};
use crate::process::HANG;
use crate::seen::{Record, Seen, read, tally};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub struct Load {
    client: Arc<Client>,
    workers: JoinSet<()>,
}

/// What a worker needs; the processes belong to the test.
struct Client {
    gates: Vec<String>,
    key: String,
    http: reqwest::Client,
    next: AtomicUsize,
    records: Mutex<Vec<Record>>,
    over: AtomicBool,
    given_up: AtomicBool,
}

impl Load {
    pub fn start(house: &House, workers: usize) -> Load {
        let client = Arc::new(Client {
            gates: house.gates.iter().map(crate::house::Gate::url).collect(),
            key: house.key.clone(),
            http: house.http.clone(),
            next: AtomicUsize::new(0),
            records: Mutex::default(),
            over: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        });
        let mut set: JoinSet<()> = (0..workers).map(|_| work(client.clone())).collect();
        set.spawn(watch(client.clone()));
        Load { client, workers: set }
    }

    pub fn saw(&self, enough: impl Fn(&[Record]) -> bool) -> bool {
        enough(&self.client.records())
    }

    /// Waits until enough was seen since `after` records; how many there are now.
    pub async fn until(&self, after: usize, enough: impl Fn(&[Record]) -> bool) -> usize {
        let began = Instant::now();
        loop {
            {
                let records = self.client.records();
                if enough(&records[after..]) {
                    return records.len();
                }
                assert!(began.elapsed() < HANG, "the load was too light: {:?}", tally(&records[after..]));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends where nobody is there to answer any more: who goes on asking gives up.
    pub async fn abandon(self) -> Vec<Record> {
        self.client.given_up.store(true, Ordering::Relaxed);
        self.stop().await
    }

    /// Lets running calls end and returns everything that was seen.
    pub async fn stop(self) -> Vec<Record> {
        self.client.over.store(true, Ordering::Relaxed);
        self.workers.join_all().await;
        std::mem::take(&mut *self.client.records())
    }
}

impl Client {
    fn records(&self) -> std::sync::MutexGuard<'_, Vec<Record>> {
        self.records.lock().expect("nobody panics with it")
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// One try, as its client sees it.
    async fn ask(&self, gate: usize, kind: Kind, tag: &str) -> Seen {
        let mut request = kind.request(&self.http, &self.gates[gate], tag).bearer_auth(&self.key);
        if kind.persists() {
            request = request.header("idempotency-key", tag);
        }
        let (wait, leave_after) = match kind.manner() {
            Manner::LeavesIn(time) => (time, None),
            Manner::LeavesAfter(pieces) => (HANG, Some(pieces)),
            Manner::Once | Manner::Persists => (HANG, None),
        };
        let seen = match tokio::time::timeout(wait, request.send()).await {
            Ok(Ok(reply)) => read(reply, leave_after).await,
            Ok(Err(_)) => Seen::NOTHING,
            Err(_) => Seen::Left { call: String::new(), words: 0 },
        };
        self.records().push(Record { tag: tag.to_owned(), kind, seen: seen.clone() });
        seen
    }

    /// The same request again and again until it is answered, which it is in the end; then once
    /// more, and the answer is the same.
    async fn persist(&self, gate: usize, kind: Kind, tag: &str) {
        let began = Instant::now();
        let mut first = None;
        for attempt in 0.. {
            let seen = self.ask((gate + attempt) % self.gates.len(), kind, tag).await;
            if !seen.is_unfinished(kind) {
                match &first {
                    None => first = Some(seen),
                    Some(first) => return same(kind, first, &seen),
                }
            } else if self.given_up.load(Ordering::Relaxed) {
                return;
            } else {
                // It may be met by one kill after the other as long as there are any.
                assert!(began.elapsed() < HANG * 2, "{tag} asks and asks and gets no answer: {seen:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What the second asking brings: the first answer again, or word that it was a stream and was
/// charged.
fn same(kind: Kind, first: &Seen, again: &Seen) {
    if first.is_unknown() {
        assert!(again.is_unknown(), "{kind:?} was begun and lost, and asked for again: {again:?}");
        return;
    }
    let (Seen::Answered { call, .. } | Seen::Spent { call }) = first else {
        panic!("no answer to {kind:?}: {first:?}")
    };
    match again {
        Seen::Answered { call: second, replayed: true, .. } if kind != Kind::KeyedStream => assert_eq!(call, second),
        Seen::Spent { call: second } if kind == Kind::KeyedStream => assert_eq!(call, second),
        other => panic!("{kind:?} was {first:?}, and asked for again: {other:?}"),
    }
}

async fn work(client: Arc<Client>) {
    while !client.is_over() {
        let number = client.next.fetch_add(1, Ordering::Relaxed);
        let kind = MIX[number % MIX.len()];
        let tag = format!("tag{number}");
        let gate = number / MIX.len() % client.gates.len();
        let mut pause = 1;
        if kind.persists() {
            client.persist(gate, kind, &tag).await;
        } else if matches!(client.ask(gate, kind, &tag).await.outcome(), "lost" | "unavailable") {
            pause = 20;
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// Looks at the newest videos all the while, at every gateway: what has ended once has ended for
/// good.
async fn watch(client: Arc<Client>) {
    let mut ended: HashMap<String, String> = HashMap::new();
    while !client.is_over() {
        for gate in &client.gates {
            let asked = client.http.get(format!("{gate}/v1/videos?limit=100")).bearer_auth(&client.key).send().await;
            let Ok(reply) = asked else { continue };
            let page: Value = reply.json().await.unwrap_or_default();
            for task in page["data"].as_array().into_iter().flatten() {
                let (id, state) = (text(&task["id"]), text(&task["status"]));
                if let Some(before) = ended.get(&id) {
                    assert_eq!(*before, state, "{id} had ended: {task}");
                } else if ["completed", "failed"].contains(&state.as_str()) {
                    ended.insert(id, state);
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
