//! Quotes and runs for people.

use serde_json::Value;
use tollgate_catalog::Money;

/// Where files of runs are, in links to them.
pub const FILES: &str = "/v1/workflows/files/";

fn usd(value: &Value) -> Money {
    Money::from_nano(value.as_i64().unwrap_or(0))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// What it may cost, and everything that is confirmed with it.
pub fn quote(quote: &Value) -> String {
    let mut lines = vec![format!("{}: at most {} USD", text(&quote["slug"]), usd(&quote["most_nano_usd"]))];
    for step in items(&quote["steps"]) {
        let model = step["model"].as_str().map(|model| format!(" by {model}")).unwrap_or_default();
        let (name, endpoint) = (text(&step["name"]), text(&step["endpoint"]));
        lines.push(format!("  {name}: {endpoint}{model}, at most {} USD", usd(&step["most_nano_usd"])));
        lines.extend(warnings(step).map(|warning| format!("    {warning}")));
    }
    lines.push("Privacy:".to_owned());
    for (name, value) in quote["privacy"]["sheet"].as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            lines.push(format!("  {}: {value}", name.replace('_', " ")));
        }
    }
    let named: Vec<&str> = items(&quote["confirm"]["items"]).filter_map(Value::as_str).collect();
    if !named.is_empty() {
        lines.push(format!("To be confirmed by name: {}", named.join(", ")));
    }
    if quote["executable"] == false {
        lines.push(format!("It cannot be run: {}", text(&quote["blocking_reason"])));
    }
    lines.join("\n")
}

/// What did not count of what a step asked with.
fn warnings(step: &Value) -> impl Iterator<Item = String> {
    items(&step["warnings"]).map(|one| format!("warning: `{}`: {}", text(&one["field"]), text(&one["message"])))
}

/// One line: how far each step is, and which fields did not count.
pub fn progress(run: &Value) -> String {
    let step = |step: &Value| {
        let fields: Vec<&str> = items(&step["warnings"]).map(|one| text(&one["field"])).collect();
        let unread = if fields.is_empty() { String::new() } else { format!(" (not read: {})", fields.join(" ")) };
        format!("{} {}{unread}", text(&step["name"]), text(&step["status"]))
    };
    let steps = items(&run["steps"]).map(step).collect::<Vec<_>>().join(", ");
    format!("{}, {} USD: {steps}", text(&run["status"]), usd(&run["charged_nano_usd"]))
}

/// Files of a run: step, output and link.
pub fn files(run: &Value) -> Vec<(String, String, String)> {
    let mut files = Vec::new();
    for step in items(&run["steps"]) {
        for (name, value) in step["outputs"].as_object().into_iter().flatten() {
            let link = value.as_str().filter(|link| link.starts_with("http") && link.contains(FILES));
            files.extend(link.map(|link| (text(&step["name"]).to_owned(), name.clone(), link.to_owned())));
        }
    }
    files
}

/// A run with what came out of it.
pub fn run(run: &Value) -> String {
    let mut lines = vec![format!("{} {}", text(&run["id"]), progress(run))];
    if let Some(why) = run["failure"].as_str() {
        lines.push(format!("It failed: {why}"));
    }
    if let Some(why) = run["stopped"].as_str() {
        lines.push(format!("It is stopped: {}", helps(why)));
    }
    for step in items(&run["steps"]) {
        lines.extend(warnings(step).map(|warning| format!("{} {warning}", text(&step["name"]))));
        for (name, value) in step["outputs"].as_object().into_iter().flatten() {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("{} {name}: {shown}", text(&step["name"])));
        }
    }
    lines.join("\n")
}

/// What a person can do about it.
fn helps(why: &str) -> String {
    let advice = match why {
        "out_of_money" => "top up, then `tollgate workflow resume`",
        "over_confirmed" | "price_rose" => "`tollgate workflow resume --max-cost USD` confirms more",
        "model_off_sale" => "`tollgate workflow resume` once the model is on sale",
        "charge_unknown" => "`tollgate workflow resume` looks again, `--resubmit` sends the step once more",
        "storage_full" => "`tollgate workflow resume` once there is room",
        "took_too_long" => "`tollgate workflow resume`",
        _ => return why.to_owned(),
    };
    format!("{why}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quote_shows_what_is_confirmed_with_it() {
        let shown = quote(&json!({
            "slug": "s", "most_nano_usd": 1_500_000_000, "executable": false, "blocking_reason": "it is not verified",
            "steps": [{ "name": "a", "endpoint": "/v1/x", "model": "m", "most_nano_usd": 5,
                "warnings": [{ "field": "seed", "message": "Dropped." }] }],
            "privacy": { "sheet": { "required_before_transfer": true, "training_use": "none" } },
            "confirm": { "items": ["seconds"] },
        }));
        let expected = "s: at most 1.5 USD\n  a: /v1/x by m, at most 0.000000005 USD\n    warning: `seed`: Dropped.\nPrivacy:\n  training use: none\n\
                        To be confirmed by name: seconds\nIt cannot be run: it is not verified";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_run_shows_its_steps_and_what_helps() {
        let link = "http://h/v1/workflows/files/asset_1_0_0_mp3?s=1";
        let value = json!({
            "id": "run_1", "status": "stopped", "charged_nano_usd": 7, "failure": null, "stopped": "price_rose",
            "steps": [
                { "name": "a", "status": "done", "outputs": { "audio": link, "text": "http://h/other" } },
                { "name": "b", "status": "pending", "outputs": null,
                    "warnings": [{ "field": "seed", "message": "Dropped." }, { "field": "n", "message": "No." }] },
            ],
        });
        assert_eq!(progress(&value), "stopped, 0.000000007 USD: a done, b pending (not read: seed n)");
        assert_eq!(files(&value), [("a".to_owned(), "audio".to_owned(), link.to_owned())]);
        let shown = run(&value);
        assert!(shown.contains("--max-cost USD") && shown.contains(link), "{shown}");
        assert!(shown.contains("b warning: `seed`: Dropped."), "{shown}");
    }
}
