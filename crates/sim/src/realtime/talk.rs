//! What was said so far, and what it counts: every response bills the whole conversation again.
//! A word is a text token, 100 ms of the user's audio and 50 ms of the model's are an audio token,
//! a picture is 85.

use serde_json::{Value, json};

use super::fields::{Wrong, check};
use super::scenario::Choice;

/// Tokens by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub text: u64,
    pub audio: u64,
    pub image: u64,
}

impl Tokens {
    pub(super) fn all(self) -> u64 {
        self.text + self.audio + self.image
    }

    pub(super) fn plus(self, other: Tokens) -> Tokens {
        Tokens { text: self.text + other.text, audio: self.audio + other.audio, image: self.image + other.image }
    }
}

pub(super) struct Entry {
    pub item: Value,
    pub tokens: Tokens,
}

/// The conversation, and how much of it the last response has seen.
#[derive(Default)]
pub(super) struct Talk {
    pub items: Vec<Entry>,
    seen: Tokens,
}

impl Talk {
    pub(super) fn last_id(&self) -> Value {
        self.items.last().map_or(Value::Null, |entry| entry.item["id"].clone())
    }

    pub(super) fn find(&self, id: &str) -> Result<usize, Wrong> {
        let found = self.items.iter().position(|entry| entry.item["id"] == id);
        found.ok_or_else(|| Wrong::field("item_not_found", "item_id", &format!("Item with item_id not found: {id}")))
    }

    /// The text of the last user message.
    pub(super) fn last_user(&self) -> String {
        let said = self.items.iter().rev().find(|entry| entry.item["role"] == "user");
        said.map(|entry| text_of(&entry.item)).unwrap_or_default()
    }

    /// What a response is billed for that reads all of it: the input, and how much of that is
    /// cached.
    pub(super) fn bill(&mut self, instructions: &str, tools: &Value, choice: &Choice) -> (Tokens, Tokens) {
        let tools = tools.as_array().map_or(0, |tools| tools.iter().map(|tool| words(&tool.to_string())).sum());
        let start = Tokens { text: words(instructions) + tools, ..Tokens::default() };
        let mut all = self.items.iter().fold(start, |sum, entry| sum.plus(entry.tokens));
        let mut cached = self.seen;
        let set = |key: &str, place: &mut u64| *place = choice.number(key).unwrap_or(*place);
        set("text_in", &mut all.text);
        set("audio_in", &mut all.audio);
        set("image_in", &mut all.image);
        cached = Tokens {
            text: cached.text.min(all.text),
            audio: cached.audio.min(all.audio),
            image: cached.image.min(all.image),
        };
        set("cached_text", &mut cached.text);
        set("cached_audio", &mut cached.audio);
        set("cached_image", &mut cached.image);
        self.seen = all;
        (all, cached)
    }
}

pub(super) fn words(text: &str) -> u64 {
    u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX)
}

pub(super) fn text_of(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = parts.filter_map(|part| part["text"].as_str().or(part["transcript"].as_str())).collect();
    texts.join(" ")
}

/// An item as a client may write it, with its tokens. `ms` says how long a piece of audio lasts.
pub(super) fn read_item(item: &Value, ms: impl Fn(&str) -> Option<u64>) -> Result<Tokens, Wrong> {
    let kind = item["type"].as_str().ok_or_else(|| Wrong::missing("item.type"))?;
    let base = "id object type status";
    let text = |value: &Value| words(value.as_str().unwrap_or_default());
    let tokens = match kind {
        "message" => {
            let role = item["role"].as_str().ok_or_else(|| Wrong::missing("item.role"))?;
            check(item, "item", &[("item", &format!("{base} role content"))])?;
            let parts = item["content"].as_array().ok_or_else(|| Wrong::missing("item.content"))?;
            let mut sum = Tokens::default();
            for (index, part) in parts.iter().enumerate() {
                sum = sum.plus(read_part(part, role, index, &ms)?);
            }
            sum
        }
        "function_call" => {
            check(item, "item", &[("item", &format!("{base} name call_id arguments"))])?;
            Tokens { text: 1 + text(&item["arguments"]), ..Tokens::default() }
        }
        "function_call_output" => {
            check(item, "item", &[("item", &format!("{base} call_id output"))])?;
            let named = item["call_id"].is_string() && item["output"].is_string();
            if !named {
                return Err(Wrong::missing("item.call_id"));
            }
            Tokens { text: text(&item["output"]), ..Tokens::default() }
        }
        _ => return Err(Wrong::value("item.type", &item["type"])),
    };
    Ok(tokens)
}

fn read_part(part: &Value, role: &str, index: usize, ms: impl Fn(&str) -> Option<u64>) -> Result<Tokens, Wrong> {
    let path = format!("item.content[{index}]");
    let kind = part["type"].as_str().ok_or_else(|| Wrong::missing(&format!("{path}.type")))?;
    let known = match role {
        "user" => ["input_text", "input_audio", "input_image"].as_slice(),
        "system" => ["input_text"].as_slice(),
        "assistant" => ["output_text", "output_audio"].as_slice(),
        _ => return Err(Wrong::value("item.role", &json!(role))),
    };
    if !known.contains(&kind) {
        return Err(Wrong::value(&format!("{path}.type"), &part["type"]));
    }
    let text = words(part["text"].as_str().or(part["transcript"].as_str()).unwrap_or_default());
    Ok(match kind {
        "input_audio" => {
            let audio = part["audio"].as_str().ok_or_else(|| Wrong::missing(&format!("{path}.audio")))?;
            let ms = ms(audio).ok_or_else(|| Wrong::value(&format!("{path}.audio"), &Value::Null))?;
            Tokens { audio: ms.div_ceil(100), ..Tokens::default() }
        }
        "input_image" => Tokens { image: 85, ..Tokens::default() },
        _ => Tokens { text, ..Tokens::default() },
    })
}
