//! The client against servers that behave badly on purpose, and every maker against the simulated
//! provider.

mod client;
mod faults;
mod fetch;
mod image_sizes;
mod media_requests;
mod passing;
mod providers;
mod upgrades;
mod uploads;
mod video;
