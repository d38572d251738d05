//! Music: one song for each call. It passes as base64 inside the result, or its provider's link is
//! given.

mod asked;
mod call;
mod flow;

pub use asked::AskedMusic;
pub use call::MusicCall;
