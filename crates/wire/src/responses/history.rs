//! A conversation kept by the gateway put in front of a request that names it.

use crate::json::{Array, Node, Object};
use crate::problem::Problem;
use bytes::Bytes;

/// The request with `items` (JSON, oldest first) in front of its own input and without the references to state. Instructions,
/// tools and parameters are the request's own: they are not inherited.
pub fn with_history(body: &[u8], items: &[&str]) -> Result<Bytes, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
    let node = Node::read(text)?;
    let mut out = Vec::with_capacity(body.len() + items.iter().map(|item| item.len() + 1).sum::<usize>());
    let mut object = Object::begin(&mut out);
    for (name, value) in node.members() {
        match name.as_ref() {
            "previous_response_id" | "conversation" => {}
            "input" => input(value, items, &mut object),
            _ => object.raw(name, value.raw),
        }
    }
    object.end();
    Ok(Bytes::from(out))
}

fn input(value: &Node<'_>, items: &[&str], object: &mut Object<'_>) {
    let mut list = Array::begin(object.key("input"));
    items.iter().for_each(|item| list.raw(item));
    match value.text() {
        Some(text) => list.object(|message| {
            message.text("type", "message");
            message.text("role", "user");
            message.text("content", text);
        }),
        None => value.items().iter().for_each(|item| list.raw(item.raw)),
    }
    list.end();
}

/// The input of a request as items, for storing: a text becomes a message.
pub fn input_items(body: &[u8]) -> Vec<String> {
    let Some(node) = std::str::from_utf8(body).ok().and_then(|text| Node::read(text).ok()) else { return Vec::new() };
    let Some(value) = node.get("input") else { return Vec::new() };
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    input(value, &[], &mut object);
    object.end();
    let again = String::from_utf8(out).unwrap_or_default();
    let again = Node::read(&again).ok();
    let items = again.as_ref().and_then(|node| node.get("input")).map_or(&[][..], Node::items);
    items.iter().map(|item| item.raw.to_owned()).collect()
}

/// The items of a response object's output.
pub fn output_items(response: &str) -> Vec<String> {
    let Ok(node) = Node::read(response) else { return Vec::new() };
    node.get("output").map_or(&[][..], Node::items).iter().map(|item| item.raw.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_comes_first_and_nothing_else_is_inherited() {
        let body = br#"{"model":"m","input":"next","previous_response_id":"resp_1","temperature":0.50}"#;
        let first = r#"{"role":"user","content":"first"}"#;
        let whole = with_history(body, &[first]).unwrap();
        assert_eq!(
            whole,
            r#"{"model":"m","input":[{"role":"user","content":"first"},{"type":"message","role":"user","content":"next"}],"temperature":0.50}"#
        );
        let listed = br#"{"input":[{"type":"function_call_output","call_id":"c","output":"r"}],"conversation":null}"#;
        assert_eq!(
            with_history(listed, &[]).unwrap(),
            r#"{"input":[{"type":"function_call_output","call_id":"c","output":"r"}]}"#
        );
        assert_eq!(input_items(body), [r#"{"type":"message","role":"user","content":"next"}"#]);
        assert_eq!(output_items(r#"{"output":[{"a":1},{"b":2}]}"#), [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert!(with_history(b"{", &[]).is_err() && input_items(b"[]").is_empty());
    }
}
