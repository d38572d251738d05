//! How long the video shall be: the first place that says so, within what the model makes and the
//! catalog sells. Who says nothing gets the model's default, or the longest on sale below it.

use super::VideoRefusal;
use super::plan::Case;
use std::ops::RangeInclusive;

/// The first of these fields that was sent, and what it says.
pub(crate) fn said<'a>(candidates: &[(&'a str, Option<i64>)]) -> Option<(&'a str, i64)> {
    candidates.iter().find_map(|(name, value)| value.map(|value| (*name, value)))
}

impl Case<'_> {
    /// The longest on sale: the catalog may sell less than the provider can make.
    pub fn longest(&self, makes: i64) -> i64 {
        self.offer.max_seconds.map_or(makes, |most| i64::from(most).min(makes))
    }

    /// The shortest that the variant makes.
    pub fn shortest(&self) -> i64 {
        i64::from(self.offer.variant.shortest())
    }

    /// Tells of every other length that was sent and does not count.
    pub fn overruled(&mut self, candidates: &[(&str, Option<i64>)]) {
        let Some((winner, value)) = said(candidates) else { return };
        for (field, _) in candidates.iter().filter(|(_, other)| other.is_some_and(|other| other != value)) {
            self.warn(field, format!("`{winner}` was sent and counts instead."));
        }
    }

    /// Any length of a range; what else was said of it is reported.
    pub fn length(
        &mut self,
        candidates: &[(&str, Option<i64>)],
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Result<u32, VideoRefusal> {
        self.overruled(candidates);
        self.within(candidates, range, default)
    }

    /// Any length of a range.
    pub fn within(
        &self,
        candidates: &[(&str, Option<i64>)],
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Result<u32, VideoRefusal> {
        let most = self.longest(*range.end());
        let (param, value) = said(candidates).unwrap_or(("duration", default.min(most)));
        if !(*range.start()..=most).contains(&value) {
            let message = format!("`{param}` is {value}; this model makes {} to {most} seconds.", range.start());
            return Err(VideoRefusal::invalid(param, message));
        }
        whole(param, value)
    }

    /// One of a few lengths, shortest first; what else was said of it is reported.
    pub fn one_length(
        &mut self,
        candidates: &[(&str, Option<i64>)],
        makes: &[i64],
        default: i64,
    ) -> Result<u32, VideoRefusal> {
        self.overruled(candidates);
        let sold: Vec<i64> = makes.iter().copied().filter(|one| *one <= self.longest(i64::MAX)).collect();
        let unasked = sold.iter().rfind(|one| **one <= default).copied().unwrap_or(default);
        let (param, value) = said(candidates).unwrap_or(("duration", unasked));
        if !sold.contains(&value) {
            let message = format!("`{param}` is {value}; this model makes {} seconds.", listed(&sold));
            return Err(VideoRefusal::invalid(param, message));
        }
        whole(param, value)
    }

    /// `duration`, else `seconds`: where most families look at the top level.
    pub fn top_length(&self) -> [(&'static str, Option<i64>); 2] {
        [("duration", self.ask.duration), ("seconds", self.ask.seconds)]
    }
}

fn whole(param: &str, value: i64) -> Result<u32, VideoRefusal> {
    u32::try_from(value).map_err(|_| VideoRefusal::invalid(param, format!("`{param}` is out of range.")))
}

/// `4, 8 or 12`.
fn listed(lengths: &[i64]) -> String {
    let all: Vec<String> = lengths.iter().map(i64::to_string).collect();
    match &all[..] {
        [] => "no".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}
