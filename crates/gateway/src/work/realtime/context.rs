//! How much a response will read: the conversation as last reported, and what was added since.
//!
//! Audio is counted by its length and by its place in all audio that was ever sent. A client can
//! send faster than its provider listens, so what a provider says of the buffer is about audio up
//! to a place (`cut`), and never about all that has come since.

use std::collections::VecDeque;
use std::time::Duration;
use tollgate_media::realtime::AudioFormat;
use tollgate_wire::count::TokenCounter;

/// What is expected to be said before the first response: half a minute.
const FIRST_AUDIO: u64 = 300;
/// What is always there, whatever was said.
const AROUND: u64 = 64;
/// An image of unknown size, where the catalog does not say otherwise.
const IMAGE: u64 = 1_600;
/// Places in the audio that are remembered: of older ones more is taken to be in the buffer than
/// is.
const MOST_CUTS: usize = 64;

/// What a client does with the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferCut {
    Commit,
    Clear,
}

#[derive(Debug)]
pub struct InputEstimate {
    /// Input and output of the last response.
    known: u64,
    /// Text and pictures since then.
    text: u64,
    /// Audio since then.
    audio: Duration,
    /// All audio that was appended, and of it what was not committed yet.
    appended: Duration,
    uncommitted: Duration,
    /// Where the client has committed or cleared what it appended, and where the provider has heard
    /// a turn end.
    asked_cuts: VecDeque<(BufferCut, Duration)>,
    heard_cut: Option<Duration>,
    pub format: AudioFormat,
    /// Tokens of a second of audio.
    per_second: u64,
    image: u64,
}

impl InputEstimate {
    pub fn new(image_tokens: u64, per_second: u64) -> InputEstimate {
        let image = if image_tokens == 0 { IMAGE } else { image_tokens };
        InputEstimate {
            known: 0,
            text: 0,
            audio: Duration::ZERO,
            appended: Duration::ZERO,
            uncommitted: Duration::ZERO,
            asked_cuts: VecDeque::new(),
            heard_cut: None,
            format: AudioFormat::PCM,
            per_second,
            image,
        }
    }

    /// So much audio is added to the buffer.
    pub fn append(&mut self, length: Duration) {
        self.appended += length;
        self.uncommitted += length;
        self.audio += length;
    }

    /// What was added last did not pass.
    pub fn take_back(&mut self, length: Duration) {
        self.appended -= length;
        self.uncommitted -= length;
        self.audio -= length;
    }

    /// So many bytes of audio are an item, or part of one; the buffer is as it was.
    pub fn audio_item(&mut self, bytes: u64) {
        self.audio += self.format.length(bytes);
    }

    /// The client commits or clears what it has appended up to here. It is done when the provider
    /// says so.
    pub fn cut_asked(&mut self, what: BufferCut) {
        if self.asked_cuts.len() >= MOST_CUTS {
            self.asked_cuts.pop_front();
        }
        self.asked_cuts.push_back((what, self.appended));
    }

    /// The provider has heard a turn end, so many milliseconds into all audio.
    pub fn turn_heard(&mut self, end_ms: u64) {
        self.heard_cut = Some(Duration::from_millis(end_ms).min(self.appended));
    }

    /// Where the client asked for this. What it asked for before came to nothing.
    fn asked_cut(&mut self, what: BufferCut) -> Option<Duration> {
        while let Some((asked, at)) = self.asked_cuts.pop_front() {
            if asked == what {
                return Some(at);
            }
        }
        None
    }

    /// Everything up to this place leaves the buffer: so much was it. Where nobody says which
    /// place, it is all there is.
    fn cut(&mut self, at: Option<Duration>) -> Duration {
        let left = (self.appended - at.unwrap_or(self.appended)).min(self.uncommitted);
        let before = std::mem::replace(&mut self.uncommitted, left);
        before - left
    }

    /// What was in the buffer is part of the conversation: so much audio.
    pub fn committed(&mut self) -> Duration {
        let at = self.heard_cut.take().or_else(|| self.asked_cut(BufferCut::Commit));
        self.cut(at)
    }

    /// What was in the buffer is forgotten.
    pub fn cleared(&mut self) {
        let at = self.asked_cut(BufferCut::Clear);
        let forgotten = self.cut(at);
        self.audio = self.audio.saturating_sub(forgotten);
    }

    /// All audio that was ever appended.
    pub fn appended(&self) -> Duration {
        self.appended
    }

    /// Audio that waits to be committed.
    pub fn uncommitted(&self) -> Duration {
        self.uncommitted
    }

    pub fn text(&mut self, text: &[u8]) {
        let mut counter = TokenCounter::default();
        counter.json(text);
        self.text = self.text.saturating_add(counter.tokens());
    }

    pub fn image(&mut self) {
        self.text = self.text.saturating_add(self.image);
    }

    /// A response has read and made so many tokens. `whole`: it has surely read the conversation,
    /// and not an input of its own.
    pub fn reported(&mut self, tokens: u64, whole: bool) {
        let before = self.known.saturating_add(self.text).saturating_add(self.heard(self.committed_audio()));
        self.known = if whole { tokens } else { tokens.max(before) };
        self.text = 0;
        self.audio = self.uncommitted;
    }

    /// One has made so many, and nobody says how many it read.
    pub fn made(&mut self, tokens: u64) {
        self.known = self.estimate().saturating_add(tokens);
        self.text = 0;
        self.audio = self.uncommitted;
    }

    fn committed_audio(&self) -> Duration {
        self.audio.saturating_sub(self.uncommitted)
    }

    /// Tokens of what was said, and those of them that are sound.
    pub fn estimate(&self) -> u64 {
        self.known.saturating_add(self.text).saturating_add(self.new_audio())
    }

    pub fn new_audio(&self) -> u64 {
        self.heard(self.audio)
    }

    /// Tokens of so much audio, rounded up.
    fn heard(&self, length: Duration) -> u64 {
        let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        micros.saturating_mul(self.per_second).div_ceil(1_000_000)
    }

    /// What must be held for: more than the estimate, for the provider counts otherwise.
    pub fn needed(&self) -> u64 {
        let fresh = self.text.saturating_add(self.new_audio());
        self.known.saturating_add(fresh.saturating_add(fresh / 4)).saturating_add(AROUND)
    }

    /// What is held for, so that it does not have to be asked for with every frame.
    pub fn with_room(&self) -> u64 {
        self.needed().saturating_add(FIRST_AUDIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_estimate_follows_the_conversation() {
        let mut context = InputEstimate::new(0, 10);
        assert_eq!(context.estimate(), 0);
        context.append(SECOND);
        assert_eq!((context.estimate(), context.new_audio()), (10, 10));
        assert!(context.needed() > context.estimate() && context.with_room() > context.needed());
        context.cut_asked(BufferCut::Clear);
        context.cleared();
        assert_eq!(context.estimate(), 0);
        context.append(SECOND);
        context.cut_asked(BufferCut::Commit);
        assert_eq!(context.committed(), seconds(1));
        context.append(SECOND / 2);
        context.reported(500, true);
        assert_eq!(context.estimate(), 505, "what was not committed is still to come");
        context.made(20);
        assert_eq!(context.estimate(), 505 + 20 + 5);
        context.text(b"Hello there");
        context.image();
        assert!(context.estimate() > 530 + 1_600);
    }

    #[test]
    fn what_a_provider_says_of_the_buffer_is_not_about_what_came_since() {
        let mut context = InputEstimate::new(0, 10);
        // Three turns in one go: the provider commits one after the other.
        for _ in 0..3 {
            context.append(60 * SECOND);
        }
        for turn in 1..=3 {
            context.turn_heard(turn * 60_000);
            assert_eq!((context.committed(), context.uncommitted()), (seconds(60), seconds(60 * (3 - turn))));
        }
        // What was committed before the client clears the buffer is committed.
        context.append(60 * SECOND);
        context.cut_asked(BufferCut::Clear);
        context.append(SECOND);
        context.turn_heard(240_000);
        assert_eq!(context.committed(), seconds(60));
        context.cleared();
        assert_eq!(context.uncommitted(), seconds(1));
        // A commit that came to nothing is no place for the one after it.
        context.cut_asked(BufferCut::Commit);
        context.append(SECOND);
        context.cut_asked(BufferCut::Clear);
        context.cleared();
        assert_eq!(context.uncommitted(), seconds(0));
        // A place beyond the end is the end, and one before what was committed takes nothing.
        context.append(SECOND);
        context.turn_heard(u64::MAX);
        assert_eq!(context.committed(), seconds(1));
        context.append(SECOND);
        context.turn_heard(5);
        assert_eq!((context.committed(), context.uncommitted()), (seconds(0), seconds(1)));
    }

    #[test]
    fn an_item_of_audio_does_not_touch_the_buffer() {
        let mut context = InputEstimate::new(0, 10);
        context.append(10 * SECOND);
        context.audio_item(48_000);
        assert_eq!((context.uncommitted(), context.new_audio()), (seconds(10), 110));
    }

    #[test]
    fn another_format_does_not_change_what_was_said() {
        let mut context = InputEstimate::new(0, 10);
        context.format = AudioFormat::TELEPHONE;
        context.audio_item(8_000 * 60);
        context.format = AudioFormat::PCM;
        assert_eq!(context.new_audio(), 600);
    }

    #[test]
    fn an_answer_to_something_else_makes_the_conversation_no_shorter() {
        let mut context = InputEstimate::new(0, 10);
        context.reported(30_000, true);
        context.text(b"and then");
        context.reported(10, false);
        assert!(context.estimate() > 30_000, "{}", context.estimate());
        context.reported(10, true);
        assert_eq!(context.estimate(), 10);
    }
}
