//! Turns of a conversation and their parts.

use super::Seal;
use super::ask::Member;
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
}

impl Role {
    /// System text under either name.
    pub fn is_system(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

/// One turn. Tool results live in user turns.
#[derive(Clone, Debug)]
pub(crate) struct Turn<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
    pub name: Option<Cow<'a, str>>,
    /// Responses: `commentary` or `final_answer`.
    pub phase: Option<Cow<'a, str>>,
    pub rest: Vec<Member<'a>>,
    /// Where it stood in the request, for refusals.
    pub at: String,
}

impl<'a> Turn<'a> {
    pub fn new(role: Role, parts: Vec<Part<'a>>, at: String) -> Self {
        Turn { role, parts, name: None, phase: None, rest: Vec::new(), at }
    }

    pub fn calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Where the bytes of a picture, a sound or a file are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MediaSource<'a> {
    Data {
        mime: Cow<'a, str>,
        base64: Cow<'a, str>,
    },
    Url(Cow<'a, str>),
    /// Known to one provider only.
    Id(Cow<'a, str>),
    /// A text file as plain text.
    Text(Cow<'a, str>),
}

/// A picture, sound, clip or file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Media<'a> {
    pub place: MediaSource<'a>,
    pub name: Option<Cow<'a, str>>,
    /// A picture's `detail`.
    pub detail: Option<Cow<'a, str>>,
    pub cached: bool,
    pub rest: Vec<Member<'a>>,
}

impl<'a> Media<'a> {
    pub fn at(place: MediaSource<'a>) -> Self {
        Media { place, name: None, detail: None, cached: false, rest: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Function,
    /// Free text instead of JSON arguments.
    Custom,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCall<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub namespace: Option<Cow<'a, str>>,
    pub kind: CallKind,
    /// The exact text of the arguments, or of the free input.
    pub args: Cow<'a, str>,
    pub cached: bool,
    pub rest: Vec<Member<'a>>,
}

/// What a model thought, visible or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thought<'a> {
    pub text: Cow<'a, str>,
    /// The text is a summary, not the thought itself.
    pub summary: bool,
    /// What only its maker can read, and proof that it was not changed.
    pub seal: Option<Seal<'a>>,
    /// Nothing of it may be seen (Anthropic's redacted thinking).
    pub redacted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        cached: bool,
        rest: Vec<Member<'a>>,
    },
    Refusal {
        text: Cow<'a, str>,
        rest: Vec<Member<'a>>,
    },
    Image(Media<'a>),
    Audio(Media<'a>),
    Video(Media<'a>),
    File(Media<'a>),
    Call(ToolCall<'a>),
    Result {
        id: Cow<'a, str>,
        name: Option<Cow<'a, str>>,
        parts: Vec<Part<'a>>,
        error: bool,
        kind: CallKind,
        cached: bool,
        rest: Vec<Member<'a>>,
    },
    Thought {
        thought: Thought<'a>,
        rest: Vec<Member<'a>>,
    },
    /// Something only its own dialect knows: server-side tools and the like.
    Foreign {
        origin: Dialect,
        what: Cow<'a, str>,
        raw: &'a str,
        /// The same in words, where that says enough for others, and what the words leave out.
        words: Option<String>,
        rest: Vec<Member<'a>>,
    },
}

impl<'a> Part<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Part::Text { text: text.into(), cached: false, rest: Vec::new() }
    }

    pub fn thought(thought: Thought<'a>) -> Self {
        Part::Thought { thought, rest: Vec::new() }
    }

    /// Something that others cannot be given in words.
    pub fn foreign(origin: Dialect, what: Cow<'a, str>, raw: &'a str) -> Self {
        Part::Foreign { origin, what, raw, words: None, rest: Vec::new() }
    }

    /// The text of a system turn that stands beside the conversation, and its cache mark. Nothing
    /// else can stand there.
    pub fn system_text(&self, at: &str) -> Result<(&str, bool), Problem> {
        match self {
            Part::Text { text, cached, .. } => Ok((text, *cached)),
            Part::Refusal { text, .. } => Ok((text, false)),
            Part::Foreign { words: Some(words), .. } => Ok((words, false)),
            _ => Err(Problem::unsupported(at, "The model's provider takes nothing but text from the system.")),
        }
    }

    /// Forgets its cache mark, and those inside it.
    pub fn clear_cache_marks(&mut self) {
        let (cached, rest) = match self {
            Part::Text { cached, rest, .. } => (cached, rest),
            Part::Result { cached, parts, rest, .. } => {
                parts.iter_mut().for_each(Part::clear_cache_marks);
                (cached, rest)
            }
            Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
                (&mut media.cached, &mut media.rest)
            }
            Part::Call(call) => (&mut call.cached, &mut call.rest),
            Part::Refusal { .. } | Part::Thought { .. } | Part::Foreign { .. } => return,
        };
        if std::mem::take(cached) {
            rest.retain(|member| !matches!(member.name.as_ref(), "cache_control" | "prompt_cache_breakpoint"));
        }
    }
}
