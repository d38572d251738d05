//! How long the video shall be: the first place that says so, within the model's range.

use super::Refusal;
use super::plan::Case;
use std::ops::RangeInclusive;

impl Case<'_> {
    /// The first of `candidates` (field name and value) that was sent; otherwise the default. The catalog may sell less than the
    /// provider can.
    pub fn length(
        &self,
        candidates: &[(&str, Option<i64>)],
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Result<u32, Refusal> {
        let sent = candidates.iter().find_map(|(name, value)| value.map(|value| (*name, value)));
        let (param, value) = sent.unwrap_or(("duration", default));
        let most = self.offer.max_seconds.map_or(*range.end(), |most| i64::from(most).min(*range.end()));
        if !(*range.start()..=most).contains(&value) {
            let message = format!("`{param}` is {value}; this model makes {} to {most} seconds.", range.start());
            return Err(Refusal::invalid(param, message));
        }
        u32::try_from(value).map_err(|_| Refusal::invalid(param, format!("`{param}` is out of range.")))
    }

    /// `duration`, else `seconds`: where most families look at the top level.
    pub fn top_length(&self) -> [(&'static str, Option<i64>); 2] {
        [("duration", self.ask.duration), ("seconds", self.ask.seconds)]
    }
}
