//! Fields of a request that a price of the model goes by: none of them is left out on the way.

use tollgate_catalog::{Condition, Model};
use tollgate_wire::{Dropped, Problem};

/// What a price goes by and a provider does not get would be charged for and not be had, or the
/// other way round.
pub fn priced_is_sent(model: &Model, dropped: &Dropped) -> Result<(), Problem> {
    let conditions = model.books().flat_map(|book| &book.tiers).flat_map(|tier| &tier.when);
    let lost = conditions.filter_map(|one| match one {
        Condition::Attribute { path, .. } if path == Condition::THINKING => {
            dropped.fields().iter().find(|name| is_about_thinking(name))
        }
        other => {
            let (priced, _) = other.parameter()?;
            // Some kinds of calls know a parameter of metadata by its own name, too.
            let plain = priced.strip_prefix("metadata.").unwrap_or(priced);
            dropped.fields().iter().find(|name| *name == priced || *name == plain)
        }
    });
    lost.map(|name| {
        let text =
            format!("`{name}`: the price goes by it, and the provider of this model has nothing like this value.");
        Err(Problem::unsupported(name, text))
    })
    .next()
    .unwrap_or(Ok(()))
}

/// Whether to think at all was left out, not only how thoughts are shown.
fn is_about_thinking(dropped: &str) -> bool {
    let words = ["reasoning", "reasoning_effort", "reasoning.effort", "thinking", "enable_thinking"];
    words.contains(&dropped) || dropped.starts_with("thinking.") || dropped.ends_with("thinkingConfig")
}
