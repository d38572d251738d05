//! The elements that Matroska is made of: a name, a size, and what is in it.

/// The head of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) id: u32,
    /// `None` for one that goes on until another of its kind begins.
    pub(super) size: Option<u64>,
    /// Bytes of the head itself.
    pub(super) head: usize,
}

/// What may stand at the beginning of some bytes.
pub(super) enum Read {
    Element(Element),
    /// More bytes are needed.
    Short,
    /// No element begins so.
    Never,
}

pub(super) fn read(seen: &[u8]) -> Read {
    let Some(&first) = seen.first() else { return Read::Short };
    let wide = first.leading_zeros() as usize + 1;
    if wide > 4 {
        return Read::Never;
    }
    let Some(id) = seen.get(..wide) else { return Read::Short };
    let id = id.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    match seen.get(wide) {
        None => Read::Short,
        Some(0) => Read::Never,
        Some(_) => match number(&seen[wide..]) {
            None => Read::Short,
            Some((size, more)) => Read::Element(Element { id, size, head: wide + more }),
        },
    }
}

/// A number whose first byte tells how many it has; all ones mean that it is not known.
pub(super) fn number(seen: &[u8]) -> Option<(Option<u64>, usize)> {
    let first = *seen.first()?;
    let wide = first.leading_zeros() as usize + 1;
    let bytes = seen.get(..wide).filter(|_| wide <= 8)?;
    let ones = (1u64 << (7 * wide)) - 1;
    let value = bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)) & ones;
    Some(((value != ones).then_some(value), wide))
}

/// A whole number in up to eight bytes.
pub(super) fn whole(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A rate written in floating point, as whole samples a second.
pub(super) fn rate(bytes: &[u8]) -> u64 {
    let rate = match *bytes {
        [one, two, three, four] => f64::from(f32::from_be_bytes([one, two, three, four])),
        [one, two, three, four, five, six, seven, eight] => {
            f64::from_be_bytes([one, two, three, four, five, six, seven, eight])
        }
        _ => 0.0,
    };
    if (1.0..=1e6).contains(&rate) { rate.round() as u64 } else { 0 }
}
