//! GET, list, DELETE and /content: whose tasks are seen, which links are handed out, and how files
//! are passed on.

use super::table::{CLIP, finished, quick};
use crate::house::{House, Plan, error_of};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tollgate_store::{NewAccount, TaskId};

async fn made(house: &House, model: &str) -> Value {
    let metadata = if model == "MiniMax-H3" { json!({ "ratio": "16:9" }) } else { json!({}) };
    let body = json!({ "model": model, "prompt": "[[sim:queue=0 run=0]]", "metadata": metadata });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let task: Value = reply.expect("a reply").json().await.expect("JSON");
    let done = finished(house, task["id"].as_str().unwrap_or_else(|| panic!("{task}"))).await;
    assert_eq!(done["status"], "completed", "{done}");
    done
}

fn id(task: &Value) -> &str {
    task["id"].as_str().expect("an id")
}

fn link(task: &Value) -> &str {
    task["metadata"]["url"].as_str().expect("a link")
}

/// A key of another account of the same house.
async fn stranger(house: &House) -> String {
    let store = &house.running().app.store;
    let new = NewAccount { name: "stranger".to_owned(), ..NewAccount::default() };
    let account = store.create_account(new).await.expect("an account").id;
    house.new_key(|key| key.account = account).await
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_task_is_not_found_anywhere() {
    let house = quick(Plan::default()).await;
    let task = made(&house, "wan2.7-t2v").await;
    let other = stranger(&house).await;
    for (method, path) in [
        ("GET", format!("/v1/videos/{}", id(&task))),
        ("GET", format!("/v1/videos/{}/content", id(&task))),
        ("DELETE", format!("/v1/videos/{}", id(&task))),
        ("GET", "/v1/videos/task_nothing".to_owned()),
    ] {
        let method: reqwest::Method = method.parse().expect("a method");
        let reply = house.http.request(method, house.url(&path)).bearer_auth(&other).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("task_not_found")), "{path}");
    }
    let remix = house.url(&format!("/v1/videos/{}/remix", id(&task)));
    let reply = house.http.post(remix).bearer_auth(&other).json(&json!({ "prompt": "p" })).send().await;
    let (status, error) = error_of(reply.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("task_not_found")), "a remix");
    let url = house.url(&format!("/v1/video/generations/{}", id(&task)));
    let reply = house.http.get(url).bearer_auth(&other).send().await.expect("a reply");
    assert_eq!(reply.status(), 404);
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!((&body["code"], &body["data"]), (&json!("task_not_found"), &Value::Null), "the legacy shape");
    let page: Value = house
        .http
        .get(house.url("/v1/videos"))
        .bearer_auth(&other)
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("JSON");
    assert_eq!(page["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_use_no_video_model_reads_its_accounts_tasks() {
    let house = quick(Plan::default()).await;
    let task = made(&house, "wan2.7-t2v").await;
    let limited = house.new_key(|key| key.models = Some(vec!["plain".to_owned()])).await;
    let body = json!({ "model": "wan2.7-t2v", "prompt": "p" });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&limited).json(&body).send().await;
    assert_eq!(error_of(reply.expect("a reply")).await.0, 403, "it is limited indeed");
    let ask = async |method: &str, path: String| {
        let method: reqwest::Method = method.parse().expect("a method");
        let reply = house.http.request(method, house.url(&path)).bearer_auth(&limited).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path}");
        reply
    };
    let shown: Value = ask("GET", format!("/v1/videos/{}", id(&task))).await.json().await.expect("JSON");
    assert_eq!((&shown["id"], &shown["status"]), (&task["id"], &json!("completed")));
    let legacy: Value = ask("GET", format!("/v1/video/generations/{}", id(&task))).await.json().await.expect("JSON");
    assert_eq!((&legacy["data"]["task_id"], &legacy["data"]["status"]), (&task["id"], &json!("SUCCESS")), "{legacy}");
    let file = ask("GET", format!("/v1/videos/{}/content", id(&task))).await.bytes().await.expect("a file");
    assert_eq!(&file[4..8], b"ftyp");
    let page: Value = ask("GET", "/v1/videos".to_owned()).await.json().await.expect("JSON");
    assert_eq!((page["data"].as_array().map(Vec::len), &page["data"][0]["id"]), (Some(1), &task["id"]));
    let gone: Value = ask("DELETE", format!("/v1/videos/{}", id(&task))).await.json().await.expect("JSON");
    assert_eq!(gone["deleted"], true);
    let page: Value = ask("GET", "/v1/videos".to_owned()).await.json().await.expect("JSON");
    assert_eq!(page["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_deletion() {
    let house = quick(Plan::default()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(id(&made(&house, "sora-2").await).to_owned());
    }
    let page = async |query: &str| -> Value {
        house.get(&format!("/v1/videos?{query}")).send().await.expect("a reply").json().await.expect("JSON")
    };
    let listed = |page: &Value| -> Vec<String> {
        page["data"].as_array().expect("a list").iter().map(|task| id(task).to_owned()).collect()
    };
    let first = page("limit=2").await;
    assert_eq!((listed(&first), &first["has_more"]), (vec![ids[2].clone(), ids[1].clone()], &json!(true)));
    let rest = page(&format!("limit=2&after={}", first["last_id"].as_str().expect("an id"))).await;
    assert_eq!((listed(&rest), &rest["has_more"]), (vec![ids[0].clone()], &json!(false)));
    assert_eq!(listed(&page("order=asc").await), ids);
    for bad in ["limit=0", "limit=101", "limit=x", "order=up", "after=nothing"] {
        let (status, error) = error_of(house.get(&format!("/v1/videos?{bad}")).send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (400, Some("invalid_parameter")), "{bad}");
    }
    let delete = async |id: &str| {
        let url = house.url(&format!("/v1/videos/{id}"));
        house.http.delete(url).bearer_auth(&house.key).send().await.expect("a reply")
    };
    let gone: Value = delete(&ids[1]).await.json().await.expect("JSON");
    assert_eq!(gone, json!({ "id": ids[1], "object": "video.deleted", "deleted": true }));
    assert_eq!(delete(&ids[1]).await.status(), 404);
    assert_eq!(listed(&page("order=asc").await), [ids[0].clone(), ids[2].clone()]);
    // What has not ended has no known cost yet.
    let body = json!({ "model": "sora-2", "prompt": "[[sim:queue=30]]" });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let open: Value = reply.expect("a reply").json().await.expect("JSON");
    let (status, error) = error_of(delete(id(&open)).await).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("call_in_progress")));
    let content = house.get(&format!("/v1/videos/{}/content", id(&open))).send().await.expect("a reply");
    assert_eq!(error_of(content).await.0, 409, "not finished yet");
    finished(&house, id(&open)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_passed_on_whole_and_in_ranges() {
    let house = quick(Plan::default()).await;
    for model in ["wan2.7-t2v", "seedance-2.5", "kling-v3", "MiniMax-Hailuo-2.3", "MiniMax-H3", "sora-2", "veo-3.1"] {
        let task = made(&house, model).await;
        let path = format!("/v1/videos/{}/content", id(&task));
        let whole = house.get(&path).send().await.expect("a reply");
        assert_eq!(
            (whole.status().as_u16(), &whole.headers()["content-type"]),
            (200, &"video/mp4".parse().expect("text"))
        );
        let whole = whole.bytes().await.expect("a body");
        assert_eq!(&whole[4..8], b"ftyp", "{model}");
        let part = house.get(&path).header("range", "bytes=4-7").send().await.expect("a reply");
        assert_eq!(part.status(), 206, "{model}");
        assert_eq!(part.headers()["content-range"], format!("bytes 4-7/{}", whole.len()));
        assert_eq!(&part.bytes().await.expect("a body")[..], b"ftyp");
        let beyond = house.get(&path).header("range", "bytes=99999999-").send().await.expect("a reply");
        assert_eq!(beyond.status(), 416, "{model}");
        assert_eq!(beyond.headers()["content-range"], format!("bytes */{}", whole.len()), "{model}");
        assert_eq!(beyond.bytes().await.expect("a body"), "", "{model}: nothing of what its maker says beside it");
        let changed = house.get(&path).header("range", "bytes=4-7").header("if-range", "\"x\"").send().await;
        assert_eq!(changed.expect("a reply").status(), 200, "a range of what may have changed is the whole");
        let own = link(&task).starts_with(&house.url("/v1/videos/"));
        let carries = ["wan2.7-t2v", "MiniMax-Hailuo-2.3", "MiniMax-H3"].contains(&model);
        assert_eq!(own, !carries, "{model}: {}", link(&task));
        // Either kind of link opens without a key.
        let opened = house.http.get(link(&task)).send().await.expect("a reply");
        assert_eq!((opened.status().as_u16(), opened.bytes().await.expect("a body")), (200, whole), "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_ours_opens_until_it_ends_and_nothing_else() {
    let house = quick(Plan::default()).await;
    let task = made(&house, "kling-v3").await;
    let other = made(&house, "kling-v3").await;
    let url = link(&task).to_owned();
    assert!(task["expires_at"].as_i64().is_some_and(|at| url.contains(&format!("Expires={at}"))), "{task}");
    assert_eq!(house.http.get(&url).send().await.expect("a reply").status(), 200);
    let (path, query) = url.split_once('?').expect("a query");
    for bad in [
        url.replace("Expires=1", "Expires=2"),
        url.replace("Signature=", "Signature=A"),
        format!("{path}?Signature=x"),
        url.replace(id(&task), id(&other)),
    ] {
        let (status, error) = error_of(house.http.get(&bad).send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (403, Some("link_invalid")), "{bad}");
    }
    assert_eq!(
        house.http.get(path).send().await.expect("a reply").status(),
        401,
        "without a signature a key is needed"
    );
    let picture =
        house.get(&format!("/v1/videos/{}/content?variant=thumbnail", id(&task))).send().await.expect("a reply");
    assert_eq!(error_of(picture).await.1["code"], "unsupported_value");
    house.clock.pass(25 * 3_600_000);
    let (status, error) = error_of(house.http.get(&url).send().await.expect("a reply")).await;
    assert_eq!((status, error["param"].as_str()), (403, Some("Expires")), "{query}");
    let app = &house.running().app;
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    let again: Value =
        house.get(&format!("/v1/videos/{}", id(&task))).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(again["status"], "completed", "{again}");
    assert_ne!(link(&again), url, "reading the task again gives a fresh link");
    assert_eq!(house.http.get(link(&again)).send().await.expect("a reply").status(), 200);
    house.clock.pass(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_can_be_sent_to_the_provider_instead() {
    let config = "[video]\ndelivery = \"redirect\"\nown_links = true\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let http = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
    for (model, status) in [("wan2.7-t2v", 302), ("kling-v3", 302), ("sora-2", 200), ("veo-3.1", 200)] {
        let task = made(&house, model).await;
        assert!(link(&task).starts_with(&house.url("/v1/videos/")), "{model}: own_links");
        let reply = http.get(link(&task)).send().await.expect("a reply");
        assert_eq!(reply.status(), status, "{model}");
        if status == 302 {
            let elsewhere = reply.headers()["location"].to_str().expect("text").to_owned();
            assert_eq!(http.get(elsewhere).send().await.expect("a reply").status(), 200, "{model}");
        }
    }
}

/// The length of an edit is its source's, and known when it is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_length_that_was_left_to_the_maker() {
    let house = quick(Plan::default()).await;
    for (model, body, asked, seconds) in [
        ("wan2.7-videoedit", json!({ "video_url": CLIP }), "0", "7"),
        ("seedance-2.5", json!({ "seconds": "-1" }), "-1", "12"),
    ] {
        let mut body = body;
        (body["model"], body["prompt"]) = (json!(model), json!("[[sim:ok reported=12]]"));
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
        let task: Value = reply.expect("a reply").json().await.expect("JSON");
        assert_eq!(task["seconds"], asked, "{task}");
        let done = finished(&house, id(&task)).await;
        assert_eq!((&done["status"], &done["seconds"]), (&json!("completed"), &json!(seconds)), "{done}");
    }
}

/// Storage may be a little behind its maker's word: the file is asked for again, and then the
/// reader learns when to. Later it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_there_yet_is_waited_for() {
    let house = quick(Plan::default()).await;
    let create = async |times: u32| {
        let body = json!({ "model": "seedance-2.5", "prompt": format!("[[sim:early_link queue=0 run=0 n={times}]]") });
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
        let task: Value = reply.expect("a reply").json().await.expect("JSON");
        finished(&house, id(&task)).await
    };
    let soon = create(2).await;
    let reply = house.get(&format!("/v1/videos/{}/content", id(&soon))).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(&reply.bytes().await.expect("a body")[4..8], b"ftyp");
    let never = create(1_000).await;
    let path = format!("/v1/videos/{}/content", id(&never));
    let reply = house.get(&path).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (409, &"5".parse().expect("text")));
    assert_eq!(error_of(reply).await.1["code"], "call_in_progress");
    house.later(61_000).await;
    let (status, error) = error_of(house.get(&path).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("not_found")), "{error}");
    house.clock.pass(0);
}

/// A file server that fails is no provider that was late, and success without a file is no success.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_server_that_fails_is_reported_as_what_it_is() {
    let house = quick(Plan::default()).await;
    for (answered, status, code, words) in [
        (500, 502, "upstream_error", "file server failed (HTTP 500)"),
        (503, 502, "upstream_error", "file server failed (HTTP 503)"),
        (504, 504, "upstream_timeout", "took too long (HTTP 504)"),
        (204, 502, "upstream_invalid_reply", "sent no file (HTTP 204)"),
        (202, 502, "upstream_invalid_reply", "sent no file (HTTP 202)"),
        (200, 502, "upstream_invalid_reply", "sent no file (HTTP 200)"),
    ] {
        let prompt = format!("[[sim:file_status queue=0 run=0 code={answered}]]");
        let body = json!({ "model": "seedance-2.5", "prompt": prompt });
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
        let task: Value = reply.expect("a reply").json().await.expect("JSON");
        let done = finished(&house, id(&task)).await;
        let reply = house.get(&format!("/v1/videos/{}/content", id(&done))).send().await.expect("a reply");
        let (got, error) = error_of(reply).await;
        assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{answered}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(words)), "{error}");
    }
}

/// A link that tells no end has one all the same: nobody is sent to it after that, and ours that
/// leads to it ends with it.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_a_link_that_has_ended() {
    const DAY: i64 = 86_400_000;
    let config = "[video]\ndelivery = \"redirect\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let http = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
    let task = made(&house, "kling-v3").await;
    let ended = task["completed_at"].as_i64().expect("an end");
    let url = house.url(&format!("/v1/videos/{}/content", id(&task)));
    for (days, status, ends) in [(0, 302, 1), (29, 302, 30), (31, 200, 32)] {
        house.clock.pass(days * DAY);
        let app = &house.running().app;
        app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
        let reply = http.get(&url).bearer_auth(&house.key).send().await.expect("a reply");
        assert_eq!(reply.status(), status, "after {days} days");
        let shown = finished(&house, id(&task)).await;
        let late = shown["expires_at"].as_i64().expect("an end") - ended;
        assert!(((ends - 1) * 86_400..ends * 86_400 + 600).contains(&late), "after {days} days: {late}");
    }
    house.clock.pass(0);
}

fn form(fields: &[(&str, &str)]) -> String {
    let part = |(name, text): &(&str, &str)| {
        format!("--frame\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    fields.iter().map(part).chain(["--frame--\r\n".to_owned()]).collect()
}

/// A form takes what JSON takes: a picture as a data link is as long as a file. What is too long is
/// named.
#[tokio::test(flavor = "multi_thread")]
async fn long_fields_of_a_form() {
    let config = "[limits]\nbody_bytes = \"64MiB\"\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let post = async |form: String| {
        let asked = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key);
        let asked = asked.header("content-type", "multipart/form-data; boundary=frame");
        asked.body(form).send().await.expect("a reply")
    };
    let picture: Vec<u8> = b"\x89PNG\r\n\x1a\n".iter().copied().chain((0..=255).cycle().take(2 << 20)).collect();
    let link = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&picture));
    let prompt = ("prompt", "[[sim:queue=0 run=0]]");
    let task: Value =
        post(form(&[("model", "sora-2"), prompt, ("input_reference", &link)])).await.json().await.expect("JSON");
    assert_eq!(finished(&house, id(&task)).await["status"], "completed", "{task}");
    let long = "x".repeat((32 << 20) + 1);
    let (status, error) = error_of(post(form(&[("model", "sora-2"), ("prompt", &long)])).await).await;
    assert_eq!(
        (status, error["code"].as_str(), error["param"].as_str()),
        (400, Some("invalid_parameter"), Some("prompt"))
    );
}

/// What its owner deletes is deleted at its maker too, where the maker has that; nobody waits for
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_video_is_deleted_at_its_maker() {
    let house = quick(Plan::default()).await;
    for (model, path) in
        [("wan2.7-t2v", None), ("sora-2", Some("/v1/videos/")), ("seedance-2.5", Some("/contents/generations/tasks/"))]
    {
        let task = made(&house, model).await;
        let url = house.url(&format!("/v1/videos/{}", id(&task)));
        let reply = house.http.delete(url).bearer_auth(&house.key).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{model}");
        let Some(path) = path else { continue };
        let known: TaskId = id(&task).parse().expect("an id");
        let stored = house.running().app.store.webhook_task(known).await.expect("read").expect("the task");
        let path = format!("{path}{}", stored.upstream_id.expect("its maker's id"));
        let deletion =
            || house.sim.received().into_iter().find(|one| one.method == "DELETE" && one.path.ends_with(&path));
        let asked = eventually(deletion).await;
        assert_eq!(asked.status, 200, "{model}");
    }
    let deletions = house.sim.received().into_iter().filter(|one| one.method == "DELETE").count();
    assert_eq!(deletions, 2, "where there is none nobody is asked");
}

async fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..1_000 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it never happens");
}

/// A picture in a form arrives at the maker byte for byte: as a file where it takes files, inside
/// the body where it takes links.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_in_a_form_reaches_the_maker_unchanged() {
    let house = quick(Plan::default()).await;
    let picture: Vec<u8> = b"\x89PNG\r\n\x1a\n".iter().copied().chain((0..=255).cycle().take(5_000)).collect();
    for model in ["sora-2", "wan2.7-i2v"] {
        let mut form = Vec::new();
        for (name, text) in [("model", model), ("prompt", "[[sim:queue=0 run=0]]")] {
            let part = format!("--frame\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
            form.extend_from_slice(part.as_bytes());
        }
        form.extend_from_slice(
            b"--frame\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"a.png\"\r\n",
        );
        form.extend_from_slice(b"Content-Type: image/png\r\n\r\n");
        form.extend_from_slice(&picture);
        form.extend_from_slice(b"\r\n--frame--\r\n");
        let asked = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key);
        let reply = asked.header("content-type", "multipart/form-data; boundary=frame").body(form).send().await;
        let task: Value = reply.expect("a reply").json().await.expect("JSON");
        let sent = house.sim.received().into_iter().rfind(|one| one.method == "POST").expect("a creation");
        if model == "sora-2" {
            let arrived = sent.body.windows(picture.len()).any(|bytes| bytes == picture);
            assert!(arrived, "{model}: {} bytes", sent.body.len());
        } else {
            let link = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&picture));
            assert_eq!(sent.json()["input"]["media"][0]["url"], link, "{model}");
        }
        assert_eq!(finished(&house, id(&task)).await["status"], "completed", "{model}");
    }
}
