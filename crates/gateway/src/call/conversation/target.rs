//! The request as a route's provider gets it.

use super::Conversation;
use crate::app::Serving;
use crate::refusal::Refusal;
use std::sync::{Arc, PoisonError};
use tollgate_catalog::{Model, Route};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Dropped, Names, Problem, Rules, Sent, Target};

/// Sent to a provider that demands a limit of the output when neither caller nor catalog gives one.
const USUAL_OUTPUT: u64 = 8_192;
/// Switches that only Anthropic has.
const BETA: &str = "anthropic-beta";

impl Conversation {
    /// Can some route of the model take this request? Translated here for the first that can.
    pub(super) fn check_routes(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let mut first = None;
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(dialect) = provider.kind.dialect() else { continue };
            if dialect == self.request.dialect && model.chat.sampling {
                return Ok(());
            }
            match self.sent(model, route, provider, dialect) {
                Ok(_) => return Ok(()),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        first.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// The request for one route, translated once.
    pub(super) fn sent(
        &self,
        model: &Model,
        route: &Route,
        provider: &Provider,
        dialect: Dialect,
    ) -> Result<Arc<Sent>, Problem> {
        let mut translated = self.translated.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&(String, String, Arc<Sent>)| one.0 == provider.name && one.1 == route.upstream_model;
        if let Some((.., sent)) = translated.iter().find(same) {
            return Ok(sent.clone());
        }
        let sent = Arc::new(self.make(model, route, dialect)?);
        translated.push((provider.name.clone(), route.upstream_model.clone(), sent.clone()));
        Ok(sent)
    }

    fn make(&self, model: &Model, route: &Route, dialect: Dialect) -> Result<Sent, Problem> {
        if dialect == self.request.dialect {
            let stripped = if model.chat.sampling { None } else { self.request.without_sampling(self.strict)? };
            return Ok(match stripped {
                Some((request, dropped)) => {
                    Sent { body: request.own_body(&route.upstream_model), dropped, names: Names::default() }
                }
                None => Sent {
                    body: self.request.own_body(&route.upstream_model),
                    dropped: Dropped::default(),
                    names: Names::default(),
                },
            });
        }
        if let (Dialect::Chat, Some(effort)) = (dialect, model.chat.tools_need_effort.as_deref()) {
            // A rule of the provider's chat completions holds whatever our client speaks; a chat client is held to it on every route.
            self.request.obeys(&Rules { tools_need_effort: Some(effort), ..Rules::default() })?;
        }
        let mut sent = self.request.upstream_body(&target(model, route, dialect, self.strict))?;
        if self.passed.iter().any(|(name, _)| name == BETA) {
            if self.strict {
                let message = format!("`{BETA}`: the model is served by a provider that has nothing like this.");
                return Err(Problem { code: Code::UnsupportedValue, param: Some(BETA.to_owned()), message });
            }
            sent.dropped.add(BETA);
        }
        Ok(sent)
    }
}

fn target(model: &Model, route: &Route, dialect: Dialect, strict: bool) -> Target {
    let rules = &model.chat;
    Target {
        strict,
        default_max_output: rules.default_max_output.or(model.max_output_tokens).unwrap_or(USUAL_OUTPUT),
        efforts: model.reasoning_efforts.clone(),
        sampling: rules.sampling,
        adaptive_thinking: rules.adaptive_thinking,
        system_turns: rules.system_turns,
        native_schema: rules.native_schema,
        current_chat: rules.current_chat,
        wants_reasoning_back: rules.wants_reasoning_back,
        gemini3: rules.gemini3,
        ..Target::new(dialect, route.upstream_model.as_str())
    }
}
