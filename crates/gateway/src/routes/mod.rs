//! Which way a call may go: the order of a model's routes, what is paused and by whom, how sources are doing, and how fast they may be
//! asked. What all of them have in common: they are looked at before a provider is asked, and learn from what came of it.

pub mod health;
pub mod order;
pub mod pauses;
pub mod switches;
pub mod turns;
