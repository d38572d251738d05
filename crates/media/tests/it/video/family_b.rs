//! Family B: first frame or references, never both; length, resolution, ratio, sound.

use super::table::{CLIP, OTHER, PICTURE, accepts, refuses};
use serde_json::{Value, json};
use tollgate_wire::error::Code::{InvalidParameter, MissingParameter, TaskTypeConstraint, UnsupportedValue};

const CALL: &str = "tasks";
const FACTS: &str = "resolution=720p audio=true video_input=false seconds=5 bound=5 tokens=108985";

fn picture(url: &str, role: Option<&str>) -> Value {
    match role {
        Some(role) => json!({"type": "image_url", "image_url": {"url": url}, "role": role}),
        None => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

fn body(mut content: Vec<Value>, more: Value) -> Value {
    content.push(json!({"type": "text", "text": "p"}));
    let mut body =
        json!({"content": content, "resolution": "720p", "duration": 5, "generate_audio": true, "watermark": false});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

fn all(fields: Value) -> impl Iterator<Item = (&'static str, Value)> {
    ["b-2.5", "b-2.0", "b-2.0-fast", "b-2.0-mini"].into_iter().map(move |variant| (variant, fields.clone()))
}

#[test]
fn pictures() {
    let reference = Some("reference_image");
    for (variant, fields) in all(json!({"prompt": "p", "images": [PICTURE, OTHER]})) {
        let sent = body(vec![picture(PICTURE, reference), picture(OTHER, reference)], json!({}));
        accepts("reference images go in images", variant, fields, CALL, sent, FACTS, &[]);
    }
    for (variant, fields) in all(json!({"prompt": "p", "input_reference": PICTURE})) {
        let sent = body(vec![picture(PICTURE, None)], json!({}));
        accepts("a single input_reference is a first frame", variant, fields, CALL, sent, FACTS, &[]);
    }
    for (variant, fields) in all(json!({"prompt": "p", "input_reference": PICTURE, "images": [OTHER]})) {
        let sent = body(vec![picture(OTHER, reference), picture(PICTURE, reference)], json!({}));
        accepts("when both are sent, both stay", variant, fields, CALL, sent, FACTS, &[]);
    }
    let fields = json!({"prompt": "p", "images": [PICTURE], "image": OTHER, "video_url": CLIP, "size": "1280*720"});
    let sent = body(vec![picture(PICTURE, reference)], json!({}));
    accepts("the rest is not read", "b-2.5", fields, CALL, sent, FACTS, &["image", "video_url", "size"]);
}

#[test]
fn length() {
    let sent = |seconds: i64| body(vec![picture(PICTURE, None)], json!({"duration": seconds}));
    let facts = |seconds: u32, tokens: u64| {
        format!("resolution=720p audio=true video_input=false seconds={seconds} bound={seconds} tokens={tokens}")
    };
    let first = |more: Value| {
        let mut fields = json!({"prompt": "p", "input_reference": PICTURE});
        for (name, value) in more.as_object().expect("an object") {
            fields[name] = value.clone();
        }
        fields
    };
    for (says, more, seconds, tokens, warned) in [
        ("seconds is text", json!({"seconds": "8"}), 8, 174_375, &[][..]),
        ("or duration", json!({"duration": 10}), 10, 217_969, &[]),
        ("seconds wins", json!({"seconds": "8", "duration": 10}), 8, 174_375, &["duration"]),
        (
            "metadata.duration wins over duration",
            json!({"duration": 10, "metadata": {"duration": 8}}),
            8,
            174_375,
            &["duration"],
        ),
    ] {
        accepts(says, "b-2.5", first(more), CALL, sent(seconds), &facts(seconds as u32, tokens), warned);
    }
    for (variant, fields) in all(first(json!({"seconds": "2"}))) {
        refuses("seconds of 2 is refused (5 works)", variant, fields, InvalidParameter, "seconds", "4 to");
    }
    let references = json!({"prompt": "p", "images": [PICTURE], "seconds": "30"});
    let thirty = body(vec![picture(PICTURE, Some("reference_image"))], json!({"duration": 30}));
    accepts("30 seconds in one shot", "b-2.5", references.clone(), CALL, thirty, &facts(30, 653_907), &[]);
    for variant in ["b-2.0", "b-2.0-fast", "b-2.0-mini"] {
        refuses("the 2.0 line makes 15", variant, references.clone(), InvalidParameter, "seconds", "4 to 15");
    }
    let says = "-1 leaves the length to the model, and the hold takes the longest";
    let open = "resolution=720p audio=true video_input=false bound=30 tokens=653907";
    accepts(says, "b-2.5", first(json!({"duration": -1})), CALL, sent(-1), open, &[]);
}

#[test]
fn provider_parameters() {
    let with = |metadata: Value| json!({"prompt": "p", "images": [PICTURE], "metadata": metadata});
    let sent = |more: Value| body(vec![picture(PICTURE, Some("reference_image"))], more);
    let says = "resolution, ratio and generate_audio; an explicit false stays";
    let metadata =
        json!({"resolution": "480p", "ratio": "16:9", "generate_audio": false, "watermark": false, "seed": 7});
    let facts = "resolution=480p audio=false video_input=false ratio=16:9 seconds=5 bound=5 tokens=50625";
    accepts(says, "b-2.5", with(metadata.clone()), CALL, sent(metadata), facts, &[]);
    let says = "resolution is 480p or 720p";
    for resolution in ["1080p", "4k"] {
        let fields = with(json!({"resolution": resolution}));
        refuses(says, "b-2.5", fields, UnsupportedValue, "metadata.resolution", "480p, 720p");
    }
    let fields = with(json!({"resolution": "720P"}));
    refuses(says, "b-2.5", fields, InvalidParameter, "metadata.resolution", "must be one of");
    let says = "what has no price is refused";
    for metadata in [json!({"frames": 121}), json!({"draft": true}), json!({"tools": [{"type": "web_search"}]})] {
        let field = format!("metadata.{}", metadata.as_object().expect("an object").keys().next().expect("a name"));
        refuses(says, "b-2.5", with(metadata), UnsupportedValue, &field, "price");
    }
    let fields = with(json!({"service_tier": "flex"}));
    refuses("flex", "b-2.5", fields, InvalidParameter, "metadata.service_tier", "default");
    let fields = with(json!({"callback_url": "https://caller.example/hook"}));
    accepts("no callbacks", "b-2.5", fields, CALL, sent(json!({})), FACTS, &["metadata.callback_url"]);
}

#[test]
fn content_parts() {
    let with = |content: Value| json!({"prompt": "p", "metadata": {"content": content}});
    let says = "content is an array of parts with type, image_url.url and role";
    let parts = vec![picture(PICTURE, Some("reference_image"))];
    accepts(says, "b-2.0", with(json!(parts)), CALL, body(parts, json!({})), FACTS, &[]);
    let says = "an image without role is the first frame";
    let parts = vec![picture(PICTURE, None)];
    accepts(says, "b-2.0", with(json!(parts)), CALL, body(parts.clone(), json!({})), FACTS, &[]);
    let says = "ratio with a first frame is refused";
    let fields = json!({"prompt": "p", "metadata": {"content": parts, "ratio": "16:9"}});
    refuses(says, "b-2.5", fields, TaskTypeConstraint, "metadata.ratio", "adaptive");
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "metadata": {"ratio": "16:9"}});
    refuses(says, "b-2.0", fields, TaskTypeConstraint, "metadata.ratio", "adaptive");
    assert_eq!(TaskTypeConstraint.code(), "InvalidParameter.TaskTypeConstraint");
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "metadata": {"ratio": "adaptive"}});
    let facts = "resolution=720p audio=true video_input=false ratio=adaptive seconds=5 bound=5 tokens=108985";
    let sent = body(vec![picture(PICTURE, None)], json!({"ratio": "adaptive"}));
    accepts("adaptive is no contradiction", "b-2.0", fields, CALL, sent, facts, &[]);
    let says = "with a role on every part ratio is accepted";
    let parts = vec![picture(PICTURE, Some("reference_image")), picture(OTHER, Some("reference_image"))];
    let fields = json!({"prompt": "p", "metadata": {"content": parts, "ratio": "21:9"}});
    let facts = "resolution=720p audio=true video_input=false ratio=21:9 seconds=5 bound=5 tokens=108985";
    accepts(says, "b-2.5", fields, CALL, body(parts, json!({"ratio": "21:9"})), facts, &[]);
    let says = "frames and references never mix";
    let parts = json!([picture(PICTURE, None), picture(OTHER, Some("reference_image"))]);
    refuses(says, "b-2.5", with(parts), TaskTypeConstraint, "metadata.content", "cannot be sent together");
    let fields =
        json!({"prompt": "p", "images": [OTHER], "metadata": {"content": [picture(PICTURE, Some("first_frame"))]}});
    refuses(says, "b-2.5", fields, TaskTypeConstraint, "metadata.content", "cannot be sent together");
    let parts = json!([picture(PICTURE, None), picture(OTHER, None)]);
    refuses("one first frame", "b-2.5", with(parts), TaskTypeConstraint, "metadata.content", "one first frame");
    let parts = json!([{"type": "image_url", "image_url": {"url": PICTURE}, "role": "reference_video"}]);
    refuses("roles fit types", "b-2.5", with(parts), InvalidParameter, "metadata.content[0]", "does not fit");
    let parts = json!([{"type": "image_url"}]);
    refuses("a link is needed", "b-2.5", with(parts), MissingParameter, "metadata.content[0]", "image_url.url");
}

#[test]
fn full_reference_mode() {
    let clip = json!({"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"});
    let sound =
        json!({"type": "audio_url", "audio_url": {"url": "https://media.example/a.mp3"}, "role": "reference_audio"});
    let image = picture(PICTURE, Some("reference_image"));
    let with = |content: &[Value]| json!({"prompt": "p", "metadata": {"content": content}});
    let says = "up to 30 images, 10 videos and 10 audio clips";
    let full = [vec![image.clone(); 30], vec![clip.clone(); 10], vec![sound.clone(); 10]].concat();
    let facts = "resolution=720p audio=true video_input=true seconds=5 bound=35 tokens=762891";
    accepts(says, "b-2.5", with(&full), CALL, body(full, json!({})), facts, &[]);
    refuses(says, "b-2.5", with(&vec![image.clone(); 31]), InvalidParameter, "metadata.content", "at most 30");
    refuses(says, "b-2.5", with(&vec![clip.clone(); 11]), InvalidParameter, "metadata.content", "at most 10");
    refuses(says, "b-2.5", with(&vec![sound.clone(); 11]), InvalidParameter, "metadata.content", "at most 10");
    refuses("the 2.0 line takes 9", "b-2.0", with(&vec![image; 10]), InvalidParameter, "metadata.content", "at most 9");
    let says = "audio-only input: 2.5 accepts it, the 2.0 line needs an image or a video";
    accepts(says, "b-2.5", with(std::slice::from_ref(&sound)), CALL, body(vec![sound.clone()], json!({})), FACTS, &[]);
    for variant in ["b-2.0", "b-2.0-fast", "b-2.0-mini"] {
        refuses(
            says,
            variant,
            with(std::slice::from_ref(&sound)),
            MissingParameter,
            "images",
            "at least one image or video",
        );
        refuses("2.0 with text alone", variant, json!({"prompt": "p"}), MissingParameter, "images", "at least one");
        let facts = "resolution=720p audio=true video_input=true seconds=5 bound=20 tokens=435938";
        let parts = vec![clip.clone()];
        accepts("a video is enough", variant, with(&parts), CALL, body(parts, json!({})), facts, &[]);
    }
    accepts("2.5 with text alone", "b-2.5", json!({"prompt": "p"}), CALL, body(vec![], json!({})), FACTS, &[]);
    let fields =
        json!({"prompt": "p", "seconds": "8", "metadata": {"content": [clip], "omni_reference_task_type": "edit"}});
    refuses("an edit keeps its length", "b-2.5", fields, TaskTypeConstraint, "seconds", "-1");
}
