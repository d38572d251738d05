//! A creation whose answer was lost, at a provider that keeps no id of ours: which entry of its
//! list is it? One is taken when it can be no other: all that the list tells fits, it is no task we
//! know, it is the only such entry, and it fits none of our other tasks without a name. Anything
//! less could be somebody else's video.

use super::{StoredPlan, VideoDesk};
use crate::call::task::{Watched, Which};
use std::collections::HashSet;
use tollgate_store::{Store, StoreError, Task};
use tollgate_upstream::video::{Alike, Likeness, Sought};

/// Tasks without a name that are compared; where there are more, nothing is certain.
const RIVALS: u32 = 1_000;
/// How much earlier than an entry a task may have been begun that it could belong to: one whose
/// gateway died while it was sent.
const EARLIER_MS: i64 = 24 * 3_600_000;
const LATER_MS: i64 = 3_600_000;

/// What a provider's list has of the right kind and time.
pub struct Entries {
    pub alike: Vec<Alike>,
    /// The list was read to its end; otherwise it may be none of them.
    pub whole: bool,
}

/// What is known of our own tasks: the store, or a test that lets something happen between two
/// readings.
pub(super) trait OwnTasks: Sync {
    fn nameless(&self, begun: (i64, i64)) -> impl Future<Output = Result<Vec<Task>, StoreError>> + Send;
    fn named(&self, ids: &[String]) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
}

impl OwnTasks for Store {
    async fn nameless(&self, begun: (i64, i64)) -> Result<Vec<Task>, StoreError> {
        self.nameless_tasks(begun, RIVALS).await
    }

    async fn named(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        self.tasks_named(ids).await
    }
}

/// Three readings in an order that leaves no gap: the provider's list, then our tasks without a
/// name, then the names we know. A task only goes from nameless to named, so whatever is in the
/// list is seen as a rival, by its name, or as both.
pub(super) async fn which(
    watched: &Watched<'_, VideoDesk>,
    ours: &impl OwnTasks,
    entries: Entries,
) -> Result<Which, StoreError> {
    let Entries { alike, whole } = entries;
    let nameless = match span(&alike) {
        Some(span) => ours.nameless(span).await?,
        None => Vec::new(),
    };
    let ids: Vec<String> = alike.iter().map(|one| one.id.clone()).collect();
    let known: HashSet<String> = ours.named(&ids).await?.into_iter().collect();
    let left: Vec<Alike> = alike.into_iter().filter(|one| !known.contains(&one.id)).collect();
    let (fit, doubtful): (Vec<Alike>, Vec<Alike>) = left.into_iter().partition(is_fit);
    Ok(match &fit[..] {
        _ if !whole => Which::Unsure,
        // What is nobody's and may be ours keeps us from saying that it was never made.
        [] if doubtful.is_empty() => Which::None,
        [one] if stands_out(one, &doubtful) && is_certain(watched, one) && !has_rival(watched, one, &nameless) => {
            Which::This(one.id.clone())
        }
        _ => Which::Unsure,
    })
}

fn is_fit(one: &Alike) -> bool {
    matches!(one.likeness, Likeness::Outside | Likeness::Whole)
}

/// Whether it is more like ours than all that is doubtful: with our very prompt it is, beside
/// others that tell another one.
fn stands_out(one: &Alike, doubtful: &[Alike]) -> bool {
    let other_words = doubtful.iter().all(|other| other.likeness == Likeness::Otherwise);
    doubtful.is_empty() || (one.likeness == Likeness::Whole && other_words)
}

/// When a task must have been begun that one of these entries could belong to, in milliseconds.
fn span(alike: &[Alike]) -> Option<(i64, i64)> {
    let made = || alike.iter().filter_map(made_at);
    Some((made().min()?.saturating_sub(EARLIER_MS), made().max()?.saturating_add(LATER_MS)))
}

fn made_at(one: &Alike) -> Option<i64> {
    one.made_at().map(|at| at.saturating_mul(1_000))
}

/// Whether nobody else can have made it: it is in the list of the account we sent it with, and its
/// prompt is ours or nobody else uses that account.
fn is_certain(watched: &Watched<'_, VideoDesk>, one: &Alike) -> bool {
    watched.sure && (one.likeness == Likeness::Whole || watched.provider.settings.exclusive)
}

/// Whether another task of ours without a name could be this entry. Where there are too many of
/// them, or it does not tell its time, one of them could.
fn has_rival(watched: &Watched<'_, VideoDesk>, one: &Alike, nameless: &[Task]) -> bool {
    let own = &watched.leased.task;
    let elsewhere = |task: &Task| is_elsewhere(own.upstream_host.as_deref(), task.upstream_host.as_deref());
    let mut others = nameless.iter().filter(|task| task.id != own.id && !elsewhere(task));
    nameless.len() >= RIVALS as usize || made_at(one).is_none() || others.any(|task| fits(watched, task, one))
}

/// Whether a task surely went to another host than ours. Of one that was begun before hosts were
/// stored nobody knows.
fn is_elsewhere(ours: Option<&str>, theirs: Option<&str>) -> bool {
    matches!((ours, theirs), (Some(ours), Some(theirs)) if ours != theirs)
}

fn fits(watched: &Watched<'_, VideoDesk>, task: &Task, one: &Alike) -> bool {
    let Some(stored) = StoredPlan::read(&task.plan) else { return true };
    let external_id = task.id.to_string();
    let prompt = stored.prompt(&watched.desk.secrets, &external_id);
    let now = watched.till.world.now_ms();
    let Some(sought) = stored.sought(task, &external_id, prompt.as_ref(), now) else { return true };
    sought.api == watched.plan.api && is_like(watched, &sought, one)
}

fn is_like(watched: &Watched<'_, VideoDesk>, sought: &Sought<'_>, one: &Alike) -> bool {
    // Whom nobody speaks for could be anything.
    let likeness = watched.provider.kind.video.map(|video| video.likeness(sought, &one.entry));
    !matches!(likeness, Some(Likeness::None | Likeness::Otherwise))
}

#[cfg(test)]
mod tests;
