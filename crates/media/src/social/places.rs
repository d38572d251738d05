//! Values at known places of an answer, picked out while it passes. What is picked is small
//! whatever passes: single values as they are, lists as their length, objects as empty or not.

use super::data::FoundValue;
use std::mem;
use tollgate_wire::json::{JsonStep, Scan};

/// An answer in which places can be looked up.
pub trait PlaceLookup {
    /// The value at a pointer such as `/data/0/id`; `-1` is the last entry of a list, the empty
    /// pointer the whole.
    fn find(&self, pointer: &str) -> Option<FoundValue<'_>>;
    /// The first text, number or flag that is the value of a member with this name, at any depth.
    fn find_anywhere(&self, name: &str) -> Option<FoundValue<'_>>;
}

/// Longer single values are known to be there and nothing else.
const LONGEST: usize = 64 << 10;
/// Longer lists are taken for this long.
const MOST_ENTRIES: usize = 100_000;
/// A value of which only is known that it is not nothing.
const SOMETHING: &[u8] = br#"{"":0}"#;

/// The places wanted, and what was found there.
#[derive(Debug)]
pub struct Picked {
    places: Vec<Place>,
    names: Vec<(String, Option<Vec<u8>>)>,
    frames: Vec<Frame>,
    /// Places under the member whose name was read.
    here: Set,
    /// Which of `names` the value to come has.
    named: Option<usize>,
    /// The single value being read: where it belongs, and its text as far as it is buffered.
    reading: Option<(Set, Option<usize>, Vec<u8>)>,
    /// The text of a name that comes in pieces.
    name: Vec<u8>,
}

#[derive(Debug)]
struct Place {
    pointer: String,
    path: Vec<String>,
    found: Option<Vec<u8>>,
}

/// Places by number.
type Set = u64;

/// An open bracket.
#[derive(Debug)]
struct Frame {
    list: bool,
    /// Places below it.
    below: Set,
    /// Places that are it.
    itself: Set,
    /// Places whose member was seen: the first of two counts.
    taken: Set,
    entries: usize,
}

impl Picked {
    /// At most 64 places; a cell has a handful.
    pub fn new<'a>(pointers: impl IntoIterator<Item = &'a str>, names: impl IntoIterator<Item = &'a str>) -> Picked {
        let mut places: Vec<Place> = Vec::new();
        for pointer in [""].into_iter().chain(pointers) {
            if places.len() < Set::BITS as usize && !places.iter().any(|place| place.pointer == pointer) {
                let path = pointer.strip_prefix('/').map(|path| path.split('/').map(str::to_owned).collect());
                places.push(Place { pointer: pointer.to_owned(), path: path.unwrap_or_default(), found: None });
            }
        }
        Picked {
            here: places.iter().enumerate().fold(0, |all, (at, _)| all | 1 << at),
            places,
            names: names.into_iter().map(|name| (name.to_owned(), None)).collect(),
            frames: Vec::new(),
            named: None,
            reading: None,
            name: Vec::new(),
        }
    }

    /// One step of the answer's text, from its first to its last.
    pub(super) fn step(&mut self, step: JsonStep, text: &[u8]) {
        match step {
            JsonStep::Open { list } => {
                let here = self.begin();
                self.named = None;
                let itself = self.those(here, |place, level| place.path.len() == level);
                self.frames.push(Frame { list, below: here & !itself, itself, taken: 0, entries: 0 });
            }
            JsonStep::Close => {
                let Some(frame) = self.frames.pop() else { return };
                let found = match (frame.entries, frame.list) {
                    (0, true) => b"[]".to_vec(),
                    (0, false) => b"{}".to_vec(),
                    (_, false) => SOMETHING.to_vec(),
                    (entries, true) => {
                        let zeros = vec!["0"; entries.min(MOST_ENTRIES)].join(",");
                        format!("[{zeros}]").into_bytes()
                    }
                };
                self.keep(frame.itself, None, &found);
            }
            JsonStep::Name { last } => self.name(text, last),
            JsonStep::Plain { last } => self.plain(text, last),
            JsonStep::Comma | JsonStep::Colon | JsonStep::Blank => {}
        }
    }

    /// A value begins: the places that are here or below.
    fn begin(&mut self) -> Set {
        let level = self.frames.len();
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.list) else { return mem::take(&mut self.here) };
        let index = frame.entries.to_string();
        let below = frame.below;
        frame.entries += 1;
        for place in self.those(below, |place, _| place.path[level - 1] == "-1").iter_bits() {
            // Not the last entry after all.
            self.places[place].found = None;
        }
        self.those(below, |place, _| place.path[level - 1] == "-1" || place.path[level - 1] == index)
    }

    /// Those of a set that fit, given how many brackets are open.
    fn those(&self, set: Set, fits: impl Fn(&Place, usize) -> bool) -> Set {
        let level = self.frames.len();
        set.iter_bits().filter(|at| fits(&self.places[*at], level)).fold(0, |all, at| all | 1 << at)
    }

    fn name(&mut self, text: &[u8], last: bool) {
        if self.name.len() + text.len() <= LONGEST {
            self.name.extend_from_slice(text);
        }
        if !last {
            return;
        }
        let raw = mem::take(&mut self.name);
        if let (Ok(name), Some(frame)) = (Scan::new(&raw).string(), self.frames.last()) {
            let (level, taken) = (self.frames.len(), frame.taken);
            self.here = self.those(frame.below & !taken, |place, _| name.is(&place.path[level - 1]));
            self.named = self.names.iter().position(|(own, found)| found.is_none() && name.is(own));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.entries += 1;
            frame.taken |= self.here;
        }
        self.name = raw;
        self.name.clear();
    }

    fn plain(&mut self, text: &[u8], last: bool) {
        let (set, named, mut read) = match self.reading.take() {
            Some(reading) => reading,
            None => {
                let here = self.begin();
                (self.those(here, |place, level| place.path.len() == level), self.named.take(), Vec::new())
            }
        };
        if (set != 0 || named.is_some()) && read.len() <= LONGEST {
            read.extend_from_slice(text);
        }
        if !last {
            self.reading = Some((set, named, read));
        } else if read.len() > LONGEST {
            self.keep(set, None, SOMETHING);
        } else {
            self.keep(set, named, &read);
        }
    }

    fn keep(&mut self, set: Set, named: Option<usize>, text: &[u8]) {
        for at in set.iter_bits() {
            self.places[at].found = Some(text.to_vec());
        }
        if let Some(at) = named.filter(|_| !FoundValue::new(text).is_nothing()) {
            self.names[at].1 = Some(text.to_vec());
        }
    }
}

impl PlaceLookup for Picked {
    fn find(&self, pointer: &str) -> Option<FoundValue<'_>> {
        self.places.iter().find(|place| place.pointer == pointer)?.found.as_deref().map(FoundValue::new)
    }

    fn find_anywhere(&self, name: &str) -> Option<FoundValue<'_>> {
        self.names.iter().find(|(own, _)| own == name)?.1.as_deref().map(FoundValue::new)
    }
}

trait Bits {
    fn iter_bits(self) -> impl Iterator<Item = usize>;
}

impl Bits for Set {
    fn iter_bits(self) -> impl Iterator<Item = usize> {
        (0..Set::BITS as usize).filter(move |at| self & (1 << at) != 0)
    }
}
