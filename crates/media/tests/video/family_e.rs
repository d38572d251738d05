//! Family E: fields as family A; 480P is priced; pictures in `images` are not assembled.

use crate::table::{OTHER, PICTURE, accepts, refuses};
use serde_json::{Value, json};
use tollgate_wire::error::Code::{InvalidParameter, MissingParameter};

const CALL: &str = "video-synthesis";

fn folded(media: Value, tier: &str, seconds: u32) -> Value {
    let parameters = json!({"resolution": tier, "duration": seconds, "watermark": false});
    json!({"input": {"prompt": "p", "media": media}, "parameters": parameters})
}

#[test]
fn four_eighty_is_priced() {
    let parameters = json!({"size": "832*480", "duration": 5, "watermark": false});
    let body = json!({"input": {"prompt": "p"}, "parameters": parameters});
    let facts = "size=832*480 resolution=480P audio=true seconds=5 bound=5";
    let fields = json!({"prompt": "p", "size": "832*480"});
    accepts("832*480 is accepted", "e-text-to-video", fields, CALL, body, facts, &[]);
    let frame = json!([{"type": "first_frame", "url": PICTURE}]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "832*480", "duration": 3});
    let facts = "size=832*480 resolution=480P audio=true seconds=3 bound=3";
    accepts("as a first frame", "e-image-to-video", fields, CALL, folded(frame, "480P", 3), facts, &[]);
    let one = json!([{"type": "reference_image", "url": PICTURE}]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "832*480"});
    let facts = "size=832*480 resolution=480P audio=true seconds=5 bound=5";
    accepts("as a reference", "e-reference-to-video", fields, CALL, folded(one, "480P", 5), facts, &[]);
}

#[test]
fn defaults_as_family_a() {
    let parameters = json!({"size": "1280*720", "duration": 5, "watermark": false});
    let body = json!({"input": {"prompt": "p"}, "parameters": parameters});
    let facts = "size=1280*720 resolution=720P audio=true seconds=5 bound=5";
    accepts("text", "e-text-to-video", json!({"prompt": "p"}), CALL, body, facts, &[]);
    let frame = json!([{"type": "first_frame", "url": PICTURE}]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE});
    let facts = "resolution=1080P audio=true seconds=5 bound=5";
    accepts("image", "e-image-to-video", fields, CALL, folded(frame, "1080P", 5), facts, &[]);
    refuses(
        "3 to 15 seconds",
        "e-text-to-video",
        json!({"prompt": "p", "duration": 2}),
        InvalidParameter,
        "duration",
        "3 to 15",
    );
}

#[test]
fn several_references_go_in_metadata() {
    const R2V: &str = "e-reference-to-video";
    let media = json!([{"type": "reference_image", "url": PICTURE}, {"type": "reference_image", "url": OTHER}]);
    let facts = "resolution=1080P audio=true seconds=5 bound=5";
    let fields = json!({"prompt": "p", "metadata": {"input": {"media": media}}});
    accepts("metadata.input.media", R2V, fields, CALL, folded(media.clone(), "1080P", 5), facts, &[]);
    let fields = json!({"prompt": "p", "input_reference": OTHER, "metadata": {"input": {"media": media}}});
    accepts("it replaces the single one", R2V, fields, CALL, folded(media, "1080P", 5), facts, &["input_reference"]);
    let says = "the assembly triggered by images belongs only to A";
    refuses(
        says,
        R2V,
        json!({"prompt": "p", "images": [PICTURE, OTHER]}),
        MissingParameter,
        "input_reference",
        "media",
    );
    let one = json!([{"type": "reference_image", "url": PICTURE}]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "images": [OTHER]});
    accepts(says, R2V, fields, CALL, folded(one, "1080P", 5), facts, &["images"]);
    let many = json!(vec![json!({"type": "reference_image", "url": PICTURE}); 10]);
    let fields = json!({"prompt": "p", "metadata": {"input": {"media": many}}});
    refuses("one to nine pictures", R2V, fields, InvalidParameter, "metadata.input.media", "at most 9");
}
