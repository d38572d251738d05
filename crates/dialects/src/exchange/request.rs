//! A request in any dialect, checked, with its original bytes and what a call needs to know.

use super::called::by_caller;
use super::facts::RequestFacts;
use crate::chat;
use crate::hub::{Ask, Dropped, Echo, Effort, Target, ToolChoice, ToolNames};
use crate::reads::{self, Modality, Reads};
use crate::{anthropic, gemini, responses};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{self, BrokenJson, Edit, Node, Scan};

/// What the path of a Gemini request says: its body names neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'p> {
    pub model: &'p str,
    /// `:streamGenerateContent`.
    pub stream: bool,
}

/// A checked request and its original bytes.
#[derive(Clone, Debug)]
pub struct CheckedRequest {
    pub dialect: Dialect,
    pub model: String,
    pub stream: bool,
    /// Usage is to be reported to the client: always but in chat, where it must be asked for.
    pub wants_usage: bool,
    /// The caller's limit of the output.
    pub max_output: Option<u64>,
    pub choices: u64,
    /// Estimate of the prompt, leaning high.
    pub prompt_tokens: u64,
    pub service_tier: Option<String>,
    /// Kinds of output that are asked for besides text; their places are offsets in the body.
    pub makes: Vec<(Modality, usize)>,
    /// Names what may run at the provider, which reads the conversation again after each step of
    /// it.
    pub has_tools: bool,
    /// What the provider reads besides the text.
    pub reads: Reads,
    body: Bytes,
    /// Where the model's name stands, if the body has it.
    model_place: Option<Range<usize>>,
    /// Chat: what must be written where so that the provider reports usage of a stream.
    ask_usage: Option<(Range<usize>, &'static str)>,
}

/// A request as a provider gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub body: Bytes,
    /// What the provider does not get.
    pub dropped: Dropped,
    /// Needed to read the answer.
    pub names: ToolNames,
}

impl CheckedRequest {
    /// Reads and checks a body. `path` is what the path says, for Gemini.
    pub fn read(dialect: Dialect, body: Bytes, path: Option<Path<'_>>) -> Result<CheckedRequest, Problem> {
        Self::checked(dialect, body, path, true)
    }

    /// Reads the body of a request to count tokens: `max_tokens` may be missing. Gemini's may wrap
    /// a whole request.
    pub fn read_prompt(dialect: Dialect, body: Bytes, path: Option<Path<'_>>) -> Result<CheckedRequest, Problem> {
        let inner = if dialect == Dialect::Gemini { inner_request(&body) } else { None };
        Self::checked(dialect, inner.unwrap_or(body), path, false)
    }

    fn checked(dialect: Dialect, body: Bytes, path: Option<Path<'_>>, call: bool) -> Result<CheckedRequest, Problem> {
        let facts = RequestFacts::read(dialect, &body, call)?;
        let (model, model_place) = match (path, facts.model) {
            (Some(path), _) if dialect == Dialect::Gemini => (path.model.to_owned(), None),
            (_, Some((model, place))) => (model, Some(place)),
            (_, None) => return Err(Problem::missing("model")),
        };
        let stream = path.map_or(facts.stream, |path| path.stream);
        let chat = dialect == Dialect::Chat;
        Ok(CheckedRequest {
            dialect,
            model,
            stream,
            wants_usage: !chat || facts.wish.asks(),
            ask_usage: if chat && stream { facts.wish.edit(facts.close) } else { None },
            max_output: facts.max_output,
            choices: facts.choices.unwrap_or(1),
            prompt_tokens: facts.estimate.tokens(),
            service_tier: facts.service_tier,
            makes: facts.makes,
            has_tools: facts.has_tools,
            reads: facts.estimate.reads(),
            model_place,
            body,
        })
    }

    /// The body as the client sent it.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The name of a place that [`Reads`] tells.
    pub fn place(&self, at: usize) -> String {
        reads::place(self.body(), at)
    }

    /// Whether the request has this member, and not as null.
    pub fn mentions(&self, member: &str) -> bool {
        let mut found = false;
        let read = Scan::new(self.body()).object(|key, scan| {
            let raw = scan.value()?;
            found |= key.is(member) && raw != b"null";
            Ok::<(), BrokenJson>(())
        });
        read.is_ok() && found
    }

    /// A scalar of the request by dotted path; text without quotes, numbers and booleans as
    /// written.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        json::attr(&self.body, path)
    }

    /// Whether the request asks its model to think, or not to; `None`: it does not say. Besides
    /// what its dialect has, the switches that servers of chat completions take.
    pub fn thinking(&self) -> Option<bool> {
        let text = std::str::from_utf8(self.body()).ok()?;
        let node = Node::read(text).ok()?;
        let asked = self.ask(&node).ok()?.reasoning;
        if asked.is_on() {
            return Some(true);
        }
        let is = |path: &str, on: &str, off: &str| match self.attr(path)?.as_ref() {
            word if word == on => Some(true),
            word if word == off => Some(false),
            _ => None,
        };
        let said = [
            is("enable_thinking", "true", "false"),
            is("chat_template_kwargs.enable_thinking", "true", "false"),
            is("thinking.type", "enabled", "disabled"),
        ];
        let off = (asked.off || asked.effort == Some(Effort::None) || asked.budget == Some(0)).then_some(false);
        // Whoever says both thinks: that is the dearer of the two.
        said.into_iter().flatten().chain(off).reduce(|one, other| one || other)
    }

    /// The client's parameters that a response object repeats; empty in other dialects.
    pub fn echo(&self) -> Echo {
        if self.dialect == Dialect::Responses { Echo::of(self.body()) } else { Echo::default() }
    }

    /// The body to send to a provider.
    ///
    /// In the same dialect every byte but the model's name (and chat's request for usage) is the
    /// client's. Otherwise the request is translated; what has no counterpart is in
    /// [`Sent::dropped`] or refused with its name.
    pub fn upstream_body(&self, target: &Target) -> Result<Sent, Problem> {
        if target.dialect == self.dialect {
            let body = self.own_body(&target.model);
            return Ok(Sent { body, dropped: Dropped::default(), names: ToolNames::default() });
        }
        self.translated(target)
    }

    fn translated(&self, target: &Target) -> Result<Sent, Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let mut ask = self.ask(&node)?;
        few_tools(&ask)?;
        known_effort(&mut ask, target);
        let (body, dropped, names) = match target.dialect {
            Dialect::Chat => chat::ask_out::write(ask, target),
            Dialect::Anthropic => anthropic::ask_out::write(ask, target),
            Dialect::Responses => responses::ask_out::write(ask, target),
            Dialect::Gemini => gemini::ask_out::write(ask, target),
        }
        .map_err(|problem| by_caller(problem, self.dialect))?;
        Ok(Sent { body: Bytes::from(body), dropped, names })
    }

    /// The request in the form in the middle.
    pub(super) fn ask<'n>(&self, node: &'n Node<'n>) -> Result<Ask<'n>, Problem> {
        match self.dialect {
            Dialect::Chat => chat::ask_in::read(node),
            Dialect::Anthropic => anthropic::ask_in::read(node),
            Dialect::Responses => responses::ask_in::read(node),
            Dialect::Gemini => gemini::ask_in::read(node, self.stream),
        }
    }

    /// The same request with another body.
    pub(super) fn again(&self, body: Bytes) -> Result<CheckedRequest, Problem> {
        let path = Path { model: &self.model, stream: self.stream };
        Self::read(self.dialect, body, (self.dialect == Dialect::Gemini).then_some(path))
    }

    /// The body for a provider of the caller's own dialect: every byte is the client's but the
    /// model's name and, in chat, the request for usage.
    pub fn own_body(&self, model: &str) -> Bytes {
        let name = (self.model != model).then(|| json::quoted(model));
        let name = self.model_place.clone().zip(name.as_deref());
        let usage = self.ask_usage.as_ref().map(|(place, text)| (place.clone(), text.as_bytes()));
        let edits: &[Edit<'_>] = match (name, usage) {
            (None, None) => return self.body.clone(),
            (Some(one), None) | (None, Some(one)) => &[one],
            (Some(name), Some(usage)) if name.0.start < usage.0.start => &[name, usage],
            (Some(name), Some(usage)) => &[usage, name],
        };
        Bytes::from(json::splice(&self.body, edits))
    }
}

/// More tools than any provider takes would only make work.
const MOST_TOOLS: usize = 1_024;

fn few_tools(ask: &Ask<'_>) -> Result<(), Problem> {
    let chosen = match &ask.choice {
        Some(ToolChoice::Allowed { names, .. }) => names.len(),
        _ => 0,
    };
    if ask.tools.len().max(chosen) > MOST_TOOLS {
        return Err(Problem::wrong("tools", "a list of at most 1024 tools"));
    }
    Ok(())
}

/// An effort that the model does not know becomes the nearest it does. To think not at all is asked
/// for where it can be.
fn known_effort(ask: &mut Ask<'_>, target: &Target) {
    if !target.thinks && ask.reasoning.off && matches!(target.dialect, Dialect::Chat | Dialect::Responses) {
        // It does not anyway, and would refuse the field.
        ask.reasoning.effort = None;
    }
    let known: Vec<Effort> = target.efforts.iter().filter_map(|word| Effort::of(word)).collect();
    let by_effort = match target.dialect {
        Dialect::Chat | Dialect::Responses => true,
        Dialect::Anthropic => target.adaptive_thinking,
        Dialect::Gemini => target.gemini3,
    };
    if known.is_empty() || !by_effort {
        return;
    }
    let asked = &mut ask.reasoning;
    let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
    asked.effort = match effort {
        Some(Effort::None) if target.dialect != Dialect::Gemini && !known.contains(&Effort::None) => {
            asked.budget = None;
            None
        }
        effort => effort.map(|effort| effort.nearest(&known)),
    };
}

/// `generateContentRequest` of a countTokens body.
fn inner_request(body: &Bytes) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let node = Node::read(text).ok()?;
    let inner = node.either("generateContentRequest", "generate_content_request")?;
    Some(body.slice(inner.place_in(text)))
}
