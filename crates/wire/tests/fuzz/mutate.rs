//! Inputs: the golden files, changed at random by a small generator whose seed is its whole state.

use std::path::Path;

/// Longest input; long enough that quadratic work shows.
const LARGEST: usize = 96 << 10;

/// Texts that mean something to a reader, put anywhere.
const TOKENS: &[&str] = &[
    "\n\n",
    "\r\n\r\n",
    "\r",
    "data: ",
    "data:",
    "event: error\n",
    ": comment\n",
    "id: 1\n",
    "\u{feff}",
    "[DONE]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "18446744073709551616",
    "1e999",
    "0.1",
    "\"type\":\"thinking\"",
    "\"index\":99",
    "\"tool_calls\":[{}]",
    "\"content\":null",
    "tg1.a.QQ==.x",
    "tgc1.QQ==",
    "\u{2028}",
    "\u{85}",
    "🙂",
    "\0",
    "\"role\":\"tool\"",
    "\"id\":\"\"",
    "\"output_index\":-1",
    "{\"error\":{}}",
    "data: {\"type\":\"response.completed\"}\n\n",
    "\"$ref\":\"#\"",
];

/// What a target reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Requests,
    Replies,
    Events,
}

impl Takes {
    fn folders(self) -> &'static [&'static str] {
        match self {
            Takes::Requests => &["requests"],
            Takes::Replies => &["replies"],
            Takes::Events => &["events", "chat"],
        }
    }
}

/// The original of every golden file, by what it is.
pub fn seeds() -> Vec<(Takes, Vec<u8>)> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seeds = Vec::new();
    for takes in [Takes::Requests, Takes::Replies, Takes::Events] {
        for folder in takes.folders() {
            let files = std::fs::read_dir(golden.join(folder)).expect("the golden files");
            let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
            paths.sort();
            for path in paths {
                let text = std::fs::read_to_string(path).expect("text");
                let original = text.split_once("=== original\n").map_or(text.as_str(), |(_, rest)| rest);
                let original = original.split_once("\n=== ").map_or(original, |(own, _)| own);
                seeds.push((takes, original.as_bytes().to_vec()));
            }
        }
    }
    seeds
}

pub struct Mutator(u64);

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift: plenty for choosing what to break.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or_default() % bound.max(1)
    }

    /// A seed of the kind, or now and then of another, with some changes.
    pub fn input(&mut self, seeds: &[(Takes, Vec<u8>)], takes: Takes) -> Vec<u8> {
        let fitting: Vec<_> = seeds.iter().filter(|(kind, _)| *kind == takes).collect();
        let mut input = match self.below(10) {
            0 => seeds[self.below(seeds.len())].1.clone(),
            _ => fitting[self.below(fitting.len())].1.clone(),
        };
        for _ in 0..1 + self.below(6) {
            self.change(&mut input, seeds);
        }
        input.truncate(LARGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[(Takes, Vec<u8>)]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(400) + 1);
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 => drop(input.drain(at..end)),
            2 => input.truncate(at),
            3 => {
                let piece = input[at..end].to_vec();
                drop(input.splice(at..at, piece));
            }
            4 => {
                // A piece again and again: many of what there was one of.
                let piece = input[at..end].to_vec();
                let times = if piece.is_empty() { 0 } else { self.below(LARGEST / piece.len()).min(2_000) };
                drop(input.splice(at..at, piece.repeat(times)));
            }
            5 => {
                let other = &seeds[self.below(seeds.len())].1;
                let from = self.below(other.len());
                drop(input.splice(at..at, other[from..].iter().copied()));
            }
            6 => {
                // Deep rather than long.
                let depth = self.below(3_000);
                let open = ["[", "{\"a\":", "[{\"content\":"][self.below(3)];
                drop(input.splice(at..at, open.repeat(depth).bytes()));
            }
            _ => {
                let token = TOKENS[self.below(TOKENS.len())];
                drop(input.splice(at..at, token.bytes()));
            }
        }
    }

    /// Where a stream is cut into pieces.
    pub fn splits(&mut self, length: usize) -> Vec<usize> {
        let mut at: Vec<usize> = (0..self.below(12)).map(|_| self.below(length + 1)).collect();
        at.sort_unstable();
        at
    }
}
