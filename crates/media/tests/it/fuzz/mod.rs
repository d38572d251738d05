//! Any bytes at all as a recording: it is measured, or refused; never longer than a day, never held
//! whole, and the same in whatever pieces it comes. As part of the tests each kind of file gets a
//! fixed number of inputs from a fixed seed; `make fuzz SECONDS=60` goes on for so long, from
//! another seed each time, which it prints (`TOLLGATE_FUZZ_SEED` has it again).

mod bodies;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tollgate_media::audio::{AudioMeter, Measured, Unmeasured};

/// Inputs in an ordinary test run.
const INPUTS: u64 = 3_000;

/// A file of each kind, short.
const KINDS: &[(&str, &str)] = &[
    ("wav", "-c:a pcm_s16le"),
    ("mp3", "-c:a libmp3lame -q:a 6"),
    ("aac", "-c:a aac"),
    ("m4a", "-c:a aac"),
    ("mp4", "-c:a aac -movflags +frag_keyframe+empty_moov"),
    ("flac", "-c:a flac"),
    ("ogg", "-c:a libvorbis"),
    ("opus", "-c:a libopus"),
    ("webm", "-c:a libopus"),
    ("mkv", "-c:a aac"),
];

#[expect(clippy::disallowed_methods, reason = "`make fuzz` says how long, and from where")]
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[expect(clippy::disallowed_methods, reason = "another seed each time")]
fn some_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or(1)
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).expect("below most")
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let made = |(ending, options): &(&str, &str)| {
        let path = std::env::temp_dir().join(format!("tollgate-fuzz-{}.{ending}", std::process::id()));
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-y", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=8000:duration=0.7"]);
        let done = command.args(options.split_whitespace()).arg(&path).stdin(Stdio::null()).output();
        assert!(done.expect("ffmpeg is installed (scripts/setup test)").status.success(), "{ending}");
        let bytes = std::fs::read(&path).expect("the file that ffmpeg made");
        let _ = std::fs::remove_file(&path);
        bytes
    };
    KINDS.iter().map(made).collect()
}

/// Bytes changed, cut out, doubled, joined with another file, and numbers blown up.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
            1 => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 => {
                let end = (at + random.below(4_096)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
            4 => {
                let end = (at + [1, 2, 4, 8][random.below(4)]).min(bytes.len());
                bytes[at..end].fill([0xff, 0x7f, 0x80, 0][random.below(4)]);
            }
            5 => bytes.truncate(at + 1),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

fn measured(bytes: &[u8], piece: usize) -> Result<Measured, Unmeasured> {
    let mut meter = AudioMeter::default();
    bytes.chunks(piece.max(1)).for_each(|piece| meter.feed(piece));
    meter.finish()
}

/// Plays mutated seeds: bytes, the size of pieces, and which input of which seed it is.
fn played(name: &str, inputs: u64, seeds: &[Vec<u8>], mut play: impl FnMut(&[u8], usize, &str)) {
    let long = given("TOLLGATE_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = given("TOLLGATE_FUZZ_SEED").unwrap_or_else(|| if long.is_some() { some_seed() } else { 7 });
    println!("{name}: TOLLGATE_FUZZ_SEED={seed}");
    let mut random = Random(seed.max(1));
    let mut done = 0u64;
    while long.map_or(done < inputs, |until| Instant::now() < until) {
        let bytes = mutated(seeds, &mut random);
        let piece = 1 + random.below(5_000);
        play(&bytes, piece, &format!("{name}: input {done} of seed {seed}, in pieces of {piece}"));
        done += 1;
    }
    println!("{name}: {done} inputs");
}

/// MM24: more than no time at all and a day at most, or refused.
#[test]
fn any_file_is_measured_within_a_day_or_refused() {
    played("recordings", INPUTS, &seeds(), |bytes, piece, which| {
        let whole = measured(bytes, bytes.len());
        assert_eq!(measured(bytes, piece), whole, "{which}");
        if let Ok(found) = whole {
            let seconds = found.length.whole_seconds();
            assert!((1..=86_400).contains(&seconds), "{seconds} s, {which}");
        }
    });
}
