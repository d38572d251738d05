//! What is bought with a call.

use super::quote::Quote;
use crate::who::caller::Caller;
use std::sync::Arc;
use tollgate_catalog::Model;

/// Admitted and priced: who buys what, for how much at most.
pub struct Bought {
    pub caller: Arc<Caller>,
    pub model: Arc<Model>,
    pub quote: Quote,
}
