//! Records made from a number, and every way to break one at a single place, derived from the
//! schema itself.

use serde_json::{Map, Value, json};

/// Numbers that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }

    fn some<'a>(&mut self, words: &[&'a str], least: usize) -> Vec<&'a str> {
        let kept: Vec<&str> = words.iter().copied().filter(|_| self.chance()).collect();
        if kept.len() < least { words[..least].to_vec() } else { kept }
    }

    fn text(&mut self) -> String {
        let words = ["a", "clip", "é", "\"quoted\"", "line\nbreak", "{{inputs.x}}", "日本", "0", "\u{1F600}"];
        (0..1 + self.below(5)).map(|_| self.pick(&words)).collect::<Vec<_>>().join(" ")
    }

    fn hex(&mut self, digits: u64) -> String {
        (0..digits).map(|_| self.pick(&["0", "1", "9", "a", "c", "f"])).collect()
    }

    fn note(&mut self) -> Value {
        if self.chance() { Value::Null } else { json!(self.text()) }
    }

    fn input(&mut self, id: &str) -> Value {
        let kind = self.pick(&["asset", "string", "enum", "boolean", "integer"]);
        let required = self.chance();
        let (mut allowed, default) = match kind {
            "asset" => (vec![], Value::Null),
            "string" => (vec![], json!(self.text())),
            "enum" => (vec![json!("5"), json!("10"), json!(15)], json!("10")),
            "boolean" => (vec![], json!(self.chance())),
            _ => (vec![json!(1), json!(-2), json!(300)], json!(300)),
        };
        if kind == "integer" && self.chance() {
            allowed.clear();
        }
        let default = if required || self.chance() { Value::Null } else { default };
        json!({
            "id": id, "type": kind, "required": required, "description": self.text(),
            "evidence_status": self.pick(&["semantic_stable", "runtime_contract_required"]), "default": default,
            "allowed_values": allowed, "cost_sensitive": self.chance(),
        })
    }

    fn binding(&mut self, status: &str, inputs: &[Value], slug: &str) -> Value {
        let mut map = Map::new();
        let mut unimplemented = Vec::new();
        for input in inputs {
            let id = input["id"].as_str().unwrap();
            match self.below(3) {
                0 if input["required"] == true => unimplemented.push(json!(id)),
                _ if input["required"] == true || self.chance() => {
                    map.insert(id.to_owned(), json!(format!("inputs.{id}")));
                }
                _ => {}
            }
        }
        let (length, commit) = (7 + self.below(34), self.chance());
        let mut binding = json!({
            "status": status, "known_unimplemented_fields": unimplemented, "request_field_map": map,
            "model_ids": self.some(&["demo", "m/1", "clip-2"], 0),
            "dash_commit_sha": if commit { json!(self.hex(length)) } else { Value::Null },
            "endpoint": self.pick(&["/v1/chat/completions", "/", "/x y"]),
            "semantic_digest_sha256": if self.chance() { json!(self.hex(64)) } else { Value::Null },
        });
        if self.chance() {
            binding["endpoint"] = Value::Null;
        }
        for name in NOTES {
            binding[*name] = self.note();
        }
        binding["fixture_path"] = json!(format!("workflows/{slug}/fixture.json"));
        binding
    }

    /// A record that breaks neither the schema nor a rule.
    pub fn record(&mut self) -> Value {
        let slug = format!("{}-{}", self.pick(&["clip", "a", "2d", "x9-y"]), self.below(1_000_000));
        let inputs: Vec<Value> = (0..2 + self.below(5)).map(|at| self.input(&format!("in_{at}"))).collect();
        let stage = self.below(3) as usize;
        let contract = ["draft_unverified", "contract_locked_not_executable", "verified"][stage];
        let status = ["unavailable", "contract_only_not_executable", "verified"][stage];
        let evidence = ["absent", "contract_only", "verified"][stage];
        let enabled = self.chance();
        let href = self.pick(&["/workflows/x", "https://example.com/next?a=b#c", "/"]);
        let mut record = json!({
            "schema_version": "gateway.workflow.v1", "contract_status": contract,
            "workflow_id": format!("wf-{slug}"), "slug": slug, "title": self.text(), "summary": self.text(),
            "last_modified": format!("20{:02}-{:02}-{:02}", self.below(100), 1 + self.below(12), 1 + self.below(28)),
            "discovery": {
                "indexable": self.chance(), "sitemap": self.chance(), "locales": self.some(&["en", "de-at", "zh-cn"], 1),
            },
            "executor_query": {
                "input_modalities": self.some(&["text", "image", "", "audio"], 1),
                "output_modalities": self.some(&["video", "text"], 1),
                "required_capabilities": self.some(&["image", "video", "text-multimodal"], 1),
                "selection_policy": self.pick(&["cheapest", "first"]),
            },
            "runtime_binding": self.binding(status, &inputs, &slug),
            "privacy_preflight": {
                "required_before_transfer": true, "processing_region": self.text(), "retention": "",
                "training_use": self.text(), "deletion": self.text(), "commercial_use": "", "watermark": self.text(),
            },
            "recovery_policy": {
                "resume_same_task_first": true, "automatic_fallback": false, "stop_when_charge_state_unknown": true,
                "confirmation_required_for": self.some(&["cost", "privacy", "in_0", "resubmit", "model_change"], 1),
            },
            "acceptance_checks": self.some(&["It plays.", "It is long enough.", "日本"], 1),
            "continue_action": {
                "enabled": enabled, "href": if enabled { json!(href) } else { Value::Null }, "reason": self.text(),
            },
            "provenance": {
                "requirement_id": format!("CA-{:03}", self.below(1000)), "source_kind": self.text(), "runtime_evidence": evidence,
            },
        });
        record["inputs"] = json!(inputs);
        for (name, value) in
            [("$schema", "/api/workflows/schema"), ("canonical_url", "x"), ("generated_by", "scripts/gen_workflows.py")]
        {
            if self.chance() {
                record[name] = json!(value);
            }
        }
        record
    }
}

const NOTES: &[&str] = &[
    "contract_version",
    "openapi_path",
    "operation_id",
    "operation_status",
    "workflow_version",
    "package_status",
    "capability_profile_version",
    "capability_evidence",
    "price_source",
    "availability_source",
    "last_verified_at",
    "blocking_reason",
];

/// A record that is broken at one place, and where.
pub struct Violated {
    pub record: Value,
    pub path: String,
    pub how: &'static str,
}

/// Every single violation of a record that the schema's structure offers.
pub fn violations(schema: &Value, record: &Value) -> Vec<Violated> {
    let mut all = Vec::new();
    let mut put = |at: &[Step], how, path: String, value: Option<Value>| {
        let mut broken = record.clone();
        change(&mut broken, at, value);
        all.push(Violated { record: broken, path, how });
    };
    walk(schema, schema, record, &mut Vec::new(), "", &mut put);
    all
}

#[derive(Clone)]
enum Step {
    Name(String),
    Index(usize),
}

/// Puts a value at a place, or takes away what is there.
fn change(value: &mut Value, at: &[Step], new: Option<Value>) {
    match (at, new) {
        ([], Some(new)) => *value = new,
        ([Step::Name(name)], None) => {
            value.as_object_mut().unwrap().remove(name);
        }
        ([Step::Name(name), rest @ ..], new) => {
            if rest.is_empty() {
                value[name] = new.unwrap();
            } else {
                change(&mut value[name], rest, new);
            }
        }
        ([Step::Index(index), rest @ ..], new) => change(&mut value[*index], rest, new),
        ([], None) => unreachable!("the whole is not taken away"),
    }
}

type Put<'p> = dyn FnMut(&[Step], &'static str, String, Option<Value>) + 'p;

fn walk(root: &Value, schema: &Value, value: &Value, at: &mut Vec<Step>, path: &str, put: &mut Put<'_>) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let inner = &root["$defs"][name.strip_prefix("#/$defs/").unwrap()];
        return walk(root, inner, value, at, path, put);
    }
    if let Some(types) = schema.get("type") {
        let types: Vec<&str> = types
            .as_str()
            .map_or_else(|| types.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect(), |t| vec![t]);
        let samples = [
            ("string", json!("x")),
            ("number", json!(1.5)),
            ("boolean", json!(true)),
            ("null", json!(null)),
            ("array", json!([])),
            ("object", json!({})),
        ];
        for (_, sample) in samples.iter().filter(|(kind, _)| !types.contains(kind)) {
            put(at, "type", path.to_owned(), Some(sample.clone()));
        }
    }
    if let Some(only) = schema.get("const") {
        let other = if only.is_boolean() { json!(!only.as_bool().unwrap()) } else { json!("another") };
        put(at, "const", path.to_owned(), Some(other));
        put(at, "const", path.to_owned(), Some(json!(1)));
        put(at, "const", path.to_owned(), Some(json!(null)));
    }
    if schema.get("enum").is_some() {
        for other in [json!("another"), json!(""), json!(null), json!(0), json!("VERIFIED")] {
            put(at, "enum", path.to_owned(), Some(other));
        }
    }
    if schema.get("pattern").is_some() {
        for other in ["", "A b", "é!", "-x-", "CA-1", "0-0-"] {
            put(at, "pattern", path.to_owned(), Some(json!(other)));
        }
    }
    if schema.get("minLength").is_some() {
        put(at, "minLength", path.to_owned(), Some(json!("")));
    }
    if let Value::Array(items) = value {
        lists(schema, items, at, path, put);
        if let Some(inner) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                at.push(Step::Index(index));
                walk(root, inner, item, at, &format!("{path}[{index}]"), put);
                at.pop();
            }
        }
    }
    if let Value::Object(members) = value {
        objects(root, schema, members, at, path, put);
    }
}

fn lists(schema: &Value, items: &[Value], at: &[Step], path: &str, put: &mut Put<'_>) {
    if let Some(least) = schema.get("minItems").and_then(Value::as_u64) {
        put(at, "minItems", path.to_owned(), Some(json!(items[..least as usize - 1])));
    }
    if schema.get("uniqueItems") == Some(&json!(true)) && !items.is_empty() {
        let twice: Vec<&Value> = items.iter().chain(items.last()).collect();
        put(at, "uniqueItems", format!("{path}[{}]", items.len()), Some(json!(twice)));
    }
}

fn objects(
    root: &Value,
    schema: &Value,
    members: &Map<String, Value>,
    at: &mut Vec<Step>,
    path: &str,
    put: &mut Put<'_>,
) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap();
        at.push(Step::Name(name.to_owned()));
        put(at, "required", join(name), None);
        at.pop();
    }
    if schema.get("additionalProperties") == Some(&json!(false)) {
        at.push(Step::Name("surplus".to_owned()));
        put(at, "additionalProperties", join("surplus"), Some(json!(null)));
        at.pop();
    }
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(value) = members.get(name) {
            at.push(Step::Name(name.clone()));
            walk(root, inner, value, at, &join(name), put);
            at.pop();
        }
    }
}
