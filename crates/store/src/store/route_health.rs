//! The verbs of route health.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::route_health::{AT_ONCE, CountedRoute, RouteCounts};
use std::ops::Range;

impl Store {
    /// Adds what was counted to a quarter of an hour. Returns what could not be added, and why.
    pub async fn add_route_health(
        &self,
        quarter: i64,
        mut counted: Vec<(CountedRoute, RouteCounts)>,
    ) -> Result<(), (Vec<(CountedRoute, RouteCounts)>, StoreError)> {
        // In one order, so that replicas that add at the same time do not wait for each other in a
        // circle.
        counted.sort_by(|(a, _), (b, _)| a.cmp(b));
        while !counted.is_empty() {
            let rest = counted.split_off(AT_ONCE.min(counted.len()));
            if let Err(error) = on_engine!(self, e => e.add_route_health(quarter, &counted).await) {
                counted.extend(rest);
                return Err((counted, error));
            }
            counted = rest;
        }
        Ok(())
    }

    /// The sums over these quarters, of all replicas.
    pub async fn route_health(&self, quarters: Range<i64>) -> Result<Vec<(CountedRoute, RouteCounts)>, StoreError> {
        on_engine!(self, e => e.route_health(quarters.start, quarters.end).await)
    }

    /// Erases what is older than this quarter.
    pub async fn forget_route_health(&self, before: i64) -> Result<(), StoreError> {
        on_engine!(self, e => e.forget_route_health(before).await)
    }
}
