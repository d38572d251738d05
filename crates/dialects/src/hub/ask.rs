//! A request in the form in the middle.

use super::part::{Part, Turn};
use super::{Effort, Fields};
use std::borrow::Cow;
use tollgate_wire::Dialect;

/// A member with no place of its own in the hub, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member<'a> {
    /// The object it stood in, seen from the one that keeps it; empty for that one itself.
    pub place: &'static str,
    pub name: Cow<'a, str>,
    /// Its value.
    pub raw: &'a str,
}

impl<'a> Member<'a> {
    /// What it is called when it is reported or refused.
    pub fn path(&self) -> Cow<'_, str> {
        match (self.place, self.name.as_ref()) {
            ("", name) => Cow::Borrowed(name),
            (place, "") => Cow::Borrowed(place),
            (place, name) => Cow::Owned(format!("{place}.{name}")),
        }
    }
}

/// A request. Numbers that only pass through keep the text they were written in.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub origin: Dialect,
    pub stream: bool,
    pub turns: Vec<Turn<'a>>,
    pub max_output: Option<u64>,
    /// Chat: the limit was given as `max_tokens`.
    pub old_limit: bool,
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
    pub format: Option<OutputFormat<'a>>,
    pub verbosity: Option<Cow<'a, str>>,
    pub tools: Vec<Tool<'a>>,
    /// What is left of Responses' namespaces and Gemini's objects of tools.
    pub groups_rest: Vec<Member<'a>>,
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
            old_limit: false,
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
            groups_rest: Vec::new(),
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

impl Ask<'_> {
    /// Forgets every cache mark.
    pub fn clear_cache_marks(&mut self) {
        self.cache_all = false;
        self.tools.iter_mut().for_each(|tool| tool.cached = false);
        self.turns.iter_mut().flat_map(|turn| &mut turn.parts).for_each(Part::clear_cache_marks);
    }

    /// The one tool that must be called is the provider's search.
    pub fn chooses_search(&self) -> bool {
        let Some(ToolChoice::Named(name)) = &self.choice else { return false };
        self.tools.iter().any(|tool| tool.name == *name && matches!(tool.kind, ToolKind::WebSearch))
    }
}

/// How much to think, and what of it to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reasoning<'a> {
    pub effort: Option<Effort>,
    /// Thinking was switched off, which is the effort `none` to others.
    pub off: bool,
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
pub(crate) enum OutputFormat<'a> {
    Text,
    Json,
    Schema {
        name: Option<Cow<'a, str>>,
        description: Option<Cow<'a, str>>,
        schema: Option<Cow<'a, str>>,
        strict: Option<bool>,
    },
}

impl<'a> OutputFormat<'a> {
    /// A schema with its name, as both of OpenAI's dialects put it.
    pub fn schema(fields: &mut Fields<'_, 'a>) -> Self {
        OutputFormat::Schema {
            name: fields.text("name"),
            description: fields.text("description"),
            schema: fields.raw("schema").map(Cow::Borrowed),
            strict: fields.bool("strict"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolKind<'a> {
    /// With the JSON Schema of its arguments.
    Function { schema: Option<Cow<'a, str>>, strict: Option<bool> },
    /// Free text, with its `format`.
    Custom { format: Option<&'a str> },
    /// A search of the provider's own.
    WebSearch,
    /// Runs at one provider only; as it was written.
    Hosted(&'a str),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool<'a> {
    pub name: Cow<'a, str>,
    pub namespace: Option<Cow<'a, str>>,
    pub description: Option<Cow<'a, str>>,
    pub kind: ToolKind<'a>,
    pub cached: bool,
    /// Chat: declared in `functions`.
    pub old: bool,
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
    Foreign,
}
