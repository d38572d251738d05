//! A request for social data, read as strictly as the supplier's framework does: unknown, missing
//! and wrongly typed parameters are 422 with the place.

use serde_json::{Map, Value, json};

use super::table::Route;
use crate::record::Received;

#[derive(Debug)]
pub struct Ask {
    pub route: &'static Route,
    /// Name and plain text of each parameter.
    pub given: Vec<(String, String)>,
}

impl Ask {
    pub fn read(route: &'static Route, received: &Received) -> Result<Ask, (u16, Value)> {
        let post = received.method == "POST";
        if post != route.post {
            return Err((405, json!({"detail": "Method Not Allowed"})));
        }
        let values: Map<String, Value> = if post {
            match received.json() {
                Value::Object(body) => body,
                _ => return Err(shape("body", "field required")),
            }
        } else {
            let pairs = received.query.split('&').filter(|pair| !pair.is_empty());
            let mut values = Map::new();
            for (name, value) in pairs.filter_map(|pair| pair.split_once('=')) {
                if values.insert(decode(name), Value::from(decode(value))).is_some() {
                    return Err(shape(name, "given twice"));
                }
            }
            values
        };
        let mut given = Vec::new();
        for (name, value) in &values {
            let param = route.params.iter().find(|param| param.name == *name);
            let kind = &param.ok_or_else(|| shape(name, "extra fields not permitted"))?.kind;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let fits = match (kind.as_str(), value) {
                ("integer", Value::String(text)) => !post && text.parse::<i64>().is_ok(),
                ("integer", value) => value.is_i64(),
                ("boolean", Value::String(text)) => !post && ["true", "false"].contains(&text.as_str()),
                ("boolean", value) => value.is_boolean(),
                (_, value) => value.is_string(),
            };
            if !fits {
                return Err(shape(name, &format!("value is not a valid {kind}")));
            }
            given.push((name.clone(), text));
        }
        match route.params.iter().find(|param| param.required && !values.contains_key(&param.name)) {
            Some(param) => Err(shape(&param.name, "field required")),
            None => Ok(Ask { route, given }),
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn fingerprint(&self) -> String {
        format!("{} {:?}", self.route.path, self.given)
    }
}

fn shape(name: &str, message: &str) -> (u16, Value) {
    (422, json!({"detail": [{"loc": ["query", name], "msg": message, "type": "value_error"}]}))
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16)).unwrap_or(0);
                u8::try_from(digit() * 16 + digit()).unwrap_or(b'?')
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&out).into_owned()
}
