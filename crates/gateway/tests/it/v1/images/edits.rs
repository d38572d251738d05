//! POST /v1/images/edits: forms with files, JSON with links.

use super::*;
use crate::house::error_of;

const PATH: &str = "/v1/images/edits";
/// What makers may draw, and no maker changes.
const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\"><path d=\"M0 0h1\"/></svg>";

/// A picture that opens, so many bytes longer.
fn picture(tag: u8, more: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0".to_vec();
    bytes.extend(std::iter::repeat_n(tag, 40 + more));
    bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
    bytes
}

/// A form as clients write it.
struct Form(Vec<u8>);

impl Form {
    fn text(self, name: &str, value: &str) -> Form {
        self.part(&format!("name=\"{name}\""), "", value.as_bytes())
    }

    /// Whoever sends a file says little of it that could be believed.
    fn file(self, name: &str, bytes: &[u8]) -> Form {
        let head = format!("name=\"{name}\"; filename=\"upload\"");
        self.part(&head, "Content-Type: application/octet-stream\r\n", bytes)
    }

    fn part(mut self, head: &str, more: &str, bytes: &[u8]) -> Form {
        let head = format!("--BOUNDARY\r\nContent-Disposition: form-data; {head}\r\n{more}\r\n");
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The request, with a boundary of its own.
    fn request(mut self, house: &House, boundary: &str) -> reqwest::RequestBuilder {
        self.0.extend_from_slice(b"--BOUNDARY--\r\n");
        let places: Vec<usize> = (0..self.0.len()).filter(|at| self.0[*at..].starts_with(b"--BOUNDARY")).collect();
        assert_eq!(boundary.len(), 8);
        for at in places {
            self.0[at + 2..at + 10].copy_from_slice(boundary.as_bytes());
        }
        let kind = format!("multipart/form-data; boundary={boundary}");
        house.http.post(house.url(PATH)).bearer_auth(&house.key).header("content-type", kind).body(self.0)
    }
}

fn form(model: &str, prompt: &str) -> Form {
    Form(Vec::new()).text("model", model).text("prompt", prompt)
}

async fn send(house: &House, form: Form) -> Response {
    form.request(house, "b0undary").send().await.expect("a reply")
}

/// The files of a form that the simulator got: name, media type, bytes.
fn files(seen: &tollgate_sim::Received) -> Vec<(String, String, Vec<u8>)> {
    let kind = seen.header("content-type").expect("a type").to_owned();
    let boundary = format!("--{}", kind.split("boundary=").nth(1).expect("a boundary"));
    let body = &seen.body;
    let places: Vec<usize> = (0..body.len().saturating_sub(boundary.len()))
        .filter(|at| body[*at..].starts_with(boundary.as_bytes()))
        .collect();
    let mut found = Vec::new();
    for pair in places.windows(2) {
        let part = &body[pair[0]..pair[1]];
        let end = part.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&part[..end]).into_owned();
        if head.contains("filename=") {
            let after = |mark: &str, until: char| {
                head.split(mark).nth(1).and_then(|rest| rest.split(until).next()).unwrap_or_default().to_owned()
            };
            let bytes = part[end + 4..part.len() - 2].to_vec();
            found.push((after(" name=\"", '"'), after("Content-Type: ", '\r'), bytes));
        }
    }
    found
}

/// MM11: every edit with several pictures failed elsewhere, because files were sent as texts.
#[tokio::test(flavor = "multi_thread")]
async fn pictures_reach_the_provider_as_they_are() {
    let house = house().await;
    for (count, name, more) in [(1, "image", 0), (2, "image[]", 0), (16, "image[]", 0), (2, "image[]", 2 << 20)] {
        house.sim.clear();
        let mut form = form("pictures", "brighter").text("n", "2").text("size", "1024x1024");
        for at in 0..count {
            let field = if count == 2 { format!("image[{at}]") } else { name.to_owned() };
            form = form.file(&field, &picture(at, more));
        }
        form = form.file("mask", &picture(99, 0));
        let reply = send(&house, form).await;
        let (status, call) = (reply.status(), call_id(&reply));
        let result: Value = reply.json().await.expect("JSON");
        assert_eq!(status, 200, "{result}");
        assert_eq!(pictures(&result), 2);
        let seen = house.sim.received().pop().expect("sent");
        let sent = files(&seen);
        assert_eq!(sent.len(), usize::from(count) + 1, "{count}");
        for (at, (field, kind, bytes)) in sent.iter().enumerate().take(count.into()) {
            assert_eq!((field.as_str(), kind.as_str()), (name, "image/png"));
            assert!(*bytes == picture(u8::try_from(at).expect("few"), more), "the bytes of {at}");
        }
        assert_eq!((sent.last().expect("a mask").0.as_str(), seen.header("content-length").is_some()), ("mask", true));
        assert_eq!(house.row(call).await.charge.nano(), 2 * EACH);
    }
}

/// MM12: an edit failed on its second route, because its body had been read already.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_route_gets_the_whole_form() {
    let house = house().await;
    let form = form("two-ways", "brighter").file("image", &picture(1, 3 << 20)).file("mask", &picture(2, 0));
    let reply = send(&house, form).await;
    let row = house.row(call_id(&reply)).await;
    assert_eq!((reply.status().as_u16(), row.attempts), (200, 2));
    let sent = files(&house.sim.received().pop().expect("sent"));
    assert!(sent.len() == 2 && sent[0].2 == picture(1, 3 << 20) && sent[1].2 == picture(2, 0));
}

/// MM13: edits as JSON were not supported, though clients send them.
#[tokio::test(flavor = "multi_thread")]
async fn json_and_forms_say_the_same() {
    let house = house().await;
    let data = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(picture(1, 0)));
    let link = "https://media.example/1.png";
    for body in [
        json!({ "image": data }),
        json!({ "image": [data] }),
        json!({ "images": [{ "image_url": data }] }),
        json!({ "image": link }),
        json!({ "images": [{ "image_url": link }], "mask": { "image_url": link } }),
    ] {
        house.sim.clear();
        let body = asked("pictures", "brighter", &body);
        let reply = post(&house, PATH, &body).send().await.expect("a reply");
        let call = call_id(&reply);
        let (status, result) = (reply.status(), reply.json::<Value>().await.expect("JSON"));
        assert_eq!(status, 200, "{body}: {result}");
        assert_eq!((pictures(&result), house.row(call).await.charge.nano()), (1, EACH));
        let seen = house.sim.received().pop().expect("sent");
        assert_eq!(seen.path, "/v1/images/edits");
        match body.to_string().contains("data:") {
            // A picture is a file, however it came.
            true => assert_eq!(files(&seen)[0].2, picture(1, 0)),
            false => assert_eq!(seen.json()["images"], json!([{ "image_url": link }])),
        }
    }
}

/// Where one picture is a link and another is not, all of them go as links, in their order.
#[tokio::test(flavor = "multi_thread")]
async fn links_and_data_links_may_stand_side_by_side() {
    let house = house().await;
    let data = |tag: u8, more: usize| format!("data:image/png;base64,{}", BASE64_STANDARD.encode(picture(tag, more)));
    // One that is held in memory, and one that lies on disk.
    let (small, large, link) = (data(1, 0), data(2, 2 << 20), "https://media.example/1.png");
    for (images, mask) in [
        (json!([small, link]), Value::Null),
        (json!([link, large, small]), Value::Null),
        (json!([small]), json!(link)),
        (json!([link]), json!(small)),
        (json!([large, link, small]), json!(small)),
    ] {
        house.sim.clear();
        let body = asked("pictures", "brighter", &json!({ "image": images, "mask": mask }));
        let reply = post(&house, PATH, &body).send().await.expect("a reply");
        let call = call_id(&reply);
        let (status, result) = (reply.status(), reply.json::<Value>().await.expect("JSON"));
        assert_eq!((status.as_u16(), house.row(call).await.charge.nano()), (200, EACH), "{result}");
        let seen = house.sim.received().pop().expect("sent");
        assert_eq!((seen.path.as_str(), seen.header("content-type")), (PATH, Some("application/json")));
        let sent = seen.json();
        let as_link = |one: &Value| json!({ "image_url": one });
        let images: Value = images.as_array().expect("a list").iter().map(as_link).collect();
        assert!(sent["images"] == images, "the same pictures in the same order");
        assert!(sent["mask"] == if mask.is_null() { mask } else { as_link(&mask) }, "the same mask");
    }
    assert_eq!(house.running().app.spool.budget.used(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_makers_get_files_as_data() {
    let house = house().await;
    let letters = BASE64_STANDARD.encode(picture(5, 100_000));
    let data = format!("data:image/png;base64,{letters}");
    for (model, place, wanted) in [
        ("minimax-pictures", "/subject_reference/0/image_file", &data),
        ("ark-pictures", "/image/0", &data),
        ("qwen-pictures", "/input/messages/0/content/0/image", &data),
        ("wan-pictures", "/input/images/0", &data),
        ("kling-pictures", "/image", &letters),
        ("google-pictures", "/contents/0/parts/0/inlineData/data", &letters),
    ] {
        house.sim.clear();
        let form = form(model, "brighter").file("image", &picture(5, 100_000));
        let reply = send(&house, form).await;
        assert_eq!(reply.status(), 200, "{model}");
        let sent = house.sim.received().remove(0).json();
        assert!(sent.pointer(place).and_then(Value::as_str) == Some(wanted), "{model} at {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_edit_is_named() {
    let house = house().await;
    for (form, field) in [
        (form("pictures", "p"), "image"),
        (form("pictures", "p").file("image", b"a text, and no picture"), "image"),
        (form("pictures", "p").file("image", DRAWING.as_bytes()), "image"),
        (form("pictures", "p").file("image", &picture(1, 0)).file("image[]", DRAWING.as_bytes()), "image[]"),
        (form("pictures", "p").file("image", &picture(1, 0)).file("mask", DRAWING.as_bytes()), "mask"),
        (form("pictures", "p").file("file", &picture(1, 0)), "file"),
        (form("old-pictures", "p").file("image", &picture(1, 0)), "model"),
        (form("google-pictures", "p").file("image", &picture(1, 0)).file("mask", &picture(1, 0)), "mask"),
        (form("pictures", "p").file("image", &picture(1, 0)).text("n", "x"), "n"),
        (form("pictures", "p").file("image", &picture(1, 0)).file("mask", &picture(1, 5 << 20)), "mask"),
    ] {
        let (status, error) = error_of(send(&house, form).await).await;
        assert!(status == 400 || status == 413, "{error}");
        assert_eq!(error["param"], field, "{error}");
    }
    let drawing = format!("data:image/svg+xml;base64,{}", BASE64_STANDARD.encode(DRAWING));
    for (body, field) in [
        (json!({ "image": "http://127.0.0.1/1.png" }), "image[0]"),
        (json!({ "image": "data:image/png;base64,AAAA" }), "image[0]"),
        (json!({ "image": drawing }), "image[0]"),
        (json!({ "image": ["https://media.example/1.png", drawing] }), "image[1]"),
        (json!({ "image": "https://media.example/1.png", "mask": drawing }), "mask"),
        (json!({ "images": [{ "file_id": "file-1" }] }), "images[0].file_id"),
    ] {
        let body = asked("pictures", "p", &body);
        let (status, error) = error_of(post(&house, PATH, &body).send().await.expect("a reply")).await;
        assert_eq!((status, &error["param"]), (400, &json!(field)), "{error}");
    }
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_form_is_one_edit_whatever_its_boundary() {
    let house = house().await;
    let tries = std::cell::Cell::new(0);
    let send = async |tag: u8| {
        let form = form("pictures", "brighter").file("image", &picture(tag, 0));
        let boundary = ["b0undary", "c0undary", "d0undary"][tries.get()];
        tries.set(tries.get() + 1);
        form.request(&house, boundary).header("idempotency-key", "k-1").send().await.expect("a reply")
    };
    let first = call_id(&send(1).await);
    let again = send(1).await;
    assert_eq!((again.status().as_u16(), call_id(&again)), (200, first));
    assert_eq!(send(2).await.status(), 409);
    assert_eq!(house.sim.received().len(), 1);
}

/// Pictures in data links lie where files of forms do, and not in memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_data_link_is_spooled_answer() {
    let house = house().await;
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    picture.resize(3 << 20, 7);
    let link = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&picture));
    house.sim.shut("/v1/images/edits");
    let body = asked("pictures", "a hat", &json!({ "image": link }));
    let call = tokio::task::JoinSet::from_iter([post(&house, "/v1/images/edits", &body).send()]);
    while house.sim.waited() == 0 {
        tokio::task::yield_now().await;
    }
    let app = &house.running().app;
    assert!(app.spool.budget.used() >= 3 << 20, "it lies on disk");
    assert_eq!(app.bodies.used(), 0, "and nothing of it in memory");
    house.sim.open();
    let reply = call.join_all().await.remove(0).expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    for letters in [&link[..link.len() - 3], "data:image/png;base64,QQ==QQ==", "data:image/png;base64,QUJD", "data:,x"]
    {
        let body = asked("pictures", "a hat", &json!({ "image": [link, letters] }));
        let reply = post(&house, "/v1/images/edits", &body).send().await.expect("a reply");
        let (status, error) = crate::house::error_of(reply).await;
        assert_eq!((status, &error["param"]), (400, &json!("image[1]")));
    }
    // A tree of small values would take many times the memory of its text.
    let numbers = vec![0; 1 << 20];
    let body = asked("pictures", "a hat", &json!({ "image": link, "numbers": numbers }));
    let reply = post(&house, "/v1/images/edits", &body).send().await.expect("a reply");
    assert_eq!(crate::house::error_of(reply).await.0, 400);
}

/// B3: a form spells in brackets what JSON has in objects.
#[tokio::test(flavor = "multi_thread")]
async fn no_field_of_a_form_passes_beside_the_price() {
    let house = house().await;
    for (name, value) in [
        ("n[]", "4"),
        ("n[0]", "4"),
        ("Size", "4096x4096"),
        ("size[width]", "4096"),
        ("image_size", "4096x4096"),
        ("image[0][image_url]", "https://media.example/1.png"),
        ("image_url", "https://media.example/1.png"),
        ("extra_body[n]", "4"),
        ("extra_body", "{\"n\": 4}"),
        ("metadata[n]", "4"),
        ("mask[image_url]", "https://media.example/1.png"),
    ] {
        let form = form("pictures", "p").file("image", &picture(1, 0)).text(name, value);
        let (status, error) = error_of(send(&house, form).await).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(name)), "{error}");
    }
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (0, 0));
}
