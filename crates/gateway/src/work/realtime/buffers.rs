//! Buffers of sockets. A socket has one only while something is read or written, so that a quiet
//! session has none; those that were used are used again by the next session of the same thread.

use std::cell::RefCell;

/// What is read at once.
pub const READ_AT_ONCE: usize = 64 << 10;
/// Buffers that a thread keeps of each kind, and how large those for writing may be.
const SPARE: usize = 4;
const LARGEST: usize = 128 << 10;

thread_local! {
    static READ: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
    static WRITE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// One to read into: all of it is initialized.
pub fn to_read() -> Box<[u8]> {
    READ.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; READ_AT_ONCE].into())
}

pub fn was_read(buffer: Box<[u8]>) {
    READ.with_borrow_mut(|spare| {
        if spare.len() < SPARE && buffer.len() == READ_AT_ONCE {
            spare.push(buffer);
        }
    });
}

/// An empty one to write from.
pub fn to_write() -> Vec<u8> {
    WRITE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

pub fn was_written(mut buffer: Vec<u8>) {
    buffer.clear();
    WRITE.with_borrow_mut(|spare| {
        if spare.len() < SPARE && (1..=LARGEST).contains(&buffer.capacity()) {
            spare.push(buffer);
        }
    });
}
