//! The one snapshot of catalog and providers that is being served.

use super::workflows::BoundWorkflows;
use super::{CatalogText, Offers};
use crate::who::caller::Caller;
use foldhash::HashMap;
use std::sync::Arc;
use tollgate_catalog::{Model, Snapshot};
use tollgate_upstream::Provider;

/// How each type of endpoint is asked: the type, the method, the path.
pub type Served = Vec<(&'static str, &'static str, &'static str)>;

/// What is on sale and where it comes from. One value, exchanged as a whole: a call keeps the one
/// it began with.
pub struct Serving {
    pub catalog: Snapshot,
    pub providers: HashMap<String, Arc<Provider>>,
    /// By which rules the models that make videos go.
    pub offers: Offers,
    pub workflows: BoundWorkflows,
    pub served: Served,
    /// What the catalog was read from.
    pub text: Arc<CatalogText>,
}

impl Serving {
    /// Where a model is asked, for whoever asked somewhere else.
    pub fn asked_at(&self, model: &Model) -> String {
        let of_type = |name: &String| {
            let at = self.served.iter().find(|(kind, ..)| kind == name);
            at.map_or_else(|| format!("`{name}`"), |(_, method, path)| format!("`{method} {path}` (`{name}`)"))
        };
        model.supported_endpoint_types.iter().map(of_type).collect::<Vec<_>>().join(", ")
    }

    /// The group a model is sold to this caller in: the first of `auto_groups` that the account is
    /// in and the model is offered to.
    pub fn group_of(&self, caller: &Caller, model: &Model) -> Option<&str> {
        model.group_for(self.catalog.in_order(&caller.account.groups))
    }

    /// The group a model is sold in to this caller, or to anybody.
    pub fn group_for(&self, caller: Option<&Caller>, model: &Model) -> Option<&str> {
        match caller {
            Some(caller) => self.group_of(caller, model),
            None if model.login_required => None,
            None => model.group_for(self.catalog.public_groups()),
        }
    }
}
