//! The bound of a call's price: whatever the call turns out to be within what it needed, it is
//! charged no more, or it was refused before it was sent.

use proptest::prelude::*;
use tollgate_catalog::{BillingUnit, Face, Money, NoPrice, PriceFacts, Quantities, Unbounded, Uncharged};

use super::random::{GROUPS, PATHS, Shop, Style, VALUES, sold};
use super::{catalog, tiers};

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..20_u64, 0..2_000_000_u64, Just(u64::MAX), any::<u64>()]
}

/// A part of an amount, in 256ths.
fn part(of: u64, share: u8) -> u64 {
    u64::try_from(u128::from(of) * u128::from(share) / 255).expect("a part")
}

/// What can be reported for a need: text as any kind of text, other tokens as their kind or as
/// text, never more in all.
fn outcome(unit: BillingUnit, need: &Quantities, shares: &[u8; 11]) -> Quantities {
    let mut used = Quantities::NONE;
    for (at, (face, most)) in need.iter().enumerate() {
        let quantity = part(most, shares[at]);
        let kinds: &[Face] = match face {
            _ if unit != BillingUnit::Tokens => &[],
            Face::Input | Face::CacheRead => &[Face::Input, Face::CacheRead, Face::CacheWrite, Face::CacheWrite1h],
            Face::AudioInput => &[Face::AudioInput, Face::Input],
            Face::AudioOutput => &[Face::AudioOutput, Face::Output],
            _ => &[],
        };
        let turned = kinds.get(usize::from(shares[10 - at]) % kinds.len().max(1)).copied().unwrap_or(face);
        used[turned] = used[turned].saturating_add(quantity);
    }
    used
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_final_charge_is_at_most_the_bound_whatever_the_call_turns_out_to_be(
        sold in sold(),
        group in 0..3_usize,
        topped_up in any::<bool>(),
        at_ms in 0..4_000_000_000_000_i64,
        attr in (0..3_usize, 0..3_usize),
        (context_max, context_share) in (amount(), any::<u8>()),
        need in (amount(), amount(), amount(), amount(), amount()),
        shares in any::<[u8; 11]>(),
    ) {
        let unit = sold.unit;
        let sold_to = sold.sold_to;
        let shop = Shop { groups: [(1, 1), (4, 5), (133, 100)], models: vec![sold] };
        let catalog = catalog(&shop.text(Style::default()));
        let model = &catalog.models["m0"];
        let value = |path: &str| {
            let at = if path == PATHS[0] { attr.0 } else { attr.1 };
            VALUES.get(at).map(|value| (*value).to_owned())
        };
        let facts = PriceFacts { at_ms, context_len: 0, context_max, attr: &value, topped_up, group: GROUPS[group] };
        let need = match unit {
            BillingUnit::Tokens => Quantities::NONE
                .with(Face::Input, need.0)
                .with(Face::CacheRead, need.1)
                .with(Face::AudioInput, need.2)
                .with(Face::Output, need.3)
                .with(Face::AudioOutput, need.4),
            BillingUnit::Characters | BillingUnit::AudioDuration => Quantities::NONE.with(Face::Input, need.0),
            BillingUnit::PerCall => Quantities::NONE.with(Face::PerCall, need.0),
            BillingUnit::PerSecond => Quantities::NONE.with(Face::VideoSecond, need.0).with(Face::PerCall, need.1),
        };
        match model.bound(&facts, |_| Ok(need)) {
            Ok(bound) => {
                prop_assert!(bound.amount >= Money::ZERO);
                prop_assert_eq!(bound.price.charge(&bound.most), Ok(bound.amount), "the bound is a charge like any other");
                let reported = PriceFacts { context_len: part(context_max, context_share), ..facts };
                let price = model.price(&reported).expect("a price");
                let charge = price.charge(&outcome(unit, &need, &shares)).expect("what is within the bound can be charged");
                prop_assert!(charge >= Money::ZERO && charge <= bound.amount, "{} <= {}", charge, bound.amount);
                // Both ends of what can be reported.
                for context_len in [0, context_max] {
                    let price = model.price(&PriceFacts { context_len, ..facts }).expect("a price");
                    prop_assert!(price.charge(&need).is_ok_and(|charge| charge <= bound.amount));
                }
            }
            Err(Unbounded::NoPrice(why)) => {
                prop_assert_eq!(why, NoPrice::NotInGroup);
                prop_assert!(group > 0 && !sold_to[group - 1]);
            }
            Err(Unbounded::Uncharged(why)) => prop_assert_eq!(why, Uncharged::Overflow),
        }
    }
}

#[test]
fn the_bound_is_the_dearest_price_that_can_still_apply() {
    let catalog = catalog(tiers::CATALOG);
    let need = |_: &_| Ok(Quantities::NONE.with(Face::Input, 1_000_000).with(Face::Output, 1_000_000));
    let short = PriceFacts { context_len: 50, context_max: 90, ..PriceFacts::at(0) };
    let open = PriceFacts { context_len: 50, ..PriceFacts::at(0) };
    let priority = |path: &str| (path == "service_tier").then(|| "priority".to_owned());
    for (model, facts, want) in [
        ("long", short, "base 3 of 1"),
        ("long", open, "long_context 5 of 2"),
        // Whatever its length it is a call of this tier: what comes after it cannot apply any more.
        ("long", PriceFacts { attr: &priority, ..open }, "priority_long_context 24 of 2"),
        ("long", PriceFacts { attr: &priority, ..short }, "priority 12 of 1"),
        ("crossing", short, "base 6 of 1"),
        // Neither tier is dearer in everything; for as much output as input the long one is.
        ("crossing", open, "long 10 of 2"),
    ] {
        let bound = catalog.models[model].bound(&facts, need).expect("a bound");
        let tier = bound.price.tier.as_deref().unwrap_or("base");
        assert_eq!(format!("{tier} {} of {}", bound.amount, bound.candidates), want, "{model}");
    }
}

#[test]
fn text_is_held_at_the_dearest_kind_of_text_and_not_at_the_price_of_sound() {
    let catalog = catalog(
        "[model.m]\nprice = { input = 1_000_000, output = 2_000_000, cache_write = 1_250_000, audio_input = 32_000_000, audio_output = 64_000_000 }\nroute = [{ provider = 'p', upstream_model = 'm' }]",
    );
    let bound = |need: Quantities| {
        let bound = catalog.models["m"].bound(&PriceFacts::at(0), |_| Ok(need)).expect("a bound");
        bound.amount.to_string()
    };
    let none = Quantities::NONE;
    assert_eq!(bound(none.with(Face::Input, 1_000_000)), "1.25", "it may be written to a cache");
    assert_eq!(bound(none.with(Face::Output, 1_000_000)), "2");
    assert_eq!(bound(none.with(Face::AudioInput, 1_000_000)), "32");
    assert_eq!(bound(none.with(Face::AudioOutput, 1_000_000).with(Face::Output, 1_000_000)), "66");
    assert_eq!(bound(none.with(Face::CacheRead, 1_000_000)), "1.25", "what is cached now may be gone when it is sent");
}

#[test]
fn a_need_that_cannot_be_priced_is_refused() {
    let catalog = catalog(
        "[model.m]\nprice = { input = 1, output = 1, cache_write = 2 }\nroute = [{ provider = 'p', upstream_model = 'm' }]",
    );
    let refused = |facts: &PriceFacts<'_>, need: Quantities| {
        catalog.models["m"].bound(facts, |_| Ok(need)).expect_err("a refusal").to_string()
    };
    let facts = PriceFacts::at(0);
    assert_eq!(refused(&facts, Quantities::NONE.with(Face::VideoSecond, 1)), "the model has no price for video_second");
    let much = Quantities::NONE.with(Face::Input, u64::MAX).with(Face::CacheRead, 1);
    assert_eq!(refused(&facts, much), "the charge is too large to be an amount of money");
    let elsewhere = PriceFacts { group: "elsewhere", ..facts };
    assert_eq!(refused(&elsewhere, Quantities::NONE), "the model is not offered to this group");
}
