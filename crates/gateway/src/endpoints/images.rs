//! `POST /v1/images/generations` and `POST /v1/images/edits`. An edit is JSON with links, or a form
//! with files; both say the same thing.

use super::data_links::{self, LinkRules, LinkedBody, LinkedFile};
use super::form::{self, FirstBytes, FormRest, FormRules, TakeFile};
use super::openapi::shapes::{event, idempotency, named, text};
use super::row::{Access, Family, Row};
use super::{picture_file, reading};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::door::bodies::SMALL;
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::sale::pictures::ENDPOINT_TYPE;
use crate::who::caller::Caller;
use crate::work::given;
use crate::work::image::{ImageAsk, RequestRoom};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::image::{ImageRequest, PictureSource, picture_kind};
use tollgate_store::{CallId, Idem};
use tollgate_upstream::PictureFile;
use tollgate_wire::Problem;
use tollgate_wire::error::{Code, ErrorFormat};

const GENERATIONS: &str = "/v1/images/generations";
const EDITS: &str = "/v1/images/edits";

/// Sixteen pictures and a mask, and whatever is said of them.
const RULES: FormRules =
    FormRules { parts: 100, field_bytes: 256 << 10, files: 17, file_bytes: 50 << 20, packed: false };
/// The largest mask.
const MASK: u64 = 4 << 20;
/// The same pictures in the links of a JSON body.
const LINKS: LinkRules =
    LinkRules { members: &["image", "images", "mask"], links: RULES.files, most: RULES.file_bytes };

pub const FAMILY: Family = Family { tag: "images", rows, schemas };

fn rows() -> Vec<Row> {
    let either = || json!({ "application/json": { "schema": named("ImageResult") }, "text/event-stream": { "schema": event() } });
    let row = |mut row: Row| {
        row.replies.push((200, Some(either())));
        row.with(idempotency).names_itself().begun_once()
    };
    vec![
        row(Row::post(GENERATIONS, Access::Paid, generations, "Pictures from a prompt")
            .takes(named("ImageRequest"))
            .quoted(|shop, _, body| priced(shop, &body, false))
            .serves(ENDPOINT_TYPE)),
        row(Row::post(EDITS, Access::Paid, edits, "Pictures from other pictures and a prompt")
            .takes(named("ImageEditRequest"))
            .or_a_form()
            .quoted(|shop, _, body| priced(shop, &body, true))),
        picture_file::row(),
    ]
}

pub async fn generations(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, GENERATIONS, false, request).await
}

pub async fn edits(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, EDITS, true, request).await
}

async fn answered(app: &Arc<App>, endpoint: &'static str, edit: bool, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle(app, id, endpoint, edit, request)).await {
        Ok(reply) => reply,
        Err(refusal) => {
            // A fault of our own may come after the pictures were begun.
            let refusal = if refusal.code == Code::Internal { refusal.once() } else { refusal };
            reading::refused(app, ErrorFormat::OpenAi, refusal, &id.to_string())
        }
    }
}

/// A request, and what comes with it.
struct Asked {
    request: ImageRequest,
    files: Vec<PictureFile>,
    idem: Option<Idem>,
    /// What it takes of the memory for bodies, as long as it is needed.
    room: RequestRoom,
}

async fn handle(
    app: &Arc<App>,
    id: CallId,
    endpoint: &'static str,
    edit: bool,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let Asked { request, files, idem, room } = match edit && form::is_form(&parts) {
        true => of_form(app, &caller, &parts, body).await?,
        false => of_json(app, &caller, &parts, body, endpoint, edit).await?,
    };
    for (at, source) in request.images.iter().chain(&request.mask).enumerate() {
        if let PictureSource::Link(link) = source {
            let field = if at < request.images.len() { format!("image[{at}]") } else { "mask".to_owned() };
            given::text(&app.conversations.fetcher.client, &field, link, &[])?;
        }
    }
    let ask = ImageAsk::of(&app.serving.load(), request, app.images.has_links());
    let work = app.images.call(ask, files, reading::base(app, &parts), room);
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

/// A call as far as its price depends on it.
fn priced(shop: &Shop<'_>, body: &Bytes, edit: bool) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(ImageAsk::of(shop.serving, ImageRequest::from_json(body, edit)?, shop.picture_links)))
}

/// The same for a request in the form of Imagen.
pub fn priced_predict(shop: &Shop<'_>, parts: &[&str], body: &Bytes) -> Result<Box<dyn Priced>, Refusal> {
    let request = ImageRequest::from_predict(parts.first().copied().unwrap_or_default(), body)?;
    Ok(Box::new(ImageAsk::of(shop.serving, request, shop.picture_links)))
}

/// Answers a request in the form of Imagen.
pub async fn predict(
    app: &Arc<App>,
    caller: Arc<Caller>,
    id: CallId,
    endpoint: &'static str,
    (parts, model): (&Parts, &str),
    body: Bytes,
    idem: Option<Idem>,
) -> Result<Response, Refusal> {
    let request = ImageRequest::from_predict(model, &body)?;
    let room = room_of(&request, body);
    let ask = ImageAsk::of(&app.serving.load(), request, app.images.has_links());
    let work = app.images.call(ask, Vec::new(), reading::base(app, parts), room);
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

/// What is left of a request is a copy; while it is long, the body's room is taken for it.
fn room_of(request: &ImageRequest, body: Bytes) -> RequestRoom {
    if request.kept_texts() > SMALL { RequestRoom::Body(body) } else { RequestRoom::None }
}

async fn of_json(
    app: &App,
    caller: &Caller,
    parts: &Parts,
    body: Body,
    endpoint: &str,
    edit: bool,
) -> Result<Asked, Refusal> {
    if !edit {
        let bytes = reading::json_body(app, caller, parts, body).await?;
        let idem = reading::idempotency(&parts.headers, endpoint, &bytes)?;
        let request = ImageRequest::from_json(&bytes, edit)?;
        let room = room_of(&request, bytes);
        return Ok(Asked { request, files: Vec::new(), idem, room });
    }
    let LinkedBody { json, files: mut linked, idem } =
        data_links::read(app, caller, parts, body, endpoint, LINKS).await?;
    let mut request = ImageRequest::from_json(&json, edit)?;
    let mut files = Vec::new();
    let (images, mask) = (&mut request.images, &mut request.mask);
    let pictures = images.len();
    for (at, source) in images.iter_mut().chain(mask).enumerate() {
        let PictureSource::Link(link) = source else { continue };
        if let Some(number) = link.strip_prefix("data:") {
            let number: Option<usize> = number.parse().ok();
            let file = number.and_then(|number| linked.get_mut(number)?.take());
            let field = if at < pictures { format!("image[{at}]") } else { "mask".to_owned() };
            files.push(picture_of(file, &field, at >= pictures)?);
            *source = PictureSource::File(files.len() - 1);
        }
    }
    let room = room_of(&request, json);
    Ok(Asked { request, files, idem, room })
}

/// The picture of a data link. What it is called is not believed.
fn picture_of(file: LinkedFile, field: &str, mask: bool) -> Result<PictureFile, Refusal> {
    let (file, FirstBytes(first)) = file.ok_or_else(|| no_picture(field))?;
    if mask && file.length() > MASK {
        return Err(Problem::large_file(MASK).about(field).into());
    }
    let kind = picture_kind(&first).ok_or_else(|| no_picture(field))?;
    Ok(PictureFile { file, kind })
}

fn no_picture(field: &str) -> Refusal {
    Problem::wrong(field, "an image (PNG, JPEG, WebP, GIF, AVIF or HEIC)").into()
}

/// Which of the pictures a field is: `image`, `image[]` and `image[0]` are the same.
fn is_picture(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("images").or_else(|| name.strip_prefix("image")) else { return false };
    let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|at| at.bytes().all(|byte| byte.is_ascii_digit()))
}

async fn of_form(app: &App, caller: &Caller, parts: &Parts, body: Body) -> Result<Asked, Refusal> {
    let begin = |head: &tollgate_wire::multipart::PartHead, _: &[form::FormField], _: Option<FormRest>| {
        let mask = head.name == "mask";
        if !mask && !is_picture(&head.name) {
            let text = format!("`{}` is no file of this endpoint: pictures are `image` and `mask`.", head.name);
            return Err(Refusal::about(Code::UnknownParameter, &head.name, text));
        }
        Ok(TakeFile::spooled(FirstBytes::default(), mask.then_some(MASK)))
    };
    let form = form::read(app, caller, parts, body, RULES, begin).await?;
    let idem = reading::idempotency(&parts.headers, EDITS, &form.print)?;
    let mut request = ImageRequest { edit: true, ..ImageRequest::default() };
    for field in form.fields {
        let name = if is_picture(&field.name) { "image" } else { field.name.as_str() };
        request.take(name, field_value(name, field.text))?;
    }
    let mut files = Vec::new();
    for file in form.files {
        let kind = picture_kind(&file.watch.0).ok_or_else(|| no_picture(&file.name))?;
        files.push(PictureFile { file: file.file.into_spooled()?, kind });
        let source = PictureSource::File(files.len() - 1);
        match file.name == "mask" {
            true if request.mask.is_some() => return Err(Problem::wrong("mask", "one picture").into()),
            true => request.mask = Some(source),
            false => request.add(source)?,
        }
    }
    Ok(Asked { request: request.check()?, files, idem, room: RequestRoom::Form(form.room) })
}

/// Forms have texts only; what is an object or a list in JSON is written as JSON in them.
fn field_value(name: &str, text: String) -> Value {
    let plain = ["model", "prompt", "image", "user", "safety_identifier"].contains(&name);
    match text.trim_start().starts_with(['{', '[']) && !plain {
        true => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        false => Value::String(text),
    }
}

fn schemas() -> Value {
    let (text, count) = (text(), json!({ "type": ["integer", "null"], "minimum": 1 }));
    let tokens = json!({ "type": "integer", "minimum": 0 });
    let optional = json!({ "type": ["string", "null"] });
    let common = json!({
        "model": { "type": "string", "minLength": 1 }, "prompt": { "type": "string", "minLength": 1 },
        "n": count, "size": optional, "quality": optional, "aspect_ratio": optional, "resolution": optional,
        "response_format": { "enum": ["url", "b64_json", null] }, "stream": { "type": ["boolean", "null"] },
        "partial_images": { "type": ["integer", "null"], "minimum": 0, "maximum": 3 },
    });
    let mut edit = common.clone();
    let link = json!({ "description": "A file of a form, a link, a data link, or a list of these" });
    edit["image"] = link.clone();
    edit["images"] = json!({ "type": "array", "items": { "type": "object", "properties": { "image_url": text } } });
    edit["mask"] = link;
    json!({
        "ImageRequest": {
            "type": "object", "required": ["model", "prompt"], "additionalProperties": true, "properties": common,
        },
        "ImageEditRequest": {
            "type": "object", "required": ["model", "prompt"], "additionalProperties": true, "properties": edit,
        },
        "ImageResult": { "type": "object", "required": ["created", "data", "metadata"], "properties": {
            "created": { "type": "integer" },
            "data": { "type": "array", "items": {
                "type": "object", "required": ["url", "b64_json", "revised_prompt"],
                "properties": { "url": text, "b64_json": text, "revised_prompt": text },
            } },
            "metadata": { "type": "object", "required": ["success_count", "failed_count"], "properties": {
                "success_count": text, "failed_count": text,
            } },
            "size": text, "quality": text, "output_format": text, "background": text,
            "usage": named("ImageUsage"),
            "warnings": { "type": "array", "items": {
                "type": "object", "required": ["field", "message"], "properties": { "field": text, "message": text },
            } },
        } },
        "ImageUsage": { "type": "object", "description": "What the provider reports", "properties": {
            "input_tokens": tokens, "input_tokens_details": { "type": "object", "properties": {
                "image_tokens": tokens, "text_tokens": tokens,
            } },
            "output_tokens": tokens, "total_tokens": tokens,
        } },
    })
}
