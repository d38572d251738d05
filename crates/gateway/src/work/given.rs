//! Addresses that a caller gives and a provider may open: only what lies outside is passed on. The
//! provider may stand beside what a caller cannot reach, and would fetch it for him.

use crate::refusal::Refusal;
use serde_json::{Map, Value};
use tollgate_dialects::{Given, scheme};
use tollgate_media::video::{Reference, VideoRequest};
use tollgate_upstream::{Client, Unfetched};
use tollgate_wire::error::Code;

/// What stands in the place of an address in a request for a video: the data itself, or the name of
/// a file at its provider.
const VIDEO: &[&str] = &["data", "asset"];
/// Schemes without a host that are addresses all the same.
const HOSTLESS: &[&str] = &["file", "javascript", "vbscript", "data", "blob", "about"];

/// Refuses an address that leads inside, or is none of the web.
pub fn outside(links: &Client, given: &Given) -> Result<(), Refusal> {
    let why = match links.leads_outside(&given.url) {
        Ok(()) => return Ok(()),
        Err(Unfetched::Inside) => "must lead to a public address",
        Err(_) => "is not an http(s) address",
    };
    let at = tollgate_wire::cut(&given.at, tollgate_wire::NAME);
    Err(Refusal::about(Code::InvalidParameter, &at, format!("`{at}` {why}.")))
}

/// The same for all of a request for a video.
pub fn of_video(links: &Client, asked: &VideoRequest) -> Result<(), Refusal> {
    let reference = asked.input_reference.as_ref().and_then(|reference| match reference {
        Reference::Link(link) => Some(link),
        Reference::File(_) => None,
    });
    let single =
        [("input_reference", reference), ("image", asked.image.as_ref()), ("video_url", asked.video_url.as_ref())];
    for (name, link) in single {
        link.map_or(Ok(()), |link| text(links, name, link, VIDEO))?;
    }
    for (at, link) in asked.images.iter().enumerate() {
        text(links, &format!("images[{at}]"), link, VIDEO)?;
    }
    members(links, "metadata", &asked.metadata)
}

/// A text that may be an address.
pub fn text(links: &Client, at: &str, text: &str, let_pass: &[&str]) -> Result<(), Refusal> {
    let Some(scheme) = scheme(text) else { return Ok(()) };
    let own = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(scheme));
    // "Note: a dog" is none.
    let address = text.contains("://") || own(HOSTLESS);
    if own(let_pass) || !address || text.trim().contains(char::is_whitespace) {
        return Ok(());
    }
    outside(links, &Given { at: at.to_owned(), url: text.to_owned() })
}

fn members(links: &Client, at: &str, map: &Map<String, Value>) -> Result<(), Refusal> {
    map.iter().try_for_each(|(name, value)| each(links, &format!("{at}.{name}"), value))
}

fn each(links: &Client, at: &str, value: &Value) -> Result<(), Refusal> {
    match value {
        Value::String(link) => text(links, at, link, VIDEO),
        Value::Array(list) => list.iter().enumerate().try_for_each(|(n, one)| each(links, &format!("{at}[{n}]"), one)),
        Value::Object(map) => members(links, at, map),
        _ => Ok(()),
    }
}
