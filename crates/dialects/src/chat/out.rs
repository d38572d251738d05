//! Puts together what goes on to the client, copying only when something changed.

use bytes::Bytes;
use std::ops::Range;

/// What goes on to the client: the chunk itself as long as nothing changes.
pub(crate) struct Out<'a> {
    pub from: &'a Bytes,
    new: Vec<u8>,
    /// Up to here `from` was copied or left out; 0 with `new` empty: nothing changed yet.
    taken: usize,
    /// Start of the next event.
    pub at: usize,
}

impl<'a> Out<'a> {
    pub fn new(from: &'a Bytes) -> Self {
        Out { from, new: Vec::new(), taken: 0, at: 0 }
    }

    pub fn keep(&mut self, len: usize) {
        self.at += len;
    }

    /// Copies what was buffered so far.
    fn copy(&mut self) {
        self.new.extend_from_slice(&self.from[self.taken..self.at]);
        self.taken = self.at;
    }

    pub fn drop(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        if self.at == self.taken && self.new.is_empty() {
            // Nothing before it: the rest can still be a slice.
            self.at += len;
            self.taken = self.at;
            return;
        }
        self.copy();
        self.at += len;
        self.taken = self.at;
    }

    pub fn insert(&mut self, text: &[u8]) {
        self.copy();
        self.new.extend_from_slice(text);
    }

    /// Leaves the event out and gives the bytes to write to instead of it.
    pub fn instead(&mut self, len: usize) -> &mut Vec<u8> {
        self.drop(len);
        if self.new.is_empty() {
            self.new.reserve(self.from.len() + 128);
        }
        &mut self.new
    }

    pub fn put(&mut self, len: usize, parts: &[&[u8]]) {
        self.drop(len);
        for part in parts {
            self.new.extend_from_slice(part);
        }
    }

    /// Keeps the event but for one place, counted from its start.
    pub fn edit(&mut self, place: Range<usize>, text: &[u8], len: usize) {
        if self.new.is_empty() {
            self.new.reserve(self.from.len() - self.taken + 32);
        }
        self.new.extend_from_slice(&self.from[self.taken..self.at + place.start]);
        self.new.extend_from_slice(text);
        self.taken = self.at + place.end;
        self.at += len;
    }

    pub fn finish(mut self) -> Bytes {
        if !self.new.is_empty() {
            self.copy();
            return Bytes::from(self.new);
        }
        if self.taken == 0 && self.at == self.from.len() {
            return self.from.clone();
        }
        self.from.slice(self.taken..self.at)
    }
}
