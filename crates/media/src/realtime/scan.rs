//! The type of an event without reading the event: most of one is audio that nobody has to look
//! at.

use memchr::memchr2;

/// Why the type of a client's event is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEvent {
    /// It is not a JSON object with a text as `type`.
    Shape,
    /// It has two, or one in disguise: another reader might see another type.
    TwoTypes,
}

/// The `type` of a provider's event: the first that its outermost object has.
pub fn event_type(text: &str) -> Option<&str> {
    let mut scan = Scan::new(text)?;
    while let Some((name, value)) = scan.member()? {
        if name == "type" {
            return plain(value);
        }
    }
    None
}

/// What metering needs of an event that carries output, without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventParts<'a> {
    /// The first `type`, as `event_type` has it.
    pub kind: &'a str,
    pub response_id: &'a str,
    /// As it stands between its quotes.
    pub delta: &'a str,
}

/// These parts of an event; nothing where it is no JSON object. What it does not have is empty.
pub fn event_parts(text: &str) -> Option<EventParts<'_>> {
    let mut scan = Scan::new(text)?;
    let mut parts = EventParts::default();
    while let Some((name, value)) = scan.member()? {
        let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or_default();
        match name {
            "type" if parts.kind.is_empty() => parts.kind = plain(value).unwrap_or_default(),
            "response_id" => parts.response_id = text,
            "delta" => parts.delta = text,
            _ => {}
        }
    }
    Some(parts)
}

/// The `type` of a client's event, which is looked through to its end: nobody may mean another
/// type than the one that was checked.
pub fn strict_event_type(text: &str) -> Result<&str, BadEvent> {
    let mut scan = Scan::new(text).ok_or(BadEvent::Shape)?;
    let mut found = None;
    while let Some((name, value)) = scan.member().ok_or(BadEvent::Shape)? {
        if name.contains('\\') {
            return Err(BadEvent::TwoTypes);
        }
        if name == "type" && found.replace(plain(value).ok_or(BadEvent::Shape)?).is_some() {
            return Err(BadEvent::TwoTypes);
        }
    }
    found.filter(|_| scan.rest.trim_ascii().is_empty()).ok_or(BadEvent::Shape)
}

/// The text between quotes, if nothing in it is escaped.
fn plain(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
}

/// Walks over the members of the outermost object.
struct Scan<'a> {
    rest: &'a str,
    first: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Option<Scan<'a>> {
        Some(Scan { rest: text.trim_ascii_start().strip_prefix('{')?, first: true })
    }

    /// The next member; inside, nothing at the end of the object. Outside, nothing for what is no
    /// JSON.
    fn member(&mut self) -> Option<Option<(&'a str, &'a str)>> {
        self.rest = self.rest.trim_ascii_start();
        if let Some(rest) = self.rest.strip_prefix('}') {
            self.rest = rest;
            return Some(None);
        }
        if !std::mem::take(&mut self.first) {
            self.rest = self.rest.strip_prefix(',')?.trim_ascii_start();
        }
        let name = self.take(string(self.rest)?);
        self.rest = self.rest.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let value = self.take(value(self.rest)?);
        Some(Some((name.get(1..name.len() - 1)?, value)))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// The length of a string with its quotes.
fn string(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The length of a value; of numbers and words only where they end.
fn value(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'"' => return string(text),
        b'{' | b'[' => {}
        _ => {
            let end = bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())?;
            return (end > 0).then_some(end);
        }
    }
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match *bytes.get(at)? {
            b'"' => {
                at += string(text.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_found_wherever_it_stands() {
        for text in [
            r#"{"type":"a.b","event_id":"x"}"#,
            r#" { "event_id" : "\"type\":\"no\"" , "n": -1.5e3, "o":{"type":"no","l":["}"]}, "type" : "a.b" } "#,
            r#"{"audio":"AAAA","t":null,"b":true,"type":"a.b"}"#,
        ] {
            assert_eq!(event_type(text), Some("a.b"), "{text}");
            assert_eq!(strict_event_type(text), Ok("a.b"), "{text}");
        }
    }

    #[test]
    fn output_is_found_beside_its_response() {
        let text = r#"{"type":"x.delta","response_id":"resp_1","item_id":"i","delta":"a\"b","n":1}"#;
        let parts = event_parts(text).expect("an event");
        assert_eq!((parts.response_id, parts.delta), ("resp_1", "a\\\"b"));
        assert_eq!(event_parts("{\"delta\":1}"), Some(EventParts::default()));
        assert_eq!(event_parts("nothing"), None);
    }

    #[test]
    fn what_has_no_certain_type_has_none() {
        for text in ["", "{}", "[]", "null", r#"{"type":1}"#, r#"{"type":"a""#, r#"{"type":"a"} x"#, "{\"a\":\"\\"] {
            assert_eq!(strict_event_type(text), Err(BadEvent::Shape), "{text}");
        }
        for text in [r#"{"type":"a","type":"b"}"#, r#"{"type":"a","\u0074ype":"b"}"#] {
            assert_eq!(strict_event_type(text), Err(BadEvent::TwoTypes), "{text}");
        }
        assert_eq!(event_type(r#"{"type":"a","garbage"#), Some("a"), "a provider's is read no further");
    }
}
