//! Events of a provider on their way to a client: read once as they pass, counted, and written as
//! the client takes them. Which format they have is the affair of the work that reads them.

use super::Tokens;
use bytes::Bytes;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;
use tollgate_wire::{Dropped, StreamFault};

pub trait EventReader: Send {
    /// Takes a chunk from the provider and gives what the client gets now: whole events only,
    /// possibly nothing.
    fn feed(&mut self, chunk: Bytes) -> Result<Bytes, BrokenEvents>;
    /// The provider has closed its side, or [`EventReader::saw_done`] said that nothing more
    /// matters.
    fn finish(&mut self) -> EventsEnd;
    /// The provider has said that this was all.
    fn saw_done(&self) -> bool;
    /// The time stands in what the client gets at the end, so that [`EventReader::now`] must say
    /// it.
    fn needs_time(&self) -> bool;
    /// It is so late now, in seconds since 1970.
    fn now(&mut self, seconds: u64);
    /// Nothing of what was given so far went out: what is given next stands alone.
    fn forget_unsent(&mut self);
    /// The event that ends the stream with an error, at this point of it.
    fn error_event(&mut self, code: Code, message: &str) -> Bytes;
    /// What keeps a client waiting between events.
    fn heartbeat(&self) -> Bytes;
    /// All of the answer in one object, where its last event has it.
    fn whole_answer(&self) -> Option<&str>;
    /// What was reported so far.
    fn usage(&self) -> Option<&Usage>;
    /// No output came after the report.
    fn usage_is_current(&self) -> bool;
    /// Our own count of the output.
    fn counted_output(&self) -> u64;
    fn has_output(&self) -> bool;
    /// Writes all that it has seen into a meter.
    fn measure(&self, tokens: &mut Tokens);
    /// What of the answer its client has no form for.
    fn dropped(&self) -> Option<&Dropped>;
    /// Goes on elsewhere with all that it has seen; what is left here reads nothing more.
    fn take(&mut self) -> Box<dyn EventReader>;
}

/// A fault, and the whole events that came before it in the same chunk: these go out first.
pub struct BrokenEvents {
    pub before: Bytes,
    pub fault: StreamFault,
}

/// How a provider's events ended.
pub enum EventsEnd {
    /// Whole. `tail` still has to reach the client; often empty.
    Complete { tail: Bytes },
    /// Cut off: after `rest` (a whole last event, often empty) the client needs an error event.
    Truncated { rest: Bytes },
    /// What was left was an error.
    Fault(StreamFault),
}
