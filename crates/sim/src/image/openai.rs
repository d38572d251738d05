//! OpenAI's pictures as documented: JSON, forms for edits, events; newer models refuse to be sent
//! how to hand a picture over.

use super::{Answer, Call, Job, Shelf, error, trouble};
use serde_json::{Value, json};

/// Members that are known; any other is refused, as OpenAI does.
const KNOWN: &str = "model prompt n size quality response_format stream partial_images user safety_identifier background \
                     moderation output_format output_compression style input_fidelity images image image[] mask";

/// Those of all its models.
const QUALITIES: [&str; 8] = ["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"];

pub(super) fn answer(call: &Call<'_>) -> Answer {
    let key = call.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if key.starts_with("Bearer wrong") {
        return error(401, "invalid_api_key", "Incorrect API key provided: sk-sim-****wxyz.", None);
    }
    let edit = match (call.method, call.path) {
        ("POST", "/v1/images/generations") => false,
        ("POST", "/v1/images/edits") => true,
        _ => return error(404, "not_found", "Invalid URL", None),
    };
    let (body, files) = read(call);
    let job = match job(&body, &files, (edit, call.shelf)) {
        Ok(job) => job,
        Err((param, text)) => return error(400, "invalid_value", &text, Some(&param)),
    };
    match job.choice.name {
        "moderation" => {
            return error(400, "moderation_blocked", "Your request was rejected by the safety system.", None);
        }
        "moderated" => {
            return error(
                400,
                "moderation_blocked",
                "The picture was rejected by the safety system. request id req_0123",
                None,
            );
        }
        "limited" => return error(429, "rate_limit_exceeded", "Rate limit reached for images per min.", None),
        "refuse" => return error(400, "invalid_value", "Invalid size for this model.", Some("size")),
        "error" => {
            let status = u16::try_from(job.choice.number("code", 500)).unwrap_or(500);
            return error(status, "server_error", "The server had an error.", None);
        }
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    if job.stream && !job.choice.is("whole") {
        let text = events(&job);
        return Answer::Events(job, text);
    }
    let old = job.model.starts_with("sim-image-old");
    let entry = |at: u64| match job.format == "url" {
        true => json!({"url": job.link(call.host, at), "revised_prompt": "as asked"}),
        false if old => json!({"b64_json": job.letters(at), "revised_prompt": "as asked"}),
        false => json!({ "b64_json": job.letters(at) }),
    };
    let data: Vec<Value> = (0..job.made()).map(entry).collect();
    let reply = json!({
        "created": 1_767_225_600, "background": "opaque", "output_format": "png", "data": data,
        "usage": usage(&job),
    });
    Answer::Made(job, reply)
}

fn usage(job: &Job) -> Value {
    let out = job.made() * 1_056;
    json!({
        "input_tokens": 9, "input_tokens_details": {"image_tokens": 0, "text_tokens": 9},
        "output_tokens": out, "total_tokens": out + 9,
    })
}

fn job(body: &Value, files: &[(String, usize)], (edit, shelf): (bool, &Shelf)) -> Result<Job, (String, String)> {
    let wrong = |name: &str, text: &str| (name.to_string(), text.to_string());
    for name in body.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !KNOWN.split_whitespace().any(|known| known == name) {
            return Err(wrong(name, &format!("Unknown parameter: '{name}'.")));
        }
    }
    let prompt = body["prompt"].as_str().ok_or_else(|| wrong("prompt", "Missing required parameter: 'prompt'."))?;
    let mut job = Job::read(prompt, shelf).map_err(|text| wrong("prompt", &text))?;
    job.model = body["model"].as_str().unwrap_or_default().to_string();
    job.edit = edit;
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    job.n = match &body["n"] {
        Value::Null => 1,
        n => number(n).filter(|n| (1..=10).contains(n)).ok_or_else(|| wrong("n", "Invalid 'n'."))?,
    };
    let old = job.model.starts_with("sim-image-old");
    job.format = match (&body["response_format"], old) {
        (Value::Null, true) => "url".to_string(),
        (Value::Null, false) => "b64_json".to_string(),
        (_, false) => return Err(wrong("response_format", "Unknown parameter: 'response_format'.")),
        (format, true) => format.as_str().unwrap_or_default().to_string(),
    };
    if let Some(size) = body["size"].as_str() {
        let pixels = size.split_once('x').is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok());
        if !pixels && size != "auto" {
            return Err(wrong("size", "Invalid size."));
        }
    }
    if let Some(quality) = body["quality"].as_str().filter(|quality| !QUALITIES.contains(quality)) {
        return Err(wrong("quality", &format!("Invalid value: '{quality}'.")));
    }
    job.stream = body["stream"] == true || body["stream"] == "true";
    job.partials = number(&body["partial_images"]).unwrap_or(0);
    if job.partials > 3 || (job.partials > 0 && !job.stream) {
        return Err(wrong("partial_images", "Invalid 'partial_images'."));
    }
    if edit {
        let links = body["images"].as_array().map_or(0, Vec::len);
        let linked = body["images"].as_array().into_iter().flatten();
        if linked.into_iter().any(|one| {
            one["image_url"].as_str().is_none_or(|url| !url.starts_with("http") && !url.starts_with("data:"))
        }) {
            return Err(wrong("images", "Invalid image_url."));
        }
        job.sources = files.iter().filter(|(name, _)| name.starts_with("image")).map(|(_, length)| *length).collect();
        if links + job.sources.len() == 0 || job.sources.len() > 16 {
            return Err(wrong("image", "Expected one to sixteen images."));
        }
        let several = job.sources.len() > 1;
        if files.iter().any(|(name, _)| several && name == "image") {
            return Err(wrong(
                "image",
                "Duplicate parameter: 'image'. You provided multiple values for this parameter.",
            ));
        }
    }
    Ok(job)
}

/// The members of a request, and the files of a form with their lengths.
fn read(call: &Call<'_>) -> (Value, Vec<(String, usize)>) {
    let kind = call.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(boundary) = kind.split("boundary=").nth(1) else {
        return (serde_json::from_slice(call.body).unwrap_or_default(), Vec::new());
    };
    let (mut body, mut files) = (json!({}), Vec::new());
    for part in parts(call.body, format!("--{boundary}").as_bytes()) {
        let Some(at) = part.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let (head, value) = (String::from_utf8_lossy(&part[..at]).into_owned(), &part[at + 4..]);
        let value = value.strip_suffix(b"\r\n").unwrap_or(value);
        let Some(name) = head.split("name=\"").nth(1).and_then(|rest| rest.split('"').next()) else { continue };
        match head.contains("filename=") {
            true => files.push((name.to_string(), value.len())),
            false => body[name] = json!(String::from_utf8_lossy(value)),
        }
    }
    (body, files)
}

fn parts<'b>(body: &'b [u8], boundary: &[u8]) -> Vec<&'b [u8]> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = body[at..].windows(boundary.len()).position(|window| window == boundary) {
        places.push(at + found);
        at += found + boundary.len();
    }
    places.windows(2).map(|pair| &body[pair[0] + boundary.len()..pair[1]]).collect()
}

fn events(job: &Job) -> String {
    let word = if job.edit { "image_edit" } else { "image_generation" };
    let event = |kind: &str, value: Value| format!("event: {word}.{kind}\ndata: {value}\n\n");
    let mut text = String::new();
    let previews = if job.choice.is("partials") { job.choice.number("n", 2) } else { job.partials };
    for at in 0..job.made() {
        if job.choice.is("midstream") && at == job.choice.number("n", 1) {
            let error = json!({"type": "error", "error": {"message": "The server had an error on host-7.internal.", "code": "server_error"}});
            return format!("{text}event: error\ndata: {error}\n\n");
        }
        for preview in 0..previews {
            text += &event(
                "partial_image",
                json!({
                    "type": format!("{word}.partial_image"), "b64_json": job.letters(100 + preview), "partial_image_index": preview,
                    "created_at": 1_767_225_600, "size": "1024x1024", "quality": "low", "background": "opaque", "output_format": "png",
                }),
            );
        }
        text += &event(
            "completed",
            json!({
                "type": format!("{word}.completed"), "b64_json": job.letters(at), "created_at": 1_767_225_600,
                "size": "1024x1024", "quality": "low", "background": "opaque", "output_format": "png", "usage": usage(job),
            }),
        );
    }
    text
}
