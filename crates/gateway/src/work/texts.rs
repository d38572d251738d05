//! Calls that only read text and write none, or next to none: what they need, how they are sent,
//! and what they are charged by. The provider's report counts where it can be true, our own count
//! otherwise.

use crate::call::{Call, Meter, Need};
use crate::refusal::Refusal;
use tollgate_catalog::{Face, Model};
use tollgate_media::TextTally;
use tollgate_store::Counters;
use tollgate_upstream::{Blame, Fault, Outgoing, Provider, ReplyBody, WholeReply, is_encoded};
use tollgate_wire::error::Code;

const DEPENDS_ON: &[(Face, &str)] = &[(Face::Input, "tokens as the provider counts them")];

/// What is read at most. `counted` is our own count, `most` what a provider may count.
pub fn need(counted: u64, most: u64, sized_by: &'static str) -> Need {
    Need {
        context_len: counted,
        context_max: most.max(counted),
        most: Counters { input: most, calls: 1, ..Counters::default() },
        exact: false,
        output_ceiling: 0,
        open_end: None,
        sized_by,
        depends_on: DEPENDS_ON,
    }
}

/// Our count leans high, so only what cannot possibly fit is refused here; the provider decides the
/// rest.
pub fn check_length(model: &Model, counted: u64, limit: Option<u64>, field: &str) -> Result<(), Refusal> {
    match limit {
        Some(limit) if counted / 4 > limit => {
            let text = format!("`{field}` has about {counted} tokens; `{}` takes at most {limit}.", model.name);
            Err(Refusal::about(Code::ContextLengthExceeded, field, text))
        }
        _ => Ok(()),
    }
}

/// What is charged for: the report, if it can be true of these texts.
pub fn meter(
    tally: &TextTally,
    counted: Counters,
    reported: Option<u64>,
    raw_usage: Option<&str>,
    reports: bool,
) -> Meter {
    match reported.filter(|tokens| *tokens <= tally.believable()) {
        Some(input) => {
            let used = Counters { input, ..counted };
            Meter::Known { used, estimated: false, raw_usage: raw_usage.map(str::to_owned) }
        }
        None if !reports => Meter::Counted(counted),
        None => Meter::Known { used: counted, estimated: true, raw_usage: raw_usage.map(str::to_owned) },
    }
}

/// Sends a request and waits for a reply of status 200.
pub async fn ask(
    call: &mut Call,
    provider: &Provider,
    request: Outgoing,
    fault: impl Fn(&WholeReply) -> Fault,
) -> Result<ReplyBody, Fault> {
    let reply = call.till.client.send(provider, request).await?;
    if !reply.status().is_success() {
        return Err(fault(&Box::pin(call.till.client.refused(provider, reply)).await));
    }
    if is_encoded(reply.headers()) {
        tracing::warn!(call = %call.id, provider = provider.name, "the provider compresses its answers, which it is asked not to do");
        return Err(Fault::encoded());
    }
    call.first_byte_at = Some(call.till.world.now_ms());
    Ok(ReplyBody::new(reply.into_body(), provider.settings.idle))
}

/// The route's provider has no such ability: the configuration is checked for that, so it has
/// changed.
pub fn unable() -> Fault {
    Fault { blame: Blame::Operator, ..Fault::unreachable() }
}
