//! Counters written in the shape a client reads.
//!
//! What a shape has no name for is counted inside the number that includes it, so the totals are
//! always right: pictures and sound are input and output for Anthropic, cache writes are prompt for
//! Gemini. Details that are zero are written only where strict clients insist on them.

use super::{Usage, UsageShape};
use crate::json::Object;

impl Usage {
    /// Writes the usage object of this shape.
    pub fn write(&self, shape: UsageShape, out: &mut Vec<u8>) {
        self.write_with(shape, out, |_| {});
    }

    /// The same with more behind it that is no count of tokens.
    pub fn write_with(&self, shape: UsageShape, out: &mut Vec<u8>, more: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::begin(out);
        match shape {
            UsageShape::Chat => self.chat(&mut object),
            UsageShape::Anthropic => self.anthropic(&mut object),
            UsageShape::Responses => self.responses(&mut object),
            UsageShape::Gemini => self.gemini(&mut object),
        }
        more(&mut object);
        object.end();
    }

    fn writes(&self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    fn chat(&self, object: &mut Object<'_>) {
        object.number("prompt_tokens", self.input_total());
        object.number("completion_tokens", self.output_total());
        object.number("total_tokens", self.input_total().saturating_add(self.output_total()));
        object.object("prompt_tokens_details", |details| self.input_details(details));
        object.object("completion_tokens_details", |details| {
            for (name, count) in [
                ("reasoning_tokens", self.reasoning),
                ("audio_tokens", self.audio_output),
                ("image_tokens", self.image_output),
            ] {
                if count > 0 {
                    details.number(name, count);
                }
            }
        });
    }

    fn responses(&self, object: &mut Object<'_>) {
        object.number("input_tokens", self.input_total());
        object.object("input_tokens_details", |details| self.input_details(details));
        object.number("output_tokens", self.output_total());
        object.object("output_tokens_details", |details| {
            details.number("reasoning_tokens", self.reasoning);
            for (name, count) in [("audio_tokens", self.audio_output), ("image_tokens", self.image_output)] {
                if count > 0 {
                    details.number(name, count);
                }
            }
        });
        object.number("total_tokens", self.input_total().saturating_add(self.output_total()));
    }

    fn input_details(&self, details: &mut Object<'_>) {
        details.number("cached_tokens", self.cache_read);
        details.number("cache_write_tokens", self.writes());
        if self.cache_write_1h > 0 {
            details.object("cache_write_tokens_details", |lives| {
                lives.number("ttl_30m_tokens", self.cache_write_5m);
                lives.number("ttl_12h_tokens", self.cache_write_1h);
            });
        }
        for (name, count) in [("audio_tokens", self.audio_input), ("image_tokens", self.image_input)] {
            if count > 0 {
                details.number(name, count);
            }
        }
    }

    fn anthropic(&self, object: &mut Object<'_>) {
        object.number("input_tokens", self.input.saturating_add(self.image_input).saturating_add(self.audio_input));
        object.number("cache_creation_input_tokens", self.writes());
        object.number("cache_read_input_tokens", self.cache_read);
        object.object("cache_creation", |lives| {
            lives.number("ephemeral_5m_input_tokens", self.cache_write_5m);
            lives.number("ephemeral_1h_input_tokens", self.cache_write_1h);
        });
        object.number("output_tokens", self.output_total());
        if self.reasoning > 0 {
            object.object("output_tokens_details", |details| details.number("thinking_tokens", self.reasoning));
        }
    }

    fn gemini(&self, object: &mut Object<'_>) {
        let media = self.image_input.saturating_add(self.audio_input);
        let text = self.input_total() - media.min(self.input_total());
        object.number("promptTokenCount", self.input_total());
        object.number("candidatesTokenCount", self.output_total() - self.reasoning.min(self.output_total()));
        if self.reasoning > 0 {
            object.number("thoughtsTokenCount", self.reasoning);
        }
        object.number("totalTokenCount", self.input_total().saturating_add(self.output_total()));
        if self.cache_read > 0 {
            object.number("cachedContentTokenCount", self.cache_read);
        }
        modes(object, "promptTokensDetails", text, self.audio_input, self.image_input);
        modes(object, "candidatesTokensDetails", self.output, self.audio_output, self.image_output);
        if media > 0 && self.cache_read > 0 {
            object.array("cacheTokensDetails", |list| mode(list, "TEXT", self.cache_read));
        }
    }
}

/// A list by kind, when there is more than text.
fn modes(object: &mut Object<'_>, name: &str, text: u64, audio: u64, image: u64) {
    if audio == 0 && image == 0 {
        return;
    }
    object.array(name, |list| {
        for (kind, count) in [("TEXT", text), ("AUDIO", audio), ("IMAGE", image)] {
            if count > 0 {
                mode(list, kind, count);
            }
        }
    });
}

fn mode(list: &mut crate::json::Array<'_>, kind: &str, count: u64) {
    list.object(|one| {
        one.text("modality", kind);
        one.number("tokenCount", count);
    });
}
