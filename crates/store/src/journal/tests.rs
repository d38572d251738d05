//! The journal by itself: turns of the segments, growth, marks, and what is read back after damage.

use super::*;

const SEGMENT: u64 = 256;

struct House {
    dir: tempfile::TempDir,
    journal: Journal,
}

impl House {
    /// A new journal, as recovery leaves it.
    fn new(limit: u64) -> House {
        let dir = tempfile::tempdir().expect("a folder");
        let (journal, left) = open(&dir, limit);
        assert!(left.is_empty());
        journal.reset().expect("a journal");
        House { dir, journal }
    }

    fn close(&self, op: u64, payload: &[u8], durable: u64) {
        self.journal.append_close(call(op), op, &mut record(payload), durable);
    }

    /// What a start after a crash finds.
    fn left(&self) -> Vec<Vec<u8>> {
        open(&self.dir, 1 << 20).1
    }

    fn active(&self) -> usize {
        self.journal.lock().active
    }

    fn length(&self, name: &str) -> u64 {
        std::fs::metadata(self.dir.path().join(name)).expect("a segment").len()
    }
}

fn open(dir: &tempfile::TempDir, limit: u64) -> (Journal, Vec<Vec<u8>>) {
    let options = Options { journal_segment: SEGMENT, journal_limit: limit, ..Options::default() };
    Journal::open(dir.path(), &options).expect("a journal")
}

fn call(number: u64) -> CallId {
    CallId(u128::from(number).to_be_bytes())
}

fn record(payload: &[u8]) -> Vec<u8> {
    let mut buffer = buffer();
    buffer.extend_from_slice(payload);
    buffer
}

/// A payload that takes `bytes` of a segment with its header.
fn filled(with: u8, bytes: u64) -> Vec<u8> {
    vec![with; bytes as usize - RECORD_HEADER]
}

#[test]
fn what_was_written_is_found_in_its_order() {
    let house = House::new(1 << 20);
    house.journal.append_hold(1, &mut record(b"hold"), 0);
    house.close(2, b"close", 0);
    house.journal.append_mark(call(3), record(b"mark"), 0);
    assert_eq!(house.left(), [b"hold".to_vec(), b"close".to_vec(), b"mark".to_vec()]);
    assert_eq!(house.journal.mark_of(call(3)).as_deref(), Some(&b"mark"[..]));
    assert_eq!(house.journal.mark_of(call(2)), None);
    house.journal.reset().expect("a journal");
    assert!(house.left().is_empty(), "after recovery all of it is in the database");
    assert_eq!(house.journal.mark_of(call(3)), None);
}

#[test]
fn segments_take_turns_when_they_are_full_and_free() {
    let house = House::new(1 << 20);
    let first = house.active();
    // One byte is left: the next record does not fit, and the other segment is free.
    house.close(1, &filled(b'a', SEGMENT - HEADER - 1), 0);
    assert_eq!(house.active(), first);
    house.close(2, &filled(b'b', 60), 0);
    assert_eq!(house.active(), 1 - first, "no room, and nothing is wanted of the other one");
    assert_eq!(house.left(), [filled(b'a', SEGMENT - HEADER - 1), filled(b'b', 60)]);

    // The first is wanted until operation 1 is committed: the second grows.
    house.close(3, &filled(b'c', SEGMENT), 0);
    house.close(4, &filled(b'd', 60), 0);
    assert_eq!(house.active(), 1 - first);
    assert_eq!(house.left().len(), 4);
    house.close(5, &filled(b'e', 60), 1);
    assert_eq!(house.active(), first, "free as soon as its last operation is committed");
    let left: Vec<u8> = house.left().iter().map(|payload| payload[0]).collect();
    assert_eq!(left, b"bcde", "the older segment first, and nothing of the earlier turn");
}

/// What was taken in advance is taken to its last byte, in both segments, and only then is
/// something lost.
#[test]
fn a_full_disk_takes_records_while_there_is_room_in_either_segment() {
    let house = House::new(1 << 20);
    house
        .journal
        .lock()
        .segments
        .iter_mut()
        .for_each(|segment| Arc::get_mut(&mut segment.tape).expect("alone").full_at = Some(SEGMENT));
    // A mark in the first segment, whose rest takes no second record.
    house.journal.append_mark(call(9), record(&filled(b'm', 30)), 0);
    house.close(1, &filled(b'a', SEGMENT - HEADER - 30 - 59), 0);
    house.close(2, &filled(b'b', 60), 0);
    assert!(house.journal.accepts(0), "it went to the other segment");
    house.close(3, &filled(b'c', SEGMENT - HEADER - 60), 0);
    assert!(house.journal.accepts(0), "to the last byte");
    house.close(4, &filled(b'd', 60), 0);
    assert!(!house.journal.accepts(3), "nothing is committed and nothing is left");
    let firsts = || house.left().iter().map(|payload| payload[0]).collect::<Vec<u8>>();
    assert_eq!(firsts(), b"mabc");
    // The first segment is free again. Its mark finds no room in the second, and no record waits
    // for that.
    house.close(5, &filled(b'e', 60), 1);
    assert_eq!(firsts(), b"bcme");
    assert_eq!(house.journal.mark_of(call(9)), Some(filled(b'm', 30)));
    assert!(!house.journal.accepts(3) && house.journal.accepts(4), "what was lost must be committed first");
}

#[test]
fn a_record_larger_than_a_segment_makes_the_one_grow_that_is_empty() {
    let house = House::new(1 << 20);
    let first = house.active();
    house.close(1, &filled(b'a', 2 * SEGMENT), 0);
    assert_eq!(house.active(), first, "the other one has no more room");
    assert_eq!(house.left(), [filled(b'a', 2 * SEGMENT)]);
}

#[test]
fn a_segment_is_full_at_exactly_its_size() {
    let house = House::new(1 << 20);
    let first = house.active();
    house.close(1, &filled(b'a', SEGMENT - HEADER), 0);
    house.close(2, b"b", 0);
    assert_eq!(house.active(), 1 - first);
}

#[test]
fn a_segment_that_grew_is_cut_when_it_is_used_again() {
    let house = House::new(1 << 20);
    let (first, second) = if house.active() == 0 { ("journal.0", "journal.1") } else { ("journal.1", "journal.0") };
    house.close(1, &filled(b'a', 2 * SEGMENT), 0);
    assert_eq!([house.length(first), house.length(second)], [HEADER + 2 * SEGMENT, SEGMENT]);
    house.close(2, &filled(b'b', SEGMENT), 0);
    house.close(3, b"c", 1);
    assert_eq!([house.length(first), house.length(second)], [SEGMENT, HEADER + SEGMENT]);
    // One that never grew is not made shorter or longer.
    house.close(4, &filled(b'd', SEGMENT - HEADER - 60), 3);
    assert_eq!(house.length(first), SEGMENT);
}

#[test]
fn what_an_earlier_turn_left_behind_is_never_read_again() {
    let house = House::new(1 << 20);
    // Two records, then a turn later one of the first's size: the second lies there, whole, behind
    // it.
    house.close(1, &filled(b'a', 120), 0);
    house.close(2, &filled(b'b', 120), 0);
    house.close(3, &filled(b'c', SEGMENT), 2);
    house.close(4, &filled(b'd', 120), 3);
    let left: Vec<u8> = house.left().iter().map(|payload| payload[0]).collect();
    assert_eq!(left, b"cd");
}

#[test]
fn what_waits_is_counted_and_bounded() {
    let house = House::new(100);
    assert_eq!((house.journal.waiting_bytes(0), house.journal.accepts(0)), (0, true));
    house.close(1, &filled(b'a', 40), 0);
    house.close(2, &filled(b'b', 59), 0);
    assert_eq!((house.journal.waiting_bytes(0), house.journal.accepts(0)), (99, true));
    house.close(3, b"", 0);
    assert_eq!((house.journal.waiting_bytes(2), house.journal.accepts(2)), (107, false));
    assert_eq!((house.journal.waiting_bytes(3), house.journal.accepts(3)), (0, true), "committed is not waiting");
    let exact = House::new(100);
    exact.close(1, &filled(b'a', 100), 0);
    assert!(!exact.journal.accepts(0), "the limit itself is too much");
    // Over both segments.
    exact.close(2, &filled(b'b', SEGMENT - HEADER - 100), 0);
    exact.close(3, &filled(b'c', 50), 0);
    assert_eq!(exact.journal.waiting_bytes(0), SEGMENT - HEADER + 50);
    assert_eq!(exact.journal.waiting_bytes(2), 50);
}

#[test]
fn marks_of_running_calls_are_carried_over_and_others_are_not() {
    let house = House::new(1 << 20);
    let first = house.active();
    for (number, payload) in [(1, &b"one"[..]), (2, b"two"), (3, b"three")] {
        house.journal.append_mark(call(number), record(payload), 0);
    }
    house.journal.append_mark(call(1), record(b"one more"), 0);
    house.journal.forget_mark(call(2));
    house.close(3, &filled(b'x', SEGMENT), 0);
    assert_eq!(house.journal.mark_of(call(2)), None);
    assert_eq!(house.journal.mark_of(call(3)), None, "its close says all");
    // From the other segment back again, and once more: the marks must have left each before it is
    // reused.
    house.close(4, &filled(b'y', SEGMENT), 4);
    assert_eq!(house.active(), first);
    house.close(5, b"z", 5);
    assert_eq!(house.active(), 1 - first);
    let left = house.left();
    let carried: Vec<_> =
        left.iter().filter(|payload| payload.starts_with(b"one") || payload.starts_with(b"t")).collect();
    assert_eq!(carried, [b"one more"]);
    assert_eq!(house.journal.mark_of(call(1)).as_deref(), Some(&b"one more"[..]));
}

#[test]
fn a_start_goes_on_with_the_younger_segment() {
    for turns in [0, 1] {
        let house = House::new(1 << 20);
        for op in 1..=turns {
            house.close(op, &filled(b'a', SEGMENT), op);
        }
        house.close(9, b"b", 8);
        let active = house.active();
        let (again, _) = open(&house.dir, 1 << 20);
        let inner = again.lock();
        assert_eq!((inner.active, inner.epoch), (active, house.journal.lock().epoch));
        assert_eq!(inner.segments[active].end, house.journal.lock().segments[active].end);
    }
}

#[test]
fn a_damaged_byte_hides_its_record_and_invents_nothing() {
    let house = House::new(1 << 20);
    for (op, payload) in [(1, &b"first"[..]), (2, b"second"), (3, b"third")] {
        house.close(op, payload, 0);
    }
    let whole = house.left();
    let active = house.active();
    let bytes = std::fs::read(house.dir.path().join(["journal.0", "journal.1"][active])).expect("a segment");
    let end = house.journal.lock().segments[active].end as usize;
    for at in 0..end {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            let (_, _, found) = read_segment(&damaged);
            assert!(found.len() < whole.len() && whole.starts_with(&found), "byte {at}: {found:?}");
        }
    }
    for length in 0..end {
        let (_, upto, found) = read_segment(&bytes[..length]);
        assert!(found.len() < whole.len() && whole.starts_with(&found), "cut at {length}");
        assert!(upto >= HEADER && upto <= (length as u64).max(HEADER));
    }
    assert_eq!(read_segment(&bytes).1, end as u64);
    // A length of nothing is where the zeros begin.
    assert_eq!(read_segment(&[]), (0, HEADER, Vec::new()));
}

#[test]
fn only_what_is_not_synced_is_synced() {
    let house = House::new(1 << 20);
    let unsynced = || house.journal.lock().segments.iter().filter(|segment| segment.unsynced).count();
    house.journal.sync();
    assert_eq!(unsynced(), 0);
    house.close(1, b"a", 0);
    assert_eq!(unsynced(), 1);
    house.journal.sync();
    assert_eq!(unsynced(), 0);
}

#[test]
fn a_close_that_cannot_be_written_stops_new_holds_until_it_is_committed() {
    let house = House::new(1 << 20);
    let path = house.dir.path().join("read-only");
    std::fs::write(&path, b"").expect("a file");
    house.journal.lock().segments.iter_mut().for_each(|segment| segment.tape = Arc::new(Tape::unwritable(&path)));
    house.close(7, b"a", 0);
    house.close(6, b"b", 0);
    assert_eq!([house.journal.accepts(6), house.journal.accepts(7)], [false, true]);
    house.journal.append_mark(call(1), record(b"mark"), 7);
    assert_eq!(house.journal.mark_of(call(1)), None);
}

#[cfg(feature = "testing")]
#[test]
fn a_mark_is_distinguished_from_a_close() {
    assert!(is_mark(&record(&[record::MARK, 1])));
    assert!(!is_mark(&record(&[1, record::MARK])) && !is_mark(&buffer()));
}

#[test]
fn space_is_taken_to_the_byte() {
    for size in [1, 65_536, 65_537, 150_000] {
        let dir = tempfile::tempdir().expect("a folder");
        let options = Options { journal_segment: size, ..Options::default() };
        Journal::open(dir.path(), &options).expect("a journal");
        Journal::open(dir.path(), &options).expect("again");
        assert_eq!(std::fs::metadata(dir.path().join("journal.0")).expect("a segment").len(), size);
    }
}

#[cfg(feature = "testing")]
#[test]
fn what_was_synced_survives_a_power_cut() {
    use crate::testing::{Crash, Simulated};
    let dir = tempfile::tempdir().expect("a folder");
    let simulated = Simulated::new(dir.path());
    let options = Options { journal_segment: SEGMENT, simulated: Some(simulated.clone()), ..Options::default() };
    let (journal, _) = Journal::open(dir.path(), &options).expect("a journal");
    journal.reset().expect("a journal");
    // The worst disk: nothing of what was not synced.
    let left = || {
        let after = tempfile::tempdir().expect("a folder");
        simulated.disk.crash(Crash::PowerCut, after.path(), &mut |_| 0);
        open(&after, 1 << 20).1
    };
    journal.append_close(call(1), 1, &mut record(b"a"), 0);
    assert!(left().is_empty(), "this disk loses what it may lose");
    journal.sync();
    assert_eq!(left(), [b"a".to_vec()]);
}

/// Said before or after the record is written, it outlives every turn of the segments, until a
/// start meets no refusal.
#[test]
fn a_refused_close_stays_until_a_start_has_brought_it_in() {
    let house = House::new(1 << 20);
    let of = |number: u64, what: &[u8]| [&[record::CLOSE][..], &call(number).0[..], what].concat();
    house.journal.append_mark(call(1), record(b"mark"), 0);
    house.close(1, &of(1, b"cost"), 0);
    house.journal.keep_close(call(1));
    house.journal.keep_close(call(2));
    assert!(house.journal.keeps_close(call(1)) && !house.journal.keeps_close(call(2)), "not written yet");
    house.close(2, &of(2, b"cost"), 0);
    house.close(2, &of(2, b"a second end"), 0);
    assert!(house.journal.keeps_close(call(2)));
    let lines = || {
        let mut left = house.left();
        left.retain(|payload| payload[0] == record::CLOSE);
        left.sort();
        left.dedup();
        left
    };
    for op in 3..60 {
        house.close(op, &filled(b'x', 60), op);
        assert_eq!(lines()[..1], [of(1, b"cost")], "after {op}");
    }
    assert_eq!(lines(), [of(1, b"cost"), of(2, b"cost")]);
    house.journal.reset().expect("a journal");
    let mut left = house.left();
    left.sort();
    assert_eq!(left, [of(1, b"cost"), of(2, b"cost")]);
    open(&house.dir, 1 << 20).0.reset().expect("a journal");
    assert!(house.left().is_empty());
}
