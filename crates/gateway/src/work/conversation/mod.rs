//! A conversation as work, in whichever of the four dialects its client speaks: what it needs, and
//! how it is sent along a route until its answer begins (`send.rs`) in whichever dialect the
//! route's provider speaks (`target.rs`).
//!
//! Where both speak the same the client's bytes pass; elsewhere the request is translated once,
//! before anything is held, so that a request which cannot be translated costs nothing and leaves
//! nothing.

mod bound;
mod desk;
mod links;
mod long;
mod quirks;
mod reader;
mod send;
pub mod stored;
mod target;

pub use desk::{ConversationCall, ConversationDesk};

use crate::call::{Completion, Meter, Need, OpenCall, OpenEnd, Priced, Tokens};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::work::given;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use links::KnownLinks;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};
use tollgate_catalog::{Face, Model};
use tollgate_dialects::{CheckedRequest, Echo, Hosted, ModelRules, Sent};
use tollgate_store::{CallId, Counters, Side};
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Dropped, Problem};

/// Output tokens reserved for a call that names no limit (docs/money-rules.md R2), so that one such
/// call does not lock a whole balance.
const DEFAULT_OUTPUT: u64 = 16_384;

/// What a provider takes a parameter for when it is not given.
const DEFAULTS: [(&str, &str); 3] = [("service_tier", "auto"), ("n", "1"), ("stream", "false")];

/// The first only where tools run at the provider.
const DEPENDS_ON: &[(Face, &str)] = &[
    (Face::Input, "how often the provider uses its tools, and what they bring"),
    (Face::Input, "prompt tokens as the provider counts them"),
    (Face::Input, "how much of the prompt the provider has cached"),
    (Face::Output, "how many tokens are produced"),
];

/// Headers by which clients of Anthropic's dialect ask for features; a provider of that dialect
/// gets them too.
static PASSED: [HeaderName; 2] =
    [HeaderName::from_static("anthropic-version"), HeaderName::from_static("anthropic-beta")];
const STRICT: HeaderName = HeaderName::from_static("x-tollgate-strict");

/// Makes of a whole answer what its client gets. Nothing: it cannot be used, and the call has
/// failed without a charge.
pub type Reshape = fn(CallId, &[u8]) -> Option<Bytes>;

/// A checked request, and how it is to be answered.
pub struct Conversation {
    pub request: CheckedRequest,
    /// Refuse what would otherwise be left out and reported.
    pub strict: bool,
    /// Gemini: one JSON array instead of events.
    pub array: bool,
    /// The field of a Responses request that names an earlier one, whose items are in `request` by
    /// now.
    pub refers: Option<&'static str>,
    /// What the answer repeats of the request as the client sent it; else it is taken from
    /// `request`.
    pub echo: Option<Echo>,
    /// What is done with the answer before its last byte leaves.
    pub completion: Option<Arc<dyn Completion>>,
    /// What becomes of a whole answer before it goes out.
    pub reshape: Option<Reshape>,
    passed: Vec<(HeaderName, HeaderValue)>,
    /// Translations made so far, by provider and its name for the model.
    translated: Mutex<Vec<(String, String, Arc<Sent>)>>,
    /// Links of the request and what they lead to, looked at for providers that take no links.
    linked: KnownLinks,
    /// Tools that run at some provider of the model, once its routes were looked at.
    hosted: OnceLock<Vec<Hosted>>,
}

impl Conversation {
    pub fn new(request: CheckedRequest, headers: &HeaderMap) -> Conversation {
        let passed = match request.dialect {
            Dialect::Anthropic => {
                let lines =
                    |name: &'static HeaderName| headers.get_all(name).iter().map(|one| (name.clone(), one.clone()));
                PASSED.iter().flat_map(lines).collect()
            }
            _ => Vec::new(),
        };
        Conversation {
            request,
            strict: headers.get(STRICT).is_some_and(|value| value == "true"),
            array: false,
            refers: None,
            echo: None,
            completion: None,
            reshape: None,
            passed,
            translated: Mutex::default(),
            linked: KnownLinks::default(),
            hosted: OnceLock::new(),
        }
    }

    /// The client's request, or the same with the limit that is all that its account can pay for.
    fn asked(&self, call: &OpenCall) -> Result<Cow<'_, CheckedRequest>, Problem> {
        match call.limit {
            None => Ok(Cow::Borrowed(&self.request)),
            Some(most) => self.request.limited(most, call.model.chat.current_chat.unwrap_or(true)).map(Cow::Owned),
        }
    }

    /// The meter that a conversation fills.
    fn metering(&self, model: &Model) -> Meter {
        // What has no price was refused when the call was priced.
        let tools_held = self.tools(model).unwrap_or_default();
        let request = &self.request;
        Meter::Tokens(Tokens {
            tools_held,
            ..Tokens::new(model, request.prompt_tokens, request.choices, request.has_tools)
        })
    }

    /// What the model refuses although its dialect has it.
    fn check_rules(&self, model: &Model) -> Result<(), Refusal> {
        let rules = &model.chat;
        if let Some(field) = self.refers.filter(|_| !rules.state) {
            let text = format!("`{}` does not take `{field}`: send the whole conversation in `input`.", model.name);
            return Err(Refusal::about(Code::UnsupportedValue, field, text));
        }
        if rules.refuses_nothing() {
            return Ok(());
        }
        let rules = ModelRules {
            tools_need_effort: rules.tools_need_effort.as_deref().filter(|_| self.request.dialect == Dialect::Chat),
            refused_tool_choice: &rules.refused_tool_choice,
            named_roles: &rules.named_roles,
            no_prefill: !rules.prefill,
        };
        Ok(self.request.obeys(&rules)?)
    }

    fn check_length(&self, model: &Model) -> Result<(), Refusal> {
        let asked = self.request.prompt_tokens;
        match model.context_window {
            // The estimate leans high, so only what cannot possibly fit is refused here; the
            // provider decides the rest.
            Some(window) if asked / 4 > window => Err(Refusal::about(
                Code::ContextLengthExceeded,
                said_in(self.request.dialect),
                format!("The conversation has about {asked} tokens; `{}` takes at most {window}.", model.name),
            )),
            _ => Ok(()),
        }
    }
}

/// Where a dialect has its conversation.
const fn said_in(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

/// The field that limits the output.
const fn limited_by(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Anthropic => "max_tokens",
        Dialect::Responses => "max_output_tokens",
        Dialect::Gemini => "generationConfig.maxOutputTokens",
    }
}

impl Priced for Conversation {
    fn model(&self) -> &str {
        &self.request.model
    }

    fn endpoint_type(&self) -> &'static str {
        self.request.dialect.word()
    }

    fn fits(&self, fetcher: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.request.given()?.iter().try_for_each(|given| given::outside(&fetcher.client, given))?;
        self.check_routes(fetcher, serving, model)
    }

    fn drops(&self, fetcher: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        self.left_out(fetcher, serving, model)
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        self.check_rules(model)?;
        self.check_length(model)?;
        let request = &self.request;
        let sized_by = limited_by(request.dialect);
        // No answer is longer than all that the model can see at once.
        let limit = model.max_output_tokens.unwrap_or(u64::MAX).min(model.context_window.unwrap_or(u64::MAX));
        let each = request.max_output.unwrap_or(DEFAULT_OUTPUT).min(limit).max(1);
        let output = each.checked_mul(request.choices).ok_or_else(|| {
            Refusal::about(Code::InvalidParameter, sized_by, "This request is too large to be priced.")
        })?;
        let input = self.most_input(model, request)?;
        let ceiling = request.max_output.unwrap_or(u64::MAX).min(limit).max(1).saturating_mul(request.choices);
        Ok(Need {
            context_len: request.prompt_tokens,
            // The estimate leans high, so twice the estimate bounds what a provider can report.
            context_max: longest(request.prompt_tokens, input, model),
            most: Counters { input, output, calls: 1, tools: self.tools(model)?, ..Counters::default() },
            exact: false,
            output_ceiling: ceiling,
            open_end: request
                .max_output
                .is_none()
                .then_some(OpenEnd { choices: request.choices, stream: request.stream }),
            sized_by,
            depends_on: if self.hosted().is_empty() { &DEPENDS_ON[1..] } else { DEPENDS_ON },
        })
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let default = || DEFAULTS.iter().find(|(name, _)| *name == path).map(|(_, value)| Cow::Borrowed(*value));
        // What each dialect writes in its own way has one name for prices.
        let request = &self.request;
        let known = match path {
            "service_tier" => request.service_tier.as_deref().map(Cow::Borrowed),
            "stream" => Some(Cow::Borrowed(if request.stream { "true" } else { "false" })),
            "n" => Some(Cow::Owned(request.choices.to_string())),
            _ => None,
        };
        known.or_else(|| request.attr(path)).or_else(default)
    }

    fn thinking(&self) -> Option<bool> {
        self.request.thinking()
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated.total(Side::Output) == 0 && stated.calls == 0 {
            Counters::default()
        } else {
            Counters { calls: 1, ..stated }
        }
    }
}

/// The longest input that a provider can report: prices go by it. The estimate leans high, so twice
/// the estimate bounds what is made of text.
pub(super) fn longest(estimate: u64, most: u64, model: &Model) -> u64 {
    let once = estimate.saturating_mul(2).min(model.context_window.unwrap_or(u64::MAX));
    once.max(most)
}
