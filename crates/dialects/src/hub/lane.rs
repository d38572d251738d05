//! One block at a time.
//!
//! Chat may weave the fragments of several tool calls; Anthropic's blocks and Responses' items
//! follow each other. The first open call is passed on as it comes, the others wait. A call that is
//! known to be whole (its provider said so, or its arguments are a complete JSON object) makes way
//! for the next.

use super::part::CallKind;
use std::collections::VecDeque;

/// Follows a JSON object as it arrives, to know when it is whole. No memory but a few counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObjectTracker {
    depth: u32,
    text: bool,
    escape: bool,
    begun: bool,
}

impl ObjectTracker {
    pub fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.text {
                match byte {
                    _ if self.escape => self.escape = false,
                    b'\\' => self.escape = true,
                    b'"' => self.text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.text = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.begun = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    pub fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && !self.text
    }
}

/// A call that waits for its turn.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub call: u32,
    pub id: String,
    pub name: String,
    pub namespace: Option<String>,
    pub kind: CallKind,
    pub args: String,
    pub closed: bool,
}

/// What came in the middle of a call.
#[derive(Debug)]
pub(crate) struct HeldBack {
    pub text: String,
    pub what: Saying,
}

/// What a text that waits for its turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    Text,
    Refusal,
    Thought,
    /// A citation, as it is written.
    Note,
    /// A picture's data.
    Picture,
    /// What was searched for.
    Search,
}

impl Saying {
    /// Comes in pieces.
    fn flows(self) -> bool {
        matches!(self, Saying::Text | Saying::Refusal | Saying::Thought)
    }
}

/// The call that is being written and those that wait.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    current: Option<(u32, ObjectTracker)>,
    waiting: VecDeque<Waiting>,
    held: usize,
    said: Vec<HeldBack>,
    full: bool,
}

/// What waiting calls may hold in all.
pub(crate) const MOST_HELD: usize = 16 << 20;

impl Lane {
    /// The call being written.
    pub fn current(&self) -> Option<u32> {
        self.current.map(|(call, _)| call)
    }

    /// Whether a new call may be written at once: nothing is open, or what is open is whole.
    pub fn is_free(&self) -> bool {
        self.waiting.is_empty() && self.current.is_none_or(|(_, whole)| whole.is_whole())
    }

    /// More had to wait than may be buffered: what follows would not be what the provider said.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn open(&mut self, call: u32) {
        self.current = Some((call, ObjectTracker::default()));
    }

    pub fn wait(&mut self, call: Waiting) {
        self.waiting.push_back(call);
    }

    /// Arguments of a call: true when they are to be written now, else they are buffered (within
    /// bounds).
    pub fn args(&mut self, call: u32, text: &str) -> bool {
        if let Some((current, whole)) = &mut self.current
            && *current == call
        {
            whole.feed(text);
            return true;
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.call == call) {
            self.held += text.len();
            self.full |= self.held > MOST_HELD;
            if !self.full {
                waiting.args.push_str(text);
            }
        }
        false
    }

    /// Keeps what came in the middle of a call. False when nothing is in its way.
    pub fn keep(&mut self, text: &str, what: Saying) -> bool {
        if !self.is_busy() {
            return false;
        }
        self.held += text.len();
        self.full |= self.held > MOST_HELD;
        if !self.full {
            match self.said.last_mut() {
                Some(last) if last.what == what && what.flows() => last.text.push_str(text),
                _ => self.said.push(HeldBack { text: text.to_owned(), what }),
            }
        }
        true
    }

    /// What was buffered.
    pub fn said(&mut self) -> Vec<HeldBack> {
        let said = std::mem::take(&mut self.said);
        self.held = self.held.saturating_sub(said.iter().map(|held| held.text.len()).sum());
        said
    }

    /// A call is whole: true when it is the one being written.
    pub fn close(&mut self, call: u32) -> bool {
        if self.current() == Some(call) {
            self.current = None;
            return true;
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.call == call) {
            waiting.closed = true;
        }
        false
    }

    /// The call being written is not known to be whole: what is not a call has to wait.
    pub fn is_busy(&self) -> bool {
        self.current.is_some_and(|(_, whole)| !whole.is_whole())
    }

    /// Forgets the call being written.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// The next call in line, once nothing is open.
    pub fn next(&mut self) -> Option<Waiting> {
        if self.current.is_some() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.held = self.held.saturating_sub(next.args.len());
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(pieces: &[&str]) -> bool {
        let mut state = ObjectTracker::default();
        pieces.iter().for_each(|piece| state.feed(piece));
        state.is_whole()
    }

    #[test]
    fn knows_a_whole_object() {
        assert!(whole(&["{\"a\":", "\"}\\\"\"", "}"]));
        assert!(whole(&["{}"]) && whole(&["[{}]"]));
        assert!(!whole(&["{\"a\":\"}"]) && !whole(&[""]) && !whole(&["{\"a\":{}"]));
    }

    proptest! {
        #[test]
        fn agrees_with_json(value in "\\PC{0,12}", cut in 0usize..40) {
            let text = serde_json::json!({"k": value, "l": [value]}).to_string();
            let cut = text.floor_char_boundary(cut.min(text.len() - 1));
            prop_assert!(whole(&[&text[..cut], &text[cut..]]));
            prop_assert!(!whole(&[&text[..cut]]));
        }
    }
}
