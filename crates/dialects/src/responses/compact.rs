//! The request for a summary of a conversation, made of the request to press it into one item.

use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

/// What would make the answer anything but a text.
const NO_SUMMARY: &[&str] = &[
    "previous_response_id",
    "conversation",
    "input",
    "text",
    "tool_choice",
    "max_tool_calls",
    // A summary that is cut off is none.
    "max_output_tokens",
];
const TOOLS: &[&str] = &["tools", "parallel_tool_calls"];

/// The request with `items` as its input, for a text: no tool may be called and no form is asked
/// for. Tools stay defined where the items hold calls, because some providers take calls only
/// together with their definitions, and where `none` may be chosen among them.
pub fn to_compact(body: &[u8], items: &[impl AsRef<str>], takes_none: bool) -> Result<Bytes, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
    let node = Node::read(text)?;
    let tools = takes_none
        && node.get("tools").is_some_and(|tools| !tools.items().is_empty())
        && items.iter().any(|item| is_call(item.as_ref()));
    let mut out = Vec::with_capacity(body.len() + items.iter().map(|item| item.as_ref().len() + 1).sum::<usize>());
    let mut object = Object::begin(&mut out);
    object.members_of(&node, |name| NO_SUMMARY.contains(&name) || (!tools && TOOLS.contains(&name)));
    if tools {
        object.text("tool_choice", "none");
    }
    object.array("input", |list| items.iter().for_each(|item| list.raw(item.as_ref())));
    object.end();
    Ok(Bytes::from(out))
}

fn is_call(item: &str) -> bool {
    let kind = Node::read(item).map(|node| node.str_of("type").to_owned()).unwrap_or_default();
    kind.ends_with("_call") || kind.ends_with("_call_output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_asked_for_as_text() {
        let body = br#"{"model":"m","input":"x","tools":[{"type":"function","name":"f"}],"tool_choice":"required","parallel_tool_calls":true,"text":{"format":{"type":"json_object"}},"max_output_tokens":5,"top_p":0.50}"#;
        let (said, call) = (r#"{"role":"user","content":"x"}"#, r#"{"type":"function_call","call_id":"c"}"#);
        let alone = format!(r#"{{"model":"m","top_p":0.50,"input":[{said}]}}"#);
        assert_eq!(to_compact(body, &[said], true).unwrap(), alone);
        let tools = r#""tools":[{"type":"function","name":"f"}],"parallel_tool_calls":true"#;
        let called = format!(r#"{{"model":"m",{tools},"top_p":0.50,"tool_choice":"none","input":[{said},{call}]}}"#);
        assert_eq!(to_compact(body, &[said, call], true).unwrap(), called);
        let without = format!(r#"{{"model":"m","top_p":0.50,"input":[{said},{call}]}}"#);
        assert_eq!(to_compact(body, &[said, call], false).unwrap(), without);
    }
}
