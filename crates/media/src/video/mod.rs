//! Video requests and tasks: what a caller may send, what each family of models makes of it, and
//! how a task is shown.
//!
//! A family's rules are data (which fields it reads, what `metadata` may hold, what it sells) and
//! one pure function that builds the provider's body. The body is final: what is priced is read off
//! it, so nothing is asked for that was not priced. Which family a model belongs to is the
//! catalog's word ([`Variant::named`]), never a guess from its name.
//!
//! The silent drops that the families are specified with stay as they are on the wire; each is
//! reported in a [`Warning`].

mod fields;
mod form;
mod hailuo;
mod kling;
mod kling_omni;
mod kling_turbo;
mod length;
mod minimax;
mod parts;
mod plan;
mod refusal;
mod request;
mod seedance;
mod shapes;
mod size;
mod sora;
mod task;
mod upload;
mod variant;
mod veo;
mod wan;
mod warnings;

pub use plan::{FACTS, Plan, PlanBound, REMIX, plan};
pub use refusal::{VideoRefusal, Warning};
pub use request::{Reference, VideoRequest};
pub use task::{Failure, TaskView, VideoState, deleted, legacy, legacy_error, list, list_of, openai};
pub use upload::PictureUpload;
pub use variant::{Api, Offer, Variant};
pub use warnings::Warnings;
