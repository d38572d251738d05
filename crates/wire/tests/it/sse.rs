//! Events cut from bytes: every framing, any cuts, in linear time.

use bytes::Bytes;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Instant;
use tollgate_wire::sse::{Cutter, EventData, Frame, TooLong, join};

/// One event of a stream.
#[derive(Debug, PartialEq)]
struct Event {
    /// The exact bytes, the ending blank line included; a slice of the chunk when it lies inside
    /// one.
    raw: Bytes,
    /// The data lines, joined by a newline.
    data: Option<Bytes>,
    name: Option<Bytes>,
}

impl Event {
    fn of(frame: Frame, raw: Bytes) -> Event {
        let data = match frame.data {
            EventData::None => None,
            EventData::One(place) => Some(raw.slice(place)),
            EventData::Many => Some(Bytes::from(join(&raw, b'\n'))),
        };
        Event { data, name: frame.name.map(|place| raw.slice(place)), raw }
    }
}

/// Cuts a stream into events, as its users do.
struct Reader {
    cutter: Cutter,
    ready: VecDeque<Result<Event, TooLong>>,
    dead: bool,
}

impl Reader {
    fn new(most: usize) -> Self {
        Reader { cutter: Cutter::new(most), ready: VecDeque::new(), dead: false }
    }

    /// After an event that was too long nothing is read.
    fn push(&mut self, chunk: Bytes) {
        if !self.dead && self.cut(chunk).is_err() {
            self.dead = true;
            self.ready.push_back(Err(TooLong));
        }
    }

    fn cut(&mut self, chunk: Bytes) -> Result<(), TooLong> {
        let Some(bytes) = self.cutter.take(chunk)? else { return Ok(()) };
        let mut start = 0;
        while let Some(frame) = self.cutter.next(&bytes[start..])? {
            let raw = bytes.slice(start..start + frame.end);
            start += frame.end;
            self.ready.push_back(Ok(Event::of(frame, raw)));
        }
        self.cutter.hold(&bytes[start..])
    }

    fn next(&mut self) -> Option<Result<Event, TooLong>> {
        self.ready.pop_front()
    }

    fn take_rest(&mut self) -> Option<Event> {
        self.cutter.rest().map(|(raw, frame)| Event::of(frame, Bytes::from(raw)))
    }
}

fn read(chunks: &[&[u8]]) -> Vec<(Option<String>, Option<String>)> {
    let mut reader = Reader::new(1 << 20);
    let mut events = Vec::new();
    let text = |b: Bytes| String::from_utf8_lossy(&b).into_owned();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = reader.next() {
            let event = event.unwrap();
            events.push((event.name.map(text), event.data.map(text)));
        }
    }
    events
}

fn data(input: &str) -> Vec<String> {
    read(&[input.as_bytes()]).into_iter().filter_map(|(_, data)| data).collect()
}

#[test]
fn framings() {
    assert_eq!(data("data: a\n\ndata: b\n\n"), ["a", "b"]);
    assert_eq!(data("data: a\r\n\r\ndata: b\r\n\r\n"), ["a", "b"]);
    assert_eq!(data("data: a\r\rdata: b\r\r"), ["a", "b"]);
    assert_eq!(data("data:a\n\n"), ["a"]);
    assert_eq!(data("data:  a\n\n"), [" a"]);
    assert_eq!(data("data: a\ndata: b\ndata\n\n"), ["a\nb\n"]);
    assert_eq!(data(": comment\ndata: a\n: more\n\n"), ["a"]);
    assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
    assert_eq!(data("id: 1\nretry: 5\nevent: x\ndata: a\n\n"), ["a"]);
    assert_eq!(data("datax: a\ndatum: b\n\n"), [""; 0]);
    assert_eq!(data("data: a\u{2028}b\u{85}c\n\n"), ["a\u{2028}b\u{85}c"]);
    assert_eq!(data("data: a\n"), [""; 0]);
    assert_eq!(read(&[b"event: ping\ndata: {}\n\n"]), [(Some("ping".into()), Some("{}".into()))]);
}

#[test]
fn a_split_line_end_is_no_extra_event() {
    assert_eq!(read(&[b"data: a\r\n\r", b"\ndata: b\r\n\r\n"]).len(), 2);
    assert_eq!(read(&[b"data: a\r", b"\n\r\n"]).len(), 1);
    // The event is given at once, not when the next one proves the line end.
    assert_eq!(read(&[b"data: a\r\n\r"]).len(), 1);
}

#[test]
fn whole_events_are_slices_of_the_chunk() {
    let chunk = Bytes::from_static(b"data: a\n\ndata: b\n\n");
    let mut reader = Reader::new(100);
    reader.push(chunk.clone());
    let first = reader.next().unwrap().unwrap();
    assert_eq!(first.raw.as_ptr(), chunk.as_ptr());
    assert_eq!(first.data.unwrap().as_ptr(), chunk[6..].as_ptr());
}

#[test]
fn the_unterminated_rest() {
    let mut reader = Reader::new(100);
    reader.push(Bytes::from_static(b"data: a\n\ndata: [DO"));
    reader.push(Bytes::from_static(b"NE]"));
    assert!(reader.next().is_some());
    assert!(reader.next().is_none());
    let rest: Event = reader.take_rest().unwrap();
    assert_eq!(rest.data.as_deref(), Some(&b"[DONE]"[..]));
    assert_eq!(rest.raw, "data: [DONE]");
    assert!(reader.take_rest().is_none());
}

#[test]
fn too_long_ends_the_reading() {
    for chunks in [vec!["data: 0123456789\n\n"], vec!["data: 01234", "56789"], vec!["data: 0123456789"]] {
        let mut reader = Reader::new(12);
        for chunk in chunks {
            reader.push(Bytes::copy_from_slice(chunk.as_bytes()));
        }
        assert_eq!(reader.next(), Some(Err(TooLong)));
        reader.push(Bytes::from_static(b"data: a\n\n"));
        assert_eq!(reader.next(), None);
    }
}

/// Four times the bytes must cost about four times the work, one byte at a time.
#[test]
fn one_byte_at_a_time_is_linear() {
    let time = |len: usize| {
        let line = [b"data: ".as_slice(), &vec![b'x'; len], b"\n\n"].concat();
        let line = Bytes::from(line);
        let start = Instant::now();
        let mut reader = Reader::new(8 << 20);
        let mut events = 0;
        for at in 0..line.len() {
            reader.push(line.slice(at..at + 1));
            while reader.next().is_some() {
                events += 1;
            }
        }
        assert_eq!(events, 1);
        start.elapsed()
    };
    // A machine that stands still for a moment spoils one try; what is not linear spoils all of
    // them.
    let mut seen = Vec::new();
    let linear = std::iter::repeat_with(|| (time(1 << 20), time(4 << 20))).take(10).any(|(small, large)| {
        seen.push((small, large));
        large < small * 16
    });
    assert!(linear, "{seen:?}");
}

proptest! {
    #[test]
    fn cuts_do_not_matter(
        input in r"(data|id|event|:|x| |a|\r|\n|\r\n|\u{feff}){0,40}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = input.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let chunks: Vec<&[u8]> = places.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        let whole: Vec<_> = read(&[bytes]).into_iter().filter(|e| e.1.is_some()).collect();
        let pieces: Vec<_> = read(&chunks).into_iter().filter(|e| e.1.is_some()).collect();
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn no_byte_is_lost(chunks in prop::collection::vec("[da:t \r\nx]{0,12}", 0..12)) {
        let mut reader = Reader::new(1 << 20);
        let mut all = Vec::new();
        for chunk in &chunks {
            reader.push(Bytes::copy_from_slice(chunk.as_bytes()));
            while let Some(event) = reader.next() {
                all.extend_from_slice(&event.unwrap().raw);
            }
        }
        if let Some(rest) = reader.take_rest() {
            all.extend_from_slice(&rest.raw);
        }
        prop_assert_eq!(all, chunks.concat().into_bytes());
    }
}
