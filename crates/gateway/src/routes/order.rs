//! The order in which the routes of a model are tried, and whether something new may go along one
//! now.

use super::Routes;
use crate::world::{Millis, World};
use tollgate_catalog::{Model, Route};
use tollgate_upstream::Provider;

impl Routes {
    /// May something new go this way now? `now` is of the steady clock.
    pub fn take(&self, provider: &Provider, route: &Route, now: Millis) -> bool {
        !self.switches.provider_is_paused(&provider.name) && self.pauses.lets(provider, &route.upstream_model, now)
    }
}

/// Lower priority number first; within one priority a weighted draw decides who leads.
pub fn ordered(world: &World, model: &Model) -> Vec<usize> {
    let routes = &model.routes;
    if routes.len() < 2 {
        return (0..routes.len()).collect();
    }
    let mut draw = [0u8; 8];
    world.fill(&mut draw);
    order(routes, u64::from_le_bytes(draw))
}

fn order(routes: &[Route], seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        // splitmix64: good enough to spread load
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut left: Vec<usize> = (0..routes.len()).collect();
    left.sort_by_key(|at| routes[*at].priority);
    let mut sorted = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let priority = routes[*first].priority;
        let peers = left.iter().take_while(|at| routes[**at].priority == priority).count();
        let total: u64 = left[..peers].iter().map(|at| u64::from(routes[*at].weight)).sum();
        let mut drawn = next() % total.max(1);
        let chosen = left[..peers].iter().position(|at| match drawn.checked_sub(u64::from(routes[*at].weight)) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        });
        sorted.push(left.remove(chosen.unwrap_or(0)));
    }
    sorted
}
