//! Tokens of a language model: the provider's own report where there is a plausible one, our own count otherwise.

use tollgate_catalog::{Model, Uses};
use tollgate_wire::usage::Usage;
use tollgate_wire::{Request, Stream, ToolUses};

/// A tool that runs at the provider makes it read the conversation again, and each reading is reported; so often at most.
const ROUNDS: u64 = 64;

#[derive(Default, Clone)]
pub struct Tokens {
    /// Our estimate of the prompt, used when the provider reports nothing.
    pub prompt_tokens: u64,
    pub choices: u64,
    pub reported: Option<Usage>,
    pub raw_usage: Option<String>,
    /// No output came after the report, so it covers everything.
    pub report_is_whole: bool,
    pub counted_output: u64,
    pub has_output: bool,
    /// Uses of tools at the provider: the most that are held for, and those that were seen.
    pub tools_held: Uses,
    pub tools: Uses,
    /// Reported values above what the model can do are not believed.
    pub input_limit: u64,
    pub output_limit: u64,
}

impl Tokens {
    pub fn new(model: &Model, request: &Request) -> Tokens {
        let choices = request.choices;
        let rounds = if request.has_tools { ROUNDS } else { 1 };
        Tokens {
            prompt_tokens: request.prompt_tokens,
            choices,
            input_limit: model.context_window.unwrap_or(u64::MAX).saturating_mul(rounds),
            output_limit: model.max_output_tokens.unwrap_or(u64::MAX).saturating_mul(choices),
            ..Tokens::default()
        }
    }

    /// Takes over what a stream has shown so far.
    pub fn read(&mut self, reader: &Stream) {
        self.reported = reader.usage().copied();
        self.raw_usage = reader.raw_usage().map(str::to_owned);
        self.report_is_whole = reader.usage_is_current();
        self.counted_output = reader.counted_output();
        self.has_output = reader.has_output();
        self.note_tools(&reader.tools());
    }

    /// Takes over how often tools ran at the provider: those that were asked for, and no more than was held for.
    pub fn note_tools(&mut self, seen: &ToolUses) {
        self.tools = self.tools_held.iter().fold(Uses::NONE, |all, (tool, held)| {
            let name = tool.name().strip_prefix("tool:").unwrap_or_default();
            all.with(tool, seen.of(name).min(held))
        });
    }

    /// The client got no more output than this: what the provider says of the rest is not the client's affair.
    pub fn only(&mut self, output: u64) {
        self.counted_output = self.counted_output.min(output);
        self.report_is_whole = false;
        self.has_output &= output > 0;
        if let Some(reported) = &mut self.reported {
            *reported = Usage { output, reasoning: 0, image_output: 0, audio_output: 0, ..*reported };
        }
    }

    /// What is charged for, and whether we had to count it ourselves.
    pub fn measured(&self) -> (Usage, bool) {
        match self.reported {
            Some(usage) if self.plausible(&usage) && self.report_is_whole => (usage, false),
            // Reported in the middle of a stream that broke later: whichever is more.
            Some(usage) if self.plausible(&usage) && usage.output_total() >= self.counted_output => (usage, true),
            _ => (self.counted(), true),
        }
    }

    /// Nothing came out: no charge, whatever was sent in.
    pub fn is_empty(&self) -> bool {
        !self.has_output && self.counted_output == 0 && self.reported.is_none_or(|usage| usage.output_total() == 0)
    }

    fn counted(&self) -> Usage {
        // A stream that was cut may still have told its input.
        let input = self.reported.filter(|usage| self.input_plausible(usage) && usage.input_total() > 0);
        let mut usage = input.unwrap_or(Usage { input: self.prompt_tokens, ..Usage::default() });
        usage.output = self.counted_output;
        usage.reasoning = 0;
        usage.image_output = 0;
        usage.audio_output = 0;
        usage
    }

    fn input_plausible(&self, usage: &Usage) -> bool {
        usage.input_total() <= self.input_limit
    }

    fn plausible(&self, usage: &Usage) -> bool {
        let all = usage.input_total().saturating_add(usage.output_total());
        // Output without any tokens reported for it is a report that says nothing.
        let says_something = usage.output_total() > 0 || !self.has_output;
        all > 0 && says_something && self.input_plausible(usage) && usage.output_total() <= self.output_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(reported: Option<Usage>) -> Tokens {
        Tokens {
            prompt_tokens: 50,
            choices: 1,
            reported,
            report_is_whole: true,
            counted_output: 7,
            has_output: true,
            input_limit: 1_000,
            output_limit: 100,
            ..Tokens::default()
        }
    }

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    #[test]
    fn a_plausible_report_is_taken_as_it_is() {
        assert_eq!(meter(Some(usage(10, 20))).measured(), (usage(10, 20), false));
    }

    #[test]
    fn a_missing_zero_or_impossible_report_is_counted_instead() {
        assert_eq!(meter(None).measured(), (usage(50, 7), true));
        assert_eq!(meter(Some(usage(0, 0))).measured(), (usage(50, 7), true));
        assert_eq!(meter(Some(usage(10, 101))).measured(), (usage(10, 7), true), "more output than the model can give");
        assert_eq!(meter(Some(usage(1_001, 5))).measured(), (usage(50, 7), true), "more input than the model can take");
    }

    #[test]
    fn a_report_from_before_the_end_counts_only_if_it_is_more() {
        let early = |output| Tokens { report_is_whole: false, ..meter(Some(usage(10, output))) };
        assert_eq!(early(3).measured(), (usage(10, 7), true));
        assert_eq!(early(9).measured(), (usage(10, 9), true));
    }

    #[test]
    fn only_an_answer_without_any_output_is_empty() {
        assert!(!meter(None).is_empty());
        let nothing = Tokens { has_output: false, counted_output: 0, ..meter(Some(usage(9, 0))) };
        assert!(nothing.is_empty());
        let hidden = Tokens { has_output: false, counted_output: 0, ..meter(Some(usage(9, 3))) };
        assert!(!hidden.is_empty(), "hidden reasoning was produced and is paid for");
    }
}
