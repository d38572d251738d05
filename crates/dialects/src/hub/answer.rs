//! A whole answer, gathered from its events.

use super::event::{Citation, Event, Finish};
use super::part::{Thought, ToolCall};
use super::seal::Seal;
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::usage::{Usage, UsageReport};

/// One block of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OutputBlock {
    Text {
        text: String,
        cites: Vec<Citation<'static>>,
    },
    Refusal(String),
    Thought(Thought<'static>),
    Call(ToolCall<'static>),
    Image {
        mime: String,
        base64: String,
    },
    Audio(String),
    /// What was searched for.
    Search(String),
    Foreign {
        origin: Dialect,
        what: String,
        raw: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub outputs: Vec<OutputBlock>,
    pub finish: Option<Finish<'static>>,
    /// Entries of chat's `logprobs.content`, each as JSON.
    pub logprobs: Vec<String>,
    /// Calls that were cut in the middle of their arguments: places among the outputs.
    pub cut: Vec<usize>,
}

impl Choice {
    /// The model itself refused.
    pub fn is_refused(&self) -> bool {
        self.outputs.iter().any(|output| matches!(output, OutputBlock::Refusal(_)))
    }

    pub fn has_calls(&self) -> bool {
        self.outputs.iter().any(|output| matches!(output, OutputBlock::Call(_)))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub id: String,
    pub model: String,
    pub choices: Vec<Choice>,
    pub usage: Option<Usage>,
    pub tier: Option<String>,
    /// How often the web was searched, where that is counted.
    pub searches: u64,
    pub error: Option<UpstreamError>,
}

/// Gathers events into an answer.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    pub answer: Answer,
    report: Option<UsageReport>,
    /// Per choice: the text block is closed, the thought is closed.
    open: Vec<Open>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    text: bool,
    thought: bool,
    /// Calls by number: their place among the outputs.
    calls: Vec<usize>,
    closed: Vec<u32>,
}

/// More choices than anybody may ask for are not gathered.
const MOST_CHOICES: u32 = 128;

impl Gather {
    fn choice(&mut self, choice: u32) -> Option<(&mut Choice, &mut Open)> {
        if choice >= MOST_CHOICES {
            return None;
        }
        let at = choice as usize;
        if self.answer.choices.len() <= at {
            self.answer.choices.resize_with(at + 1, Choice::default);
            self.open.resize_with(at + 1, Open::default);
        }
        Some((&mut self.answer.choices[at], &mut self.open[at]))
    }

    pub fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { id, model } if self.answer.id.is_empty() => {
                self.answer.id = id.to_string();
                self.answer.model = model.to_string();
            }
            Event::Usage(report) => {
                let known = self.report.get_or_insert(**report);
                known.merge(report);
                self.answer.usage = known.usage();
            }
            Event::Tier(tier) => self.answer.tier = Some(tier.to_string()),
            Event::Searches { count, .. } => self.answer.searches = *count,
            Event::Fail(error) => self.answer.error = Some((**error).clone()),
            Event::Start { .. } | Event::Ping | Event::End => {}
            other => self.block(other),
        }
    }

    fn block(&mut self, event: &Event<'_>) {
        let Some((choice, open)) = event.choice().and_then(|at| self.choice(at)) else { return };
        let outputs = &mut choice.outputs;
        match event {
            Event::Text { text, .. } => {
                open.thought = false;
                match outputs.last_mut() {
                    Some(OutputBlock::Text { text: old, .. }) if open.text => old.push_str(text),
                    _ if text.is_empty() => {}
                    _ => {
                        outputs.push(OutputBlock::Text { text: text.to_string(), cites: Vec::new() });
                        open.text = true;
                    }
                }
            }
            Event::TextEnd { .. } => open.text = false,
            Event::Refusal { text, .. } => match outputs.last_mut() {
                Some(OutputBlock::Refusal(old)) => old.push_str(text),
                _ if text.is_empty() => {}
                _ => outputs.push(OutputBlock::Refusal(text.to_string())),
            },
            Event::Thought { text, summary, .. } => match outputs.last_mut() {
                Some(OutputBlock::Thought(old)) if open.thought => old.text.to_mut().push_str(text),
                _ if text.is_empty() => {}
                _ => {
                    let text = Cow::Owned(text.to_string());
                    outputs.push(OutputBlock::Thought(Thought { text, summary: *summary, ..Thought::default() }));
                    open.thought = true;
                }
            },
            Event::ThoughtEnd { seal, redacted, .. } => {
                let seal = seal.as_ref().map(owned_seal);
                match outputs.last_mut() {
                    Some(OutputBlock::Thought(old)) if open.thought => (old.seal, old.redacted) = (seal, *redacted),
                    _ if seal.is_some() => {
                        outputs.push(OutputBlock::Thought(Thought { seal, redacted: *redacted, ..Thought::default() }));
                    }
                    _ => {}
                }
                open.thought = false;
            }
            Event::CallOpen { call, id, name, namespace, kind, .. } if *call as usize == open.calls.len() => {
                open.calls.push(outputs.len());
                outputs.push(OutputBlock::Call(ToolCall {
                    id: Cow::Owned(id.to_string()),
                    name: Cow::Owned(name.to_string()),
                    namespace: namespace.as_deref().map(|n| Cow::Owned(n.to_owned())),
                    kind: *kind,
                    args: Cow::Owned(String::new()),
                    cached: false,
                    rest: Vec::new(),
                }));
            }
            Event::CallArgs { call, text, .. } => {
                let at = open.calls.get(*call as usize).copied();
                if let Some(OutputBlock::Call(call)) = at.and_then(|at| outputs.get_mut(at)) {
                    call.args.to_mut().push_str(text);
                }
            }
            Event::Cite { citation, .. } => {
                let last = outputs.iter_mut().rev().find_map(|output| match output {
                    OutputBlock::Text { cites, .. } => Some(cites),
                    _ => None,
                });
                match last {
                    Some(cites) => cites.push(citation.owned()),
                    None => outputs.push(OutputBlock::Text { text: String::new(), cites: vec![citation.owned()] }),
                }
            }
            Event::Logprobs { raw, .. } => choice.logprobs.push(raw.to_string()),
            Event::Image { mime, base64, .. } => {
                outputs.push(OutputBlock::Image { mime: mime.to_string(), base64: base64.to_string() });
            }
            Event::Audio { raw, .. } => outputs.push(OutputBlock::Audio(raw.to_string())),
            Event::Search { query, .. } => {
                (open.text, open.thought) = (false, false);
                outputs.push(OutputBlock::Search(query.to_string()));
            }
            Event::Foreign { origin, what, raw, .. } => {
                outputs.push(OutputBlock::Foreign { origin: *origin, what: what.to_string(), raw: raw.to_string() });
            }
            Event::CallClose { call, .. } => open.closed.push(*call),
            Event::Finish { finish, .. } => {
                let calls = open.calls.iter().enumerate();
                let cut = calls.filter(|(call, _)| !open.closed.contains(&(*call as u32)));
                choice.cut = cut.map(|(_, place)| *place).collect();
                choice.finish = Some(finish.owned());
            }
            _ => {}
        }
    }
}

pub(crate) fn owned_seal(seal: &Seal<'_>) -> Seal<'static> {
    Seal::new(seal.origin, seal.data.to_string(), seal.bound.to_string())
}

impl Event<'_> {
    /// The choice it belongs to.
    pub fn choice(&self) -> Option<u32> {
        match self {
            Event::Text { choice, .. }
            | Event::TextEnd { choice }
            | Event::Refusal { choice, .. }
            | Event::Thought { choice, .. }
            | Event::ThoughtEnd { choice, .. }
            | Event::CallOpen { choice, .. }
            | Event::CallArgs { choice, .. }
            | Event::CallClose { choice, .. }
            | Event::Cite { choice, .. }
            | Event::Logprobs { choice, .. }
            | Event::Image { choice, .. }
            | Event::Audio { choice, .. }
            | Event::Search { choice, .. }
            | Event::Foreign { choice, .. }
            | Event::Finish { choice, .. } => Some(*choice),
            _ => None,
        }
    }
}
