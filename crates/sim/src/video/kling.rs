//! Kling as documented: one envelope for everything, numbers for errors, v1 with its omni
//! operation, and API 2.0.

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::{Signing, now};
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};
use super::{jwt, picture};

const VENDOR: &str = "kling";
const TAKEN: &str = "external_task_id already exists";

const CODES: &[(i64, u16, &str)] = &[
    (1000, 401, "Authentication failed"),
    (1001, 401, "Authorization is empty"),
    (1002, 401, "Authorization is invalid"),
    (1003, 401, "Authorization is not active yet"),
    (1004, 401, "Authorization is expired"),
    (1100, 429, "Account exception"),
    (1101, 429, "Account in arrears"),
    (1102, 429, "Resource pack depleted or expired"),
    (1103, 403, "Unauthorized access to requested resource"),
    (1200, 400, "Invalid request parameters"),
    (1201, 400, "Invalid parameters"),
    (1202, 404, "Invalid request method"),
    (1203, 404, "Requested resource does not exist"),
    (1300, 400, "Trigger platform strategy"),
    (1301, 400, "Trigger content security policy"),
    (1302, 429, "API request is too frequent"),
    (1303, 429, "parallel task over resource pack limit"),
    (1304, 429, "Trigger IP whitelist policy"),
    (5000, 500, "Server internal error"),
    (5001, 503, "Server temporarily unavailable"),
    (5002, 504, "Server internal timeout"),
];

const MODE: Is = Is::OneOf(&["std", "pro", "4k"]);
const SOUND: Is = Is::OneOf(&["on", "off"]);
const RATIO: Is = Is::OneOf(&["16:9", "9:16", "1:1"]);
const MARK: Is = Is::Obj(&[("enabled", Is::Bool, Must)]);
const TURN: Is = Is::Num(-10.0, 10.0);
const CAMERA: Is = Is::Obj(&[
    ("type", Is::OneOf(&["simple", "down_back", "forward_up", "right_turn_forward", "left_turn_forward"]), Must),
    (
        "config",
        Is::Obj(&[
            ("horizontal", TURN, May),
            ("vertical", TURN, May),
            ("pan", TURN, May),
            ("tilt", TURN, May),
            ("roll", TURN, May),
            ("zoom", TURN, May),
        ]),
        May,
    ),
]);
const SHOT: Is = Is::Obj(&[
    ("index", Is::Int(1, 6), Must),
    ("prompt", Is::Short(512), Must),
    ("duration", Is::IntText(1, 15), Must),
]);
const ELEMENT: Is = Is::Obj(&[("element_id", Is::Text, Must)]);
const VOICE: Is = Is::Obj(&[("voice_id", Is::Text, Must)]);
const POINT: Is = Is::Obj(&[("x", Is::Num(0.0, 100_000.0), Must), ("y", Is::Num(0.0, 100_000.0), Must)]);
const MASK: Is = Is::Obj(&[("mask", Is::Link, Must), ("trajectories", Is::List(2, 77, &POINT), Must)]);

/// What all operations of v1 take.
macro_rules! v1 {
    ($($more:tt)*) => {
        Is::Obj(&[
            ("model_name", Is::Text, Must),
            ("negative_prompt", Is::Short(2500), May),
            ("duration", Is::IntText(3, 15), May),
            ("mode", MODE, May),
            ("sound", SOUND, May),
            ("multi_shot", Is::Bool, May),
            ("shot_type", Is::OneOf(&["customize", "intelligence"]), May),
            ("multi_prompt", Is::List(1, 6, &SHOT), May),
            ("watermark_info", MARK, May),
            ("callback_url", Is::Link, May),
            ("external_task_id", Is::Text, May),
            $($more)*
        ])
    };
}

const TEXT: Is = v1! {
    ("prompt", Is::Short(2500), Must), ("cfg_scale", Is::Num(0.0, 1.0), May), ("camera_control", CAMERA, May),
    ("aspect_ratio", RATIO, May),
};
const IMAGE: Is = v1! {
    ("prompt", Is::Short(2500), May), ("cfg_scale", Is::Num(0.0, 1.0), May), ("camera_control", CAMERA, May),
    ("image", Is::Link, May), ("image_tail", Is::Link, May), ("element_list", Is::List(1, 3, &ELEMENT), May),
    ("voice_list", Is::List(1, 2, &VOICE), May), ("static_mask", Is::Link, May),
    ("dynamic_masks", Is::List(1, 6, &MASK), May),
};
const OMNI: Is = v1! {
    ("prompt", Is::Short(2500), May), ("aspect_ratio", RATIO, May), ("element_list", Is::List(1, 7, &ELEMENT), May),
    ("image_list", Is::List(1, 7, &Is::Obj(&[("image_url", Is::Link, Must), ("type", Is::OneOf(&["first_frame", "end_frame"]), May)])), May),
    ("video_list", Is::List(1, 1, &Is::Obj(&[
        ("video_url", Is::Link, Must), ("refer_type", Is::OneOf(&["feature", "base"]), May),
        ("keep_original_sound", Is::OneOf(&["yes", "no"]), May),
    ])), May),
};
const SETTINGS: Is = Is::Obj(&[
    ("resolution", Is::OneOf(&["720p", "1080p"]), May),
    ("aspect_ratio", RATIO, May),
    ("duration", Is::Int(3, 15), May),
]);
const STILL: Is = Is::Obj(&[("resolution", Is::OneOf(&["720p", "1080p"]), May), ("duration", Is::Int(3, 15), May)]);
const OPTIONS: Is =
    Is::Obj(&[("callback_url", Is::Link, May), ("external_task_id", Is::Text, May), ("watermark_info", MARK, May)]);
const CONTENT: Is = Is::Obj(&[
    ("type", Is::OneOf(&["prompt", "first_frame"]), Must),
    ("text", Is::Short(3072), May),
    ("url", Is::Link, May),
]);
const TURBO_TEXT: Is =
    Is::Obj(&[("prompt", Is::Short(3072), Must), ("settings", SETTINGS, May), ("options", OPTIONS, May)]);
const TURBO_IMAGE: Is =
    Is::Obj(&[("contents", Is::List(2, 2, &CONTENT), Must), ("settings", STILL, May), ("options", OPTIONS, May)]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    if let Err((code, text)) = admitted(call) {
        return error(code, Some(text));
    }
    let parts: Vec<_> = call.path.trim_start_matches('/').split('/').collect();
    match (call.method, &parts[..]) {
        ("POST", ["v1", "videos", "text2video"]) => submit(call, "text2video", &TEXT),
        ("POST", ["v1", "videos", "image2video"]) => submit(call, "image2video", &IMAGE),
        ("POST", ["v1", "videos", "omni-video"]) => submit(call, "omni-video", &OMNI),
        ("POST", ["text-to-video", "kling-3.0-turbo"]) => submit(call, "text-to-video", &TURBO_TEXT),
        ("POST", ["image-to-video", "kling-3.0-turbo"]) => submit(call, "image-to-video", &TURBO_IMAGE),
        ("GET", ["v1", "videos", operation, id]) => poll(call, operation, id),
        ("GET", ["tasks"]) => tasks(call),
        _ => error(1202, None),
    }
}

/// A plain key, or a token.
fn admitted(call: &Call<'_>) -> Result<(), (i64, &'static str)> {
    let key = call.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if key.matches('.').count() == 2 {
        return jwt::check(key, now());
    }
    match call.bearer() {
        Ok(_) => Ok(()),
        Err(false) => Err((1001, "Authorization is empty")),
        Err(true) => Err((1002, "Authorization is invalid")),
    }
}

fn error(code: i64, text: Option<&str>) -> Answer {
    let row = CODES.iter().find(|row| row.0 == code);
    let (status, otherwise) = row.map_or((400, "no such code"), |row| (row.1, row.2));
    Answer::json(
        status,
        &json!({"code": code, "message": text.unwrap_or(otherwise), "request_id": "CjhHSGjZ1SAAAAAAB8Xh8g"}),
    )
}

fn ok(data: &Value) -> Value {
    json!({"code": 0, "message": "SUCCEED", "request_id": "CjhHSGjZ1SAAAAAAB8Xh8g", "data": data})
}

fn submit(call: &Call<'_>, operation: &str, shape: &Is) -> Answer {
    let body = call.json();
    if let Err((place, why)) = check(&body, shape, "") {
        return error(1201, Some(&format!("{place} {why}")));
    }
    let newer = operation.contains('-') && operation != "omni-video";
    let prompt = body["prompt"].as_str().or_else(|| body["contents"][0]["text"].as_str()).unwrap_or_default();
    let choice = match Choice::of(prompt) {
        Ok(choice) => choice,
        Err(mistake) => return error(1201, Some(&mistake)),
    };
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return error(1303, None),
        Some(_) => return error(5000, None),
        None => {}
    }
    if choice.is("refuse") {
        let code = choice.raw("code").and_then(|code| code.parse().ok()).unwrap_or(1201);
        return error(code, choice.text("text").as_deref());
    }
    if let Err(why) = rules(&body, operation) {
        return error(1201, Some(why));
    }
    let external = if newer { &body["options"]["external_task_id"] } else { &body["external_task_id"] };
    let external = external.as_str().map(str::to_string);
    if external.as_deref().is_some_and(|external| call.book.by_external(VENDOR, external).is_some()) {
        return error(1201, Some(TAKEN));
    }
    let task = call.add(new(body, operation, newer, external, choice), |number| format!("8479{number:014}"));
    if task.choice.is("taken") {
        let refused = error(1201, Some(TAKEN));
        return Answer { status: refused.status, body: refused.body, ..Answer::took(&task, &Value::Null) };
    }
    let data = if newer {
        json!({"id": task.id, "status": "submitted", "create_time": task.created * 1000, "update_time": task.created * 1000, "external_id": task.external})
    } else {
        let info = json!({"external_task_id": task.external});
        json!({"task_id": task.id, "task_status": "submitted", "task_info": info, "created_at": task.created * 1000, "updated_at": task.created * 1000})
    };
    Answer::took(&task, &ok(&data))
}

fn new(body: Value, operation: &str, newer: bool, external: Option<String>, choice: Choice) -> New {
    let seconds = if newer {
        body["settings"]["duration"].as_u64().unwrap_or(5)
    } else {
        body["duration"].as_str().and_then(|text| text.parse().ok()).unwrap_or(5)
    };
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    let (listed, contents) = (list("image_list"), list("contents"));
    let frames = contents.iter().map(|one| &one["url"]).chain([&body["image"], &body["image_tail"]]);
    let pictures = listed.iter().map(|one| &one["image_url"]).chain(frames);
    let small = pictures.filter_map(Value::as_str).any(|one| picture::smaller(one, 300));
    let model = body["model_name"].as_str().unwrap_or("kling-3.0-turbo").to_string();
    New {
        vendor: VENDOR,
        call: operation.to_string(),
        model,
        external,
        seconds: u32::try_from(seconds).unwrap_or(5),
        body,
        choice,
        // Too small a picture passes submission.
        doomed: small.then(|| (String::new(), "Image pixel is invalid".to_string())),
    }
}

fn rules(body: &Value, operation: &str) -> Result<(), &'static str> {
    let images = body["image_list"].as_array().cloned().unwrap_or_default();
    let video = &body["video_list"][0];
    let of = |kind: &str| images.iter().filter(|image| image["type"] == kind).count();
    if !shots_fit(body) {
        return Err("the durations of multi_prompt must add up to duration");
    }
    match operation {
        "image2video" if body["image"].is_null() && body["image_tail"].is_null() => {
            Err("image or image_tail is required")
        }
        "image2video" | "text2video" if ["image", "image_tail"].iter().any(|name| is_data(&body[*name])) => {
            Err("image must be a link or bare base64")
        }
        "image2video" if !exclude_each_other(body) => Err("these parameters exclude each other"),
        "omni-video" if !video.is_null() && body["sound"] == "on" => Err("sound must be off with video"),
        "omni-video" if !video.is_null() && images.len() > 4 => Err("at most 4 images with a video"),
        "omni-video" if of("end_frame") > of("first_frame") => Err("end_frame needs first_frame"),
        "omni-video" => {
            let edits = !video.is_null() && video["refer_type"] != "feature";
            let needs_ratio = of("first_frame") == 0 && !edits;
            if needs_ratio && body["aspect_ratio"].is_null() { Err("aspect_ratio is required") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// A closing frame, masks and camera moves; elements and voices.
fn exclude_each_other(body: &Value) -> bool {
    let has = |name: &str| !body[name].is_null();
    let masks = has("static_mask") || has("dynamic_masks");
    let ways = [has("image_tail"), masks, has("camera_control")].into_iter().filter(|one| *one).count();
    ways < 2 && !(has("element_list") && has("voice_list"))
}

fn shots_fit(body: &Value) -> bool {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u32>().ok()).unwrap_or(5);
    let shots = body["multi_prompt"].as_array();
    shots.is_none_or(|shots| {
        shots.iter().map(|shot| number(&shot["duration"])).sum::<u32>() == number(&body["duration"])
    })
}

fn is_data(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("data:"))
}

fn poll(call: &Call<'_>, operation: &str, id: &str) -> Answer {
    let found = call.book.get(VENDOR, id).or_else(|| call.book.by_external(VENDOR, id));
    let Some(known) = found.filter(|task| task.call == operation) else {
        return error(1203, None);
    };
    // Looking a task up by the caller's own id is no poll of its progress.
    if known.id != id {
        return match call.book.search(VENDOR, &known.id) {
            Some(Phase::Broken) => error(5000, None),
            Some(Phase::Forgotten) | None => error(1203, None),
            Some(_) => Answer::json(200, &ok(&older(call, &known, &Phase::Queued))),
        };
    }
    match call.book.poll(VENDOR, id) {
        Some((_, Phase::Limited)) => error(1302, None),
        Some((_, Phase::Broken)) => error(5000, None),
        Some((_, Phase::Forgotten)) | None => error(1203, None),
        Some((task, phase)) => Answer::json(200, &ok(&older(call, &task, &phase))),
    }
}

fn older(call: &Call<'_>, task: &Task, phase: &Phase) -> Value {
    let mut shown = json!({
        "task_id": task.id, "task_status_msg": "", "task_info": {"external_task_id": task.external}, "task_result": {},
        "created_at": task.created * 1000, "updated_at": now() * 1000,
    });
    let word = match phase {
        Phase::Queued => "submitted",
        Phase::Running => "processing",
        Phase::Strange => "reviewing",
        Phase::Done { url } => {
            if *url {
                let link = call.link(task, Signing::Plain);
                let mut video = json!({"id": "v1", "url": link, "watermark_url": ""});
                if task.tells_usage() {
                    video["duration"] = json!(format!("{}.1", task.reported_seconds()));
                }
                shown["task_result"] = json!({"videos": [video]});
            }
            shown["final_unit_deduction"] = json!("3.5");
            "succeed"
        }
        _ => {
            shown["task_status_msg"] = json!(why(task, phase));
            "failed"
        }
    };
    shown["task_status"] = json!(word);
    shown
}

fn why(task: &Task, phase: &Phase) -> String {
    match phase {
        Phase::Moderated => "Failure to pass the risk control system".to_string(),
        _ => task.reason("", "Server internal error").1,
    }
}

fn tasks(call: &Call<'_>) -> Answer {
    if let Some(external) = call.asked("external_task_ids") {
        let found: Vec<_> = external.split(',').filter_map(|id| call.book.by_external(VENDOR, id)).collect();
        let shown: Vec<_> = found.iter().map(|task| newer(call, task, &Phase::Queued)).collect();
        return Answer::json(200, &ok(&json!(shown)));
    }
    let mut shown = Vec::new();
    for id in call.asked("task_ids").unwrap_or_default().split(',') {
        match call.book.poll(VENDOR, id) {
            Some((_, Phase::Limited)) => return error(1302, None),
            Some((_, Phase::Broken)) => return error(5000, None),
            Some((_, Phase::Forgotten)) | None => {}
            Some((task, phase)) => shown.push(newer(call, &task, &phase)),
        }
    }
    Answer::json(200, &ok(&json!(shown)))
}

fn newer(call: &Call<'_>, task: &Task, phase: &Phase) -> Value {
    let mut shown = json!({
        "id": task.id, "message": "", "create_time": task.created * 1000, "update_time": now() * 1000,
        "external_id": task.external, "outputs": [], "billing": [],
    });
    let word = match phase {
        Phase::Queued => "submitted",
        Phase::Running => "processing",
        Phase::Strange => "reviewing",
        Phase::Done { url } => {
            if *url {
                let link = call.link(task, Signing::Plain);
                let mut video = json!({"type": "video", "id": "v1", "url": link, "watermark_url": ""});
                if task.tells_usage() {
                    video["duration"] = task.spelt(f64::from(task.reported_seconds()));
                }
                shown["outputs"] = json!([video]);
            }
            shown["billing"] =
                json!([{"charge_type": "cash", "cash_type": "balance", "amount": "0.56", "currency": "USD"}]);
            "succeeded"
        }
        _ => {
            shown["message"] = json!(why(task, phase));
            "failed"
        }
    };
    shown["status"] = json!(word);
    shown
}
