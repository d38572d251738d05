//! What a candidate would change: prices and files, and what calls cost before and after. Calls are
//! priced by the functions that price real ones.

use super::wrong;
use crate::app::App;
use crate::call::Terms;
use crate::endpoints::quote;
use crate::quotes::{self, Shop};
use crate::refusal::Refusal;
use crate::sale::Serving;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tollgate_catalog::{Group, Model, PriceChange, PriceChangeKind};
use tollgate_store::Counters;

/// Calls that are priced at a time.
pub const MOST_CALLS: usize = 50;
/// Changes that are listed, and models that get an example by themselves.
const MOST_CHANGES: usize = 1_000;
const MOST_EXAMPLES: usize = 20;

/// What the example of a conversation uses.
const INPUT: u64 = 1_000;
const OUTPUT: u64 = 500;

/// Calls whose prices are wanted.
pub struct AskedCalls {
    calls: Vec<ExampleCall>,
    group: String,
    paid: bool,
}

struct ExampleCall {
    endpoint: String,
    body: Value,
    used: Option<Counters>,
}

impl AskedCalls {
    pub fn read(form: &mut Map<String, Value>) -> Result<AskedCalls, Refusal> {
        let calls = match form.remove("calls") {
            None => Vec::new(),
            Some(Value::Array(list)) if list.len() <= MOST_CALLS => {
                list.into_iter().map(ExampleCall::read).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(wrong("calls", &format!("a list of at most {MOST_CALLS} calls"))),
        };
        let group = match form.remove("group") {
            None => Group::DEFAULT.to_owned(),
            Some(Value::String(group)) => group,
            Some(_) => return Err(wrong("group", "the name of a group")),
        };
        let paid = match form.remove("paid") {
            None => false,
            Some(Value::Bool(paid)) => paid,
            Some(_) => return Err(wrong("paid", "`true` or `false`")),
        };
        Ok(AskedCalls { calls, group, paid })
    }
}

impl ExampleCall {
    fn read(value: Value) -> Result<ExampleCall, Refusal> {
        let Value::Object(mut fields) = value else { return Err(wrong("calls", "a list of objects")) };
        let (endpoint, body) = (fields.remove("endpoint"), fields.remove("body"));
        let (Some(Value::String(endpoint)), Some(body @ Value::Object(_))) = (endpoint, body) else {
            return Err(wrong("calls", "a list of calls with `endpoint` and `body`"));
        };
        let used = match fields.remove("use") {
            None => None,
            Some(Value::Object(stated)) => {
                let mut used = Counters::default();
                for (name, value) in &stated {
                    if !quotes::state(&mut used, name, &value.to_string())? {
                        return Err(wrong("calls", &format!("wrong: there is no counter `{name}`")));
                    }
                }
                Some(used)
            }
            Some(_) => return Err(wrong("calls", "wrong: `use` is an object of counters")),
        };
        match fields.keys().next() {
            Some(name) => Err(super::unknown(name)),
            None => Ok(ExampleCall { endpoint, body, used }),
        }
    }

    /// A call that a model of this kind usually gets; none for kinds whose price needs a file or a
    /// session.
    fn of(model: &Model) -> Option<ExampleCall> {
        let name = &model.name;
        let said = json!([{ "role": "user", "content": "hello" }]);
        let tokens = Some(Counters { input: INPUT, output: OUTPUT, ..Counters::default() });
        let all = [
            (
                "openai",
                "/v1/chat/completions",
                json!({ "model": name, "messages": said, "max_tokens": OUTPUT }),
                tokens,
            ),
            ("anthropic", "/v1/messages", json!({ "model": name, "messages": said, "max_tokens": OUTPUT }), tokens),
            (
                "openai-response",
                "/v1/responses",
                json!({ "model": name, "input": "hello", "max_output_tokens": OUTPUT }),
                tokens,
            ),
            ("embeddings", "/v1/embeddings", json!({ "model": name, "input": "hello" }), None),
            ("image-generation", "/v1/images/generations", json!({ "model": name, "prompt": "a lamp" }), None),
            (
                "audio-speech",
                "/v1/audio/speech",
                json!({ "model": name, "input": "One hundred letters.".repeat(5) }),
                None,
            ),
            ("openai-video", "/v1/videos", json!({ "model": name, "prompt": "a lamp" }), None),
            ("music-generation", "/v1/music/generations", json!({ "model": name, "prompt": "a lamp" }), None),
        ];
        let mut all = all.into_iter().filter(|(kind, ..)| model.supports(kind));
        all.next().map(|(_, endpoint, body, used)| ExampleCall { endpoint: endpoint.to_owned(), body, used })
    }

    /// What it costs, or why it has no price.
    fn price(&self, app: &App, serving: &Serving, asked: &AskedCalls) -> Value {
        let priced = || -> Result<Value, String> {
            let shop =
                Shop { serving, caller: None, picture_links: app.images.has_links(), realtime: &app.settings.realtime };
            let body = self.body.to_string().into();
            let request = quote::read(&shop, &self.endpoint, body).map_err(|refusal| refusal.message)?;
            let missing = || format!("There is no model `{}`.", request.model());
            let model = serving.catalog.model(request.model()).ok_or_else(missing)?;
            if !model.supports(request.endpoint_type()) {
                return Err(format!("`{}` is not offered there.", model.name));
            }
            if !serving.catalog.groups.contains_key(&asked.group) || !model.enable_groups.contains(&asked.group) {
                return Err(format!("`{}` is not sold to the group `{}`.", model.name, asked.group));
            }
            let stream_hold = app.settings.limits.stream_hold;
            let terms = Terms { at: app.world.now_ms(), group: &asked.group, topped_up: asked.paid, stream_hold };
            let quoted = quotes::quote_reply(&self.endpoint, terms, model, &*request, self.used);
            let (_, reply) = quoted.map_err(|refusal| refusal.message)?;
            let sum = &reply.calculation;
            Ok(
                json!({ "kind": reply.kind, "total_nano_usd": sum.total_nano_usd, "total_usd": sum.total_usd, "tier": sum.tier.as_ref().map(|tier| &tier.name) }),
            )
        };
        priced().unwrap_or_else(|why| json!({ "total_nano_usd": null, "why": why }))
    }

    fn example(&self, app: &App, before: &Serving, after: &Serving, asked: &AskedCalls) -> Value {
        json!({
            "endpoint": self.endpoint,
            "model": self.body["model"],
            "body": self.body,
            "before": self.price(app, before, asked),
            "after": self.price(app, after, asked),
        })
    }
}

/// What changes, by price and by file.
pub fn diff_record(app: &App, before: &Serving, after: &Serving) -> Value {
    let now = app.world.now_ms();
    let changes = tollgate_catalog::diff(&before.catalog, &after.catalog);
    let files = after.text.files_against(&before.text);
    json!({
        "object": "catalog.diff",
        "same": changes.is_empty(),
        "against_hash": before.text.hash,
        "against_version": before.text.version,
        "hash": after.text.hash,
        "old_pricing_version": before.catalog.pricing_version(now),
        "new_pricing_version": after.catalog.pricing_version(now),
        "files": files.into_iter().map(|(name, what)| json!({ "name": name, "what": what })).collect::<Vec<_>>(),
        "changes": listed(&changes),
        "count": changes.len(),
    })
}

/// Each change as data and in words.
pub fn listed(changes: &[PriceChange]) -> Vec<Value> {
    let one = |change: &PriceChange| {
        let mut shown = json!(change);
        shown["words"] = json!(change.to_string());
        shown
    };
    changes.iter().take(MOST_CHANGES).map(one).collect()
}

/// What changes for customers: models, prices up and down, and calls before and after.
pub fn preview(app: &App, before: &Serving, after: &Serving, mut asked: AskedCalls) -> Result<Value, Refusal> {
    let changes = tollgate_catalog::diff(&before.catalog, &after.catalog);
    let of_kind = |kind: PriceChangeKind| -> Vec<&str> {
        changes.iter().filter(|change| change.what == kind).filter_map(|change| change.model.as_deref()).collect()
    };
    if asked.calls.is_empty() {
        let changed: BTreeSet<&str> = changes.iter().filter_map(|change| change.model.as_deref()).collect();
        let model = |name: &&str| after.catalog.model(name).or_else(|| before.catalog.model(name));
        let models = changed.iter().filter_map(model);
        asked.calls = models.filter_map(|model| ExampleCall::of(model)).take(MOST_EXAMPLES).collect();
    }
    let examples: Vec<Value> = asked.calls.iter().map(|call| call.example(app, before, after, &asked)).collect();
    let moved = |up: bool| -> BTreeSet<&str> {
        let which = changes.iter().filter(|change| change.rises() == Some(up));
        which.filter_map(|change| change.model.as_deref().or(change.group.as_deref())).collect()
    };
    Ok(json!({
        "object": "catalog.preview",
        "against_hash": before.text.hash,
        "hash": after.text.hash,
        "new_models": of_kind(PriceChangeKind::ModelAdded),
        "gone_models": of_kind(PriceChangeKind::ModelRemoved),
        "dearer": moved(true),
        "cheaper": moved(false),
        "changes": listed(&changes),
        "count": changes.len(),
        "examples": examples,
    }))
}
