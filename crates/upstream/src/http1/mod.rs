//! HTTP/1.1 to providers, driven by whoever waits for the reply: no task per connection, no queue
//! between them, and no buffer while a reply is silent. What an open stream costs is mostly what
//! its two connections hold, so the one to the provider holds next to nothing
//! (docs/decisions/0014).

mod answer;
mod connection;
mod head;
mod pool;
mod prepared;
mod request;
mod upgraded;

pub use answer::IncomingBody;
pub(crate) use connection::{Connection, Unanswered};
pub(crate) use pool::Pool;
pub(crate) use prepared::{PLACE, PreparedHead};
pub(crate) use request::Written;
pub use upgraded::Upgraded;
