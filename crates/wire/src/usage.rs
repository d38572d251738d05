//! What a call used, in disjoint counters.
//!
//! Providers report overlapping numbers (cached tokens inside the prompt, reasoning inside
//! the completion). Here each token is in exactly one counter, none is ever negative, and the
//! sums give the provider's totals back. A report with an odd shape (text, fraction, negative,
//! absurdly large) is no report: the caller then falls back on its own count.

use crate::json::{Broken, Scan};
use serde::{Deserialize, Serialize};

/// Above this a counter is taken for nonsense.
pub const MOST: u64 = 1_000_000_000;

/// Tokens by the face that prices them; disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
    pub image_input: u64,
    pub audio_input: u64,
    pub output: u64,
    pub reasoning: u64,
    pub image_output: u64,
    pub audio_output: u64,
}

impl Usage {
    /// Everything that went in.
    pub fn input_total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h, self.image_input, self.audio_input]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Everything that came out.
    pub fn output_total(&self) -> u64 {
        [self.output, self.reasoning, self.image_output, self.audio_output].into_iter().fold(0, u64::saturating_add)
    }

    /// Disjoint counters from a chat report; `None` when it says nothing usable.
    pub fn from_chat(chat: &ChatUsage) -> Option<Usage> {
        let (prompt, completion) = chat.totals()?;
        if prompt == 0 && completion == 0 {
            return None;
        }
        let mut rest = prompt;
        let cache_read = take(&mut rest, chat.cached);
        let cache_write_5m = take(&mut rest, chat.cache_write);
        let audio_input = take(&mut rest, chat.audio_in);
        let image_input = take(&mut rest, chat.image_in);
        let input = rest;
        let mut rest = completion;
        let reasoning = take(&mut rest, chat.reasoning);
        let audio_output = take(&mut rest, chat.audio_out);
        let image_output = take(&mut rest, chat.image_out);
        Some(Usage {
            input,
            cache_read,
            cache_write_5m,
            cache_write_1h: 0,
            image_input,
            audio_input,
            output: rest,
            reasoning,
            image_output,
            audio_output,
        })
    }
}

/// Moves up to `wanted` out of `rest`.
fn take(rest: &mut u64, wanted: Option<u64>) -> u64 {
    let taken = wanted.unwrap_or(0).min(*rest);
    *rest -= taken;
    taken
}

/// A chat `usage` object as reported; absent is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatUsage {
    pub prompt: Option<u64>,
    pub completion: Option<u64>,
    pub total: Option<u64>,
    pub cached: Option<u64>,
    pub cache_write: Option<u64>,
    pub audio_in: Option<u64>,
    pub image_in: Option<u64>,
    pub reasoning: Option<u64>,
    pub audio_out: Option<u64>,
    pub image_out: Option<u64>,
}

impl ChatUsage {
    /// Reads the JSON text of a `usage` object; `None` when its shape is odd.
    pub fn read(text: &[u8]) -> Option<ChatUsage> {
        let mut scan = Scan::new(text);
        let read = Self::scan(&mut scan).ok()?;
        scan.end().ok()?;
        read
    }

    /// Prompt and completion, one of them derived from the total when only that is there.
    ///
    /// Some providers leave reasoning out of `completion_tokens` and only count it in the
    /// total; the total then says so and the reasoning is added.
    fn totals(&self) -> Option<(u64, u64)> {
        match (self.prompt, self.completion, self.total) {
            (Some(prompt), Some(completion), total) => {
                let reasoning = self.reasoning.unwrap_or(0);
                let outside = reasoning > 0 && total == Some(prompt + completion + reasoning);
                Some((prompt, if outside { completion + reasoning } else { completion }))
            }
            (Some(prompt), None, Some(total)) => Some((prompt, total.checked_sub(prompt)?)),
            (None, Some(completion), Some(total)) => Some((total.checked_sub(completion)?, completion)),
            _ => None,
        }
    }

    /// True when every number that is there is zero.
    fn all_zero(&self) -> bool {
        self.fields().into_iter().all(|f| f.unwrap_or(0) == 0)
    }

    fn fields(&self) -> [Option<u64>; 10] {
        [
            self.prompt,
            self.completion,
            self.total,
            self.cached,
            self.cache_write,
            self.audio_in,
            self.image_in,
            self.reasoning,
            self.audio_out,
            self.image_out,
        ]
    }

    /// Takes a later report of the same stream: per field the last non-null wins, nothing is
    /// added up, and an all-zero report after a non-zero one is ignored.
    /// False when it was ignored.
    pub fn merge(&mut self, later: &ChatUsage) -> bool {
        if later.all_zero() && !self.all_zero() {
            return false;
        }
        let newer = |old: &mut Option<u64>, new: Option<u64>| {
            if new.is_some() {
                *old = new;
            }
        };
        newer(&mut self.prompt, later.prompt);
        newer(&mut self.completion, later.completion);
        newer(&mut self.total, later.total);
        newer(&mut self.cached, later.cached);
        newer(&mut self.cache_write, later.cache_write);
        newer(&mut self.audio_in, later.audio_in);
        newer(&mut self.image_in, later.image_in);
        newer(&mut self.reasoning, later.reasoning);
        newer(&mut self.audio_out, later.audio_out);
        newer(&mut self.image_out, later.image_out);
        true
    }

    /// Reads the object the scan stands on. `Ok(None)`: valid JSON, odd shape.
    pub(crate) fn scan(scan: &mut Scan<'_>) -> Result<Option<ChatUsage>, Broken> {
        if scan.peek() != Some(b'{') {
            scan.skip()?;
            return Ok(None);
        }
        let mut read = ChatUsage::default();
        let mut odd = false;
        // The same number under another provider's name; the standard name wins.
        let mut other_cached = None;
        let mut other_write = None;
        scan.object(|key, scan| match key.raw() {
            b"prompt_tokens" => counter(scan, &mut read.prompt, &mut odd),
            b"completion_tokens" => counter(scan, &mut read.completion, &mut odd),
            b"total_tokens" => counter(scan, &mut read.total, &mut odd),
            b"cached_tokens" | b"prompt_cache_hit_tokens" | b"cache_read_input_tokens" => {
                counter(scan, &mut other_cached, &mut odd)
            }
            b"cache_creation_input_tokens" => counter(scan, &mut other_write, &mut odd),
            b"prompt_tokens_details" => read.scan_prompt_details(scan, &mut odd),
            b"completion_tokens_details" => read.scan_completion_details(scan, &mut odd),
            _ => scan.skip(),
        })?;
        read.cached = read.cached.or(other_cached);
        read.cache_write = read.cache_write.or(other_write);
        Ok((!odd).then_some(read))
    }

    fn scan_prompt_details(&mut self, scan: &mut Scan<'_>, odd: &mut bool) -> Result<(), Broken> {
        if scan.peek() != Some(b'{') {
            return details_absent(scan, odd);
        }
        scan.object(|key, scan| match key.raw() {
            b"cached_tokens" => counter(scan, &mut self.cached, odd),
            b"cache_write_tokens" => counter(scan, &mut self.cache_write, odd),
            b"audio_tokens" => counter(scan, &mut self.audio_in, odd),
            b"image_tokens" => counter(scan, &mut self.image_in, odd),
            _ => scan.skip(),
        })
    }

    fn scan_completion_details(&mut self, scan: &mut Scan<'_>, odd: &mut bool) -> Result<(), Broken> {
        if scan.peek() != Some(b'{') {
            return details_absent(scan, odd);
        }
        scan.object(|key, scan| match key.raw() {
            b"reasoning_tokens" => counter(scan, &mut self.reasoning, odd),
            b"audio_tokens" => counter(scan, &mut self.audio_out, odd),
            b"image_tokens" => counter(scan, &mut self.image_out, odd),
            _ => scan.skip(),
        })
    }
}

/// A details value that is no object: null is fine, anything else is odd.
fn details_absent(scan: &mut Scan<'_>, odd: &mut bool) -> Result<(), Broken> {
    *odd |= scan.value()? != b"null";
    Ok(())
}

fn counter(scan: &mut Scan<'_>, slot: &mut Option<u64>, odd: &mut bool) -> Result<(), Broken> {
    let text = scan.value()?;
    if text == b"null" {
        return Ok(());
    }
    match crate::json::whole_number(text) {
        Some(number) if number <= MOST => *slot = Some(number),
        _ => *odd = true,
    }
    Ok(())
}
