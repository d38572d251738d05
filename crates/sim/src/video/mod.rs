//! The fake makers of videos, each written from its maker's documents: strict about what it takes,
//! faithful in how it fails.
//!
//! They stand under `/video/<maker>` (`dashscope`, `ark/api/v3`, `kling`, `minimax`, `gemini`) and,
//! for OpenAI's own, under `/v1/videos`. A key is always needed; any will do but one that begins
//! with `wrong`, and Kling also takes tokens signed with [`KLING_ACCESS`] (and whatever follows it:
//! another account) and [`KLING_SECRET`]. Each key is an account that sees its own tasks only;
//! `a#1` and `a#2` are two keys of one account. How a task goes is said in its prompt: see
//! [`scenarios`].

mod ark;
mod check;
mod dashscope;
mod file;
mod gate;
mod jwt;
mod kling;
mod minimax;
mod mp4;
mod openai;
mod picture;
mod rate;
mod reply;
mod scenario;
mod tasks;
mod veo;

pub(crate) use gate::Gate;
pub use rate::Asked;
pub(crate) use rate::Rates;
pub(crate) use reply::answer;
pub(crate) use tasks::Book;

/// The access key of the fake Kling.
pub const KLING_ACCESS: &str = "sim-access";
/// The secret that belongs to it.
pub const KLING_SECRET: &str = "sim-secret";

/// Every video scenario with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    scenario::TABLE.iter().copied()
}

/// Whether a path belongs to a maker of videos.
pub(crate) fn is_ours(path: &str) -> bool {
    path.starts_with("/video/") || path == "/v1/videos" || path.starts_with("/v1/videos/")
}
