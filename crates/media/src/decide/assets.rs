//! Pictures that come beside a request of System One as parts of a form: put into the request as
//! data, so that there is one form of it from here on.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

/// One part of a form.
#[derive(Clone, Debug)]
pub struct AssetPart {
    pub name: String,
    pub bytes: Bytes,
}

/// The request with its pictures as data. Each part belongs to one asset, and each asset that names
/// a part has it.
pub fn with_assets(request: &[u8], parts: &[AssetPart]) -> Result<Bytes, Problem> {
    let text = std::str::from_utf8(request).map_err(|_| Problem::not_json("`request` is not valid UTF-8."))?;
    let root = Node::read(text)?;
    if !root.is_map() {
        return Err(Problem::not_json("`request` must be a JSON object."));
    }
    let mut taken = vec![false; parts.len()];
    let mut out =
        Vec::with_capacity(text.len() + parts.iter().map(|part| part.bytes.len() * 4 / 3 + 64).sum::<usize>());
    let mut object = Object::begin(&mut out);
    for (name, value) in root.members() {
        if name != "assets" || !value.is_map() {
            object.raw(name, value.raw);
            continue;
        }
        let mut assets = Object::begin(object.key("assets"));
        for (reference, asset) in value.members() {
            let place = format!("assets.{reference}");
            let Some(part) = asset.text_of("part") else {
                assets.raw(reference, asset.raw);
                continue;
            };
            let at = parts.iter().position(|one| one.name == part.as_ref());
            let at = at.filter(|at| !std::mem::replace(&mut taken[*at], true));
            let at = at.ok_or_else(|| {
                Problem::wrong(&format!("{place}.part"), "the name of a form part that no other asset names")
            })?;
            let format = format_of(&parts[at].bytes)
                .ok_or_else(|| Problem::wrong(&format!("{place}.part"), "a PNG or a JPEG picture"))?;
            assets.object(reference, |asset| {
                asset.text("type", "image");
                asset.text("format", format);
                asset.text("data_base64", &BASE64_STANDARD.encode(&parts[at].bytes));
            });
        }
        assets.end();
    }
    object.end();
    if let Some(at) = taken.iter().position(|taken| !taken) {
        let name = tollgate_wire::cut(&parts[at].name, tollgate_wire::NAME);
        return Err(Problem::wrong(&name, "named by one of `assets`"));
    }
    Ok(Bytes::from(out))
}

/// By content, whatever its part says.
fn format_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("jpeg"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_become_part_of_the_request() {
        let part =
            |name: &str, bytes: &'static [u8]| AssetPart { name: name.to_owned(), bytes: Bytes::from_static(bytes) };
        let png = part("asset-0", b"\x89PNG1234");
        let request = br#"{"model":"m","state":"see photo","assets":{"photo":{"type":"image","part":"asset-0"}}}"#;
        let made = with_assets(request, std::slice::from_ref(&png)).unwrap();
        let expected = r#"{"model":"m","state":"see photo","assets":{"photo":{"type":"image","format":"png","data_base64":"iVBORzEyMzQ="}}}"#;
        assert_eq!(made, expected);
        let refused = |request: &[u8], parts: &[AssetPart]| with_assets(request, parts).unwrap_err().param;
        assert_eq!(refused(request, &[]).as_deref(), Some("assets.photo.part"));
        assert_eq!(refused(request, &[png.clone(), part("asset-1", b"\x89PNG")]).as_deref(), Some("asset-1"));
        assert_eq!(refused(request, &[part("asset-0", b"GIF89a")]).as_deref(), Some("assets.photo.part"));
        assert_eq!(refused(b"{}", &[png]).as_deref(), Some("asset-0"));
    }
}
