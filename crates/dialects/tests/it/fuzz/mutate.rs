//! Inputs: the golden files, changed at random by a small generator whose seed is its whole state.

use std::ops::Range;
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
                let begins = ["=== original\n", "=== upstream\n"].iter().find_map(|mark| text.split_once(mark));
                let (_, original) = begins.expect("a golden file says where its original begins");
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

    /// A seed in which one thing is there `times` times: an element of a list, an event, or a piece
    /// of a text. Whatever goes by pairs (quotes, say) goes by pairs in all of them when `times` is
    /// even.
    pub fn growing(&mut self, seeds: &[(Takes, Vec<u8>)], takes: Takes) -> Option<Growing> {
        let fitting: Vec<_> = seeds.iter().filter(|(kind, _)| *kind == takes).collect();
        let seed = fitting[self.below(fitting.len())].1.clone();
        let from = self.below(seed.len());
        let piece = match self.below(3) {
            0 if takes == Takes::Events => event(&seed, from),
            2 => letters(&seed, from),
            _ => element(&seed, from),
        }?;
        Some(Growing { seed, piece })
    }

    /// Where a stream is cut into pieces.
    pub fn splits(&mut self, length: usize) -> Vec<usize> {
        let mut at: Vec<usize> = (0..self.below(12)).map(|_| self.below(length + 1)).collect();
        at.sort_unstable();
        at
    }
}

/// A seed and the piece of it that is repeated.
pub struct Growing {
    seed: Vec<u8>,
    piece: Range<usize>,
}

impl Growing {
    /// About so many bytes of the piece, an even number of times.
    pub fn to(&self, bytes: usize) -> Vec<u8> {
        let (piece, mut grown) = (&self.seed[self.piece.clone()], self.seed.clone());
        let times = (bytes / piece.len() / 8 + 1) * 8;
        let mut many = piece.repeat(times);
        if piece.starts_with(b"{") {
            let with_comma = [piece, b","].concat();
            many = with_comma.repeat(times);
        }
        grown.splice(self.piece.start..self.piece.start, many);
        grown
    }
}

/// The first object that is an element of a list, from here on.
fn element(seed: &[u8], from: usize) -> Option<Range<usize>> {
    let start = (from.max(1)..seed.len()).find(|at| seed[*at] == b'{' && matches!(seed[at - 1], b'[' | b','))?;
    let (mut depth, mut quoted, mut at) = (0_usize, false, start);
    while at < seed.len() {
        match seed[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted && depth == 1 => return Some(start..at + 1),
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The first whole event, from here on.
fn event(seed: &[u8], from: usize) -> Option<Range<usize>> {
    let ends = |from: usize| seed[from..].windows(2).position(|two| two == b"\n\n").map(|at| from + at + 2);
    let start = ends(from)?;
    Some(start..ends(start)?)
}

/// The first few letters of a word, from here on.
fn letters(seed: &[u8], from: usize) -> Option<Range<usize>> {
    let start = (from..seed.len()).find(|at| seed[*at].is_ascii_lowercase())?;
    Some(start..start + seed[start..].iter().take(8).take_while(|byte| byte.is_ascii_lowercase()).count())
}
