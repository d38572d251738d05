//! Where a body is read into. A large read takes less of the processor for each byte, and more
//! memory. So a read is as large as those before it have shown to be worth it, and while nothing
//! comes a connection has no memory for it.

use bytes::{Bytes, BytesMut};

/// The caller reads so much at once to its stack.
const SMALL: usize = 16 << 10;
/// The first read that is larger, and the largest: of a sender that large reads are earned by, and
/// of one that is trusted.
const FIRST: u32 = 64 << 10;
const EARNED: u32 = 128 << 10;
const TRUSTED: u32 = 384 << 10;

/// The memory of one body that is read.
pub struct BodySpace {
    space: BytesMut,
    /// How large the next read may be.
    step: u32,
    /// How large it may be whatever those before it were, and how large at most.
    least: u32,
    most: u32,
}

impl BodySpace {
    /// For a sender whose word for a length is not enough: large reads come after a full one.
    pub fn earned() -> BodySpace {
        BodySpace { space: BytesMut::new(), step: 0, least: 0, most: EARNED }
    }

    /// For a sender that is trusted to send what it announces.
    pub fn trusted() -> BodySpace {
        BodySpace { space: BytesMut::new(), step: FIRST, least: FIRST, most: TRUSTED }
    }

    /// Where the next read goes, when so much of a body is known to come; `None`: to the stack.
    pub fn room(&mut self, ahead: u64) -> Option<&mut BytesMut> {
        let step = self.step as usize;
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX).min(step);
        if ahead <= SMALL {
            return None;
        }
        // A small rest of the space is not worth a read of its own. All of it is used again where
        // the pieces before are gone.
        if self.space.capacity() < ahead.min(step / 4) && !self.space.try_reclaim(ahead) {
            self.space = BytesMut::with_capacity(ahead);
        }
        Some(&mut self.space)
    }

    /// What was read into the room.
    pub fn take(&mut self) -> Bytes {
        let read = self.space.len();
        if read == self.space.capacity() {
            self.step = (self.step * 2).min(self.most);
        } else if read < self.step as usize / 4 {
            self.step /= 2;
        }
        if self.step < FIRST {
            self.step = self.least;
        }
        self.space.split().freeze()
    }

    /// A read to the stack filled it, or did not.
    pub fn read_small(&mut self, full: bool) {
        self.step = if full { FIRST } else { self.least };
    }

    /// Nothing comes for now.
    pub fn release(&mut self) {
        self.space = BytesMut::new();
    }

    /// How much memory it has beside what it handed over.
    pub fn held(&self) -> usize {
        self.space.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as much as there is room for, up to `most`; answers how much that was.
    fn read(space: &mut BodySpace, ahead: u64, most: usize) -> Option<usize> {
        let room = space.room(ahead)?;
        let length = room.capacity().min(most);
        room.resize(length, 7);
        Some(space.take().len())
    }

    #[test]
    fn reads_grow_while_they_are_full() {
        let mut space = BodySpace::trusted();
        let sizes: Vec<usize> = (0..5).filter_map(|_| read(&mut space, u64::MAX, usize::MAX)).collect();
        assert_eq!(sizes, [64 << 10, 128 << 10, 256 << 10, 384 << 10, 384 << 10]);
        // Less comes than there is room for: reads become smaller, and not too small.
        for _ in 0..8 {
            assert!(read(&mut space, u64::MAX, 100).is_some());
        }
        space.release();
        assert_eq!(read(&mut space, u64::MAX, usize::MAX), Some(64 << 10));
    }

    #[test]
    fn large_reads_are_earned() {
        let mut space = BodySpace::earned();
        assert_eq!(read(&mut space, u64::MAX, usize::MAX), None);
        space.read_small(false);
        assert_eq!((read(&mut space, u64::MAX, usize::MAX), space.held()), (None, 0));
        space.read_small(true);
        let sizes: Vec<usize> = (0..3).filter_map(|_| read(&mut space, u64::MAX, usize::MAX)).collect();
        assert_eq!(sizes, [64 << 10, 128 << 10, 128 << 10]);
        assert_eq!(read(&mut space, u64::MAX, 100), Some(100));
        assert_eq!(read(&mut space, u64::MAX, 100), Some(100));
        assert_eq!(read(&mut space, u64::MAX, 100), None, "they are to be earned again");
    }

    #[test]
    fn a_short_rest_is_read_to_the_stack_and_nothing_is_kept() {
        let mut space = BodySpace::trusted();
        assert_eq!(read(&mut space, 16 << 10, usize::MAX), None);
        assert_eq!(read(&mut space, 20_000, usize::MAX), Some(20_000));
        assert!(read(&mut space, 1 << 20, 1_000).is_some() && space.held() > 0);
        space.release();
        assert_eq!(space.held(), 0);
    }
}
