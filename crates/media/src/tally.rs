//! How much text a provider will read: our own count, and what it could count at most.

use tollgate_wire::count::TokenCounter;

/// Tokens that a provider adds to each text, around it.
const AROUND: u64 = 2;
/// The most of them that are believed.
const MOST_AROUND: u64 = 16;

/// A number of texts, counted one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextTally {
    pub texts: usize,
    /// Own count of all of them, leaning high.
    pub tokens: u64,
    /// Bytes of all of them, as they are written in JSON.
    pub bytes: u64,
    /// The longest by our count, and which one that is.
    pub longest: u64,
    pub longest_at: usize,
}

impl TextTally {
    /// One more text, as it stands between its quotes.
    pub fn text(&mut self, raw: &[u8]) {
        let mut counter = TokenCounter::default();
        counter.json(raw);
        self.add(counter.tokens().max(1), raw.len() as u64);
    }

    /// One more text that is given by the numbers of its tokens.
    pub fn ids(&mut self, count: u64) {
        // As many bytes as make `most` the number itself.
        self.add(count, count.saturating_mul(2));
    }

    fn add(&mut self, tokens: u64, bytes: u64) {
        if tokens > self.longest {
            (self.longest, self.longest_at) = (tokens, self.texts);
        }
        self.texts += 1;
        self.tokens = self.tokens.saturating_add(tokens);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The most tokens that a provider counts in them: our own count, or two bytes to a token where
    /// that is more.
    pub fn most(&self) -> u64 {
        let texts = self.texts as u64;
        self.tokens.max(self.bytes.div_ceil(2)).saturating_add(texts.saturating_mul(AROUND))
    }

    /// A report above this cannot be true: a token has a byte at least.
    pub fn believable(&self) -> u64 {
        let texts = self.texts as u64;
        self.bytes.max(self.tokens).saturating_add(texts.saturating_mul(MOST_AROUND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_for_lies_between_the_count_and_what_can_be_true() {
        let mut tally = TextTally::default();
        for text in ["a", "The quick brown fox jumps over the lazy dog.", "今天天气很好", "1234567890123456789"] {
            tally.text(text.as_bytes());
        }
        assert_eq!((tally.texts, tally.longest_at), (4, 1));
        assert!(tally.tokens <= tally.most() && tally.most() <= tally.believable(), "{tally:?}");
        let mut ids = TextTally::default();
        ids.ids(100);
        assert_eq!((ids.tokens, ids.most()), (100, 102));
    }
}
