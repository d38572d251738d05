//! Whatever a provider answers, an adaptor reads it without falling over, and never takes nonsense
//! for a task or a video.

use super::house::Prompt;
use super::makers::MAKERS;
use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_upstream::video::{Handle, Sought, VideoStanding};
use tollgate_upstream::{WholeReply, kind};

/// Names and words that occur in real answers.
const NAMES: &[&str] = &[
    "output",
    "task_id",
    "task_status",
    "data",
    "code",
    "message",
    "id",
    "status",
    "error",
    "content",
    "video_url",
    "url",
    "usage",
    "duration",
    "total_tokens",
    "task",
    "base_resp",
    "status_code",
    "file_id",
    "file",
    "download_url",
    "items",
    "total",
    "tasks",
    "name",
    "done",
    "response",
    "generateVideoResponse",
    "generatedSamples",
    "video",
    "uri",
    "videos",
    "task_result",
    "outputs",
    "type",
    "created_at",
    "external_id",
    "safety_identifier",
    "raiMediaFilteredCount",
    "seconds",
];
const WORDS: &[&str] = &[
    "SUCCEEDED",
    "succeeded",
    "succeed",
    "Success",
    "completed",
    "failed",
    "Fail",
    "UNKNOWN",
    "queued",
    "https://h/v.mp4?Expires=9",
    "../../etc",
    "5.1",
    "",
    "video",
    "1008",
    "InvalidParameter",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        proptest::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((proptest::sample::select(NAMES), inner), 0..6).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        4 => any_json().prop_map(|value| Bytes::from(value.to_string())),
        1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from),
    ]
}

proptest! {
    #[test]
    fn is_read(body in any_body(), status in prop_oneof![Just(200u16), Just(400), Just(404), Just(429), Just(500), Just(502)]) {
        let reply = WholeReply { status, headers: HeaderMap::new(), body };
        let sent = Map::new();
        for maker in MAKERS {
            let video = kind(maker.kind).and_then(|kind| kind.video).expect("makes videos");
            let task = Handle { api: maker.api, call: "call", id: "id" };
            match video.created(maker.api, &reply) {
                Ok(id) => prop_assert!(status == 200 && !id.is_empty()),
                Err(fault) => prop_assert!(fault.sent && !fault.message.is_empty() && fault.message.len() <= 1100),
            }
            if let Ok(report) = video.polled(&task, &reply) {
                prop_assert_eq!(status, 200);
                prop_assert_eq!(matches!(report.standing, VideoStanding::Ended(_)), report.failure.is_some());
                prop_assert!(report.link.is_none_or(|link| link.needs_key || link.url.starts_with("http")));
            }
            if let Ok(Some(link)) = video.filed(&reply) {
                prop_assert!(link.url.starts_with("http"));
            }
            let sought = Sought { api: maker.api, call: "call", model: "m", external_id: "e", sent: (0, 9), body: &sent, prompt: Some(&Prompt("m".to_owned())) };
            let _either = video.found(&sought, None, &reply);
        }
    }
}
