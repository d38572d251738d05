//! Another wrapping of the same samples: bare ones get the header of a wav file, and a wav file
//! loses it. Nothing else is done to them.

use super::format::SpeechFormat;
use bytes::{Bytes, BytesMut};

/// What is wrapped is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWrapped;

/// What happens to audio between the format that was made and the one that goes out.
#[derive(Debug)]
pub enum Wrapping {
    /// They are the same.
    Same,
    /// Bare samples become a wav file; `Some`: its header is still to come.
    ToWav(Option<u32>),
    FromWav(Unwrapped),
}

impl Wrapping {
    pub fn new(made: SpeechFormat, wanted: SpeechFormat, rate: u32) -> Wrapping {
        match (made, wanted) {
            (SpeechFormat::Pcm, SpeechFormat::Wav) => Wrapping::ToWav(Some(rate)),
            (SpeechFormat::Wav, SpeechFormat::Pcm) => {
                Wrapping::FromWav(Unwrapped { rate, head: BytesMut::new(), left: None })
            }
            _ => Wrapping::Same,
        }
    }

    pub fn feed(&mut self, piece: Bytes) -> Result<Bytes, NotWrapped> {
        match self {
            Wrapping::ToWav(header) if !piece.is_empty() => match header.take() {
                Some(rate) => Ok([&wav_header(rate)[..], &piece].concat().into()),
                None => Ok(piece),
            },
            Wrapping::FromWav(unwrapped) => unwrapped.feed(piece),
            Wrapping::Same | Wrapping::ToWav(_) => Ok(piece),
        }
    }
}

/// How many samples follow is not known, so both sizes are the largest there are: readers then go
/// to the end of the file.
const UNKNOWN: [u8; 4] = [0xff; 4];

/// The header of a wav file of 16 bits and one channel.
fn wav_header(rate: u32) -> [u8; 44] {
    let mut header = [0; 44];
    let parts: [(usize, &[u8]); 12] = [
        (0, b"RIFF"),
        (4, &UNKNOWN),
        (8, b"WAVEfmt "),
        (16, &16u32.to_le_bytes()),
        (20, &1u16.to_le_bytes()),
        (22, &1u16.to_le_bytes()),
        (24, &rate.to_le_bytes()),
        (28, &rate.saturating_mul(2).to_le_bytes()),
        (32, &2u16.to_le_bytes()),
        (34, &16u16.to_le_bytes()),
        (36, b"data"),
        (40, &UNKNOWN),
    ];
    for (at, bytes) in parts {
        header[at..at + bytes.len()].copy_from_slice(bytes);
    }
    header
}

/// A wav file whose samples are wanted.
#[derive(Debug)]
pub struct Unwrapped {
    rate: u32,
    /// What came before the samples.
    head: BytesMut,
    /// How many bytes of samples are still to come, once they have begun.
    left: Option<u64>,
}

/// Longest header of an honest file.
const HEAD: usize = 64 << 10;

impl Unwrapped {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, NotWrapped> {
        if self.left.is_some() {
            return Ok(self.samples(piece));
        }
        self.head.extend_from_slice(&piece);
        let Some((at, size)) = self.find()? else {
            return if self.head.len() > HEAD { Err(NotWrapped) } else { Ok(Bytes::new()) };
        };
        self.left = Some(if size == 0 || size == u32::MAX { u64::MAX } else { size.into() });
        let samples = self.head.split_off(at).freeze();
        self.head = BytesMut::new();
        Ok(self.samples(samples))
    }

    /// What belongs to the samples; what follows them does not.
    fn samples(&mut self, mut piece: Bytes) -> Bytes {
        let left = self.left.unwrap_or(0);
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        self.left = Some(left - taken as u64);
        piece.truncate(taken);
        piece
    }

    /// Where the samples begin, and how many bytes they are said to have.
    fn find(&self) -> Result<Option<(usize, u32)>, NotWrapped> {
        let head = &self.head;
        if head.len() < 12 {
            return Ok(None);
        }
        if !SpeechFormat::Wav.begins(head) {
            return Err(NotWrapped);
        }
        let (mut at, mut described) = (12, false);
        while let Some(chunk) = head.get(at..at + 8) {
            let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
            let inside = at + 8;
            match &chunk[..4] {
                b"data" if described => return Ok(Some((inside, size))),
                b"data" => return Err(NotWrapped),
                b"fmt " => {
                    let Some(format) = head.get(inside..inside + 16) else { return Ok(None) };
                    if !self.is_bare(format) {
                        return Err(NotWrapped);
                    }
                    described = true;
                }
                _ => {}
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            at = inside.saturating_add(size).saturating_add(size % 2);
        }
        Ok(None)
    }

    /// Whole numbers of 16 bits, one channel, at the rate of the model.
    fn is_bare(&self, format: &[u8]) -> bool {
        let short = |at: usize| u16::from_le_bytes([format[at], format[at + 1]]);
        let rate = u32::from_le_bytes([format[4], format[5], format[6], format[7]]);
        matches!(short(0), 1 | 0xfffe) && short(2) == 1 && short(14) == 16 && rate == self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SpeechFormat::{Mp3, Pcm, Wav};
    use proptest::prelude::*;

    fn through(wrapping: &mut Wrapping, bytes: &[u8], piece: usize) -> Result<Vec<u8>, NotWrapped> {
        let mut out = Vec::new();
        for part in bytes.chunks(piece) {
            out.extend_from_slice(&wrapping.feed(Bytes::copy_from_slice(part))?);
        }
        Ok(out)
    }

    #[test]
    fn a_wav_file_of_another_kind_is_not_taken_for_the_model_s() {
        let mut other = wav_header(48_000).to_vec();
        other.extend([1, 2, 3, 4]);
        assert!(through(&mut Wrapping::new(Wav, Pcm, 24_000), &other, 7).is_err(), "another rate");
        let mut stereo = wav_header(24_000).to_vec();
        stereo[22] = 2;
        assert!(through(&mut Wrapping::new(Wav, Pcm, 24_000), &stereo, 7).is_err(), "two channels");
        assert!(through(&mut Wrapping::new(Wav, Pcm, 24_000), &[0; 64], 7).is_err(), "no wav file");
        let mut endless = b"RIFF\xff\xff\xff\xffWAVEjunk\xff\xff\xff\x7f".to_vec();
        endless.extend(vec![0; HEAD]);
        assert!(through(&mut Wrapping::new(Wav, Pcm, 24_000), &endless, 4096).is_err(), "no samples in sight");
    }

    #[test]
    fn what_follows_the_samples_is_left_out() {
        let mut file = wav_header(24_000).to_vec();
        file[40..44].copy_from_slice(&4u32.to_le_bytes());
        file.extend(b"\x01\x02\x03\x04LIST\x04\0\0\0info");
        assert_eq!(through(&mut Wrapping::new(Wav, Pcm, 24_000), &file, 5), Ok(vec![1, 2, 3, 4]));
    }

    proptest! {
        #[test]
        fn samples_are_the_same_after_both_wrappings(bytes in prop::collection::vec(any::<u8>(), 1..200), piece in 1usize..60) {
            let wav = through(&mut Wrapping::new(Pcm, Wav, 24_000), &bytes, piece).unwrap();
            prop_assert_eq!(wav.len(), bytes.len() + 44);
            let back = through(&mut Wrapping::new(Wav, Pcm, 24_000), &wav, piece).unwrap();
            prop_assert_eq!(&back, &bytes);
            prop_assert_eq!(through(&mut Wrapping::new(Mp3, Mp3, 24_000), &bytes, piece).unwrap(), bytes);
        }
    }
}
