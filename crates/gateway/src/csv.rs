//! Lines of CSV, as RFC 4180 has them, that a spreadsheet opens without calculating anything.

use serde_json::Value;

/// What a cell begins with that a spreadsheet takes for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// One line, with its end. Objects and lists stand as their JSON, `null` as nothing.
pub fn csv_line<'a>(cells: impl IntoIterator<Item = &'a Value>) -> String {
    let cells: Vec<String> = cells.into_iter().map(csv_cell).collect();
    cells.join(",") + "\r\n"
}

/// A value as it stands in a line. Text that begins as a formula does gets an apostrophe before it;
/// numbers are ours and stay numbers.
pub fn csv_cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => return value.to_string(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_in_a_cell_is_a_formula() {
        for (value, cell) in [
            (json!("plain"), "plain"),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"hi\""), "\"say \"\"hi\"\"\""),
            (json!("two\nlines"), "\"two\nlines\""),
            (json!("=HYPERLINK(\"http://x\",\"y\")"), "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            (json!("+1"), "'+1"),
            (json!("-1"), "'-1"),
            (json!("@cmd"), "'@cmd"),
            (json!("\t=1"), "'\t=1"),
            (json!("\r=1"), "\"'\r=1\""),
            (json!(-5), "-5"),
            (json!(true), "true"),
            (Value::Null, ""),
            (json!(["a"]), "\"[\"\"a\"\"]\""),
        ] {
            assert_eq!(csv_cell(&value), cell);
        }
        assert_eq!(csv_line([&json!("a"), &Value::Null, &json!(1)]), "a,,1\r\n");
    }
}
