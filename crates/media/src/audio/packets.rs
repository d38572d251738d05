//! Packets of the codecs that several containers carry: how many samples one holds.

use super::bits::Bits;
use super::vorbis::{self, Vorbis};
use super::{AudioCodec, Unmeasured, flac, frames, mp3, opus};

/// Of a packet this much is looked at.
pub(super) const HEAD: usize = flac::HEADER;

#[derive(Clone, Debug)]
pub(super) enum Packets {
    Opus,
    Vorbis(Vorbis),
    Flac { rate: u64 },
    Mp3,
    Aac { rate: u64, samples: u64 },
    Pcm { rate: u64, size: u64, bits: u16, float: bool },
}

impl Packets {
    pub(super) fn codec(&self) -> AudioCodec {
        match self {
            Packets::Opus => AudioCodec::Opus,
            Packets::Vorbis(_) => AudioCodec::Vorbis,
            Packets::Flac { .. } => AudioCodec::Flac,
            Packets::Mp3 => AudioCodec::Mp3,
            Packets::Aac { .. } => AudioCodec::Aac,
            Packets::Pcm { bits, float, .. } => AudioCodec::Pcm { bits: *bits, float: *float },
        }
    }

    /// Samples and their rate of a packet that begins so and has so many bytes. What is no sound
    /// has none.
    pub(super) fn samples(&mut self, head: &[u8], size: u64) -> (u64, u64) {
        match self {
            Packets::Opus => (opus::samples(head).unwrap_or(0), opus::RATE),
            Packets::Vorbis(vorbis) => (vorbis.samples(head).unwrap_or(0), vorbis.rate),
            Packets::Flac { rate } => {
                let header = flac::Header::read(head);
                (header.map_or(0, |header| header.samples), header.and_then(|header| header.rate).unwrap_or(*rate))
            }
            Packets::Mp3 => mp3::header(head).map_or((0, 1), |frame| (frame.samples, frame.rate)),
            Packets::Aac { rate, samples } => (*samples, *rate),
            Packets::Pcm { rate, size: one, .. } => (size / *one, *rate),
        }
    }

    /// What may be cut off the end of this codec's sound, in samples.
    pub(super) fn most_after(&self) -> u64 {
        match self {
            Packets::Opus => opus::MOST_AFTER,
            Packets::Vorbis(vorbis) => vorbis.long_block(),
            _ => 0,
        }
    }

    /// The codec that Matroska calls so, with what it keeps beside it.
    pub(super) fn of_matroska(track: &MatroskaTrack<'_>) -> Result<Packets, Unmeasured> {
        let honest = |rate: u64| if (4_000..=384_000).contains(&rate) { Ok(rate) } else { Err(Unmeasured::Broken) };
        match track.codec {
            b"A_OPUS" => Ok(Packets::Opus),
            b"A_VORBIS" => vorbis::from_private(track.private).map(Packets::Vorbis).ok_or(Unmeasured::Broken),
            b"A_FLAC" => Ok(Packets::Flac { rate: honest(track.rate)? }),
            b"A_MPEG/L1" | b"A_MPEG/L2" | b"A_MPEG/L3" => Ok(Packets::Mp3),
            codec if codec.starts_with(b"A_AAC") => {
                let (rate, samples) = aac_config(track.private).unwrap_or((track.rate, 1024));
                Ok(Packets::Aac { rate: honest(rate)?, samples })
            }
            b"A_PCM/INT/LIT" | b"A_PCM/INT/BIG" | b"A_PCM/FLOAT/IEEE" => {
                let size = track.channels * u64::from(track.bits / 8);
                let float = track.codec == b"A_PCM/FLOAT/IEEE";
                if size == 0 {
                    return Err(Unmeasured::Broken);
                }
                Ok(Packets::Pcm { rate: honest(track.rate)?, size, bits: track.bits, float })
            }
            _ => Err(Unmeasured::Unsupported),
        }
    }
}

/// What a Matroska file says of a track.
#[derive(Debug)]
pub(super) struct MatroskaTrack<'a> {
    pub(super) codec: &'a [u8],
    pub(super) private: &'a [u8],
    pub(super) rate: u64,
    pub(super) channels: u64,
    pub(super) bits: u16,
}

/// The rate and the samples of a frame that AAC's own configuration names.
pub(super) fn aac_config(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut bits = Bits::new(bytes);
    let kind = match bits.take(5)? {
        31 => 32 + bits.take(6)?,
        kind => kind,
    };
    let rate = match bits.take(4)? {
        15 => bits.take(24)?,
        number => frames::aac_rate(u8::try_from(number).ok()?)?,
    };
    bits.take(4)?;
    // Kinds 5 and 29 put their extension here; short frames are not used with it.
    let short = !matches!(kind, 5 | 29) && bits.take(1) == Some(1);
    (rate > 0).then_some((rate, if short { 960 } else { 1024 }))
}
