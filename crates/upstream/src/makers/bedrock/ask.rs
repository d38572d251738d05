//! A request in Anthropic's messages as Converse takes it. What Converse has no field for is
//! reported, or refused by its name.

use bytes::Bytes;
use tollgate_wire::json::{Array, Node, Object};
use tollgate_wire::{Dropped, Problem};

/// Fields of Claude that Converse passes on as they are.
const PASSED_ON: [&str; 3] = ["top_k", "thinking", "output_config"];

pub(super) fn converse(body: &[u8]) -> Result<(Bytes, Dropped), Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
    let node = Node::read(text)?;
    let mut dropped = Dropped::default();
    let mut out = Vec::with_capacity(body.len() + 256);
    let mut object = Object::begin(&mut out);
    messages(&mut object, &node)?;
    if let Some(system) = node.get("system") {
        object.array("system", |list| system_blocks(list, system));
    }
    inference(&mut object, &node);
    tools(&mut object, &node, &mut dropped)?;
    if PASSED_ON.iter().any(|name| node.get(name).is_some()) {
        object.object("additionalModelRequestFields", |more| {
            PASSED_ON.iter().for_each(|name| more.maybe_raw(name, node.get(name).map(|value| value.raw)));
        });
    }
    object.end();
    let known = ["model", "stream", "messages", "system", "max_tokens", "temperature", "top_p", "stop_sequences"];
    for (name, value) in node.members() {
        let name = name.as_ref();
        let is_known = known.contains(&name) || PASSED_ON.contains(&name) || matches!(name, "tools" | "tool_choice");
        if !is_known && !value.is_null() {
            dropped.add(name);
        }
    }
    Ok((Bytes::from(out), dropped))
}

fn inference(object: &mut Object<'_>, node: &Node<'_>) {
    const NAMES: [(&str, &str); 4] = [
        ("max_tokens", "maxTokens"),
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("stop_sequences", "stopSequences"),
    ];
    if NAMES.iter().any(|(name, _)| node.get(name).is_some()) {
        object.object("inferenceConfig", |config| {
            NAMES.iter().for_each(|(name, theirs)| config.maybe_raw(theirs, node.get(name).map(|value| value.raw)));
        });
    }
}

fn system_blocks(list: &mut Array<'_>, system: &Node<'_>) {
    if let Some(text) = system.text() {
        list.object(|block| block.text("text", text));
    }
    for block in system.items() {
        list.object(|out| out.text("text", block.str_of("text")));
        cache_point(list, block);
    }
}

/// A mark behind the block that it stands on.
fn cache_point(list: &mut Array<'_>, block: &Node<'_>) {
    if block.get("cache_control").is_some() {
        list.object(|out| out.object("cachePoint", |point| point.text("type", "default")));
    }
}

fn messages(object: &mut Object<'_>, node: &Node<'_>) -> Result<(), Problem> {
    let mut problem = None;
    let turns = node.get("messages").map(Node::items).unwrap_or_default();
    object.array("messages", |list| {
        for (at, turn) in turns.iter().enumerate() {
            list.object(|out| {
                out.text("role", turn.str_of("role"));
                out.array("content", |content| {
                    let place = format!("messages[{at}].content");
                    if let Err(why) = blocks(content, turn.get("content"), &place) {
                        problem.get_or_insert(why);
                    }
                });
            });
        }
    });
    problem.map_or(Ok(()), Err)
}

fn blocks(list: &mut Array<'_>, content: Option<&Node<'_>>, place: &str) -> Result<(), Problem> {
    let Some(content) = content else { return Ok(()) };
    if let Some(text) = content.text() {
        list.object(|block| block.text("text", text));
    }
    for (at, one) in content.items().iter().enumerate() {
        block(list, one, &format!("{place}[{at}]"))?;
        cache_point(list, one);
    }
    Ok(())
}

fn block(list: &mut Array<'_>, one: &Node<'_>, place: &str) -> Result<(), Problem> {
    match one.str_of("type") {
        "text" => list.object(|out| out.text("text", one.str_of("text"))),
        "image" => {
            let (kind, data) = data_of(one, place)?;
            let format = kind.strip_prefix("image/").unwrap_or(kind);
            list.object(|out| out.object("image", |image| media(image, format, data)));
        }
        "document" => {
            let (kind, data) = data_of(one, place)?;
            if kind != "application/pdf" {
                return Err(unknown(place));
            }
            list.object(|out| {
                out.object("document", |document| {
                    document.text("name", "document");
                    media(document, "pdf", data);
                });
            });
        }
        "tool_use" => list.object(|out| {
            out.object("toolUse", |call| {
                call.text("toolUseId", one.str_of("id"));
                call.text("name", one.str_of("name"));
                call.raw("input", one.get("input").map_or("{}", |input| input.raw));
            });
        }),
        "tool_result" => return result(list, one, place),
        "thinking" => list.object(|out| {
            out.object("reasoningContent", |thought| {
                thought.object("reasoningText", |text| {
                    text.text("text", one.str_of("thinking"));
                    text.maybe("signature", one.text_of("signature").map(|text| text.as_ref()));
                });
            });
        }),
        "redacted_thinking" => list.object(|out| {
            out.object("reasoningContent", |thought| thought.text("redactedContent", one.str_of("data")));
        }),
        _ => return Err(unknown(place)),
    }
    Ok(())
}

fn media(out: &mut Object<'_>, format: &str, data: &str) {
    out.text("format", format);
    out.object("source", |source| source.text("bytes", data));
}

fn result(list: &mut Array<'_>, one: &Node<'_>, place: &str) -> Result<(), Problem> {
    let mut problem = None;
    list.object(|out| {
        out.object("toolResult", |result| {
            result.text("toolUseId", one.str_of("tool_use_id"));
            result.array("content", |content| {
                if let Err(why) = blocks(content, one.get("content"), &format!("{place}.content")) {
                    problem = Some(why);
                }
            });
            let failed = one.get("is_error").and_then(Node::bool) == Some(true);
            result.text("status", if failed { "error" } else { "success" });
        });
    });
    problem.map_or(Ok(()), Err)
}

/// Media type and base64; an address is none.
fn data_of<'n>(one: &'n Node<'_>, place: &str) -> Result<(&'n str, &'n str), Problem> {
    let source = one.get("source").filter(|source| source.str_of("type") == "base64");
    let source = source.ok_or_else(|| {
        let field = format!("{place}.source");
        Problem::unsupported(&field, format!("`{field}`: the provider of this model takes data in base64 only."))
    })?;
    Ok((source.str_of("media_type"), source.str_of("data")))
}

fn unknown(place: &str) -> Problem {
    Problem::unsupported(place, format!("`{place}`: the provider of this model has nothing like this."))
}

fn tools(object: &mut Object<'_>, node: &Node<'_>, dropped: &mut Dropped) -> Result<(), Problem> {
    let tools = node.get("tools").map(Node::items).unwrap_or_default();
    if tools.is_empty() {
        return Ok(());
    }
    let choice = node.get("tool_choice");
    let kind = choice.map_or("auto", |choice| choice.str_of("type"));
    if kind == "none" {
        // Left out altogether they cannot be called; a conversation in which they were must have
        // them.
        if !mentions_tools(node) {
            return Ok(());
        }
        dropped.add("tool_choice");
    }
    if choice.and_then(|choice| choice.get("disable_parallel_tool_use")).and_then(Node::bool) == Some(true) {
        dropped.add("tool_choice.disable_parallel_tool_use");
    }
    for (at, tool) in tools.iter().enumerate() {
        // Tools that would run at Anthropic have a type and no schema.
        if tool.get("input_schema").is_none() {
            return Err(unknown(&format!("tools[{at}]")));
        }
    }
    object.object("toolConfig", |config| {
        config.array("tools", |list| {
            for tool in tools {
                list.object(|out| out.object("toolSpec", |spec| specification(spec, tool)));
                cache_point(list, tool);
            }
        });
        config.object("toolChoice", |out| match kind {
            "any" => out.raw("any", "{}"),
            "tool" => out.object("tool", |tool| tool.text("name", choice.map_or("", |choice| choice.str_of("name")))),
            _ => out.raw("auto", "{}"),
        });
    });
    Ok(())
}

fn specification(spec: &mut Object<'_>, tool: &Node<'_>) {
    spec.text("name", tool.str_of("name"));
    spec.maybe("description", tool.text_of("description").map(|text| text.as_ref()));
    spec.object("inputSchema", |schema| schema.maybe_raw("json", tool.get("input_schema").map(|value| value.raw)));
}

fn mentions_tools(node: &Node<'_>) -> bool {
    let turns = node.get("messages").map(Node::items).unwrap_or_default();
    let blocks = turns.iter().flat_map(|turn| turn.get("content").map(Node::items).unwrap_or_default());
    blocks.into_iter().any(|block| matches!(block.str_of("type"), "tool_use" | "tool_result"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(body: &str) -> (String, String) {
        let (body, dropped) = converse(body.as_bytes()).unwrap();
        (String::from_utf8(body.to_vec()).unwrap(), dropped.to_string())
    }

    #[test]
    fn a_whole_conversation() {
        let body = r#"{"model":"m","max_tokens":9,"temperature":0.50,"top_k":3,"stop_sequences":["x"],"stream":true,
            "system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],
            "metadata":{"user_id":"u"},
            "tools":[{"name":"f","description":"d","input_schema":{"type":"object","z":1,"a":2}}],
            "tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},
            "messages":[{"role":"user","content":"hi"},
              {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c1","name":"f","input":{"z":1,"a":2}}]},
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}],"is_error":true},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}"#;
        let expected = concat!(
            r#"{"messages":[{"role":"user","content":[{"text":"hi"}]},"#,
            r#"{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},"#,
            r#"{"toolUse":{"toolUseId":"c1","name":"f","input":{"z":1,"a":2}}}]},"#,
            r#"{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"r"}],"status":"error"}},"#,
            r#"{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}],"#,
            r#""system":[{"text":"be kind"},{"cachePoint":{"type":"default"}}],"#,
            r#""inferenceConfig":{"maxTokens":9,"temperature":0.50,"stopSequences":["x"]},"#,
            r#""toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{"type":"object","z":1,"a":2}}}}],"#,
            r#""toolChoice":{"tool":{"name":"f"}}},"additionalModelRequestFields":{"top_k":3}}"#,
        );
        let (sent, dropped) = made(body);
        assert_eq!(sent, expected);
        assert_eq!(dropped, "tool_choice.disable_parallel_tool_use,metadata");
    }

    #[test]
    fn what_has_no_place_is_refused_by_its_own() {
        let link =
            r#"{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}"#;
        let search = r#"{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#;
        let odd = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"odd"}]}]}"#;
        for (body, field) in
            [(link, "messages[0].content[0].source"), (search, "tools[0]"), (odd, "messages[0].content[1]")]
        {
            assert_eq!(converse(body.as_bytes()).unwrap_err().param.as_deref(), Some(field));
        }
    }

    #[test]
    fn no_tools_are_sent_where_none_may_be_called() {
        let body = r#"{"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"none"}}"#;
        assert_eq!(
            made(body),
            (r#"{"messages":[{"role":"user","content":[{"text":"a"}]}]}"#.to_owned(), String::new())
        );
    }
}
