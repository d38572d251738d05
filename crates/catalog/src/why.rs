//! Why a tier applied: each of its conditions with the fact of the call that met it. Explained from
//! the frozen price, so a quote says it before the call and the usage log says the same years
//! later.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::Price;

impl Price {
    /// The conditions of the tier, each with a `fact`. Empty for base prices.
    pub fn why(&self, at_ms: i64, context_len: u64) -> Vec<Value> {
        let explained = |condition: &Value| {
            let mut explained = condition.clone();
            explained["fact"] = fact(condition, at_ms, context_len);
            explained
        };
        self.when.iter().map(explained).collect()
    }
}

fn fact(condition: &Value, at_ms: i64, context_len: u64) -> Value {
    match condition["dim"].as_str() {
        Some("context_len") => json!(context_len),
        // It applied, so the parameter had this value.
        Some("request_attr") => condition["equals"].clone(),
        Some("wall_clock") => local_time(condition["timezone"].as_str().unwrap_or("UTC"), at_ms),
        _ => Value::Null,
    }
}

/// Weekday, date and time as the clocks of that zone showed them.
fn local_time(zone: &str, at_ms: i64) -> Value {
    let (Ok(at), Ok(zone)) = (Timestamp::from_millisecond(at_ms), TimeZone::get(zone)) else { return Value::Null };
    json!(at.to_zoned(zone).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string())
}
