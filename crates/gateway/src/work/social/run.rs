//! A call for social data, wherever it comes from.
//!
//! The order of checks: pair, pause, top-up, parameters; then the till asks for the balance, and
//! the work for the day's capacity. None of these refusals is charged or reaches the source.

use super::call::{SocialCall, paused};
use super::{AskedCell, SocialDesk, Track};
use crate::call::{self, CallAnswer, CallRequest, Till};
use crate::refusal::Refusal;
use crate::routes::switches::Door;
use crate::sale::Serving;
use crate::who::caller::Caller;
use crate::work::given;
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Checked, Wrong};
use tollgate_store::{CallId, Idem};
use tollgate_wire::error::Code;

/// What is asked for, and the name of the call.
pub struct SocialCallRequest<'a> {
    pub id: CallId,
    pub endpoint: &'static str,
    pub platform: &'a str,
    pub capability: &'a str,
    pub idem: Option<Idem>,
}

impl SocialDesk {
    /// One call, wherever it comes from; `read` gives its parameters once it is known that they
    /// matter.
    pub async fn run(
        self: &Arc<Self>,
        caller: Arc<Caller>,
        ask: SocialCallRequest<'_>,
        read: impl FnOnce(&Cell) -> Result<Checked, Refusal>,
    ) -> Result<CallAnswer, Refusal> {
        let SocialCallRequest { id, endpoint, platform, capability, idem } = ask;
        let till = &self.till;
        let serving = till.serving.load_full();
        let cell = &cell(&serving, Some(&caller), platform, capability)?;
        let door = till.routes.switches.door(&cell.model.name, till.world.now_ms(), self.settings.probe_after);
        if door == Door::Paused {
            return Err(paused(cell));
        }
        // When it is time to try a paused cell again, only a call that nothing stands in the way of
        // can; for others it is paused.
        let probing = door == Door::Probe;
        let or_paused = |refusal| if probing { paused(cell) } else { refusal };
        let caller = topped_up(till, cell, caller).await.map_err(or_paused)?;
        let checked = read(cell).map_err(or_paused)?;
        for (name, value) in checked.pairs(cell) {
            given::text(&self.links, name, &value.to_string(), &[]).map_err(or_paused)?;
        }
        let asked = AskedCell { cell: cell.clone(), checked };
        let track = Track::new(self, cell, id, caller.account.id, asked.fingerprint());
        let work = SocialCall { desk: self.clone(), asked, track: track.clone(), probing };
        let outcome = call::run(till, caller, CallRequest { id, endpoint, work, idem }).await;
        let admitted = track.was_admitted();
        track.end().await;
        outcome.map_err(|refusal| if admitted { refusal } else { or_paused(refusal) })
    }
}

/// Social data is for accounts that have topped up once, perhaps since their key was last read.
async fn topped_up(till: &Till, cell: &Cell, mut caller: Arc<Caller>) -> Result<Arc<Caller>, Refusal> {
    if cell.model.requires_topup && !caller.account.topped_up {
        caller = till.keys.read_again(&till.store, &caller).await?;
        if !caller.account.topped_up {
            return Err(Refusal::new(
                Code::ModelRequiresTopup,
                "Social data needs paid credit: top up the account once. Trial credit cannot be spent on it.",
            ));
        }
    }
    Ok(caller)
}

/// The cell on sale under this name, to this caller: one that is sold to closed groups only does
/// not exist for others.
pub fn cell(
    serving: &Serving,
    caller: Option<&Caller>,
    platform: &str,
    capability: &str,
) -> Result<Arc<Cell>, Refusal> {
    let sold = |cell: &&Arc<Cell>| caller.is_none_or(|caller| serving.group_of(caller, &cell.model).is_some());
    serving.catalog.social.cell(platform, capability).filter(sold).cloned().ok_or_else(|| {
        let name = |text: &str| text.chars().take(64).collect::<String>();
        let message =
            format!("There is no `{}` of `{}` on sale; see GET /api/social/catalog.", name(capability), name(platform));
        Refusal::new(Code::SocialEndpointNotFound, message)
    })
}

/// Parameters against their cell, with the refusal that the specification and the decisions name.
pub fn checked<N: AsRef<str>, V: AsRef<str>>(cell: &Cell, pairs: &[(N, V)]) -> Result<Checked, Refusal> {
    cell.check(pairs).map_err(|bad| {
        let code = match bad.wrong {
            Wrong::Unknown => Code::UnknownParameter,
            Wrong::Missing | Wrong::NoneOfGroup => Code::MissingParameter,
            _ => Code::InvalidParameter,
        };
        Refusal::about(code, &bad.param, bad.message).because(bad.wrong.reason())
    })
}
