//! A picture the caller sent along: from a form's file, or out of a data link.

use super::VideoRefusal;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use tollgate_wire::multipart::FormPart;

/// The bytes of a picture and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureUpload {
    pub content_type: String,
    pub file_name: String,
    pub bytes: Bytes,
}

/// What a picture's first bytes look like. Names and headers are not believed.
const SIGNS: &[(&str, &str, &[u8])] = &[
    ("image/png", "png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", "jpg", b"\xff\xd8\xff"),
    ("image/webp", "webp", b"RIFF"),
    ("image/bmp", "bmp", b"BM"),
];

impl PictureUpload {
    /// The file part of a form: `input_reference`, and a picture.
    pub(super) fn read(part: FormPart) -> Result<PictureUpload, VideoRefusal> {
        if part.name != "input_reference" {
            let name = part.name;
            return Err(VideoRefusal::invalid(
                &name,
                format!("`{name}` cannot be a file; only `input_reference` can."),
            ));
        }
        PictureUpload::of(part.body).ok_or_else(|| {
            let message = "`input_reference` must be a JPEG, PNG, WEBP or BMP picture.";
            VideoRefusal::invalid("input_reference", message)
        })
    }

    fn of(bytes: Bytes) -> Option<PictureUpload> {
        let sign = SIGNS.iter().find(|(_, _, start)| bytes.starts_with(start));
        let (kind, ending, _) = sign.filter(|(_, ending, _)| *ending != "webp" || bytes.get(8..12) == Some(b"WEBP"))?;
        Some(PictureUpload { content_type: (*kind).to_owned(), file_name: format!("input_reference.{ending}"), bytes })
    }

    /// The picture inside `data:image/png;base64,…`.
    pub(crate) fn from_data_link(link: &str) -> Option<PictureUpload> {
        let (head, data) = link.strip_prefix("data:")?.split_once(',')?;
        if !head.ends_with(";base64") {
            return None;
        }
        PictureUpload::of(BASE64_STANDARD.decode(data).ok()?.into())
    }

    pub fn base64(&self) -> String {
        BASE64_STANDARD.encode(&self.bytes)
    }

    /// As providers take a picture inside JSON.
    pub fn data_link(&self) -> String {
        format!("data:{};base64,{}", self.content_type, self.base64())
    }
}
