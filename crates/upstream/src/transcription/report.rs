//! How long a recording was, as providers report it.

use super::TranscriptionUsage;
use serde_json::{Value, json};

/// Longest report that is stored.
const MOST: usize = 2 << 10;

/// Where the reply of a provider has it.
pub(crate) struct LengthReport<'a> {
    pub usage: &'a Value,
    /// In seconds, where it stands beside the report.
    pub seconds: Option<f64>,
}

impl LengthReport<'_> {
    pub fn read(&self) -> TranscriptionUsage {
        let names = ["seconds", "prompt_audio_seconds", "duration"];
        let in_usage = || names.iter().find_map(|name| self.usage[*name].as_f64());
        let seconds = self.seconds.or_else(in_usage);
        let raw = match (self.usage.is_object(), self.seconds) {
            (true, None) => Some(self.usage.to_string()),
            (true, Some(seconds)) => Some(json!({ "usage": self.usage, "duration": seconds }).to_string()),
            (false, Some(seconds)) => Some(json!({ "duration": seconds }).to_string()),
            (false, None) => None,
        };
        TranscriptionUsage { millis: seconds.and_then(millis), raw_usage: raw.filter(|raw| raw.len() <= MOST) }
    }
}

/// A length that can be one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within ten days")]
fn millis(seconds: f64) -> Option<u64> {
    (0.0..864_000.0).contains(&seconds).then(|| (seconds * 1_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_a_report() {
        for (usage, seconds, millis) in [
            (json!({"type": "duration", "seconds": 12}), None, Some(12_000)),
            (json!({"prompt_audio_seconds": 7, "prompt_tokens": 3}), None, Some(7_000)),
            (json!({"type": "tokens", "input_tokens": 14}), None, None),
            (json!({"type": "tokens", "input_tokens": 14}), Some(2.5), Some(2_500)),
            (Value::Null, Some(12.345), Some(12_345)),
            (Value::Null, Some(f64::NAN), None),
            (json!({"seconds": -4}), None, None),
            (json!({"seconds": 1e300}), None, None),
            (Value::Null, None, None),
        ] {
            let read = LengthReport { usage: &usage, seconds }.read();
            assert_eq!(read.millis, millis, "{usage} {seconds:?}");
            assert_eq!(read.raw_usage.is_some(), usage.is_object() || seconds.is_some());
        }
        let long = json!({ "x": "y".repeat(3_000) });
        assert_eq!(LengthReport { usage: &long, seconds: None }.read().raw_usage, None);
    }
}
