//! The models outside the families: OpenAI's own, with files, and Google's.

use crate::table::{PICTURE, accepts, ask, refuses};
use serde_json::json;
use tollgate_media::video::Variant;
use tollgate_wire::error::Code::{InvalidParameter, UnsupportedValue};

/// A PNG's first bytes, as a data link.
const DATA: &str = "data:image/png;base64,iVBORw0KGgo=";

#[test]
fn every_variant_has_a_name_of_its_own() {
    let mut names: Vec<_> = Variant::all().map(Variant::name).collect();
    assert_eq!(names.len(), 21);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 21);
    assert!(Variant::named("wan2.7-t2v").is_none(), "a provider's model name is no variant");
}

#[test]
fn sora() {
    let body = json!({"prompt": "p", "size": "720x1280", "seconds": "4"});
    let facts = "size=720x1280 resolution=720p audio=true seconds=4 bound=4";
    accepts("defaults", "sora", json!({"prompt": "p"}), "videos", body, facts, &[]);
    let body = json!({"prompt": "p", "size": "1280x720", "seconds": "8"});
    let facts = "size=1280x720 resolution=720p audio=true seconds=8 bound=8";
    for size in ["1280x720", "1280*720"] {
        let fields = json!({"prompt": "p", "size": size, "seconds": "8"});
        accepts("either spelling", "sora", fields, "videos", body.clone(), facts, &[]);
    }
    let fields = json!({"prompt": "p", "size": "1792x1024", "seconds": "12"});
    refuses("large sizes are the larger model's", "sora", fields.clone(), UnsupportedValue, "size", "no price");
    let body = json!({"prompt": "p", "size": "1792x1024", "seconds": "12"});
    let facts = "size=1792x1024 resolution=1024p audio=true seconds=12 bound=12";
    accepts("pro", "sora-pro", fields, "videos", body, facts, &[]);
    refuses("4, 8, 12", "sora", json!({"prompt": "p", "seconds": "5"}), InvalidParameter, "seconds", "4, 8 or 12");
    let plan = ask("sora", json!({"prompt": "p", "input_reference": DATA})).expect("a plan");
    let upload = plan.upload.expect("a file");
    assert_eq!((upload.content_type.as_str(), &upload.bytes[..4]), ("image/png", &b"\x89PNG"[..]));
    let fields = json!({"prompt": "p", "input_reference": PICTURE});
    refuses("links are not fetched", "sora", fields, InvalidParameter, "input_reference", "upload it");
}

#[test]
fn veo() {
    let parameters = json!({"aspectRatio": "16:9", "resolution": "720p", "durationSeconds": 8, "sampleCount": 1});
    let body = json!({"instances": [{"prompt": "p"}], "parameters": parameters});
    let facts = "ratio=16:9 resolution=720p audio=true seconds=8 bound=8";
    accepts("defaults", "veo", json!({"prompt": "p"}), "predictLongRunning", body, facts, &[]);
    let parameters =
        json!({"aspectRatio": "9:16", "resolution": "1080p", "durationSeconds": 6, "sampleCount": 1, "seed": 3});
    let image = json!({"bytesBase64Encoded": "iVBORw0KGgo=", "mimeType": "image/png"});
    let body = json!({"instances": [{"prompt": "p", "image": image}], "parameters": parameters});
    let fields =
        json!({"prompt": "p", "size": "1080*1920", "seconds": "6", "input_reference": DATA, "metadata": {"seed": 3}});
    let facts = "ratio=9:16 resolution=1080p audio=true seconds=6 bound=6";
    accepts("framing and picture", "veo", fields, "predictLongRunning", body, facts, &[]);
    let fields = json!({"prompt": "p", "metadata": {"resolution": "4k"}});
    refuses("4k where it is priced", "veo", fields, UnsupportedValue, "metadata.resolution", "4k has no price");
    refuses("4, 6, 8", "veo", json!({"prompt": "p", "seconds": "5"}), InvalidParameter, "seconds", "4, 6 or 8");
}
