//! Writing objects and arrays piece by piece, straight into the bytes that are sent.

use super::write::{write_raw, write_str};

/// An object being written.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

/// An array being written.
pub struct Array<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, empty: true }
    }

    pub fn end(self) {
        self.out.push(b'}');
    }

    /// Writes a name; the value must follow.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_str(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub fn text(&mut self, name: &str, value: &str) {
        write_str(self.key(name), value);
    }

    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A text, unless it is empty.
    pub fn filled(&mut self, name: &str, value: &str) {
        self.maybe(name, Some(value).filter(|value| !value.is_empty()));
    }

    /// A text, or null.
    pub fn or_null(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    pub fn number(&mut self, name: &str, value: u64) {
        use std::io::Write as _;
        // Writing to a vector cannot fail.
        let _ = write!(self.key(name), "{value}");
    }

    pub fn bool(&mut self, name: &str, value: bool) {
        self.key(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub fn null(&mut self, name: &str) {
        self.key(name).extend_from_slice(b"null");
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, name: &str, value: &str) {
        write_raw(self.key(name), value.as_bytes());
    }

    pub fn maybe_raw(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.raw(name, value);
        }
    }

    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        let mut inner = Object::begin(self.key(name));
        write(&mut inner);
        inner.end();
    }

    pub fn array(&mut self, name: &str, write: impl FnOnce(&mut Array<'_>)) {
        let mut inner = Array::begin(self.key(name));
        write(&mut inner);
        inner.end();
    }
}

impl<'o> Array<'o> {
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'[');
        Array { out, empty: true }
    }

    pub fn end(self) {
        self.out.push(b']');
    }

    /// Makes room for the next item; it must follow.
    pub fn item(&mut self) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out
    }

    pub fn text(&mut self, value: &str) {
        write_str(self.item(), value);
    }

    pub fn raw(&mut self, value: &str) {
        write_raw(self.item(), value.as_bytes());
    }

    pub fn object(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        let mut inner = Object::begin(self.item());
        write(&mut inner);
        inner.end();
    }
}
