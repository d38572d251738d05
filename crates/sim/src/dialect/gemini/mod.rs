//! Gemini's `generateContent`: the request as a whole. Contents, tools and schemas have a file
//! each.

mod contents;
mod say;
mod schema;
mod tools;

use serde_json::Value;

use super::Asked;
use super::check::{Checked, Place};
use crate::ask::{Ask, stops, words};
use crate::made::Made;
use crate::refusal::Refusal;

pub(super) use contents::check_signatures;
pub(super) use say::{beats, object};

const FIELDS: &str = "contents! systemInstruction tools toolConfig safetySettings cachedContent labels serviceTier store \
    generationConfig model";
const CONFIG: &str = "temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema \
    responseJsonSchema responseModalities responseLogprobs logprobs presencePenalty frequencyPenalty seed \
    thinkingConfig mediaResolution speechConfig imageConfig enableEnhancedCivicAnswers continuationToken";
const HARMS: &str = "HARM_CATEGORY_HARASSMENT HARM_CATEGORY_HATE_SPEECH HARM_CATEGORY_SEXUALLY_EXPLICIT \
    HARM_CATEGORY_DANGEROUS_CONTENT HARM_CATEGORY_CIVIC_INTEGRITY";
const BARS: &str = "BLOCK_NONE BLOCK_ONLY_HIGH BLOCK_MEDIUM_AND_ABOVE BLOCK_LOW_AND_ABOVE OFF";

pub(super) fn read(root: &Place<'_>, asked: &Asked) -> Checked<Ask> {
    if asked.count && root.field("generateContentRequest").is_some() {
        root.fields("generateContentRequest contents")?;
        return read(&root.need("generateContentRequest")?, asked);
    }
    root.fields(FIELDS)?;
    let offered = tools::read(root)?;
    let history = contents::read(&root.need("contents")?)?;
    let system = root.field("systemInstruction");
    let system = system.map_or(Ok(String::new()), |system| contents::instruction(&system))?;
    for setting in root.entries("safetySettings")? {
        setting.fields("category! threshold! method")?;
        setting.need("category")?.one_of(HARMS)?;
        setting.need("threshold")?.one_of(BARS)?;
    }
    let mut ask = Ask {
        model: asked.model.clone(),
        stream: asked.stream,
        choices: 1,
        prompt_words: history.words + words(&system),
        last_user: history.last_user,
        tools: offered,
        wants_text: history.ends_with_result || tools::is_off(root),
        forced: tools::forced(root),
        earlier_calls: history.calls,
        ..Ask::default()
    };
    if let Some(config) = root.field("generationConfig") {
        configure(&config, &mut ask)?;
    }
    Ok(ask)
}

/// A model that thinks by a budget takes one within its range, -1 for as much as it likes, and no
/// level.
pub(super) fn check_budget(root: &Place<'_>, model: &str) -> Checked {
    let Some(range) = model.strip_prefix("sim-budget-") else { return Ok(()) };
    let mut words = range.split('-');
    let mut bound = || words.next().and_then(|word| word.parse::<i64>().ok()).ok_or(Refusal::unknown_model(model));
    let (least, most) = (bound()?, bound()?);
    let off = words.next() == Some("off");
    let thinking = root.field("generationConfig").and_then(|config| config.field("thinkingConfig"));
    let Some(thinking) = thinking else { return Ok(()) };
    if thinking.field("thinkingLevel").is_some() {
        return Err(Refusal::bad("thinkingLevel", "Thinking level is not supported for this model."));
    }
    let budget = thinking.field("thinkingBudget").and_then(|budget| budget.value.as_i64());
    match budget.filter(|budget| *budget != -1 && !(least..=most).contains(budget) && !(off && *budget == 0)) {
        Some(0) => Err(Refusal::bad("thinkingBudget", "Budget 0 is invalid. This model only works in thinking mode.")),
        Some(budget) => {
            let text =
                format!("The thinking budget {budget} is invalid. Please choose a value between {least} and {most}.");
            Err(Refusal::bad("thinkingBudget", &text))
        }
        None => Ok(()),
    }
}

fn configure(config: &Place<'_>, ask: &mut Ask) -> Checked {
    config.fields(CONFIG)?;
    ask.made = Made::of_gemini(config.value["responseModalities"].as_array());
    config.number("temperature", 0.0, 2.0)?;
    config.number("topP", 0.0, 1.0)?;
    config.number("presencePenalty", -2.0, 2.0)?;
    config.number("frequencyPenalty", -2.0, 2.0)?;
    config.whole("logprobs", 0, 20)?;
    let limit = config.whole("maxOutputTokens", 1, 1_000_000)?;
    ask.limit = limit.and_then(|limit| u64::try_from(limit).ok());
    ask.choices = config.whole("candidateCount", 1, 8)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(1);
    let stop = config.field("stopSequences");
    ask.stop = stops(stop.as_ref().map(|stop| stop.value));
    if ask.stop.len() > 5 {
        return Err(Refusal::bad("stopSequences", "The maximum number of stop sequences is 5."));
    }
    if let Some(thinking) = config.field("thinkingConfig") {
        thinking.fields("includeThoughts thinkingBudget thinkingLevel")?;
        thinking.whole("thinkingBudget", -1, 65_536)?;
        if let Some(level) = thinking.field("thinkingLevel") {
            let word = Value::from(level.text()?.to_uppercase());
            Place { value: &word, ..level.clone() }.one_of("MINIMAL LOW MEDIUM HIGH THINKING_LEVEL_UNSPECIFIED")?;
            if thinking.field("thinkingBudget").is_some() {
                return Err(Refusal::bad(
                    "thinkingConfig",
                    "You can only set one of thinking budget and thinking level.",
                ));
            }
        }
        ask.shows_thoughts = thinking.flag("includeThoughts")?;
    }
    let (own, json) = (config.field("responseSchema"), config.field("responseJsonSchema"));
    if own.is_some() && json.is_some() {
        return Err(Refusal::bad("responseSchema", "Only one of response_schema and response_json_schema can be set."));
    }
    if let Some(own) = &own {
        schema::check(own)?;
    }
    ask.schema = own.or(json).map(|schema| schema.value.clone());
    let mime = config.field("responseMimeType").map_or(Ok("text/plain"), |mime| mime.text())?;
    if ask.schema.is_some() && mime != "application/json" {
        let text = "Function calling config is set or response schema requires response_mime_type: 'application/json'.";
        return Err(Refusal::bad("responseMimeType", text));
    }
    Ok(())
}
