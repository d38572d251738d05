//! One receipt stored as a file, so that today's program is held to yesterday's receipts, and what
//! happens to it when anything in it is changed.

use std::sync::Arc;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tollgate_catalog::Money;

use super::keys::KeyRecord;
use super::*;
use crate::call::counters::Counters;
use crate::call::{Ending, UsageRow};
use crate::ids::{AccountId, CallId, KeyId};

const GOLDEN: &str = include_str!("../../tests/golden/receipt.json");
const GOLDEN_KEYS: &str = include_str!("../../tests/golden/receipt-keys.json");

fn key(byte: u8, from_ms: i64) -> (SecretKey, PublicKey) {
    let random: crate::world::FillRandom = Arc::new(move |bytes: &mut [u8]| bytes.fill(byte));
    let record = KeyRecord::draw(&random, from_ms).expect("a key");
    let secret = SecretKey::read(&record.secret, &record.public, from_ms).expect("a key");
    (secret, PublicKey::new(&record.public, from_ms, None))
}

/// A call with several faces, a tier, a multiplier that rounds, a write-off, and letters that are
/// easily escaped wrongly.
fn row() -> UsageRow {
    let counters =
        Counters { input: 1_234, cache_read: 567, output: 89, reasoning: 11, calls: 1, ..Counters::default() };
    let price = json!({
        "model": "größe \"x\"\\\u{1}😀", "version": "0f1e2d3c", "tier": "night", "group": "vip", "paid": true,
        "unit": "tokens", "multiplier": "133/100",
        "faces": {"input": 2_500_000, "output": 10_000_000, "cache_read": 250_000, "per_call": 1_500},
    });
    UsageRow {
        call: CallId([1; 16]),
        account: AccountId([2; 16]),
        key: KeyId([3; 16]),
        at: 1_770_000_000_123,
        ended_at: 1_770_000_004_567,
        endpoint: "/v1/chat/completions".into(),
        model: "größe \"x\"\\\u{1}😀".into(),
        provider: Some("never shown".into()),
        upstream_model: Some("never shown".into()),
        ending: Ending::ClientLeft,
        reason: "client_gone".into(),
        status: 200,
        counters,
        estimated: true,
        hold: Money::from_nano(5_000_000),
        // (1,234 × 2.5 + 567 × 0.25 + 100 × 10 + 1,500) micro-USD × 133/100 = 7,616.5775 micro-USD,
        // in nano-USD rounded up
        charge: Money::from_nano(7_616_000),
        refunded: Money::from_nano(16_000),
        write_off: Money::from_nano(578),
        raw_usage: Some("{\"prompt_tokens\":1801}".into()),
        attempts: 1,
        first_byte_ms: Some(12),
        tier: Some("night".into()),
        dropped: None,
        cost: None,
        price: Some(price),
    }
}

fn golden_keys() -> PublicKeys {
    serde_json::from_str(GOLDEN_KEYS).expect("keys")
}

#[test]
fn the_golden_receipt() {
    let (secret, public) = key(7, 1_769_000_000_000);
    let signed = sign(&row(), "sk-ABCD".into(), &secret, 1_770_000_099_000).expect("a receipt");
    let keys = serde_json::to_string(&PublicKeys { keys: vec![public] }).expect("JSON");
    assert_eq!(signed.text(), GOLDEN.trim_end(), "\n{}", signed.text());
    assert_eq!(keys, GOLDEN_KEYS.trim_end(), "\n{keys}");
    let Verified { receipt } = verify(GOLDEN, &golden_keys()).expect("it holds");
    assert_eq!(receipt, signed.receipt);
    assert!(!GOLDEN.contains("never shown"), "routes are the operator's business");
}

#[test]
fn the_price_of_a_receipt_is_that_price_and_no_other() {
    let Verified { receipt } = verify(GOLDEN, &golden_keys()).expect("it holds");
    let price = row().price.expect("a price");
    let text = price_text(&price);
    assert_eq!(text, include_str!("../../tests/golden/price.json"));
    verify_price(&receipt, &text).expect("its price");
    assert!(matches!(verify_price(&receipt, "[]"), Err(Invalid::NotAPrice(_))));
    // Laid out differently it is still the same price.
    verify_price(&receipt, &serde_json::to_string_pretty(&price).expect("JSON")).expect("its price");
    // By its hash, and by each of its parts, should the signer have hashed another.
    for (member, value, part) in [
        ("model", json!("m"), "model"),
        ("version", json!("0f1e2d3d"), "pricing_version"),
        ("tier", json!(null), "tier"),
        ("group", json!("default"), "group"),
        ("paid", json!(false), "paid_prices"),
        ("unit", json!("characters"), "billing_unit"),
        ("multiplier", json!("1"), "multiplier"),
        (
            "faces",
            json!({"input": 2_500_001, "output": 10_000_000, "cache_read": 250_000, "per_call": 1_500}),
            "micro_usd of a line",
        ),
    ] {
        let mut other = price.clone();
        other[member] = value;
        let text = price_text(&other);
        assert_eq!(verify_price(&receipt, &text), Err(Invalid::OtherPrice("price_sha256")), "{member}");
        let mut hashed = receipt.clone();
        let calculation = hashed.calculation.as_mut().expect("a calculation");
        calculation.price_sha256 = super::make::hex(&Sha256::digest(&text));
        assert_eq!(verify_price(&hashed, &text), Err(Invalid::OtherPrice("price_id")), "{member}");
        let named: tollgate_catalog::Price = serde_json::from_str(&text).expect("a price");
        hashed.calculation.as_mut().expect("a calculation").price_id = super::make::hex(&named.id());
        assert_eq!(verify_price(&hashed, &text), Err(Invalid::OtherPrice(part)), "{member}");
    }
    let free = Receipt { calculation: None, ..receipt };
    assert!(matches!(verify_price(&free, &text), Err(Invalid::OtherPrice(_))));
}

#[test]
fn the_id_of_a_price_is_thirty_two_digits() {
    let id = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
    assert_eq!(price_id("000102030405060708090a0b0c0d0eFf"), Some(id));
    let wrong = [
        "",
        "00",
        "+00102030405060708090a0b0c0d0eff",
        "000102030405060708090a0b0c0d0eff0",
        "ä00102030405060708090a0b0c0d0ef",
    ];
    for wrong in wrong {
        assert_eq!(price_id(wrong), None, "{wrong}");
    }
}

#[test]
fn a_receipt_holds_however_its_file_is_laid_out() {
    let value: serde_json::Value = serde_json::from_str(GOLDEN).expect("JSON");
    verify(&serde_json::to_string_pretty(&value).expect("JSON"), &golden_keys()).expect("spaces are not signed");
}

/// Each character replaced by others of all kinds, taken out, or doubled.
#[test]
fn no_character_of_a_receipt_can_be_changed() {
    let keys = golden_keys();
    let text: Vec<char> = GOLDEN.trim_end().chars().collect();
    let mut tried = 0;
    for at in 0..text.len() {
        // Every other digit for a digit, a few of each kind for the rest.
        let others = if text[at].is_ascii_digit() { "0123456789" } else { "aZ0_ \"" };
        let mut changed: Vec<String> = others
            .chars()
            .filter(|other| *other != text[at])
            .map(|other| text[..at].iter().chain([&other]).chain(&text[at + 1..]).collect())
            .collect();
        changed.push(text[..at].iter().chain(&text[at + 1..]).collect());
        changed.push(text[..=at].iter().chain(&text[at..]).collect());
        for one in changed {
            tried += 1;
            assert!(verify(&one, &keys).is_err(), "at {at}: {one}");
        }
    }
    assert!(tried > 9_000, "{tried} changes were tried");
}

#[test]
fn what_is_wrong_is_said() {
    let (secret, public) = key(7, 1_769_000_000_000);
    let keys = PublicKeys { keys: vec![public.clone()] };
    let check = |change: &dyn Fn(&mut Receipt), keys: &PublicKeys| {
        let mut receipt = sign(&row(), "sk-ABCD".into(), &secret, 1_770_000_099_000).expect("a receipt").receipt;
        change(&mut receipt);
        let value = serde_json::to_value(&receipt).expect("JSON");
        let signature = secret.sign(super::form::canonical(&value).as_bytes());
        verify(&Signed { receipt, signature }.text(), keys).map(|_| "valid").unwrap_or_else(|why| match why {
            Invalid::NotAReceipt(_) => "not a receipt",
            Invalid::OtherFormat(_) => "other format",
            Invalid::UnknownKey(_) => "unknown key",
            Invalid::FalseKey(_) => "false key",
            Invalid::NotItsTime { .. } => "not its time",
            Invalid::BadSignature => "bad signature",
            Invalid::WrongTotal { .. } => "wrong total",
            Invalid::WrongSum(why) => why,
            Invalid::NotAPrice(_) | Invalid::OtherPrice(_) => "a price was not looked at",
        })
    };
    // Signed by the right key, and wrong all the same: verifying does not believe the signer's
    // arithmetic either.
    let calculation = |r: &mut Receipt| r.calculation.clone().expect("a calculation");
    assert_eq!(check(&|_| {}, &keys), "valid");
    assert_eq!(check(&|r| r.total_nano_usd += 1, &keys), "wrong total");
    assert_eq!(check(&|r| r.calculation = None, &keys), "wrong total");
    let one_more = |r: &mut Receipt| {
        let mut more = calculation(r);
        more.lines[0].quantity += 1;
        r.calculation = Some(more);
    };
    assert_eq!(check(&one_more, &keys), "wrong total");
    let too_much = |r: &mut Receipt| {
        let mut more = calculation(r);
        more.lines[0].quantity = u64::MAX;
        r.calculation = Some(more);
    };
    assert_eq!(check(&too_much, &keys), "wrong total");
    let charged = "what was charged and what was written off are not the total";
    assert_eq!(check(&|r| r.charge_nano_usd += 1, &keys), charged);
    assert_eq!(check(&|r| r.refunded_nano_usd = 7_616_001, &keys), "more was refunded than was charged");
    assert_eq!(check(&|r| r.refunded_nano_usd = -1, &keys), "an amount is below zero");
    assert_eq!(check(&|r| r.format = "tollgate-receipt-1".into(), &keys), "other format");
    // The key: of another time, another one, or one that only bears the name.
    let late = |r: &mut Receipt| r.issued_at_ms = 1_769_000_000_000 - 5 * 60_000 - 1;
    assert_eq!(check(&late, &keys), "not its time");
    assert_eq!(check(&|r| r.issued_at_ms = 1_769_000_000_000 - 5 * 60_000, &keys), "valid");
    let ended = PublicKeys { keys: vec![PublicKey { until_ms: Some(1_770_000_000_000), ..public.clone() }] };
    assert_eq!(check(&|r| r.issued_at_ms = 1_770_000_300_000, &ended), "valid");
    assert_eq!(check(&|r| r.issued_at_ms = 1_770_000_300_001, &ended), "not its time");
    let (_, other) = key(8, 0);
    assert_eq!(check(&|_| {}, &PublicKeys { keys: vec![other.clone()] }), "unknown key");
    let renamed = PublicKey { kid: public.kid.clone(), ..other };
    assert_eq!(check(&|_| {}, &PublicKeys { keys: vec![renamed] }), "false key");
}

#[test]
fn a_name_that_stands_twice_is_not_read() {
    let twice = GOLDEN.replacen("\"status\":200", "\"status\":1,\"status\":200", 1);
    assert_ne!(twice, GOLDEN);
    assert!(matches!(verify(&twice, &golden_keys()), Err(Invalid::NotAReceipt(_))));
    let beside = GOLDEN.replacen("{\"receipt\"", "{\"note\":\"paid\",\"receipt\"", 1);
    assert_ne!(beside, GOLDEN);
    assert!(
        matches!(verify(&beside, &golden_keys()), Err(Invalid::NotAReceipt(_))),
        "nothing stands unsigned beside it"
    );
}

#[test]
fn what_does_not_add_up_is_not_signed() {
    let (secret, _) = key(7, 0);
    let wrong = UsageRow { charge: Money::from_nano(7_616_001), ..row() };
    assert!(sign(&wrong, String::new(), &secret, 0).is_err());
    let unpriced = UsageRow { price: None, ..row() };
    assert!(sign(&unpriced, String::new(), &secret, 0).is_err());
}
