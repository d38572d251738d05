//! Embeddings: a vector for each text, the same for the same text.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::LazyLock;

use super::read::{Fields, count, known, text, texts};
use super::{Asked, Form};
use crate::ask::words;
use crate::refusal::Refusal;
use crate::scenario::Choice;

/// Numbers of a vector where neither request nor marker says how many.
const DIMENSIONS: u64 = 8;

/// Texts as they were given.
enum Given {
    Texts(Vec<String>),
    Tokens(Vec<Vec<u64>>),
}

impl Given {
    fn tokens(&self) -> u64 {
        match self {
            Given::Texts(list) => list.iter().map(|one| words(one).max(1)).sum(),
            Given::Tokens(list) => list.iter().map(|one| one.len() as u64).sum(),
        }
    }

    fn last(&self) -> String {
        match self {
            Given::Texts(list) => list.last().cloned().unwrap_or_default(),
            Given::Tokens(_) => String::new(),
        }
    }

    fn vectors(&self, dimensions: u64) -> Vec<Vec<f32>> {
        match self {
            Given::Texts(list) => list.iter().map(|one| vector(one.as_bytes(), dimensions)).collect(),
            Given::Tokens(list) => list.iter().map(|one| vector(format!("{one:?}").as_bytes(), dimensions)).collect(),
        }
    }
}

pub(super) fn read(form: Form, model: &str, body: &Value) -> Result<Asked, Refusal> {
    let fields = body.as_object().cloned().unwrap_or_default();
    if model.is_empty() {
        return Err(Refusal::missing("model"));
    }
    let (given, dimensions, base64) = match form {
        Form::OpenAi => {
            known(&fields, "model input dimensions encoding_format user")?;
            (input(&fields, 2_048)?, count(&fields, "dimensions")?, is_base64(&fields)?)
        }
        Form::DashScope | Form::Jina => {
            known(&fields, "model input dimensions encoding_format user task late_chunking")?;
            let most = if form == Form::DashScope { 10 } else { 2_048 };
            let given = match &fields["input"] {
                Value::String(one) => vec![one.clone()],
                list => texts(list, "input", most)?,
            };
            if is_base64(&fields)? {
                return Err(Refusal::bad("encoding_format", "encoding_format must be 'float'"));
            }
            (Given::Texts(given), count(&fields, "dimensions")?, false)
        }
        Form::Gemini { batch } => gemini(&fields, model, batch)?,
        Form::Vertex => vertex(&fields)?,
        _ => cohere(&fields)?,
    };
    let marked = Choice::of(model, &given.last())?;
    let dimensions = dimensions.unwrap_or(marked.number("size").unwrap_or(DIMENSIONS));
    let base64 = base64 && marked.text("kind") != Some("floats");
    let reply = reply(form, model, &given, dimensions, base64);
    Ok(Asked { model: model.to_string(), last: given.last(), tokens: given.tokens(), reply })
}

fn is_base64(fields: &Fields) -> Result<bool, Refusal> {
    match fields.get("encoding_format").and_then(Value::as_str) {
        None | Some("float") => Ok(false),
        Some("base64") => Ok(true),
        Some(other) => Err(Refusal::bad("encoding_format", &format!("Invalid value: '{other}'."))),
    }
}

fn input(fields: &Fields, most: usize) -> Result<Given, Refusal> {
    let numbers = |list: &Value| -> Option<Vec<u64>> { list.as_array()?.iter().map(Value::as_u64).collect() };
    let value = fields.get("input").ok_or_else(|| Refusal::missing("input"))?;
    match value {
        Value::String(_) => Ok(Given::Texts(vec![text(value, "input")?])),
        Value::Array(list) if list.first().is_some_and(Value::is_number) => {
            let ids = numbers(value).ok_or_else(|| Refusal::bad("input", "expected a list of integers"))?;
            Ok(Given::Tokens(vec![ids]))
        }
        Value::Array(list) if list.first().is_some_and(Value::is_array) => {
            let ids: Option<Vec<Vec<u64>>> = list.iter().map(numbers).collect();
            Ok(Given::Tokens(ids.ok_or_else(|| Refusal::bad("input", "expected lists of integers"))?))
        }
        _ => Ok(Given::Texts(texts(value, "input", most)?)),
    }
}

fn gemini(fields: &Fields, model: &str, batch: bool) -> Result<(Given, Option<u64>, bool), Refusal> {
    let one = |fields: &Fields, place: &str| {
        known(fields, "model content taskType title outputDimensionality")?;
        let path = format!("models/{model}");
        if batch && fields.get("model").and_then(Value::as_str) != Some(path.as_str()) {
            return Err(Refusal::bad(place, "model: must be the same as in the path"));
        }
        let parts = fields["content"]["parts"].as_array().cloned().unwrap_or_default();
        let said: Vec<String> =
            parts.iter().map(|part| text(&part["text"], &format!("{place}.parts"))).collect::<Result<_, _>>()?;
        if said.is_empty() {
            return Err(Refusal::bad(place, "content contains no parts"));
        }
        Ok((said.concat(), count(fields, "outputDimensionality")?))
    };
    if !batch {
        let (text, dimensions) = one(fields, "content")?;
        return Ok((Given::Texts(vec![text]), dimensions, false));
    }
    known(fields, "requests")?;
    let requests = fields.get("requests").and_then(Value::as_array).cloned().unwrap_or_default();
    if requests.is_empty() || requests.len() > 100 {
        return Err(Refusal::bad("requests", "at most 100 requests can be in one batch"));
    }
    let read: Vec<(String, Option<u64>)> = requests
        .iter()
        .enumerate()
        .map(|(at, request)| one(request.as_object().unwrap_or(&Fields::new()), &format!("requests[{at}]")))
        .collect::<Result<_, _>>()?;
    let dimensions = read.first().and_then(|(_, dimensions)| *dimensions);
    Ok((Given::Texts(read.into_iter().map(|(text, _)| text).collect()), dimensions, false))
}

/// One text a request, as the newer models have it.
fn vertex(fields: &Fields) -> Result<(Given, Option<u64>, bool), Refusal> {
    known(fields, "instances parameters")?;
    let instances = fields.get("instances").and_then(Value::as_array).cloned().unwrap_or_default();
    let [Value::Object(one)] = instances.as_slice() else {
        return Err(Refusal::bad("instances", "1 instance(s) is allowed per prediction"));
    };
    known(one, "content task_type title")?;
    let parameters = fields.get("parameters").and_then(Value::as_object).cloned().unwrap_or_default();
    known(&parameters, "outputDimensionality autoTruncate")?;
    let said = text(&one["content"], "instances[0].content")?;
    Ok((Given::Texts(vec![said]), count(&parameters, "outputDimensionality")?, false))
}

fn cohere(fields: &Fields) -> Result<(Given, Option<u64>, bool), Refusal> {
    known(fields, "model texts input_type embedding_types output_dimension truncate")?;
    let purpose = fields.get("input_type").and_then(Value::as_str).unwrap_or_default();
    if !["search_document", "search_query", "classification", "clustering"].contains(&purpose) {
        return Err(Refusal::bad("input_type", "input_type is required for this model"));
    }
    if fields.get("embedding_types") != Some(&json!(["float"])) {
        return Err(Refusal::bad("embedding_types", "embedding_types is required"));
    }
    let list = texts(fields.get("texts").unwrap_or(&Value::Null), "texts", 96)?;
    Ok((Given::Texts(list), count(fields, "output_dimension")?, false))
}

fn reply(form: Form, model: &str, given: &Given, dimensions: u64, base64: bool) -> Value {
    let (vectors, tokens) = (given.vectors(dimensions), given.tokens());
    let list = |one: &Vec<f32>| -> Value {
        if !base64 {
            return one.iter().map(|number| (f64::from(*number) * 1_000.0).round() / 1_000.0).collect();
        }
        let packed: Vec<u8> = one.iter().flat_map(|number| number.to_le_bytes()).collect();
        Value::from(BASE64_STANDARD.encode(packed))
    };
    match form {
        Form::OpenAi | Form::DashScope | Form::Jina => {
            let entry =
                |(at, one): (usize, &Vec<f32>)| json!({"object": "embedding", "index": at, "embedding": list(one)});
            let data: Vec<Value> = vectors.iter().enumerate().map(entry).collect();
            let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
            json!({"object": "list", "data": data, "model": model, "usage": usage})
        }
        Form::Gemini { batch: false } => json!({"embedding": {"values": vectors.first().map(list)}}),
        Form::Gemini { batch: true } => {
            let all: Vec<Value> = vectors.iter().map(|one| json!({"values": list(one)})).collect();
            json!({"embeddings": all})
        }
        Form::Vertex => {
            let statistics = json!({"truncated": false, "token_count": tokens});
            let one = |one: &Vec<f32>| json!({"embeddings": {"values": list(one), "statistics": statistics}});
            json!({"predictions": vectors.iter().map(one).collect::<Vec<Value>>()})
        }
        _ => {
            let all: Vec<Value> = vectors.iter().map(list).collect();
            let meta = json!({"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}});
            json!({"id": "sim", "embeddings": {"float": all}, "texts": [], "meta": meta})
        }
    }
}

/// Between -1 and 1, in thousandths.
fn vector(text: &[u8], dimensions: u64) -> Vec<f32> {
    let seed = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let number = |at: u64| {
        let mixed = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
        (f32::from(u16::try_from(mixed % 2_001).unwrap_or(0)) - 1_000.0) / 1_000.0
    };
    (0..dimensions).map(number).collect()
}

static QUICK: LazyLock<Bytes> = LazyLock::new(|| {
    let given = Given::Texts(vec!["the gate opens for every coin".to_string()]);
    reply(Form::OpenAi, "sim-fast", &given, 64, false).to_string().into()
});

/// A reply for load: built once, neither recorded nor counted.
pub(super) fn quick() -> Bytes {
    QUICK.clone()
}
