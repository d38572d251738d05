//! Values of any shape, as JSON: what a field holds is somebody else's to check.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::node::FormValue;
use super::{Form, FormNode};

impl Form<'_> {
    /// A field as JSON; nothing when it is left out. Dates are texts.
    pub fn opt_json(&mut self, key: &str) -> Option<Value> {
        self.read(key, json_of).flatten()
    }
}

fn json_of(value: &FormValue) -> Result<Value, String> {
    Ok(match value {
        FormValue::Text(text) | FormValue::Loose(text) | FormValue::Time(text) => Value::String(text.clone()),
        FormValue::Bool(flag) => Value::Bool(*flag),
        FormValue::Int(int) => {
            let whole = i64::try_from(*int).map_err(|_| format!("{int} is a number beyond 64 bits"))?;
            Value::Number(Number::from(whole))
        }
        // Digits become a number where JSON has such a number: TOML also writes `inf` and `nan`.
        FormValue::Decimal(text) => serde_json::from_str(text.replace('_', "").trim_start_matches('+'))
            .map_err(|_| format!("{text} is no number of JSON"))?,
        FormValue::List(items) => {
            Value::Array(items.iter().map(|item| json_of(&item.value)).collect::<Result<_, _>>()?)
        }
        FormValue::Table(fields) => Value::Object(object_of(fields)?),
        FormValue::Taken => Value::Null,
    })
}

fn object_of(fields: &BTreeMap<String, FormNode>) -> Result<Map<String, Value>, String> {
    fields.iter().map(|(name, node)| Ok((name.clone(), json_of(&node.value)?))).collect()
}

#[cfg(test)]
mod tests {
    use crate::form::{Form, Mistakes};
    use serde_json::json;

    #[test]
    fn any_value_is_json() {
        let mistakes = Mistakes::default();
        let text = "a = { b = [1, -2.50, 'x'], c = true, d = 2026-11-16 }\n[[e]]\nf = +1_0.5\n";
        let mut form = Form::parse("a.toml", text, &mistakes);
        assert_eq!(form.opt_json("a"), Some(json!({ "b": [1, -2.5, "x"], "c": true, "d": "2026-11-16" })));
        assert_eq!(form.opt_json("e"), Some(json!([{ "f": 10.5 }])));
        assert_eq!(form.opt_json("g"), None);
        form.finish();
        assert!(mistakes.is_empty());
    }

    #[test]
    fn what_json_has_no_number_for_is_a_mistake() {
        for written in ["inf", "[nan]", "99999999999999999999"] {
            let mistakes = Mistakes::default();
            let mut form = Form::parse("a.toml", &format!("a = {written}"), &mistakes);
            assert_eq!(form.opt_json("a"), None);
            form.finish();
            assert_eq!(mistakes.into_list().len(), 1, "{written}");
        }
    }
}
