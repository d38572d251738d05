//! Video tasks in a simulation: clients order and read them over HTTP, two of the gateway's own
//! pollers look after them, and a maker who lives outside takes, loses, finishes and forgets them,
//! as each order's plan says.

use super::actors::{ask, pause};
use super::draw::Draw;
use super::oracle::Rows;
use super::outside::{Customer, Outside, lock};
use super::provider::Script;
use axum::Router;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tollgate_gateway::app::App;
use tollgate_store::{Task, TaskId, TaskPage, TaskState};

/// Every film is ordered with so many seconds; this is what a second costs, and what is held for
/// all of them.
const SECONDS: i64 = 5;
const SECOND: i64 = 10_000;
const HELD: i64 = SECONDS * SECOND;

/// What is known outside of one order.
#[derive(Clone, Debug)]
pub struct Ordered {
    pub customer: usize,
    /// Sent with a key: twice at once, and again after a crash.
    pub idem: bool,
    making: Making,
    /// How often the maker took it.
    created: u32,
    /// How often its customer agreed to order it once more.
    pub again: u32,
    /// The name that the client got for it, and how it ended.
    named: Option<TaskId>,
    ended: Option<String>,
}

/// What the maker does with an order.
#[derive(Clone, Debug)]
struct Making {
    taking: Taking,
    think_ms: u64,
    /// Looks before it is decided.
    looks: u64,
    verdict: Verdict,
    /// What it bills in the end.
    seconds: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Fine,
    /// Taken, and the connection breaks before it says so.
    Lost,
    /// Taken, and it never says so.
    Silent,
    /// The connection breaks before it has read the order.
    Unread,
    Refused,
    Broken,
    /// The first of the two makers has no time; the second takes it.
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Made,
    Failed,
    Forgotten,
}

impl Making {
    fn of(draw: &mut Draw) -> Making {
        use Taking::{Broken, Busy, Fine, Lost, Refused, Silent, Unread};
        Making {
            taking: draw.one(&[Fine, Fine, Fine, Fine, Fine, Lost, Silent, Unread, Refused, Broken, Busy]),
            think_ms: draw.one(&[0, 5, 300, 2_500]),
            looks: draw.below(5),
            verdict: draw.one(&[Verdict::Made, Verdict::Made, Verdict::Made, Verdict::Failed, Verdict::Forgotten]),
            seconds: i64::try_from(draw.between(1, 5)).expect("few"),
        }
    }

    fn costs(&self) -> i64 {
        if self.verdict == Verdict::Made { self.seconds * SECOND } else { 0 }
    }
}

/// A new order of this life.
pub fn order(outside: &Outside) -> usize {
    let (customer, idem) = {
        let mut draw = outside.draw();
        (usize::from(draw.percent(30)), draw.percent(40))
    };
    ordered(outside, customer, idem)
}

/// An order that a run of this customer makes.
pub fn order_of(outside: &Outside, customer: usize) -> usize {
    ordered(outside, customer, false)
}

fn ordered(outside: &Outside, customer: usize, idem: bool) -> usize {
    let making = Making::of(&mut outside.draw());
    let ordered = Ordered { customer, idem, making, created: 0, again: 0, named: None, ended: None };
    let mut orders = lock(&outside.orders);
    orders.push(ordered);
    orders.len() - 1
}

/// Orders of earlier lives whose client has a key and got no answer.
pub fn open_orders(outside: &Outside) -> Vec<usize> {
    let orders = lock(&outside.orders);
    (0..orders.len()).filter(|slot| orders[*slot].idem && orders[*slot].named.is_none()).collect()
}

/// Sends an order, and reads what becomes of it now and then.
pub async fn client(outside: Arc<Outside>, router: Router, slot: usize) {
    let wait = outside.draw().below(3_000);
    pause(wait).await;
    let ordered = lock(&outside.orders)[slot].clone();
    let secret = &outside.customers[ordered.customer].secret;
    let body = json!({ "model": "film", "prompt": format!("film {slot}"), "seconds": SECONDS.to_string() });
    for _ in 0..if ordered.idem { 4 } else { 1 } {
        let key = ordered.idem.then(|| format!("film-{slot}"));
        let (status, reply) = ask(&router, Method::POST, "/v1/videos", secret, Some(&body), key).await;
        outside.note(&format!("answered {status} to an order, film"), slot as u64);
        let Some(id) = reply["id"].as_str().filter(|_| status == 200) else {
            if status != 409 && status != 503 {
                return;
            }
            let wait = outside.draw().between(20, 900);
            pause(wait).await;
            continue;
        };
        let id: TaskId = id.parse().expect("a task id");
        let named = lock(&outside.orders)[slot].named.replace(id);
        assert!(named.is_none_or(|named| named == id), "one key and two tasks: {named:?} and {id}");
        return read(&outside, &router, slot, secret, id).await;
    }
}

async fn read(outside: &Outside, router: &Router, slot: usize, secret: &str, id: TaskId) {
    let looks = outside.draw().below(4);
    for _ in 0..looks {
        let wait = outside.draw().one(&[10, 700, 6_000]);
        pause(wait).await;
        let before = lock(&outside.orders)[slot].ended.clone();
        let (status, task) = ask(router, Method::GET, &format!("/v1/videos/{id}"), secret, None, None).await;
        if status != 200 {
            assert_eq!(status, 503, "what was ordered can be read: {task}");
            continue;
        }
        let state = task["status"].as_str().expect("a state").to_owned();
        let order = &mut lock(&outside.orders)[slot];
        let has_ended = state == "completed" || state == "failed";
        // Two read it at once: who asked before the other learned of its end may still get
        // that it goes on.
        let is_late = before.is_none() && !has_ended;
        match &order.ended {
            Some(ended) => assert!(ended == &state || is_late, "an end was taken back: {order:?} is {state}"),
            None if has_ended => order.ended = Some(state),
            None => {}
        }
    }
}

/// The maker, at its two addresses, and another like it, to whom the second route leads.
pub async fn maker(outside: Arc<Outside>, request: Request<Incoming>) -> io::Result<Response<Script>> {
    let path = request.uri().path().to_owned();
    let second = request.headers()["host"] == "second";
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let slot = |name: &str| name.rsplit(['-', ' ']).next().and_then(|tag| tag.parse::<usize>().ok()).expect("a tag");
    if let Some(task) = path.strip_prefix("/api/v1/tasks/") {
        if let Some(task) = task.strip_suffix("/cancel") {
            outside.note("cancelled at the maker", slot(task) as u64);
            return said(200, &json!({ "request_id": "r" }));
        }
        return looked_at(&outside, slot(task)).await;
    }
    let body: Value = serde_json::from_slice(&body)?;
    taken(&outside, slot(body["input"]["prompt"].as_str().unwrap_or_default()), second).await
}

async fn taken(outside: &Outside, slot: usize, second: bool) -> io::Result<Response<Script>> {
    let making = lock(&outside.orders)[slot].making.clone();
    assert!(!second || making.taking == Taking::Busy, "offered to another maker, though not refused: {making:?}");
    match making.taking {
        Taking::Busy if !second => return said(429, &json!({ "code": "Throttling", "message": "later" })),
        Taking::Unread => return Err(io::ErrorKind::ConnectionReset.into()),
        Taking::Refused => return said(400, &json!({ "code": "InvalidParameter", "message": "no" })),
        Taking::Broken => return said(500, &json!({ "code": "InternalError", "message": "broken" })),
        Taking::Fine | Taking::Lost | Taking::Silent | Taking::Busy => {}
    }
    outside.note("the maker takes", slot as u64);
    lock(&outside.orders)[slot].created += 1;
    pause(making.think_ms).await;
    match making.taking {
        Taking::Lost => Err(io::ErrorKind::ConnectionReset.into()),
        Taking::Silent => std::future::pending().await,
        _ => said(200, &json!({ "output": { "task_id": format!("up-{slot}"), "task_status": "PENDING" } })),
    }
}

async fn looked_at(outside: &Outside, slot: usize) -> io::Result<Response<Script>> {
    let (trouble, think) = {
        let mut draw = outside.draw();
        (draw.below(100), draw.one(&[0, 0, 20, 900]))
    };
    pause(think).await;
    match trouble {
        0..8 => return said(500, &json!({ "code": "InternalError", "message": "broken" })),
        8..12 => return Err(io::ErrorKind::ConnectionReset.into()),
        12..16 => std::future::pending().await,
        _ => {}
    }
    let making = {
        let making = &mut lock(&outside.orders)[slot].making;
        let now = making.clone();
        making.looks = making.looks.saturating_sub(1);
        now
    };
    let word = match (making.looks, making.verdict) {
        (2.., _) => "PENDING",
        (1, _) => "RUNNING",
        (_, Verdict::Failed) => "FAILED",
        (_, Verdict::Forgotten) => "UNKNOWN",
        (_, Verdict::Made) => {
            let output = json!({ "task_status": "SUCCEEDED", "video_url": "https://maker.example/film.mp4" });
            return said(200, &json!({ "output": output, "usage": { "duration": making.seconds } }));
        }
    };
    said(200, &json!({ "output": { "task_status": word, "code": "x", "message": "x" } }))
}

fn said(status: u16, body: &Value) -> io::Result<Response<Script>> {
    let reply = Response::builder().status(status).header("content-type", "application/json");
    Ok(reply.body(Script::of([body.to_string()])).expect("a reply"))
}

/// What goes on, for people.
pub async fn open(outside: &Outside, app: &App) -> Vec<Task> {
    let mut open = Vec::new();
    for customer in &outside.customers {
        open.extend(all_of(app, customer).await.into_iter().filter(|task| !task.state.is_final()));
    }
    open
}

async fn all_of(app: &App, customer: &Customer) -> Vec<Task> {
    let page = TaskPage { after: None, limit: 10_000, oldest_first: true };
    app.store.tasks(customer.account, page).await.expect("tasks can be read")
}

/// What holds of every task, and how much is still held for those that go on, by customer.
pub async fn check(outside: &Outside, app: &App, rows: &Rows, when: &str) -> Vec<i64> {
    let mut held = vec![0; outside.customers.len()];
    let orders = lock(&outside.orders).clone();
    for (number, customer) in outside.customers.iter().enumerate() {
        let tasks = all_of(app, customer).await;
        for task in &tasks {
            if !task.state.is_final() {
                held[number] += HELD;
            }
            let row = rows.get(&task.id.call().to_string());
            assert_eq!(row.is_some(), task.state.is_final(), "{when}: an end has its row, {task:?} has {row:?}");
            // Whose it is shows the name the maker gave it, or the one the client got.
            let upstream = |slot: usize| task.upstream_id == Some(format!("up-{slot}"));
            let order = (0..orders.len()).find(|slot| orders[*slot].named == Some(task.id) || upstream(*slot));
            let charge = row.map_or(0, |row| row.charge.nano());
            check_one(order.map(|slot| &orders[slot]), task, charge, when);
        }
        // Before the maker hears of an order its task is safe, whatever happens then.
        let mine = || orders.iter().filter(|order| order.customer == number);
        let created = mine().filter(|order| order.created > 0).count();
        assert!(tasks.len() >= created, "{when}: {created} were taken and {} are known", tasks.len());
        for order in mine() {
            assert!(order.created <= 1 + order.again, "{when}: the maker was asked twice: {order:?}");
            if let Some(id) = order.named {
                assert!(tasks.iter().any(|task| task.id == id), "{when}: a task is gone: {order:?}");
            }
        }
    }
    held
}

/// What an order has cost.
pub async fn cost_of(outside: &Outside, app: &App, customer: usize, slot: usize, rows: &Rows) -> i64 {
    let tasks = all_of(app, &outside.customers[customer]).await;
    let own = tasks.iter().filter(|task| task.upstream_id == Some(format!("up-{slot}")));
    own.filter_map(|task| rows.get(&task.id.call().to_string())).map(|row| row.charge.nano()).sum()
}

fn check_one(order: Option<&Ordered>, task: &Task, charge: i64, when: &str) {
    let Some(order) = order else {
        assert_eq!((charge, task.state == TaskState::Completed), (0, false), "{when}: nobody made {task:?}");
        return;
    };
    let shown = match task.state {
        TaskState::Completed => "completed",
        state if state.is_final() => "failed",
        _ => "open",
    };
    assert!(order.ended.as_deref().is_none_or(|ended| ended == shown), "{when}: {order:?} is {shown}");
    let failure = task.failure.as_ref().map(|failure| failure.code.as_str());
    match (task.state, order.making.verdict) {
        (TaskState::Completed, verdict) => {
            assert_eq!((verdict, charge), (Verdict::Made, order.making.costs()), "{when}: {order:?}");
        }
        // Given up when nobody could find out for too long; the customer does not pay.
        (TaskState::Failed, Verdict::Made | Verdict::Forgotten) => {
            assert_eq!((failure, charge), (Some("task_unknown"), 0), "{when}: {order:?} {task:?}");
        }
        _ => assert_eq!(charge, 0, "{when}: {order:?} {task:?}"),
    }
}
