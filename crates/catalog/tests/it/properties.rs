//! Over any quantities, prices and multipliers: a charge is never negative, is rounded up exactly
//! once, grows with what is used, and is refused rather than wrapped.

use proptest::prelude::*;
use tollgate_catalog::{
    BillingUnit, Face, Fraction, MAX_FACE, Money, Price, PriceFacts, Quantities, Uncharged, Unit, total,
};

use super::catalog;

fn quantity() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..10_u64, 0..1_000_000_u64, 0..10_000_000_000_u64, Just(u64::MAX), any::<u64>()]
}

fn face_price() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_u64, 0..100_000_000_u64, 0..=MAX_FACE]
}

fn price() -> impl Strategy<Value = Price> {
    let part = || prop_oneof![1..1000_u64, 1..=Fraction::LIMIT];
    let unit = (0..BillingUnit::ALL.len()).prop_map(|at| BillingUnit::ALL[at].1);
    (proptest::collection::vec(face_price(), Face::COUNT), part(), part(), unit).prop_map(
        |(faces, numerator, denominator, unit)| {
            let base = catalog(
                "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]",
            );
            let mut price = Price::clone(&base.models["m"].price(&PriceFacts::at(0)).expect("a price"));
            for (face, micro) in Face::ALL.into_iter().zip(faces) {
                price.faces.set(face, Some(micro));
            }
            price.unit = unit;
            price.multiplier = Fraction::new(numerator, denominator).expect("in bounds");
            price
        },
    )
}

fn quantities() -> impl Strategy<Value = Quantities> {
    proptest::collection::vec(quantity(), Face::COUNT)
        .prop_map(|list| Face::ALL.into_iter().zip(list).fold(Quantities::NONE, |used, (face, n)| used.with(face, n)))
}

/// The exact amount in units of nano-USD ÷ (3 × 10⁶ × denominator), by long arithmetic in 64-bit
/// limbs.
mod big {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Big(Vec<u64>);

    impl Big {
        pub fn of(n: u64) -> Big {
            Big(vec![n]).trim()
        }

        pub fn times(&self, n: u64) -> Big {
            let mut carry = 0_u128;
            let mut limbs = Vec::new();
            for limb in &self.0 {
                let product = u128::from(*limb) * u128::from(n) + carry;
                limbs.push(product as u64);
                carry = product >> 64;
            }
            limbs.push(carry as u64);
            Big(limbs).trim()
        }

        pub fn plus(&self, other: &Big) -> Big {
            let mut carry = 0_u128;
            let mut limbs = Vec::new();
            for at in 0..self.0.len().max(other.0.len()) {
                let limb = |big: &Big| u128::from(big.0.get(at).copied().unwrap_or(0));
                let sum = limb(self) + limb(other) + carry;
                limbs.push(sum as u64);
                carry = sum >> 64;
            }
            limbs.push(carry as u64);
            Big(limbs).trim()
        }

        pub fn at_most(&self, other: &Big) -> bool {
            (self.0.len(), self.0.iter().rev().collect::<Vec<_>>())
                <= (other.0.len(), other.0.iter().rev().collect::<Vec<_>>())
        }

        fn trim(mut self) -> Big {
            while self.0.last() == Some(&0) {
                self.0.pop();
            }
            self
        }
    }
}

use big::Big;

fn exact(price: &Price, used: &Quantities) -> Big {
    let sum = used.iter().fold(Big::of(0), |sum, (face, n)| {
        // Thirds of a token: a second of a recording is fifty of them.
        let thirds = if price.unit == BillingUnit::AudioDuration && face == Face::Input { 50 } else { 3 };
        let line = Big::of(n).times(price.faces.get(face).unwrap_or(0)).times(1_000).times(thirds);
        sum.plus(&if face.unit() == Unit::MillionTokens { line } else { line.times(1_000_000) })
    });
    sum.times(price.multiplier.numerator())
}

fn scaled(price: &Price, nano: u64) -> Big {
    Big::of(nano).times(3_000_000).times(price.multiplier.denominator())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_charge_is_the_exact_amount_rounded_up_once_or_a_refusal(price in price(), used in quantities()) {
        let exact = exact(&price, &used);
        match price.charge(&used) {
            Ok(charge) => {
                prop_assert!(charge >= Money::ZERO);
                let nano = charge.nano().unsigned_abs();
                prop_assert!(exact.at_most(&scaled(&price, nano)), "never below the exact amount");
                if nano > 0 {
                    prop_assert!(!exact.at_most(&scaled(&price, nano - 1)), "less than one nano-USD above it");
                }
            }
            Err(why) => {
                prop_assert_eq!(why, Uncharged::Overflow);
                prop_assert!(!exact.at_most(&scaled(&price, i64::MAX.unsigned_abs())), "refused only past the limit");
            }
        }
    }

    #[test]
    fn the_lines_alone_come_to_the_charge(price in price(), used in quantities()) {
        if let Ok(charge) = price.charge(&used) {
            let lines = price.lines(&used).expect("lines");
            prop_assert_eq!(total(&lines, price.multiplier), Ok(charge));
            let text = serde_json::to_string(&lines).expect("JSON");
            let back: Vec<tollgate_catalog::Line> = serde_json::from_str(&text).expect("lines");
            prop_assert_eq!(back, lines);
        }
    }

    #[test]
    fn more_use_never_costs_less(price in price(), used in quantities(), face in 0..Face::COUNT, more in quantity()) {
        let face = Face::ALL[face];
        let larger = used.with(face, used[face].saturating_add(more));
        if let Ok(large) = price.charge(&larger) {
            let small = price.charge(&used);
            prop_assert!(small.is_ok_and(|small| small <= large));
        }
    }

    #[test]
    fn splitting_a_call_never_saves_money(price in price(), a in quantities(), b in quantities()) {
        let both = Face::ALL.into_iter().fold(Quantities::NONE, |sum, face| sum.with(face, a[face].saturating_add(b[face])));
        if let (Ok(one), Ok(other), Ok(whole)) = (price.charge(&a), price.charge(&b), price.charge(&both)) {
            prop_assert!(one.checked_add(other).is_none_or(|parts| parts >= whole));
        }
    }

    #[test]
    fn the_dearest_faces_bound_every_kind_of_token(mut price in price(), n in 0..1_000_000_000_u64) {
        price.unit = BillingUnit::Tokens;
        let most = price.charge(&Quantities::NONE.with(price.dearest_input(), n));
        for face in [Face::Input, Face::CacheRead, Face::CacheWrite, Face::CacheWrite1h, Face::ImageInput, Face::AudioInput] {
            if let Ok(most) = most {
                prop_assert!(price.charge(&Quantities::NONE.with(face, n)).is_ok_and(|charge| charge <= most));
            }
        }
    }

    #[test]
    fn money_text_goes_there_and_back(nano in any::<i64>()) {
        let money = Money::from_nano(nano);
        prop_assert_eq!(money.to_string().parse::<Money>(), Ok(money));
    }

    #[test]
    fn the_hold_covers_every_length_that_can_be_reported(
        base in (0..5_000_000_u64, 0..5_000_000_u64),
        long in (0..5_000_000_u64, 0..5_000_000_u64),
        longer in "(1|[1-9][0-9]?)/(1|[1-9][0-9]?)",
        reported in 0..2_000_u64,
        output in 0..100_000_u64,
    ) {
        let text = format!("
            [model.m]
            price = {{ input = {}, output = {} }}
            route = [{{ provider = 'p', upstream_model = 'm' }}]
            [[model.m.tier]]
            name = 'longer'
            when = [{{ dim = 'context_len', context_len_gt = 1000 }}]
            multiplier = '{longer}'
            [[model.m.tier]]
            name = 'long'
            when = [{{ dim = 'context_len', context_len_gt = 500 }}]
            price = {{ input = {}, output = {} }}
        ", base.0, base.1, long.0, long.1);
        let catalog = catalog(&text);
        let model = &catalog.models["m"];
        let used = Quantities::NONE.with(Face::Input, reported).with(Face::Output, output);
        let hold = model.dearest(&PriceFacts::at(0)).expect("a bound").charge(&used).expect("a hold");
        let charge = model.price(&PriceFacts { context_len: reported, ..PriceFacts::at(0) }).expect("a price").charge(&used).expect("a charge");
        prop_assert!(charge <= hold, "{charge} <= {hold}");
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[ -~\n]{0,200}") {
        let _ = super::mistakes_of(&text);
    }
}
