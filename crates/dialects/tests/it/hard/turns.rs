//! 3.1: turns, roles, system text.

use super::*;

fn chat(messages: Value) -> Value {
    json!({"model": "m", "messages": messages})
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

#[test]
fn case_1_consecutive_user_messages_are_one_turn() {
    let body = sent(C, A, chat(json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])));
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])
    );
}

#[test]
fn case_2_results_come_first_in_the_turn_after_the_calls() {
    let body = sent(
        C,
        A,
        chat(json!([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call("1"), call("2")]},
        {"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "tool", "tool_call_id": "2", "content": "y"},
        {"role": "user", "content": "z"}])),
    );
    let kinds: Vec<&Value> =
        body["messages"][2]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
}

#[test]
fn case_3_a_tool_message_follows_the_assistant() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "tool_result", "tool_use_id": "t", "content": "r"},
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}]}]});
    let body = sent(A, C, body);
    let roles: Vec<&Value> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(body["messages"][3]["content"].as_array().unwrap().len(), 2, "text and image in one message");
}

#[test]
fn case_4_text_around_a_call_is_joined() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            {"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}]});
    let message = &sent(A, C, body)["messages"][1];
    assert_eq!((&message["content"], message["tool_calls"].as_array().unwrap().len()), (&json!("ab"), 1));
}

#[test]
fn case_5_and_18_outputs_follow_their_calls_in_their_order() {
    let body = json!({"model": "m", "input": [{"role": "user", "content": "q"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "meanwhile"},
        {"type": "function_call_output", "call_id": "2", "output": "two"}, {"type": "function_call_output", "call_id": "1", "output": "one"}]});
    let body = sent(R, A, body);
    let ids: Vec<&Value> =
        body["messages"][2]["content"].as_array().unwrap().iter().map(|block| &block["tool_use_id"]).collect();
    assert_eq!(ids, [&json!("1"), &json!("2"), &Value::Null]);
}

#[test]
fn case_6_an_orphan_call_is_refused_by_its_id() {
    let body = chat(
        json!([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call("lonely")]}, {"role": "user", "content": "z"}]),
    );
    for to in [A, R, G] {
        let problem = try_sent(C, &Target::new(to, "up"), &body).unwrap_err();
        assert!(problem.message.contains("lonely"), "{}", problem.message);
    }
}

#[test]
fn case_7_one_result_per_call() {
    let body = sent(
        C,
        A,
        chat(json!([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call("1")]},
        {"role": "tool", "tool_call_id": "1", "content": "old"}, {"role": "tool", "tool_call_id": "1", "content": "new"}])),
    );
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["content"]), (1, &json!("new")));
}

#[test]
fn case_8_and_9_tools_of_the_history_and_no_empty_list() {
    let mut body = chat(
        json!([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call("1")]}, {"role": "tool", "tool_call_id": "1", "content": "r"}]),
    );
    body["tools"] = json!([]);
    body["tool_choice"] = json!("auto");
    assert_eq!(sent(C, A, body.clone())["tools"][0]["name"], "f");
    let plain = sent(C, G, body);
    assert!(plain.get("tools").is_none() && plain.get("toolConfig").is_none());
}

#[test]
fn case_10_gemini_begins_with_the_user() {
    let body = sent(C, G, chat(json!([{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "q"}])));
    assert_eq!(body["contents"][0]["role"], "user");
    assert_eq!(body["contents"].as_array().unwrap().len(), 3);
}

/// Anthropic wants the user first, too, and nobody may say nothing there.
#[test]
fn an_assistant_who_speaks_first_is_introduced_to_anthropic() {
    let body = sent(
        C,
        A,
        chat(
            json!([{"role": "system", "content": "s"}, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "q"}]),
        ),
    );
    let roles: Vec<&Value> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(!body["messages"][0]["content"].as_str().unwrap().trim().is_empty());
    let plain = sent(C, A, chat(json!([{"role": "user", "content": "q"}])));
    assert_eq!(plain["messages"].as_array().unwrap().len(), 1, "nothing is put before the user");
}

#[test]
fn case_19_a_role_on_a_call_is_nobodys() {
    let body = json!({"model": "m", "input": [{"role": "user", "content": "q"},
        {"type": "function_call", "role": "assistant", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "role": "tool", "call_id": "1", "output": "r"}]});
    for to in [C, A, G] {
        let (_, all) = try_sent(R, &Target::new(to, "up"), &body).unwrap();
        assert_eq!(all.dropped.to_string(), "role", "{to:?}");
    }
    let calls = &sent(R, C, body)["messages"][1];
    assert_eq!((calls["role"].as_str(), calls["tool_calls"][0].get("role")), (Some("assistant"), None));
}

#[test]
fn case_11_and_12_a_late_system_text_stays_where_it_is() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "system", "content": "brief"}]});
    let gemini = sent(A, G, body.clone());
    assert!(gemini.get("systemInstruction").is_none());
    assert!(gemini["contents"][2]["parts"][1]["text"].as_str().unwrap().contains("brief"));
    assert_eq!(sent(A, C, body)["messages"][3], json!({"role": "system", "content": "brief"}));
    // To Anthropic: a reminder that keeps its cache mark, or a turn of its own where the model
    // knows such and it follows the user's.
    let chat = chat(
        json!([{"role": "user", "content": "a"}, {"role": "system", "content": [{"type": "text", "text": "brief", "cache_control": {"type": "ephemeral"}}]}]),
    );
    let reminder = &sent(C, A, chat.clone())["messages"][0]["content"][1];
    assert!(reminder["text"].as_str().unwrap().contains("brief") && reminder["cache_control"]["type"] == "ephemeral");
    let mut native = Target::new(A, "up");
    native.system_turns = true;
    assert_eq!(try_sent(C, &native, &chat).unwrap().0["messages"][1]["role"], "system");
}

#[test]
fn case_13_and_14_no_empty_text() {
    let body = sent(
        C,
        A,
        chat(json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call("1")]},
        {"role": "tool", "tool_call_id": "1", "content": ""}])),
    );
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 1);
    assert_eq!(refused(C, A, chat(json!([{"role": "user", "content": ""}]))), "messages[0]");
}

#[test]
fn case_15_gemini_does_not_go_on_with_an_answer() {
    assert_eq!(
        refused(C, G, chat(json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "Once"}]))),
        "messages[1]"
    );
}

#[test]
fn case_16_developer_is_system_elsewhere() {
    let body = chat(json!([{"role": "developer", "content": "D"}, {"role": "user", "content": "q"}]));
    assert_eq!(sent(C, A, body.clone())["system"], "D");
    assert_eq!(sent(C, G, body.clone())["systemInstruction"]["parts"][0]["text"], "D");
    assert_eq!(sent(C, R, body)["input"][0]["role"], "developer");
}

#[test]
fn case_17_items_without_a_type() {
    let body = json!({"model": "m", "input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]});
    assert_eq!(sent(R, C, body)["messages"].as_array().unwrap().len(), 3);
    assert_eq!(refused(R, C, json!({"model": "m", "input": [{"id": "msg_1"}]})), "input[0]");
}

#[test]
fn case_20_phases_are_preserved_or_reported() {
    let body = json!({"model": "m", "input": [{"role": "user", "content": "a"},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "b"}]}, {"role": "user", "content": "c"}]});
    assert!(dropped(R, A, body.clone()).contains("phase"));
    assert_eq!(request(R, &body).upstream_body(&Target::new(R, "m")).unwrap().body, body.to_string());
}
