//! The usage of a response as disjoint counters.

use serde_json::Value;
use tollgate_wire::usage::Usage;

/// The `usage` of `response.done` (or of a transcript) in tokens. Nothing where its numbers cannot
/// be true together: a part above its whole, or a sum that is not the total.
pub fn live_usage(usage: &Value) -> Option<Usage> {
    let number = |value: &Value| value.as_u64();
    let of = |details: &Value, name: &str| number(&details[name]).unwrap_or(0);
    // Some clones write the plural.
    let details = |one: &str, many: &str| if usage[one].is_object() { usage[one].clone() } else { usage[many].clone() };
    let input = number(&usage["input_tokens"])?;
    let output = number(&usage["output_tokens"])?;
    if number(&usage["total_tokens"]).is_some_and(|total| Some(total) != input.checked_add(output)) {
        return None;
    }
    let incoming = details("input_token_details", "input_tokens_details");
    let (audio, image) = (of(&incoming, "audio_tokens"), of(&incoming, "image_tokens"));
    let text = match number(&incoming["text_tokens"]) {
        Some(text) => text,
        None => input.checked_sub(audio)?.checked_sub(image)?,
    };
    if text.checked_add(audio)?.checked_add(image)? != input {
        return None;
    }
    let cached = of(&incoming, "cached_tokens");
    let by_face = &incoming["cached_tokens_details"];
    let (cached_text, cached_audio, cached_image) = if by_face.is_object() {
        let faces = (of(by_face, "text_tokens"), of(by_face, "audio_tokens"), of(by_face, "image_tokens"));
        if faces.0.checked_add(faces.1)?.checked_add(faces.2)? != cached {
            return None;
        }
        faces
    } else {
        let text_part = cached.min(text);
        let audio_part = (cached - text_part).min(audio);
        (text_part, audio_part, cached - text_part - audio_part)
    };
    let outgoing = details("output_token_details", "output_tokens_details");
    let audio_output = of(&outgoing, "audio_tokens");
    let text_output = match number(&outgoing["text_tokens"]) {
        Some(text) => text,
        None => output.checked_sub(audio_output)?,
    };
    if text_output.checked_add(audio_output)? != output {
        return None;
    }
    Some(Usage {
        input: text.checked_sub(cached_text)?,
        audio_input: audio.checked_sub(cached_audio)?,
        image_input: image.checked_sub(cached_image)?,
        cache_read: cached,
        output: text_output,
        audio_output,
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_disjoint_and_add_up() {
        let usage = json!({ "total_tokens": 350, "input_tokens": 250, "output_tokens": 100,
            "input_token_details": { "text_tokens": 100, "audio_tokens": 140, "image_tokens": 10, "cached_tokens": 64,
                "cached_tokens_details": { "text_tokens": 60, "audio_tokens": 4, "image_tokens": 0 } },
            "output_token_details": { "text_tokens": 20, "audio_tokens": 80 } });
        let read = live_usage(&usage).expect("usage");
        let parts = (read.input, read.audio_input, read.image_input, read.cache_read, read.output, read.audio_output);
        assert_eq!(parts, (40, 136, 10, 64, 20, 80));
        assert_eq!((read.input_total(), read.output_total()), (250, 100));
    }

    #[test]
    fn details_may_be_missing_or_plural() {
        let bare = live_usage(&json!({ "input_tokens": 5, "output_tokens": 2 })).expect("usage");
        assert_eq!((bare.input, bare.output), (5, 2));
        let plural = json!({ "input_tokens": 5, "output_tokens": 2, "input_tokens_details": { "audio_tokens": 4, "cached_tokens": 2 },
            "output_tokens_details": { "audio_tokens": 2 } });
        let read = live_usage(&plural).expect("usage");
        assert_eq!((read.input, read.audio_input, read.cache_read, read.output, read.audio_output), (0, 3, 2, 0, 2));
    }

    #[test]
    fn what_cannot_be_true_is_no_usage() {
        for usage in [
            json!(null),
            json!({ "input_tokens": 5 }),
            json!({ "input_tokens": -5, "output_tokens": 1 }),
            json!({ "input_tokens": 5, "output_tokens": 1, "total_tokens": 7 }),
            json!({ "input_tokens": 5, "output_tokens": 1, "input_token_details": { "audio_tokens": 6 } }),
            json!({ "input_tokens": 5, "output_tokens": 1, "input_token_details": { "text_tokens": 1, "audio_tokens": 1 } }),
            json!({ "input_tokens": 5, "output_tokens": 1, "input_token_details": { "cached_tokens": 6 } }),
            json!({ "input_tokens": 5, "output_tokens": 1, "output_token_details": { "audio_tokens": 2 } }),
        ] {
            assert_eq!(live_usage(&usage), None, "{usage}");
        }
    }
}
