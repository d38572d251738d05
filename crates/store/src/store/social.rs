//! The verbs of social data.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::social::{SocialDay, SocialFull, SocialTake, SocialTurn, SocialVain};

impl Store {
    /// Takes a call's part of a day's capacity, or says which limit was met. Exact over all
    /// replicas.
    pub async fn social_take(&self, take: SocialTake) -> Result<Result<(), SocialFull>, StoreError> {
        on_engine!(self, e => e.social_take(take).await)
    }

    /// Gives back the cost of a call that turned out to be free; the call stays counted.
    pub async fn social_give_back(&self, take: SocialTake) -> Result<(), StoreError> {
        on_engine!(self, e => e.social_give_back(take).await)
    }

    /// What was used of a day: all platforms together under an empty name, then each.
    pub async fn social_days(&self, day: i64) -> Result<Vec<SocialDay>, StoreError> {
        on_engine!(self, e => e.social_days(day).await)
    }

    /// Remembers that a call found nothing.
    pub async fn social_vain(&self, vain: SocialVain) -> Result<(), StoreError> {
        on_engine!(self, e => e.social_vain(vain).await)
    }

    /// Calls that found nothing at `since` or later, newest first, as far as that still means
    /// something.
    pub async fn social_vains(&self, since: i64) -> Result<Vec<SocialVain>, StoreError> {
        on_engine!(self, e => e.social_vains(since).await)
    }

    /// A turn on a route that takes so many requests a second, over all replicas.
    pub async fn social_turn(&self, route: &str, per_second: u32, patience_ms: u64) -> Result<SocialTurn, StoreError> {
        on_engine!(self, e => e.social_turn(route, per_second, patience_ms).await)
    }
}
