//! Random catalogs for property tests, and the many ways to write one and the same catalog down.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_catalog::{BillingUnit, Face, MAX_FACE};

pub const GROUPS: [&str; 3] = ["default", "g1", "g2"];
pub const PATHS: [&str; 2] = ["mode", "meta.size"];
pub const VALUES: [&str; 2] = ["a", "b"];
pub const LIMITS: [u64; 4] = [0, 10, 1_000, 1_000_000];
const ZONES: [&str; 3] = ["UTC", "Europe/Berlin", "America/New_York"];

#[derive(Clone, Debug, PartialEq)]
pub struct Shop {
    /// Multipliers of the groups, by index into [`GROUPS`].
    pub groups: [(u64, u64); 3],
    pub models: Vec<Sold>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sold {
    pub unit: BillingUnit,
    pub standard: Vec<u64>,
    pub paid: Option<Vec<u64>>,
    pub tiers: Vec<Extra>,
    /// Which groups it is sold to; `default` always.
    pub sold_to: [bool; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub struct Extra {
    pub when: Vec<When>,
    pub price: Priced,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Priced {
    Times(u64, u64),
    Faces(Vec<u64>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum When {
    Over(usize),
    Is(usize, usize),
    Clock(usize, u8, u32),
}

/// The faces a model of this unit writes down here.
pub fn faces(unit: BillingUnit) -> &'static [Face] {
    match unit {
        BillingUnit::Tokens => &[Face::Input, Face::Output, Face::CacheRead, Face::CacheWrite, Face::AudioOutput],
        BillingUnit::Characters | BillingUnit::AudioDuration => &[Face::Input],
        BillingUnit::PerCall => &[Face::PerCall],
        BillingUnit::PerSecond => &[Face::VideoSecond, Face::PerCall],
    }
}

fn micro() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 0..100_000_000_u64, 0..=MAX_FACE]
}

fn fraction() -> impl Strategy<Value = (u64, u64)> {
    (1..200_u64, 1..200_u64)
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        (0..LIMITS.len()).prop_map(When::Over),
        (0..PATHS.len(), 0..VALUES.len()).prop_map(|(path, value)| When::Is(path, value)),
        (0..ZONES.len(), 1..128_u8, 1..(1_u32 << 24)).prop_map(|(zone, days, hours)| When::Clock(zone, days, hours)),
    ]
}

fn tier(count: usize) -> impl Strategy<Value = Extra> {
    let price =
        prop_oneof![fraction().prop_map(|(n, d)| Priced::Times(n, d)), vec(micro(), count).prop_map(Priced::Faces)];
    (vec(when(), 1..4), price).prop_map(|(when, price)| Extra { when, price })
}

pub fn sold() -> impl Strategy<Value = Sold> {
    (0..BillingUnit::ALL.len()).prop_flat_map(|unit| {
        let unit = BillingUnit::ALL[unit].1;
        let count = faces(unit).len();
        let prices = (vec(micro(), count), proptest::option::of(vec(micro(), count)));
        (prices, vec(tier(count), 0..5), any::<[bool; 2]>()).prop_map(move |((standard, paid), tiers, sold_to)| Sold {
            unit,
            standard,
            paid,
            tiers,
            sold_to,
        })
    })
}

pub fn shop() -> impl Strategy<Value = Shop> {
    (fraction(), fraction(), fraction(), vec(sold(), 1..4))
        .prop_map(|(a, b, c, models)| Shop { groups: [a, b, c], models })
}

/// How to write it down; none of it changes a price.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub backwards: bool,
    pub wordy: bool,
}

impl Shop {
    pub fn text(&self, style: Style) -> String {
        let mut tables: Vec<String> = Vec::new();
        for (name, (n, d)) in GROUPS.iter().zip(self.groups) {
            let scale = if style.wordy { 7 } else { 1 };
            tables.push(format!("[group.{name}]\nmultiplier = \"{}/{}\"\n", n * scale, d * scale));
        }
        for (at, model) in self.models.iter().enumerate() {
            tables.push(model.text(at, style));
        }
        if style.backwards {
            tables.reverse();
        }
        tables.concat()
    }
}

impl Sold {
    fn text(&self, at: usize, style: Style) -> String {
        let mut groups: Vec<&str> = vec!["default"];
        groups.extend((0..2).filter(|at| self.sold_to[*at]).map(|at| GROUPS[at + 1]));
        if style.backwards {
            groups.reverse();
        }
        let endpoint = match self.unit {
            BillingUnit::Characters => "audio-speech",
            BillingUnit::AudioDuration => "audio-transcription",
            BillingUnit::PerSecond => "openai-video",
            BillingUnit::Tokens | BillingUnit::PerCall => "openai",
        };
        let mut text = format!(
            "[model.m{at}]\nbilling_unit = \"{}\"\nsupported_endpoint_types = [\"{endpoint}\"]\nenable_groups = {groups:?}\nprice = {}\n",
            self.unit.name(),
            self.table(&self.standard, style),
        );
        // A price for paying accounts that is the same is the same as none.
        let paid = self.paid.as_ref().or(style.wordy.then_some(&self.standard));
        if let Some(paid) = paid {
            let _ = writeln!(text, "paid = {}", self.table(paid, style));
        }
        let _ = match style.wordy {
            false => writeln!(text, "route = [{{ provider = \"p\", upstream_model = \"u\" }}]"),
            true => writeln!(
                text,
                "description = \"wordy\"\nroute = [{{ provider = \"q\", upstream_model = \"v\" }}, {{ provider = \"p\", upstream_model = \"u\", weight = 3 }}]"
            ),
        };
        for (number, tier) in self.tiers.iter().enumerate() {
            let _ =
                writeln!(text, "[[model.m{at}.tier]]\nname = \"{}{number}\"", if style.wordy { "other" } else { "t" });
            let mut when: Vec<String> = tier.when.iter().map(When::text).collect();
            if style.backwards {
                when.reverse();
            }
            let _ = writeln!(text, "when = [{}]", when.join(", "));
            let _ = match &tier.price {
                Priced::Times(n, d) => writeln!(text, "multiplier = \"{n}/{d}\""),
                Priced::Faces(prices) => writeln!(text, "price = {}", self.table(prices, style)),
            };
        }
        text
    }

    fn table(&self, prices: &[u64], style: Style) -> String {
        let mut written: Vec<(Face, u64)> = faces(self.unit).iter().copied().zip(prices.iter().copied()).collect();
        if style.wordy && self.unit == BillingUnit::Tokens {
            // Written out what a face costs that is not written.
            written.push((Face::CacheWrite1h, prices[3]));
            written.push((Face::ImageInput, prices[0]));
            written.push((Face::ImageOutput, prices[1]));
        }
        let mut fields: Vec<String> = written.iter().map(|(face, n)| format!("{} = {n}", face.name())).collect();
        if style.backwards {
            fields.reverse();
        }
        format!("{{ {} }}", fields.join(", "))
    }
}

impl When {
    fn text(&self) -> String {
        let bits = |bits: u32, from: u32| (from..32).filter(|at| bits & (1 << at) != 0).collect::<Vec<u32>>();
        match self {
            When::Over(limit) => format!("{{ dim = \"context_len\", context_len_gt = {} }}", LIMITS[*limit]),
            When::Is(path, value) => {
                format!("{{ dim = \"request_attr\", path = \"{}\", equals = \"{}\" }}", PATHS[*path], VALUES[*value])
            }
            When::Clock(zone, days, hours) => format!(
                "{{ dim = \"wall_clock\", timezone = \"{}\", weekdays = {:?}, hours = {:?} }}",
                ZONES[*zone],
                bits(u32::from(*days) << 1, 1),
                bits(*hours, 0)
            ),
        }
    }
}
