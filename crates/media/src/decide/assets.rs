//! Pictures that come beside a request of System One as parts of a form. The request names each of
//! them once; its bytes stay where they are, and go into the body as data while that is sent.

use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

/// One part of a form.
#[derive(Clone, Debug)]
pub struct AssetPart {
    pub name: String,
    /// Its first bytes, which say what it is.
    pub start: Bytes,
}

/// A body with gaps, each for the data of one part in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionBody {
    pub text: Bytes,
    /// Where each gap is, in order, and which part belongs into it.
    pub gaps: Vec<(usize, usize)>,
}

/// A request of a form, with a gap for each picture.
#[derive(Clone, Debug)]
pub struct UnfoldedRequest {
    pub(super) body: DecisionBody,
    /// Which member of `assets` each gap belongs to.
    pub(super) members: Vec<usize>,
}

/// The request as JSON with its pictures as data. Each part belongs to one asset, and each asset
/// that names a part has it.
pub fn with_assets(request: &[u8], parts: &[AssetPart]) -> Result<UnfoldedRequest, Problem> {
    let text = std::str::from_utf8(request).map_err(|_| Problem::not_json("`request` is not valid UTF-8."))?;
    let root = Node::read(text)?;
    if !root.is_map() {
        return Err(Problem::not_json("`request` must be a JSON object."));
    }
    let mut taken = vec![false; parts.len()];
    let (mut gaps, mut members) = (Vec::new(), Vec::new());
    let mut out = Vec::with_capacity(text.len() + parts.len() * 64);
    let mut object = Object::begin(&mut out);
    for (name, value) in root.members() {
        if name != "assets" || !value.is_map() {
            object.raw(name, value.raw);
            continue;
        }
        let mut assets = Object::begin(object.key("assets"));
        for (member, (reference, asset)) in value.members().iter().enumerate() {
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
            let format = format_of(&parts[at].start)
                .ok_or_else(|| Problem::wrong(&format!("{place}.part"), "a PNG or a JPEG picture"))?;
            assets.object(reference, |asset| {
                asset.text("type", "image");
                asset.text("format", format);
                gaps.push((gap(asset.key("data_base64"), ""), at));
                members.push(member);
            });
        }
        assets.end();
    }
    object.end();
    if let Some(at) = taken.iter().position(|taken| !taken) {
        let name = tollgate_wire::cut(&parts[at].name, tollgate_wire::NAME);
        return Err(Problem::wrong(&name, "named by one of `assets`"));
    }
    Ok(UnfoldedRequest { body: DecisionBody { text: Bytes::from(out), gaps }, members })
}

/// Writes a text that ends with a gap; where that is.
pub(super) fn gap(out: &mut Vec<u8>, before: &str) -> usize {
    out.push(b'"');
    out.extend_from_slice(before.as_bytes());
    let at = out.len();
    out.push(b'"');
    at
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
    use super::super::{DecisionForm, DecisionRequest};
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    const REQUEST: &[u8] = br#"{"state":"see photo","assets":{"plain":{"type":"image","format":"jpg","data_base64":""},"photo":{"type":"image","part":"asset-0"}},"model":"m","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    const PNG: &[u8] = b"\x89PNG1234";

    fn part(name: &str, start: &'static [u8]) -> AssetPart {
        AssetPart { name: name.to_owned(), start: Bytes::from_static(start) }
    }

    /// All of it at once, with the bytes of its one part.
    fn filled(body: &DecisionBody) -> String {
        let (mut out, mut done) = (Vec::new(), 0);
        for (at, part) in &body.gaps {
            assert_eq!(*part, 0);
            out.extend_from_slice(&body.text[done..*at]);
            out.extend_from_slice(BASE64_STANDARD.encode(PNG).as_bytes());
            done = *at;
        }
        out.extend_from_slice(&body.text[done..]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pictures_become_part_of_the_request() {
        let png = part("asset-0", PNG);
        let made = with_assets(REQUEST, std::slice::from_ref(&png)).unwrap();
        let expected = r#""photo":{"type":"image","format":"png","data_base64":"iVBORzEyMzQ="}}"#;
        assert!(filled(&made.body).contains(expected), "{made:?}");
        let refused = |request: &[u8], parts: &[AssetPart]| with_assets(request, parts).unwrap_err().param;
        assert_eq!(refused(REQUEST, &[]).as_deref(), Some("assets.photo.part"));
        assert_eq!(refused(REQUEST, &[png.clone(), part("asset-1", b"\x89PNG")]).as_deref(), Some("asset-1"));
        assert_eq!(refused(REQUEST, &[part("asset-0", b"GIF89a")]).as_deref(), Some("assets.photo.part"));
        assert_eq!(refused(b"{}", &[png]).as_deref(), Some("asset-0"));
    }

    #[test]
    fn both_formats_have_a_gap_for_each_picture() {
        let made = with_assets(REQUEST, &[part("asset-0", PNG)]).unwrap();
        let asked = DecisionRequest::of_form(made).unwrap();
        assert_eq!(asked.pictures, 2);
        for (form, expected) in [
            (DecisionForm::SystemOne, r#""data_base64":"iVBORzEyMzQ="}},"model":"a longer name""#),
            (DecisionForm::Decisions, r#""image_url":"data:image/png;base64,iVBORzEyMzQ=""#),
        ] {
            let body = asked.body(form, "a longer name").unwrap();
            let text = filled(&body);
            assert!(text.contains(expected), "{text}");
            assert!(Node::read(&text).is_ok(), "{text}");
        }
    }
}
