//! A whole reply in OpenAI's format that is passed on as it came: read once, for what is charged
//! and for whether it is what was asked for.

use super::vector::{NotVectors, VectorShape, is_empty};
use bytes::Bytes;
use std::ops::Range;
use tollgate_wire::json::{self, Edit, Scan};

/// What a whole reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbedReply {
    pub vectors: usize,
    /// All of them have the form that is asked for.
    pub fits: bool,
    /// Tokens, as reported.
    pub tokens: Option<u64>,
    pub raw_usage: Option<String>,
    model: Option<Range<usize>>,
    /// Where a report belongs that is not there: in the place of a null, or at the closing brace.
    no_usage: Option<Range<usize>>,
}

/// Longest `usage` text stored.
pub(super) const MOST_RAW_USAGE: usize = 8 << 10;

impl EmbedReply {
    /// Reads a reply; `base64` is the form that the client wants.
    pub fn read(body: &[u8], base64: bool) -> Result<EmbedReply, NotVectors> {
        let mut read = EmbedReply { fits: true, ..EmbedReply::default() };
        let mut scan = Scan::new(body);
        let (mut listed, mut seen) = (false, false);
        scan.object(|key, scan| match key.raw() {
            b"data" if scan.peek() == Some(b'[') => {
                listed = true;
                scan.array(|scan| read.entry(scan, base64))
            }
            b"usage" => {
                seen = true;
                let place = scan.span()?;
                let raw = &body[place.clone()];
                if raw == b"null" {
                    read.no_usage = Some(place);
                } else if raw.len() <= MOST_RAW_USAGE {
                    let text = json::lossy(raw);
                    read.tokens = VectorShape::OPENAI.tokens_in(&text);
                    read.raw_usage = Some(text.into_owned());
                }
                Ok(())
            }
            b"model" => {
                read.model = Some(scan.span()?);
                Ok(())
            }
            _ => Ok::<(), NotVectors>(scan.skip()?),
        })?;
        if !seen {
            read.no_usage = Some(scan.at() - 1..scan.at() - 1);
        }
        scan.end()?;
        if listed { Ok(read) } else { Err(NotVectors) }
    }

    fn entry(&mut self, scan: &mut Scan<'_>, base64: bool) -> Result<(), NotVectors> {
        let mut found = false;
        scan.object(|key, scan| {
            if key.raw() != b"embedding" {
                return Ok::<(), NotVectors>(scan.skip()?);
            }
            let raw = scan.value()?;
            found = match raw.first() {
                Some(b'[') => !is_empty(raw),
                Some(b'"') => raw.len() > 2,
                _ => false,
            };
            self.fits &= (raw.first() == Some(&b'"')) == base64;
            Ok(())
        })?;
        self.vectors += 1;
        if found { Ok(()) } else { Err(NotVectors) }
    }

    /// The body with the public name of the model, and with a report where it has none: SDKs insist
    /// on one. `body` must be the one this was read from.
    pub fn written(&self, body: Bytes, public: &str, counted: u64) -> Bytes {
        let name = json::quoted(public);
        let model = self.model.clone().filter(|place| body[place.clone()] != name);
        let mut edits: Vec<Edit<'_>> = model.into_iter().map(|place| (place, name.as_slice())).collect();
        let report;
        if let Some(place) = self.no_usage.clone() {
            let before = if place.is_empty() { ",\"usage\":" } else { "" };
            report = format!(r#"{before}{{"prompt_tokens":{counted},"total_tokens":{counted}}}"#);
            edits.push((place, report.as_bytes()));
        }
        edits.sort_by_key(|(place, _)| place.start);
        if edits.is_empty() { body } else { Bytes::from(json::splice(&body, &edits)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_and_named() {
        let body = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"up","usage":{"prompt_tokens":3,"total_tokens":3}}"#;
        let read = EmbedReply::read(body.as_bytes(), false).unwrap();
        assert_eq!((read.vectors, read.fits, read.tokens), (1, true, Some(3)));
        let written = read.written(Bytes::from(body), "public", 9);
        assert_eq!(written, body.replace("\"up\"", "\"public\""));
        assert!(!EmbedReply::read(body.as_bytes(), true).unwrap().fits);
        assert_eq!(read.written(Bytes::from(body), "up", 9), body);
    }

    #[test]
    fn a_report_that_is_missing_is_made() {
        let body = r#"{"data":[{"embedding":"AACAPw=="}]}"#;
        let read = EmbedReply::read(body.as_bytes(), true).unwrap();
        let written = read.written(Bytes::from(body), "public", 9);
        let report = r#""usage":{"prompt_tokens":9,"total_tokens":9}"#;
        assert_eq!(written, format!(r#"{{"data":[{{"embedding":"AACAPw=="}}],{report}}}"#));
        let body = r#"{"usage":null,"model":"up","data":[{"embedding":[1]}]}"#;
        let read = EmbedReply::read(body.as_bytes(), false).unwrap();
        let written = read.written(Bytes::from(body), "public", 9);
        assert_eq!(written, format!(r#"{{{report},"model":"public","data":[{{"embedding":[1]}}]}}"#));
    }

    #[test]
    fn what_has_no_vectors_is_no_reply() {
        for body in [
            "",
            "{}",
            r#"{"data":7}"#,
            r#"{"data":[{}]}"#,
            r#"{"data":[{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":""}]}"#,
            r#"{"data":[{"embedding":[1]}"#,
            r#"{"error":{"message":"m"}}"#,
        ] {
            assert_eq!(EmbedReply::read(body.as_bytes(), false), Err(NotVectors), "{body}");
        }
    }
}
