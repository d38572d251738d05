//! Pictures and documents that a request gives by their address, and the same request with the data
//! in their place.
//!
//! Some providers take the data only. What is behind a link is not known here: the gateway fetches
//! it. Links are looked for where a dialect has media and nowhere else, so that an address in a
//! text or in the arguments of a tool is left alone.

use super::request::CheckedRequest;
use crate::hub::data_url;
use bytes::Bytes;
use memchr::{memchr, memchr_iter, memmem};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{self, Node, Object};

/// What may be behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A picture.
    Picture,
    /// A document, or a picture that is sent as a file.
    File,
}

/// A link to a picture or document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaLink {
    pub url: String,
    /// The field of the request, for refusals.
    pub at: String,
    pub kind: LinkKind,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkContent<'d> {
    pub mime: &'d str,
    /// In the standard alphabet.
    pub base64: &'d str,
}

impl CheckedRequest {
    /// The links of the request, in order; the same one may be there more than once.
    pub fn links(&self) -> Result<Vec<MediaLink>, Problem> {
        if !may_have_links(self.dialect, self.body()) {
            return Ok(Vec::new());
        }
        let node = Node::read(self.text()?)?;
        Ok(found(self.dialect, &node).into_iter().map(|one| one.link).collect())
    }

    /// The request with data in the place of its links, where `data` has any.
    pub fn with_data<'d>(
        &self,
        data: impl Fn(&MediaLink) -> Option<LinkContent<'d>>,
    ) -> Result<CheckedRequest, Problem> {
        let text = self.text()?;
        let node = Node::read(text)?;
        let mut edits: Vec<_> = found(self.dialect, &node)
            .into_iter()
            .filter_map(|one| data(&one.link).map(|linked| (one.instead.place_in(text), (one, linked))))
            .collect();
        edits.sort_by_key(|(place, _)| place.start);
        let added: usize = edits.iter().map(|(_, (_, linked))| linked.base64.len() + 128).sum();
        // Written once: the data may be most of what the gateway has in memory for the call.
        let out =
            json::splice_with(text.as_bytes(), text.len() + added, edits, |(one, linked), out| one.write(linked, out));
        self.again(Bytes::from(out))
    }

    fn text(&self) -> Result<&str, Problem> {
        std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))
    }
}

/// Nearly no request has links, and none is read again to learn that: names and the beginning of an
/// address are looked for in the bytes. Where letters are written as escapes the bytes say nothing,
/// and the request is read.
fn may_have_links(dialect: Dialect, body: &[u8]) -> bool {
    let named = memmem::find(body, member(dialect).as_bytes()).is_some();
    let leads_out = || {
        let mut texts = memchr_iter(b'"', body).map(|quote| &body[quote + 1..]);
        texts.any(|text| text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"http")))
    };
    (named && leads_out()) || has_escaped_ascii(body)
}

/// Letters, digits and signs as `\u0020` to `\u007f`; what clients escape of other scripts is
/// neither name nor scheme.
pub(super) fn has_escaped_ascii(body: &[u8]) -> bool {
    // Most requests have no escape at all.
    let Some(first) = memchr(b'\\', body) else { return false };
    let body = &body[first..];
    memmem::find_iter(body, b"\\u00").any(|at| body.get(at + 4).is_some_and(|digit| (b'2'..=b'7').contains(digit)))
}

/// What stands in every request with a link, and in few others.
const fn member(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "\"image_url\"",
        Dialect::Anthropic => "\"url\"",
        Dialect::Responses => "_url\"",
        Dialect::Gemini => "ri\"",
    }
}

/// A link and the value of the request that is exchanged with it.
struct Found<'n, 'a> {
    link: MediaLink,
    instead: &'n Node<'a>,
    form: Form,
}

/// How a dialect writes data where it has had a link.
enum Form {
    /// A data URL in the link's own place.
    DataUrl,
    /// Anthropic's source.
    Source,
    /// Responses: `file_data` in the place of `file_url`.
    FileData,
    /// Gemini: `inlineData` in the place of `fileData`.
    InlineData,
}

impl Found<'_, '_> {
    /// What stands beside the link stays beside the data.
    fn write(&self, data: LinkContent<'_>, out: &mut Vec<u8>) {
        let LinkContent { mime, base64 } = data;
        match &self.form {
            Form::DataUrl => json::write_str(out, &data_url(mime, base64)),
            Form::Source => {
                let mut source = Object::begin(out);
                source.text("type", "base64");
                source.text("media_type", mime);
                source.text("data", base64);
                source.members_of(self.instead, |name| matches!(name, "type" | "url" | "media_type" | "data"));
                source.end();
            }
            Form::FileData => {
                let mut part = Object::begin(out);
                part.members_of(self.instead, |name| matches!(name, "file_url" | "file_data"));
                part.text("file_data", &data_url(mime, base64));
                part.end();
            }
            Form::InlineData => {
                let mut part = Object::begin(out);
                let goes = |name: &str| matches!(name, "fileData" | "file_data" | "inlineData" | "inline_data");
                part.members_of(self.instead, goes);
                part.object("inlineData", |inner| {
                    inner.text("mimeType", mime);
                    inner.text("data", base64);
                    if let Some(file) = self.instead.either("fileData", "file_data") {
                        let goes =
                            |name: &str| matches!(name, "mimeType" | "mime_type" | "fileUri" | "file_uri" | "data");
                        inner.members_of(file, goes);
                    }
                });
                part.end();
            }
        }
    }
}

fn found<'n, 'a>(dialect: Dialect, body: &'n Node<'a>) -> Vec<Found<'n, 'a>> {
    let mut all = Vec::new();
    match dialect {
        Dialect::Chat => each(body.get("messages"), "messages", |message, at| {
            each(message.get("content"), &format!("{at}.content"), |part, at| chat(part, at, &mut all));
        }),
        Dialect::Anthropic => each(body.get("messages"), "messages", |message, at| {
            blocks(message.get("content"), &format!("{at}.content"), &mut all);
        }),
        Dialect::Responses => each(body.get("input"), "input", |item, at| {
            for name in ["content", "output"] {
                each(item.get(name), &format!("{at}.{name}"), |part, at| responses(part, at, &mut all));
            }
        }),
        Dialect::Gemini => match body.get("contents") {
            // A single turn may stand without its list.
            Some(turn) if turn.is_map() => parts(turn, "contents", &mut all),
            turns => each(turns, "contents", |turn, at| parts(turn, &at, &mut all)),
        },
    }
    all
}

pub(super) fn each<'n, 'a>(list: Option<&'n Node<'a>>, at: &str, mut look: impl FnMut(&'n Node<'a>, String)) {
    for (index, item) in list.map_or(&[][..], Node::items).iter().enumerate() {
        look(item, format!("{at}[{index}]"));
    }
}

fn chat<'n, 'a>(part: &'n Node<'a>, at: String, all: &mut Vec<Found<'n, 'a>>) {
    let Some(picture) = part.get("image_url").filter(|_| part.str_of("type") == "image_url") else { return };
    let (place, at) = match picture.get("url") {
        Some(url) => (url, format!("{at}.image_url.url")),
        None => (picture, format!("{at}.image_url")),
    };
    add(place.text(), at, LinkKind::Picture, place, Form::DataUrl, all);
}

fn blocks<'n, 'a>(list: Option<&'n Node<'a>>, at: &str, all: &mut Vec<Found<'n, 'a>>) {
    each(list, at, |block, at| {
        let kind = match block.str_of("type") {
            "image" => LinkKind::Picture,
            "document" => LinkKind::File,
            "tool_result" => return blocks(block.get("content"), &format!("{at}.content"), all),
            _ => return,
        };
        if let Some(source) = block.get("source").filter(|source| source.str_of("type") == "url") {
            add(source.text_of("url"), format!("{at}.source.url"), kind, source, Form::Source, all);
        }
    });
}

fn responses<'n, 'a>(part: &'n Node<'a>, at: String, all: &mut Vec<Found<'n, 'a>>) {
    match part.str_of("type") {
        "input_image" => {
            let Some(url) = part.get("image_url") else { return };
            add(url.text(), format!("{at}.image_url"), LinkKind::Picture, url, Form::DataUrl, all);
        }
        // With data beside it nobody looks at the link.
        "input_file" if part.get("file_data").is_none() => {
            let url = part.text_of("file_url");
            add(url, format!("{at}.file_url"), LinkKind::File, part, Form::FileData, all);
        }
        _ => {}
    }
}

fn parts<'n, 'a>(turn: &'n Node<'a>, at: &str, all: &mut Vec<Found<'n, 'a>>) {
    each(turn.get("parts"), &format!("{at}.parts"), |part, at| {
        if let Some(result) = part.either("functionResponse", "function_response") {
            return parts(result, &format!("{at}.functionResponse"), all);
        }
        // With data beside it nobody looks at the link.
        let named = part.either("fileData", "file_data").filter(|_| part.either("inlineData", "inline_data").is_none());
        let Some(file) = named else { return };
        let mime = file.either("mimeType", "mime_type").and_then(Node::text);
        let kind = match mime.map_or("", |mime| mime) {
            mime if mime.starts_with("image/") => LinkKind::Picture,
            "" | "application/pdf" => LinkKind::File,
            _ => return,
        };
        let url = file.either("fileUri", "file_uri").and_then(Node::text);
        // Google's own ids look like links and open with its key only.
        if url.is_some_and(|url| url.contains("generativelanguage.googleapis.com")) {
            return;
        }
        add(url, format!("{at}.fileData.fileUri"), kind, part, Form::InlineData, all);
    });
}

fn add<'n, 'a>(
    url: Option<&Cow<'a, str>>,
    at: String,
    kind: LinkKind,
    instead: &'n Node<'a>,
    form: Form,
    all: &mut Vec<Found<'n, 'a>>,
) {
    let leads_out = |url: &&Cow<'_, str>| {
        let begins = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        begins("http://") || begins("https://")
    };
    if let Some(url) = url.filter(leads_out) {
        all.push(Found { link: MediaLink { url: url.to_string(), at, kind }, instead, form });
    }
}

#[cfg(test)]
mod tests;
