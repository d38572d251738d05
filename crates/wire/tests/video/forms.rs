//! The same requests as forms, the way the official SDKs send them.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use tollgate_wire::multipart::Part;
use tollgate_wire::video::{Offer, Reference, Refusal, Request, Variant, plan};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

fn field(name: &str, body: &str) -> Part {
    Part { name: name.to_owned(), file_name: None, content_type: None, body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn file(name: &str, body: &'static [u8]) -> Part {
    let content_type = Some("application/octet-stream".to_owned());
    Part { name: name.to_owned(), file_name: Some("f".to_owned()), content_type, body: Bytes::from_static(body) }
}

fn form(fields: &[(&str, &str)]) -> Result<Request, Refusal> {
    let model = [field("model", "m")];
    Request::from_form(model.into_iter().chain(fields.iter().map(|(name, body)| field(name, body))).collect())
}

#[test]
fn nested_names() {
    let request = form(&[
        ("prompt", "p"),
        ("images[]", "https://a/1"),
        ("images[]", "https://a/2"),
        ("seconds", "8"),
        ("metadata[ratio]", "16:9"),
        ("metadata[generate_audio]", "false"),
        ("metadata[seed]", "7"),
        ("metadata[content][][type]", "image_url"),
        ("metadata[content][][image_url][url]", "https://a/3"),
        ("metadata[content][][role]", "reference_image"),
        ("metadata[content][][type]", "video_url"),
        ("metadata[content][][video_url][url]", "https://a/4"),
    ])
    .expect("a request");
    let variant = Variant::named("b-2.5").expect("a variant");
    let plan = plan(&request, &Offer::of(variant)).expect("a plan");
    assert_eq!(
        serde_json::Value::Object(plan.body),
        json!({
            "content": [
                {"type": "image_url", "image_url": {"url": "https://a/3"}, "role": "reference_image"},
                {"type": "video_url", "video_url": {"url": "https://a/4"}, "role": "reference_video"},
                {"type": "image_url", "image_url": {"url": "https://a/1"}, "role": "reference_image"},
                {"type": "image_url", "image_url": {"url": "https://a/2"}, "role": "reference_image"},
                {"type": "text", "text": "p"},
            ],
            "duration": 8, "generate_audio": false, "ratio": "16:9", "resolution": "720p", "seed": 7, "watermark": false,
        })
    );
    assert_eq!(plan.warnings, []);
}

#[test]
fn numbered_names_and_whole_metadata() {
    let numbered = form(&[("images[0]", "https://a/1"), ("metadata[a][0][b]", "1"), ("metadata[a][1][b]", "2")]);
    let numbered = numbered.expect("a request");
    assert_eq!(numbered.images, ["https://a/1"]);
    assert_eq!(json!(numbered.metadata), json!({"a": [{"b": "1"}, {"b": "2"}]}));
    let whole = form(&[("metadata", r#"{"settings": {"duration": 7}}"#), ("duration", "5")]).expect("a request");
    assert_eq!((json!(whole.metadata), whole.duration), (json!({"settings": {"duration": 7}}), Some(5)));
}

#[test]
fn a_file_for_input_reference() {
    let parts = vec![field("model", "m"), field("prompt", "p"), file("input_reference", PNG)];
    let request = Request::from_form(parts).expect("a request");
    let Some(Reference::File(upload)) = &request.input_reference else { panic!("{request:?}") };
    assert_eq!((upload.content_type.as_str(), &upload.bytes[..]), ("image/png", PNG));
    let variant = Variant::named("a-image-to-video").expect("a variant");
    let plan = plan(&request, &Offer::of(variant)).expect("a plan");
    let url = plan.body["input"]["media"][0]["url"].as_str().expect("a link");
    assert_eq!(url, "data:image/png;base64,iVBORw0KGgouLi4u");
}

#[test]
fn refused() {
    for (parts, param) in [
        (vec![field("prompt", "p")], "model"),
        (vec![field("model", "m"), field("model", "n")], "model"),
        (vec![field("model", "m"), field("metadata[a", "1")], "metadata[a"),
        (vec![field("model", "m"), field("[a]", "1")], "[a]"),
        (vec![field("model", "m"), field("metadata[a]", "1"), field("metadata[a][b]", "1")], "metadata[a][b]"),
        (vec![field("model", "m"), field("metadata[a][7][b]", "1")], "metadata[a][7][b]"),
        (vec![field("model", "m"), field("metadata[a][b][c][d][e][f][g][h]", "1")], "metadata[a][b][c][d][e][f][g][h]"),
        (vec![field("model", "m"), field("metadata", "text")], "metadata"),
        (vec![field("model", "m"), field("duration", "5.5")], "duration"),
        (vec![field("model", "m"), file("images[]", PNG)], "images[]"),
        (vec![field("model", "m"), file("input_reference", b"<svg/>")], "input_reference"),
        (vec![field("model", "m"), file("input_reference", PNG), file("input_reference", PNG)], "input_reference"),
    ] {
        let refusal = Request::from_form(parts).expect_err(param);
        assert_eq!(refusal.param.as_deref(), Some(param), "{}", refusal.message);
    }
}

proptest! {
    #[test]
    fn any_names(names in proptest::collection::vec("[ab\\[\\]0]{1,12}", 0..6)) {
        let parts = names.iter().map(|name| field(name, "x")).chain([field("model", "m")]).collect();
        let _either = Request::from_form(parts);
    }
}
