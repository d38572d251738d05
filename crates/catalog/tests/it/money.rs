//! Amounts and fractions as text.

use tollgate_catalog::{BadMoney, BillingUnit, Face, Fraction, Measure, Money};

#[test]
fn money_is_read_and_written_exactly() {
    for (text, nano) in [
        ("0", 0),
        ("12.345678901", 12_345_678_901),
        ("12.5", 12_500_000_000),
        ("0.000000001", 1),
        ("-0.000000001", -1),
        ("-3.07", -3_070_000_000),
        ("9223372036.854775807", i64::MAX),
        ("-9223372036.854775808", i64::MIN),
    ] {
        let money: Money = text.parse().expect(text);
        assert_eq!(money.nano(), nano, "{text}");
        assert_eq!(money.to_string(), text);
        assert_eq!(serde_json::to_string(&money).expect("JSON"), nano.to_string());
    }
    assert_eq!("5.10".parse::<Money>().expect("trailing zero").to_string(), "5.1");
}

#[test]
fn what_is_not_money_is_refused() {
    for (text, why) in [
        ("", BadMoney::NotANumber),
        ("-", BadMoney::NotANumber),
        (".5", BadMoney::NotANumber),
        ("5.", BadMoney::NotANumber),
        ("+5", BadMoney::NotANumber),
        ("1e3", BadMoney::NotANumber),
        ("1,5", BadMoney::NotANumber),
        // What a floating point number can be and an amount cannot.
        ("NaN", BadMoney::NotANumber),
        ("nan", BadMoney::NotANumber),
        ("inf", BadMoney::NotANumber),
        ("-inf", BadMoney::NotANumber),
        ("Infinity", BadMoney::NotANumber),
        ("1e309", BadMoney::NotANumber),
        ("1.0000000001", BadMoney::TooPrecise),
        ("9223372036.854775808", BadMoney::TooLarge),
        ("99999999999999999999999999999999999999999999", BadMoney::TooLarge),
    ] {
        assert_eq!(text.parse::<Money>(), Err(why), "{text}");
    }
    assert_eq!(BadMoney::NotANumber.to_string(), "is not a decimal amount such as 12.5");
    assert_eq!(BadMoney::TooPrecise.to_string(), "has more than nine decimal places");
    assert_eq!(BadMoney::TooLarge.to_string(), "is too large an amount");
}

#[test]
fn sums_that_do_not_fit_are_refused() {
    let one = Money::from_nano(1);
    assert_eq!(Money::MAX.checked_add(one), None);
    assert_eq!(one.checked_sub(Money::from_nano(3)), Some(Money::from_nano(-2)));
    assert_eq!(one.checked_neg(), Some(Money::from_nano(-1)));
    assert_eq!(Money::from_nano(i64::MIN).checked_sub(one), None);
    assert_eq!(Money::from_nano(i64::MIN).checked_neg(), None);
    assert_eq!([Money::ZERO.is_zero(), one.is_zero(), Money::from_nano(-1).is_zero()], [true, false, false]);
    assert_eq!(
        [Money::ZERO.is_negative(), one.is_negative(), Money::from_nano(-1).is_negative()],
        [false, false, true]
    );
    assert_eq!(Money::checked_sum([one, one]), Some(Money::from_nano(2)));
    assert_eq!(Money::checked_sum([Money::MAX, one]), None);
    assert_eq!(Money::from_usd(10).map(Money::nano), Some(10_000_000_000));
    assert_eq!(Money::from_usd(i64::MAX), None);
}

#[test]
fn fractions_are_exact_and_reduced() {
    for (text, want) in [
        ("133/100", "133/100"),
        ("0.8", "4/5"),
        ("1.330", "133/100"),
        ("5", "5"),
        ("5.0", "5"),
        ("10/4", "5/2"),
        ("0", "0"),
        ("0.000000001", "1/1000000000"),
    ] {
        assert_eq!(text.parse::<Fraction>().expect(text).to_string(), want);
    }
    for text in [
        "",
        "1/0",
        "-1",
        "+1",
        "1/+2",
        "+0.5",
        "0.+5",
        "a",
        "1/2/3",
        "0.0000000001",
        "1.",
        ".5",
        "10000000000",
        "1e3",
        "inf",
    ] {
        assert!(text.parse::<Fraction>().is_err(), "{text}");
    }
}

#[test]
fn a_face_counts_what_its_model_is_billed_by() {
    for (_, unit) in BillingUnit::ALL {
        assert_eq!(unit.measure(Face::PerCall), Measure::Call);
        assert_eq!(unit.measure(Face::VideoSecond), Measure::VideoSecond);
        assert_eq!(unit.measure(Face::CacheRead), Measure::Token);
    }
    for (unit, input) in [
        (BillingUnit::Tokens, Measure::Token),
        (BillingUnit::Characters, Measure::Character),
        (BillingUnit::AudioDuration, Measure::AudioSecond),
    ] {
        assert_eq!(unit.measure(Face::Input), input);
    }
}
