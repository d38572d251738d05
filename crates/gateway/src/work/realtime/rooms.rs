//! What the bytes of a socket take of the budget for all bodies: those that come in and are no
//! message yet, and those that wait to be written. A few are always there and not counted.

use crate::door::bodies::{Bodies, BodyShare, SMALL, Whose};
use std::sync::Arc;

/// Bytes that are not counted: nearly all events are shorter.
const FEW: usize = 16 << 10;

pub struct MessageRoom {
    bodies: Arc<Bodies>,
    whose: Whose,
    /// No message is longer; what comes beyond is framing, or part of the next one.
    longest: usize,
    share: Option<BodyShare>,
}

/// There is no room for all the messages that are under way.
#[derive(Debug)]
pub struct NoMessageRoom;

impl MessageRoom {
    pub fn new(bodies: Arc<Bodies>, whose: Whose, longest: usize) -> MessageRoom {
        MessageRoom { bodies, whose, longest, share: None }
    }

    /// Another one of the same kind, with nothing in it.
    pub fn beside(&self) -> MessageRoom {
        MessageRoom::new(self.bodies.clone(), self.whose, self.longest)
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Room for so many bytes. In steps that double, so that a long message is counted now and then
    /// and not with each of its pieces.
    pub fn cover(&mut self, bytes: usize) -> Result<(), NoMessageRoom> {
        let has = self.share.as_ref().map_or(0, BodyShare::bytes);
        let needed = bytes.min(self.longest);
        if bytes <= FEW || needed <= has {
            return Ok(());
        }
        let wanted = needed.max(has * 2).max(SMALL).min(self.longest);
        let covered = match &mut self.share {
            Some(share) => share.grow_now(wanted),
            None => self.bodies.room_now(self.whose, wanted).map(|share| self.share = Some(share)),
        };
        covered.map_err(|_| NoMessageRoom)
    }

    /// The room goes with a message of so many bytes.
    pub fn take(&mut self, bytes: usize) -> Option<BodyShare> {
        let mut share = self.share.take()?;
        share.shrink(bytes);
        Some(share)
    }

    /// Takes over the room of what is put in here.
    pub fn adopt(&mut self, share: BodyShare) {
        self.share.get_or_insert(share);
    }

    pub fn leave(&mut self) {
        self.share = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_is_long_is_counted_until_it_is_gone() {
        let bodies = Bodies::new(16 * MIB, 4 * MIB);
        let mut room = MessageRoom::new(bodies.clone(), Whose::Penniless, 8 * MIB);
        room.cover(FEW).expect("room");
        assert_eq!(bodies.used(), 0, "a short one is not");
        for bytes in [FEW + 1, MIB, 3 * MIB] {
            room.cover(bytes).expect("room");
            assert!(bodies.used() >= bytes, "{}", bodies.used());
        }
        let with_message = room.take(3 * MIB).expect("its room");
        assert_eq!(bodies.used(), 3 * MIB);
        let mut other = room.beside();
        other.adopt(with_message);
        other.cover(3 * MIB).expect("it has it");
        assert_eq!(bodies.used(), 3 * MIB);
        assert!(other.cover(5 * MIB).is_err(), "more than a part of the budget");
        other.leave();
        assert_eq!(bodies.used(), 0);
    }
}
