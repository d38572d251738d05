//! Quote = charge, on ten thousand generated calls over real sockets: every model of the demo,
//! streamed and not, with every kind of usage the simulator can report. The bound quoted before the
//! call is its hold and is never passed; the use of the call, stated to the quote afterwards, comes
//! to its charge, to the nano-dollar.

use crate::generated::{Seed, calls, end, lanes, rows};
use crate::house::{House, Plan, call_id};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_store::{CallId, Ending, UsageRow};

/// The demo, and a model whose tiers change within a few words.
const CATALOG: &str = concat!(
    include_str!("../../../../../catalog/demo.toml"),
    r#"
[model."short-tiers"]
context_window = 1000
max_output_tokens = 600
price = { input = 2_000_001, output = 8_000_003, cache_read = 200_007 }
route = [{ provider = "sim", upstream_model = "sim-cached" }]
[[model."short-tiers".tier]]
name = "longer"
when = [{ dim = "context_len", context_len_gt = 20 }]
price = { input = 4_000_009, output = 7_000_001, cache_read = 900_001 }
[[model."short-tiers".tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 10 }]
multiplier = "133/100"
"#
);
/// In the office hours of the demo's dear tier.
const PEAK: i64 = 1_770_627_600_000;

const MODELS: [&str; 11] = [
    "tollgate-demo",
    "demo-tiers",
    "short-tiers",
    "demo-tools",
    "demo-reasoning",
    "demo-cached",
    "demo-per-call",
    "demo-topup-only",
    "demo-fallback",
    "demo-no-usage",
    "demo-cut",
];

impl Seed {
    fn body(&mut self) -> Value {
        let model = MODELS[usize::try_from(self.below(MODELS.len() as u64)).expect("small")];
        let words = "coin ".repeat(usize::try_from(self.below(40)).expect("small"));
        let tokens = self.below(12);
        let prompt = 1 + self.below(30);
        let mut marker = format!("tokens={tokens} prompt={prompt}");
        match model {
            "demo-cached" | "short-tiers" => {
                marker += &format!(" cached={} written={}", self.below(20), self.below(20))
            }
            "demo-reasoning" => marker += &format!(" reasoning={}", self.below(9)),
            "demo-cut" => marker = "tokens=9 after=3".to_owned(),
            _ => {}
        }
        let mut body = json!({
            "model": model,
            "messages": [{ "role": "user", "content": format!("{words}[[sim:{marker}]]") }],
        });
        if self.below(2) == 0 {
            body["stream"] = json!(true);
        }
        if self.below(2) == 0 {
            body["max_tokens"] = json!(12 + self.below(500));
        }
        if self.below(5) == 0 {
            body["n"] = json!(1 + self.below(3));
        }
        match self.below(4) {
            0 => body["service_tier"] = json!("priority"),
            1 => body["service_tier"] = json!("flex"),
            _ => {}
        }
        body
    }
}

struct Made {
    body: Value,
    /// The bound as quoted before the call; every fourth call asks for it.
    bound: Option<i64>,
    call: CallId,
    charged: Option<String>,
}

async fn quote(house: &House, query: &str, body: &Value) -> Value {
    let url = house.url(&format!("/v1/quote?endpoint=/v1/chat/completions{query}"));
    let reply = house.http.post(url).bearer_auth(&house.key).json(body).send().await.expect("a reply");
    let status = reply.status();
    let quote: Value = reply.json().await.expect("JSON");
    assert_eq!(status, 200, "{quote}");
    quote
}

async fn make(house: &House, body: Value, quoted: bool) -> Made {
    let mut bound = None;
    if quoted {
        let quote = quote(house, "", &body).await;
        bound = quote["hold_nano_usd"].as_i64();
        // A stream without a limit begins with less than it can come to in the end, if anything
        // says how much that is.
        match quote["most_nano_usd"].as_i64() {
            Some(most) => assert!(quote["kind"] == "upper_bound" && Some(most) >= bound, "{quote}"),
            None => assert!(quote["kind"] == "open" && body["max_tokens"].is_null(), "{quote}"),
        }
    }
    let reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    let header = reply.headers().get("x-tollgate-charge-usd").and_then(|value| value.to_str().ok());
    let charged = header.map(str::to_owned);
    let _ = reply.bytes().await;
    Made { body, bound, call, charged }
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_quotes_hold() {
    let count = calls();
    let plan =
        Plan { usd: "1000000", catalog: CATALOG, now: Some(PEAK), sim: "estimated_percent = 0", ..Plan::default() };
    let house = Arc::new(House::with(plan).await);
    let mut seed = Seed(3);
    let bodies: Arc<Vec<Value>> = Arc::new((0..count).map(|_| seed.body()).collect());
    let made = lanes(count, {
        let (house, bodies) = (house.clone(), bodies.clone());
        move |at| {
            let (house, bodies) = (house.clone(), bodies.clone());
            async move { make(&house, bodies[at].clone(), at % 4 == 0).await }
        }
    })
    .await;
    let rows = Arc::new(rows(&house).await);
    assert_eq!((made.len(), rows.len()), (count, count));
    let made = Arc::new(made);
    let outcomes = lanes(count, {
        let (house, made, rows) = (house.clone(), made.clone(), rows.clone());
        move |at| {
            let (house, made, rows) = (house.clone(), made.clone(), rows.clone());
            async move { judge(&house, &made[at], &rows[&made[at].call]).await }
        }
    })
    .await;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for outcome in outcomes {
        *seen.entry(outcome).or_default() += 1;
    }
    println!("chaos: generated calls of chat: {count}, of them {seen:?}; the quote is the charge in each");
    for expected in ["answered", "upstream_fault", "free", "priority", "peak", "long", "longer", "estimated"] {
        assert!(seen.get(expected).is_some_and(|seen| *seen > count / 200), "{expected} was hardly seen: {seen:?}");
    }
    drop((made, rows));
    end(house).await;
}

/// Holds one call to its quotes; says what kind of call it was.
async fn judge(house: &House, made: &Made, row: &UsageRow) -> String {
    let Made { body, bound, charged, .. } = made;
    let what = || format!("{} {:?} {}", row.call, row.counters, body["model"]);
    let (hold, charge) = (row.hold.nano(), row.charge.nano());
    assert!(charge <= hold && row.write_off.is_zero(), "no more than quoted: {}", what());
    assert!(bound.is_none_or(|bound| bound == hold), "the hold is what was quoted: {}", what());
    if let Some(charged) = charged {
        assert_eq!(charged, &row.charge.to_string(), "the header says what was charged: {}", what());
    }
    let counters = serde_json::to_value(row.counters).expect("JSON");
    let stated = counters.as_object().expect("an object").iter().filter(|(_, value)| value.as_u64() > Some(0));
    let query: String = stated.map(|(name, value)| format!("&{name}={value}")).collect();
    let exact = quote(house, &query, body).await;
    assert_eq!(exact["hold_nano_usd"], hold, "the hold is what is quoted: {}", what());
    if charge == 0 {
        return "free".to_owned();
    }
    assert_eq!(exact["total_nano_usd"], charge, "the exact quote is the charge: {} {exact}", what());
    assert_eq!(exact["tier"]["name"].as_str(), row.tier.as_deref(), "{}", what());
    match (&row.tier, row.estimated, row.ending) {
        (Some(tier), ..) => tier.clone(),
        (None, true, Ending::Answered) => "estimated".to_owned(),
        (None, _, ending) => ending.name().to_owned(),
    }
}
