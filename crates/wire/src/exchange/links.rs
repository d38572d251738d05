//! Pictures and documents that a request gives by their address, and the same request with the data in their place.
//!
//! Some providers take the data only. What is behind a link is not known here: the gateway fetches it. Links are looked for where
//! a dialect has media and nowhere else, so that an address in a text or in the arguments of a tool is left alone.

use super::request::Request;
use crate::dialect::Dialect;
use crate::hub::data_url;
use crate::json::{self, Node, Object};
use crate::problem::Problem;
use bytes::Bytes;
use memchr::{memchr_iter, memmem};
use std::borrow::Cow;

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
pub struct Link {
    pub url: String,
    /// The field of the request, for refusals.
    pub at: String,
    pub kind: LinkKind,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked<'d> {
    pub mime: &'d str,
    /// In the standard alphabet.
    pub base64: &'d str,
}

impl Request {
    /// The links of the request, in order; the same one may be there more than once.
    pub fn links(&self) -> Result<Vec<Link>, Problem> {
        if !may_have_links(self.dialect, self.body()) {
            return Ok(Vec::new());
        }
        let node = Node::read(self.text()?)?;
        Ok(found(self.dialect, &node).into_iter().map(|one| one.link).collect())
    }

    /// The request with data in the place of its links, where `data` has any.
    pub fn with_data<'d>(&self, data: impl Fn(&Link) -> Option<Linked<'d>>) -> Result<Request, Problem> {
        let text = self.text()?;
        let node = Node::read(text)?;
        let mut places: Vec<_> = found(self.dialect, &node)
            .into_iter()
            .filter_map(|one| data(&one.link).map(|linked| (one.instead.raw.as_ptr(), one, linked)))
            .collect();
        places.sort_by_key(|(start, ..)| *start);
        let added: usize = places.iter().map(|(.., linked)| linked.base64.len() + 128).sum();
        // Written once: the data may be most of what the gateway has in memory for the call.
        let mut out = Vec::with_capacity(text.len() + added);
        let mut done = 0;
        for (start, one, linked) in places {
            let start = start as usize - text.as_ptr() as usize;
            out.extend_from_slice(&text.as_bytes()[done..start]);
            one.write(linked, &mut out);
            done = start + one.instead.raw.len();
        }
        out.extend_from_slice(&text.as_bytes()[done..]);
        self.again(Bytes::from(out))
    }

    fn text(&self) -> Result<&str, Problem> {
        std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))
    }
}

/// Nearly no request has links, and none is read again to learn that: names and the beginning of an address are looked for in the
/// bytes. Where letters are written as escapes the bytes say nothing, and the request is read.
fn may_have_links(dialect: Dialect, body: &[u8]) -> bool {
    let named = memmem::find(body, member(dialect).as_bytes()).is_some();
    let leads_out = || {
        let mut texts = memchr_iter(b'"', body).map(|quote| &body[quote + 1..]);
        texts.any(|text| text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"http")))
    };
    (named && leads_out()) || has_escaped_ascii(body)
}

/// Letters, digits and signs as `\u0020` to `\u007f`; what clients escape of other scripts is neither name nor scheme.
fn has_escaped_ascii(body: &[u8]) -> bool {
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
    link: Link,
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
    fn write(&self, data: Linked<'_>, out: &mut Vec<u8>) {
        let Linked { mime, base64 } = data;
        match &self.form {
            Form::DataUrl => json::write_str(out, &data_url(mime, base64)),
            Form::Source => {
                let mut source = Object::begin(out);
                source.text("type", "base64");
                source.text("media_type", mime);
                source.text("data", base64);
                beside(self.instead, &["type", "url", "media_type", "data"], &mut source);
                source.end();
            }
            Form::FileData => {
                let mut part = Object::begin(out);
                beside(self.instead, &["file_url", "file_data"], &mut part);
                part.text("file_data", &data_url(mime, base64));
                part.end();
            }
            Form::InlineData => {
                let mut part = Object::begin(out);
                beside(self.instead, &["fileData", "file_data", "inlineData", "inline_data"], &mut part);
                part.object("inlineData", |inner| {
                    inner.text("mimeType", mime);
                    inner.text("data", base64);
                    if let Some(file) = self.instead.either("fileData", "file_data") {
                        beside(file, &["mimeType", "mime_type", "fileUri", "file_uri", "data"], inner);
                    }
                });
                part.end();
            }
        }
    }
}

/// Writes the members of `node` that are not among those which say where the file is.
fn beside(node: &Node<'_>, place: &[&str], object: &mut Object<'_>) {
    for (name, value) in node.members().iter().filter(|(name, _)| !place.contains(&name.as_ref())) {
        object.raw(name, value.raw);
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

fn each<'n, 'a>(list: Option<&'n Node<'a>>, at: &str, mut look: impl FnMut(&'n Node<'a>, String)) {
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
        all.push(Found { link: Link { url: url.to_string(), at, kind }, instead, form });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Path;
    use crate::hub::Target;

    const URL: &str = "https://x.example/a.png?x=1&y=\\u0026";

    fn request(dialect: Dialect, body: &str) -> Request {
        let path = (dialect == Dialect::Gemini).then_some(Path { model: "gemini-m", stream: false });
        Request::read(dialect, Bytes::copy_from_slice(body.as_bytes()), path).unwrap()
    }

    /// Every place of every dialect: the field that is named, and what stands there afterwards.
    #[test]
    fn links_are_found_where_media_are_and_become_data() {
        let text = r#"{"type":"text","text":"https://x.example/in-a-text.png"}"#;
        for (dialect, body, at, kind, becomes) in [
            (
                Dialect::Chat,
                r#"{"model":"m","messages":[{"role":"user","content":[TEXT,{"type":"image_url","image_url":{"url":"URL","detail":"low"}}]}]}"#,
                "messages[0].content[1].image_url.url",
                LinkKind::Picture,
                r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}}"#,
            ),
            (
                Dialect::Chat,
                r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"URL"}]}]}"#,
                "messages[0].content[0].image_url",
                LinkKind::Picture,
                r#"{"type":"image_url","image_url":"data:image/png;base64,QUJD"}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"URL","new":[1, 2]},"title":"t"}]}]}"#,
                "messages[0].content[0].source.url",
                LinkKind::File,
                r#"{"type":"document","source":{"type":"base64","media_type":"image/png","data":"QUJD","new":[1, 2]},"title":"t"}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[TEXT,{"type":"image","source":{"url":"URL","type":"url"}}]}]}]}"#,
                "messages[0].content[0].content[1].source.url",
                LinkKind::Picture,
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}"#,
            ),
            (
                Dialect::Responses,
                r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"URL"}]}]}"#,
                "input[0].content[0].image_url",
                LinkKind::Picture,
                r#"{"type":"input_image","image_url":"data:image/png;base64,QUJD"}"#,
            ),
            (
                Dialect::Responses,
                r#"{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_file","file_url":"URL","file_data":null,"filename":"f"}]}]}"#,
                "input[0].output[0].file_url",
                LinkKind::File,
                r#"{"type":"input_file","filename":"f","file_data":"data:image/png;base64,QUJD"}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"contents":[{"parts":[{"fileData":{"mimeType":"image/gif","displayName":"d","fileUri":"URL","new":{}},"thought":false}]}]}"#,
                "contents[0].parts[0].fileData.fileUri",
                LinkKind::Picture,
                r#"{"thought":false,"inlineData":{"mimeType":"image/png","data":"QUJD","displayName":"d","new":{}}}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"contents":{"parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"file_data":{"file_uri":"URL","display_name":"d"}}]}}]}}"#,
                "contents.parts[0].functionResponse.parts[0].fileData.fileUri",
                LinkKind::File,
                r#"{"inlineData":{"mimeType":"image/png","data":"QUJD","display_name":"d"}}"#,
            ),
        ] {
            let body = body.replace("TEXT", text).replace("URL", URL);
            let request = request(dialect, &body);
            let links = request.links().unwrap();
            let expected = Link { url: "https://x.example/a.png?x=1&y=&".to_owned(), at: at.to_owned(), kind };
            assert_eq!(links, [expected], "{body}");
            let with = request.with_data(|_| Some(Linked { mime: "image/png", base64: "QUJD" })).unwrap();
            let new = String::from_utf8(with.body().to_vec()).unwrap();
            assert!(new.contains(becomes), "{new}");
            assert_eq!(with.links().unwrap(), [], "{new}");
            assert_eq!(new.contains("in-a-text.png"), body.contains("in-a-text.png"), "the rest is as it was");
            let same = request.with_data(|_| None).unwrap();
            assert_eq!(same.body(), request.body(), "nothing to put in");
        }
    }

    /// What stands beside a link is carried where another dialect has a place for it, and told where it has none.
    #[test]
    fn members_beside_a_link_do_not_vanish() {
        let source = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"http://a/1","new":1}}]}]}"#;
        let named = r#"{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"MIME","fileUri":"http://a/1","displayName":"my name","new":1}}]}]}"#;
        for (dialect, body, mime, dropped) in [
            (Dialect::Anthropic, source, "application/pdf", "source.new"),
            (Dialect::Gemini, named, "application/pdf", "inlineData.new"),
            (Dialect::Gemini, named, "image/png", "inlineData.displayName,inlineData.new"),
        ] {
            let request = request(dialect, &body.replace("MIME", mime));
            let with = request.with_data(|_| Some(Linked { mime, base64: "QUJD" })).unwrap();
            let mut target = Target::new(Dialect::Chat, "up");
            let sent = with.upstream_body(&target).unwrap();
            assert_eq!(sent.dropped.to_string(), dropped, "{body}");
            let carried = sent.body.windows(7).any(|at| at == b"my name");
            assert_eq!(carried, !dropped.contains("displayName") && dialect == Dialect::Gemini, "{:?}", sent.body);
            target.strict = true;
            let problem = with.upstream_body(&target).unwrap_err();
            assert_eq!(problem.param.as_deref(), dropped.split(',').next(), "{body}");
        }
    }

    /// However a client writes names and addresses, a link is one.
    #[test]
    fn links_are_found_in_every_spelling() {
        let (chat, anthropic) = (Dialect::Chat, Dialect::Anthropic);
        for (dialect, part) in [
            (chat, r#"{"type":"image_url","image_url":{"url":"HTTPS://x.example/a"}}"#),
            (chat, r#"{"type":"image_url","image_url":"Http://x.example/a"}"#),
            (chat, r#"{"type":"image_url","image_url":{"url":"https:\/\/x.example\/a"}}"#),
            (chat, r#"{"type":"image_url","image_url":{"url":"\u0068ttps://x.example/a"}}"#),
            (chat, r#"{"type":"image_url","image_url":{"url":"h\u0054tp://x.example/a"}}"#),
            (chat, r#"{"type":"image\u005furl","image\u005Furl":{"url":"http://x.example/a"}}"#),
            (anthropic, r#"{"type":"image","source":{"type":"ur\u006c","\u0075rl":"HTTP://x.example/a"}}"#),
        ] {
            let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
            let request = request(dialect, &body);
            let [link] = &request.links().unwrap()[..] else { panic!("{body}") };
            assert!(link.url[..4].eq_ignore_ascii_case("http") && link.url.ends_with("://x.example/a"), "{link:?}");
            let with = request.with_data(|_| Some(Linked { mime: "image/png", base64: "QUJD" })).unwrap();
            assert!(!with.body().windows(9).any(|at| at == b"x.example"), "{:?}", with.body());
        }
    }

    /// The bytes are asked first, and must never say no where there is a link.
    #[test]
    fn a_request_is_read_again_only_where_it_may_have_links() {
        for (body, read) in [
            (r#"{"image_url":"http://x"}"#, true),
            (r#"{"image_url":"hTTp://x"}"#, true),
            (r#"{"image_url":"data:x","text":"see http://x"}"#, false),
            (r#"{"text":"http://x"}"#, false),
            (r#"{"text":"\u4f60\u597d\u0085\u00e9\u000a\u001f"}"#, false),
            (r#"{"text":"\u002f"}"#, true),
            (r#"{"text":"\u007A"}"#, true),
            (r#"{"image_url":"htt"#, false),
            (r#"{"text":"\u00"#, false),
        ] {
            assert_eq!(may_have_links(Dialect::Chat, body.as_bytes()), read, "{body}");
        }
    }

    #[test]
    fn what_only_looks_like_a_link_is_left_alone() {
        for (dialect, body) in [
            (Dialect::Chat, r#"{"model":"m","messages":[{"role":"user","content":"http://x"}]}"#),
            (
                Dialect::Chat,
                r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},
                    {"type":"image_url","image_url":{"url":"ftp://http.example/a"}},{"type":"video_url","video_url":{"url":"http://x/v"}}]}]}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f",
                    "input":{"type":"image","source":{"type":"url","url":"http://x/a"}}}]}]}"#,
            ),
            (Dialect::Responses, r#"{"model":"m","input":"http://x"}"#),
            (
                Dialect::Gemini,
                r#"{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"http://x/v"}},{"fileData":{"fileUri":"gs://http/x"}},
                    {"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}]}]}"#,
            ),
        ] {
            assert_eq!(request(dialect, body).links().unwrap(), [], "{body}");
        }
    }

    /// The second of two is exchanged where the first is not, and the estimate of a picture does not depend on how it is given.
    #[test]
    fn each_link_by_itself() {
        let one = |url: &str| format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{},{}]}}]}}"#,
            one("http://a/1"),
            one("http://a/2")
        );
        let request = request(Dialect::Chat, &body);
        let data = Linked { mime: "image/gif", base64: "QQ==" };
        let with = request.with_data(|link| (link.url == "http://a/2").then_some(data)).unwrap();
        assert_eq!(with.body(), &body.replace("http://a/2", "data:image/gif;base64,QQ=="));
        assert_eq!(with.prompt_tokens, request.prompt_tokens);
    }
}
