//! The same requests as forms, the way the official SDKs send them.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use tollgate_media::video::{Offer, Reference, Variant, VideoRefusal, VideoRequest, plan};
use tollgate_wire::multipart::FormPart;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

fn field(name: &str, body: &str) -> FormPart {
    FormPart {
        name: name.to_owned(),
        file_name: None,
        content_type: None,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn file(name: &str, body: &'static [u8]) -> FormPart {
    let content_type = Some("application/octet-stream".to_owned());
    FormPart { name: name.to_owned(), file_name: Some("f".to_owned()), content_type, body: Bytes::from_static(body) }
}

fn form(fields: &[(&str, &str)]) -> Result<VideoRequest, VideoRefusal> {
    let model = [field("model", "m")];
    VideoRequest::from_form(model.into_iter().chain(fields.iter().map(|(name, body)| field(name, body))).collect())
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

/// The order in which the official Python SDK sends two parts: equal names together.
#[test]
fn gathered_names() {
    let request = form(&[
        ("prompt", "p"),
        ("metadata[content][][type]", "image_url"),
        ("metadata[content][][type]", "video_url"),
        ("metadata[content][][type]", "image_url"),
        ("metadata[content][][image_url][url]", "https://a/1"),
        ("metadata[content][][image_url][url]", "https://a/3"),
        ("metadata[content][][role]", "reference_image"),
        ("metadata[content][][role]", "reference_video"),
        ("metadata[content][][role]", "reference_image"),
        ("metadata[content][][video_url][url]", "https://a/2"),
    ])
    .expect("a request");
    let part = |kind: &str, url: &str, role: &str| json!({"type": kind, kind: {"url": url}, "role": role});
    assert_eq!(
        request.metadata["content"],
        json!([
            part("image_url", "https://a/1", "reference_image"),
            part("video_url", "https://a/2", "reference_video"),
            part("image_url", "https://a/3", "reference_image"),
        ])
    );
    // Two types and one role: nobody can say whose it is.
    let unclear = form(&[
        ("metadata[content][][type]", "image_url"),
        ("metadata[content][][type]", "image_url"),
        ("metadata[content][][image_url][url]", "https://a/1"),
        ("metadata[content][][image_url][url]", "https://a/2"),
        ("metadata[content][][role]", "first_frame"),
    ]);
    let refusal = unclear.expect_err("unclear");
    assert_eq!(refusal.param.as_deref(), Some("metadata[content][][role]"));
    assert!(refusal.message.contains("send JSON"));
}

#[test]
fn lists_inside_lists() {
    let one = form(&[
        ("metadata[subject_reference][][type]", "character"),
        ("metadata[subject_reference][][image][]", "https://a/1"),
        ("metadata[subject_reference][][image][]", "https://a/2"),
    ]);
    let subject = json!([{"type": "character", "image": ["https://a/1", "https://a/2"]}]);
    assert_eq!(one.expect("a request").metadata["subject_reference"], subject);
    let masks = form(&[
        ("metadata[masks][][mask]", "m1"),
        ("metadata[masks][][points][][x]", "1"),
        ("metadata[masks][][points][][y]", "2"),
        ("metadata[masks][][points][][x]", "3"),
        ("metadata[masks][][points][][y]", "4"),
        ("metadata[masks][][mask]", "m2"),
    ]);
    let expected = json!([{"mask": "m1", "points": [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]}, {"mask": "m2"}]);
    assert_eq!(masks.expect("a request").metadata["masks"], expected);
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
    let request = VideoRequest::from_form(parts).expect("a request");
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
        let refusal = VideoRequest::from_form(parts).expect_err(param);
        assert_eq!(refusal.param.as_deref(), Some(param), "{}", refusal.message);
    }
}

/// How a list of objects may be written: entry after entry, equal names together, or with numbers.
#[derive(Clone, Copy, Debug)]
enum Way {
    Rows,
    Columns,
    Numbers,
}

proptest! {
    /// The same parts in each way of writing them are the same request.
    #[test]
    fn every_way_of_writing_a_list(kinds in proptest::collection::vec(0usize..3, 1..6)) {
        let kinds: Vec<_> = kinds.iter().map(|kind| ["image_url", "video_url", "audio_url"][*kind]).collect();
        let expected: Vec<_> = kinds.iter().enumerate()
            .map(|(at, kind)| json!({"type": kind, *kind: {"url": format!("https://a/{at}")}, "role": format!("r{at}")}))
            .collect();
        for way in [Way::Rows, Way::Columns, Way::Numbers] {
            let mut fields: Vec<(String, String)> = Vec::new();
            for (at, kind) in kinds.iter().enumerate() {
                let entry = if matches!(way, Way::Numbers) { at.to_string() } else { String::new() };
                fields.push((format!("metadata[content][{entry}][type]"), (*kind).to_owned()));
                fields.push((format!("metadata[content][{entry}][{kind}][url]"), format!("https://a/{at}")));
                fields.push((format!("metadata[content][{entry}][role]"), format!("r{at}")));
            }
            if matches!(way, Way::Columns) {
                let mut order: Vec<String> = Vec::new();
                for (name, _) in &fields {
                    if !order.contains(name) {
                        order.push(name.clone());
                    }
                }
                fields.sort_by_key(|(name, _)| order.iter().position(|known| known == name));
            }
            let fields: Vec<_> = fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let request = form(&fields).expect("a request");
            prop_assert_eq!(&request.metadata["content"], &json!(expected), "{:?}", way);
        }
    }

    #[test]
    fn any_names(names in proptest::collection::vec("[ab\\[\\]0]{1,12}", 0..6)) {
        let parts = names.iter().map(|name| field(name, "x")).chain([field("model", "m")]).collect();
        let _either = VideoRequest::from_form(parts);
    }
}
