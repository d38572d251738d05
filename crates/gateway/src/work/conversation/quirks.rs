//! What a provider's chat completions do not take, with what the catalog says of the model laid
//! over it.

use super::Conversation;
use super::target::BETA;
use crate::work::priced_fields::priced_is_sent;
use bytes::Bytes;
use tollgate_catalog::Model;
use tollgate_upstream::Provider;
use tollgate_wire::{ChatQuirks, Dialect, Dropped, Problem};

/// Something of a request may have to be changed for this provider.
pub(super) fn has_any(model: &Model, provider: &Provider) -> bool {
    let rules = &model.chat;
    let models_own = rules.current_chat == Some(false)
        || rules.text_content_only == Some(true)
        || rules.drop.as_ref().is_some_and(|list| !list.is_empty())
        || rules.temperature_max.is_some();
    let fits = provider.kind.chat.is_some_and(|chat| chat.fits_bodies());
    fits || models_own || !provider.settings.quirks.is_plain()
}

pub(super) fn reasoning_back(model: &Model, provider: &Provider) -> bool {
    model.chat.wants_reasoning_back.unwrap_or(provider.settings.quirks.reasoning_back)
}

/// Knows `max_completion_tokens` and the role `developer`.
pub(super) fn current_chat(model: &Model, provider: &Provider) -> bool {
    let usual = &provider.settings.quirks;
    model.chat.current_chat.unwrap_or(!usual.max_tokens_only && !usual.no_developer_role)
}

fn of(model: &Model, provider: &Provider) -> ChatQuirks {
    let usual = provider.settings.quirks.clone();
    let rules = &model.chat;
    let old = rules.current_chat.map(|current| !current);
    ChatQuirks {
        max_tokens_only: old.unwrap_or(usual.max_tokens_only),
        no_developer_role: old.unwrap_or(usual.no_developer_role),
        text_content_only: rules.text_content_only.unwrap_or(usual.text_content_only),
        drop: rules.drop.clone().unwrap_or(usual.drop),
        temperature_max: rules.temperature_max.or(usual.temperature_max),
        ..usual
    }
}

impl Conversation {
    /// The body as the provider takes it. What it does not get is noted, or refused where the
    /// caller wants nothing left out.
    pub(super) fn fitted(
        &self,
        model: &Model,
        provider: &Provider,
        dialect: Dialect,
        body: Bytes,
        dropped: &mut Dropped,
    ) -> Result<Bytes, Problem> {
        if !has_any(model, provider) {
            return Ok(body);
        }
        let mut left_out = Dropped::default();
        let mut body = body;
        if dialect == Dialect::Chat {
            let (fitted, more) = of(model, provider).fit(&body)?;
            left_out.extend(&more);
            body = Bytes::from(fitted);
        }
        if let Some(chat) = provider.kind.chat.filter(|chat| chat.fits_bodies()) {
            let (fitted, more) = chat.fit(body)?;
            left_out.extend(&more);
            body = fitted;
            if !chat.takes_headers() && self.request.dialect == dialect && self.has_betas() {
                left_out.add(BETA);
            }
        }
        for field in left_out.fields() {
            self.leave_out(field, dropped)?;
        }
        priced_is_sent(model, &left_out)?;
        Ok(body)
    }
}
