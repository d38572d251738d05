//! Which container it is, by its first bytes.

use super::mp3::{Mp3, tag_length};
use super::{Format, Next, Unmeasured, flac, frames, matroska, mp4, ogg, wav};

/// What tells all containers apart.
pub(super) const ENOUGH: usize = 12;

/// Chooses the format; it is shown the same bytes again.
pub(super) fn step(seen: &[u8], chosen: &mut Option<Box<dyn Format>>) -> Result<Next, Unmeasured> {
    if seen.starts_with(b"ID3") && seen.len() >= 10 {
        // Tags stand before MP3, and now and then before AAC and FLAC: what follows decides.
        return Next::skip(0, tag_length(seen), ENOUGH);
    }
    if seen.is_empty() {
        return Err(Unmeasured::Unknown);
    }
    let (format, need): (Box<dyn Format>, usize) = match seen {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..]
        | [b'R', b'F', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..]
        | [b'B', b'W', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => (Box::<wav::Wav>::default(), 12),
        [b'f', b'L', b'a', b'C', ..] => (Box::<flac::Flac>::default(), 4),
        [b'O', b'g', b'g', b'S', ..] => (Box::<ogg::Ogg>::default(), ogg::HEADER),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => (Box::<matroska::Matroska>::default(), 1),
        [_, _, _, _, b'f', b't', b'y', b'p', ..]
        | [_, _, _, _, b'm', b'o', b'o', b'v', ..]
        | [_, _, _, _, b'm', b'd', b'a', b't', ..]
        | [_, _, _, _, b'w', b'i', b'd', b'e', ..]
        | [_, _, _, _, b's', b'k', b'i', b'p', ..]
        | [_, _, _, _, b'f', b'r', b'e', b'e', ..]
        | [_, _, _, _, b's', b't', b'y', b'p', ..]
        | [_, _, _, _, b'm', b'o', b'o', b'f', ..] => (Box::<mp4::Mp4>::default(), 8),
        _ if seen.len() < ENOUGH => return Err(Unmeasured::Unknown),
        [0xff, second, ..] if second & 0xf6 == 0xf0 => (Box::<frames::Adts>::default(), 1),
        _ => (Box::<Mp3>::default(), 1),
    };
    *chosen = Some(format);
    Next::used(0, need)
}
