//! What a request and an answer say about being stored, where the gateway keeps what was said: the
//! provider is asked to store nothing, and a client learns that its answer could not be stored.

use super::history::without_thought_id;
use bytes::Bytes;
use std::ops::Range;
use tollgate_wire::json::{self, BrokenJson, Edit, Node, Scan, lossy};

const SEAL: &[u8] = br#""encrypted_content""#;
const SEALED: &[u8] = br#""reasoning.encrypted_content""#;

/// The request as a provider gets it that is to store nothing, because what it stored could be
/// erased by nobody: `store` is false and, where the model thinks (`sealed`), its reasoning is
/// asked for in the form in which it can be sent back. What comes back so loses its id, under which
/// the provider would look for it (case 63). Every other byte stays. A request that says so itself
/// is the client's affair altogether.
pub fn without_storing(body: Bytes, sealed: bool) -> Bytes {
    let (mut store, mut include, mut input) = (None, None, None);
    let read = Scan::new(&body).object(|key, scan| {
        let raw = scan.value()?;
        let start = raw.as_ptr() as usize - body.as_ptr() as usize;
        let place = Some(start..start + raw.len());
        match () {
            () if key.is("store") => store = place,
            () if key.is("include") => include = place,
            () if key.is("input") => input = place,
            () => {}
        }
        Ok::<(), BrokenJson>(())
    });
    let Some(start) = body.iter().position(|byte| *byte == b'{').map(|at| at + 1) else { return body };
    if read.is_err() || store.as_ref().is_some_and(|place| body[place.clone()] == *b"false") {
        return body;
    }
    let mut made = input.map_or_else(Vec::new, |place| thoughts(&body, place));
    made.extend(if sealed { asked(&body, include, start) } else { None });
    let mut edits: Vec<Edit<'_>> = made.iter().map(|(place, new)| (place.clone(), new.as_slice())).collect();
    edits.push(match store {
        Some(place) => (place, b"false"),
        None => (start..start, br#""store":false,"#),
    });
    edits.sort_by_key(|(place, _)| place.start);
    Bytes::from(json::splice(&body, &edits))
}

/// An edit that was made up here.
type Made = (Range<usize>, Vec<u8>);

/// The edits that take the ids from sealed thoughts.
fn thoughts(body: &[u8], input: Range<usize>) -> Vec<Made> {
    let raw = &body[input.clone()];
    let any = raw.windows(SEAL.len()).any(|one| one == SEAL);
    let text = std::str::from_utf8(raw).ok().filter(|_| any);
    let Some((text, node)) = text.and_then(|text| Some((text, Node::read(text).ok()?))) else { return Vec::new() };
    let without = |item: &Node<'_>| {
        item.get("encrypted_content")?;
        let new = without_thought_id(item.raw.to_owned());
        let place = item.place_in(text);
        (new != item.raw).then(|| (input.start + place.start..input.start + place.end, new.into_bytes()))
    };
    node.items().iter().filter_map(without).collect()
}

/// The edit that asks for sealed reasoning, unless it is asked for.
fn asked(body: &[u8], include: Option<Range<usize>>, start: usize) -> Option<Made> {
    let Some(place) = include else { return Some((start..start, [br#""include":["#, SEALED, b"],"].concat())) };
    let raw = &body[place.clone()];
    let inside = raw.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    match inside.map(<[u8]>::trim_ascii) {
        Some(b"") => Some((place, [b"[", SEALED, b"]"].concat())),
        Some(list) if list.windows(SEALED.len()).any(|one| one == SEALED) => None,
        Some(_) => Some((place.start + 1..place.start + 1, [SEALED, b","].concat())),
        None if raw == b"null" => Some((place, [b"[", SEALED, b"]"].concat())),
        // The provider says what is wrong with it.
        None => None,
    }
}

/// A response object that was not stored, and says so.
pub fn mark_not_stored(object: &[u8]) -> Bytes {
    let text = lossy(object);
    let edit = Node::read(&text).ok().and_then(|node| not_stored_edit(&text, &node));
    match edit {
        Some(place) => Bytes::from(json::splice(text.as_bytes(), &[(place, b"false")])),
        None => Bytes::copy_from_slice(object),
    }
}

/// The last events of a stream, as we write them, whose response was not stored: they say so.
pub fn mark_events_not_stored(last: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(last.len());
    for line in last.split_inclusive(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let data = text.strip_prefix("data: ").map(str::trim_ascii_end);
        let node = data.and_then(|data| Node::read(data).ok());
        let place = node.as_ref().and_then(|node| not_stored_edit(text, node.get("response")?));
        match place {
            Some(place) => out.extend(json::splice(line, &[(place, b"false")])),
            None => out.extend_from_slice(line),
        }
    }
    Bytes::from(out)
}

/// Where a response says whether it is stored.
fn not_stored_edit(text: &str, response: &Node<'_>) -> Option<Range<usize>> {
    Some(response.get("store")?.place_in(text))
}

/// The last events of a stream, as we write them, up to the one that says how it ended.
pub fn before_the_end(last: &[u8]) -> &[u8] {
    let name = b"event: ";
    let begins = |at: usize| last[at..].starts_with(name) && (at == 0 || last[at - 1] == b'\n');
    let end = (0..last.len()).rev().find(|at| begins(*at));
    end.map_or(last, |at| &last[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_asked_to_store_nothing_and_gets_every_other_byte() {
        for (body, sealed, expected) in [
            (r#"{"model":"m" , "x":1.50}"#, false, r#"{"store":false,"model":"m" , "x":1.50}"#),
            (r#" { "store": true,"x":1}"#, false, r#" { "store": false,"x":1}"#),
            (r#"{"store":null}"#, true, r#"{"include":["reasoning.encrypted_content"],"store":false}"#),
            (
                r#"{"include":["a"],"store":true}"#,
                true,
                r#"{"include":["reasoning.encrypted_content","a"],"store":false}"#,
            ),
            (r#"{"include":[ ]}"#, true, r#"{"store":false,"include":["reasoning.encrypted_content"]}"#),
            (r#"{"include":null}"#, true, r#"{"store":false,"include":["reasoning.encrypted_content"]}"#),
            (
                r#"{"include":["reasoning.encrypted_content"]}"#,
                true,
                r#"{"store":false,"include":["reasoning.encrypted_content"]}"#,
            ),
            (
                r#"{"input":[{"role":"user", "content":"a"},{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"S"},{"id":"msg_1","type":"message"}]}"#,
                false,
                r#"{"store":false,"input":[{"role":"user", "content":"a"},{"type":"reasoning","summary":[],"encrypted_content":"S"},{"id":"msg_1","type":"message"}]}"#,
            ),
            (r#"{"include":7}"#, true, r#"{"store":false,"include":7}"#),
            (r#"{"store":false,"include":[]}"#, true, r#"{"store":false,"include":[]}"#),
        ] {
            assert_eq!(without_storing(Bytes::from(body), sealed), expected, "{body}");
        }
    }

    #[test]
    fn what_was_not_stored_says_so() {
        assert_eq!(mark_not_stored(br#"{"store":true,"x":1.50}"#), r#"{"store":false,"x":1.50}"#);
        assert_eq!(mark_not_stored(b"{}"), "{}");
        let last = "event: a\ndata: {\"delta\":\"store\"}\n\nevent: response.completed\ndata: {\"response\":{\"store\":true}}\n\ndata: [DONE]\n\n";
        assert_eq!(mark_events_not_stored(last.as_bytes()), last.replace("true", "false"));
        assert_eq!(before_the_end(last.as_bytes()), b"event: a\ndata: {\"delta\":\"store\"}\n\n");
        assert_eq!(before_the_end(b"event: response.completed\ndata: {}\n\n"), b"");
    }
}
