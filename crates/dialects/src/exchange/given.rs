//! Addresses in a request that a provider may open by itself: pictures, documents, recordings,
//! servers of tools. Whoever passes the request on judges them first, because the provider stands
//! somewhere else in the network than the caller.
//!
//! Names of files at a provider and data in the place of a link are no addresses, where the dialect
//! has them.

use super::links::{each, has_escaped_ascii};
use super::request::CheckedRequest;
use memchr::memchr_iter;
use memchr::memmem::Finder;
use std::sync::LazyLock;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

/// An address, and the field it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub at: String,
    pub url: String,
}

/// The scheme of an address, if it has one. What is before it, browsers leave out.
pub fn scheme(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
    let (scheme, _) = text.split_once(':')?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(plain)).then_some(scheme)
}

impl CheckedRequest {
    /// Every address that a provider may open.
    pub fn given(&self) -> Result<Vec<Given>, Problem> {
        if !may_give(self.dialect, self.body()) {
            return Ok(Vec::new());
        }
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let mut found = Found { all: Vec::new(), let_pass: let_pass(self.dialect) };
        found.request(self.dialect, &Node::read(text)?);
        Ok(found.all)
    }
}

/// What a dialect has in the place of an address.
const fn let_pass(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Chat | Dialect::Responses => &["data"],
        Dialect::Anthropic => &[],
        // Google's own stores.
        Dialect::Gemini => &["gs"],
    }
}

/// Nearly no request has addresses, and most of those with pictures have data: none is read again
/// to learn that.
fn may_give(dialect: Dialect, body: &[u8]) -> bool {
    let leads = |text: &[u8]| {
        let end = text.iter().take(16).position(|b| matches!(b, b':' | b'"'));
        end.is_some_and(|end| text[end] == b':' && !text[..end].eq_ignore_ascii_case(b"data"))
    };
    let somewhere = || memchr_iter(b'"', body).any(|quote| leads(&body[quote + 1..]));
    member(dialect).find(body).is_some() && somewhere() || has_escaped_ascii(body)
}

/// What stands in every request with an address, and in few others.
fn member(dialect: Dialect) -> &'static Finder<'static> {
    static IN_CHAT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_url\""));
    static IN_ANTHROPIC: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"url\""));
    static IN_GEMINI: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("ri\""));
    match dialect {
        Dialect::Chat | Dialect::Responses => &IN_CHAT,
        Dialect::Anthropic => &IN_ANTHROPIC,
        Dialect::Gemini => &IN_GEMINI,
    }
}

struct Found {
    all: Vec<Given>,
    let_pass: &'static [&'static str],
}

impl Found {
    fn request(&mut self, dialect: Dialect, body: &Node<'_>) {
        match dialect {
            Dialect::Chat => each(body.get("messages"), "messages", |message, at| {
                each(message.get("content"), &format!("{at}.content"), |part, at| {
                    if part.str_of("type") != "text" {
                        self.inside(part, &at, "");
                    }
                });
            }),
            Dialect::Anthropic => {
                each(body.get("messages"), "messages", |message, at| {
                    self.blocks(message.get("content"), &format!("{at}.content"));
                });
                each(body.get("mcp_servers"), "mcp_servers", |server, at| self.member(server, "url", &at));
            }
            Dialect::Responses => {
                each(body.get("input"), "input", |item, at| self.item(item, &at));
                each(body.get("tools"), "tools", |tool, at| self.member(tool, "server_url", &at));
            }
            Dialect::Gemini => {
                for name in ["contents", "systemInstruction", "system_instruction"] {
                    match body.get(name) {
                        Some(turn) if turn.is_map() => self.parts(turn, name),
                        turns => each(turns, name, |turn, at| self.parts(turn, &at)),
                    }
                }
            }
        }
    }

    fn blocks(&mut self, list: Option<&Node<'_>>, at: &str) {
        each(list, at, |block, at| match block.str_of("type") {
            "tool_result" => self.blocks(block.get("content"), &format!("{at}.content")),
            // What a search has found is shown, not opened.
            _ => {
                if let Some(source) = block.get("source").filter(|source| source.str_of("type") == "url") {
                    self.member(source, "url", &format!("{at}.source"));
                }
            }
        });
    }

    fn item(&mut self, item: &Node<'_>, at: &str) {
        for name in ["content", "output"] {
            let at = format!("{at}.{name}");
            match item.get(name) {
                Some(one) if one.is_map() => self.inside(one, &at, ""),
                list => each(list, &at, |part, at| {
                    if part.str_of("type").starts_with("input_") {
                        self.inside(part, &at, "");
                    }
                }),
            }
        }
    }

    fn parts(&mut self, turn: &Node<'_>, at: &str) {
        each(turn.get("parts"), &format!("{at}.parts"), |part, at| {
            if let Some(result) = part.either("functionResponse", "function_response") {
                return self.parts(result, &format!("{at}.functionResponse"));
            }
            if let Some(file) = part.either("fileData", "file_data") {
                self.member(file, "fileUri", &format!("{at}.fileData"));
                self.member(file, "file_uri", &format!("{at}.fileData"));
            }
        });
    }

    /// Everything in a part that is called an address.
    fn inside(&mut self, node: &Node<'_>, at: &str, name: &str) {
        if let Some(text) = node.text() {
            if name.ends_with("url") {
                self.add(text, at);
            }
            return;
        }
        for (index, item) in node.items().iter().enumerate() {
            self.inside(item, &format!("{at}[{index}]"), name);
        }
        if node.is_map() {
            for (name, value) in node.members() {
                self.inside(value, &format!("{at}.{name}"), name);
            }
        }
    }

    fn member(&mut self, node: &Node<'_>, name: &str, at: &str) {
        if let Some(text) = node.text_of(name) {
            self.add(text, &format!("{at}.{name}"));
        }
    }

    fn add(&mut self, text: &str, at: &str) {
        let own = |scheme: &str| self.let_pass.iter().any(|one| one.eq_ignore_ascii_case(scheme));
        if scheme(text).is_some_and(|scheme| !own(scheme)) {
            self.all.push(Given { at: at.to_owned(), url: text.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::{Value, json};

    fn given(dialect: Dialect, mut body: Value) -> Vec<String> {
        body["model"] = json!("m");
        body["max_tokens"] = json!(9);
        let model = (dialect == Dialect::Gemini).then_some("m");
        if model.is_some() {
            body.as_object_mut().expect("an object").retain(|name, _| name != "model" && name != "max_tokens");
        }
        let path = model.map(|model| crate::Path { model, stream: false });
        let request = CheckedRequest::read(dialect, Bytes::from(body.to_string()), path).expect("a request");
        request.given().expect("read").into_iter().map(|one| format!("{}={}", one.at, one.url)).collect()
    }

    #[test]
    fn addresses_are_found_where_a_provider_opens_them() {
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        let chat = user(json!([
            { "type": "text", "text": "file:///etc/passwd" },
            { "type": "image_url", "image_url": { "url": "file:///etc/passwd" } },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } },
            { "type": "image_url", "image_url": { "url": "http://10.0.0.1/a.png" } },
        ]));
        assert_eq!(
            given(Dialect::Chat, chat),
            [
                "messages[0].content[1].image_url.url=file:///etc/passwd",
                "messages[0].content[3].image_url.url=http://10.0.0.1/a.png"
            ]
        );
        let image = |url: &str| json!({ "type": "image", "source": { "type": "url", "url": url } });
        let nested = json!({ "type": "tool_result", "tool_use_id": "t", "content": [image("gs://b/c")] });
        let blocks = json!([image("data:image/png;base64,AA=="), nested]);
        let turns = json!({ "messages": [
            { "role": "user", "content": "x" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "n", "input": { "url": "file:///a" } }] },
            { "role": "user", "content": blocks },
        ]});
        assert_eq!(
            given(Dialect::Anthropic, turns),
            [
                "messages[2].content[0].source.url=data:image/png;base64,AA==",
                "messages[2].content[1].content[0].source.url=gs://b/c"
            ]
        );
        let input = json!({ "input": [{ "role": "user", "content": [
            { "type": "input_image", "image_url": "JavaScript:alert(1)" },
            { "type": "input_file", "file_url": "https://media.example/a.pdf" },
        ]}]});
        assert_eq!(
            given(Dialect::Responses, input),
            [
                "input[0].content[0].image_url=JavaScript:alert(1)",
                "input[0].content[1].file_url=https://media.example/a.pdf"
            ]
        );
        let file = |uri: &str| json!({ "fileData": { "mimeType": "image/png", "fileUri": uri } });
        let parts = json!([file("gs://bucket/a"), file("files/abc"), file("file:///a")]);
        assert_eq!(
            given(Dialect::Gemini, json!({ "contents": [{ "role": "user", "parts": parts }] })),
            ["contents[0].parts[2].fileData.fileUri=file:///a"]
        );
    }

    #[test]
    fn letters_written_as_escapes_hide_nothing() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_\u0075rl":{"url":"\u0066ile:///a"}}]}]}"#;
        let request = CheckedRequest::read(Dialect::Chat, Bytes::from(body), None).expect("a request");
        assert_eq!(request.given().expect("read").len(), 1);
    }

    #[test]
    fn a_scheme_is_what_browsers_take_for_one() {
        for (text, found) in [
            ("https://a", Some("https")),
            ("\u{1} \nfile:/a", Some("file")),
            ("iVBORw0KGgo=", None),
            ("//host/path", None),
            ("a b:c", None),
            ("1a:b", None),
        ] {
            assert_eq!(scheme(text), found, "{text:?}");
        }
    }
}
