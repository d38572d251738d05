//! Opus: the first byte of a packet tells its length. Times that a container gives are not looked
//! at.

/// Samples a second of every Opus stream.
pub(super) const RATE: u64 = 48_000;
/// What is cut off at the beginning and end of a stream is never more than this.
pub(super) const MOST_BEFORE: u64 = RATE;
pub(super) const MOST_AFTER: u64 = MOST_PACKET;
/// 120 ms.
const MOST_PACKET: u64 = 5_760;

/// How many samples a packet holds.
pub(super) fn samples(packet: &[u8]) -> Option<u64> {
    let first = *packet.first()?;
    let frame = match first >> 3 {
        config @ 0..12 => [480, 960, 1_920, 2_880][usize::from(config % 4)],
        config @ 12..16 => [480, 960][usize::from(config % 2)],
        config => [120, 240, 480, 960][usize::from(config % 4)],
    };
    let count = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u64::from(packet.get(1)? & 0x3f),
    };
    (1..=MOST_PACKET).contains(&(frame * count)).then_some(frame * count)
}

#[cfg(test)]
mod tests {
    use super::samples;

    #[test]
    fn the_first_byte_tells_length_and_number_of_frames() {
        for (packet, wanted) in [
            (&[0x00][..], Some(480)),
            (&[3 << 3], Some(2_880)),
            (&[3 << 3 | 1], Some(5_760)),
            (&[13 << 3 | 2], Some(1_920)),
            (&[16 << 3], Some(120)),
            (&[31 << 3 | 3, 6], Some(5_760)),
            (&[31 << 3 | 3, 7], None),
            (&[31 << 3 | 3, 0], None),
            (&[31 << 3 | 3], None),
            (&[], None),
        ] {
            assert_eq!(samples(packet), wanted, "{packet:?}");
        }
    }
}
