//! Vorbis: a packet is a short or a long block, and two neighbours overlap by half of each.

use super::bits::BackBits;

/// What the three headers tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Vorbis {
    pub(super) rate: u64,
    /// Samples of a short and of a long block.
    blocks: [u64; 2],
    /// Whether a mode's blocks are long.
    modes: Vec<bool>,
    /// The block before.
    before: Option<u64>,
}

impl Vorbis {
    /// The first header.
    pub(super) fn identified(packet: &[u8]) -> Option<Vorbis> {
        let rest = packet.strip_prefix(b"\x01vorbis")?;
        let rate = u32::from_le_bytes(rest.get(5..9)?.try_into().ok()?);
        let sizes = *rest.get(21)?;
        let blocks = [1 << (sizes & 15), 1 << (sizes >> 4)];
        let honest = (64..=8_192).contains(&blocks[0]) && blocks[0] <= blocks[1] && blocks[1] <= 8_192 && rate > 0;
        honest.then_some(Vorbis { rate: rate.into(), blocks, ..Vorbis::default() })
    }

    /// The third header. Its modes stand at its end, so that it can be read from there without
    /// knowing codebooks.
    pub(super) fn set_up(&mut self, packet: &[u8]) -> Option<()> {
        let body = packet.strip_prefix(b"\x05vorbis")?;
        let mut bits = BackBits::new(body);
        // The last bit that is set ends the header.
        while bits.take(1)? == 0 {}
        let mut longs = Vec::new();
        let mut modes = None;
        while bits.left() >= 47 && longs.len() < 64 {
            if bits.take(8)? > 63 || bits.take(16)? != 0 || bits.take(16)? != 0 {
                break;
            }
            longs.push(bits.take(1)? == 1);
            let mut count = bits;
            if count.take(6)? + 1 == longs.len() as u64 {
                modes = Some(longs.len());
            }
        }
        longs.truncate(modes?);
        longs.reverse();
        self.modes = longs;
        Some(())
    }

    /// The most that may be cut off at the end.
    pub(super) fn long_block(&self) -> u64 {
        self.blocks[1]
    }

    /// How many samples a packet adds; `None` for what is no sound.
    pub(super) fn samples(&mut self, packet: &[u8]) -> Option<u64> {
        let first = *packet.first()?;
        if first & 1 == 1 {
            return None;
        }
        let width = usize::BITS - (self.modes.len() - 1).leading_zeros();
        let mode = usize::from(first >> 1) & ((1 << width) - 1);
        let block = self.blocks[usize::from(*self.modes.get(mode)?)];
        let before = self.before.replace(block);
        Some(before.map_or(0, |before| (before + block) / 4))
    }
}

/// The three headers as Matroska keeps them: their number less one, the lengths of all but the
/// last, then the packets.
pub(super) fn from_private(bytes: &[u8]) -> Option<Vorbis> {
    let mut rest = bytes.strip_prefix(&[2])?;
    let mut sizes = [0usize; 2];
    for size in &mut sizes {
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            *size += usize::from(byte);
            if byte < 255 {
                break;
            }
        }
    }
    let mut vorbis = Vorbis::identified(rest.get(..sizes[0])?)?;
    vorbis.set_up(rest.get(sizes[0].checked_add(sizes[1])?..)?)?;
    Some(vorbis)
}
