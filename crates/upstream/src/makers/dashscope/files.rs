//! Transcripts of long recordings by DashScope (Qwen-ASR filetrans, Fun-ASR, Paraformer). It takes
//! files by their address only, so a recording is put into its own temporary store first. A task
//! writes it down, and the transcript is behind a link.
//!
//! Each channel that is named is billed, so the first one is, and no other.

use super::video::CODES;
use crate::chat::{bearer, post};
use crate::outgoing::outgoing;
use crate::transcription::{
    HeardFacts, LengthReport, RecordingStanding, StoreUpload, Transcriber, TranscriptionAsk, TranscriptionTasks,
};
use crate::video::judge::{ProviderError, Table, Verdict};
use crate::video::read::{id, path_part};
use crate::{Fault, FormPayload, Outgoing, Provider, WholeReply, making};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tollgate_media::transcription::{TranscriptFacts, TranscriptFormat, TranscriptShape, file_ending, media_type};
use tollgate_wire::Problem;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(super) struct DashScopeFiles;

const PATH: &str = "/api/v1/services/audio/asr/transcription";
const CONTENT: &[&str] = &["DataInspectionFailed", "data_inspection_failed"];
/// What it says of files, before the codes of all its tasks.
const FILES: Table = &[
    ("InvalidFile.DownloadFailed", Verdict::Failed),
    ("FILE_DOWNLOAD_FAILED", Verdict::Failed),
    ("InvalidFile*", Verdict::Caller),
    ("FILE_*", Verdict::Caller),
    ("UNSUPPORTED_FORMAT", Verdict::Caller),
    ("DECODE_ERROR", Verdict::Caller),
];
/// Its word for a recording in which nobody speaks.
const SILENT: &str = "SUCCESS_WITH_NO_VALID_FRAGMENT";
const FORMATS: &[TranscriptFormat] = &[
    TranscriptFormat::Json,
    TranscriptFormat::Text,
    TranscriptFormat::Srt,
    TranscriptFormat::Vtt,
    TranscriptFormat::VerboseJson,
];
/// The longest transcript link, and address of a store.
const LONGEST_LINK: usize = 8 << 10;

impl DashScopeFiles {
    /// Whether a model is asked in this way.
    pub fn has(upstream_model: &str) -> bool {
        ["filetrans", "fun-asr", "paraformer"].iter().any(|word| upstream_model.contains(word))
    }
}

impl Transcriber for DashScopeFiles {
    /// A task is begun by [`TranscriptionTasks::begin`].
    fn request(&self, _: &Provider, _: &TranscriptionAsk<'_>) -> Option<Outgoing> {
        None
    }

    fn formats(&self) -> &'static [TranscriptFormat] {
        FORMATS
    }

    fn drops(&self, field: &str) -> bool {
        !matches!(field, "language" | "timestamp_granularities[]")
    }

    fn tasks(&self) -> Option<&'static dyn TranscriptionTasks> {
        Some(&DashScopeFiles)
    }

    fn shape(&self, _: TranscriptFormat) -> Option<&'static TranscriptShape> {
        Some(&TranscriptShape::DASHSCOPE)
    }

    fn facts(&self, ask: &TranscriptionAsk<'_>, rest: &[u8]) -> Result<HeardFacts, Fault> {
        let object: Value = serde_json::from_slice(rest).map_err(|_| Fault::garbage())?;
        let channels = object["transcripts"].as_array().ok_or_else(Fault::garbage)?;
        if channels.iter().any(|channel| !channel["text"].is_string()) {
            return Err(Fault::garbage());
        }
        let theirs = object["properties"]["original_duration_in_milliseconds"].as_u64();
        // It is our own length that is charged for.
        let millis = theirs.or(Some(ask.measured.length.millis()));
        let usage = LengthReport { usage: &Value::Null, seconds: None }.read();
        Ok(HeardFacts { facts: TranscriptFacts { millis, language: None }, usage })
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        failed(reply, &json)
    }
}

impl TranscriptionTasks for DashScopeFiles {
    fn place(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing> {
        let path = format!("/api/v1/uploads?action=getPolicy&model={}", in_query(ask.model));
        let uri = provider.base_url.join(&path).ok()?;
        let mut request = outgoing(Method::GET, uri, "application/json", Bytes::new());
        bearer(&mut request, provider);
        Some(request)
    }

    fn upload(&self, ask: &TranscriptionAsk<'_>, reply: &WholeReply) -> Result<StoreUpload, Fault> {
        let object = reply.json();
        let data = &object["data"];
        let text = |name: &str| data[name].as_str().filter(|text| !text.is_empty() && text.len() <= LONGEST_LINK);
        let needed = |name: &str| text(name).ok_or_else(Fault::garbage);
        let file = ask.file.ok_or_else(Fault::unreachable)?;
        if let Some(most) = data["max_file_size_mb"].as_u64().filter(|most| file.length() > most << 20) {
            let text = format!("`file` is larger than this model's provider stores: {most} MB.");
            return Err(Fault::refusal(Problem::unsupported("file", text)));
        }
        let uri = needed("upload_host")?.parse().map_err(|_| Fault::garbage())?;
        let folder = needed("upload_dir")?.trim_matches('/');
        let key = format!("{folder}/{:032x}.{}", u128::from_be_bytes(ask.drawn), file_ending(ask.measured));
        let name = format!("audio.{}", file_ending(ask.measured));
        // What follows the file is not read, so it stands last.
        let form = FormPayload::new(ask.drawn)
            .field("OSSAccessKeyId", needed("oss_access_key_id")?)
            .field("Signature", needed("signature")?)
            .field("policy", needed("policy")?)
            .field("x-oss-object-acl", text("x_oss_object_acl").unwrap_or("private"))
            .field("x-oss-forbid-overwrite", text("x_oss_forbid_overwrite").unwrap_or("true"))
            .field("key", &key)
            .field("success_action_status", "200")
            .file("file", &name, media_type(ask.measured), file.part());
        let mut request = outgoing(Method::POST, uri, "*/*", Bytes::new());
        request.headers_mut().insert(CONTENT_TYPE, form.content_type());
        *request.body_mut() = form.payload();
        Ok(StoreUpload { request, address: format!("oss://{key}") })
    }

    fn begin(&self, provider: &Provider, ask: &TranscriptionAsk<'_>, address: &str) -> Option<Outgoing> {
        let uri = provider.base_url.join(PATH).ok()?;
        let language = ask.request.get("language");
        let mut parameters = json!({ "channel_id": [0] });
        let input = if ask.model.contains("filetrans") {
            parameters["enable_words"] = json!(ask.request.has("timestamp_granularities[]", "word"));
            if let Some(language) = language {
                parameters["language"] = json!(language);
            }
            json!({ "file_url": address })
        } else {
            if let Some(language) = language {
                parameters["language_hints"] = json!([language]);
            }
            json!({ "file_urls": [address] })
        };
        let body = json!({ "model": ask.model, "input": input, "parameters": parameters });
        let mut request = post(uri, body.to_string().into(), ask.call_id);
        bearer(&mut request, provider);
        let enable = HeaderValue::from_static("enable");
        request.headers_mut().insert("x-dashscope-async", enable.clone());
        // Spelt otherwise, the task fails later.
        request.headers_mut().insert("x-dashscope-ossresourceresolve", enable);
        Some(request)
    }

    fn standing(&self, reply: &WholeReply) -> Result<RecordingStanding, Fault> {
        let object = reply.json();
        let output = &object["output"];
        match output["task_status"].as_str().unwrap_or_default() {
            "SUCCEEDED" => {}
            "FAILED" if output["code"] == SILENT => return Ok(RecordingStanding::Silent),
            "FAILED" => return Err(failed(reply, output)),
            // Cancelled, or an id that nobody knows any more: nothing will come of it.
            "CANCELED" | "UNKNOWN" => return Err(Fault { maybe_charged: false, ..Fault::garbage() }),
            _ => return id(&output["task_id"]).map(RecordingStanding::Open).ok_or_else(Fault::garbage),
        }
        let result = if output["result"].is_object() { &output["result"] } else { &output["results"][0] };
        match (result["transcription_url"].as_str(), result["code"].as_str()) {
            (Some(link), _) if link.len() <= LONGEST_LINK => {
                let report = LengthReport { usage: &object["usage"], seconds: None }.read();
                Ok(RecordingStanding::Done { link: link.to_owned(), report })
            }
            (_, Some(SILENT)) => Ok(RecordingStanding::Silent),
            (_, Some(_)) => Err(failed(reply, result)),
            _ => Err(Fault::garbage()),
        }
    }

    fn poll(&self, provider: &Provider, task: &str) -> Option<Outgoing> {
        let uri = provider.base_url.join(&format!("/api/v1/tasks/{}", path_part(task)?)).ok()?;
        let mut request = outgoing(Method::GET, uri, "application/json", Bytes::new());
        bearer(&mut request, provider);
        Some(request)
    }
}

/// A name as it stands in a query.
fn in_query(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(letter).collect()
}

/// What it says went wrong, with a request, a task or a file.
fn failed(reply: &WholeReply, of: &Value) -> Fault {
    let text = of["message"].as_str().unwrap_or_default();
    let said = of["code"].as_str().map(|code| ProviderError { code, text });
    let fits = |row: &str, code: &str| row.strip_suffix('*').map_or(row == code, |start| code.starts_with(start));
    let of_file = said.as_ref().is_some_and(|said| FILES.iter().any(|(row, _)| fits(row, said.code)));
    making::coded(reply, said, if of_file { FILES } else { CODES }, CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(body: &Value) -> Result<RecordingStanding, Fault> {
        DashScopeFiles.standing(&WholeReply::inside(body))
    }

    #[test]
    fn every_last_word_of_a_task() {
        let open = json!({"output": {"task_id": "t-1", "task_status": "PENDING"}});
        assert_eq!(standing(&open), Ok(RecordingStanding::Open("t-1".to_owned())));
        let done = |output: Value| {
            let mut body = json!({"output": output, "usage": {"seconds": 3}});
            body["output"]["task_status"] = json!("SUCCEEDED");
            body
        };
        for output in [
            json!({"result": {"transcription_url": "https://x/1.json"}}),
            json!({"results": [{"transcription_url": "https://x/1.json", "subtask_status": "SUCCEEDED"}]}),
        ] {
            let Ok(RecordingStanding::Done { link, report }) = standing(&done(output)) else { panic!("it is done") };
            assert_eq!((link.as_str(), report.millis), ("https://x/1.json", Some(3_000)));
        }
        let silent = json!({"results": [{"subtask_status": "FAILED", "code": SILENT}]});
        assert_eq!(standing(&done(silent)), Ok(RecordingStanding::Silent));
        let bad =
            json!({"results": [{"subtask_status": "FAILED", "code": "InvalidFile.DecodeFailed", "message": "no"}]});
        assert!(standing(&done(bad)).is_err_and(|fault| fault.blame == crate::Blame::Caller));
        let lost = json!({"results": [{"subtask_status": "FAILED", "code": "InvalidFile.DownloadFailed"}]});
        assert!(standing(&done(lost)).is_err_and(|fault| fault.blame == crate::Blame::Provider && !fault.try_other));
        for (word, code) in [("FAILED", "InternalError"), ("CANCELED", ""), ("UNKNOWN", "")] {
            let body = json!({"output": {"task_id": "t-1", "task_status": word, "code": code}});
            assert!(standing(&body).is_err_and(|fault| !fault.maybe_charged), "{word}");
        }
        assert!(standing(&done(json!({}))).is_err());
        assert!(standing(&json!({})).is_err());
    }

    /// MM33: the right model on the wrong path was called unknown.
    #[test]
    fn models_that_take_files_by_their_address() {
        for (model, by_address) in [
            ("qwen3-asr-flash-filetrans", true),
            ("qwen-audio-3.0-asr-flash-filetrans", true),
            ("fun-asr", true),
            ("paraformer-v2", true),
            ("qwen3-asr-flash", false),
        ] {
            assert_eq!(DashScopeFiles::has(model), by_address, "{model}");
        }
    }
}
