//! DashScope's recognition of files, as documented: a policy for its temporary store, the store
//! itself, tasks, and transcripts behind links. Strict: a misspelt header makes the task fail
//! later, and a key that reaches the store is refused.

use super::form::Form;
use super::scenario::Wish;
use super::{Act, Heard, is_named_rightly, text};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const BASE: &str = "/video/dashscope";
const FOLDER: &str = "dashscope-instant/sim/2026-11-16";

/// What is in the store, and the tasks.
#[derive(Default)]
pub(crate) struct Recordings(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    /// Bytes of each file, by its address.
    files: BTreeMap<String, usize>,
    tasks: Vec<Task>,
}

#[derive(Clone)]
struct Task {
    model: String,
    wish: Wish,
    bytes: usize,
    /// The file cannot be read: why.
    trouble: Option<&'static str>,
    polls: u64,
}

impl Recordings {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn is_ours(path: &str) -> bool {
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    matches!(rest, "/api/v1/uploads" | "/oss" | "/api/v1/services/audio/asr/transcription")
        || rest.starts_with("/api/v1/tasks/asr-")
        || rest.starts_with("/transcripts/")
}

pub(super) fn answer(heard: &Heard<'_>) -> Act {
    let path = heard.parts.uri.path();
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    let keyed = heard.parts.headers.contains_key("authorization");
    match rest {
        // It is another server, and whoever runs it would have the key.
        _ if keyed && !rest.starts_with("/api/") => refuse(400, "InvalidArgument", "Only one auth mechanism allowed"),
        "/oss" => store(heard),
        _ if rest.starts_with("/transcripts/") => transcript(heard, rest),
        _ if !heard.header("authorization").starts_with("Bearer ")
            || heard.header("authorization").contains("wrong") =>
        {
            refuse(401, "InvalidApiKey", "Invalid API-key provided.")
        }
        "/api/v1/uploads" => policy(heard),
        "/api/v1/services/audio/asr/transcription" => begin(heard),
        _ => poll(heard, rest),
    }
}

fn refuse(status: u16, code: &str, message: &str) -> Act {
    Act::refused(status, &json!({"code": code, "message": message, "request_id": "sim-0f1e2d3c"}))
}

fn policy(heard: &Heard<'_>) -> Act {
    let query = heard.parts.uri.query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    let (Some("getPolicy"), Some(model)) = (value("action"), value("model")) else {
        return refuse(400, "InvalidParameter", "action and model are required");
    };
    let wish = match Wish::of(&model.replace("%2B", "+").replace("%3D", "="), "") {
        Ok((_, wish)) => wish,
        Err(why) => return refuse(400, "InvalidParameter", &why),
    };
    if wish.is("nostore") {
        return refuse(500, "InternalError", "sim-store.internal failed");
    }
    Act::refused(
        200,
        &json!({"request_id": "sim-1", "data": {
            "policy": "eyJzaW0iOiJwb2xpY3kifQ==", "signature": "c2lt", "upload_dir": FOLDER,
            "upload_host": format!("http://{}{BASE}/oss", heard.header("host")), "expire_in_seconds": 300,
            "max_file_size_mb": wish.number("mb").unwrap_or(2_048), "capacity_limit_mb": 999_999_999_u64,
            "oss_access_key_id": "LTAIsim", "x_oss_object_acl": "private", "x_oss_forbid_overwrite": "true",
        }}),
    )
}

fn store(heard: &Heard<'_>) -> Act {
    let form = match Form::read(heard) {
        Ok(form) => form,
        Err(why) => return refuse(400, "MalformedPOSTRequest", &why),
    };
    let wanted = [
        ("OSSAccessKeyId", "LTAIsim"),
        ("Signature", "c2lt"),
        ("policy", "eyJzaW0iOiJwb2xpY3kifQ=="),
        ("x-oss-object-acl", "private"),
        ("x-oss-forbid-overwrite", "true"),
        ("success_action_status", "200"),
    ];
    if let Some((name, _)) = wanted.iter().find(|(name, value)| form.get(name) != Some(value)) {
        return refuse(403, "AccessDenied", &format!("Invalid according to Policy: {name}"));
    }
    let key = form.get("key").unwrap_or_default();
    let named = form.file.as_ref().filter(|file| file.field == "file" && is_named_rightly(key, &file.start));
    let Some(file) = named.filter(|_| key.starts_with(&format!("{FOLDER}/"))) else {
        return refuse(403, "AccessDenied", "Invalid according to Policy: key");
    };
    let taken = heard.shelf.lock().files.insert(format!("oss://{key}"), file.length).is_some();
    match taken {
        true => refuse(409, "FileAlreadyExists", "The object you specified already exists"),
        false => Act { pieces: vec![Bytes::new()], ..Act::refused(200, &Value::Null) },
    }
}

fn begin(heard: &Heard<'_>) -> Act {
    let bad = |why: &str| refuse(400, "InvalidParameter", why);
    if heard.header("x-dashscope-async") != "enable" {
        return refuse(403, "AccessDenied", "current user api does not support synchronous calls.");
    }
    let Ok(body) = serde_json::from_slice::<Value>(&heard.body) else { return bad("Request body format invalid") };
    let whole = body["model"].as_str().unwrap_or_default().to_string();
    let (name, wish) = match Wish::of(&whole, "") {
        Ok(found) => found,
        Err(why) => return bad(&why),
    };
    let filetrans = name.contains("filetrans");
    if !filetrans && !name.starts_with("fun-asr") && !name.starts_with("paraformer") {
        return bad(&format!("model {name} is not supported on this path"));
    }
    let parameters: &[&str] =
        if filetrans { &["channel_id", "language", "enable_words"] } else { &["channel_id", "language_hints"] };
    let input = if filetrans { "file_url" } else { "file_urls" };
    for (of, known) in
        [(&body, &["model", "input", "parameters"][..]), (&body["input"], &[input]), (&body["parameters"], parameters)]
    {
        let Some(members) = of.as_object() else { return bad("an object is missing") };
        if let Some(odd) = members.keys().find(|member| !known.contains(&member.as_str())) {
            return bad(&format!("unknown member {odd}"));
        }
    }
    if body["parameters"]["channel_id"] != json!([0]) {
        return bad("channel_id: each of them is billed");
    }
    let address = if filetrans { &body["input"][input] } else { &body["input"][input][0] };
    let mut inside = heard.shelf.lock();
    let bytes = address.as_str().and_then(|address| inside.files.get(address)).copied();
    let refused = match wish.name() {
        "error400" => Some(bad("Unable to read the media at oss.sim.internal.")),
        "error429" => Some(refuse(429, "Throttling.RateQuota", "Requests rate limit exceeded.")),
        "error500" => Some(refuse(500, "InternalError", "An internal error has occured.")),
        _ => None,
    };
    if let Some(refused) = refused {
        return Act { model: name.to_string(), wish, ..refused };
    }
    let trouble = match (wish.name(), bytes, heard.header("x-dashscope-ossresourceresolve")) {
        ("moderation", _, _) => Some("DataInspectionFailed"),
        ("failed", _, _) => Some("InternalError.Algo"),
        ("silent", _, _) => Some("SUCCESS_WITH_NO_VALID_FRAGMENT"),
        ("undecodable", _, _) => Some("InvalidFile.DecodeFailed"),
        (_, Some(_), "enable") => None,
        _ => Some("InvalidFile.DownloadFailed"),
    };
    let task = Task { model: name.to_string(), wish: wish.clone(), bytes: bytes.unwrap_or(0), trouble, polls: 0 };
    inside.tasks.push(task);
    let id = format!("asr-{}", inside.tasks.len());
    let reply = json!({"request_id": "sim-2", "output": {"task_id": id, "task_status": "PENDING"}});
    match wish.name() {
        "garbage" => Act { pieces: vec![Bytes::from_static(b"{\"output\": {")], ..Act::json(name, wish, &Value::Null) },
        _ => Act::json(name, wish, &reply),
    }
}

fn task<'t>(inside: &'t mut Inside, id: &str) -> Option<&'t mut Task> {
    let at: usize = id.strip_prefix("asr-")?.parse().ok()?;
    inside.tasks.get_mut(at.checked_sub(1)?)
}

fn poll(heard: &Heard<'_>, rest: &str) -> Act {
    let id = rest.rsplit('/').next().unwrap_or_default();
    let mut inside = heard.shelf.lock();
    let Some(task) = task(&mut inside, id) else {
        return Act::refused(200, &json!({"output": {"task_id": id, "task_status": "UNKNOWN"}}));
    };
    task.polls += 1;
    if task.wish.is("pollerror") && (task.polls < 3 || task.wish.text("ever").is_some()) {
        return refuse(500, "InternalError", "An internal error has occured.");
    }
    if task.polls < 2 || task.wish.is("never") {
        return Act::refused(200, &json!({"output": {"task_id": id, "task_status": "RUNNING"}}));
    }
    let seconds = task.wish.seconds().unwrap_or(3.0);
    let link = format!("http://{}{BASE}/transcripts/{id}.json?Expires=4000000000", heard.header("host"));
    let filetrans = task.model.contains("filetrans");
    let output = match (task.trouble, filetrans) {
        (None, true) => json!({"task_status": "SUCCEEDED", "result": {"transcription_url": link}}),
        (None, false) => {
            let result = json!({"file_url": "oss://x", "transcription_url": link, "subtask_status": "SUCCEEDED"});
            json!({"task_status": "SUCCEEDED", "results": [result]})
        }
        (Some(code), true) => json!({"task_status": "FAILED", "code": code, "message": "sim-7.internal says no"}),
        (Some(code), false) => {
            let result = json!({"subtask_status": "FAILED", "code": code, "message": "sim-7.internal says no"});
            json!({"task_status": "SUCCEEDED", "results": [result]})
        }
    };
    let usage = if filetrans { json!({"seconds": seconds}) } else { json!({"duration": seconds}) };
    Act::refused(200, &json!({"request_id": "sim-3", "output": output, "usage": usage}))
}

/// Words of a sentence.
const SENTENCE: usize = 40;

fn transcript(heard: &Heard<'_>, rest: &str) -> Act {
    let id = rest.trim_start_matches("/transcripts/").trim_end_matches(".json");
    let mut inside = heard.shelf.lock();
    let Some(task) = task(&mut inside, id).filter(|task| !task.wish.is("nolink")) else {
        return Act { content_type: "application/xml", ..refuse(404, "NoSuchKey", "<Error/>") };
    };
    let said = text(task.bytes, &task.wish);
    let word = |at: u64, word: &str| json!({"begin_time": at * 400, "end_time": at * 400 + 300, "text": word, "punctuation": ""});
    let words: Vec<(&str, u64)> = said.split_whitespace().zip(0..).collect();
    let sentence = |(number, words): (usize, &[(&str, u64)])| {
        let (first, last) = (words[0].1, words[words.len() - 1].1);
        let text = words.iter().map(|(one, _)| *one).collect::<Vec<_>>().join(" ");
        let words: Vec<Value> = words.iter().map(|(one, at)| word(*at, one)).collect();
        json!({
            "sentence_id": number, "begin_time": first * 400, "end_time": last * 400 + 700, "text": text,
            "language": "en", "words": words,
        })
    };
    let sentences: Vec<Value> = words.chunks(SENTENCE).enumerate().map(sentence).collect();
    Act::refused(
        200,
        &json!({
            "file_url": "oss://x", "audio_info": {"format": "wav", "sample_rate": 16_000},
            "transcripts": [{"channel_id": 0, "text": said, "sentences": sentences}],
        }),
    )
}
