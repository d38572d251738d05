//! Contents and parts: one kind of data in each part, calls answered in the next content by as many
//! responses, and signatures on the parts they were made for.

use serde_json::Value;

use super::super::check::{Checked, Place};
use super::super::seal;
use crate::ask::words;
use crate::refusal::Refusal;
use crate::scenario::{Choice, Scenario as S};

const DATA: &str = "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall \
    toolResponse";
const BESIDE: &str = "thought thoughtSignature videoMetadata mediaResolution partMetadata";
/// What it can look at or listen to.
const MEDIA: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/gif",
    "audio/",
    "video/",
    "text/",
    "application/pdf",
    "application/json",
];
/// What Google documents for calls whose signature is not at hand.
const STAND_INS: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// What the contents come to.
#[derive(Default)]
pub(super) struct History {
    pub words: u64,
    pub last_user: String,
    pub calls: usize,
    pub ends_with_result: bool,
}

pub(super) fn read(contents: &Place<'_>) -> Checked<History> {
    let list = contents.list()?;
    let mut history = History::default();
    let mut open: Option<usize> = None;
    for (at, content) in list.iter().enumerate() {
        content.fields("role parts!")?;
        let role = content.field("role").map_or(Ok("user"), |role| role.text())?;
        if !matches!(role, "user" | "model" | "function") {
            return Err(Refusal::bad("contents", "Please use a valid role: user, model."));
        }
        if at == 0 && role == "model" {
            return Err(Refusal::bad("contents", "Please ensure that multiturn requests begin with a user turn."));
        }
        let parts = content.need("parts")?.list()?;
        if parts.is_empty() {
            return Err(content.wrong("contents.parts must not be empty."));
        }
        let mut text = String::new();
        for part in &parts {
            check_part(part, role)?;
            text += part.value["text"].as_str().unwrap_or_default();
            text += " ";
        }
        let count = |name: &str| parts.iter().filter(|part| part.field(name).is_some()).count();
        let (calls, results) = (count("functionCall"), count("functionResponse"));
        match (open.take(), results) {
            (Some(wanted), given) if wanted != given => {
                let text = "Please ensure that the number of function response parts is equal to the number of function \
                            call parts of the function call turn.";
                return Err(Refusal::bad("contents", text));
            }
            (None, 1..) => {
                let text = "Please ensure that function response turn comes immediately after a function call turn.";
                return Err(Refusal::bad("contents", text));
            }
            _ => {}
        }
        let follows_model = at > 0 && list[at - 1].value["role"] == "model";
        if calls > 0 && follows_model {
            let text = "Please ensure that function call turn comes immediately after a user turn or after a function \
                        response turn.";
            return Err(Refusal::bad("contents", text));
        }
        open = (calls > 0).then_some(calls);
        history.calls += calls;
        history.ends_with_result = results > 0;
        history.words += words(&text) + parts.iter().map(result_words).sum::<u64>();
        if role == "user" && results == 0 && !text.trim().is_empty() {
            history.last_user = text;
        }
    }
    if list.is_empty() {
        return Err(Refusal::bad("contents", "* GenerateContentRequest.contents: contents is not specified"));
    }
    if list.last().is_some_and(|last| last.value["role"] == "model") {
        let text = "Please ensure that multiturn requests end with a user role or a function response.";
        return Err(Refusal::bad("contents", text));
    }
    Ok(history)
}

fn result_words(part: &Place<'_>) -> u64 {
    let response = part.field("functionResponse").and_then(|result| result.field("response"));
    response.map_or(0, |response| match response.value.as_object().map(|map| map.values().collect::<Vec<_>>()) {
        Some(values) => values.iter().filter_map(|value| value.as_str()).map(words).sum(),
        None => 0,
    })
}

/// A system instruction: texts only.
pub(super) fn instruction(content: &Place<'_>) -> Checked<String> {
    content.fields("role parts!")?;
    let parts = match content.need("parts")? {
        one if one.value.is_object() => vec![one],
        list => list.list()?,
    };
    let mut texts = Vec::new();
    for part in parts {
        part.fields("text!")?;
        texts.push(part.need("text")?.text()?);
    }
    Ok(texts.join("\n"))
}

fn check_part(part: &Place<'_>, role: &str) -> Checked {
    part.fields(&format!("{DATA} {BESIDE}"))?;
    let data: Vec<_> = DATA.split_whitespace().filter_map(|name| Some((name, part.field(name)?))).collect();
    let [(kind, data)] = &data[..] else {
        return Err(part.wrong("required oneof field 'data' must have one initialized field"));
    };
    match *kind {
        "text" => data.text().map(drop)?,
        "inlineData" => {
            data.fields("mimeType! data! displayName")?;
            let mime = data.need("mimeType")?.text()?;
            if !MEDIA.iter().any(|known| mime.starts_with(known)) {
                return Err(Refusal::bad("mimeType", &format!("Unsupported MIME type: {mime}")));
            }
            check_bytes(&data.need("data")?)?;
        }
        "fileData" => {
            data.fields("fileUri! mimeType displayName")?;
            let uri = data.need("fileUri")?.text()?;
            let known = ["gs://", "https://generativelanguage.googleapis.com/", "https://www.youtube.com/"];
            if !known.iter().any(|start| uri.starts_with(start)) {
                return Err(Refusal::bad("fileUri", &format!("Unsupported file uri: {uri}")));
            }
        }
        "functionCall" => {
            data.fields("id name! args partialArgs willContinue")?;
            if role != "model" || data.field("args").is_some_and(|args| !args.value.is_object()) {
                return Err(data.wrong("a function call is a model's, and its args are an object"));
            }
        }
        "functionResponse" => {
            data.fields("id name! response! parts willContinue scheduling")?;
            if role == "model" || !data.need("response")?.value.is_object() {
                return Err(data.wrong("a function response is a user's, and its response is an object"));
            }
            no_references(&data.need("response")?)?;
        }
        _ => {}
    }
    part.field("thoughtSignature").map_or(Ok(()), |signature| check_signature(part, &signature))
}

/// `$ref` is taken for a reference wherever it stands.
fn no_references(place: &Place<'_>) -> Checked {
    if place.value.to_string().contains("\"$ref\":") {
        return Err(place.wrong("reference to undefined schema"));
    }
    Ok(())
}

fn check_bytes(data: &Place<'_>) -> Checked<Vec<u8>> {
    seal::bytes(data.text()?).ok_or_else(|| data.wrong("(TYPE_BYTES), Base64 decoding failed"))
}

fn check_signature(part: &Place<'_>, signature: &Place<'_>) -> Checked {
    let bytes = check_bytes(signature)?;
    let stand_in = |word: &str| signature.value == word || bytes == word.as_bytes();
    let own = seal::bytes(&made_for(part.value)) == Some(bytes.clone());
    if own || STAND_INS.iter().any(|word| stand_in(word)) {
        return Ok(());
    }
    Err(Refusal::bad("contents", "Thought signature is not valid."))
}

/// The signature of a part: bound to the call, or to text.
pub(super) fn made_for(part: &Value) -> String {
    let call = part.get("functionCall").or(part.get("function_call"));
    match call {
        Some(call) => {
            let args = call.get("args").filter(|args| args.is_object()).map_or("{}".to_string(), seal::canonical);
            seal::of("gemini call", &format!("{} {args}", call["name"]))
        }
        None => seal::of("gemini text", ""),
    }
}

/// Gemini 3, and every model that thinks before it calls: since the last thing a person said, the
/// first call of each step has its signature.
pub(in super::super) fn check_signatures(root: &Place<'_>, choice: &Choice, model: &str) -> Checked {
    if !(choice.is(S::ReasoningTools) || model.starts_with("gemini-3")) {
        return Ok(());
    }
    let contents = root.entries("contents")?;
    let person = |content: &Place<'_>| {
        let parts = content.entries("parts").unwrap_or_default();
        content.value["role"] != "model" && !parts.iter().any(|part| part.field("functionResponse").is_some())
    };
    let start = contents.iter().rposition(person).unwrap_or(0);
    for content in &contents[start..] {
        let parts = content.entries("parts")?;
        let first = parts.iter().find(|part| part.field("functionCall").is_some());
        if let Some(part) = first.filter(|part| part.field("thoughtSignature").is_none()) {
            let name = &part.value["functionCall"]["name"];
            let text = format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly. Function call `default_api:{}`.",
                name.as_str().unwrap_or_default()
            );
            return Err(Refusal::bad("contents", &text));
        }
    }
    Ok(())
}
