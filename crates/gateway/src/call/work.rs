//! What every kind of call tells the till, and all that it tells: what it is priced by
//! ([`Priced`]), and how it is done at a provider. The rest of a call's life is the same for all of
//! them; a new kind of call brings one type that implements [`Work`] and no code about money.

use super::begun::Begun;
use super::meter::Meter;
use super::need::Priced;
use super::open::Call;
use super::reply::StoredPieces;
use crate::refusal::Refusal;
use crate::sale::Serving;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_store::Ending;
use tollgate_upstream::{Fault, Provider};

/// A call that can be done.
pub trait Work: Send + Sync + 'static {
    /// What it is priced by.
    fn priced(&self) -> &dyn Priced;
    /// [`Priced::fits`], by what this work fetches with.
    fn fits(&self, _: &Serving, _: &Model) -> Result<(), Refusal> {
        Ok(())
    }
    /// The meter that this work fills.
    fn meter(&self, model: &Model) -> Meter;
    /// What else may refuse the call once its money is held and before anything is sent.
    fn before(&self, _: &Call) -> impl Future<Output = Result<(), Refusal>> + Send {
        async { Ok(()) }
    }
    /// How a call ends that comes to this refusal, where that is not the refusal's own affair: that
    /// there is nothing is an answer too.
    fn ending(&self, _: &Refusal) -> Option<Ending> {
        None
    }
    /// What it asks for costs money wherever it is begun. A caller whose call came to nothing after
    /// a provider may have begun it is then asked not to repeat it by itself.
    fn once(&self) -> bool {
        false
    }
    /// A part of its request is with a provider already, and the rest of it may go only when the
    /// hold would survive a crash.
    fn is_under_way(&self) -> bool {
        false
    }
    /// It is made, and billed by its provider, whether or not anybody waits for it: a client that
    /// leaves does not end it, and what comes is read to its end, within bounds.
    fn goes_on(&self, _: &Serving, _: &Model) -> bool {
        false
    }
    /// A reply of a call like this that was stored by this name, beside the database.
    fn stored(&self, _name: &str) -> impl Future<Output = Option<StoredPieces>> + Send {
        async { None }
    }
    /// Sends the request along one route until the answer begins.
    fn attempt(
        &self,
        call: &mut Call,
        provider: &Arc<Provider>,
        route: &Route,
    ) -> impl Future<Output = Result<Begun, Fault>> + Send;
}
