//! Whose place a newcomer gets: of those with nothing under way the one that has shown least, of
//! these one of the address that has most places, of these the one that has been silent longest.

use super::{Seat, Whom};
use std::cmp::Reverse;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownSoFar {
    /// No request was read to the end of its head.
    Nothing,
    /// A request, and no valid key.
    NoKey,
    Key,
}

/// In the order in which they have to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    shown: ShownSoFar,
    load: Reverse<usize>,
    since: u64,
    id: u64,
}

impl Candidate {
    /// A seat whose connection has nothing under way; `load` is how many its address has.
    pub fn of(seat: &Seat, load: usize) -> Option<Candidate> {
        let since = seat.waits_since()?;
        let shown = match (seat.is_proven(), seat.has_asked()) {
            (true, _) => ShownSoFar::Key,
            (false, true) => ShownSoFar::NoKey,
            (false, false) => ShownSoFar::Nothing,
        };
        Some(Candidate { shown, load: Reverse(load), since, id: seat.id })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether this newcomer may have its place.
    pub fn fits(&self, seat: &Seat, whom: Whom) -> bool {
        match whom {
            Whom::Of(peer) => seat.peer == peer,
            Whom::Strangers => seat.is_stranger(),
            Whom::Handshakes => seat.is_shaking(),
            Whom::Anybody { stranger } => !stranger || self.shown != ShownSoFar::Key,
        }
    }
}

/// The first so many. One that has shown a key goes alone, and only when nobody else is left.
pub(super) fn least(mut all: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    if all.len() > most {
        all.select_nth_unstable(most);
        all.truncate(most);
    }
    all.sort_unstable();
    let keyless = all.iter().take_while(|one| one.shown != ShownSoFar::Key).count();
    all.truncate(keyless.max(1));
    all
}
