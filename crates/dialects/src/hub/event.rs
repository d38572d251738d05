//! What happens in an answer, in order. A stream is read as these, and so is a whole reply.

use super::part::CallKind;
use super::rest::Rest;
use super::seal::Seal;
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::{Node, Object};
use tollgate_wire::usage::UsageReport;

/// Takes events as they are read.
pub(crate) type Sink<'s> = dyn FnMut(Event<'_>) + 's;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event<'a> {
    /// The provider began; only the first one counts.
    Start {
        id: Cow<'a, str>,
        model: Cow<'a, str>,
    },
    Text {
        choice: u32,
        text: Cow<'a, str>,
    },
    /// The text before this and the text after it are two blocks.
    TextEnd {
        choice: u32,
    },
    Refusal {
        choice: u32,
        text: Cow<'a, str>,
    },
    Thought {
        choice: u32,
        text: Cow<'a, str>,
        summary: bool,
    },
    /// Ends the thought that is open, or is a sealed one without text.
    ThoughtEnd {
        choice: u32,
        seal: Option<Seal<'a>>,
        redacted: bool,
    },
    /// `call` numbers the calls of a choice from 0.
    CallOpen {
        choice: u32,
        call: u32,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        namespace: Option<Cow<'a, str>>,
        kind: CallKind,
    },
    CallArgs {
        choice: u32,
        call: u32,
        text: Cow<'a, str>,
    },
    /// The call is whole. Chat does not say so: there the finish ends all.
    CallClose {
        choice: u32,
        call: u32,
    },
    Cite {
        choice: u32,
        citation: Citation<'a>,
    },
    /// One chunk's `logprobs.content` entries as chat writes them.
    Logprobs {
        choice: u32,
        raw: Cow<'a, str>,
    },
    Image {
        choice: u32,
        mime: Cow<'a, str>,
        base64: Cow<'a, str>,
    },
    /// Sound as chat's `audio` object.
    Audio {
        choice: u32,
        raw: Cow<'a, str>,
    },
    /// A search that the provider made on its own.
    Search {
        choice: u32,
        query: Cow<'a, str>,
    },
    /// A block only its own dialect knows.
    Foreign {
        choice: u32,
        origin: Dialect,
        what: Cow<'a, str>,
        raw: Cow<'a, str>,
    },
    /// Something about the answer that no other dialect has a word for; it is no output.
    Lost {
        what: Cow<'a, str>,
    },
    /// A whole reply or a streamed event of the provider's, for what is in it that the events
    /// before this one do not say.
    Rest(Rest<'a>),
    Usage(Box<UsageReport>),
    /// How often the provider searched the web, as it counts that, and its name for the number.
    Searches {
        what: &'static str,
        count: u64,
    },
    /// The tier that served the call.
    Tier(Cow<'a, str>),
    Finish {
        choice: u32,
        finish: Finish<'a>,
    },
    Ping,
    Fail(Box<UpstreamError>),
    /// The provider's own mark that nothing more follows.
    End,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Sequence,
    Length,
    /// The context window is full.
    Context,
    Tools,
    Filter,
    /// A long turn is to be continued.
    Pause,
    /// The model wrote a call that cannot be read.
    Malformed,
}

impl Stop {
    /// The answer ended where the model had not: the call it was writing may be half a call.
    pub fn cuts(self) -> bool {
        matches!(self, Stop::Length | Stop::Context | Stop::Filter)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finish<'a> {
    pub stop: Stop,
    /// Whose word it is.
    pub from: Dialect,
    /// The provider's own word.
    pub native: Cow<'a, str>,
    /// The stop sequence that was met.
    pub sequence: Option<Cow<'a, str>>,
    /// What the provider says about a refusal.
    pub details: Option<Details<'a>>,
}

/// Why an answer was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details<'a> {
    pub category: Option<Cow<'a, str>>,
    pub explanation: Option<Cow<'a, str>>,
}

impl<'a> Details<'a> {
    /// Anthropic's `stop_details`, which chat carries as it is.
    pub fn read(node: &Node<'a>) -> Option<Details<'a>> {
        let details = node.get("stop_details")?;
        let text = |name| details.text_of(name).cloned();
        Some(Details { category: text("category"), explanation: text("explanation") })
    }

    pub fn write(&self, object: &mut Object<'_>) {
        object.object("stop_details", |details| {
            details.text("type", "refusal");
            details.or_null("category", self.category.as_deref());
            details.or_null("explanation", self.explanation.as_deref());
        });
    }
}

fn owned(text: &Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
    text.as_deref().map(|text| Cow::Owned(text.to_owned()))
}

impl<'a> Finish<'a> {
    pub fn new(from: Dialect, stop: Stop, native: Cow<'a, str>) -> Self {
        Finish { stop, from, native, sequence: None, details: None }
    }
}

impl Finish<'_> {
    pub fn owned(&self) -> Finish<'static> {
        Finish {
            stop: self.stop,
            from: self.from,
            native: Cow::Owned(self.native.to_string()),
            sequence: owned(&self.sequence),
            details: self.details.as_ref().map(|details| Details {
                category: owned(&details.category),
                explanation: owned(&details.explanation),
            }),
        }
    }

    /// The provider's word, for a client of its own dialect.
    pub fn own(&self, dialect: Dialect) -> Option<&str> {
        (self.from == dialect && !self.native.is_empty()).then_some(&self.native)
    }

    /// The reason of the stop for dialects in which a refusal is one: OpenAI's have words for what
    /// was refused, and end as usual.
    pub fn stop_of(finish: Option<&Finish<'_>>, calls: bool, refused: bool) -> Stop {
        match finish.map_or(if calls { Stop::Tools } else { Stop::End }, |finish| finish.stop) {
            Stop::End | Stop::Sequence if refused => Stop::Filter,
            stop => stop,
        }
    }

    /// An answer that contains a call ends with the call, whatever the provider says, unless it was
    /// cut.
    pub fn with_calls(self, calls: bool) -> Self {
        if calls && matches!(self.stop, Stop::End | Stop::Sequence) {
            Finish { stop: Stop::Tools, ..self }
        } else {
            self
        }
    }
}

/// Where a statement comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Citation<'a> {
    /// `from` and `to` count characters of all that the choice says (`places.rs`).
    Url {
        url: Cow<'a, str>,
        title: Cow<'a, str>,
        from: Option<u64>,
        to: Option<u64>,
        quote: Cow<'a, str>,
        /// By which Anthropic finds the place again, and nobody else.
        index: Cow<'a, str>,
    },
    /// A place in a document and the like, as its dialect writes it; where in the answer it
    /// belongs, if that is known.
    Foreign { origin: Dialect, raw: Cow<'a, str>, place: Option<(u64, u64)> },
}

impl Citation<'_> {
    /// The same with its places counted from elsewhere.
    pub fn moved(mut self, count: impl Fn(u64) -> u64) -> Self {
        if let Citation::Url { from, to, .. } = &mut self {
            (*from, *to) = (from.map(&count), to.map(&count));
        }
        self
    }

    /// The same at a place.
    pub fn at(mut self, start: u64, end: u64) -> Self {
        match &mut self {
            Citation::Url { from, to, .. } => (*from, *to) = (Some(start), Some(end)),
            Citation::Foreign { place, .. } => *place = Some((start, end)),
        }
        self
    }

    /// How much there is to keep.
    pub fn size(&self) -> usize {
        match self {
            Citation::Url { url, title, quote, index, .. } => url.len() + title.len() + quote.len() + index.len(),
            Citation::Foreign { raw, .. } => raw.len(),
        }
    }

    pub fn owned(&self) -> Citation<'static> {
        let own = |text: &Cow<'_, str>| Cow::Owned(text.to_string());
        match self {
            Citation::Url { url, title, from, to, quote, index } => Citation::Url {
                url: own(url),
                title: own(title),
                from: *from,
                to: *to,
                quote: own(quote),
                index: own(index),
            },
            Citation::Foreign { origin, raw, place } => {
                Citation::Foreign { origin: *origin, raw: own(raw), place: *place }
            }
        }
    }
}
