//! DashScope as documented: asynchronous tasks only, tasks that fail with HTTP 200, times in
//! Beijing without a zone.

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::{Signing, stamp};
use super::picture;
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};

const VENDOR: &str = "dashscope";
const SUBMIT: &str = "/api/v1/services/aigc/video-generation/video-synthesis";

/// The documented codes with their status.
const CODES: &[(&str, u16, &str)] = &[
    ("InvalidApiKey", 401, "Invalid API-key provided."),
    ("Arrearage", 400, "Access denied, please make sure your account is in good standing."),
    ("AccessDenied", 403, "Access denied."),
    ("Model.AccessDenied", 403, "Model access denied."),
    ("AccessDenied.Unpurchased", 403, "Access to model denied. Please purchase it first."),
    ("ModelNotFound", 404, "Model can not be found."),
    ("InvalidParameter", 400, "The parameter is invalid."),
    (
        "InvalidParameter.DataInspection",
        400,
        "Unable to download the media resource during the data inspection process.",
    ),
    ("InvalidURL", 400, "The request URL is invalid."),
    ("DataInspectionFailed", 400, "Input data may contain inappropriate content."),
    ("Throttling", 429, "Requests throttling triggered."),
    ("Throttling.RateQuota", 429, "Requests rate limit exceeded, please try again later."),
    ("Throttling.AllocationQuota", 429, "Allocated quota exceeded, please increase your quota limit."),
    ("insufficient_quota", 429, "You exceeded your current quota."),
    ("InternalError", 500, "An internal error has occured, please try again later."),
    ("InternalError.Algo", 500, "An internal error has occured during execution."),
    ("RequestTimeOut", 500, "Request timed out, please try again later."),
    ("ModelUnavailable", 503, "Model is unavailable, please try again later."),
];

const MEDIA: Is = Is::Obj(&[
    (
        "type",
        Is::OneOf(&[
            "first_frame",
            "last_frame",
            "driving_audio",
            "first_clip",
            "reference_image",
            "reference_video",
            "video",
        ]),
        Must,
    ),
    ("url", Is::Link, Must),
    ("reference_voice", Is::Text, May),
    ("reference_description", Is::Text, May),
]);
const INPUT: Is = Is::Obj(&[
    ("prompt", Is::Text, May),
    ("negative_prompt", Is::Short(500), May),
    ("media", Is::List(1, 10, &MEDIA), May),
    ("audio_url", Is::Link, May),
]);
const RATIO: Is = Is::OneOf(&["16:9", "9:16", "1:1", "4:3", "3:4", "4:5", "5:4", "9:21", "21:9"]);
const PARAMETERS: Is = Is::Obj(&[
    ("resolution", Is::OneOf(&["480P", "720P", "1080P"]), May),
    ("ratio", RATIO, May),
    ("size", Is::Text, May),
    ("duration", Is::Int(0, 15), May),
    ("prompt_extend", Is::Bool, May),
    ("watermark", Is::Bool, May),
    ("seed", Is::Int(0, 2_147_483_647), May),
    ("audio_setting", Is::OneOf(&["auto", "origin"]), May),
]);
const BODY: Is = Is::Obj(&[("model", Is::Text, Must), ("input", INPUT, Must), ("parameters", PARAMETERS, May)]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    if call.bearer().is_err() {
        return error("InvalidApiKey", None);
    }
    if (call.method, call.path) == ("POST", SUBMIT) {
        return submit(call);
    }
    let task = call.path.strip_prefix("/api/v1/tasks/").unwrap_or_default();
    match (call.method, task.split_once('/')) {
        ("GET", None) if !task.is_empty() => poll(call, task),
        ("POST", Some((id, "cancel"))) => cancel(call, id),
        _ => Answer::json(404, &json!({"code": "NotFound", "message": "no such path", "request_id": "r"})),
    }
}

fn error(code: &str, text: Option<&str>) -> Answer {
    let row = CODES.iter().find(|row| row.0 == code);
    let (status, otherwise) = row.map_or((400, "no such code"), |row| (row.1, row.2));
    let request_id = "9f2f0a5c-3c1e-9d2b-8a7e-1c2d3e4f5a6b";
    Answer::json(status, &json!({"code": code, "message": text.unwrap_or(otherwise), "request_id": request_id}))
}

fn submit(call: &Call<'_>) -> Answer {
    if call.header("x-dashscope-async") != Some("enable") {
        return error("AccessDenied", Some("current user api does not support synchronous calls."));
    }
    let body = call.json();
    if let Err((place, why)) = check(&body, &BODY, "") {
        return error("InvalidParameter", Some(&format!("{place} {why}")));
    }
    let model = body["model"].as_str().unwrap_or_default();
    let (wan, kind) = match model.strip_prefix("wan2.7-").map(|kind| (true, kind)) {
        Some(found) => found,
        None => match model.strip_prefix("happyhorse-1.1-") {
            Some(kind) => (false, kind),
            None => return error("ModelNotFound", None),
        },
    };
    let choice = match Choice::of(body["input"]["prompt"].as_str().unwrap_or_default()) {
        Ok(choice) => choice,
        Err(mistake) => return error("InvalidParameter", Some(&mistake)),
    };
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return error("Throttling.RateQuota", None),
        Some(_) => return error("InternalError", None),
        None => {}
    }
    if choice.is("refuse") {
        return error(choice.raw("code").unwrap_or("InvalidParameter"), choice.text("text").as_deref());
    }
    if let Err(why) = rules(&body, wan, kind) {
        return error("InvalidParameter", Some(why));
    }
    take(call, &body, choice, wan)
}

/// What a model takes, beyond the kinds of its fields.
fn rules(body: &Value, wan: bool, kind: &str) -> Result<(), &'static str> {
    let (input, parameters) = (&body["input"], &body["parameters"]);
    let media = input["media"].as_array().cloned().unwrap_or_default();
    let of = |kind: &str| media.iter().filter(|one| one["type"] == kind).count();
    if input["prompt"].is_null() && kind != "i2v" {
        return Err("prompt is required");
    }
    if !wan && ["negative_prompt", "audio_url"].iter().any(|name| !input[*name].is_null()) {
        return Err("input has fields this model does not take");
    }
    if !wan && !parameters["prompt_extend"].is_null() {
        return Err("prompt_extend is not a known parameter");
    }
    if wan && parameters["resolution"] == "480P" {
        return Err("The resolution is not valid");
    }
    if matches!(kind, "i2v" | "videoedit") && !parameters["ratio"].is_null() {
        return Err("ratio is not a parameter of this model");
    }
    let seconds = parameters["duration"].as_i64();
    let (least, most) = match (wan, kind) {
        (true, "videoedit") => (0, 10),
        (true, "r2v") if of("reference_video") > 0 => (2, 10),
        (true, _) => (2, 15),
        (false, _) => (3, 15),
    };
    if seconds.is_some_and(|seconds| !(least..=most).contains(&seconds) || (seconds == 1 && kind == "videoedit")) {
        return Err("duration is out of range");
    }
    let fits = match (wan, kind) {
        (_, "t2v") => media.is_empty(),
        (true, "i2v") => {
            of("first_frame") + of("first_clip") == 1 && of("reference_image") + of("reference_video") == 0
        }
        (true, "r2v") => {
            let together = of("reference_image") + of("reference_video");
            (1..=5).contains(&together) && of("reference_video") <= 3 && of("first_frame") <= 1
        }
        (true, "videoedit") => of("video") == 1 && of("reference_image") <= 3,
        (false, "i2v") => of("first_frame") == 1 && media.len() == 1,
        (false, "r2v") => (1..=9).contains(&media.len()) && of("reference_image") == media.len(),
        _ => return Err("The model does not exist"),
    };
    if fits { Ok(()) } else { Err("media does not fit the model") }
}

fn take(call: &Call<'_>, body: &Value, choice: Choice, wan: bool) -> Answer {
    let seconds = body["parameters"]["duration"].as_u64().unwrap_or(5);
    let media = body["input"]["media"].as_array().cloned().unwrap_or_default();
    let least = if wan { 240 } else { 300 };
    let small = media.iter().any(|one| one["url"].as_str().is_some_and(|url| picture::smaller(url, least)));
    let odd = wan && matches!(body["parameters"]["size"].as_str(), Some("832*480" | "480*832" | "624*624"));
    let doomed = if odd {
        Some("The resolution is not valid.")
    } else if small {
        Some("The width and height of the image must be at least 240 pixels.")
    } else {
        None
    };
    let new = New {
        vendor: VENDOR,
        call: "video-synthesis".to_string(),
        model: body["model"].as_str().unwrap_or_default().to_string(),
        external: None,
        seconds: u32::try_from(seconds).unwrap_or(5),
        body: body.clone(),
        choice,
        doomed: doomed.map(|text| ("InvalidParameter".to_string(), text.to_string())),
    };
    let task = call.add(new, |number| format!("0385dc79-5ff8-4d82-bcb6-{number:012x}"));
    let output = json!({"task_status": "PENDING", "task_id": task.id});
    Answer::took(&task, &json!({"output": output, "request_id": "4909100c-7b5a-9f92-bfe5-000000000001"}))
}

fn poll(call: &Call<'_>, id: &str) -> Answer {
    let forgotten = json!({"output": {"task_id": id, "task_status": "UNKNOWN"}, "request_id": "r-1"});
    let Some((task, phase)) = call.book.poll(VENDOR, id) else { return Answer::json(200, &forgotten) };
    let mut output = json!({"task_id": id, "submit_time": local(task.created), "scheduled_time": local(task.created)});
    let word = match phase {
        Phase::Limited => return error("Throttling.RateQuota", None),
        Phase::Broken => return error("InternalError", None),
        Phase::Forgotten | Phase::Expired => return Answer::json(200, &forgotten),
        Phase::Queued => "PENDING",
        Phase::Running => "RUNNING",
        Phase::Strange => "POSTPROCESSING",
        Phase::Cancelled => "CANCELED",
        Phase::Failed | Phase::Moderated => {
            let (code, text) = match phase {
                Phase::Moderated => {
                    task.reason("DataInspectionFailed", "Output data may contain inappropriate content.")
                }
                _ => task.reason("InvalidParameter", "The resolution is not valid."),
            };
            output["code"] = json!(code);
            output["message"] = json!(text);
            "FAILED"
        }
        Phase::Done { url } => {
            output["end_time"] = json!(local(task.created + 60));
            output["orig_prompt"] = task.body["input"]["prompt"].clone();
            if url {
                output["video_url"] = json!(call.link(&task, Signing::Oss));
            }
            "SUCCEEDED"
        }
    };
    output["task_status"] = json!(word);
    let mut answer = json!({"output": output, "request_id": "r-1"});
    if matches!(phase, Phase::Done { .. }) && task.tells_usage() {
        answer["usage"] = usage(&task);
    }
    Answer::json(200, &answer)
}

/// An edit counts source and output; the sample of the documents is 6.62 seconds long.
fn usage(task: &Task) -> Value {
    let edit = task.model.ends_with("videoedit");
    let over = f64::from(task.choice.number("over_ms", 0)) / 1_000.0;
    let made = if edit && task.seconds == 0 { 6.62 } else { f64::from(task.reported_seconds()) + over };
    let source = if edit { 6.62 } else { 0.0 };
    json!({
        "duration": task.spelt(made + source), "input_video_duration": task.spelt(source),
        "output_video_duration": task.spelt(made), "video_count": 1, "SR": tier(task), "ratio": "16:9",
    })
}

/// The tier that is made: the named one, else that of the size where sizes are read, else the
/// highest.
fn tier(task: &Task) -> u32 {
    let parameters = &task.body["parameters"];
    if let Some(named) = parameters["resolution"].as_str() {
        return named.trim_end_matches('P').parse().unwrap_or(0);
    }
    let size = parameters["size"].as_str().filter(|_| !task.choice.is("sizeless"));
    let sides = size.and_then(|size| size.split_once('*'));
    let pixels = sides.and_then(|(width, height)| Some(width.parse::<u32>().ok()? * height.parse::<u32>().ok()?));
    match pixels {
        Some(0..=400_000) => 480,
        Some(400_001..=930_000) => 720,
        _ => 1080,
    }
}

fn cancel(call: &Call<'_>, id: &str) -> Answer {
    match call.book.cancel(VENDOR, id) {
        Some(true) => Answer::json(200, &json!({"request_id": "r-1"})),
        _ => Answer::json(
            400,
            &json!({"code": "UnsupportedOperation", "message": "The task is not pending.", "request_id": "r-1"}),
        ),
    }
}

/// `2026-08-10 18:13:47.000`, eight hours ahead and without saying so.
fn local(unix: i64) -> String {
    let text = stamp(unix + 8 * 3600);
    let part = |from: usize, to: usize| &text[from..to];
    format!("{}-{}-{} {}:{}:{}.000", part(0, 4), part(4, 6), part(6, 8), part(9, 11), part(11, 13), part(13, 15))
}
