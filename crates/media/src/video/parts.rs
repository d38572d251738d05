//! The `content` array that Ark and MiniMax share: pictures, clips and sounds with a link and a
//! role, and one text.

use super::VideoRefusal;
use super::fields::{FieldNames, VideoFieldKind};
use super::request::check_link;
use serde_json::{Value, json};

const URL: VideoFieldKind = VideoFieldKind::Object(&[("url", VideoFieldKind::Text)]);

/// What an entry of `metadata.content` may hold.
pub(super) const PART: FieldNames = &[
    ("type", VideoFieldKind::OneOf(&["text", "image_url", "video_url", "audio_url"])),
    ("text", VideoFieldKind::Text),
    ("image_url", URL),
    ("video_url", URL),
    ("audio_url", URL),
    (
        "role",
        VideoFieldKind::OneOf(&["first_frame", "last_frame", "reference_image", "reference_video", "reference_audio"]),
    ),
];

pub(super) fn picture(url: &str, role: Option<&str>) -> Value {
    let mut part = json!({"type": "image_url", "image_url": {"url": url}});
    if let Some(role) = role {
        part["role"] = json!(role);
    }
    part
}

pub(super) fn clip(url: &str) -> Value {
    json!({"type": "video_url", "video_url": {"url": url}, "role": "reference_video"})
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// How many of each there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartTally {
    pub first: usize,
    pub last: usize,
    pub pictures: usize,
    pub clips: usize,
    pub sounds: usize,
}

impl PartTally {
    pub fn frames(self) -> usize {
        self.first + self.last
    }

    pub fn references(self) -> usize {
        self.pictures + self.clips + self.sounds
    }
}

/// Takes the media of `metadata.content`, checked one by one; texts are returned apart. A clip or a
/// sound without a role gets the only one it can have; a picture without a role is a first frame
/// and stays without.
pub(super) fn read(content: Vec<Value>) -> Result<(Vec<Value>, Vec<String>), VideoRefusal> {
    let mut media = Vec::new();
    let mut texts = Vec::new();
    for (at, mut part) in content.into_iter().enumerate() {
        let path = format!("metadata.content[{at}]");
        let Some(kind) = part["type"].as_str().map(str::to_owned) else {
            return Err(VideoRefusal::missing(&path, format!("`{path}.type` is required.")));
        };
        if kind == "text" {
            texts.extend(part["text"].as_str().map(str::to_owned));
            continue;
        }
        let Some(url) = part[&kind]["url"].as_str() else {
            return Err(VideoRefusal::missing(&path, format!("`{path}.{kind}.url` is required.")));
        };
        check_link(url, &format!("{path}.{kind}.url"))?;
        let url = url.to_owned();
        let role = part["role"].take();
        let fits = match (kind.as_str(), role.as_str()) {
            ("image_url", None | Some("first_frame" | "last_frame" | "reference_image")) => role,
            ("video_url", None | Some("reference_video")) => json!("reference_video"),
            ("audio_url", None | Some("reference_audio")) => json!("reference_audio"),
            _ => return Err(VideoRefusal::invalid(&path, format!("`{path}.role` does not fit `{kind}`."))),
        };
        let mut clean = json!({"type": kind});
        clean[&kind] = json!({"url": url});
        if !fits.is_null() {
            clean["role"] = fits;
        }
        media.push(clean);
    }
    Ok((media, texts))
}

pub(super) fn tally(media: &[Value]) -> PartTally {
    let mut tally = PartTally::default();
    for part in media {
        match part["role"].as_str() {
            None | Some("first_frame") => tally.first += 1,
            Some("last_frame") => tally.last += 1,
            Some("reference_image") => tally.pictures += 1,
            Some("reference_video") => tally.clips += 1,
            Some(_) => tally.sounds += 1,
        }
    }
    tally
}
