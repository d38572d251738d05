//! Tokens of a language model: the provider's own report where there is a plausible one, our own
//! count otherwise.

use tollgate_catalog::{Model, Uses};
use tollgate_wire::usage::Usage;

/// A tool that runs at the provider makes it read the conversation again, and each reading is
/// reported; so often at most.
const ROUNDS: u64 = 64;
/// A catalog may be behind its provider, so a report may have so many times the output that the
/// model is listed with. The customer pays for no more than the call was quoted for; what is
/// further off is no report at all.
const BEHIND: u64 = 4;
/// Our own count leans high: up to so many times a limit, and some, it may be the count of an
/// answer within the limit.
const LEANS: u64 = 4;
/// Of a few tokens our count can be many times the provider's: tool calls are mostly punctuation.
const FEW: u64 = 256;

/// Above this, by our own count, an answer is longer than the limit that it was given.
pub const fn surely_above(ceiling: u64) -> u64 {
    ceiling.saturating_mul(LEANS).saturating_add(FEW)
}

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
    /// There is an answer at all, with or without output in it.
    pub has_answer: bool,
    /// Uses of tools at the provider: the most that are held for, and those that were seen.
    pub tools_held: Uses,
    pub tools: Uses,
    /// Reported values above these are not believed.
    pub input_limit: u64,
    pub output_limit: u64,
    /// The most output that the call may be charged for.
    pub ceiling: Option<u64>,
}

impl Tokens {
    /// For a prompt of so many tokens by our estimate, and so many choices. `tools`: some may run
    /// at the provider.
    pub fn new(model: &Model, prompt_tokens: u64, choices: u64, tools: bool) -> Tokens {
        let rounds = if tools { ROUNDS } else { 1 };
        let window = model.context_window.unwrap_or(u64::MAX);
        let longest = model.max_output_tokens.unwrap_or(u64::MAX).min(window);
        Tokens {
            prompt_tokens,
            choices,
            input_limit: window.saturating_mul(rounds),
            output_limit: longest.saturating_mul(choices).saturating_mul(BEHIND),
            ..Tokens::default()
        }
    }

    /// Takes over how often tools ran at the provider: those that were asked for, and no more than
    /// was held for.
    pub fn note_tools(&mut self, seen: impl Fn(&str) -> u64) {
        self.tools = self.tools_held.iter().fold(Uses::NONE, |all, (tool, held)| {
            let name = tool.name().strip_prefix("tool:").unwrap_or_default();
            all.with(tool, seen(name).min(held))
        });
    }

    /// The client got no more output than this. What the provider reports was produced all the
    /// same.
    pub fn only(&mut self, output: u64) {
        self.counted_output = self.counted_output.min(output);
        self.has_output &= output > 0;
    }

    /// What is charged for, and whether we had to count any of it ourselves.
    pub fn measured(&self) -> (Usage, bool) {
        match self.reported {
            Some(usage) if self.plausible(&usage) && self.report_is_whole => (usage, false),
            _ => (self.counted(), true),
        }
    }

    /// Nothing came out: no charge, whatever was sent in. A report of output for an answer that is
    /// not there changes nothing; one for an answer without words (it thought until its limit) is
    /// paid for.
    pub fn is_empty(&self) -> bool {
        let reported = self.reported.is_some_and(|usage| usage.output_total() > 0);
        !self.has_output && self.counted_output == 0 && !(reported && self.has_answer)
    }

    /// Whether the report of a whole answer is all that is needed.
    pub fn believes(&self, report: Option<&Usage>) -> bool {
        report.is_some_and(|usage| usage.output_total() > 0 && self.plausible(usage))
    }

    /// Each side by itself: as reported, as far as that can be believed, and never less output than
    /// we counted.
    fn counted(&self) -> Usage {
        let input = self.reported.filter(|usage| self.input_plausible(usage) && usage.input_total() > 0);
        let usage = input.unwrap_or(Usage { input: self.prompt_tokens, ..Usage::default() });
        let counted = self.leaning();
        let output =
            self.reported.filter(|one| one.output_total() <= self.output_limit && one.output_total() >= counted);
        let output = output.unwrap_or(Usage { output: counted, ..Usage::default() });
        Usage {
            output: output.output,
            reasoning: output.reasoning,
            image_output: output.image_output,
            audio_output: output.audio_output,
            ..usage
        }
    }

    /// Our own count, as far as it is not only our leaning high that takes it above the limit.
    fn leaning(&self) -> u64 {
        match self.ceiling {
            Some(ceiling) if self.counted_output <= surely_above(ceiling) => self.counted_output.min(ceiling),
            _ => self.counted_output,
        }
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
            has_answer: true,
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
        assert_eq!(meter(Some(usage(1_001, 90))).measured(), (usage(50, 90), true), "its output may be believed yet");
    }

    #[test]
    fn a_catalog_may_be_behind_its_provider() {
        let files = [("test.toml".to_owned(), "[model.m]\ncontext_window = 1000\nmax_output_tokens = 100\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"p\", upstream_model = \"u\" }]".to_owned())];
        let catalog = tollgate_catalog::load(&files).expect("a catalog");
        let tokens = Tokens::new(catalog.model("m").expect("a model"), 10, 2, false);
        assert_eq!((tokens.input_limit, tokens.output_limit), (1_000, 800));
        assert!(tokens.believes(Some(&usage(1_000, 800))));
        assert!(!tokens.believes(Some(&usage(1_001, 1))) && !tokens.believes(Some(&usage(1, 801))));
        assert!(!tokens.believes(Some(&usage(9, 0))) && !tokens.believes(None), "then it is counted");
    }

    #[test]
    fn our_own_count_is_not_above_the_limit_because_it_leans_high() {
        let counted = |counted_output| {
            let one = Tokens { ceiling: Some(10), counted_output, ..meter(None) };
            one.measured().0.output
        };
        assert_eq!((counted(9), counted(10), counted(11), counted(296)), (9, 10, 10, 10));
        assert_eq!(counted(297), 297, "so far above it is the provider that went on");
    }

    #[test]
    fn what_the_client_did_not_get_was_produced_all_the_same() {
        let mut tokens = meter(Some(usage(10, 90)));
        tokens.only(0);
        assert_eq!(tokens.measured(), (usage(10, 90), false), "hidden reasoning is paid for");
        assert!(!tokens.is_empty());
        let mut unreported = meter(None);
        unreported.only(3);
        assert_eq!(unreported.measured(), (usage(50, 3), true));
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
        let no_choice = Tokens { has_answer: false, ..hidden };
        assert!(no_choice.is_empty(), "whatever the report says, there is no answer");
    }
}
