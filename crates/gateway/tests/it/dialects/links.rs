//! Pictures and documents given by their address, for providers that take the data only: fetched
//! after the hold, put in their place, bounded, and never from an address inside.

use super::client::Client;
use super::packed::serve;
use crate::house::{House, Plan, call_id, error_of};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate_store::Ending;
use tollgate_wire::Dialect;

const CATALOG: &str = r#"
[model."gemini-data"]
context_window = 1000000
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]

# The second route takes links as they are.
[model."gemini-or-chat"]
context_window = 1000000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "sim-gemini", upstream_model = "sim-plain", priority = 1 },
  { provider = "sim", upstream_model = "sim-plain", priority = 2 },
]

[model."gemini-twice"]
context_window = 1000000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "away", upstream_model = "sim-plain", priority = 1 },
  { provider = "sim-gemini", upstream_model = "sim-plain", priority = 2 },
]

# The first takes no links at all, the second none to documents.
[model."gemini-then-chat"]
context_window = 1000000
supported_endpoint_types = ["anthropic"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "sim-gemini", upstream_model = "sim-plain", priority = 1 },
  { provider = "sim", upstream_model = "sim-plain", priority = 2 },
]

[model."chat-then-gemini"]
context_window = 1000000
supported_endpoint_types = ["anthropic"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "nobody", upstream_model = "sim-plain", priority = 1 },
  { provider = "sim-gemini", upstream_model = "sim-plain", priority = 2 },
]

[model."of-chat"]
context_window = 1000000
supported_endpoint_types = ["anthropic", "openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."chat-data"]
context_window = 1000000
supported_endpoint_types = ["openai", "anthropic"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "linkless", upstream_model = "sim-plain" }]
"#;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR, as far as anybody looks";

/// Somebody who has pictures, at an address that may be reached (127.0.0.1) and at one inside
/// (127.0.0.2).
#[derive(Clone)]
struct Gallery {
    outside: String,
    inside: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Gallery {
    async fn open() -> Gallery {
        let bind = async |host: &str| tokio::net::TcpListener::bind((host, 0)).await.expect("a port");
        let (outside, inside) = (bind("127.0.0.1").await, bind("127.0.0.2").await);
        let url = |one: &tokio::net::TcpListener| format!("http://{}", one.local_addr().expect("an address"));
        let gallery = Gallery { outside: url(&outside), inside: url(&inside), seen: Arc::default() };
        let app = |place: &'static str| Router::new().route("/{name}", get(show)).with_state((place, gallery.clone()));
        serve(outside, app("outside"));
        serve(inside, app("inside"));
        gallery
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.outside)
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().expect("a lock"))
    }
}

fn pdf() -> Vec<u8> {
    [b"%PDF-1.7\n".as_slice(), &[b'a'; 30_000]].concat()
}

async fn show(State((place, gallery)): State<(&'static str, Gallery)>, Path(name): Path<String>) -> Response {
    gallery.seen.lock().expect("a lock").push(format!("{place}/{name}"));
    match name.as_str() {
        "a.png" => PNG.to_vec().into_response(),
        "a.pdf" => pdf().into_response(),
        "page" => "<html>A page, which is no picture at all.</html>".into_response(),
        "big" => [PNG, &[0; 70_000]].concat().into_response(),
        "large" => [PNG, &[7; 400_000]].concat().into_response(),
        "late.png" | "late.pdf" => {
            tokio::time::sleep(Duration::from_millis(1_800)).await;
            if name == "late.png" { PNG.to_vec().into_response() } else { pdf().into_response() }
        }
        "moved" => Redirect::temporary("/a.png").into_response(),
        "astray" => Redirect::temporary(&format!("{}/a.png", gallery.inside)).into_response(),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            PNG.to_vec().into_response()
        }
        "missing-later" => {
            while !gallery.seen.lock().expect("a lock").iter().any(|one| one.ends_with("/slow")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            http::StatusCode::NOT_FOUND.into_response()
        }
        _ => (http::StatusCode::NOT_FOUND, "secret words of the server").into_response(),
    }
}

fn config(link_bytes: &str, more: &str) -> String {
    format!(
        "[fetch]\nprivate = [\"127.0.0.1/32\"]\nlink_bytes = \"{link_bytes}\"\ntime = \"3s\"\n{more}\n\
         [provider.away]\nkind = \"gemini\"\nbase_url = \"http://127.0.0.1:1\"\n"
    )
}

async fn house(more: &str, usd: &'static str) -> House {
    House::with(Plan { catalog: CATALOG, config: config("64KiB", more), usd, ..Plan::default() }).await
}

/// A request with a text and these pictures or documents, in the dialect of the client.
fn body(client: Client, model: &str, urls: &[String], document: bool) -> Value {
    let mut body = client.body(model, "", false);
    let text = "say [[sim:tokens=3]]";
    match client.0 {
        Dialect::Chat => {
            let picture = |url: &String| json!({ "type": "image_url", "image_url": { "url": url } });
            let parts = std::iter::once(json!({ "type": "text", "text": text })).chain(urls.iter().map(picture));
            body["messages"][0]["content"] = parts.collect();
        }
        Dialect::Anthropic => {
            let kind = if document { "document" } else { "image" };
            let picture = |url: &String| json!({ "type": kind, "source": { "type": "url", "url": url } });
            let parts = std::iter::once(json!({ "type": "text", "text": text })).chain(urls.iter().map(picture));
            body["messages"][0]["content"] = parts.collect();
        }
        Dialect::Responses => {
            let picture = |url: &String| match document {
                true => json!({ "type": "input_file", "file_url": url }),
                false => json!({ "type": "input_image", "image_url": url }),
            };
            let parts = std::iter::once(json!({ "type": "input_text", "text": text })).chain(urls.iter().map(picture));
            body["input"][0]["content"] = parts.collect();
        }
        Dialect::Gemini => unreachable!("its links are its own affair"),
    }
    body
}

async fn ask(house: &House, client: Client, body: &Value) -> reqwest::Response {
    client.post(house, &client.path("", false), body).send().await.expect("a reply")
}

const OTHERS: [Client; 3] = [Client(Dialect::Chat), Client(Dialect::Anthropic), Client(Dialect::Responses)];
const CHAT: Client = Client(Dialect::Chat);

/// The media that the provider got, in order.
fn inline(house: &House) -> Vec<Value> {
    let received = house.sim.received();
    let sent = received.last().expect("a call").json();
    let parts = sent["contents"].as_array().into_iter().flatten().flat_map(|turn| turn["parts"].as_array()).flatten();
    parts.filter(|part| part["inlineData"].is_object()).map(|part| part["inlineData"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_behind_a_link_is_sent_as_data_and_held_for_as_one() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let data = json!({ "mimeType": "image/png", "data": BASE64_STANDARD.encode(PNG) });
    for client in OTHERS {
        // The same link twice, and the same picture by way of another address.
        let urls = [gallery.at("a.png"), gallery.at("a.png"), gallery.at("moved")];
        let mut asked = body(client, "gemini-data", &urls, false);
        for stream in [false, true] {
            asked["stream"] = json!(stream);
            let reply = ask(&house, client, &asked).await;
            assert_eq!(reply.status(), 200, "{client:?}: {}", reply.text().await.unwrap_or_default());
            let call = call_id(&reply);
            let _ = reply.text().await;
            assert_eq!(inline(&house), [data.clone(), data.clone(), data.clone()], "{client:?}");
            let mut seen = gallery.seen();
            seen.sort();
            assert_eq!(seen, ["outside/a.png", "outside/a.png", "outside/moved"], "once, and once by way of another");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.attempts, row.dropped), (Ending::Answered, 1, None), "{client:?}");

            // What is held does not depend on how the picture is given.
            let given = match client.0 {
                Dialect::Anthropic => {
                    let mut given = asked.clone();
                    for at in 1..4 {
                        given["messages"][0]["content"][at]["source"] =
                            json!({ "type": "base64", "media_type": "image/png", "data": data["data"] });
                    }
                    given
                }
                _ => {
                    let url = format!("data:image/png;base64,{}", data["data"].as_str().expect("text"));
                    let mut given = body(client, "gemini-data", &[url.clone(), url.clone(), url], false);
                    given["stream"] = json!(stream);
                    given
                }
            };
            let reply = ask(&house, client, &given).await;
            let call = call_id(&reply);
            let _ = reply.text().await;
            assert_eq!(house.row(call).await.hold, row.hold, "{client:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_fetched_is_refused_by_its_field_and_free() {
    let gallery = Gallery::open().await;
    let house = house("links_per_call = 2", "10").await;
    let inside = format!("{}/a.png", gallery.inside);
    for (urls, why, held) in [
        (vec![gallery.at("page")], "neither a picture", true),
        (vec![gallery.at("big")], "more than 65536 bytes", true),
        (vec![gallery.at("missing")], "answered with 404", true),
        (vec![gallery.at("astray")], "cannot be reached", true),
        (vec![gallery.at("slow")], "in time", true),
        (vec![gallery.at("a.pdf")], "is not a picture", true),
        (vec![inside], "a public address", false),
        (vec!["http://169.254.169.254/latest/meta-data/".to_owned()], "a public address", false),
        (vec!["http://user:pass@x.example/a.png".to_owned()], "no user or password", false),
        (vec!["http://".to_owned()], "not an http(s) address", false),
        (vec![gallery.at("a.png"), gallery.at("b"), gallery.at("c")], "one too many", false),
    ] {
        for client in OTHERS {
            let reply = ask(&house, client, &body(client, "gemini-data", &urls, false)).await;
            let call = call_id(&reply);
            let status = reply.status().as_u16();
            let error: Value = reply.json().await.expect("JSON");
            let text = error["error"]["message"].as_str().unwrap_or_else(|| panic!("{error}"));
            let at = urls.len();
            let field = match client.0 {
                Dialect::Chat => format!("messages[0].content[{at}].image_url.url"),
                Dialect::Anthropic => format!("messages[0].content[{at}].source.url"),
                _ => format!("input[0].content[{at}].image_url"),
            };
            assert_eq!((status, &error["error"]["code"]), (400, &json!("invalid_parameter")), "{error}");
            assert!(text.contains(why) && text.contains(&field), "{client:?} {why}: {text}");
            assert!(!text.contains("127.0.0") && !text.contains("secret words"), "{text}");
            if client.0 == Dialect::Anthropic {
                assert_eq!(
                    (&error["type"], &error["error"]["type"]),
                    (&json!("error"), &json!("invalid_request_error"))
                );
            } else {
                assert_eq!(error["error"]["param"], json!(field), "{error}");
            }
            house.quiet().await;
            assert_eq!(house.available().await, 10_000_000_000, "{why}: nothing is charged or held");
            if held {
                let row = house.row(call).await;
                assert_eq!((row.ending, row.attempts, row.charge.nano()), (Ending::Refused, 0, 0), "{why}");
                assert!(row.hold.nano() > 0 && row.provider.is_none(), "{why}: {row:?}");
            }
            assert!(gallery.seen().iter().all(|one| held && one.starts_with("outside/")), "{why}");
        }
    }
    assert!(house.sim.received().is_empty(), "nothing is sent");
    let metrics = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    assert!(!metrics.contains("provider=\"sim-gemini\""), "no provider is to blame");
}

/// A file is fetched once and written wherever its link stands: what counts is what is written. 512
/// KiB take thirteen times 40,012 letters beside the request, and not fourteen times.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_stands_there_often_is_counted_as_often() {
    let gallery = Gallery::open().await;
    let house = house("links_per_call = 2\n[limits]\nbody_bytes = \"512KiB\"", "10").await;
    let client = Client(Dialect::Responses);
    for (name, times, refused) in [
        ("a.pdf", 13, None),
        ("a.pdf", 14, Some((14, "larger than 524288 bytes"))),
        ("a.pdf", 32, Some((14, "larger than 524288 bytes"))),
        ("a.png", 32, None),
        ("a.png", 33, Some((33, "at most 32 places"))),
    ] {
        let asked = body(client, "gemini-data", &vec![gallery.at(name); times], name == "a.pdf");
        let reply = ask(&house, client, &asked).await;
        let status = reply.status().as_u16();
        let answer: Value = reply.json().await.expect("JSON");
        match refused {
            None => {
                assert_eq!((status, inline(&house).len()), (200, times), "{name} {times}: {answer}");
                assert_eq!(gallery.seen(), [format!("outside/{name}")]);
            }
            Some((at, why)) => {
                let field = answer["error"]["param"].as_str().unwrap_or_else(|| panic!("{name} {times}: {answer}"));
                assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_parameter")), "{answer}");
                assert!(field.starts_with(&format!("input[0].content[{at}].")), "{name} {times}: {answer}");
                assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(why)), "{answer}");
                gallery.seen();
            }
        }
    }
    house.quiet().await;
    assert_eq!(house.sim.received().len(), 2, "what is refused is not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_links_are_refused_before_anything_is_held() {
    let gallery = Gallery::open().await;
    let house = house("links = false", "10").await;
    for (client, model) in [(CHAT, "gemini-data"), (CHAT, "chat-data"), (Client(Dialect::Anthropic), "chat-data")] {
        let reply = ask(&house, client, &body(client, model, &[gallery.at("a.png")], false)).await;
        let status = reply.status().as_u16();
        let error: Value = reply.json().await.expect("JSON");
        assert_eq!((status, &error["error"]["code"]), (400, &json!("unsupported_value")), "{error}");
        assert!(
            error["error"]["message"].as_str().is_some_and(|text| text.contains("messages[0].content[1]")),
            "{error}"
        );
    }
    assert!(gallery.seen().is_empty() && house.sim.received().is_empty() && house.all_rows().await.is_empty());
}

/// How long a document is shows when it is there: what it may cost more is held before anything is
/// sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_held_for_when_its_length_is_known() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let client = Client(Dialect::Responses);
    let asked = body(client, "gemini-data", &[gallery.at("a.pdf")], true);
    let reply = ask(&house, client, &asked).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let linked = call_id(&reply);
    assert_eq!(inline(&house), [json!({ "mimeType": "application/pdf", "data": BASE64_STANDARD.encode(pdf()) })]);
    let mut given = asked.clone();
    let data = format!("data:application/pdf;base64,{}", BASE64_STANDARD.encode(pdf()));
    given["input"][0]["content"][1] = json!({ "type": "input_file", "file_data": data, "filename": "a.pdf" });
    let reply = ask(&house, client, &given).await;
    assert_eq!(reply.status(), 200);
    let (linked, given) = (house.row(linked).await, house.row(call_id(&reply)).await);
    let apart = given.hold.nano() - linked.hold.nano();
    // The name of the file is text too.
    assert!(apart.abs() < 20_000, "{} and {} for 40,012 letters", linked.hold, given.hold);
    assert!(linked.hold.nano() > 1_000 * 40_012 / 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_nobody_has_money_for_is_not_sent() {
    let gallery = Gallery::open().await;
    // Enough for the question and its answer, not for a document of any length: it is not even
    // fetched.
    let house = house("", "0.0025").await;
    let client = Client(Dialect::Responses);
    let mut asked = body(client, "gemini-data", &[gallery.at("a.pdf")], true);
    asked["max_output_tokens"] = json!(1_000);
    let reply = ask(&house, client, &asked).await;
    let call = call_id(&reply);
    assert_eq!(reply.status(), 402, "{}", reply.text().await.unwrap_or_default());
    house.quiet().await;
    let row = house.row(call).await;
    assert_eq!((row.ending, row.attempts, row.charge.nano()), (Ending::Refused, 0, 0));
    assert_eq!(house.available().await, 2_500_000);
    assert_eq!((gallery.seen().len(), house.sim.received().len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_takes_links_is_tried_and_gets_them_as_they_are() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let asked = body(CHAT, "gemini-or-chat", &[gallery.at("missing")], false);
    let reply = ask(&house, CHAT, &asked).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.attempts, row.provider.as_deref()), (1, Some("sim")), "the first route was never asked");
    let sent = house.sim.received().last().expect("a call").json();
    assert_eq!(sent["messages"][0]["content"][1]["image_url"]["url"], json!(gallery.at("missing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_fetched_once_however_many_routes_are_tried() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let reply = ask(&house, CHAT, &body(CHAT, "gemini-twice", &[gallery.at("a.png")], false)).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.attempts, row.provider.as_deref()), (2, Some("sim-gemini")));
    assert_eq!((gallery.seen(), inline(&house).len()), (vec!["outside/a.png".to_owned()], 1));
}

/// A document and a picture, the picture first.
fn both(model: &str, picture: &str, document: &str) -> Value {
    let client = Client(Dialect::Anthropic);
    let mut asked = body(client, model, &[picture.to_owned()], false);
    let document = json!({ "type": "document", "source": { "type": "url", "url": document } });
    asked["messages"][0]["content"].as_array_mut().expect("a list").push(document);
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_for_one_route_is_not_tried_for_the_next() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    // The slow one is on its way when the other fails.
    let asked = body(CHAT, "gemini-twice", &[gallery.at("missing-later"), gallery.at("slow")], false);
    let (status, error) = error_of(ask(&house, CHAT, &asked).await).await;
    let message = error["message"].as_str().expect("a message");
    assert!(status == 400 && message.contains("answered with 404"), "nobody waits for the slow one: {message}");
    let mut seen = gallery.seen();
    seen.sort();
    assert_eq!(seen, ["outside/missing-later", "outside/slow"], "each once");

    // The second route wants the document only, which the first has fetched although its picture
    // failed.
    let client = Client(Dialect::Anthropic);
    let reply = ask(&house, client, &both("gemini-then-chat", &gallery.at("missing"), &gallery.at("late.pdf"))).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let sent = house.sim.received().last().expect("a call").json();
    assert_eq!(sent["messages"][0]["content"][1]["image_url"]["url"], json!(gallery.at("missing")), "{sent}");
    let mut seen = gallery.seen();
    seen.sort();
    assert_eq!(seen, ["outside/late.pdf", "outside/missing"], "each once");
}

/// Three seconds for all links of a call: the first route waits 1.8 for the document, so the second
/// has not 1.8 left for the picture.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_for_links_is_one_for_all_routes() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let client = Client(Dialect::Anthropic);
    let reply = ask(&house, client, &both("chat-then-gemini", &gallery.at("late.png"), &gallery.at("late.pdf"))).await;
    let status = reply.status().as_u16();
    let error = reply.text().await.unwrap_or_default();
    assert!(status != 200 && house.sim.received().is_empty(), "{error}");
    assert_eq!(gallery.seen(), ["outside/late.pdf", "outside/late.png"]);

    let reply = ask(&house, client, &both("chat-then-gemini", &gallery.at("a.png"), &gallery.at("late.pdf"))).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    assert_eq!(inline(&house).len(), 2);
}

/// Large enough to be encoded and put in apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_picture_arrives_whole() {
    let gallery = Gallery::open().await;
    let house = House::with(Plan { catalog: CATALOG, config: config("1MiB", ""), ..Plan::default() }).await;
    let data = json!({ "mimeType": "image/png", "data": BASE64_STANDARD.encode([PNG, &[7; 400_000]].concat()) });
    for client in OTHERS {
        let urls = [gallery.at("large"), gallery.at("large")];
        let reply = ask(&house, client, &body(client, "gemini-data", &urls, false)).await;
        assert_eq!(reply.status(), 200, "{client:?}: {}", reply.text().await.unwrap_or_default());
        assert!(inline(&house) == [data.clone(), data.clone()], "{client:?}");
        assert_eq!(gallery.seen(), ["outside/large"]);
    }
}

/// `takes_links = false`: also where client and provider speak the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_be_said_to_take_no_links() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let data = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(PNG));
    for client in [CHAT, Client(Dialect::Anthropic)] {
        let reply = ask(&house, client, &body(client, "chat-data", &[gallery.at("a.png")], false)).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        let sent = house.sim.received().last().expect("a call").json();
        assert_eq!(sent["messages"][0]["content"][1]["image_url"]["url"], json!(data), "{sent}");
    }
}

/// Chat completions take pictures by their address, and documents as data only.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_behind_a_link_reaches_a_provider_of_chat() {
    let gallery = Gallery::open().await;
    let house = house("", "10").await;
    let data = format!("data:application/pdf;base64,{}", BASE64_STANDARD.encode(pdf()));
    for client in [Client(Dialect::Anthropic), Client(Dialect::Responses)] {
        let mut asked = body(client, "of-chat", &[gallery.at("a.pdf")], true);
        let (list, picture) = match client.0 {
            Dialect::Anthropic => {
                let source = json!({ "type": "url", "url": gallery.at("missing") });
                (&mut asked["messages"][0]["content"], json!({ "type": "image", "source": source }))
            }
            _ => (
                &mut asked["input"][0]["content"],
                json!({ "type": "input_image", "image_url": gallery.at("missing") }),
            ),
        };
        list.as_array_mut().expect("a list").push(picture);
        let reply = ask(&house, client, &asked).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        let sent = house.sim.received().last().expect("a call").json();
        let content = &sent["messages"][0]["content"];
        assert_eq!(content[1]["file"]["file_data"], json!(data), "{client:?}");
        assert_eq!(content[2]["image_url"]["url"], json!(gallery.at("missing")), "as it is");
        assert_eq!(gallery.seen(), ["outside/a.pdf"], "{client:?}");
    }
}
