//! Accounts whose price group is gone from the catalog. Such a group sells nothing: its accounts
//! buy in their other groups, or nowhere, and never at a price that nobody meant for them. The
//! operator is warned.

use super::Serving;
use crate::metrics::Metrics;
use std::collections::BTreeMap;
use tollgate_store::Store;

/// Looks for them, at the start and whenever a configuration is taken over.
pub async fn look(store: &Store, serving: &Serving, metrics: &Metrics) {
    let in_use = match store.groups_in_use().await {
        Ok(in_use) => in_use,
        Err(error) => return tracing::warn!(%error, "which groups are in use could not be read"),
    };
    let (mut accounts, mut unknown) = (0, BTreeMap::<&str, u64>::new());
    for (groups, count) in &in_use {
        let gone = || groups.iter().filter(|group| !serving.catalog.groups.contains_key(*group));
        accounts += if gone().next().is_some() { *count } else { 0 };
        for group in gone() {
            *unknown.entry(group).or_default() += count;
        }
    }
    for (group, accounts) in unknown {
        tracing::warn!(group, accounts, "accounts are in a group that the catalog does not have; it sells nothing");
    }
    metrics.groupless.set(i64::try_from(accounts).unwrap_or(i64::MAX));
}
