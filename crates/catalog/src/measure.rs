//! How use that is no token becomes a billed quantity. Whoever adds a modality calls these and
//! writes no billing code.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::unit::TOKENS_PER_AUDIO_SECOND;

/// Characters of a text as they are billed: each Unicode character (scalar value) is one,
/// punctuation, spaces and line ends included.
pub fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The billed seconds of a recording: rounded up to a whole second, at least one. `None`: more than
/// can be counted.
pub fn billed_seconds(length: Duration) -> Option<u64> {
    Some(length.as_secs().checked_add(u64::from(length.subsec_nanos() > 0))?.max(1))
}

/// The same from what a decoder counts: frames (samples of one channel) at a rate per second.
pub fn billed_seconds_of_frames(frames: u64, rate: NonZeroU32) -> u64 {
    frames.div_ceil(u64::from(rate.get())).max(1)
}

/// Tokens that are shown for so many seconds of audio: a thousand a minute, rounded up. For the
/// usage log only; a recording is charged by its seconds, exactly. `None`: more than can be
/// counted.
pub fn audio_tokens(seconds: u64) -> Option<u64> {
    TOKENS_PER_AUDIO_SECOND.of(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_one_punctuation_and_spaces_included() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("Hello, world!", 13),
            ("  \t\r\n", 5),
            ("你好，世界。", 6),
            ("Grüße", 5),
            ("e\u{301}", 2),
            ("👍🏽", 2),
            ("👩‍👩‍👧", 5),
        ] {
            assert_eq!(characters(text), count, "{text:?}");
        }
    }

    #[test]
    fn a_recording_is_rounded_up_to_a_whole_second_and_is_at_least_one() {
        for (ms, seconds) in
            [(0, 1), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (59_999, 60), (60_000, 60), (60_001, 61)]
        {
            assert_eq!(billed_seconds(Duration::from_millis(ms)), Some(seconds), "{ms} ms");
        }
        assert_eq!(billed_seconds(Duration::from_nanos(1_000_000_001)), Some(2));
        assert_eq!(billed_seconds(Duration::from_secs(u64::MAX)), Some(u64::MAX));
        assert_eq!(billed_seconds(Duration::MAX), None);
    }

    #[test]
    fn frames_are_rounded_up_like_durations() {
        let rate = |hertz| NonZeroU32::new(hertz).expect("a rate");
        for (frames, hertz, seconds) in
            [(0, 16_000, 1), (1, 16_000, 1), (16_000, 16_000, 1), (16_001, 16_000, 2), (44_100 * 61, 44_100, 61)]
        {
            assert_eq!(billed_seconds_of_frames(frames, rate(hertz)), seconds, "{frames} at {hertz}");
        }
        assert_eq!(billed_seconds_of_frames(u64::MAX, rate(1)), u64::MAX);
    }

    #[test]
    fn audio_is_shown_as_a_thousand_tokens_a_minute_rounded_up() {
        for (seconds, tokens) in
            [(1, 17), (2, 34), (3, 50), (6, 100), (59, 984), (60, 1_000), (61, 1_017), (3_600, 60_000)]
        {
            assert_eq!(audio_tokens(seconds), Some(tokens), "{seconds} s");
        }
        assert_eq!(audio_tokens(0), Some(0));
        assert_eq!(audio_tokens(u64::MAX), None);
    }
}
