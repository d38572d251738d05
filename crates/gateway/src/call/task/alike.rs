//! A creation whose answer was lost, at a provider that keeps no id of ours: which entry of its list is it? One is taken when it can
//! be no other: all that the list tells fits, it is no task we know, it is the only such entry, and it fits none of our other tasks
//! without a name. Anything less could be somebody else's video.

use super::look::Watched;
use crate::video::KeptPlan;
use std::collections::HashSet;
use tollgate_store::{StoreError, Task};
use tollgate_upstream::video::{Alike, Likeness, Sought};

/// Tasks without a name that are compared; where there are more, nothing is certain.
const RIVALS: u32 = 1_000;
/// How much earlier than an entry a task may have been begun that it could belong to: one whose gateway died while it was sent.
const EARLIER_MS: i64 = 24 * 3_600_000;
const LATER_MS: i64 = 3_600_000;

/// Which entry it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Which {
    This(String),
    /// All that looked alike belongs to other tasks.
    None,
    Unsure,
}

/// The list was read before this asks the store: whatever is in the list had its name here by now, or has none and is a rival.
pub(super) async fn which(watched: &Watched<'_>, alike: Vec<Alike>, whole: bool) -> Result<Which, StoreError> {
    let store = &watched.app.store;
    let ids: Vec<String> = alike.iter().map(|one| one.id.clone()).collect();
    let known: HashSet<String> = store.tasks_named(&ids).await?.into_iter().collect();
    let left: Vec<Alike> = alike.into_iter().filter(|one| !known.contains(&one.id)).collect();
    match &left[..] {
        _ if !whole => Ok(Which::Unsure),
        [] => Ok(Which::None),
        [one] if is_told(watched, one) && !has_rival(watched, one).await? => Ok(Which::This(one.id.clone())),
        _ => Ok(Which::Unsure),
    }
}

/// Whether nobody else can have made it: it is in the list of the account we sent it with, and its prompt is ours or nobody else
/// uses that account.
fn is_told(watched: &Watched<'_>, one: &Alike) -> bool {
    watched.sure && (one.likeness == Likeness::Whole || watched.provider.settings.exclusive)
}

/// Whether another task of ours without a name could be this entry.
async fn has_rival(watched: &Watched<'_>, one: &Alike) -> Result<bool, StoreError> {
    let Some(made) = one.entry["created_at"].as_i64().map(|at| at.saturating_mul(1_000)) else { return Ok(true) };
    let span = (made.saturating_sub(EARLIER_MS), made.saturating_add(LATER_MS));
    let nameless = watched.app.store.nameless_tasks(span, RIVALS).await?;
    let crowd = nameless.len() >= RIVALS as usize;
    let own = &watched.leased.task;
    let elsewhere = |task: &Task| task.upstream_host.is_some() && task.upstream_host != own.upstream_host;
    let mut others = nameless.iter().filter(|task| task.id != own.id && !elsewhere(task));
    Ok(crowd || others.any(|task| fits(watched, task, one)))
}

fn fits(watched: &Watched<'_>, task: &Task, one: &Alike) -> bool {
    let Some(kept) = KeptPlan::read(&task.plan) else { return true };
    let external_id = task.id.to_string();
    let now = watched.app.world.now_ms();
    let Some(sought) = kept.sought(task, &external_id, now) else { return true };
    sought.api == watched.api && is_like(watched, &sought, one)
}

fn is_like(watched: &Watched<'_>, sought: &Sought<'_>, one: &Alike) -> bool {
    watched.video.likeness(sought, &one.entry) != Likeness::None
}
