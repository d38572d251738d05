//! Which configured provider is the account a task was sent with. A task is asked for at that host
//! with that key: another account's "no such task" says nothing about it, and an operator who
//! exchanges a key or an address must not lose what is under way.

use crate::sale::Serving;
use std::sync::Arc;
use tollgate_store::Task;
use tollgate_upstream::Provider;

/// Who can be asked about a task.
#[derive(Clone, Debug)]
pub enum TaskHome {
    /// The account it was sent with.
    Same(Arc<Provider>),
    /// The same host with another key: a new key of the same account, or another account. What it
    /// knows of the task is true; that it does not know it means nothing.
    Stranger(Arc<Provider>),
    /// Nobody.
    Away,
}

/// The provider the task names comes first. An account that was moved to another name in the
/// configuration is found there. `speaks`: whether a provider can be asked about such tasks at all.
pub fn home(serving: &Serving, task: &Task, speaks: impl Fn(&Provider) -> bool) -> TaskHome {
    let speaks = |one: &&Arc<Provider>| speaks(one);
    let named = task.provider.as_ref().and_then(|name| serving.providers.get(name)).filter(speaks);
    // Tasks of earlier versions say only this much.
    let (Some(host), Some(key)) = (&task.upstream_host, &task.upstream_key) else {
        return named.map_or(TaskHome::Away, |one| TaskHome::Same(one.clone()));
    };
    let same = |one: &&Arc<Provider>| one.is_account(host, key);
    let others = || serving.providers.values().filter(speaks).filter(same).min_by_key(|one| &one.name);
    if let Some(one) = named.filter(same).or_else(others) {
        return TaskHome::Same(one.clone());
    }
    named.filter(|one| one.base_url.place() == *host).map_or(TaskHome::Away, |one| TaskHome::Stranger(one.clone()))
}
