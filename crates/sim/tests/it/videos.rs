//! The fake makers of videos are as strict as the real ones, each in its own words.

use serde_json::{Value, json};

use crate::it::client::{Answer, read, sim};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tollgate_sim::Sim;

const WAN: &str = "/video/dashscope/api/v1/services/aigc/video-generation/video-synthesis";
const ARK: &str = "/video/ark/api/v3/contents/generations/tasks";
const ASYNC: &str = "x-dashscope-async: enable\r\n";

async fn ask(sim: &Sim, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connect");
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{headers}content-length: {length}\r\n\r\n", sim.addr());
    socket.write_all(format!("{head}{body}").as_bytes()).await.expect("write");
    read(socket).await
}

async fn post(sim: &Sim, path: &str, body: &Value) -> Answer {
    let headers = format!("authorization: Bearer k\r\nx-goog-api-key: k\r\n{ASYNC}");
    ask(sim, "POST", path, &headers, &body.to_string()).await
}

async fn get(sim: &Sim, path: &str) -> Answer {
    ask(sim, "GET", path, "authorization: Bearer k\r\nx-goog-api-key: k\r\n", "").await
}

fn wan(model: &str, media: Value, parameters: Value) -> Value {
    let mut input = json!({"prompt": "p"});
    if !media.is_null() {
        input["media"] = media;
    }
    json!({"model": model, "input": input, "parameters": parameters})
}

#[tokio::test]
async fn dashscope_wants_the_asynchronous_header() {
    let sim = sim().await;
    let body = wan("wan2.7-t2v", Value::Null, json!({})).to_string();
    let answer = ask(&sim, "POST", WAN, "authorization: Bearer k\r\n", &body).await;
    assert_eq!((answer.status(), answer.json()["code"].as_str()), (403, Some("AccessDenied")));
    let answer = ask(&sim, "POST", WAN, &format!("authorization: Bearer k\r\n{ASYNC}"), &body).await;
    assert_eq!((answer.status(), answer.json()["output"]["task_status"].as_str()), (200, Some("PENDING")));
    assert_eq!(sim.videos(), 1);
}

#[tokio::test]
async fn dashscope_refuses_what_a_model_does_not_take() {
    let sim = sim().await;
    let image = json!({"type": "reference_image", "url": "https://m/a.png"});
    let frame = json!({"type": "first_frame", "url": "https://m/a.png"});
    for (why, body) in [
        ("a number as text", wan("wan2.7-t2v", Value::Null, json!({"duration": "5"}))),
        ("a flag as text", wan("wan2.7-t2v", Value::Null, json!({"watermark": "false"}))),
        ("an unknown field", wan("wan2.7-t2v", Value::Null, json!({"fps": 30}))),
        ("six references", wan("wan2.7-r2v", json!(vec![image.clone(); 6]), json!({}))),
        ("no reference", wan("wan2.7-r2v", Value::Null, json!({}))),
        ("ten pictures", wan("happyhorse-1.1-r2v", json!(vec![image; 10]), json!({}))),
        ("480P", wan("wan2.7-i2v", json!([frame]), json!({"resolution": "480P"}))),
        ("a ratio beside a frame", wan("wan2.7-i2v", json!([frame]), json!({"ratio": "16:9"}))),
        ("two seconds", wan("happyhorse-1.1-t2v", Value::Null, json!({"duration": 2}))),
        ("media for text", wan("wan2.7-t2v", json!([frame]), json!({}))),
        ("no clip to edit", wan("wan2.7-videoedit", Value::Null, json!({}))),
    ] {
        let answer = post(&sim, WAN, &body).await;
        assert_eq!((answer.status(), answer.json()["code"].as_str()), (400, Some("InvalidParameter")), "{why}");
    }
    let answer = post(&sim, WAN, &wan("wan9-t2v", Value::Null, json!({}))).await;
    assert_eq!(answer.json()["code"], "ModelNotFound");
    assert_eq!((sim.videos(), sim.counts().accepted), (0, 0));
    // Accepted, and then it fails: the size is only looked at later.
    let answer = post(&sim, WAN, &wan("wan2.7-t2v", Value::Null, json!({"size": "832*480"}))).await;
    let id = answer.json()["output"]["task_id"].as_str().expect("a task").to_owned();
    let mut words = Vec::new();
    for _ in 0..3 {
        words.push(get(&sim, &format!("/video/dashscope/api/v1/tasks/{id}")).await.json()["output"].clone());
    }
    assert_eq!(words[2]["task_status"], "FAILED");
    assert_eq!(words[2]["code"], "InvalidParameter");
    let unknown = get(&sim, "/video/dashscope/api/v1/tasks/other").await;
    assert_eq!((unknown.status(), unknown.json()["output"]["task_status"].as_str()), (200, Some("UNKNOWN")));
}

#[tokio::test]
async fn ark_tells_the_modes_apart() {
    let sim = sim().await;
    let picture = |role: Option<&str>| {
        let mut part = json!({"type": "image_url", "image_url": {"url": "https://m/a.png"}});
        if let Some(role) = role {
            part["role"] = json!(role);
        }
        part
    };
    let body = |model: &str, content: Vec<Value>, more: Value| {
        let mut body = json!({"model": format!("doubao-seedance-{model}"), "content": content});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let text = json!({"type": "text", "text": "p"});
    let reference = picture(Some("reference_image"));
    for (why, body, code) in [
        (
            "ratio with a frame",
            body("2-5-260628", vec![picture(None)], json!({"ratio": "16:9"})),
            "InvalidParameter.TaskTypeConstraint",
        ),
        (
            "frames and references",
            body("2-5-260628", vec![picture(None), reference.clone()], json!({})),
            "InvalidParameter.TaskTypeConstraint",
        ),
        ("31 pictures", body("2-5-260628", vec![reference.clone(); 31], json!({})), "InvalidParameter"),
        ("10 pictures", body("2-0-260128", vec![reference.clone(); 10], json!({})), "InvalidParameter"),
        ("text alone", body("2-0-260128", vec![text.clone()], json!({})), "InvalidParameter"),
        ("two seconds", body("2-5-260628", vec![picture(None)], json!({"duration": 2})), "InvalidParameter"),
        ("seconds as text", body("2-5-260628", vec![text.clone()], json!({"duration": "5"})), "InvalidParameter"),
        ("an unknown field", body("2-5-260628", vec![text.clone()], json!({"size": "1280*720"})), "InvalidParameter"),
        ("no content", json!({"model": "doubao-seedance-2-5-260628"}), "MissingParameter"),
    ] {
        let answer = post(&sim, ARK, &body).await;
        assert_eq!((answer.status(), answer.json()["error"]["code"].as_str()), (400, Some(code)), "{why}");
    }
    assert_eq!(sim.videos(), 0);
    let answer =
        post(&sim, ARK, &body("2-5-260628", vec![reference; 30], json!({"duration": 30, "ratio": "16:9"}))).await;
    let id = answer.json()["id"].as_str().expect("a task").to_owned();
    assert!(id.starts_with("cgt-20") && id.len() == 24, "{id}");
    let list = get(&sim, &format!("{ARK}?page_num=1&page_size=5")).await.json();
    assert_eq!((list["total"].as_u64(), list["items"][0]["id"].as_str()), (Some(1), Some(id.as_str())));
}

#[tokio::test]
async fn kling_answers_in_its_envelope() {
    let sim = sim().await;
    let omni = "/video/kling/v1/videos/omni-video";
    for (why, path, body) in [
        (
            "a duration that is a number",
            "/video/kling/v1/videos/text2video",
            json!({"model_name": "kling-v3", "prompt": "p", "duration": 5}),
        ),
        (
            "a ratio beside a picture",
            "/video/kling/v1/videos/image2video",
            json!({"model_name": "kling-v3", "image": "https://m/a.png", "aspect_ratio": "1:1"}),
        ),
        ("no picture", "/video/kling/v1/videos/image2video", json!({"model_name": "kling-v3", "prompt": "p"})),
        (
            "a data link",
            "/video/kling/v1/videos/image2video",
            json!({"model_name": "kling-v3", "image": "data:image/png;base64,AAAA"}),
        ),
        ("no ratio", omni, json!({"model_name": "kling-v3-omni", "prompt": "p"})),
        (
            "eight pictures",
            omni,
            json!({"model_name": "kling-v3-omni", "prompt": "p", "aspect_ratio": "1:1", "image_list": vec![json!({"image_url": "https://m/a.png"}); 8]}),
        ),
        (
            "a resolution",
            omni,
            json!({"model_name": "kling-v3-omni", "prompt": "p", "aspect_ratio": "1:1", "resolution": "1080p"}),
        ),
        (
            "sound beside a video",
            omni,
            json!({"model_name": "kling-v3-omni", "prompt": "p", "aspect_ratio": "1:1", "sound": "on", "video_list": [{"video_url": "https://m/a.mp4", "refer_type": "feature"}]}),
        ),
        (
            "seconds as text",
            "/video/kling/text-to-video/kling-3.0-turbo",
            json!({"prompt": "p", "settings": {"duration": "5"}}),
        ),
        (
            "a ratio beside a picture",
            "/video/kling/image-to-video/kling-3.0-turbo",
            json!({"contents": [{"type": "prompt", "text": "p"}, {"type": "first_frame", "url": "https://m/a.png"}], "settings": {"aspect_ratio": "1:1"}}),
        ),
    ] {
        let answer = post(&sim, path, &body).await;
        assert_eq!((answer.status(), answer.json()["code"].as_i64()), (400, Some(1201)), "{why}: {}", answer.text());
    }
    let body = json!({"model_name": "kling-v3", "prompt": "p", "external_task_id": "mine"});
    let first = post(&sim, "/video/kling/v1/videos/text2video", &body).await.json();
    assert_eq!((first["code"].as_i64(), first["message"].as_str()), (Some(0), Some("SUCCEED")));
    let again = post(&sim, "/video/kling/v1/videos/text2video", &body).await;
    assert_eq!((again.status(), sim.videos()), (400, 1), "an id is taken once");
    let found = get(&sim, "/video/kling/v1/videos/text2video/mine").await.json();
    assert_eq!(found["data"]["task_id"], first["data"]["task_id"]);
}

#[tokio::test]
async fn minimax_refuses_with_200_and_with_400() {
    let sim = sim().await;
    let v1 = "/video/minimax/v1/video_generation";
    for (why, body) in [
        ("fast without a picture", json!({"model": "MiniMax-Hailuo-2.3-Fast", "prompt": "p"})),
        (
            "ten seconds of 1080P",
            json!({"model": "MiniMax-Hailuo-2.3", "prompt": "p", "duration": 10, "resolution": "1080P"}),
        ),
        ("eight seconds", json!({"model": "MiniMax-Hailuo-2.3", "prompt": "p", "duration": 8})),
        ("a field of the gateway's", json!({"model": "MiniMax-Hailuo-2.3", "prompt": "p", "image": "https://m/a.png"})),
    ] {
        let answer = post(&sim, v1, &body).await;
        assert_eq!((answer.status(), answer.json()["base_resp"]["status_code"].as_i64()), (200, Some(2013)), "{why}");
        assert_eq!(answer.json()["task_id"], "");
    }
    let text = json!({"type": "text", "text": "p"});
    let picture = json!({"type": "image_url", "image_url": {"url": "https://m/a.png"}, "role": "reference_image"});
    let v2 = |content: Vec<Value>, more: Value| {
        let mut body = json!({"model": "MiniMax-H3", "content": content, "resolution": "768P"});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for (why, body) in [
        ("no ratio", v2(vec![text.clone()], json!({}))),
        ("adaptive text", v2(vec![text.clone()], json!({"ratio": "adaptive"}))),
        ("lower case", v2(vec![text.clone()], json!({"ratio": "16:9", "resolution": "2k"}))),
        ("seconds as text", v2(vec![text.clone()], json!({"ratio": "16:9", "duration": "5"}))),
        ("ten pictures", v2([vec![picture; 10], vec![text]].concat(), json!({}))),
    ] {
        let answer = post(&sim, "/video/minimax/v2/video_generation", &body).await;
        assert_eq!(
            (answer.status(), answer.json()["error"]["type"].as_str()),
            (400, Some("bad_request_error")),
            "{why}"
        );
    }
    assert_eq!(sim.videos(), 0);
}

#[tokio::test]
async fn openai_and_google() {
    let sim = sim().await;
    for body in [
        json!({"model": "sora-2", "prompt": "p", "seconds": 4}),
        json!({"model": "sora-2", "prompt": "p", "size": "1280*720"}),
        json!({"model": "sora-2", "prompt": "p", "size": "1792x1024"}),
        json!({"model": "sora-2", "prompt": "p", "duration": 4}),
        json!({"model": "sora-2"}),
    ] {
        let answer = post(&sim, "/v1/videos", &body).await;
        assert_eq!(
            (answer.status(), answer.json()["error"]["type"].as_str()),
            (400, Some("invalid_request_error")),
            "{body}"
        );
    }
    let veo = "/video/gemini/v1beta/models/veo-3:predictLongRunning";
    for parameters in
        [json!({"durationSeconds": 5}), json!({"durationSeconds": "4"}), json!({"sampleCount": 2}), json!({"fps": 24})]
    {
        let answer = post(&sim, veo, &json!({"instances": [{"prompt": "p"}], "parameters": parameters})).await;
        assert_eq!(
            (answer.status(), answer.json()["error"]["status"].as_str()),
            (400, Some("INVALID_ARGUMENT")),
            "{parameters}"
        );
    }
    let keyless = ask(&sim, "POST", veo, "", "{}").await;
    assert!(keyless.text().contains("API key not valid"));
    let keyless = ask(&sim, "GET", "/v1/videos/video_1", "", "").await;
    assert_eq!(keyless.status(), 401);
    assert_eq!(sim.videos(), 0);
}

#[tokio::test]
async fn markers_that_are_mistakes_are_reported() {
    let sim = sim().await;
    for marker in ["[[sim:nothing]]", "[[sim:fail colour=red]]", "[[sim:ok"] {
        let answer = post(&sim, "/v1/videos", &json!({"model": "sora-2", "prompt": marker})).await;
        assert_eq!(answer.status(), 400, "{marker}");
    }
    let shown = get(&sim, "/_sim/videos").await.json();
    assert_eq!(shown["tasks"], 0);
    for (name, meaning) in tollgate_sim::video::scenarios() {
        assert_eq!(shown["scenarios"][name], meaning);
    }
}

#[tokio::test]
async fn keys_are_not_recorded() {
    let sim = sim().await;
    let headers = "x-goog-api-key: very-secret\r\nauthorization: Bearer very-secret\r\n";
    ask(&sim, "GET", "/video/gemini/v1beta/models/veo-3/operations/x", headers, "").await;
    assert!(sim.received().iter().all(|one| one.headers.iter().all(|(_, value)| !value.contains("very-secret"))));
}
