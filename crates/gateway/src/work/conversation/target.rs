//! The request as a route's provider gets it.

use super::{Conversation, quirks};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::work::priced_fields::priced_is_sent;
use bytes::Bytes;
use std::sync::{Arc, PoisonError};
use tollgate_catalog::{Model, Route};
use tollgate_dialects::responses::without_storing;
use tollgate_dialects::{
    CheckedRequest, Dropped, Hosted, ModelRules, SealNeeds, Sent, Target, ToolNames, hosted_names, limit_uses,
    own_seals,
};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Problem};

/// Sent to a provider that demands a limit of the output when neither caller nor catalog gives one.
const USUAL_OUTPUT: u64 = 8_192;
/// Switches that only Anthropic has.
pub(super) const BETA: &str = "anthropic-beta";

impl Conversation {
    /// Can some route of the model take this request? Translated here for the first that can.
    pub(super) fn check_routes(&self, fetcher: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let mut first = None;
        let mut taken = false;
        // What the provider of each route gets of the tools that would run there, and the longest
        // list of them.
        let mut hosted: Vec<Hosted> = Vec::new();
        let runs = !self.request.reads.hosted.is_empty();
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(dialect) = provider.kind.chat.map(|chat| chat.dialect()) else { continue };
            match self.would_send(fetcher, model, route, provider, dialect) {
                Ok(_) if !runs => return Ok(()),
                Ok(sent) => {
                    taken = true;
                    let there = self.runs_there(dialect, sent.map(|sent| sent.body.clone()));
                    if there.len() > hosted.len() {
                        hosted = there;
                    }
                }
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        if taken {
            let _ = self.hosted.set(hosted);
            return Ok(());
        }
        first.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// What a route's provider gets, before any link is fetched; `None`: all of it as it came.
    fn would_send(
        &self,
        fetcher: &Fetcher,
        model: &Model,
        route: &Route,
        provider: &Provider,
        dialect: Dialect,
    ) -> Result<Option<Arc<Sent>>, Problem> {
        if self.wants_data(provider, dialect) {
            let request = self.check_links(fetcher, provider, dialect)?;
            return Ok(Some(Arc::new(self.make(&request, model, route, provider)?)));
        }
        let same = dialect == self.request.dialect;
        if same && model.chat.sampling && !self.strict && !quirks::has_any(model, provider) {
            return Ok(None);
        }
        self.sent(model, route, provider).map(Some)
    }

    /// What some route that takes the request would leave out of it.
    pub(super) fn left_out(&self, fetcher: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(dialect) = provider.kind.chat.map(|chat| chat.dialect()) else { continue };
            if let Ok(Some(sent)) = self.would_send(fetcher, model, route, provider, dialect) {
                dropped.extend(&sent.dropped);
            }
        }
        dropped
    }

    /// The request's tools that run at a provider of this dialect. Named by their places in the
    /// client's own body.
    fn runs_there(&self, dialect: Dialect, sent: Option<Bytes>) -> Vec<Hosted> {
        let own = &self.request.reads.hosted;
        let (true, Some(sent)) = (dialect != self.request.dialect, sent) else { return own.clone() };
        let names = hosted_names(dialect, &sent);
        own.iter().filter(|tool| names.contains(&tool.name)).cloned().collect()
    }

    /// The request for one route, translated once.
    pub(super) fn sent(&self, model: &Model, route: &Route, provider: &Provider) -> Result<Arc<Sent>, Problem> {
        let mut translated = self.translated.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&(String, String, Arc<Sent>)| one.0 == provider.name && one.1 == route.upstream_model;
        if let Some((.., sent)) = translated.iter().find(same) {
            return Ok(sent.clone());
        }
        let sent = Arc::new(self.make(&self.request, model, route, provider)?);
        translated.push((provider.name.clone(), route.upstream_model.clone(), sent.clone()));
        Ok(sent)
    }

    /// The body for a provider of the client's own dialect. What the gateway keeps of a
    /// conversation it can erase; a provider that stored it too would go on having it, so it is
    /// asked not to. Nor is it shown as its own what another maker thought.
    pub(super) fn own(
        &self,
        request: &CheckedRequest,
        model: &Model,
        route: &Route,
        provider: &Provider,
    ) -> Result<(Bytes, Dropped), Problem> {
        let mut body = limited(request, model, request.dialect, request.own_body(&route.upstream_model));
        let mut dropped = Dropped::default();
        let home =
            SealNeeds { wants_reasoning_back: quirks::reasoning_back(model, provider), gemini3: model.chat.gemini3 };
        if let Some((own, left_out)) = own_seals(request.dialect, &body, home) {
            if left_out {
                self.leave_out("reasoning", &mut dropped)?;
            }
            body = own;
        }
        if request.dialect == Dialect::Responses {
            // A model that does not think refuses to be asked for its sealed reasoning.
            body = without_storing(body, thinks(model) || request.mentions("reasoning"));
        }
        let body = self.fitted(model, provider, request.dialect, body, &mut dropped)?;
        Ok((body, dropped))
    }

    /// The client asks for features by a header.
    pub(super) fn has_betas(&self) -> bool {
        self.passed.iter().any(|(name, _)| name == BETA)
    }

    /// Notes what the provider does not get; refused where the caller wants nothing left out.
    pub(super) fn leave_out(&self, field: &str, dropped: &mut Dropped) -> Result<(), Problem> {
        if self.strict {
            let message = format!("`{field}`: the model is served by a provider that has nothing like this.");
            return Err(Problem { code: Code::UnsupportedValue, param: Some(field.to_owned()), message });
        }
        dropped.add(field);
        Ok(())
    }

    /// `request` is the client's, or the same with data in the place of its links.
    pub(super) fn make(
        &self,
        request: &CheckedRequest,
        model: &Model,
        route: &Route,
        provider: &Provider,
    ) -> Result<Sent, Problem> {
        let dialect = provider.kind.chat.map_or(request.dialect, |chat| chat.dialect());
        if dialect == request.dialect {
            let stripped = if model.chat.sampling { None } else { request.without_sampling(self.strict)? };
            let (request, unsampled) = match &stripped {
                Some((stripped, dropped)) => (stripped, Some(dropped)),
                None => (request, None),
            };
            let (body, mut dropped) = self.own(request, model, route, provider)?;
            unsampled.iter().for_each(|more| dropped.extend(more));
            return Ok(Sent { body, dropped, names: ToolNames::default() });
        }
        if let (Dialect::Chat, Some(effort)) = (dialect, model.chat.tools_need_effort.as_deref()) {
            // A rule of the provider's chat completions holds whatever our client speaks; a chat
            // client is held to it on every route.
            request.obeys(&ModelRules { tools_need_effort: Some(effort), ..ModelRules::default() })?;
        }
        let mut sent = request.upstream_body(&target(model, route, provider, dialect, self.strict))?;
        if self.has_betas() {
            self.leave_out(BETA, &mut sent.dropped)?;
        }
        priced_is_sent(model, &sent.dropped)?;
        sent.body = limited(request, model, dialect, sent.body);
        sent.body = self.fitted(model, provider, dialect, sent.body, &mut sent.dropped)?;
        Ok(sent)
    }
}

/// What is held for is what the provider is allowed.
fn limited(request: &CheckedRequest, model: &Model, dialect: Dialect, body: Bytes) -> Bytes {
    let runs = !request.reads.hosted.is_empty();
    if runs { limit_uses(dialect, body, model.chat.tool_uses) } else { body }
}

fn thinks(model: &Model) -> bool {
    !model.reasoning_efforts.is_empty()
}

fn target(model: &Model, route: &Route, provider: &Provider, dialect: Dialect, strict: bool) -> Target {
    let rules = &model.chat;
    Target {
        strict,
        default_max_output: rules.default_max_output.or(model.max_output_tokens).unwrap_or(USUAL_OUTPUT),
        most_output: model.max_output_tokens,
        efforts: model.reasoning_efforts.clone(),
        thinks: thinks(model),
        sampling: rules.sampling,
        adaptive_thinking: rules.adaptive_thinking,
        system_turns: rules.system_turns,
        native_schema: rules.native_schema,
        current_chat: quirks::current_chat(model, provider),
        cache_marks: rules.cache_marks,
        web_search: rules.web_search,
        wants_reasoning_back: quirks::reasoning_back(model, provider),
        budgets: rules.least_budget..=rules.most_budget.unwrap_or(u64::MAX),
        thinks_always: rules.thinks_always,
        gemini3: rules.gemini3,
        ..Target::new(dialect, route.upstream_model.as_str())
    }
}
