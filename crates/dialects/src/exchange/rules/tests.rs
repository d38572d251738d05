//! What is refused, in the words of each dialect, and what is left out.

use super::*;
use crate::hub::Target;

fn request(dialect: Dialect, body: &str) -> CheckedRequest {
    let path = crate::exchange::Path { model: "gemini-m", stream: false };
    let path = (dialect == Dialect::Gemini).then_some(path);
    CheckedRequest::read(dialect, Bytes::copy_from_slice(body.as_bytes()), path).unwrap()
}

fn refused(dialect: Dialect, body: &str, rules: &ModelRules<'_>) -> Option<String> {
    request(dialect, body).obeys(rules).err().and_then(|problem| problem.param)
}

/// Case 75, and rule 3 of the specification: refused in the words of each dialect.
#[test]
fn tools_may_need_an_effort() {
    let rules = ModelRules { tools_need_effort: Some("none"), ..ModelRules::default() };
    let hard = ModelRules { tools_need_effort: Some("high"), ..ModelRules::default() };
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
        let ask = |more: &str, rules: &ModelRules<'_>| request(dialect, &format!("{body}{more}}}")).obeys(rules).err();
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
    let rules = ModelRules { refused_tool_choice: &words, ..ModelRules::default() };
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
    let rules = ModelRules { named_roles: &roles, ..ModelRules::default() };
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
    let rules = ModelRules {
        tools_need_effort: Some("none"),
        refused_tool_choice: &words,
        no_prefill: true,
        ..ModelRules::default()
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
    assert_eq!(ask("", r#","tools":[{"type":"function","function":{}}]"#).as_deref(), Some("tools[0].function.name"));
    let claude = r#"{"model":"m","max_tokens":9,"messages":[{"role":"group","content":"a"}],"tools":[{"name":"f","input_schema":{}}],
        "thinking":{"type":"disabled"},"tool_choice":{"type":"any"}}"#;
    assert_eq!(refused(Dialect::Anthropic, claude, &rules).as_deref(), Some("tool_choice"));
}

/// Case 15: refused by the name of the last message, in every dialect.
#[test]
fn an_answer_that_was_begun_may_be_refused() {
    let rules = ModelRules { no_prefill: true, ..ModelRules::default() };
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
        assert_eq!(refused(dialect, &body, &ModelRules::default()), None, "{body}");
    }
}

#[test]
fn sampling_is_left_out_and_reported() {
    let body = r#"{"model":"m","temperature":0.20,"messages":[{"role":"user","content":"a"}],"top_p":null,"seed":7}"#;
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
