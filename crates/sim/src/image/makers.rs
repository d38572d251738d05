//! The other makers: MiniMax, Ark, DashScope (at once and as tasks), Kling, Google.

use super::{Answer, Call, Job, trouble};
use crate::fault::response;
use serde_json::{Value, json};

pub(super) fn answer(call: &Call<'_>) -> Answer {
    let keyed = ["authorization", "x-goog-api-key"].iter().any(|name| call.headers.contains_key(*name));
    let path = call.path.trim_start_matches("/video/");
    let (maker, rest) = path.split_once('/').unwrap_or((path, ""));
    if !keyed {
        return failed(maker, 401, "no key");
    }
    match (maker, call.method) {
        ("minimax", "POST") => minimax(call),
        ("ark", "POST") => ark(call),
        ("dashscope", "GET") => dashscope_task(call, rest.rsplit('/').next().unwrap_or_default()),
        ("dashscope", "POST") => dashscope(call, rest),
        ("kling", "GET") => kling_task(call, rest.rsplit('/').next().unwrap_or_default()),
        ("kling", "POST") => kling(call),
        ("gemini", "POST") => gemini(call, rest.ends_with(":predict")),
        _ => failed(maker, 404, "not found"),
    }
}

fn whole(status: u16, value: &Value) -> Answer {
    Answer::Whole(response(status, "application/json", value.to_string().into()))
}

/// An error in the words of a maker.
fn failed(maker: &str, status: u16, text: &str) -> Answer {
    whole(
        status,
        &json!({"code": status, "message": text, "error": {"code": status.to_string(), "message": format!("{maker}: {text}")}}),
    )
}

fn body(call: &Call<'_>) -> Value {
    serde_json::from_slice(call.body).unwrap_or_default()
}

/// Only these members, and these among them.
fn strict(value: &Value, known: &str, needed: &str) -> Result<(), String> {
    let members = value.as_object().ok_or("not an object")?;
    for name in members.keys() {
        if !known.split(' ').any(|one| one == name) {
            return Err(format!("unknown field {name}"));
        }
    }
    match needed.split(' ').find(|name| !members.contains_key(*name)) {
        Some(name) => Err(format!("missing field {name}")),
        None => Ok(()),
    }
}

fn minimax(call: &Call<'_>) -> Answer {
    let body = body(call);
    let refused = |code: i64, text: &str| whole(200, &json!({"base_resp": {"status_code": code, "status_msg": text}}));
    let known = "model prompt n response_format aspect_ratio width height seed prompt_optimizer aigc_watermark style subject_reference";
    if let Err(why) = strict(&body, known, "model prompt") {
        return refused(2013, &why);
    }
    let mut job = match Job::read(body["prompt"].as_str().unwrap_or_default(), call.shelf) {
        Ok(job) => job,
        Err(why) => return refused(2013, &why),
    };
    job.model = body["model"].as_str().unwrap_or_default().to_string();
    job.n = body["n"].as_u64().unwrap_or(1);
    job.format = body["response_format"].as_str().unwrap_or("url").to_string();
    let side = |name: &str| {
        body[name].is_null() || body[name].as_u64().is_some_and(|side| (512..=2048).contains(&side) && side % 8 == 0)
    };
    if !(1..=9).contains(&job.n)
        || !["url", "base64"].contains(&job.format.as_str())
        || !side("width")
        || !side("height")
    {
        return refused(2013, "invalid params");
    }
    match job.choice.name {
        "moderation" => return refused(1026, "input new_sensitive"),
        "moderated" => return refused(1027, "output new_sensitive"),
        "limited" => return refused(1002, "rate limit"),
        "error" => return refused(1000, "unknown error"),
        "refuse" => return refused(2013, "invalid params"),
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    let made = job.made();
    // What its filter takes away is counted; an answer that lacks pictures for no reason is not.
    let failed = if job.choice.is("none") { 0 } else { job.n.saturating_sub(made) };
    let data = match job.format == "base64" {
        true => json!({"image_base64": (0..made).map(|at| job.letters(at)).collect::<Vec<_>>()}),
        false => json!({"image_urls": (0..made).map(|at| job.link(call.host, at)).collect::<Vec<_>>()}),
    };
    let counts = json!({"success_count": made.to_string(), "failed_count": failed.to_string()});
    let reply = json!({"id": "03ff3cd0820949eb8a410056b5f21d38", "data": data, "metadata": counts, "base_resp": {"status_code": 0, "status_msg": "success"}});
    Answer::Made(job, reply)
}

fn ark(call: &Call<'_>) -> Answer {
    let body = body(call);
    let refused = |status: u16, code: &str, text: &str| {
        whole(status, &json!({"error": {"code": code, "message": text, "param": "", "type": "BadRequest"}}))
    };
    let known = "model prompt image size seed guidance_scale watermark response_format output_format optimize_prompt optimize_prompt_options sequential_image_generation stream";
    if let Err(why) = strict(&body, known, "model prompt") {
        return refused(400, "InvalidParameter", &why);
    }
    let mut job = match Job::read(body["prompt"].as_str().unwrap_or_default(), call.shelf) {
        Ok(job) => job,
        Err(why) => return refused(400, "InvalidParameter", &why),
    };
    job.model = body["model"].as_str().unwrap_or_default().to_string();
    job.format = body["response_format"].as_str().unwrap_or("url").to_string();
    match job.choice.name {
        "moderation" => {
            return refused(
                400,
                "InputTextSensitiveContentDetected",
                "The request failed because the input text may contain sensitive information. Request id: 0217",
            );
        }
        "limited" => return refused(429, "RateLimitExceeded.EndpointRPMExceeded", "Too many requests."),
        "error" => return refused(500, "InternalServiceError", "The service had an internal error."),
        "refuse" => return refused(400, "InvalidParameter", "size is invalid"),
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    let failed = json!({"error": {"code": "OutputImageSensitiveContentDetected", "message": "The output image may contain sensitive information."}});
    let none = job.choice.is("moderated") || (job.choice.is("partial") && job.made() == 0);
    let entry = match job.format == "b64_json" {
        _ if none => failed,
        true if !job.choice.is("link") => json!({"b64_json": job.letters(0), "size": "2048x2048"}),
        _ => json!({"url": job.link(call.host, 0), "size": "2048x2048"}),
    };
    let data = if job.choice.is("none") { json!([]) } else { json!([entry]) };
    let reply = json!({"model": job.model, "created": 1_767_225_600, "data": data, "usage": {"generated_images": u64::from(!none), "output_tokens": 16_384, "total_tokens": 16_384}});
    Answer::Made(job, reply)
}

fn dashscope_error(status: u16, code: &str, text: &str) -> Answer {
    whole(status, &json!({"code": code, "message": text, "request_id": "7574ee8f-38a3-4b1e"}))
}

fn dashscope(call: &Call<'_>, rest: &str) -> Answer {
    let body = body(call);
    let wrong = |why: &str| dashscope_error(400, "InvalidParameter", why);
    let tasks = rest.ends_with("/image-synthesis");
    let enabled = call.headers.get("x-dashscope-async").is_some_and(|value| value == "enable");
    if tasks != enabled {
        return dashscope_error(403, "AccessDenied", "current user api does not support synchronous calls.");
    }
    if let Err(why) = strict(&body, "model input parameters", "model input") {
        return wrong(&why);
    }
    let known = "size n seed negative_prompt prompt_extend watermark thinking_mode bbox_list color_palette";
    if let Err(why) = strict(&body["parameters"], known, "n") {
        return wrong(&why);
    }
    if body["parameters"]["size"].as_str().is_some_and(|size| size.contains('x')) {
        return wrong("size must be written as width*height");
    }
    let content = body["input"]["messages"][0]["content"].as_array().into_iter().flatten();
    let text = content.filter_map(|part| part["text"].as_str()).next();
    let prompt = if tasks { body["input"]["prompt"].as_str() } else { text };
    let mut job = match Job::read(prompt.unwrap_or_default(), call.shelf) {
        Ok(job) => job,
        Err(why) => return wrong(&why),
    };
    job.model = body["model"].as_str().unwrap_or_default().to_string();
    job.n = body["parameters"]["n"].as_u64().unwrap_or(4);
    match job.choice.name {
        "moderation" => {
            return dashscope_error(400, "DataInspectionFailed", "Input data may contain inappropriate content.");
        }
        "limited" => return dashscope_error(429, "Throttling.RateQuota", "Requests rate limit exceeded."),
        "error" => return dashscope_error(500, "InternalError", "An internal error has occurred."),
        "refuse" => return wrong("size is invalid"),
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    if tasks {
        let id = call.shelf.put(job.clone());
        let reply = json!({"output": {"task_id": id, "task_status": "PENDING"}, "request_id": "r"});
        return Answer::Made(job, reply);
    }
    let pictures: Vec<Value> = (0..job.made()).map(|at| json!({"image": job.link(call.host, at)})).collect();
    let message =
        |content: Vec<Value>| json!({"finish_reason": "stop", "message": {"role": "assistant", "content": content}});
    let choices: Vec<Value> = match job.choice.is("one_choice") {
        true => vec![message(pictures)],
        false => pictures.into_iter().map(|one| message(vec![one])).collect(),
    };
    let reply = json!({"output": {"choices": choices}, "usage": {"image_count": job.made(), "width": 1024, "height": 1024}, "request_id": "r"});
    Answer::Made(job, reply)
}

fn dashscope_task(call: &Call<'_>, id: &str) -> Answer {
    let Some((job, polls)) = call.shelf.ask(id) else {
        return whole(200, &json!({"output": {"task_id": id, "task_status": "UNKNOWN"}}));
    };
    if job.choice.is("poll_broken") {
        return dashscope_error(500, "InternalError", "An internal error has occurred.");
    }
    let status = |word: &str| whole(200, &json!({"output": {"task_id": id, "task_status": word}}));
    if polls == 0 || job.choice.is("poll_hang") {
        return status("RUNNING");
    }
    if job.choice.is("word") && polls == 1 {
        return status("REVIEWING");
    }
    if job.choice.is("ended") {
        return status(job.choice.raw("code"));
    }
    if job.choice.is("moderated") {
        return whole(
            200,
            &json!({"output": {"task_id": id, "task_status": "FAILED", "code": "DataInspectionFailed", "message": "Output data may contain inappropriate content."}}),
        );
    }
    let made = job.made();
    let entry = |at: u64| match at < made {
        true => json!({"url": job.link(call.host, at), "orig_prompt": job.prompt, "actual_prompt": "said better"}),
        false => json!({"code": "InternalError.Timeout", "message": "An internal timeout error has occured"}),
    };
    let results: Vec<Value> = (0..job.n).map(entry).collect();
    whole(
        200,
        &json!({
            "output": {"task_id": id, "task_status": "SUCCEEDED", "results": results, "task_metrics": {"TOTAL": job.n, "SUCCEEDED": made, "FAILED": job.n - made}},
            "usage": {"image_count": made},
        }),
    )
}

fn kling_error(status: u16, code: i64, text: &str) -> Answer {
    whole(status, &json!({"code": code, "message": text, "request_id": "r"}))
}

fn kling(call: &Call<'_>) -> Answer {
    let body = body(call);
    let known = "model_name prompt negative_prompt image image_reference image_fidelity human_fidelity resolution n aspect_ratio external_task_id callback_url";
    if let Err(why) = strict(&body, known, "model_name prompt") {
        return kling_error(400, 1201, &why);
    }
    if body["image"].as_str().is_some_and(|image| image.starts_with("data:")) {
        return kling_error(400, 1201, "image must be a link or bare base64");
    }
    let mut job = match Job::read(body["prompt"].as_str().unwrap_or_default(), call.shelf) {
        Ok(job) => job,
        Err(why) => return kling_error(400, 1201, &why),
    };
    job.model = body["model_name"].as_str().unwrap_or_default().to_string();
    job.n = body["n"].as_u64().unwrap_or(1);
    match job.choice.name {
        "moderation" => return kling_error(400, 1301, "The request triggered the content security policy"),
        "limited" => return kling_error(429, 1302, "API request too fast"),
        "error" => return kling_error(500, 5000, "Server internal error"),
        "refuse" => return kling_error(400, 1201, "resolution is invalid"),
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    let id = call.shelf.put(job.clone());
    let reply = json!({"code": 0, "message": "SUCCEED", "data": {"task_id": id, "task_status": "submitted"}});
    Answer::Made(job, reply)
}

fn kling_task(call: &Call<'_>, id: &str) -> Answer {
    let Some((job, polls)) = call.shelf.ask(id) else { return kling_error(404, 1203, "task not found") };
    if job.choice.is("poll_broken") {
        return kling_error(500, 5000, "Server internal error");
    }
    let data = match job.choice.name {
        _ if polls == 0 || job.choice.is("poll_hang") => json!({"task_id": id, "task_status": "processing"}),
        "word" if polls == 1 => json!({"task_id": id, "task_status": "reviewing"}),
        "ended" => json!({"task_id": id, "task_status": job.choice.raw("code")}),
        "moderated" => {
            json!({"task_id": id, "task_status": "failed", "task_status_msg": "Failure to pass the risk control system"})
        }
        "partial" => json!({"task_id": id, "task_status": "failed", "task_status_msg": "inner error"}),
        _ => {
            let images: Vec<Value> =
                (0..job.made()).map(|at| json!({"index": at, "url": job.link(call.host, at)})).collect();
            json!({"task_id": id, "task_status": "succeed", "task_result": {"images": images}})
        }
    };
    whole(200, &json!({"code": 0, "message": "SUCCEED", "data": data}))
}

fn gemini(call: &Call<'_>, predict: bool) -> Answer {
    let body = body(call);
    let refused = |status: u16, word: &str, text: &str| {
        whole(status, &json!({"error": {"code": status, "message": text, "status": word}}))
    };
    let known = if predict { "instances parameters" } else { "contents generationConfig" };
    if let Err(why) = strict(&body, known, known) {
        return refused(400, "INVALID_ARGUMENT", &why);
    }
    let parts = body["contents"][0]["parts"].as_array().into_iter().flatten();
    let text = parts.filter_map(|part| part["text"].as_str()).next();
    let prompt = if predict { body["instances"][0]["prompt"].as_str() } else { text };
    let mut job = match Job::read(prompt.unwrap_or_default(), call.shelf) {
        Ok(job) => job,
        Err(why) => return refused(400, "INVALID_ARGUMENT", &why),
    };
    job.model = call.path.rsplit('/').next().and_then(|name| name.split(':').next()).unwrap_or_default().to_string();
    job.n = body["parameters"]["sampleCount"].as_u64().unwrap_or(1);
    match job.choice.name {
        "limited" => return refused(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."),
        "error" => return refused(500, "INTERNAL", "An internal error has occurred."),
        "refuse" => return refused(400, "INVALID_ARGUMENT", "aspectRatio is invalid"),
        "moderation" if !predict => {
            let reply = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}});
            return Answer::Made(job, reply);
        }
        _ => {}
    }
    if let Some(answer) = trouble(&job) {
        return answer;
    }
    if predict {
        let made = if job.choice.is("moderation") { 0 } else { job.made() };
        let entry = |at: u64| match at < made {
            true => json!({"bytesBase64Encoded": job.letters(at), "mimeType": "image/png"}),
            false => json!({"raiFilteredReason": "Unable to show generated images."}),
        };
        let entries = if job.choice.is("none") { 0 } else { job.n };
        let predictions: Vec<Value> = (0..entries).map(entry).collect();
        let reply = json!({ "predictions": predictions });
        return Answer::Made(job, reply);
    }
    let mut parts = Vec::new();
    if job.choice.is("draft") {
        parts.push(json!({"inlineData": {"mimeType": "image/png", "data": job.letters(50)}, "thought": true}));
    }
    let finish = if job.choice.is("moderated") { "IMAGE_SAFETY" } else { "STOP" };
    if job.choice.is("moderated") || job.made() == 0 {
        parts.push(json!({"text": "I cannot draw that."}));
    } else {
        parts.push(json!({"inlineData": {"mimeType": "image/png", "data": job.letters(0)}}));
    }
    let reply = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1_290, "totalTokenCount": 1_295},
    });
    Answer::Made(job, reply)
}
