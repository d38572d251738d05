//! Usage in the one form and in the other.

use serde_json::{Value, json};

use super::keys::get;

/// How a provider's reports are to be read. Its documents do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeminiUsage {
    /// The last report before the end of a response is the whole of it.
    #[default]
    EachResponse,
    /// A report counts from the beginning of the turn: what was billed for the calls of functions
    /// before is taken off.
    WholeTurn,
}

/// Counters of one report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    text: u64,
    audio: u64,
    image: u64,
    cached: [u64; 3],
    said_text: u64,
    said_audio: u64,
    /// The numbers could not be true together.
    broken: bool,
}

impl Report {
    pub(super) fn read(usage: &Value) -> Report {
        let count = |name: &str| get(usage, name).as_u64().unwrap_or(0);
        let by = |list: &str, kinds: &[&str]| -> u64 {
            let entries = get(usage, list).as_array().into_iter().flatten();
            let ours = entries.filter(|entry| kinds.iter().any(|kind| get(entry, "modality") == kind));
            ours.map(|entry| get(entry, "tokenCount").as_u64().unwrap_or(0)).fold(0, u64::saturating_add)
        };
        let pictures = ["IMAGE", "VIDEO"].as_slice();
        let asked = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
        let said = count("responseTokenCount").saturating_add(count("thoughtsTokenCount"));
        let audio = by("promptTokensDetails", &["AUDIO"]).saturating_add(by("toolUsePromptTokensDetails", &["AUDIO"]));
        let image = by("promptTokensDetails", pictures).saturating_add(by("toolUsePromptTokensDetails", pictures));
        let said_audio = by("responseTokensDetails", &["AUDIO"]);
        let text = asked.checked_sub(audio).and_then(|rest| rest.checked_sub(image));
        let said_text = said.checked_sub(said_audio);
        let cached = count("cachedContentTokenCount");
        let (cached_audio, cached_image) = (by("cacheTokensDetails", &["AUDIO"]), by("cacheTokensDetails", pictures));
        let cached_text = cached.checked_sub(cached_audio).and_then(|rest| rest.checked_sub(cached_image));
        let fits = cached_text.is_some_and(|cached| text.is_some_and(|text| cached <= text));
        Report {
            broken: text.is_none() || said_text.is_none() || !fits || cached_audio > audio || cached_image > image,
            text: text.unwrap_or(0),
            audio,
            image,
            cached: [cached_text.unwrap_or(0), cached_audio, cached_image],
            said_text: said_text.unwrap_or(0),
            said_audio,
        }
    }

    /// What came after another report of the same turn.
    pub(super) fn since(self, before: Report) -> Report {
        let mut rest = self;
        let fields = |report: &Report| {
            let [a, b, c] = report.cached;
            [report.text, report.audio, report.image, a, b, c, report.said_text, report.said_audio]
        };
        if fields(&self).iter().zip(fields(&before)).any(|(now, then)| *now < then) {
            // It began anew.
            return self;
        }
        rest.text -= before.text;
        rest.audio -= before.audio;
        rest.image -= before.image;
        rest.said_text -= before.said_text;
        rest.said_audio -= before.said_audio;
        for (left, then) in rest.cached.iter_mut().zip(before.cached) {
            *left -= then;
        }
        rest
    }

    /// As `response.done` has it; null where it cannot be true.
    pub(super) fn json(self) -> Value {
        if self.broken {
            return Value::Null;
        }
        let input = self.text.saturating_add(self.audio).saturating_add(self.image);
        let output = self.said_text.saturating_add(self.said_audio);
        let [text, audio, image] = self.cached;
        json!({
            "total_tokens": input.saturating_add(output), "input_tokens": input, "output_tokens": output,
            "input_token_details": {
                "text_tokens": self.text, "audio_tokens": self.audio, "image_tokens": self.image,
                "cached_tokens": text.saturating_add(audio).saturating_add(image),
                "cached_tokens_details": {"text_tokens": text, "audio_tokens": audio, "image_tokens": image},
            },
            "output_token_details": {"text_tokens": self.said_text, "audio_tokens": self.said_audio},
        })
    }
}

/// The usage of `response.done` as Gemini's clients read it.
pub(super) fn to_gemini(usage: &Value) -> Value {
    let list = |details: &Value| {
        let kinds = [("TEXT", "text_tokens"), ("AUDIO", "audio_tokens"), ("IMAGE", "image_tokens")];
        let counted = kinds.iter().filter_map(|(kind, name)| Some((kind, details[*name].as_u64().filter(|n| *n > 0)?)));
        Value::from_iter(counted.map(|(kind, count)| json!({"modality": kind, "tokenCount": count})))
    };
    let input = &usage["input_token_details"];
    json!({
        "promptTokenCount": usage["input_tokens"], "responseTokenCount": usage["output_tokens"],
        "totalTokenCount": usage["total_tokens"], "cachedContentTokenCount": input["cached_tokens"],
        "promptTokensDetails": list(input), "cacheTokensDetails": list(&input["cached_tokens_details"]),
        "responseTokensDetails": list(&usage["output_token_details"]),
    })
}
