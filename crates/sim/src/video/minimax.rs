//! MiniMax as documented: v1 answers 200 to nearly everything and has a file step, v2 speaks HTTP.

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::{Signing, now};
use super::picture;
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};

/// The two ways keep their tasks apart.
const V1: &str = "minimax-v1";
const V2: &str = "minimax-v2";

const CODES: &[(i64, &str)] = &[
    (1000, "unknown error"),
    (1001, "request timeout"),
    (1002, "rate limit"),
    (1004, "login fail: not authorized"),
    (1008, "insufficient balance"),
    (1024, "internal error"),
    (1026, "input new_sensitive"),
    (1027, "output new_sensitive"),
    (1033, "downstream error"),
    (1039, "token limit"),
    (1041, "conn limit"),
    (1042, "invisible character ratio limit"),
    (2013, "invalid params"),
    (2049, "invalid api key"),
    (2056, "plan limit reached"),
];

const SUBJECT: Is = Is::Obj(&[("type", Is::OneOf(&["character"]), Must), ("image", Is::List(1, 1, &Is::Link), Must)]);
const BODY1: Is = Is::Obj(&[
    ("model", Is::Text, Must),
    ("prompt", Is::Short(2000), May),
    ("first_frame_image", Is::Link, May),
    ("last_frame_image", Is::Link, May),
    ("subject_reference", Is::List(1, 1, &SUBJECT), May),
    ("duration", Is::Int(6, 10), May),
    ("resolution", Is::OneOf(&["512P", "720P", "768P", "1080P"]), May),
    ("prompt_optimizer", Is::Bool, May),
    ("fast_pretreatment", Is::Bool, May),
    ("aigc_watermark", Is::Bool, May),
    ("callback_url", Is::Link, May),
]);
const URL: Is = Is::Obj(&[("url", Is::Link, Must)]);
const PART: Is = Is::Obj(&[
    ("type", Is::OneOf(&["text", "image_url", "video_url", "audio_url"]), Must),
    ("text", Is::Short(7000), May),
    ("image_url", URL, May),
    ("video_url", URL, May),
    ("audio_url", URL, May),
    ("role", Is::OneOf(&["first_frame", "last_frame", "reference_image", "reference_video", "reference_audio"]), May),
]);
const BODY2: Is = Is::Obj(&[
    ("model", Is::OneOf(&["MiniMax-H3"]), Must),
    ("content", Is::List(1, 20, &PART), Must),
    ("resolution", Is::OneOf(&["768P", "2K"]), May),
    ("duration", Is::Int(4, 15), May),
    ("ratio", Is::OneOf(&["adaptive", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"]), May),
    ("aigc_watermark", Is::Bool, May),
    ("callback_url", Is::Link, May),
]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    let second = call.path.starts_with("/v2/");
    if call.bearer().is_err() {
        return if second { error2(401, "authorized_error", "login fail", 1004) } else { error1(1004, None) };
    }
    match (call.method, call.path) {
        ("POST", "/v1/video_generation") => submit1(call),
        ("GET", "/v1/query/video_generation") => poll1(call),
        ("GET", "/v1/files/retrieve") => file(call),
        ("POST", "/v2/video_generation") => submit2(call),
        ("GET", "/v2/query/video_generation") => list2(call),
        ("GET", path) => match path.strip_prefix("/v2/query/video_generation/") {
            Some(id) => poll2(call, id),
            None => Answer::json(404, &json!({"error": "404 page not found"})),
        },
        _ => Answer::json(404, &json!({"error": "404 page not found"})),
    }
}

fn base(code: i64, text: Option<&str>) -> Value {
    let row = CODES.iter().find(|row| row.0 == code);
    json!({"status_code": code, "status_msg": text.unwrap_or(row.map_or("success", |row| row.1))})
}

fn error1(code: i64, text: Option<&str>) -> Answer {
    Answer::json(200, &json!({"task_id": "", "base_resp": base(code, text)}))
}

fn error2(status: u16, kind: &str, text: &str, code: i64) -> Answer {
    let error = json!({"type": kind, "message": format!("{text} ({code})"), "http_code": status.to_string()});
    Answer::json(status, &json!({"type": "error", "error": error, "request_id": "05b7a2c9e2f5d8a1c4"}))
}

/// A number of v1 in the shape of v2.
fn numbered2(code: i64, text: Option<&str>) -> Answer {
    let (status, kind) = match code {
        1004 | 2049 => (401, "authorized_error"),
        1008 => (402, "insufficient_balance_error"),
        1026 | 1027 => (422, "unprocessable_entity_error"),
        1002 | 1039 | 1041 | 2056 => (429, "rate_limit_error"),
        2013 | 1042 => (400, "bad_request_error"),
        _ => (500, "server_error"),
    };
    let row = CODES.iter().find(|row| row.0 == code);
    error2(status, kind, text.unwrap_or(row.map_or("error", |row| row.1)), code)
}

/// What stands before a submission is looked at; the answer in whichever shape `numbered` gives it.
fn begin(
    call: &Call<'_>,
    body: &Value,
    prompt: &str,
    numbered: fn(i64, Option<&str>) -> Answer,
) -> Result<Choice, Box<Answer>> {
    let choice = Choice::of(prompt).map_err(|mistake| Box::new(numbered(2013, Some(&mistake))))?;
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return Err(Box::new(numbered(1002, None))),
        Some(_) => return Err(Box::new(numbered(1024, None))),
        None => {}
    }
    if choice.is("refuse") {
        let code = choice.raw("code").and_then(|code| code.parse().ok()).unwrap_or(2013);
        return Err(Box::new(numbered(code, choice.text("text").as_deref())));
    }
    Ok(choice)
}

fn submit1(call: &Call<'_>) -> Answer {
    let body = call.json();
    if let Err((place, why)) = check(&body, &BODY1, "") {
        return error1(2013, Some(&format!("invalid params, {place} {why}")));
    }
    let choice = match begin(call, &body, body["prompt"].as_str().unwrap_or_default(), error1) {
        Ok(choice) => choice,
        Err(answer) => return *answer,
    };
    let model = body["model"].as_str().unwrap_or_default();
    let (picture, last) = (!body["first_frame_image"].is_null(), !body["last_frame_image"].is_null());
    let (resolution, seconds) = (body["resolution"].as_str().unwrap_or("768P"), body["duration"].as_u64().unwrap_or(6));
    let wrong = match model {
        "MiniMax-Hailuo-2.3-Fast" if !picture => Some("the model needs first_frame_image"),
        "MiniMax-Hailuo-2.3" | "MiniMax-Hailuo-2.3-Fast" | "MiniMax-Hailuo-02" => None,
        _ => Some("model is not known"),
    };
    let wrong = wrong.or(match (resolution, seconds) {
        (_, 7..=9) => Some("duration must be 6 or 10"),
        ("1080P", 10) => Some("1080P is 6 seconds only"),
        ("720P", _) => Some("resolution is not of this model"),
        ("512P", _) if model != "MiniMax-Hailuo-02" || !picture => Some("512P needs an image"),
        _ if last && model != "MiniMax-Hailuo-02" => Some("last_frame_image is not of this model"),
        _ => None,
    });
    if let Some(why) = wrong {
        return error1(2013, Some(&format!("invalid params, {why}")));
    }
    let small = body["first_frame_image"].as_str().is_some_and(|one| picture::smaller(one, 300));
    let task = take(call, V1, &body, seconds, choice, small);
    Answer::took(&task, &json!({"task_id": task.id, "base_resp": base(0, None)}))
}

fn take(call: &Call<'_>, vendor: &'static str, body: &Value, seconds: u64, choice: Choice, small: bool) -> Task {
    let new = New {
        vendor,
        call: "video_generation".to_string(),
        model: body["model"].as_str().unwrap_or_default().to_string(),
        external: None,
        seconds: u32::try_from(seconds).unwrap_or(6),
        body: body.clone(),
        choice,
        doomed: small.then(|| ("2013".to_string(), "image size is not valid".to_string())),
    };
    call.add(new, |number| format!("1768437{number:011}"))
}

fn poll1(call: &Call<'_>) -> Answer {
    let id = call.asked("task_id").unwrap_or_default();
    let Some((task, phase)) = call.book.poll(V1, id) else { return error1(2013, Some("invalid params, task_id")) };
    let mut shown = json!({"task_id": id, "file_id": "", "base_resp": base(0, None)});
    let word = match phase {
        Phase::Limited => return error1(1002, None),
        Phase::Broken => return Answer::json(500, &json!({"base_resp": base(1000, None)})),
        Phase::Forgotten => return error1(2013, Some("invalid params, task_id")),
        Phase::Queued => "Queueing",
        Phase::Running => "Processing",
        Phase::Strange => "Reviewing",
        Phase::Done { url } => {
            if url {
                shown["file_id"] = json!(id);
            }
            shown["video_width"] = json!(1366);
            shown["video_height"] = json!(768);
            "Success"
        }
        Phase::Moderated => {
            shown["base_resp"] = base(1027, None);
            "Fail"
        }
        _ => {
            let (code, text) = task.reason("1000", "generation failed");
            shown["base_resp"] = base(code.parse().unwrap_or(1000), Some(&text));
            "Fail"
        }
    };
    shown["status"] = json!(word);
    Answer::json(200, &shown)
}

fn file(call: &Call<'_>) -> Answer {
    let id = call.asked("file_id").unwrap_or_default();
    let Some((task, tries)) = call.book.get(V1, id).zip(call.book.file_try(V1, id)) else {
        return Answer::json(200, &json!({"base_resp": base(2013, Some("invalid params, file_id"))}));
    };
    if task.choice.is("file_error") && tries <= task.choice.number("n", 1) {
        return Answer::json(200, &json!({"base_resp": base(1000, None)}));
    }
    let number: u64 = id.parse().unwrap_or_default();
    let file = json!({
        "file_id": number, "bytes": 1200, "created_at": task.created, "filename": "output.mp4", "purpose": "video_generation",
        "download_url": call.link(&task, Signing::Oss),
    });
    Answer::json(200, &json!({"file": file, "base_resp": base(0, None)}))
}

fn submit2(call: &Call<'_>) -> Answer {
    let body = call.json();
    if let Err((place, why)) = check(&body, &BODY2, "") {
        return numbered2(2013, Some(&format!("invalid params, {place} {why}")));
    }
    let parts = body["content"].as_array().cloned().unwrap_or_default();
    let of = |kind: &str| parts.iter().filter(|part| part["role"] == kind).count();
    let texts: Vec<_> = parts.iter().filter(|part| part["type"] == "text").collect();
    let prompt = texts.first().and_then(|part| part["text"].as_str()).unwrap_or_default();
    let choice = match begin(call, &body, prompt, numbered2) {
        Ok(choice) => choice,
        Err(answer) => return *answer,
    };
    let (frames, pictures) = (of("first_frame") + of("last_frame"), of("reference_image"));
    let (clips, sounds) = (of("reference_video"), of("reference_audio"));
    let media = frames + pictures + clips + sounds;
    let wrong = if texts.len() != 1 {
        Some("content needs exactly one text")
    } else if media + 1 != parts.len() {
        Some("role is required")
    } else if frames > 0 && media > frames {
        Some("frames exclude references")
    } else if of("last_frame") > of("first_frame") || of("first_frame") > 1 {
        Some("last_frame needs first_frame")
    } else if pictures > 9 || clips > 3 || sounds > 3 || (sounds > 0 && pictures + clips == 0) {
        Some("too many references")
    } else if media == 0 && body["ratio"].as_str().is_none_or(|ratio| ratio == "adaptive") {
        Some("ratio is required for text to video")
    } else {
        None
    };
    if let Some(why) = wrong {
        return numbered2(2013, Some(&format!("invalid params, {why}")));
    }
    let small =
        parts.iter().any(|part| part["image_url"]["url"].as_str().is_some_and(|one| picture::smaller(one, 256)));
    let task = take(call, V2, &body, body["duration"].as_u64().unwrap_or(5), choice, small);
    Answer::took(&task, &json!({"task_id": task.id}))
}

fn poll2(call: &Call<'_>, id: &str) -> Answer {
    let unknown = || error2(400, "bad_request_error", "invalid task_id", 2013);
    match call.book.poll(V2, id) {
        None | Some((_, Phase::Forgotten)) => unknown(),
        Some((_, Phase::Limited)) => numbered2(1002, None),
        Some((_, Phase::Broken)) => numbered2(1024, None),
        Some((task, phase)) => Answer::json(200, &json!({"task": show(call, &task, &phase)})),
    }
}

fn show(call: &Call<'_>, task: &Task, phase: &Phase) -> Value {
    let clips = task.body["content"].as_array().into_iter().flatten().any(|part| part["role"] == "reference_video");
    let source = if clips { 4.0 } else { 0.0 };
    let mut shown = json!({
        "id": task.id, "task_type": "video_generation", "resolution": task.body["resolution"], "duration": task.seconds,
        "ratio": task.body["ratio"], "created_at": task.created, "updated_at": now(),
    });
    let word = match phase {
        Phase::Queued => "queued",
        Phase::Running => "running",
        Phase::Strange => "reviewing",
        Phase::Cancelled => "cancelled",
        Phase::Expired => "expired",
        Phase::Done { url } => {
            if *url {
                shown["content"] = json!({"url": call.link(task, Signing::Oss)});
            }
            if task.tells_usage() {
                let made = f64::from(task.reported_seconds());
                shown["usage"] = json!({
                    "total_seconds": task.spelt(made + source), "input_seconds": task.spelt(source), "output_seconds": task.spelt(made),
                });
            }
            "succeeded"
        }
        _ => {
            let (code, text) = match phase {
                Phase::Moderated => task.reason("1027", "output new_sensitive"),
                _ => task.reason("2013", "invalid params"),
            };
            shown["error"] = json!({"code": code, "message": text});
            "failed"
        }
    };
    shown["status"] = json!(word);
    shown
}

fn list2(call: &Call<'_>) -> Answer {
    let (skip, take) = call.page();
    let (tasks, total) = call.book.list(V2, |_| true, skip, take);
    let shown: Vec<_> = tasks.iter().map(|task| show(call, task, &Phase::Running)).collect();
    Answer::json(200, &json!({"tasks": shown, "total": total}))
}
