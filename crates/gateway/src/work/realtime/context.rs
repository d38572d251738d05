//! How much a response will read: the conversation as last reported, and what was added since.

use tollgate_media::realtime::AudioFormat;
use tollgate_wire::count::TokenCounter;

/// What is expected to be said before the first response: half a minute.
const FIRST_AUDIO: u64 = 300;
/// What is always there, whatever was said.
const AROUND: u64 = 64;
/// An image of unknown size, where the catalog does not say otherwise.
const IMAGE: u64 = 1_600;

#[derive(Debug)]
pub struct InputEstimate {
    /// Input and output of the last response.
    known: u64,
    /// Text and pictures since then.
    text: u64,
    /// Audio since then, in bytes; and of it what was not committed yet.
    audio: u64,
    uncommitted: u64,
    pub format: AudioFormat,
    image: u64,
}

impl InputEstimate {
    pub fn new(image_tokens: u64) -> InputEstimate {
        let image = if image_tokens == 0 { IMAGE } else { image_tokens };
        InputEstimate { known: 0, text: 0, audio: 0, uncommitted: 0, format: AudioFormat::PCM, image }
    }

    pub fn audio(&mut self, bytes: u64) {
        self.audio = self.audio.saturating_add(bytes);
        self.uncommitted = self.uncommitted.saturating_add(bytes);
    }

    /// What was appended last is part of the conversation; so many bytes are.
    pub fn committed(&mut self) -> u64 {
        std::mem::take(&mut self.uncommitted)
    }

    /// Audio that waits to be committed, in bytes.
    pub fn uncommitted(&self) -> u64 {
        self.uncommitted
    }

    /// What was appended last is forgotten.
    pub fn cleared(&mut self) {
        self.audio = self.audio.saturating_sub(std::mem::take(&mut self.uncommitted));
    }

    pub fn text(&mut self, text: &[u8]) {
        let mut counter = TokenCounter::default();
        counter.json(text);
        self.text = self.text.saturating_add(counter.tokens());
    }

    pub fn image(&mut self) {
        self.text = self.text.saturating_add(self.image);
    }

    /// A response has read and made so many tokens.
    pub fn reported(&mut self, tokens: u64) {
        self.known = tokens;
        self.text = 0;
        self.audio = self.uncommitted;
    }

    /// One has made so many, and nobody says how many it read.
    pub fn made(&mut self, tokens: u64) {
        self.known = self.estimate().saturating_add(tokens);
        self.text = 0;
        self.audio = self.uncommitted;
    }

    /// Tokens of what was said, and those of them that are sound.
    pub fn estimate(&self) -> u64 {
        self.known.saturating_add(self.text).saturating_add(self.format.heard(self.audio))
    }

    pub fn new_audio(&self) -> u64 {
        self.format.heard(self.audio)
    }

    /// What must be held for: more than the estimate, for the provider counts otherwise.
    pub fn needed(&self) -> u64 {
        let fresh = self.text.saturating_add(self.format.heard(self.audio));
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

    #[test]
    fn the_estimate_follows_the_conversation() {
        let mut context = InputEstimate::new(0);
        assert_eq!(context.estimate(), 0);
        context.audio(48_000);
        assert_eq!((context.estimate(), context.new_audio()), (10, 10));
        assert!(context.needed() > context.estimate() && context.with_room() > context.needed());
        context.cleared();
        assert_eq!(context.estimate(), 0);
        context.audio(48_000);
        assert_eq!(context.committed(), 48_000);
        context.audio(24_000);
        context.reported(500);
        assert_eq!(context.estimate(), 505, "what was not committed is still to come");
        context.made(20);
        assert_eq!(context.estimate(), 505 + 20 + 5);
        context.text(b"Hello there");
        context.image();
        assert!(context.estimate() > 530 + 1_600);
    }
}
