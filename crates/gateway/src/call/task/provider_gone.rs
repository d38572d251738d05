//! A task whose account nobody in the configuration is: it is retained for the day the operator
//! puts the account back, and decided in the customer's favour when any other task would be.

use super::watched::{LATER, last_look, put_back, warn_other_account};
use super::{TaskDesk, end};
use crate::call::Till;
use tollgate_store::{Leased, StoreError, TaskStep, Word};

/// A task that nobody can be asked about.
pub(super) async fn provider_gone<D: TaskDesk>(
    till: &Till,
    desk: &D,
    leased: &Leased,
    plan: &D::Plan,
) -> Result<(), StoreError> {
    let task = &leased.task;
    warn_other_account(till, task.provider.as_deref().unwrap_or_default(), "other_host");
    let last = desk.habits(plan, None).map(|habits| last_look(till, &habits));
    if last.is_some_and(|last| leased.age_ms >= last) {
        return end::given_up(till, desk, leased, plan).await;
    }
    put_back(till, TaskStep::new(task.id, leased.fence, task.state, Word::Nothing, LATER)).await
}
