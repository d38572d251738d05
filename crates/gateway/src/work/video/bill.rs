//! What a finished video has used: what its provider counted, and what is charged where it does not
//! tell.

use super::{StoredPlan, most};
use crate::call::fitted;
use crate::call::task::TaskUse;
use tollgate_catalog::Price;
use tollgate_media::video::PlanBound;
use tollgate_store::Counters;
use tollgate_upstream::video::VideoUsage;

/// The last frames of a file, which nobody asked for: of a length they count for nothing.
const FRAMES_MS: u64 = 100;
/// So much beyond what was held for is no other length than was asked for.
const BEYOND_MS: u64 = 500;

/// Whole seconds of a reported length: a second that was begun counts, but for its first frames.
fn whole_seconds(millis: u64, most: u64) -> u64 {
    let seconds = millis.saturating_sub(FRAMES_MS).div_ceil(1_000).max(1);
    if millis <= most.saturating_mul(1_000).saturating_add(BEYOND_MS) { seconds.min(most) } else { seconds }
}

/// Where the provider tells no tokens: those of what was asked for, and of the length that it
/// tells.
fn usual_tokens(least: PlanBound, millis: Option<u64>) -> Option<u64> {
    let (tokens, asked) = (least.tokens?, u64::from(least.seconds.max(1)) * 1_000);
    Some(millis.map_or(tokens, |millis| tokens.saturating_mul(millis).div_ceil(asked)))
}

/// What the provider counted; what it does not say is what was asked for, and the least of what was
/// left to it. Of what it counts beyond the most that was held for the customer pays nothing: the
/// close takes the hold and writes the rest off, where the operator sees it.
pub fn used(stored: &StoredPlan, used: &VideoUsage, price: &Price) -> TaskUse {
    let (bound, least) = (stored.bound(), stored.least());
    let most = most(&bound);
    let reported = used.millis.map(|millis| whole_seconds(millis, most.seconds));
    let seconds = reported.unwrap_or(u64::from(least.seconds));
    let usual = || usual_tokens(least, used.millis).map(|tokens| tokens.min(most.output));
    let tokens = used.tokens.or_else(usual).unwrap_or(0);
    let counters = fitted(Counters { output: tokens, ..Counters::video(seconds) }, price);
    if counters.seconds > most.seconds || counters.output > most.output {
        tracing::error!(
            seconds,
            tokens,
            "a provider counted more than its video can have; the operator pays what is beyond the hold"
        );
    }
    let by_tokens = bound.tokens.is_some() && counters.seconds == 0 && counters.calls == 0;
    let by_report = by_tokens || counters.seconds > 0;
    let estimated = by_report && if by_tokens { used.tokens.is_none() } else { reported.is_none() };
    TaskUse { counters, most, estimated, by_report, raw_usage: used.raw.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_that_was_begun_counts_but_for_its_first_frames() {
        for (millis, most, seconds) in [
            (5_000, 5, 5),
            (5_040, 5, 5),
            (5_040, 15, 5),
            (5_100, 15, 5),
            (5_101, 15, 6),
            (13_240, 20, 14),
            (10_400, 10, 10),
            (10_501, 10, 11),
            (12_000, 10, 12),
            (40, 5, 1),
        ] {
            assert_eq!(whole_seconds(millis, most), seconds, "{millis} ms of {most} s");
        }
    }

    #[test]
    fn tokens_of_a_reported_length() {
        let five = PlanBound { seconds: 5, tokens: Some(108_000) };
        assert_eq!(usual_tokens(five, None), Some(108_000));
        assert_eq!(usual_tokens(five, Some(8_000)), Some(172_800));
        assert_eq!(usual_tokens(PlanBound { tokens: None, ..five }, Some(8_000)), None);
    }
}
