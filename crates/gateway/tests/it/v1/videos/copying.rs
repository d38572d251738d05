//! How copies are made in a bucket: in parts, one after the other, few at once; and that nothing of
//! a copy stays that was cut short.

use super::table::{finished, quick};
use crate::house::{House, Plan};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PART: usize = 5 << 20;

/// A bucket that takes uploads in parts, and counts.
#[derive(Default)]
struct Bucket {
    whole: Mutex<BTreeMap<String, usize>>,
    /// Parts of uploads that are neither finished nor taken back.
    open: Mutex<BTreeMap<String, Vec<usize>>>,
    begun: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    /// Whatever is put from the second on is not answered while this is so.
    hangs: AtomicBool,
    puts: AtomicUsize,
}

impl Bucket {
    fn put(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.open.lock().expect("a lock").len()
    }

    fn whole(&self) -> Vec<usize> {
        self.whole.lock().expect("a lock").values().copied().collect()
    }

    /// One thing that is put: those that come meanwhile are seen, and it may hang.
    async fn takes(&self) {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        let number = self.puts.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(Duration::from_millis(30)).await;
        while number > 1 && self.hangs.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn s3(State(bucket): State<Arc<Bucket>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
    let upload = query.split('&').find_map(|pair| pair.strip_prefix("uploadId=")).map(str::to_owned);
    let text = match (parts.method, upload) {
        (Method::POST, None) if query.contains("uploads") => {
            let id = format!("upload-{}", bucket.begun.fetch_add(1, Ordering::SeqCst));
            bucket.open.lock().expect("a lock").insert(id.clone(), Vec::new());
            format!(
                "<InitiateMultipartUploadResult><Bucket>videos</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            )
        }
        (Method::PUT, Some(upload)) => {
            bucket.takes().await;
            // One that was taken back meanwhile stays so.
            if let Some(parts) = bucket.open.lock().expect("a lock").get_mut(&upload) {
                parts.push(body.len());
            }
            String::new()
        }
        (Method::PUT, None) => {
            bucket.takes().await;
            bucket.whole.lock().expect("a lock").insert(path, body.len());
            String::new()
        }
        (Method::POST, Some(upload)) => {
            let parts = bucket.open.lock().expect("a lock").remove(&upload).unwrap_or_default();
            let (last, others) = parts.split_last().expect("parts");
            assert!(others.iter().all(|part| *part == PART) && *last <= PART, "{parts:?}");
            bucket.whole.lock().expect("a lock").insert(path, parts.iter().sum());
            "<CompleteMultipartUploadResult><ETag>\"1\"</ETag></CompleteMultipartUploadResult>".to_owned()
        }
        (Method::DELETE, Some(upload)) => {
            bucket.open.lock().expect("a lock").remove(&upload);
            String::new()
        }
        (method, _) => panic!("{method} {path}?{query}"),
    };
    let mut reply = Response::new(Body::from(Bytes::from(text)));
    *reply.status_mut() = StatusCode::OK;
    reply.headers_mut().insert("etag", "\"1\"".parse().expect("text"));
    reply
}

#[expect(clippy::disallowed_methods, reason = "a server of the test's own, gone with it")]
fn serve(listener: tokio::net::TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

async fn house(settings: &str) -> (House, Arc<Bucket>) {
    let bucket = Arc::new(Bucket::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    serve(listener, Router::new().fallback(s3).with_state(bucket.clone()));
    let config =
        format!("[video]\ncopy_to = \"s3://videos/made\"\n{settings}\n[video.s3]\nendpoint = \"{endpoint}\"\n");
    (quick(Plan { config, ..Plan::default() }).await, bucket)
}

/// A video whose file has so many kilobytes more than it must have.
async fn begun(house: &House, kilobytes: usize) -> String {
    let body = json!({ "model": "kling-v3", "prompt": format!("[[sim:ok queue=0 run=0 kb={kilobytes}]]") });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let task: Value = reply.expect("a reply").json().await.expect("JSON");
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

async fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: never");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_part_by_part() {
    let (house, bucket) = house("").await;
    let id = begun(&house, 23 << 10).await;
    assert_eq!(finished(&house, &id).await["status"], "completed");
    let whole = bucket.whole();
    assert!(whole.len() == 1 && whole[0] > 23 << 20, "{whole:?}");
    assert_eq!((bucket.put(), bucket.open()), (5, 0), "parts of five mebibytes");
    assert_eq!(bucket.most_at_once.load(Ordering::SeqCst), 1, "one part is in memory, and no more");
}

/// A stop in the middle of a copy takes its parts back, and leaves the task to whoever comes next.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_cut_by_a_stop_leaves_nothing() {
    let (mut house, bucket) = house("").await;
    bucket.hangs.store(true, Ordering::SeqCst);
    let id = begun(&house, 12 << 10).await;
    until("the second part", || bucket.put() == 2).await;
    assert_eq!(bucket.open(), 1);
    let shown: Value =
        house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(shown["status"], "in_progress", "readers do not wait for a copy: {shown}");
    house.restart().await;
    until("its parts are taken back", || bucket.open() == 0 || bucket.begun.load(Ordering::SeqCst) > 1).await;
    bucket.hangs.store(false, Ordering::SeqCst);
    let done = finished(&house, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    let begun = bucket.begun.load(Ordering::SeqCst);
    assert_eq!((begun, bucket.open(), bucket.whole().len()), (2, 0, 1), "taken back, and made anew");
}

/// Who is slower than a copy may be is not copied: the video is there, and is shown with its
/// maker's link.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_takes_too_long_is_given_up() {
    let (house, bucket) = house("copy_time = \"3s\"\nown_links = false").await;
    bucket.hangs.store(true, Ordering::SeqCst);
    let id = begun(&house, 12 << 10).await;
    let done = finished(&house, &id).await;
    assert_eq!((&done["status"], bucket.whole().len()), (&json!("completed"), 0), "{done}");
    assert!(bucket.begun.load(Ordering::SeqCst) <= 1, "it is not tried again");
    assert_eq!(bucket.open(), 0, "its parts are taken back");
    let link = done["metadata"]["url"].as_str().expect("a link");
    assert_eq!(house.http.get(link).send().await.expect("a reply").status(), 200, "from its maker");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_copies_are_made_at_once_as_there_are_places() {
    let (house, bucket) = house("copies_at_once = 2").await;
    bucket.puts.store(1, Ordering::SeqCst);
    bucket.hangs.store(true, Ordering::SeqCst);
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(begun(&house, 0).await);
    }
    until("two copies", || bucket.put() == 3).await;
    let asked =
        || house.sim.received().iter().filter(|one| one.method == "GET" && one.path.contains("2video/")).count();
    let before = asked();
    until("the others are asked for again and again", || asked() > before + 8).await;
    assert_eq!(bucket.put(), 3, "the others wait for a place");
    bucket.hangs.store(false, Ordering::SeqCst);
    for id in ids {
        assert_eq!(finished(&house, &id).await["status"], "completed");
    }
    assert_eq!((bucket.whole().len(), bucket.most_at_once.load(Ordering::SeqCst)), (4, 2));
}
