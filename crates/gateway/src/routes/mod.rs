//! Which way a call may go: the order of a model's routes, what is paused and by whom, how sources
//! are doing, and how fast they may be asked. What all of them have in common: they are looked at
//! before a provider is asked, and learn from what came of it.

pub mod figures;
pub mod health;
pub mod order;
pub mod pauses;
pub mod switches;
pub mod traffic;
pub mod turns;

use figures::Figures;
use health::Health;
use pauses::Pauses;
use switches::Switches;
use tollgate_upstream::Pace;
use traffic::Traffic;
use turns::TurnBlocks;

/// All that is known of the ways to providers.
#[derive(Default)]
pub struct Routes {
    /// Models, cells and providers that are paused by an operator, or by the gateway itself.
    pub switches: Switches,
    /// Pairs of provider and model that do not report usage.
    pub pauses: Pauses,
    /// How each cell of social data is doing.
    pub health: Health,
    /// How calls of models end, as far as it is not stored yet.
    pub traffic: Traffic,
    /// What all replicas have counted of it.
    pub figures: Figures,
    /// How fast a source may be asked by this replica.
    pub pace: Pace,
    /// Turns at providers, shared by all replicas.
    pub turns: TurnBlocks,
}
