//! What a client may say in `session.update` and `response.create`: its own model only, tools that
//! it runs itself, and an end to every response.

use crate::refusal::Refusal;
use serde_json::{Map, Value};
use tollgate_wire::error::Code;

/// The names of the session's model.
#[derive(Clone, Debug)]
pub struct ModelNames {
    pub public: String,
    pub upstream: String,
}

fn refused(param: &str, code: Code, text: String) -> Refusal {
    Refusal::about(code, param, text)
}

/// Checks what sessions and responses have in common, and puts the provider's name of the model in.
/// `place` is what the object is called.
pub fn check(object: &mut Map<String, Value>, place: &str, names: &ModelNames) -> Result<(), Refusal> {
    match object.get("model") {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) if *name == names.public => {
            object.insert("model".to_owned(), Value::from(names.upstream.as_str()));
        }
        Some(_) => {
            let text = format!("This session is with `{}`; open another one for another model.", names.public);
            return Err(refused(&format!("{place}.model"), Code::UnsupportedValue, text));
        }
    }
    if object.get("prompt").is_some_and(|prompt| !prompt.is_null()) {
        let text = "Prompts that are stored at a provider cannot be used here; send `instructions`.".to_owned();
        return Err(refused(&format!("{place}.prompt"), Code::UnsupportedValue, text));
    }
    if let Some(tools) = object.get("tools").filter(|tools| !tools.is_null()) {
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some((at, tool)) = tools.iter().enumerate().find(|(_, tool)| tool["type"] != "function") {
            let kind: String = tool["type"].as_str().unwrap_or("nothing").chars().take(32).collect();
            let text = format!("Tools of type `{kind}` would run at the provider; only `function` is taken here.");
            return Err(refused(&format!("{place}.tools[{at}].type"), Code::UnsupportedValue, text));
        }
    }
    Ok(())
}

/// Members that concern the operator's account at the provider and change nothing for the client.
const OPERATORS: &[(&str, &str)] = &[("tracing", "session.tracing belongs to the provider's account and was left out")];

/// Takes out what is not the client's to set, and says so.
pub fn leave_out(session: &mut Map<String, Value>) -> impl Iterator<Item = &'static str> {
    let mut given = |name: &str| session.remove(name).is_some_and(|value| !value.is_null());
    let left_out: Vec<_> = OPERATORS.iter().filter(|(name, _)| given(name)).map(|(_, text)| *text).collect();
    left_out.into_iter()
}

/// Checks a session that is fixed before it is opened, by whoever makes a client secret.
pub fn check_fixed(session: &Map<String, Value>, model: &str) -> Result<(), Refusal> {
    let (mut session, place) = (session.clone(), "session");
    check(&mut session, place, &ModelNames { public: model.to_owned(), upstream: model.to_owned() })?;
    limit(&mut session, place, u64::MAX).map(drop)
}

/// The limit of the output as the client asks for it; nothing where it does not say. `inf` becomes
/// `most`, which is written into the object.
pub fn limit(object: &mut Map<String, Value>, place: &str, most: u64) -> Result<Option<u64>, Refusal> {
    let limit = match object.get("max_output_tokens") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(word)) if word == "inf" => most,
        Some(value) => value.as_u64().filter(|limit| *limit > 0).ok_or_else(|| {
            let text = "`max_output_tokens` is a whole number above 0, or \"inf\".".to_owned();
            refused(&format!("{place}.max_output_tokens"), Code::InvalidParameter, text)
        })?,
    };
    let limit = limit.min(most);
    object.insert("max_output_tokens".to_owned(), Value::from(limit));
    Ok(Some(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names() -> ModelNames {
        ModelNames { public: "voice".to_owned(), upstream: "maker-voice-2026".to_owned() }
    }

    fn checked(session: Value) -> Result<Value, String> {
        let Value::Object(mut object) = session else { panic!("an object") };
        check(&mut object, "session", &names()).map_err(|refusal| refusal.param.unwrap_or_default())?;
        Ok(Value::Object(object))
    }

    #[test]
    fn the_model_is_the_session_s() {
        assert_eq!(checked(json!({ "model": "voice" })).expect("fine")["model"], "maker-voice-2026");
        assert!(checked(json!({ "instructions": "x" })).is_ok());
        for other in [json!("maker-voice-2026"), json!("dearer"), json!(1)] {
            assert_eq!(checked(json!({ "model": other })).expect_err("locked"), "session.model");
        }
    }

    #[test]
    fn what_would_run_at_the_provider_is_refused_by_name() {
        let function = json!({ "type": "function", "name": "f" });
        assert!(checked(json!({ "tools": [function] })).is_ok());
        assert_eq!(
            checked(json!({ "tools": [function, { "type": "mcp", "server_url": "https://x" }] })).expect_err("mcp"),
            "session.tools[1].type"
        );
        assert_eq!(checked(json!({ "prompt": { "id": "pmpt_1" } })).expect_err("hosted"), "session.prompt");
        assert!(checked(json!({ "prompt": null, "tools": null })).is_ok());
    }

    #[test]
    fn traces_in_the_operators_account_are_left_out_and_said_so() {
        let Value::Object(mut session) = json!({ "tracing": "auto", "instructions": "x" }) else { panic!("an object") };
        assert_eq!(leave_out(&mut session).count(), 1);
        assert_eq!(Value::Object(session), json!({ "instructions": "x" }));
        let Value::Object(mut session) = json!({ "tracing": null }) else { panic!("an object") };
        assert_eq!(leave_out(&mut session).count(), 0);
    }

    #[test]
    fn every_response_has_an_end() {
        let of = |value: Value| {
            let Value::Object(mut object) = value else { panic!("an object") };
            let limit = limit(&mut object, "response", 4_096);
            (limit.ok(), object.get("max_output_tokens").cloned())
        };
        assert_eq!(of(json!({})), (Some(None), None));
        assert_eq!(of(json!({ "max_output_tokens": "inf" })), (Some(Some(4_096)), Some(json!(4_096))));
        assert_eq!(of(json!({ "max_output_tokens": 10 })), (Some(Some(10)), Some(json!(10))));
        assert_eq!(of(json!({ "max_output_tokens": 99_999 })), (Some(Some(4_096)), Some(json!(4_096))));
        for bad in [json!(0), json!(-1), json!("much"), json!(1.5)] {
            assert_eq!(of(json!({ "max_output_tokens": bad })).0, None);
        }
    }
}
