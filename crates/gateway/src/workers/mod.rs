//! Background loops. Each runs on the app's tracker until the stop.

pub mod alerts;
pub mod follow;
pub mod live;
pub mod mail;
pub mod payments;
pub mod poller;
pub mod probes;
pub mod reload;
pub mod runs;
pub mod settler;
mod upkeep;
pub mod webhooks;

pub use upkeep::upkeep;
