//! Copies of our own: in a folder and in a bucket, there before the task is completed, taken away
//! in time. And remixes.

use super::table::{finished, quick};
use crate::house::{House, Plan, error_of};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tollgate_gateway::work::video::StoredResult;
use tollgate_store::TaskId;

async fn made(house: &House, model: &str) -> Value {
    let body = json!({ "model": model, "prompt": "[[sim:queue=0 run=0]]" });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let task: Value = reply.expect("a reply").json().await.expect("JSON");
    finished(house, task["id"].as_str().unwrap_or_else(|| panic!("{task}"))).await
}

fn id(task: &Value) -> &str {
    task["id"].as_str().expect("an id")
}

/// The copy is what is served, whole and in ranges, whatever became of the provider's file.
async fn serves_its_copy(house: &House, task: &Value) {
    let link = task["metadata"]["url"].as_str().expect("a link");
    assert!(link.starts_with(&house.url("/v1/videos/")), "{link}");
    let files = || house.sim.received().iter().filter(|one| one.path.contains("files")).count();
    let before = files();
    let whole = house.http.get(link).send().await.expect("a reply");
    assert_eq!(
        (whole.status(), &whole.headers()["content-type"]),
        (StatusCode::OK, &"video/mp4".parse().expect("text"))
    );
    let whole = whole.bytes().await.expect("a body");
    assert_eq!(&whole[4..8], b"ftyp");
    for (range, status, part) in [
        ("bytes=4-7", 206, &whole[4..8]),
        ("bytes=-4", 206, &whole[whole.len() - 4..]),
        ("bytes=99999999-", 416, &b""[..]),
        ("bytes=0-1,4-5", 200, &whole[..]),
    ] {
        let reply = house.http.get(link).header("range", range).send().await.expect("a reply");
        assert_eq!(reply.status(), status, "{range}");
        assert_eq!(reply.bytes().await.expect("a body"), part, "{range}");
    }
    assert_eq!(files(), before, "the provider was not asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_in_a_folder() {
    let config = "[video]\ncopy_to = \"copies\"\nkeep = \"30d\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let task = made(&house, "wan2.7-t2v").await;
    let copy = house.dir.join("copies").join(format!("{}.mp4", id(&task)));
    assert!(copy.exists(), "there before the task is completed");
    serves_its_copy(&house, &task).await;
    let gone = made(&house, "sora-2").await;
    let url = house.url(&format!("/v1/videos/{}", id(&gone)));
    assert_eq!(house.http.delete(url).bearer_auth(&house.key).send().await.expect("a reply").status(), 200);
    assert!(!house.dir.join("copies").join(format!("{}.mp4", id(&gone))).exists(), "deleted with its task");
    let app = &house.running().app;
    let stored = app.video.copies.as_ref().expect("a store of copies");
    assert_eq!(stored.sweep(app.world.now_ms()).await.gone, 0);
    let swept = stored.sweep(app.world.now_ms() + 31 * 86_400_000).await;
    assert_eq!((swept.gone, swept.failed), (1, 0), "retained for its time");
    assert!(!copy.exists());
    // The provider still has it.
    let reply = house.get(&format!("/v1/videos/{}/content", id(&task))).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
}

/// Other files in the same place are nobody's business, however old.
#[tokio::test(flavor = "multi_thread")]
async fn only_copies_are_taken_away() {
    let config = "[video]\ncopy_to = \"copies\"\nkeep = \"30d\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let mut copies = Vec::new();
    for model in ["wan2.7-t2v", "kling-v3"] {
        copies.push(format!("{}.mp4", id(&made(&house, model).await)));
    }
    let folder = house.dir.join("copies");
    std::fs::create_dir(folder.join("holidays")).expect("made");
    // A name like ours, but not where we put one.
    let elsewhere = format!("holidays/{}", copies[0]);
    let (part, unlike) = (format!("{}#2", copies[0]), format!("{}#2a", copies[0]));
    let texts = ["wedding.mp4", "task_1.mp4", "notes.txt", unlike.as_str(), elsewhere.as_str()];
    let mut others: Vec<PathBuf> = texts.iter().map(|name| folder.join(name)).collect();
    // Names that are no text, however a folder is sorted.
    let bytes: [&[u8]; 3] = [b"\xff.mp4", b"holidays/\xe4.mp4", b"zz\xfe"];
    others.extend(bytes.map(|name| folder.join(OsStr::from_bytes(name))));
    for path in &others {
        std::fs::write(path, "mine").expect("written");
    }
    let app = &house.running().app;
    let stored = app.video.copies.as_ref().expect("a store of copies");
    // A gateway died while it made this copy.
    std::fs::write(folder.join(&part), "half").expect("written");
    let swept = stored.sweep(app.world.now_ms() + 2 * 86_400_000).await;
    assert_eq!((swept.gone, swept.failed), (1, 0), "what was not finished is not retained like a copy: {swept:?}");
    assert!(!folder.join(&part).exists() && copies.iter().all(|name| folder.join(name).exists()));
    let swept = stored.sweep(app.world.now_ms() + 31 * 86_400_000).await;
    assert_eq!((swept.gone, swept.failed), (2, 0), "{swept:?}");
    for name in &copies {
        assert!(!folder.join(name).exists(), "{name}");
    }
    for path in &others {
        assert!(path.exists(), "{}", path.display());
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    let swept = stored.sweep(app.world.now_ms()).await;
    assert_eq!(swept.gone, 0);
}

/// What cannot be deleted is still there to be deleted again: a task that is out of sight would
/// leave its copy for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_copy_cannot_be_deleted_stays() {
    let config = "[video]\ncopy_to = \"copies\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let task = made(&house, "wan2.7-t2v").await;
    let path = format!("/v1/videos/{}", id(&task));
    let delete = async || house.http.delete(house.url(&path)).bearer_auth(&house.key).send().await.expect("a reply");
    let copy = house.dir.join("copies").join(format!("{}.mp4", id(&task)));
    let aside = copy.with_extension("aside");
    std::fs::rename(&copy, &aside).expect("moved");
    std::fs::create_dir_all(copy.join("in the way")).expect("made");
    let (status, error) = error_of(delete().await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")), "{error}");
    assert_eq!(house.get(&path).send().await.expect("a reply").status(), 200, "the task is still there");
    std::fs::remove_dir_all(&copy).expect("removed");
    std::fs::rename(&aside, &copy).expect("moved back");
    assert_eq!(delete().await.status(), 200);
    assert!(!copy.exists());
    assert_eq!(delete().await.status(), 404);
}

/// A link of the provider that had to be asked for anew is stored beside the copy, not in its
/// place.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_link_of_the_provider_leaves_the_copy_known() {
    let config = "[video]\ncopy_to = \"copies\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let task = made(&house, "wan2.7-t2v").await;
    let app = &house.running().app;
    let known: TaskId = id(&task).parse().expect("an id");
    let copies = async || {
        let task = app.store.task(house.account, known).await.expect("read").expect("the task");
        StoredResult::read(&task.result.expect("a result")).expect("readable")
    };
    let before = copies().await;
    assert!(before.copy.is_some(), "{before:?}");
    app.store.store_result(known, StoredResult { expires_at: Some(1), ..before.clone() }.text()).await.expect("stored");
    let copy = house.dir.join("copies").join(format!("{}.mp4", id(&task)));
    let aside = copy.with_extension("aside");
    std::fs::rename(&copy, &aside).expect("moved");
    let reply = house.get(&format!("/v1/videos/{}/content", id(&task))).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "from the provider, by a fresh link");
    let after = copies().await;
    assert!(after.expires_at.is_some_and(|ends| ends > 1), "asked for anew: {after:?}");
    assert_eq!(after.copy, before.copy);
    std::fs::rename(&aside, &copy).expect("moved back");
    serves_its_copy(&house, &finished(&house, id(&task)).await).await;
}

/// After its time a copy is no reason to hand out links that have ended: the provider's file is
/// what there is then.
#[tokio::test(flavor = "multi_thread")]
async fn links_after_a_copy_was_taken_away() {
    let config = "[video]\ncopy_to = \"copies\"\nkeep = \"1s\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    for (model, ours) in [("wan2.7-t2v", false), ("kling-v3", true)] {
        let task = made(&house, model).await;
        tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
        let app = &house.running().app;
        app.video.copies.as_ref().expect("a store of copies").sweep(app.world.now_ms()).await;
        assert!(!house.dir.join("copies").join(format!("{}.mp4", id(&task))).exists(), "{model}: swept");
        let task = finished(&house, id(&task)).await;
        let link = task["metadata"]["url"].as_str().expect("a link");
        assert_eq!(link.starts_with(&house.url("/v1/videos/")), ours, "{model}: {link}");
        let ends = task["expires_at"].as_i64().expect("an end");
        assert!(ends > app.world.now_ms() / 1_000 + 60, "{model}: {task}");
        assert_eq!(house.http.get(link).send().await.expect("a reply").status(), 200, "{model}: {link}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied_is_completed_in_the_end() {
    let config = "[video]\ncopy_to = \"copies\"\n".to_owned();
    let tasks = "refresh_after = \"10ms\"\npatience = \"1s\"\n";
    let house = quick(Plan { config, tasks, ..Plan::default() }).await;
    let folder = house.dir.join("copies");
    std::fs::remove_dir(&folder).expect("removed");
    std::fs::write(&folder, "in the way").expect("written");
    let task = made(&house, "wan2.7-t2v").await;
    assert_eq!(task["status"], "completed");
    let link = task["metadata"]["url"].as_str().expect("a link");
    assert!(!link.starts_with(&house.url("/")), "the provider's own link: {link}");
}

/// A bucket in memory, as far as one is needed here; every request has to be signed.
#[derive(Clone, Default)]
struct Bucket(Arc<Mutex<BTreeMap<String, Bytes>>>);

async fn s3(State(bucket): State<Bucket>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let signed = parts.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=access/"), "{signed}");
    let body = body.collect().await.expect("a body").to_bytes();
    let path = parts.uri.path().to_owned();
    let mut all = bucket.0.lock().expect("a lock");
    let reply = |status: u16, body: Bytes| {
        let mut reply = Response::new(Body::from(body));
        *reply.status_mut() = StatusCode::from_u16(status).expect("a status");
        reply.headers_mut().insert("etag", "\"1\"".parse().expect("text"));
        reply.headers_mut().insert("last-modified", "Sun, 15 Nov 2026 10:00:00 GMT".parse().expect("text"));
        reply
    };
    match parts.method {
        Method::PUT => {
            all.insert(path, body);
            reply(200, Bytes::new())
        }
        // Deletions come as lists.
        Method::POST if parts.uri.query() == Some("delete") => {
            let list = String::from_utf8(body.to_vec()).expect("text");
            let mut done = String::new();
            for key in list.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>")) {
                all.remove(&format!("{path}/{}", key.0));
                done += &format!("<Deleted><Key>{}</Key></Deleted>", key.0);
            }
            reply(200, Bytes::from(format!("<DeleteResult>{done}</DeleteResult>")))
        }
        _ => match all.get(&path) {
            None => reply(404, Bytes::from_static(b"<Error><Code>NoSuchKey</Code></Error>")),
            Some(found) => {
                let range = parts.headers.get("range").and_then(|value| value.to_str().ok()?.strip_prefix("bytes="));
                let part = range.and_then(|range| range.split_once('-')).map(|(first, last)| match (first, last) {
                    ("", count) => found.len() - count.parse::<usize>().expect("a number")..found.len(),
                    (first, "") => first.parse().expect("a number")..found.len(),
                    (first, last) => first.parse().expect("a number")..last.parse::<usize>().expect("a number") + 1,
                });
                match part {
                    None => reply(200, found.clone()),
                    Some(part) => {
                        let mut reply = reply(206, found.slice(part.clone()));
                        let text = format!("bytes {}-{}/{}", part.start, part.end - 1, found.len());
                        reply.headers_mut().insert("content-range", text.parse().expect("text"));
                        reply
                    }
                }
            }
        },
    }
}

#[expect(clippy::disallowed_methods, reason = "a server of the test's own, gone with it")]
fn serve(listener: tokio::net::TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_in_a_bucket() {
    let bucket = Bucket::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    serve(listener, Router::new().fallback(s3).with_state(bucket.clone()));
    let keys = tempfile::tempdir().expect("a folder");
    let file = |name: &str| keys.path().join(name).display().to_string();
    for name in ["access", "secret"] {
        std::fs::write(keys.path().join(name), format!("{name}\n")).expect("written");
    }
    let config = format!(
        "[video]\ncopy_to = \"s3://videos/made\"\n[video.s3]\nendpoint = \"{endpoint}\"\naccess_file = \"{}\"\nsecret_file = \"{}\"\n",
        file("access"),
        file("secret"),
    );
    let house = quick(Plan { config, ..Plan::default() }).await;
    let task = made(&house, "kling-v3").await;
    let names: Vec<String> = bucket.0.lock().expect("a lock").keys().cloned().collect();
    assert_eq!(names, [format!("/videos/made/{}.mp4", id(&task))]);
    serves_its_copy(&house, &task).await;
    let url = house.url(&format!("/v1/videos/{}", id(&task)));
    assert_eq!(house.http.delete(url).bearer_auth(&house.key).send().await.expect("a reply").status(), 200);
    assert!(bucket.0.lock().expect("a lock").is_empty(), "deleted with its task");
}

#[tokio::test(flavor = "multi_thread")]
async fn remixes_cost_what_their_source_did() {
    let house = quick(Plan::default()).await;
    let body = json!({ "model": "sora-2", "prompt": "p", "seconds": "8", "size": "1280x720" });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let source: Value = reply.expect("a reply").json().await.expect("JSON");
    let remix = async |source: &str, body: Value| {
        let url = house.url(&format!("/v1/videos/{source}/remix"));
        house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply")
    };
    finished(&house, id(&source)).await;
    let made: Value = remix(id(&source), json!({ "prompt": "again" })).await.json().await.expect("JSON");
    assert_eq!(made["remixed_from_video_id"], id(&source), "{made}");
    assert_eq!((&made["seconds"], &made["size"]), (&json!("8"), &json!("1280x720")));
    let done = finished(&house, id(&made)).await;
    assert_eq!((&done["status"], &done["remixed_from_video_id"]), (&json!("completed"), &json!(id(&source))));
    let row = house.row(id(&made).parse::<tollgate_store::TaskId>().expect("an id").call()).await;
    assert_eq!(row.charge.nano(), 8 * 100_000_000);
    let sent = house.sim.received().into_iter().rfind(|one| one.method == "POST").expect("a creation");
    assert!(
        sent.path.ends_with("/remix") && sent.json() == json!({ "prompt": "again" }),
        "{} {}",
        sent.path,
        sent.json()
    );
    let broken = remix(id(&source), json!({ "prompt": "[[sim:broken_once]]" })).await;
    assert_eq!((broken.status().as_u16(), &broken.headers()["x-should-retry"]), (502, &"false".parse().expect("text")));
    for (source, body, code) in
        [(id(&source), json!({}), "missing_parameter"), ("task_none", json!({ "prompt": "p" }), "task_not_found")]
    {
        assert_eq!(error_of(remix(source, body).await).await.1["code"], code);
    }
    for (hook, code) in [(json!("http://127.0.0.1/hook"), "invalid_parameter"), (json!(7), "invalid_parameter")] {
        let (status, error) = error_of(remix(id(&source), json!({ "prompt": "p", "webhook_url": hook })).await).await;
        assert_eq!((status, &error["code"], &error["param"]), (400, &json!(code), &json!("webhook_url")), "{error}");
    }
    let body = json!({ "prompt": "p", "webhook_url": "https://hooks.example/done", "seconds": "4", "nonsense": 1 });
    let quoted: Value = remix(id(&source), body).await.json().await.expect("JSON");
    let warned: Vec<_> =
        quoted["warnings"].as_array().into_iter().flatten().filter_map(|one| one["field"].as_str()).collect();
    assert_eq!((warned, &quoted["seconds"]), (vec!["nonsense", "seconds"], &json!("8")), "{quoted}");
    let store = &house.running().app.store;
    let task = store.task(house.account, id(&quoted).parse().expect("an id")).await.expect("read").expect("the task");
    assert_eq!(task.webhook_url.as_deref(), Some("https://hooks.example/done"));
    finished(&house, id(&quoted)).await;
    let other = self::made(&house, "wan2.7-t2v").await;
    let (status, error) = error_of(remix(id(&other), json!({ "prompt": "p" })).await).await;
    assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_value")), "its provider has no remixes");
}

/// A remix is as long and as large as its source, which may have been made when more was sold.
#[tokio::test(flavor = "multi_thread")]
async fn a_remix_is_of_what_is_still_sold() {
    let house = quick(Plan::default()).await;
    let body = json!({ "model": "sora-2", "prompt": "p", "seconds": "8", "size": "1280x720" });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let source: Value = reply.expect("a reply").json().await.expect("JSON");
    finished(&house, id(&source)).await;
    let file = house.dir.join("catalog/video.toml");
    let catalog = std::fs::read_to_string(&file).expect("a catalog");
    let made = house.sim.videos();
    for (from, to, message) in [
        ("max_duration_seconds = 12", "max_duration_seconds = 4", "up to 4"),
        ("{ variant = \"sora\" }", "{ variant = \"sora\", sold = { size = [\"720x1280\"] } }", "1280x720 has no price"),
    ] {
        assert!(catalog.contains(from), "{from}");
        std::fs::write(&file, catalog.replace(from, to)).expect("written");
        tollgate_gateway::workers::reload::reload(&house.running().app, &house.source).await.expect("reloaded");
        let url = house.url(&format!("/v1/videos/{}/remix", id(&source)));
        let reply = house.http.post(url).bearer_auth(&house.key).json(&json!({ "prompt": "again" })).send().await;
        let (status, error) = error_of(reply.expect("a reply")).await;
        let refusal = (status, error["code"].as_str(), error["param"].as_str());
        assert_eq!(refusal, (400, Some("unsupported_value"), Some("id")), "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
    }
    assert_eq!(house.sim.videos(), made);
}
