//! What a call used, in disjoint counters. One list says all there is to say about each of them:
//! its name (of the field, the column and the member in JSON), the face it is priced under, and
//! whether it went in or came out. Whoever walks the counters (columns, journal, row hash, prices,
//! sums) walks that list, so a new one is a line here. CONTRIBUTING.md names the other places.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use tollgate_catalog::{Face, Uses};

/// Which way a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Tokens that the model read.
    Input,
    /// Tokens that the model made.
    Output,
    /// Not tokens.
    Neither,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $counter:ident: $face:ident, $side:ident;)*) => {
        /// One of [`Counters`], and its place in columns, journal records and hashes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($counter,)*
        }

        /// The columns of a usage row `u`, each after a comma.
        pub(crate) const COUNTERS: &str = concat!($(", u.", stringify!($name),)*);

        impl Counter {
            pub const ALL: [Counter; Counter::COUNT] = [$(Counter::$counter,)*];
            pub const COUNT: usize = [$(stringify!($name),)*].len();

            /// The column, and the member in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Counter::$counter => stringify!($name),)*
                }
            }

            /// What it is priced as.
            pub const fn face(self) -> Face {
                match self {
                    $(Counter::$counter => Face::$face,)*
                }
            }

            pub const fn side(self) -> Side {
                match self {
                    $(Counter::$counter => Side::$side,)*
                }
            }
        }

        /// What was consumed, in disjoint counters (a token is counted in one of them only). Which
        /// of them are charged and which are only shown depends on what the model is billed by: see
        /// `price.rs`. Modalities other than chat make theirs with the functions of `used.rs`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            /// Uses of tools that ran at the provider.
            #[serde(skip_serializing_if = "Uses::is_empty")]
            pub tools: Uses,
        }

        impl Index<Counter> for Counters {
            type Output = u64;

            fn index(&self, counter: Counter) -> &u64 {
                match counter {
                    $(Counter::$counter => &self.$name,)*
                }
            }
        }

        impl IndexMut<Counter> for Counters {
            fn index_mut(&mut self, counter: Counter) -> &mut u64 {
                match counter {
                    $(Counter::$counter => &mut self.$name,)*
                }
            }
        }
    };
}

// In the order of columns, journal records and hashes: add at the end.
counters! {
    input = Input: Input, Input;
    cache_read = CacheRead: CacheRead, Input;
    cache_write_5m = CacheWrite5m: CacheWrite, Input;
    cache_write_1h = CacheWrite1h: CacheWrite1h, Input;
    image_input = ImageInput: ImageInput, Input;
    audio_input = AudioInput: AudioInput, Input;
    output = Output: Output, Output;
    /// Priced as output.
    reasoning = Reasoning: Output, Output;
    image_output = ImageOutput: ImageOutput, Output;
    audio_output = AudioOutput: AudioOutput, Output;
    /// Calls, or images of a call that makes several.
    calls = Calls: PerCall, Neither;
    /// Whole seconds of a video or of a recording.
    seconds = Seconds: VideoSecond, Neither;
}

/// Counters as the database and the journal have them.
pub(crate) type Columns = [i64; Counter::COUNT];

impl Counters {
    /// All tokens of one side.
    pub fn total(&self, side: Side) -> u64 {
        let counters = Counter::ALL.iter().copied().filter(|counter| counter.side() == side);
        counters.fold(0, |sum: u64, counter| sum.saturating_add(self[counter]))
    }

    pub(crate) fn columns(&self) -> Columns {
        Counter::ALL.map(|counter| i64::try_from(self[counter]).unwrap_or(i64::MAX))
    }

    /// Without the uses of tools, which stand in a column of their own ([`Counters::with_tools`]).
    pub(crate) fn from_columns(columns: Columns) -> Self {
        let mut counters = Self::default();
        for (counter, column) in Counter::ALL.iter().copied().zip(columns) {
            counters[counter] = column.max(0).unsigned_abs();
        }
        counters
    }

    /// With what the column `tools` says.
    pub(crate) fn with_tools(self, text: Option<&str>) -> Self {
        Self { tools: text.map_or(Uses::NONE, Uses::of_text), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that were hashed and journals that were written have them in this order.
    #[test]
    fn the_order_of_counters_stays() {
        let first = "input cache_read cache_write_5m cache_write_1h image_input audio_input output reasoning image_output audio_output \
                     calls seconds";
        let names: Vec<&str> = first.split(' ').collect();
        assert_eq!(Counter::ALL[..12].iter().map(|one| one.name()).collect::<Vec<_>>(), names);
        assert!(COUNTERS.starts_with(", u.input, u.cache_read, "), "{COUNTERS}");
    }

    #[test]
    fn each_has_a_place_of_its_own() {
        let mut columns = [0; Counter::COUNT];
        for (n, column) in (1..).zip(&mut columns) {
            *column = n;
        }
        let all = Counters::from_columns(columns);
        assert_eq!(all.columns(), columns);
        assert_eq!(serde_json::to_value(all).expect("JSON").as_object().expect("an object").len(), Counter::COUNT);
        let sides = [Side::Input, Side::Output, Side::Neither].map(|side| all.total(side));
        assert_eq!(sides, [1 + 2 + 3 + 4 + 5 + 6, 7 + 8 + 9 + 10, 11 + 12]);
        assert_eq!(Counters { input: u64::MAX, ..all }.total(Side::Input), u64::MAX);
        assert_eq!(Counters::from_columns([-1; Counter::COUNT]), Counters::default());
    }
}
