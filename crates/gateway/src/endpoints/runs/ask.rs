//! What a step asks: the path and the body that its templates come to, and the same as a quote and
//! as a request.

use crate::app::App;
use crate::endpoints::row::{Access, Row};
use crate::endpoints::{picture_file, table, transcriptions};
use crate::refusal::Refusal;
use crate::who::caller::{Caller, StepCaller};
use crate::work::files::Missing;
use crate::work::run_files::RunFileName;
use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderValue, Method, header};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_store::AccountId;
use tollgate_wire::error::Code;
use tollgate_workflows::{InputKind, RenderFault, RunOutputs, RunSteps, WorkflowRecord};

/// A file that is written into a body is no larger.
const INLINE_BYTES: u64 = 4 << 20;
/// The length that a recording is quoted for which another step makes, in seconds.
const UNKNOWN_SECONDS: u64 = 3_600;

/// What a step asks.
pub struct StepAsk {
    pub method: Method,
    /// With values in its parts.
    pub path: String,
    pub body: Map<String, Value>,
    /// The endpoint type of the catalog that it serves.
    pub serves: Option<&'static str>,
    /// It takes a form with a file.
    pub form: bool,
}

/// The paid endpoint at this path of a package.
fn row(endpoint: &str) -> Option<&'static Row> {
    table::rows().iter().find(|row| row.path == endpoint && row.access == Access::Paid)
}

/// What a step of a run asks, with what the steps before gave.
pub fn ask(
    steps: &RunSteps,
    at: usize,
    inputs: &BTreeMap<String, Value>,
    outputs: &RunOutputs,
) -> Result<StepAsk, Refusal> {
    let step = &steps.steps[at].step;
    let unknown = || {
        let text = format!("The step {:?} asks an endpoint that is not sold.", step.name);
        Refusal::new(Code::WorkflowNotExecutable, text)
    };
    let row = row(&step.endpoint).ok_or_else(unknown)?;
    let (values, body) = steps.rendered(at, inputs, outputs).map_err(|fault| unrendered(&step.name, &fault))?;
    let mut path = step.endpoint.clone();
    for (name, value) in &values {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        path = path.replace(&format!("{{{name}}}"), &encoded(&text));
    }
    let body = match body {
        Value::Object(body) => body,
        _ => Map::new(),
    };
    let form = [transcriptions::TRANSCRIPTIONS, transcriptions::TRANSLATIONS].contains(&row.path);
    Ok(StepAsk { method: row.method.clone(), path, body, serves: row.serves, form })
}

fn unrendered(step: &str, fault: &RenderFault) -> Refusal {
    let text = match fault {
        RenderFault::Absent(name) => format!("The step {step:?} needs {name}, which is not there."),
        RenderFault::NotText(name) => format!("The step {step:?} writes {name} into a text, and it is not one."),
        RenderFault::TooLarge => format!("What the step {step:?} is asked with is too large."),
    };
    Refusal::new(Code::InvalidRequest, text)
}

/// A text as a part of a path or of a query.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The body by which a step is quoted: files are stood for by their facts.
pub fn quoted_body(asked: &StepAsk, model: Option<&str>) -> Result<Value, Refusal> {
    let mut body = asked.body.clone();
    if let Some(model) = model {
        body.insert("model".to_owned(), Value::from(model));
    }
    if asked.form {
        let seconds = match body.remove("file").as_ref().and_then(Value::as_str) {
            Some(name) => match RunFileName::read(name) {
                Some(file) => file.millis.ok_or_else(|| unplayable("file"))?.div_ceil(1_000).max(1),
                None if name.starts_with("https://") => return Err(upload_it()),
                None => UNKNOWN_SECONDS,
            },
            None => UNKNOWN_SECONDS,
        };
        body.insert("seconds".to_owned(), Value::from(seconds));
    }
    let mut body = Value::Object(body);
    replace(&mut body, &mut |text| RunFileName::read(text).map(|_| super::plan::DOT.to_owned()));
    Ok(body)
}

fn unplayable(field: &str) -> Refusal {
    Refusal::about(Code::InvalidParameter, field, "The file cannot be played: it has no sound that can be measured.")
}

fn upload_it() -> Refusal {
    let text = "A recording is named by its id: /v1/workflows/assets stores an upload, or what a link leads to.";
    Refusal::about(Code::InvalidParameter, "inputs", text)
}

/// Puts other texts in the place of some.
fn replace(value: &mut Value, other: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(other) = other(text) {
                *text = other;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| replace(inner, other)),
        Value::Object(members) => members.values_mut().for_each(|inner| replace(inner, other)),
        _ => {}
    }
}

/// The request of a step, for our own router.
pub async fn request(
    app: &App,
    caller: &Arc<Caller>,
    asked: &StepAsk,
    model: Option<&str>,
    (key, host): (&str, Option<&str>),
) -> Result<Request, Refusal> {
    let account = caller.account.id;
    let mut body = asked.body.clone();
    if let Some(model) = model {
        body.insert("model".to_owned(), Value::from(model));
    }
    let mut uri = asked.path.clone();
    let (content_type, body) = if asked.method == Method::GET {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), encoded);
        let query: Vec<String> =
            body.iter().map(|(name, value)| format!("{}={}", encoded(name), text(value))).collect();
        uri = format!("{uri}?{}", query.join("&"));
        (None, Body::empty())
    } else if asked.form {
        let (boundary, body) = form(app, account, body, key).await?;
        (Some(format!("multipart/form-data; boundary={boundary}")), body)
    } else {
        let body = inlined(app, account, Value::Object(body)).await?;
        (Some("application/json".to_owned()), Body::from(body.to_string()))
    };
    let mut request = Request::builder().method(asked.method.clone()).uri(uri).header("idempotency-key", key);
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    if let Some(host) = host.and_then(|host| HeaderValue::try_from(host).ok()) {
        request = request.header(header::HOST, host);
    }
    let mut request = request
        .body(body)
        .map_err(|_| Refusal::new(Code::InvalidRequest, "What the step is asked with makes no request."))?;
    request.extensions_mut().insert(StepCaller(caller.clone()));
    Ok(request)
}

/// Files of the account's own are written into the body; pictures of ours too, because a provider
/// may not reach us.
async fn inlined(app: &App, account: AccountId, mut body: Value) -> Result<Value, Refusal> {
    let mut named = Vec::new();
    let pictures = picture_file::FILES;
    replace(&mut body, &mut |text| {
        let picture = text.split_once(pictures).filter(|_| text.starts_with("http"));
        if RunFileName::read(text).is_some() || picture.is_some() {
            named.push(text.to_owned());
        }
        None
    });
    named.dedup();
    for name in named {
        let whole = match RunFileName::read(&name) {
            Some(_) => Some(own_file(app, account, &name).await?),
            None => picture(app, &name).await?,
        };
        let Some((mime, bytes)) = whole else { continue };
        let written = format!("data:{mime};base64,{}", BASE64_STANDARD.encode(bytes));
        replace(&mut body, &mut |text| (text == name).then(|| written.clone()));
    }
    Ok(body)
}

async fn own_file(app: &App, account: AccountId, name: &str) -> Result<(&'static str, Bytes), Refusal> {
    let read = RunFileName::read(name).filter(|read| read.belongs_to(account)).ok_or_else(|| no_file(name))?;
    let run_files = app.run_files.as_ref().ok_or_else(|| no_file(name))?;
    let file = run_files.get(name, None).await.map_err(|why| missing(name, why))?;
    if file.length > INLINE_BYTES {
        return Err(too_large(name));
    }
    let whole: Vec<Bytes> = file.pieces.try_collect().await.map_err(|_| no_file(name))?;
    Ok((read.mime, whole.concat().into()))
}

/// A picture that was handed over by a link of ours. What the link is signed for is looked at as
/// everywhere.
async fn picture(app: &App, link: &str) -> Result<Option<(&'static str, Bytes)>, Refusal> {
    let Some((_, rest)) = link.split_once(picture_file::FILES) else { return Ok(None) };
    let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
    let Some(store) = app.images.store.as_ref() else { return Ok(None) };
    let now = app.world.now_ms().div_euclid(1000);
    if crate::work::image::store::check(&app.secrets, name, query, now).is_err() {
        return Ok(None);
    }
    let (file, kind) = store.get(name, None).await.map_err(|why| missing(name, why))?;
    if file.length > INLINE_BYTES {
        return Err(too_large(name));
    }
    let whole: Vec<Bytes> = file.pieces.try_collect().await.map_err(|_| no_file(name))?;
    Ok(Some((kind.mime(), whole.concat().into())))
}

/// A form with the step's file, which passes piece by piece.
async fn form(
    app: &App,
    account: AccountId,
    mut fields: Map<String, Value>,
    key: &str,
) -> Result<(String, Body), Refusal> {
    let name = fields.remove("file").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let read = RunFileName::read(&name).filter(|read| read.belongs_to(account)).ok_or_else(|| no_file(&name))?;
    let run_files = app.run_files.as_ref().ok_or_else(|| no_file(&name))?;
    let file = run_files.get(&name, None).await.map_err(|why| missing(&name, why))?;
    // Texts of customers cannot end a part: what they could write is not drawn from them.
    let boundary = format!("run-{}", app.secrets.sign("form of a step", key).chars().take(40).collect::<String>());
    let mut head = String::new();
    for (field, value) in &fields {
        let values = match value {
            Value::Array(items) => items.iter().collect(),
            one => vec![one],
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = encoded(field).replace("%5B", "[").replace("%5D", "]");
            head.push_str(&format!(
                "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
            ));
        }
    }
    head.push_str(&format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"file.{}\"\r\ncontent-type: {}\r\n\r\n",
        read.ending, read.mime
    ));
    let tail = format!("\r\n--{boundary}--\r\n");
    let pieces = stream::once(async { Ok(Bytes::from(head)) })
        .chain(file.pieces)
        .chain(stream::once(async { Ok(Bytes::from(tail)) }));
    Ok((boundary, Body::from_stream(pieces)))
}

fn no_file(name: &str) -> Refusal {
    let name: String = name.chars().take(70).collect();
    Refusal::about(Code::NotFound, "inputs", format!("There is no file `{name}` of this account."))
}

fn too_large(name: &str) -> Refusal {
    let name: String = name.chars().take(70).collect();
    let text = format!("The file `{name}` is larger than {} MiB.", INLINE_BYTES >> 20);
    Refusal::about(Code::InvalidParameter, "inputs", text)
}

fn missing(name: &str, why: Missing) -> Refusal {
    if let Missing::Trouble(error) = &why {
        tracing::warn!(%error, "a file of a run could not be read");
        return Refusal::new(Code::StorageFull, "A file of the run could not be read; it is tried again.").after(5);
    }
    no_file(name)
}

/// Whether files that inputs name are there and the account's own.
pub async fn has_files(
    app: &App,
    account: AccountId,
    record: &WorkflowRecord,
    inputs: &BTreeMap<String, Value>,
) -> Result<(), Refusal> {
    let assets = record.inputs.iter().filter(|input| input.kind == InputKind::Asset);
    let named = assets.filter_map(|input| inputs.get(&input.id)?.as_str());
    for name in named.filter(|name| !name.starts_with("https://")) {
        RunFileName::read(name).filter(|read| read.belongs_to(account)).ok_or_else(|| no_file(name))?;
        let run_files = app.run_files.as_ref().ok_or_else(|| no_file(name))?;
        run_files.get(name, None).await.map_err(|why| missing(name, why))?;
    }
    Ok(())
}
