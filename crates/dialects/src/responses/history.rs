//! A conversation stored by the gateway: what a request names of it, and the request with that in
//! the place of the names.
//!
//! Items are JSON texts as the client or a provider wrote them; they are shown ([`shown`]) with the
//! fields that clients insist on, and sent on as they are.

use crate::hub::base64;
use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Node, Object};

/// What a request names instead of saying it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedItems {
    pub previous: Option<String>,
    pub conversation: Option<String>,
    /// The answer is to be stored.
    pub store: bool,
    /// Ids of items in the input that stand for the items.
    pub references: Vec<String>,
}

impl NamedItems {
    pub fn read(body: &[u8]) -> Result<NamedItems, Problem> {
        let node = tree(body)?;
        if node.get("background").is_some_and(|background| background.raw != "false") {
            let text = "Nothing runs in the background here: ask for a stream, or wait for the answer.";
            return Err(Problem::unsupported("background", text));
        }
        let id = |name: &str| match node.get(name) {
            None => Ok(None),
            Some(value) => match value.text().or_else(|| value.text_of("id")) {
                Some(text) => Ok(Some(text.clone().into_owned())),
                None => Err(Problem::wrong(name, "the id of one")),
            },
        };
        let references = node.get("input").map_or(&[][..], Node::items).iter().filter(|item| is_reference(item));
        Ok(NamedItems {
            previous: id("previous_response_id")?,
            conversation: id("conversation")?,
            store: node.get("store").is_none_or(|store| store.raw != "false"),
            references: references.map(|item| item.str_of("id").to_owned()).collect(),
        })
    }
}

/// An item that only names another. Its type may be left out.
fn is_reference(item: &Node<'_>) -> bool {
    let kind = item.str_of("type");
    kind == "item_reference" || kind.is_empty() && item.get("role").is_none() && item.get("id").is_some()
}

fn tree(body: &[u8]) -> Result<Node<'_>, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
    Ok(Node::read(text)?)
}

/// The request with `items` (JSON, oldest first) as its input and without the references to state.
/// Instructions, tools and parameters are the request's own: they are not inherited.
pub fn with_input(body: &[u8], items: &[impl AsRef<str>]) -> Result<Bytes, Problem> {
    let node = tree(body)?;
    let mut out = Vec::with_capacity(body.len() + items.iter().map(|item| item.as_ref().len() + 1).sum::<usize>());
    let mut object = Object::begin(&mut out);
    object.members_of(&node, |name| matches!(name, "previous_response_id" | "conversation" | "input"));
    object.array("input", |list| items.iter().for_each(|item| list.raw(item.as_ref())));
    object.end();
    Ok(Bytes::from(out))
}

/// The input of a request as items: a text becomes a message, and an item that is named becomes the
/// one in `found`.
pub fn input_items(body: &[u8], found: &[(String, String)]) -> Vec<String> {
    let Ok(node) = tree(body) else { return Vec::new() };
    let Some(value) = node.get("input") else { return Vec::new() };
    if let Some(text) = value.text() {
        let mut out = Vec::new();
        let mut message = Object::begin(&mut out);
        message.text("type", "message");
        message.text("role", "user");
        message.text("content", text);
        message.end();
        return String::from_utf8(out).into_iter().collect();
    }
    let own = |item: &Node<'_>| {
        let named = is_reference(item).then(|| found.iter().find(|(id, _)| id == item.str_of("id"))).flatten();
        named.map_or_else(|| item.raw.to_owned(), |(_, json)| json.clone())
    };
    value.items().iter().map(own).collect()
}

/// A response object as far as keeping it needs to know: its id, and its output items with theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOutline {
    pub id: String,
    pub items: Vec<(String, String)>,
}

impl ResponseOutline {
    /// None: this is no response object.
    pub fn read(object: &[u8]) -> Option<ResponseOutline> {
        let node = tree(object).ok()?;
        let id = node.text_of("id")?.clone().into_owned();
        let items = node.get("output").map_or(&[][..], Node::items).iter();
        Some(ResponseOutline {
            id,
            items: items.map(|item| (item.str_of("id").to_owned(), item.raw.to_owned())).collect(),
        })
    }
}

/// A thought without the id of its item, under which a provider that stored nothing would look for
/// it in vain (case 63); any other item as it is.
pub fn without_thought_id(item: String) -> String {
    let thought = Node::read(&item).is_ok_and(|node| node.str_of("type") == "reasoning");
    if thought { without_id(item) } else { item }
}

/// An item without the id it has of its own.
pub fn without_id(item: String) -> String {
    let Ok(node) = Node::read(&item) else { return item };
    if node.get("id").is_none() {
        return item;
    }
    let mut out = Vec::with_capacity(item.len());
    let mut object = Object::begin(&mut out);
    object.members_of(&node, |name| name == "id");
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

/// The items of a JSON list, as they are written.
pub fn list(text: &str) -> Vec<String> {
    let node = Node::read(text);
    node.as_ref().map_or(&[][..], Node::items).iter().map(|item| item.raw.to_owned()).collect()
}

/// The id an item has of its own.
pub fn item_id(item: &str) -> Option<String> {
    let node = Node::read(item).ok()?;
    node.text_of("id").map(|id| id.clone().into_owned())
}

/// An item as it is listed: with id, type and status, and a message's text in parts.
pub fn shown(item: &str, id: &str) -> String {
    let Ok(node) = Node::read(item) else { return item.to_owned() };
    let kind = if node.str_of("type").is_empty() { "message" } else { node.str_of("type") };
    let mut out = Vec::with_capacity(item.len() + 96);
    let mut object = Object::begin(&mut out);
    object.text("id", id);
    object.text("type", kind);
    if node.get("status").is_none() && matches!(kind, "message" | "function_call" | "function_call_output") {
        object.text("status", "completed");
    }
    for (name, value) in node.members() {
        match (name.as_ref(), value.text()) {
            ("id" | "type", _) => {}
            ("content", Some(text)) if kind == "message" => parts(&mut object, node.str_of("role"), text),
            _ => object.raw(name, value.raw),
        }
    }
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

fn parts(object: &mut Object<'_>, role: &str, text: &str) {
    let assistant = role == "assistant";
    object.array("content", |list| {
        list.object(|part| {
            part.text("type", if assistant { "output_text" } else { "input_text" });
            part.text("text", text);
            if assistant {
                part.raw("annotations", "[]");
            }
        });
    });
}

const SUMMARY: &str = "tgc1.";

/// A conversation pressed into one item. Only we can read it again; it is no secret from its owner,
/// whose words it holds.
pub fn compaction(id: &str, summary: &str) -> String {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.text("id", id);
    object.text("type", "compaction");
    object.text("encrypted_content", &format!("{SUMMARY}{}", base64::encode(summary.as_bytes())));
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

/// A compaction of ours as the message it stands for; any other item as it is.
pub fn expanded(item: String) -> String {
    let summary = || {
        let node = Node::read(&item).ok()?;
        let sealed = node.text_of("encrypted_content").filter(|_| node.str_of("type") == "compaction")?;
        String::from_utf8(base64::decode(sealed.strip_prefix(SUMMARY)?)?).ok()
    };
    let Some(summary) = summary() else { return item };
    let mut out = Vec::new();
    let mut message = Object::begin(&mut out);
    message.text("type", "message");
    message.text("role", "developer");
    message.text("content", &format!("The conversation so far, in short:\n\n{summary}"));
    message.end();
    String::from_utf8(out).unwrap_or_default()
}

/// The visible text of a response object: its output texts in order.
pub fn output_text(object: &[u8]) -> String {
    let Ok(node) = tree(object) else { return String::new() };
    let items = node.get("output").map_or(&[][..], Node::items).iter();
    let parts = items.flat_map(|item| item.get("content").map_or(&[][..], Node::items));
    parts.filter(|part| part.str_of("type") == "output_text").map(|part| part.str_of("text")).collect()
}

/// Whether a response object came to its own end.
pub fn is_completed(object: &[u8]) -> bool {
    tree(object).is_ok_and(|node| node.str_of("status") == "completed")
}

/// What a compaction is answered with.
pub fn compacted(id: &str, created: u64, items: &[String], answer: &[u8]) -> Bytes {
    let usage = tree(answer).ok().and_then(|node| Some(node.get("usage")?.raw.to_owned()));
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.text("id", id);
    object.text("object", "response.compaction");
    object.number("created_at", created);
    let mut list = Array::begin(object.key("output"));
    items.iter().for_each(|item| list.raw(item));
    list.end();
    object.raw("usage", usage.as_deref().unwrap_or("null"));
    object.end();
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_the_input_and_nothing_else_is_inherited() {
        let body = br#"{"model":"m","input":"next","previous_response_id":"resp_1","temperature":0.50}"#;
        let first = r#"{"role":"user","content":"first"}"#.to_owned();
        let own = input_items(body, &[]);
        assert_eq!(own, [r#"{"type":"message","role":"user","content":"next"}"#]);
        let whole = with_input(body, &[vec![first.clone()], own].concat()).unwrap();
        let expected = format!(
            r#"{{"model":"m","temperature":0.50,"input":[{first},{{"type":"message","role":"user","content":"next"}}]}}"#
        );
        assert_eq!(whole, expected);
        assert!(with_input(b"{", &[""; 0]).is_err() && input_items(b"[]", &[]).is_empty());
    }

    #[test]
    fn case_63_a_thought_is_sent_back_without_its_id() {
        for (item, sent) in [
            (
                r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"S"}"#,
                r#"{"type":"reasoning","summary":[],"encrypted_content":"S"}"#,
            ),
            (r#"{"id":"msg_1","type":"message"}"#, r#"{"id":"msg_1","type":"message"}"#),
        ] {
            assert_eq!(without_thought_id(item.to_owned()), sent);
        }
    }

    #[test]
    fn what_a_request_names() {
        for (body, previous, conversation, store, references) in [
            (r#"{"input":"x"}"#, None, None, true, vec![]),
            (r#"{"store":false,"previous_response_id":"r","conversation":null}"#, Some("r"), None, false, vec![]),
            (r#"{"store":null,"conversation":{"id":"c"}}"#, None, Some("c"), true, vec![]),
            (
                r#"{"input":[{"type":"item_reference","id":"a"},{"id":"b"},{"id":"c","role":"user"}]}"#,
                None,
                None,
                true,
                vec!["a", "b"],
            ),
        ] {
            let named = NamedItems::read(body.as_bytes()).unwrap();
            assert_eq!((named.previous.as_deref(), named.conversation.as_deref()), (previous, conversation), "{body}");
            assert_eq!(
                (named.store, &named.references[..]),
                (store, &references.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()[..])
            );
        }
        for body in [&br#"{"background":true}"#[..], br#"{"background":"yes"}"#] {
            assert_eq!(NamedItems::read(body).unwrap_err().param.as_deref(), Some("background"));
        }
        assert!(
            NamedItems::read(br#"{"background":false}"#).is_ok() && NamedItems::read(br#"{"background":null}"#).is_ok()
        );
        assert_eq!(
            NamedItems::read(br#"{"previous_response_id":7}"#).unwrap_err().param.as_deref(),
            Some("previous_response_id")
        );
    }

    #[test]
    fn named_items_are_put_in_their_place() {
        let body = br#"{"input":[{"type":"item_reference","id":"a"},{"id":"b"},{"role":"user","content":"c"}]}"#;
        let found = [("a".to_owned(), r#"{"id":"a","x":1}"#.to_owned())];
        assert_eq!(
            input_items(body, &found),
            [r#"{"id":"a","x":1}"#, r#"{"id":"b"}"#, r#"{"role":"user","content":"c"}"#]
        );
    }

    #[test]
    fn items_are_shown_with_what_clients_insist_on() {
        for (item, expected) in [
            (
                r#"{"role":"user","content":"hi"}"#,
                r#"{"id":"i","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
            ),
            (
                r#"{"type":"message","id":"old","role":"assistant","content":"hi","status":"incomplete"}"#,
                r#"{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}],"status":"incomplete"}"#,
            ),
            (r#"{"type":"reasoning","summary":[]}"#, r#"{"id":"i","type":"reasoning","summary":[]}"#),
        ] {
            assert_eq!(shown(item, "i"), expected);
        }
    }

    #[test]
    fn a_compaction_comes_back_as_what_it_stands_for() {
        let item = compaction("cmp_1", "Tuesday, \"support\" first");
        assert!(!item.contains("Tuesday"));
        assert_eq!(
            expanded(item),
            r#"{"type":"message","role":"developer","content":"The conversation so far, in short:\n\nTuesday, \"support\" first"}"#
        );
        let foreign = r#"{"type":"compaction","encrypted_content":"gAAAA"}"#.to_owned();
        assert_eq!(expanded(foreign.clone()), foreign);
    }
}
