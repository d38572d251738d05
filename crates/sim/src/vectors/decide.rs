//! Decisions: yes is 0.75, and so is the first option of a choice and the first level of a score. A
//! question with `[[refuse]]` in it is not answered. Read as strictly as each maker reads.

use serde_json::{Value, json};

use super::read::{Fields, known};
use super::{Asked, Form};
use crate::ask::words;
use crate::refusal::Refusal;

/// Tokens that the model adds by itself, in all and for each question.
const AROUND: u64 = 260;
const AROUND_EACH: u64 = 8;

pub(super) fn read(form: Form, model: &str, body: &Value) -> Result<Asked, Refusal> {
    let fields = body.as_object().cloned().unwrap_or_default();
    if model.is_empty() {
        return Err(Refusal::missing("model"));
    }
    let (said, questions, answers) = match form {
        Form::SystemOne => system_one(&fields)?,
        _ => decisions(&fields)?,
    };
    let input = AROUND + AROUND_EACH * questions + words(&said) + words(&body["questions"].to_string());
    let output = questions;
    let usage = match form {
        Form::SystemOne => json!({"input_tokens": input, "output_tokens": output}),
        _ => json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + output,
        }),
    };
    let reply = json!({"model": model, "answers": answers, "usage": usage});
    Ok(Asked { model: model.to_string(), last: said, tokens: input, reply })
}

fn refused(question: &Value) -> bool {
    question.to_string().contains("[[refuse]]")
}

/// The first is likeliest.
fn chance(at: usize, of: usize) -> f64 {
    match (at, of) {
        (_, 1) => 1.0,
        (0, _) => 0.75,
        (_, of) => 0.25 / f64::from(u32::try_from(of - 1).unwrap_or(1)),
    }
}

fn system_one(fields: &Fields) -> Result<(String, u64, Value), Refusal> {
    known(fields, "model state questions assets")?;
    let state = fields.get("state").filter(|state| !state.is_null()).ok_or_else(|| Refusal::missing("state"))?;
    let said = state.as_str().map_or_else(|| state.to_string(), str::to_string);
    if let Some(assets) = fields.get("assets") {
        let right = |asset: &Value| {
            let format = asset["format"].as_str().unwrap_or_default();
            asset["type"] == "image" && ["png", "jpg", "jpeg"].contains(&format) && asset["data_base64"].is_string()
        };
        let all = assets.as_object().filter(|all| !all.is_empty() && all.values().all(right));
        all.ok_or_else(|| Refusal::bad("assets", "assets: each is an image with its data"))?;
    }
    let questions = fields.get("questions").and_then(Value::as_object).filter(|all| !all.is_empty());
    let questions = questions.ok_or_else(|| Refusal::bad("questions", "questions: expected a nonempty object"))?;
    let mut answers = serde_json::Map::new();
    for (name, question) in questions {
        if refused(question) {
            continue;
        }
        let criteria = &question["criteria"];
        let answer = match question["type"].as_str() {
            Some("noul") => json!({"type": "noul", "noul": 0.75}),
            Some("choice") => {
                let labels: Vec<&String> = criteria.as_object().into_iter().flatten().map(|(label, _)| label).collect();
                let first = labels.first().ok_or_else(|| Refusal::bad("criteria", "criteria: at least one label"))?;
                let chances: serde_json::Map<_, _> = labels
                    .iter()
                    .enumerate()
                    .map(|(at, label)| ((*label).clone(), json!(chance(at, labels.len()))))
                    .collect();
                json!({"type": "choice", "choice": first, "confidence": 0.5, "probabilities": chances})
            }
            Some("score") => {
                let levels = criteria.as_array().filter(|levels| !levels.is_empty());
                let levels = levels.ok_or_else(|| Refusal::bad("criteria", "criteria: at least one level"))?;
                let legend: serde_json::Map<_, _> =
                    levels.iter().enumerate().map(|(at, level)| (at.to_string(), level.clone())).collect();
                let chances: serde_json::Map<_, _> =
                    (0..levels.len()).map(|at| (at.to_string(), json!(chance(at, levels.len())))).collect();
                json!({"type": "score", "score": 0.25, "confidence": 0.5, "legend": legend, "probabilities": chances})
            }
            Some("box") if fields.contains_key("assets") => {
                let edges = json!({"top": 0.1, "bottom": 0.9, "left": 0.2, "right": 0.8});
                json!({"type": "box", "box": edges, "confidence": null})
            }
            _ => return Err(Refusal::bad("type", "type: not a question that can be answered")),
        };
        answers.insert(name.clone(), answer);
    }
    Ok((said, questions.len() as u64, Value::Object(answers)))
}

fn decisions(fields: &Fields) -> Result<(String, u64, Value), Refusal> {
    known(fields, "model input questions prompt_cache_key prompt_cache_options safety_identifier")?;
    let input = fields.get("input").filter(|input| input.is_string() || input.is_array());
    let input = input.ok_or_else(|| Refusal::missing("input"))?;
    let said = input.as_str().map_or_else(|| input.to_string(), str::to_string);
    let questions = fields.get("questions").and_then(Value::as_array).filter(|all| (1..=400).contains(&all.len()));
    let questions = questions.ok_or_else(|| Refusal::bad("questions", "questions: expected 1 to 400"))?;
    let answer = |question: &Value| {
        let name = &question["name"];
        if question["instructions"].as_str().is_none_or(str::is_empty) && !question["instructions"].is_array() {
            return Err(Refusal::missing("instructions"));
        }
        if refused(question) {
            return Ok(json!({"type": "refusal", "name": name}));
        }
        match question["type"].as_str() {
            Some("predicate") => {
                known(question.as_object().unwrap_or(&Fields::new()), "type name instructions")?;
                Ok(json!({"type": "predicate", "name": name, "probability": 0.75}))
            }
            Some("choice") => {
                let choices = question["choices"].as_array().filter(|all| (2..=255).contains(&all.len()));
                let choices = choices.ok_or_else(|| Refusal::bad("choices", "choices: expected 2 to 255"))?;
                let chances: Vec<Value> = choices
                    .iter()
                    .enumerate()
                    .map(|(at, one)| json!({"value": one["value"], "probability": chance(at, choices.len())}))
                    .collect();
                let first = &choices[0]["value"];
                Ok(
                    json!({"type": "choice", "name": name, "choice": first, "confidence": 0.5, "probabilities": chances}),
                )
            }
            Some("score") => {
                let levels = question["levels"].as_array().filter(|all| all.len() >= 2);
                let levels = levels.ok_or_else(|| Refusal::bad("levels", "levels: expected at least 2"))?;
                let chances: Vec<Value> = levels
                    .iter()
                    .enumerate()
                    .map(|(at, one)| json!({"label": one["label"], "value": at, "probability": chance(at, levels.len())}))
                    .collect();
                Ok(json!({"type": "score", "name": name, "score": 0.25, "confidence": 0.5, "probabilities": chances}))
            }
            _ => Err(Refusal::bad("type", "type: expected predicate, choice or score")),
        }
    };
    let answers: Vec<Value> = questions.iter().map(answer).collect::<Result<_, _>>()?;
    Ok((said, questions.len() as u64, Value::Array(answers)))
}
