//! Creating a task: what was sent, refusals with the right blame, and outcomes nobody knows.

use super::house::{House, TASK};
use super::makers::{MAKERS, Maker, PICTURE};
use serde_json::json;
use tollgate_media::video::Api;
use tollgate_upstream::Blame;
use tollgate_wire::error::Code;

#[tokio::test]
async fn the_planned_body_arrives_with_model_and_our_id() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let plan = house.plan(&maker.plain("p"));
        house.send(&plan, TASK).await.unwrap_or_else(|fault| panic!("{maker:?}: {fault:?}"));
        let received = house.submissions().pop().expect("a submission");
        let mut body = json!(plan.body);
        let path = match maker.api {
            Api::DashScope => {
                body["model"] = json!(maker.model);
                assert_eq!(received.header("x-dashscope-async"), Some("enable"));
                "/video/dashscope/api/v1/services/aigc/video-generation/video-synthesis"
            }
            Api::Ark => {
                body["model"] = json!(maker.model);
                body["safety_identifier"] = json!(TASK);
                "/video/ark/api/v3/contents/generations/tasks"
            }
            Api::KlingV1 | Api::KlingOmni => {
                body["model_name"] = json!(maker.model);
                body["external_task_id"] = json!(TASK);
                if maker.api == Api::KlingV1 {
                    "/video/kling/v1/videos/text2video"
                } else {
                    "/video/kling/v1/videos/omni-video"
                }
            }
            Api::Kling2 => {
                body["options"] = json!({"external_task_id": TASK});
                "/video/kling/text-to-video/kling-3.0-turbo"
            }
            Api::MiniMaxV1 | Api::MiniMaxV2 => {
                body["model"] = json!(maker.model);
                if maker.api == Api::MiniMaxV1 {
                    "/video/minimax/v1/video_generation"
                } else {
                    "/video/minimax/v2/video_generation"
                }
            }
            Api::Sora => {
                body["model"] = json!(maker.model);
                "/v1/videos"
            }
            Api::Veo => "/video/gemini/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
        };
        assert_eq!((received.path.as_str(), received.json()), (path, body), "{maker:?}");
        assert_eq!((house.sim.videos(), received.accepted), (1, true));
        assert_eq!(received.has_authorization(), maker.api != Api::Veo);
    }
}

/// MM34: files in DashScope's own store are opened only for who says so, wherever in the body they
/// stand.
#[tokio::test]
async fn files_in_the_makers_own_store_are_announced() {
    let stored = "oss://dashscope-instant/sound.mp3";
    for (audio, announced) in [(stored, Some("enable")), ("https://media.example/sound.mp3", None)] {
        let house = House::of(Maker::of(Api::DashScope)).await;
        let plan = house.plan(&json!({"prompt": "oss://", "metadata": {"input": {"audio_url": audio}}}));
        house.send(&plan, TASK).await.expect("accepted");
        let received = house.submissions().pop().expect("a submission");
        assert_eq!(received.json()["input"]["audio_url"], audio);
        assert_eq!(received.header("x-dashscope-ossresourceresolve"), announced, "{audio}");
    }
}

#[tokio::test]
async fn a_picture_goes_to_openai_as_a_file() {
    let house = House::of(Maker::of(Api::Sora)).await;
    let plan = house.plan(&json!({"prompt": "p", "input_reference": "data:image/png;base64,iVBORw0KGgo="}));
    house.send(&plan, TASK).await.expect("accepted");
    let received = house.submissions().pop().expect("a submission");
    let boundary = received.header("content-type").and_then(|kind| kind.strip_prefix("multipart/form-data; boundary="));
    let boundary = boundary.expect("a form").to_owned();
    let content_type = format!("multipart/form-data; boundary={boundary}");
    let limits = tollgate_wire::multipart::FormLimits::default();
    let parts = tollgate_wire::multipart::whole_form(&content_type, limits, received.body.clone()).expect("a form");
    let names: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.file_name.is_some())).collect();
    assert_eq!(
        names,
        [("model", false), ("prompt", false), ("seconds", false), ("size", false), ("input_reference", true)]
    );
    assert_eq!(parts[4].body, &b"\x89PNG\r\n\x1a\n"[..]);
    assert_eq!(parts[4].content_type.as_deref(), Some("image/png"));
}

/// Blame, public code, another route may be tried, something may have been made.
type Verdict = (Blame, Code, bool, bool);

/// Each maker's table of codes: whose fault, what the caller gets to read, and whether anything may
/// have been made.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn refusals() {
    use Blame::{Caller, Operator, Provider};
    use Code::{InvalidRequest, RateLimitExceeded, TaskTypeConstraint, UpstreamError, UpstreamTimeout};
    let (caller, operator) = ((Caller, InvalidRequest, false, false), (Operator, UpstreamError, true, false));
    let (busy, failed) = ((Provider, RateLimitExceeded, true, false), (Provider, UpstreamError, false, false));
    let unsure = (Provider, UpstreamTimeout, false, true);
    let constraint = (Caller, TaskTypeConstraint, false, false);
    let kling = [
        ("1000", operator),
        ("1001", operator),
        ("1002", operator),
        ("1003", operator),
        ("1004", operator),
        ("1100", operator),
        ("1101", operator),
        ("1102", operator),
        ("1103", operator),
        ("1200", caller),
        ("1201", caller),
        ("1202", operator),
        ("1203", operator),
        ("1300", caller),
        ("1301", caller),
        ("1302", busy),
        ("1303", busy),
        ("1304", operator),
        ("5000", failed),
        ("5001", busy),
        ("5002", unsure),
    ];
    let minimax = [
        ("1000", failed),
        ("1001", unsure),
        ("1002", busy),
        ("1004", operator),
        ("1008", operator),
        ("1024", failed),
        ("1026", caller),
        ("1027", caller),
        ("1033", failed),
        ("1039", busy),
        ("1041", busy),
        ("1042", caller),
        ("2013", caller),
        ("2049", operator),
        ("2056", operator),
    ];
    let dashscope = [
        ("InvalidApiKey", operator),
        ("Arrearage", operator),
        ("AccessDenied", operator),
        ("Model.AccessDenied", operator),
        ("AccessDenied.Unpurchased", operator),
        ("ModelNotFound", operator),
        ("InvalidParameter", caller),
        ("InvalidParameter.DataInspection", caller),
        ("InvalidURL", caller),
        ("DataInspectionFailed", caller),
        ("Throttling", busy),
        ("Throttling.RateQuota", busy),
        ("Throttling.AllocationQuota", busy),
        ("insufficient_quota", operator),
        ("InternalError", failed),
        ("InternalError.Algo", failed),
        ("RequestTimeOut", unsure),
        ("ModelUnavailable", busy),
    ];
    let ark = [
        ("MissingParameter", caller),
        ("InvalidParameter", caller),
        ("InvalidParameter.TaskTypeConstraint", constraint),
        ("InvalidParameter.TaskTypeMismatch", caller),
        ("InputTextSensitiveContentDetected", caller),
        ("InputImageSensitiveContentDetected", caller),
        ("InputImageSensitiveContentDetected.PrivacyInformation", caller),
        ("InvalidEndpoint.ClosedEndpoint", operator),
        ("AuthenticationError", operator),
        ("AccountOverdueError", operator),
        ("AccessDenied", operator),
        ("OperationDenied.ServiceNotOpen", operator),
        ("InvalidEndpointOrModel.NotFound", operator),
        ("ModelNotOpen", operator),
        ("RateLimitExceeded.EndpointRPMExceeded", busy),
        ("ModelAccountRpmRateLimitExceeded", busy),
        ("ModelAccountTpmRateLimitExceeded", busy),
        ("QuotaExceeded", busy),
        ("ServerOverloaded", busy),
        ("InternalServiceError", failed),
    ];
    let openai = [
        ("insufficient_quota", operator),
        ("rate_limit_exceeded", busy),
        ("billing_hard_limit_reached", operator),
        ("model_not_found", operator),
        ("moderation_blocked", caller),
        ("server_error", failed),
        ("invalid_value", caller),
    ];
    let google = [
        ("INVALID_ARGUMENT", caller),
        ("FAILED_PRECONDITION", operator),
        ("PERMISSION_DENIED", operator),
        ("NOT_FOUND", operator),
        ("RESOURCE_EXHAUSTED", busy),
        ("UNAVAILABLE", failed),
        ("DEADLINE_EXCEEDED", unsure),
        ("INTERNAL", failed),
    ];
    for maker in MAKERS {
        let table: &[(&str, Verdict)] = match maker.api {
            Api::DashScope => &dashscope,
            Api::Ark => &ark,
            Api::KlingV1 | Api::Kling2 | Api::KlingOmni => &kling,
            Api::MiniMaxV1 | Api::MiniMaxV2 => &minimax,
            Api::Sora => &openai,
            Api::Veo => &google,
        };
        let house = House::of(*maker).await;
        for (code, verdict) in table {
            let fault = house.create(&format!("[[sim:refuse code={code}]]")).await.expect_err(code);
            let judged = (fault.blame, fault.code, fault.try_other, fault.maybe_charged);
            assert_eq!(judged, *verdict, "{maker:?} {code}: {fault:?}");
            assert!(
                fault.sent && !fault.message.contains("equest id") && !fault.message.contains("021718067849"),
                "{fault:?}"
            );
            if fault.blame == Caller {
                assert!(fault.message.contains(code), "the maker's code is preserved: {}", fault.message);
            }
        }
        assert_eq!(house.sim.videos(), 0, "nothing was made");
    }
}

#[tokio::test]
async fn too_fast_and_broken_once() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let fault = house.create("[[sim:limited]]").await.expect_err("limited");
        assert_eq!((fault.code, fault.maybe_charged), (Code::RateLimitExceeded, false), "{maker:?}");
        let fault = house.create("[[sim:broken_once]]").await.expect_err("broken");
        assert_eq!((fault.blame, fault.maybe_charged), (Blame::Provider, false), "{maker:?}: {fault:?}");
        house.create("[[sim:broken_once]]").await.expect("the second time it works");
        assert_eq!(house.sim.videos(), 1);
    }
}

/// The task exists and we do not know it: the fault must say that it may, and forbid another try.
#[tokio::test]
async fn lost_answers() {
    for maker in MAKERS {
        let house = House::of(*maker).await.impatient(400);
        for (number, scenario) in ["slow ms=3000", "lost", "page", "garbage"].into_iter().enumerate() {
            let plan = house.plan(&maker.plain(&format!("[[sim:{scenario}]]")));
            let fault = house.send(&plan, &format!("task_{number}")).await.expect_err(scenario);
            assert!(fault.sent && fault.maybe_charged, "{maker:?} {scenario}: {fault:?}");
            assert!(!fault.message.contains("internal"), "{fault:?}");
        }
        house.tasks_reach(4).await;
        assert_eq!(house.submissions().len(), 4, "{maker:?}: sent once each");
    }
}

/// An answer that is compressed although that was not asked for cannot be read: the task may exist.
/// Of a refusal the status is read.
#[tokio::test]
async fn compressed_answers() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let fault = house.create("[[sim:packed]]").await.expect_err("compressed");
        assert_eq!((fault.code, fault.maybe_charged), (Code::UpstreamInvalidReply, true), "{maker:?}: {fault:?}");
        assert!(fault.message.contains("compressed"), "{fault:?}");
        assert_eq!(house.sim.videos(), 1);
    }
}

#[tokio::test]
async fn nobody_there_is_surely_nothing_made() {
    for maker in MAKERS {
        let House { sim, maker, client, mut provider, now } = House::of(*maker).await;
        let port =
            tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        provider.base_url = tollgate_upstream::BaseUrl::parse(&format!("http://{port}/x")).expect("a base");
        let house = House { sim, maker, client, provider, now };
        let fault = house.create("p").await.expect_err("nobody");
        assert!(!fault.sent && !fault.maybe_charged && fault.try_other, "{maker:?}: {fault:?}");
    }
}

#[tokio::test]
async fn our_id_twice_means_that_the_task_exists() {
    for api in [Api::KlingV1, Api::Kling2, Api::KlingOmni] {
        let house = House::of(Maker::of(api)).await;
        house.create("p").await.expect("accepted");
        let fault = house.create("p").await.expect_err("twice");
        assert!(fault.maybe_charged && fault.blame == Blame::Provider, "{fault:?}");
        assert_eq!(house.sim.videos(), 1);
    }
}

/// Families beside the plain text requests: what the rules build is what strict makers take.
#[tokio::test]
async fn every_variant_is_taken() {
    let clip = "https://media.example/a.mp4";
    let reference = json!({"type": "image_url", "image_url": {"url": PICTURE}, "role": "reference_image"});
    for (api, variant, model, fields) in [
        (
            Api::DashScope,
            "a-image-to-video",
            "wan2.7-i2v",
            json!({"prompt": "p", "input_reference": PICTURE, "size": "1280*720"}),
        ),
        (
            Api::DashScope,
            "a-reference-to-video",
            "wan2.7-r2v",
            json!({"prompt": "p", "images": [PICTURE, PICTURE], "video_url": clip}),
        ),
        (
            Api::DashScope,
            "a-video-edit",
            "wan2.7-videoedit",
            json!({"prompt": "p", "video_url": clip, "size": "1280*720"}),
        ),
        (Api::DashScope, "e-text-to-video", "happyhorse-1.1-t2v", json!({"prompt": "p", "size": "832*480"})),
        (
            Api::DashScope,
            "e-image-to-video",
            "happyhorse-1.1-i2v",
            json!({"prompt": "p", "input_reference": PICTURE, "size": "832*480"}),
        ),
        (
            Api::DashScope,
            "e-reference-to-video",
            "happyhorse-1.1-r2v",
            json!({"prompt": "p", "input_reference": PICTURE}),
        ),
        (Api::Ark, "b-2.0", "doubao-seedance-2-0-260128", json!({"prompt": "p", "images": [PICTURE]})),
        (Api::Ark, "b-2.0-fast", "doubao-seedance-2-0-fast-260128", json!({"prompt": "p", "input_reference": PICTURE})),
        (
            Api::Ark,
            "b-2.0-mini",
            "doubao-seedance-2-0-mini-260615",
            json!({"prompt": "p", "metadata": {"content": [reference], "ratio": "16:9", "generate_audio": false}}),
        ),
        (
            Api::Ark,
            "b-2.5",
            "dreamina-seedance-2-5-260628",
            json!({"prompt": "p", "input_reference": PICTURE, "images": [PICTURE], "seconds": "30"}),
        ),
        (
            Api::KlingV1,
            "c-standard",
            "kling-v3",
            json!({"prompt": "p", "image": "data:image/png;base64,iVBORw0KGgo=", "size": "1280*720"}),
        ),
        (
            Api::Kling2,
            "c-value",
            "kling-3.0-turbo",
            json!({"prompt": "p", "image": PICTURE, "metadata": {"settings": {"aspect_ratio": "1:1"}}}),
        ),
        (
            Api::KlingOmni,
            "c-multi-image",
            "kling-v3-omni",
            json!({"prompt": "p", "metadata": {"image_list": [{"image_url": PICTURE}], "aspect_ratio": "1:1",
            "video_list": [{"video_url": clip, "refer_type": "feature"}]}}),
        ),
        (
            Api::MiniMaxV1,
            "d-legacy-fast",
            "MiniMax-Hailuo-2.3-Fast",
            json!({"prompt": "p", "metadata": {"first_frame_image": PICTURE}}),
        ),
        (
            Api::MiniMaxV1,
            "d-legacy-02",
            "MiniMax-Hailuo-02",
            json!({"prompt": "p", "size": "512P", "metadata": {"first_frame_image": PICTURE, "last_frame_image": PICTURE}}),
        ),
        (
            Api::MiniMaxV2,
            "d-native-audio",
            "MiniMax-H3",
            json!({"prompt": "p", "images": [PICTURE], "video_url": clip, "size": "2K"}),
        ),
        (Api::MiniMaxV2, "d-native-audio", "MiniMax-H3", json!({"prompt": "p", "image": PICTURE, "duration": 15})),
        (Api::Sora, "sora-pro", "sora-2-pro", json!({"prompt": "p", "size": "1792x1024", "seconds": "12"})),
        (Api::Veo, "veo", "veo-3.1-fast-generate-preview", json!({"prompt": "p", "size": "1080*1920", "seconds": "4"})),
    ] {
        let house = House::of(Maker { model, ..Maker::of(api) }).await;
        let plan = house.plan_as(variant, &fields);
        let id = house.send(&plan, TASK).await.unwrap_or_else(|fault| panic!("{variant}: {fault:?}"));
        let last = house.polls_of(plan.call, &id).await.pop().expect("a poll").expect("a report");
        assert!(last.is_ready(), "{variant}: {last:?}");
    }
}

/// A maker that closes an idle connection in the very moment something comes over it again, as
/// makers and the balancers before them do that have waited long enough: what is asked then is lost
/// unread.
#[tokio::test]
async fn a_creation_has_a_connection_of_its_own() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let House { sim, maker, client, mut provider, now } = House::of(Maker::of(Api::DashScope)).await;
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    provider.base_url = tollgate_upstream::BaseUrl::parse(&base).expect("a base");
    let house = House { sim, maker, client, provider, now };
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(one_answer(stream));
        }
    });
    house.poll("7").await.expect("a report");
    for _ in 0..3 {
        assert_eq!(house.create("p").await.expect("accepted"), "7");
    }
    let fault = house.poll("7").await.expect_err("connections are reused for what may be asked again");
    assert!(fault.sent && fault.maybe_charged, "{fault:?}");
}

/// Answers once, waits for more, and closes without having read it.
async fn one_answer(mut stream: tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut read = Vec::new();
    // Both requests of this test come in one piece.
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let body = r#"{"output":{"task_id":"7","task_status":"PENDING"}}"#;
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    if stream.write_all(reply.as_bytes()).await.is_ok() {
        let _ = stream.readable().await;
    }
}
