//! Speech at another rate: some hear 16,000 samples a second where others send 24,000. A windowed
//! sinc filter over a stream of 16-bit samples; what is between two pieces is carried over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::form::LiveFault;

/// Samples of the input that one sample of the output is made of, on each side.
const REACH: usize = 16;

/// Changes `from` samples a second into `to`. Both are multiples of 8,000.
pub struct Resampler {
    up: usize,
    down: usize,
    /// The filter at each phase.
    phases: Vec<[f32; 2 * REACH]>,
    history: Vec<f32>,
    /// Where the next output stands, in steps of `up` per input sample.
    at: usize,
    odd: Option<u8>,
}

impl Resampler {
    pub fn new(from: u32, to: u32) -> Resampler {
        let divisor = gcd(from.max(1), to.max(1));
        let (up, down) = ((to / divisor) as usize, (from / divisor) as usize);
        // Above half of the lower rate there is nothing to be heard but echoes.
        let cutoff = (up as f32 / down as f32).min(1.0) * 0.95;
        let phases = (0..up).map(|phase| filter(phase as f32 / up as f32, cutoff)).collect();
        Resampler { up, down, phases, history: vec![0.0; 2 * REACH - 1], at: 0, odd: None }
    }

    /// Whether it changes nothing.
    pub fn is_same(&self) -> bool {
        self.up == self.down
    }

    /// The next piece.
    pub fn push(&mut self, audio: &[u8]) -> Vec<u8> {
        let mut bytes = audio.iter().copied();
        if let Some(low) = self.odd.take()
            && let Some(high) = bytes.next()
        {
            self.history.push(f32::from(i16::from_le_bytes([low, high])));
        }
        while let Some(low) = bytes.next() {
            match bytes.next() {
                Some(high) => self.history.push(f32::from(i16::from_le_bytes([low, high]))),
                None => self.odd = Some(low),
            }
        }
        let mut out = Vec::with_capacity(audio.len() * self.up / self.down + 2);
        while self.at / self.up + 2 * REACH <= self.history.len() {
            let (start, phase) = (self.at / self.up, self.at % self.up);
            let window = &self.history[start..start + 2 * REACH];
            let sum: f32 = window.iter().zip(&self.phases[phase]).map(|(sample, weight)| sample * weight).sum();
            #[expect(clippy::cast_possible_truncation, reason = "clamped to the range of a sample")]
            let sample = sum.round().clamp(-32_768.0, 32_767.0) as i16;
            out.extend_from_slice(&sample.to_le_bytes());
            self.at += self.down;
        }
        let used = (self.at / self.up).min(self.history.len());
        self.history.drain(..used);
        self.at -= used * self.up;
        out
    }

    /// The next piece in base64, as events carry it.
    pub fn push_base64(&mut self, audio: &str) -> Result<String, LiveFault> {
        let bytes = STANDARD.decode(audio).map_err(|_| LiveFault("audio: not base64".to_string()))?;
        Ok(STANDARD.encode(self.push(&bytes)))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Weights of the samples around a place between the two in the middle; they add up to one.
fn filter(fraction: f32, cutoff: f32) -> [f32; 2 * REACH] {
    let mut weights = [0.0; 2 * REACH];
    for (index, weight) in weights.iter_mut().enumerate() {
        let distance = index as f32 - (REACH as f32 - 1.0) - fraction;
        let x = std::f32::consts::PI * distance * cutoff;
        let sinc = if x.abs() < 1e-6 { 1.0 } else { x.sin() / x };
        let window = (std::f32::consts::FRAC_PI_2 * distance / REACH as f32).cos();
        *weight = sinc * window * window;
    }
    let sum: f32 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(rate: u32, hertz: f32, samples: usize) -> Vec<u8> {
        let value = |at: usize| (10_000.0 * (std::f32::consts::TAU * hertz * at as f32 / rate as f32).sin()) as i16;
        (0..samples).flat_map(|at| value(at).to_le_bytes()).collect()
    }

    fn loudest(audio: &[u8]) -> u16 {
        let samples = audio.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs());
        samples.skip(200).max().unwrap_or(0)
    }

    #[test]
    fn a_tone_stays_what_it_was() {
        for (from, to) in [(24_000, 16_000), (16_000, 24_000), (8_000, 24_000)] {
            let audio = sine(from, 440.0, from as usize);
            let out = Resampler::new(from, to).push(&audio);
            let samples = out.len() / 2;
            assert!(samples.abs_diff(to as usize) < 64, "{from} to {to}: {samples}");
            assert!((9_500..10_500).contains(&loudest(&out)), "{}", loudest(&out));
            let crossings = out.chunks_exact(2).map(|p| i16::from_le_bytes([p[0], p[1]])).collect::<Vec<_>>();
            let crossings = crossings.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
            assert!((438..=441).contains(&crossings), "{crossings}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_taken_out() {
        let out = Resampler::new(24_000, 16_000).push(&sine(24_000, 11_000.0, 24_000));
        assert!(loudest(&out) < 500, "{}", loudest(&out));
    }

    #[test]
    fn pieces_of_any_length_give_the_same() {
        let audio = sine(24_000, 700.0, 5_000);
        let whole = Resampler::new(24_000, 16_000).push(&audio);
        let mut pieces = Resampler::new(24_000, 16_000);
        let parts: Vec<u8> = audio.chunks(37).flat_map(|piece| pieces.push(piece)).collect();
        assert_eq!(whole, parts);
    }
}
