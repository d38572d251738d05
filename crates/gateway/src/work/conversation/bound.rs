//! The most input that a provider can report for a conversation: what the hold is made for.
//!
//! Text is counted, pictures are bounded by the model's own number. What the gateway cannot see
//! (links, file ids, PDFs, clips, stored prompts, caches) can be as long as the model takes. A tool
//! that runs at the provider makes it read the conversation again after each use, so every use that
//! is allowed adds as much once more. What has no bound is refused by its name, and so is what the
//! catalog says the model does not take or make.

use super::Conversation;
use crate::refusal::Refusal;
use tollgate_catalog::{BillingUnit, Face, Model, Uses};
use tollgate_dialects::{CheckedRequest, Hosted, Modality, Reads};
use tollgate_wire::error::Code;

impl Conversation {
    /// The tools that run at a provider of the model, of those that the request names: what is left
    /// out on the way runs nowhere.
    pub(super) fn hosted(&self) -> &[Hosted] {
        self.hosted.get().map_or(&self.request.reads.hosted, Vec::as_slice)
    }

    /// The most input tokens of a request that is this one, or this one with data in the place of
    /// its links.
    pub(super) fn most_input(&self, model: &Model, request: &CheckedRequest) -> Result<u64, Refusal> {
        let reads = &request.reads;
        takes(model, request)?;
        makes(model, request)?;
        let here = written(model, request);
        let hosted = self.hosted();
        let unseen = reads.unseen.or(hosted.first().map(|tool| tool.at));
        let Some(at) = unseen else {
            // To shorten a conversation is to read it once more.
            return Ok(if reads.compacts { here.saturating_mul(2) } else { here });
        };
        if model.billing_unit != BillingUnit::Tokens {
            // Its price does not go by what is read.
            return Ok(here);
        }
        let known = model.chat.unseen_tokens.or(model.max_input_tokens).or(model.context_window);
        let Some(known) = known else { return Err(refuse_unbounded(model, &request.place(at))) };
        let each = here.max(known);
        let readings = 1 + self.uses(model) + u64::from(reads.compacts);
        Ok(each.saturating_mul(readings))
    }

    /// The most uses of each tool that runs at the provider. One without a price is refused by its
    /// name, and so is an option that makes a use dearer: it would be the operator's loss.
    pub(super) fn tools(&self, model: &Model) -> Result<Uses, Refusal> {
        let mut uses = Uses::NONE;
        let on_sale = |option: &str| model.chat.one_price.iter().any(|own| own == option);
        for tool in self.hosted() {
            let Some(face) = Face::tool(&tool.name).filter(|face| model.ever_sells(*face)) else {
                return Err(refuse_unpriced(model, tool, &self.request.place(tool.at)));
            };
            if let Some((_, at)) = tool.dear.iter().find(|(option, _)| !on_sale(option)) {
                return Err(refuse_dear(model, &self.request.place(*at)));
            }
            let each = tool.most.or(self.request.reads.most_uses).unwrap_or(model.chat.tool_uses);
            uses = uses.with(face, uses.get(face).saturating_add(each));
        }
        Ok(uses)
    }

    /// Uses of tools at the provider that are held for, all together.
    fn uses(&self, model: &Model) -> u64 {
        let hosted = self.hosted();
        if hosted.is_empty() {
            return 0;
        }
        let usual = model.chat.tool_uses;
        let stated = hosted.iter().filter_map(|tool| tool.most).fold(0, u64::saturating_add);
        let open = if hosted.iter().any(|tool| tool.most.is_none()) { usual } else { 0 };
        match self.request.reads.most_uses {
            Some(most) if open > 0 => most,
            Some(most) => most.min(stated),
            None => stated.saturating_add(open),
        }
    }
}

/// Tokens of what stands in the request, leaning high.
fn written(model: &Model, request: &CheckedRequest) -> u64 {
    let Reads { pictures, pictured, aside, packed, .. } = &request.reads;
    let drawn = pictures.saturating_mul(model.chat.image_tokens).max(*pictured);
    (request.prompt_tokens - pictured).saturating_add(drawn).saturating_add(*aside).saturating_add(*packed)
}

/// What a model does not make is refused by its name: it would be sold at the price of text. Where
/// the catalog does not list what it makes, that is what it has a price for.
fn makes(model: &Model, request: &CheckedRequest) -> Result<(), Refusal> {
    for (modality, at) in &request.makes {
        let word = modality.word();
        let listed = &model.output_modalities;
        let why = match listed.is_empty() {
            true if is_priced(model, *modality) => continue,
            true => format!("has no price for output of the kind {word}"),
            false if listed.iter().any(|listed| listed == word) => continue,
            false => format!("makes no output of the kind {word}; it makes: {}", listed.join(", ")),
        };
        let field = request.place(*at);
        let text = format!("`{field}`: `{}` {why}.", model.name);
        return Err(Refusal::about(Code::UnsupportedValue, &field, text));
    }
    Ok(())
}

/// Whether what a model may make of this kind has a price of its own, or costs what the call costs.
fn is_priced(model: &Model, made: Modality) -> bool {
    model.billing_unit != BillingUnit::Tokens
        || match made {
            Modality::Audio => model.ever_sells(Face::AudioOutput),
            Modality::Image => model.ever_sells(Face::ImageOutput),
            Modality::Video | Modality::File => false,
        }
}

/// Where the catalog lists what a model takes, anything else is refused by its name.
fn takes(model: &Model, request: &CheckedRequest) -> Result<(), Refusal> {
    if model.input_modalities.is_empty() {
        return Ok(());
    }
    for modality in Modality::ALL {
        let word = modality.word();
        if let Some(at) = request.reads.first(modality)
            && !model.input_modalities.iter().any(|listed| listed == word)
        {
            let field = request.place(at);
            let listed = model.input_modalities.join(", ");
            let text = format!("`{field}`: `{}` takes no input of the kind {word}; it takes: {listed}.", model.name);
            return Err(Refusal::about(Code::UnsupportedValue, &field, text));
        }
    }
    Ok(())
}

fn refuse_unpriced(model: &Model, tool: &Hosted, field: &str) -> Refusal {
    let (name, model) = (&tool.name, &model.name);
    let text = format!(
        "`{field}`: the tool `{name}` runs at the provider, and `{model}` has no price for it (`tool:{name}`)."
    );
    Refusal::about(Code::UnsupportedValue, field, text)
}

/// An option of a tool that would cost its provider's price and not ours.
fn refuse_dear(model: &Model, field: &str) -> Refusal {
    let text = format!(
        "`{field}`: with it the provider charges more for the tool, and `{}` has one price for all uses; leave it out.",
        model.name
    );
    Refusal::about(Code::UnsupportedValue, field, text)
}

fn refuse_unbounded(model: &Model, field: &str) -> Refusal {
    let text = format!(
        "`{field}`: how much is read here is not known before the call, and `{}` has no `context_window` in the catalog that would bound it.",
        model.name
    );
    Refusal::about(Code::UnsupportedValue, field, text)
}
