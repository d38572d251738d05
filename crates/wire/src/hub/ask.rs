//! A request in the form in the middle.

use super::Effort;
use super::part::Turn;
use crate::dialect::Dialect;
use crate::json::Node;
use std::borrow::Cow;

/// A member with no place of its own in the hub, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member<'a> {
    pub name: Cow<'a, str>,
    pub raw: &'a str,
}

/// A request. Numbers that only pass through keep the text they were written in.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub origin: Dialect,
    pub stream: bool,
    pub turns: Vec<Turn<'a>>,
    pub max_output: Option<u64>,
    pub temperature: Option<&'a str>,
    pub top_p: Option<&'a str>,
    pub top_k: Option<&'a str>,
    pub frequency_penalty: Option<&'a str>,
    pub presence_penalty: Option<&'a str>,
    pub seed: Option<&'a str>,
    pub stop: Vec<Cow<'a, str>>,
    pub n: Option<u64>,
    pub logprobs: bool,
    pub top_logprobs: Option<u64>,
    pub reasoning: Reasoning<'a>,
    pub format: Option<Format<'a>>,
    pub verbosity: Option<Cow<'a, str>>,
    pub tools: Vec<Tool<'a>>,
    pub choice: Option<ToolChoice<'a>>,
    pub parallel: Option<bool>,
    pub cache_key: Option<Cow<'a, str>>,
    /// Anthropic's mark on the whole request: cache up to the last part that can be.
    pub cache_all: bool,
    pub tier: Option<Cow<'a, str>>,
    pub user: Option<Cow<'a, str>>,
    pub metadata: Option<&'a str>,
    pub rest: Vec<Member<'a>>,
}

impl<'a> Ask<'a> {
    pub fn new(origin: Dialect) -> Self {
        Ask {
            origin,
            stream: false,
            turns: Vec::new(),
            max_output: None,
            temperature: None,
            top_p: None,
            top_k: None,
            frequency_penalty: None,
            presence_penalty: None,
            seed: None,
            stop: Vec::new(),
            n: None,
            logprobs: false,
            top_logprobs: None,
            reasoning: Reasoning::default(),
            format: None,
            verbosity: None,
            tools: Vec::new(),
            choice: None,
            parallel: None,
            cache_key: None,
            cache_all: false,
            tier: None,
            user: None,
            metadata: None,
            rest: Vec::new(),
        }
    }
}

impl<'a> Ask<'a> {
    /// Takes over an effort; a word that only its own model knows is left over, to be told or refused.
    pub fn take_effort(&mut self, field: &'static str, word: Option<&Node<'a>>) {
        let Some(word) = word.filter(|word| !word.is_null()) else { return };
        match word.text().and_then(|word| Effort::of(word)) {
            Some(effort) => self.reasoning.effort = Some(effort),
            None => self.rest.push(Member { name: Cow::Borrowed(field), raw: word.raw }),
        }
    }
}

/// How much to think, and what of it to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reasoning<'a> {
    pub effort: Option<Effort>,
    /// A budget in tokens.
    pub budget: Option<u64>,
    /// The model decides for itself how much.
    pub adaptive: bool,
    /// Whether thoughts are shown: `Some(false)` asks to hide them.
    pub shown: Option<bool>,
    /// Responses: `auto`, `concise` or `detailed`.
    pub summary: Option<Cow<'a, str>>,
}

impl Reasoning<'_> {
    /// Thinking is asked for.
    pub fn is_on(&self) -> bool {
        self.adaptive || self.budget.is_some_and(|b| b > 0) || self.effort.is_some_and(|e| e != Effort::None)
    }
}

/// The form of the output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Format<'a> {
    Text,
    Json,
    Schema { name: Option<Cow<'a, str>>, description: Option<Cow<'a, str>>, schema: Cow<'a, str>, strict: Option<bool> },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolKind<'a> {
    /// With the JSON Schema of its arguments.
    Function { schema: Option<Cow<'a, str>>, strict: Option<bool> },
    /// Free text, with its `format`.
    Custom { format: Option<&'a str> },
    /// A search of the provider's own.
    WebSearch,
    /// Runs at one provider only.
    Hosted,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool<'a> {
    pub name: Cow<'a, str>,
    pub namespace: Option<Cow<'a, str>>,
    pub description: Option<Cow<'a, str>>,
    pub kind: ToolKind<'a>,
    pub cached: bool,
    /// Where it stood in the request, for refusals.
    pub at: String,
    pub rest: Vec<Member<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolChoice<'a> {
    None,
    Auto,
    Required,
    Named(Cow<'a, str>),
    /// One of these, or (not `required`) none.
    Allowed {
        names: Vec<Cow<'a, str>>,
        required: bool,
    },
    /// A form only its own dialect knows.
    Foreign(&'a str),
}
