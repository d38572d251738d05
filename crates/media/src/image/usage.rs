//! Reports of usage of several requests that were made for one: their sum, in the provider's own
//! words. For a client the counts stand beside them that its SDK expects.

use serde_json::{Number, Value, json};
use std::borrow::Cow;

/// The longest report that is read, and the longest sum. Lists are compared entry by entry, so a
/// long one would take long.
const LONGEST: usize = 4_096;
/// Digits behind the point that a sum keeps.
const PLACES: usize = 12;

/// All reports as one. What is no number stays as the first one says it; what is no JSON or too
/// long is left out, and a sum that is too long is none.
pub fn added_usage(reports: &[String]) -> Option<String> {
    let short = reports.iter().filter(|report| report.len() <= LONGEST);
    let mut read = short.filter_map(|report| serde_json::from_str(report).ok());
    let sum = read.try_fold(Value::Null, |sum, report| Some(added(sum, report)).filter(fits))?;
    (!sum.is_null()).then(|| sum.to_string())
}

/// A report with `input_tokens` and the other counts of OpenAI's clients, which take a report
/// without them for a broken answer; as it is where it has them, or where they cannot be told.
pub(super) fn with_known_counts(report: &str) -> Cow<'_, str> {
    let Ok(usage) = serde_json::from_str::<Value>(report) else { return Cow::Borrowed(report) };
    let known = if usage["input_tokens"].is_null() { known_counts(&usage) } else { None };
    let (Value::Object(mut usage), Some(known)) = (usage, known) else { return Cow::Borrowed(report) };
    for (name, count) in known {
        usage.entry(name).or_insert(count);
    }
    Cow::Owned(Value::Object(usage).to_string())
}

/// The counts of a report of Gemini's or of Ark's.
fn known_counts(usage: &Value) -> Option<[(&'static str, Value); 4]> {
    let count = |name: &str| usage[name].as_u64();
    let (input, output, total) = match (count("totalTokenCount"), count("output_tokens"), count("total_tokens")) {
        (Some(total), ..) => {
            let made = ["candidatesTokenCount", "thoughtsTokenCount"].map(|name| count(name).unwrap_or(0));
            (count("promptTokenCount").unwrap_or(0), made[0].saturating_add(made[1]), total)
        }
        (None, Some(output), Some(total)) => (total.saturating_sub(output), output, total),
        _ => return None,
    };
    let of_pictures = |part: &Value| part["tokenCount"].as_u64().filter(|_| part["modality"] == "IMAGE");
    let parts = usage["promptTokensDetails"].as_array().into_iter().flatten().filter_map(of_pictures);
    let pictures = parts.fold(0, u64::saturating_add).min(input);
    Some([
        ("input_tokens", input.into()),
        ("input_tokens_details", json!({ "image_tokens": pictures, "text_tokens": input - pictures })),
        ("output_tokens", output.into()),
        ("total_tokens", total.into()),
    ])
}

fn fits(sum: &Value) -> bool {
    sum.to_string().len() <= LONGEST
}

fn added(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => sum(&one, &other).map_or(Value::Number(one), Value::Number),
        (Value::Object(mut sum), Value::Object(more)) => {
            for (name, value) in more {
                let before = sum.remove(&name).unwrap_or_default();
                sum.insert(name, added(before, value));
            }
            Value::Object(sum)
        }
        (Value::Array(sum), Value::Array(more)) => Value::Array(added_lists(sum, more)),
        (Value::Null, other) => other,
        (one, _) => one,
    }
}

/// Each entry is added to the first one of its kind that no other entry of its list was added to:
/// bare numbers by their places.
fn added_lists(mut sum: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    let mut free = vec![true; sum.len()];
    for value in more {
        match (0..free.len()).find(|at| free[*at] && are_alike(&sum[*at], &value)) {
            Some(at) => {
                free[at] = false;
                sum[at] = added(sum[at].take(), value);
            }
            None => sum.push(value),
        }
    }
    sum
}

/// Whether two entries of lists are of the same kind: all of them that is no number is the same.
fn are_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => true,
        (Value::Object(one), Value::Object(other)) => {
            let known = |(name, value): (&String, &Value)| one.get(name).is_some_and(|own| are_alike(own, value));
            one.len() == other.len() && other.iter().all(known)
        }
        _ => one == other,
    }
}

/// By digits: a sum of costs in binary fractions would not be what the parts come to.
fn sum(one: &Number, other: &Number) -> Option<Number> {
    let total = scaled(&one.to_string())?.checked_add(scaled(&other.to_string())?)?;
    let unit = 10_i128.pow(u32::try_from(PLACES).ok()?);
    let (whole, part) = (total.unsigned_abs() / unit.unsigned_abs(), total.unsigned_abs() % unit.unsigned_abs());
    let minus = if total < 0 { "-" } else { "" };
    let part = format!("{part:0PLACES$}");
    let text = match part.trim_end_matches('0') {
        "" => format!("{minus}{whole}"),
        part => format!("{minus}{whole}.{part}"),
    };
    serde_json::from_str(&text).ok()
}

/// A number in the smallest unit that a sum keeps.
fn scaled(text: &str) -> Option<i128> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let shift = i32::try_from(PLACES).ok()? - i32::try_from(part.len()).ok()? + exponent.parse::<i32>().ok()?;
    let number: i128 = format!("{whole}{part}").parse().ok()?;
    let by = 10_i128.checked_pow(shift.unsigned_abs())?;
    if shift < 0 { Some(number / by) } else { number.checked_mul(by) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(reports: &[Value]) -> Value {
        let reports: Vec<String> = reports.iter().map(Value::to_string).collect();
        serde_json::from_str(&added_usage(&reports).expect("a report")).expect("JSON")
    }

    #[test]
    fn numbers_are_added_wherever_they_stand() {
        let google = json!({
            "promptTokenCount": 5, "candidatesTokenCount": 1_290, "model": "m",
            "candidatesTokensDetails": [{ "modality": "IMAGE", "tokenCount": 1_290 }],
        });
        let other = json!({
            "promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "model": "m",
            "candidatesTokensDetails": [{ "modality": "TEXT", "tokenCount": 7 }],
        });
        assert_eq!(
            of(&[google.clone(), other, google]),
            json!({
                "promptTokenCount": 15, "candidatesTokenCount": 2_587, "thoughtsTokenCount": 3, "model": "m",
                "candidatesTokensDetails": [
                    { "modality": "IMAGE", "tokenCount": 2_580 }, { "modality": "TEXT", "tokenCount": 7 },
                ],
            })
        );
    }

    #[test]
    fn entries_of_a_list_are_added_one_to_one() {
        assert_eq!(of(&[json!([1, 2]), json!([3, 4])]), json!([4, 6]));
        assert_eq!(of(&[json!([1]), json!([2, 3]), json!([4, "x", 5, 6])]), json!([7, 8, "x", 6]));
        let part = |kind: &str, tokens: u64| json!({ "kind": kind, "tokens": tokens });
        assert_eq!(
            of(&[json!([part("a", 1), part("a", 2)]), json!([part("b", 7), part("a", 3), part("a", 4)])]),
            json!([part("a", 4), part("a", 6), part("b", 7)])
        );
    }

    #[test]
    fn costs_are_added_by_their_digits() {
        assert_eq!(of(&[json!({ "cost": 0.1 }), json!({ "cost": 0.2 })]).to_string(), r#"{"cost":0.3}"#);
        assert_eq!(of(&[json!({ "cost": 1e-7 }), json!({ "cost": 2 })]).to_string(), r#"{"cost":2.0000001}"#);
        assert_eq!(of(&[json!({ "n": -3 }), json!({ "n": 1.5 })]).to_string(), r#"{"n":-1.5}"#);
        assert_eq!(of(&[json!({ "n": u64::MAX }), json!({ "n": 1 })])["n"].as_f64(), Some(2_f64.powi(64)));
        // What is beyond all counting stays as it was.
        assert_eq!(of(&[json!({ "n": 7 }), json!({ "n": 1e300 })]), json!({ "n": 7 }));
    }

    #[test]
    fn what_differs_in_kind_stays_as_the_first_one_says_it() {
        assert_eq!(of(&[json!({ "a": "x", "b": [1] }), json!({ "a": 2, "b": 3 })]), json!({ "a": "x", "b": [1] }));
        assert_eq!(of(&[json!({ "a": null }), json!({ "a": 2 })]), json!({ "a": 2 }));
        assert_eq!(added_usage(&[]), None);
        assert_eq!(added_usage(&["{".into(), "{}".into()]).as_deref(), Some("{}"));
    }

    #[test]
    fn what_sdks_count_stands_beside_what_a_provider_says() {
        let known = |input: u64, pictures: u64, output: u64, total: u64| {
            json!({
                "input_tokens": input, "output_tokens": output, "total_tokens": total,
                "input_tokens_details": { "image_tokens": pictures, "text_tokens": input - pictures },
            })
        };
        let parts = json!([{ "modality": "TEXT", "tokenCount": 5 }, { "modality": "IMAGE", "tokenCount": 258 }]);
        for (report, more) in [
            (
                json!({ "promptTokenCount": 5, "candidatesTokenCount": 1_290, "totalTokenCount": 1_295 }),
                known(5, 0, 1_290, 1_295),
            ),
            (
                json!({ "promptTokenCount": 263, "thoughtsTokenCount": 7, "totalTokenCount": 270, "promptTokensDetails": parts }),
                known(263, 258, 7, 270),
            ),
            (
                json!({ "generated_images": 1, "output_tokens": 16_384, "total_tokens": 16_384 }),
                known(0, 0, 16_384, 16_384),
            ),
            // A part that is more than the whole.
            (json!({ "promptTokenCount": 1, "totalTokenCount": 1, "promptTokensDetails": parts }), known(1, 1, 0, 1)),
        ] {
            let mut all = report.as_object().expect("an object").clone();
            all.extend(more.as_object().expect("an object").clone());
            let shown: Value = serde_json::from_str(&with_known_counts(&report.to_string())).expect("JSON");
            assert_eq!(shown, Value::Object(all));
        }
        let openai = json!({ "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 });
        for report in [openai, json!({ "image_count": 1 }), json!({ "totalTokenCount": "many" }), json!([1])] {
            assert_eq!(with_known_counts(&report.to_string()), report.to_string(), "nothing can be told");
        }
    }

    #[test]
    fn what_is_too_long_is_not_read_and_not_kept() {
        let long = |letter: &str| json!({ letter.repeat(3_000): 1 }).to_string();
        assert_eq!(added_usage(&[long("x"), long("y"), "{}".into()]), None, "too long to be kept");
        let one = json!({ "tokens": 1 }).to_string();
        let list = json!({ "tokens": 1, "list": vec![1; 500_000] }).to_string();
        assert_eq!(added_usage(&[list.clone(), one.clone(), list, one]).as_deref(), Some(r#"{"tokens":2}"#));
    }
}
