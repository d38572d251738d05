//! A call that waits for a provider's verdict: it is begun here, and ended minutes later by
//! whichever replica finds out how it went. The hold and the task are durable before a byte leaves,
//! the provider's id before the caller is answered, and the end of the task is the end of the hold.
//! Nothing is ever sent twice that may have been taken.
//!
//! What is made is the affair of whoever implements [`TaskWork`] and [`TaskDesk`].

mod board;
mod create;
mod desk;
mod end;
mod home;
mod look;
mod lost;
mod made;
mod provider_gone;
mod submit;
mod watched;

pub use board::Board;
#[cfg(test)]
pub(crate) use create::HOLD_LIFE;
pub use create::{TaskAsk, create_task};
pub use desk::{TaskDesk, TaskHabits, TaskReport, TaskSearch, TaskStanding, TaskUse, TaskWork, Which};
pub use home::{TaskHome, home};
pub use look::{look, refresh};
pub use made::Made;
pub use watched::Watched;
#[cfg(test)]
pub(crate) use watched::decided_at;
pub(crate) use watched::{millis, put_back};
