//! What a model refuses although its dialect has it: looked for in a request of any dialect before anything is sent.

use super::request::Request;
use crate::dialect::Dialect;
use crate::error::Code;
use crate::hub::{Ask, Dropped, Effort, Part, Role, ToolChoice};
use crate::json::{Kind, Node, Object};
use crate::problem::Problem;
use bytes::Bytes;
use std::borrow::Cow;

/// The refusals of one model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'r> {
    /// Tools are taken only with this effort of reasoning.
    pub tools_need_effort: Option<&'r str>,
    /// Values of the tool choice that are refused: `auto`, `none`, `any`, `named`.
    pub refused_tool_choice: &'r [String],
    /// Roles of messages that must come with a `name`.
    pub named_roles: &'r [String],
    /// An answer that the last message begins is not gone on with.
    pub no_prefill: bool,
}

impl Request {
    /// Refuses what the model does not take, by the name that the field has in the caller's dialect.
    pub fn obeys(&self, rules: &Rules<'_>) -> Result<(), Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        if self.dialect == Dialect::Chat {
            named(&node, rules.named_roles)?;
        }
        if let Ok(ask) = self.ask(&node) {
            tools(&ask, rules)?;
            choice(&ask, rules)?;
            return prefill(&ask, rules);
        }
        // A role of the model's own makes the conversation unreadable here, not what else the request says, nor who speaks last.
        let silent = with_turns(self.dialect, &node, |_| false);
        let ask = self.ask(&silent)?;
        tools(&ask, rules)?;
        choice(&ask, rules)?;
        let last = node.get(said_in(self.dialect)).map_or(0, |turns| turns.items().len()).saturating_sub(1);
        let end = with_turns(self.dialect, &node, |at| at == last);
        let Ok(mut ask) = self.ask(&end) else { return Ok(()) };
        if let Some(turn) = ask.turns.last_mut().filter(|turn| !turn.apart) {
            turn.at = format!("{}[{last}]", said_in(self.dialect));
        }
        prefill(&ask, rules)
    }

    /// The request without the parameters that steer the choice of words, for a model that refuses them, and what was
    /// left out. `None` when it has none of them.
    pub fn without_sampling(&self, strict: bool) -> Result<Option<(Request, Dropped)>, Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let mut dropped = Dropped::default();
        let mut out = Vec::with_capacity(text.len());
        let mut body = Object::begin(&mut out);
        for (name, value) in node.members() {
            let inner = self.dialect == Dialect::Gemini && matches!(&**name, "generationConfig" | "generation_config");
            if inner && value.is_map() {
                body.object(name, |config| {
                    for (name, value) in value.members() {
                        keep_or_drop(name, value, "generationConfig.", config, &mut dropped);
                    }
                });
            } else if self.dialect == Dialect::Gemini {
                body.raw(name, value.raw);
            } else {
                keep_or_drop(name, value, "", &mut body, &mut dropped);
            }
        }
        body.end();
        match dropped.fields().first() {
            None => Ok(None),
            Some(field) if strict => {
                Err(Problem::unsupported(field, format!("`{field}`: this model does not take it.")))
            }
            Some(_) => Ok(Some((self.again(Bytes::from(out))?, dropped))),
        }
    }
}

/// Where a dialect has its conversation.
const fn said_in(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

/// The request with those of its turns that `keep` names by their place.
fn with_turns<'a>(dialect: Dialect, body: &Node<'a>, keep: impl Fn(usize) -> bool) -> Node<'a> {
    let kept = |(name, value): &(Cow<'a, str>, Node<'a>)| {
        let value = match &value.kind {
            Kind::List(turns) if name == said_in(dialect) => {
                let turns = turns.iter().enumerate().filter(|(at, _)| keep(*at)).map(|(_, turn)| turn.clone());
                Node { raw: value.raw, kind: Kind::List(turns.collect()) }
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Node { raw: body.raw, kind: Kind::Map(body.members().iter().map(kept).collect()) }
}

const SAMPLING: &[&str] = &["temperature", "top_p", "top_k", "topP", "topK"];

fn keep_or_drop(name: &str, value: &Node<'_>, before: &str, object: &mut Object<'_>, dropped: &mut Dropped) {
    if !SAMPLING.contains(&name) {
        object.raw(name, value.raw);
    } else if !value.is_null() {
        dropped.add(&format!("{before}{name}"));
    }
}

/// Where a dialect's clients say how hard the model is to think, and how they say this effort.
fn effort_in(dialect: Dialect, effort: &str) -> (&'static str, String) {
    let off = effort == "none";
    match dialect {
        Dialect::Chat => ("reasoning_effort", format!("`reasoning_effort` set to `{effort}`")),
        Dialect::Responses => ("reasoning.effort", format!("`reasoning.effort` set to `{effort}`")),
        Dialect::Anthropic if off => ("thinking", "`thinking` set to `{\"type\":\"disabled\"}`".to_owned()),
        Dialect::Anthropic => ("output_config.effort", format!("`output_config.effort` set to `{effort}`")),
        Dialect::Gemini => {
            let field = "generationConfig.thinkingConfig";
            let value =
                if off { "thinkingBudget` set to `0".to_owned() } else { format!("thinkingLevel` set to `{effort}") };
            (field, format!("`{field}.{value}`"))
        }
    }
}

fn tools(ask: &Ask<'_>, rules: &Rules<'_>) -> Result<(), Problem> {
    let Some(needed) = rules.tools_need_effort else { return Ok(()) };
    let wanted = Effort::of(needed);
    if ask.tools.is_empty() || (wanted.is_some() && ask.reasoning.effort == wanted) {
        return Ok(());
    }
    let (field, said) = effort_in(ask.origin, needed);
    Err(Problem::unsupported(field, format!("This model takes tools only with {said}.")))
}

fn choice(ask: &Ask<'_>, rules: &Rules<'_>) -> Result<(), Problem> {
    let word = match &ask.choice {
        None | Some(ToolChoice::Foreign(_)) => return Ok(()),
        Some(ToolChoice::None) => "none",
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => "auto",
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => "any",
        Some(ToolChoice::Named(_)) => "named",
    };
    if !rules.refused_tool_choice.iter().any(|refused| refused == word) {
        return Ok(());
    }
    let field = if ask.origin == Dialect::Gemini { "toolConfig" } else { "tool_choice" };
    let what = match word {
        "any" => "that some tool must be called",
        "named" => "that a certain tool must be called",
        "none" => "that no tool may be called",
        _ => "that tools may be called",
    };
    Err(Problem::unsupported(field, format!("This model does not take a `{field}` that says {what}.")))
}

/// An answer that was begun ends with text. One that ends with what a tool of the provider's did is to be continued, which is
/// another thing.
fn prefill(ask: &Ask<'_>, rules: &Rules<'_>) -> Result<(), Problem> {
    let Some(last) = ask.turns.last().filter(|turn| rules.no_prefill && turn.role == Role::Assistant) else {
        return Ok(());
    };
    if !matches!(last.parts.last(), Some(Part::Text { .. } | Part::Refusal { .. })) {
        return Ok(());
    }
    let text =
        format!("`{}`: this model does not go on with an answer that was begun. Let the user speak last.", last.at);
    Err(Problem::unsupported(&last.at, text))
}

fn named(body: &Node<'_>, roles: &[String]) -> Result<(), Problem> {
    let messages = body.get("messages").map_or(&[][..], Node::items);
    for (at, message) in messages.iter().enumerate() {
        let role = message.str_of("role");
        if roles.iter().any(|named| named == role) && message.str_of("name").is_empty() {
            let field = format!("messages[{at}].name");
            let text = format!("`{field}` is required: this model wants a name on messages of the role `{role}`.");
            return Err(Problem::new(Code::MissingParameter, &field, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Target;

    fn request(dialect: Dialect, body: &str) -> Request {
        let path = crate::exchange::Path { model: "gemini-m", stream: false };
        let path = (dialect == Dialect::Gemini).then_some(path);
        Request::read(dialect, Bytes::copy_from_slice(body.as_bytes()), path).unwrap()
    }

    fn refused(dialect: Dialect, body: &str, rules: &Rules<'_>) -> Option<String> {
        request(dialect, body).obeys(rules).err().and_then(|problem| problem.param)
    }

    /// Case 75, and rule 3 of the specification: refused in the words of each dialect.
    #[test]
    fn tools_may_need_an_effort() {
        let rules = Rules { tools_need_effort: Some("none"), ..Rules::default() };
        let hard = Rules { tools_need_effort: Some("high"), ..Rules::default() };
        let chat = r#"{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}]"#;
        let claude = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":{}}]"#;
        let responses = r#"{"model":"m","input":"a","tools":[{"type":"function","name":"f"}]"#;
        let gemini = r#"{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]"#;
        for (dialect, body, off, high, field, said) in [
            (
                Dialect::Chat,
                chat,
                r#""reasoning_effort":"none""#,
                r#""reasoning_effort":"high""#,
                "reasoning_effort",
                "`reasoning_effort` set to `none`",
            ),
            (
                Dialect::Anthropic,
                claude,
                r#""thinking":{"type":"disabled"}"#,
                r#""output_config":{"effort":"high"}"#,
                "thinking",
                r#"`thinking` set to `{"type":"disabled"}`"#,
            ),
            (
                Dialect::Responses,
                responses,
                r#""reasoning":{"effort":"none"}"#,
                r#""reasoning":{"effort":"high"}"#,
                "reasoning.effort",
                "`reasoning.effort` set to `none`",
            ),
            (
                Dialect::Gemini,
                gemini,
                r#""generationConfig":{"thinkingConfig":{"thinkingBudget":0}}"#,
                r#""generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}"#,
                "generationConfig.thinkingConfig",
                "`generationConfig.thinkingConfig.thinkingBudget` set to `0`",
            ),
        ] {
            let ask = |more: &str, rules: &Rules<'_>| request(dialect, &format!("{body}{more}}}")).obeys(rules).err();
            let problem = ask("", &rules).expect("refused");
            assert_eq!(problem.param.as_deref(), Some(field), "{dialect:?}");
            assert!(problem.message.contains(said), "{}", problem.message);
            assert_eq!(ask(&format!(",{high}"), &rules).and_then(|one| one.param).as_deref(), Some(field));
            assert!(ask(&format!(",{off}"), &rules).is_none(), "{dialect:?}");
            assert!(ask(&format!(",{high}"), &hard).is_none() && ask("", &hard).is_some(), "{dialect:?}");
            let plain = format!("{}}}", body.split(",\"tools\"").next().unwrap());
            assert!(request(dialect, &plain).obeys(&rules).is_ok(), "{dialect:?} without tools");
        }
    }

    #[test]
    fn an_effort_the_model_does_not_know_becomes_the_nearest() {
        let sent = |dialect, body: &str, efforts: &[&str]| {
            let efforts = efforts.iter().map(|word| (*word).to_owned()).collect();
            let target = Target { efforts, ..Target::new(dialect, "m") };
            let sent = request(Dialect::Chat, body).upstream_body(&target).unwrap();
            (String::from_utf8(sent.body.to_vec()).unwrap(), sent.dropped.to_string())
        };
        let body = |effort: &str| {
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"}}],"reasoning_effort":"{effort}"}}"#)
        };
        let (asked, _) = sent(Dialect::Responses, &body("max"), &["low", "high"]);
        assert!(asked.contains(r#""effort":"high""#), "{asked}");
        let (asked, dropped) = sent(Dialect::Responses, &body("none"), &["low", "high"]);
        assert!(!asked.contains("effort") && dropped.is_empty(), "{asked}");
        let (asked, dropped) = sent(Dialect::Responses, &body("galactic"), &[]);
        assert!(!asked.contains("galactic") && dropped == "reasoning_effort", "{asked} {dropped}");
        let (asked, _) = sent(Dialect::Gemini, &body("none"), &["low", "high"]);
        assert!(asked.contains(r#""thinkingLevel":"LOW""#), "{asked}");
    }

    #[test]
    fn values_of_the_tool_choice_may_be_refused() {
        let words = ["any".to_owned(), "named".to_owned()];
        let rules = Rules { refused_tool_choice: &words, ..Rules::default() };
        let ask = |choice: &str| {
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"a"}}],
                    "tools":[{{"type":"function","function":{{"name":"f"}}}}],"tool_choice":{choice}}}"#
            );
            refused(Dialect::Chat, &body, &rules)
        };
        assert_eq!((ask("\"auto\""), ask("\"none\"")), (None, None));
        assert_eq!(ask("\"required\"").as_deref(), Some("tool_choice"));
        assert_eq!(ask(r#"{"type":"function","function":{"name":"f"}}"#).as_deref(), Some("tool_choice"));
        let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],
            "toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#;
        assert_eq!(refused(Dialect::Gemini, gemini, &rules).as_deref(), Some("toolConfig"));
    }

    #[test]
    fn extended_roles_may_need_a_name() {
        let roles = ["group".to_owned()];
        let rules = Rules { named_roles: &roles, ..Rules::default() };
        let ask = |message: &str| {
            let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"}},{message}]}}"#);
            refused(Dialect::Chat, &body, &rules)
        };
        assert_eq!(ask(r#"{"role":"user","content":"b"}"#), None);
        assert_eq!(ask(r#"{"role":"group","name":"g","content":"b"}"#), None);
        assert_eq!(ask(r#"{"role":"group","content":"b"}"#).as_deref(), Some("messages[1].name"));
    }

    /// A message of a role that we cannot read hides nothing else from the rules.
    #[test]
    fn what_cannot_be_read_does_not_switch_the_rules_off() {
        let words = ["any".to_owned()];
        let rules = Rules {
            tools_need_effort: Some("none"),
            refused_tool_choice: &words,
            no_prefill: true,
            ..Rules::default()
        };
        let tools = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
        let ask = |last: &str, more: &str| {
            let group = r#"{"role":"group","name":"g","content":"a"}"#;
            refused(Dialect::Chat, &format!(r#"{{"model":"m","messages":[{group}{last}]{more}}}"#), &rules)
        };
        assert_eq!(ask("", &format!(",{tools}")).as_deref(), Some("reasoning_effort"));
        let off = format!(r#",{tools},"reasoning_effort":"none""#);
        assert_eq!(ask("", &off), None);
        assert_eq!(ask("", &format!(r#"{off},"tool_choice":"required""#)).as_deref(), Some("tool_choice"));
        assert_eq!(ask(r#",{"role":"assistant","content":"{"}"#, "").as_deref(), Some("messages[1]"));
        assert_eq!(ask(r#",{"role":"user","content":"b"}"#, ""), None);
        // Tools that cannot be read cannot be judged either.
        assert_eq!(
            ask("", r#","tools":[{"type":"function","function":{}}]"#).as_deref(),
            Some("tools[0].function.name")
        );
        let claude = r#"{"model":"m","max_tokens":9,"messages":[{"role":"group","content":"a"}],"tools":[{"name":"f","input_schema":{}}],
            "thinking":{"type":"disabled"},"tool_choice":{"type":"any"}}"#;
        assert_eq!(refused(Dialect::Anthropic, claude, &rules).as_deref(), Some("tool_choice"));
    }

    /// Case 15: refused by the name of the last message, in every dialect.
    #[test]
    fn an_answer_that_was_begun_may_be_refused() {
        let rules = Rules { no_prefill: true, ..Rules::default() };
        let chat = |last: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"}},{last}]}}"#);
        let claude = |last: &str| {
            format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":{last}}}]}}"#
            )
        };
        let responses = |last: &str| format!(r#"{{"model":"m","input":[{{"role":"user","content":"a"}},{last}]}}"#);
        let gemini = |last: &str| {
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"a"}}]}},{{"role":"{last}","parts":[{{"text":"b"}}]}}]}}"#
            )
        };
        for (dialect, body, field) in [
            (Dialect::Chat, chat(r#"{"role":"assistant","content":"{"}"#), Some("messages[1]")),
            (Dialect::Chat, chat(r#"{"role":"user","content":"b"}"#), None),
            (Dialect::Anthropic, claude(r#""Sure:""#), Some("messages[1]")),
            (Dialect::Anthropic, claude(r#"[{"type":"text","text":"Sure:"}]"#), Some("messages[1]")),
            // A turn that was paused is sent back as it came.
            (
                Dialect::Anthropic,
                claude(
                    r#"[{"type":"text","text":"Let me look."},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]"#,
                ),
                None,
            ),
            (
                Dialect::Responses,
                responses(r#"{"role":"assistant","content":[{"type":"output_text","text":"b"}]}"#),
                Some("input[1]"),
            ),
            (Dialect::Responses, responses(r#"{"role":"user","content":"b"}"#), None),
            (Dialect::Gemini, gemini("model"), Some("contents[1]")),
            (Dialect::Gemini, gemini("user"), None),
        ] {
            assert_eq!(refused(dialect, &body, &rules).as_deref(), field, "{body}");
            assert_eq!(refused(dialect, &body, &Rules::default()), None, "{body}");
        }
    }

    #[test]
    fn sampling_is_left_out_and_told() {
        let body =
            r#"{"model":"m","temperature":0.20,"messages":[{"role":"user","content":"a"}],"top_p":null,"seed":7}"#;
        let (request, dropped) = request(Dialect::Chat, body).without_sampling(false).unwrap().unwrap();
        assert_eq!(dropped.to_string(), "temperature");
        assert_eq!(request.body(), r#"{"model":"m","messages":[{"role":"user","content":"a"}],"seed":7}"#);
        let body = r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"topK":3,"maxOutputTokens":5}}"#;
        let gemini = self::request(Dialect::Gemini, body);
        let (without, dropped) = gemini.without_sampling(false).unwrap().unwrap();
        assert_eq!(dropped.to_string(), "generationConfig.topK");
        assert_eq!((without.model.as_str(), without.max_output), ("gemini-m", Some(5)));
        assert_eq!(gemini.without_sampling(true).unwrap_err().param.as_deref(), Some("generationConfig.topK"));
        let plain = self::request(Dialect::Chat, r#"{"model":"m","messages":[{"role":"user"}]}"#);
        assert!(plain.without_sampling(true).unwrap().is_none());
    }
}
