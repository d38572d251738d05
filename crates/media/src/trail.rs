//! Where a reader of JSON in pieces stands: the brackets that are open, and of each object the
//! member that is being read.

/// Longest name of a member that is distinguished from others.
const MOST_NAME: usize = 64;

/// A step on the way to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStep {
    Name(&'static str),
    /// Each item of a list.
    Each,
}

/// An open bracket: of a list, or of an object whose member of this name is being read.
#[derive(Debug)]
struct Frame {
    list: bool,
    name: Vec<u8>,
}

/// All open brackets.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    frames: Vec<Frame>,
    name: Vec<u8>,
    name_goes_on: bool,
}

impl Trail {
    pub fn open(&mut self, list: bool) {
        self.frames.push(Frame { list, name: Vec::new() });
    }

    pub fn close(&mut self) {
        self.frames.pop();
    }

    /// A piece of a member's name.
    pub fn name(&mut self, text: &[u8], last: bool) {
        if !self.name_goes_on {
            self.name.clear();
        }
        let room = (MOST_NAME + 2).saturating_sub(self.name.len());
        self.name.extend_from_slice(&text[..text.len().min(room)]);
        self.name_goes_on = !last;
        if let (true, Some(frame)) = (last, self.frames.last_mut()) {
            std::mem::swap(&mut frame.name, &mut self.name);
        }
    }

    /// The value that begins here has this path.
    pub fn is_at(&self, path: &[PathStep]) -> bool {
        let on = |(frame, step): (&Frame, &PathStep)| match step {
            PathStep::Each => frame.list,
            PathStep::Name(name) => {
                !frame.list && frame.name.len() == name.len() + 2 && frame.name[1..].starts_with(name.as_bytes())
            }
        };
        !path.is_empty() && path.len() == self.frames.len() && self.frames.iter().zip(path).all(on)
    }
}
