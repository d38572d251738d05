//! How long speech plays, counted while it passes.

use super::format::SpeechFormat;
use crate::audio::{AudioMeter, Length, Unmeasured};

/// Counts what passes, in the format that it has.
#[derive(Debug)]
pub enum SpeechMeasure {
    /// Bare samples of two bytes.
    Samples {
        rate: u32,
        bytes: u64,
    },
    File(Box<AudioMeter>),
}

impl SpeechMeasure {
    pub fn new(format: SpeechFormat, rate: u32) -> SpeechMeasure {
        match format {
            SpeechFormat::Pcm => SpeechMeasure::Samples { rate, bytes: 0 },
            _ => SpeechMeasure::File(Box::default()),
        }
    }

    pub fn feed(&mut self, piece: &[u8]) {
        match self {
            SpeechMeasure::Samples { bytes, .. } => *bytes = bytes.saturating_add(piece.len() as u64),
            SpeechMeasure::File(meter) => meter.feed(piece),
        }
    }

    /// That was all.
    pub fn finish(self) -> Result<Length, Unmeasured> {
        match self {
            SpeechMeasure::Samples { bytes: 0, .. } => Err(Unmeasured::Silent),
            SpeechMeasure::Samples { rate, bytes } => Ok(Length::of(bytes / 2, rate.into())),
            SpeechMeasure::File(meter) => meter.finish().map(|measured| measured.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_samples_are_counted_by_their_bytes() {
        let seconds = |bytes: usize| {
            let mut measure = SpeechMeasure::new(SpeechFormat::Pcm, 24_000);
            vec![0; bytes].chunks(1_000).for_each(|piece| measure.feed(piece));
            measure.finish().map(Length::whole_seconds)
        };
        assert_eq!(seconds(48_000), Ok(1));
        assert_eq!(seconds(48_002), Ok(2));
        assert_eq!(seconds(0), Err(Unmeasured::Silent));
    }
}
