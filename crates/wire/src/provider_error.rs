//! What providers report as wrong: error objects in the shapes they come in, and streams that
//! cannot go on.

use crate::json::{BrokenJson, Scan};

/// An error object sent by a provider, as it came: not yet safe for a client's eyes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamError {
    /// A numeric `code` or `status` that reads like an HTTP status.
    pub status: Option<u16>,
    pub code: Option<String>,
    /// `type`.
    pub kind: Option<String>,
    pub param: Option<String>,
    pub message: String,
    /// `details`, an object (Anthropic) or a list (Gemini): its text, unless that is longer than
    /// any honest one.
    pub details: Option<Box<str>>,
}

/// Why a stream cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The provider sent an error object.
    Upstream(Box<UpstreamError>),
    /// An event without end.
    TooLong,
    /// An event that is not of its dialect.
    Garbage,
}

/// Longest text taken from an error object.
const MOST: usize = 4096;

impl UpstreamError {
    /// Reads the body of a failed call: `{"error":{…}}`, `{"error":"…"}`, a flat object with
    /// `message`, or `{"detail":"…"}`. `None` when it is not JSON or says nothing.
    pub fn read(body: &[u8]) -> Option<UpstreamError> {
        let mut scan = Scan::new(body);
        let mut flat = UpstreamError::default();
        let mut nested = None;
        scan.object(|key, scan| match key.raw() {
            b"error" if matches!(scan.peek(), Some(b'{' | b'"')) => {
                nested = Some(UpstreamError::scan(scan)?);
                Ok(())
            }
            b"base_resp" => {
                nested = UpstreamError::base_resp(scan)?.or(nested.take());
                Ok(())
            }
            b"detail" if scan.peek() == Some(b'[') => flat.complaints(scan),
            b"detail" => flat.field(b"message", scan),
            other => flat.field(other, scan),
        })
        .ok()?;
        match nested {
            Some(nested) => Some(nested),
            None if flat.message.is_empty() => None,
            None => Some(flat),
        }
    }

    /// Reads the value of an `error` member: an object or a text.
    pub fn scan(scan: &mut Scan<'_>) -> Result<UpstreamError, BrokenJson> {
        let mut error = UpstreamError::default();
        if scan.peek() == Some(b'{') {
            scan.object(|key, scan| error.field(key.raw(), scan))?;
        } else {
            error.field(b"message", scan)?;
        }
        Ok(error)
    }

    /// Reads the value of a member `base_resp`, with which MiniMax says in a reply of status 200
    /// how it went; `None`: well.
    pub fn base_resp(scan: &mut Scan<'_>) -> Result<Option<UpstreamError>, BrokenJson> {
        if scan.peek() != Some(b'{') {
            return scan.skip().map(|()| None);
        }
        let mut error = UpstreamError::default();
        scan.object(|key, scan| match (key.raw(), scan.peek()) {
            (b"status_msg", Some(b'"')) => error.field(b"message", scan),
            (b"status_code", Some(b'0'..=b'9')) => {
                error.code = Some(String::from_utf8_lossy(scan.value()?).into_owned());
                Ok(())
            }
            _ => scan.skip(),
        })?;
        let number = error.code.as_deref().and_then(|code| code.parse::<u32>().ok()).unwrap_or(0);
        error.status = Some(match number {
            0 => return Ok(None),
            1002 | 1039 | 1041 => 429,
            1004 | 2049 => 401,
            1008 | 2056 => 402,
            1026 | 1027 | 1042 | 2013 => 400,
            _ => 500,
        });
        Ok(Some(error))
    }

    /// Takes one member of an error object.
    pub fn field(&mut self, key: &[u8], scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        if key == b"details" && matches!(scan.peek(), Some(b'[' | b'{')) {
            let list = scan.peek() == Some(b'[');
            let raw = scan.value()?;
            self.details = (raw.len() <= MOST).then(|| String::from_utf8_lossy(raw).into());
            return if list { self.reason(&mut Scan::new(raw)) } else { Ok(()) };
        }
        let text = match scan.peek() {
            Some(b'"') => Some(clip(&scan.string()?.text())),
            Some(b'0'..=b'9') => Some(clip(&String::from_utf8_lossy(scan.value()?))),
            _ => {
                scan.skip()?;
                None
            }
        };
        let Some(text) = text else { return Ok(()) };
        match key {
            b"message" | b"msg" => self.message = text,
            b"type" => self.kind = Some(text),
            b"param" => self.param = Some(text),
            b"code" | b"status" | b"status_code" => {
                if let Ok(status @ 100..=599) = text.parse::<u16>() {
                    self.status = Some(status);
                } else if key == b"code" {
                    self.code = Some(text);
                } else if key == b"status" && self.kind.is_none() {
                    // Gemini's word for the kind of an error.
                    self.kind = Some(text);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl UpstreamError {
    /// A list of `{loc, msg, type}`, as some servers say what is wrong with a request: the first
    /// counts.
    fn complaints(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        scan.array(|scan| {
            if scan.peek() != Some(b'{') || !self.message.is_empty() {
                return scan.skip();
            }
            scan.object(|key, scan| match (key.raw(), scan.peek()) {
                (b"msg", Some(b'"')) => self.field(b"message", scan),
                (b"loc", Some(b'[')) => scan.array(|scan| match scan.peek() {
                    Some(b'"') => self.field(b"param", scan),
                    _ => scan.skip(),
                }),
                _ => scan.skip(),
            })
        })
    }

    /// Gemini's code of an error is the `reason` of one of its details.
    fn reason(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        scan.array(|scan| {
            if scan.peek() != Some(b'{') {
                return scan.skip();
            }
            scan.object(|key, scan| match scan.peek() {
                Some(b'"') if key.raw() == b"reason" && self.code.is_none() => {
                    self.code = Some(clip(&scan.string()?.text()));
                    Ok(())
                }
                _ => scan.skip(),
            })
        })
    }
}

fn clip(text: &str) -> String {
    text[..text.floor_char_boundary(MOST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let read = |text: &str| UpstreamError::read(text.as_bytes());
        let error = read(r#"{"error":{"message":"Bad \"x\"","type":"t","param":"n","code":"c"}}"#).unwrap();
        assert_eq!((error.message.as_str(), error.kind.as_deref()), ("Bad \"x\"", Some("t")));
        assert_eq!((error.param.as_deref(), error.code.as_deref()), (Some("n"), Some("c")));
        assert_eq!(read(r#"{"error":"plain"}"#).unwrap().message, "plain");
        assert_eq!(read(r#"{"object":"error","message":"m","code":400}"#).unwrap().status, Some(400));
        assert_eq!(read(r#"{"detail":"Not Found"}"#).unwrap().message, "Not Found");
        let gemini = read(r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}"#).unwrap();
        assert_eq!((gemini.status, gemini.kind.as_deref()), (Some(400), Some("INVALID_ARGUMENT")));
        let reason = r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[7,{"@type":"x"},{"reason":"API_KEY_INVALID","domain":"d"}]}}"#;
        assert_eq!(read(reason).unwrap().code.as_deref(), Some("API_KEY_INVALID"));
        let details = read(r#"{"error":{"message":"m","details":{"error_code":"x"}}}"#).unwrap().details;
        assert_eq!(details.as_deref(), Some(r#"{"error_code":"x"}"#));
        let long = format!(r#"{{"error":{{"message":"m","details":{{"a":"{}"}}}}}}"#, "x".repeat(MOST));
        assert_eq!(read(&long).unwrap().details, None);
        let listed =
            read(r#"{"detail":[{"loc":["body","questions",0,"type"],"msg":"not known","type":"x"},{"msg":"y"}]}"#)
                .unwrap();
        assert_eq!((listed.message.as_str(), listed.param.as_deref()), ("not known", Some("type")));
        assert_eq!(read(r#"{"error":null}"#), None);
        assert_eq!(read("<html>"), None);
        assert_eq!(read(r#"[1]"#), None);
        assert_eq!(read(r#"{"error":{"message":{"deep":1},"code":null}}"#), Some(UpstreamError::default()));
    }
}
