//! Amounts, limits and times as they are typed.

use crate::real;
use anyhow::bail;
use tollgate_catalog::Money;
use tollgate_catalog::form::parse_duration;
use tollgate_store::Change;

/// An exact amount above zero.
pub fn amount(text: &str) -> anyhow::Result<Money> {
    let amount = signed(text)?;
    if amount.is_negative() {
        bail!("{text:?} is not an amount above zero");
    }
    Ok(amount)
}

/// An exact amount that is not zero.
pub fn signed(text: &str) -> anyhow::Result<Money> {
    let amount: Money = text.parse().map_err(|why| anyhow::anyhow!("{text:?} {why}"))?;
    if amount.is_zero() {
        bail!("{text:?} is not an amount above zero");
    }
    Ok(amount)
}

/// A new limit; `none` lifts it, nothing leaves it as it is.
pub fn change(option: &str, text: Option<&str>) -> anyhow::Result<Change> {
    Ok(match text {
        None => Change::Keep,
        Some("none") => Change::Lift,
        Some(text) => {
            let limit: Money = text.parse().map_err(|why| anyhow::anyhow!("{option} {text:?} {why}"))?;
            if limit.is_negative() {
                bail!("{option} {text:?} is below zero");
            }
            Change::Set(limit)
        }
    })
}

/// The limit something begins with.
pub fn first_limit(option: &str, text: Option<&str>) -> anyhow::Result<Option<Money>> {
    Ok(match change(option, text)? {
        Change::Set(limit) => Some(limit),
        Change::Keep | Change::Lift => None,
    })
}

/// A moment to come, in milliseconds: a time from now such as 30d, or the beginning of a UTC day.
pub fn moment(text: &str) -> anyhow::Result<i64> {
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        let begins = day.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp().as_millisecond();
        if begins <= real::now_ms() {
            bail!("--expires {text}: this day has begun already");
        }
        return Ok(begins);
    }
    let span =
        parse_duration(text).map_err(|why| anyhow::anyhow!("--expires {text}: {why}, nor a day such as 2026-12-31"))?;
    Ok(real::now_ms().saturating_add(i64::try_from(span.as_millis())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_lifted_and_left() {
        assert_eq!(change("--limit-day", None).expect("nothing"), Change::Keep);
        assert_eq!(change("--limit-day", Some("none")).expect("a word"), Change::Lift);
        assert_eq!(change("--limit-day", Some("0.5")).expect("a number"), Change::Set(Money::from_nano(500_000_000)));
        assert_eq!(change("--limit-day", Some("0")).expect("nothing may be spent"), Change::Set(Money::ZERO));
        for wrong in ["-1", "much", "1e3", ""] {
            let error = change("--limit-day", Some(wrong)).expect_err("not a limit").to_string();
            assert!(error.starts_with("--limit-day"), "{error}");
        }
    }

    #[test]
    fn moments_lie_ahead() {
        let day = moment("2999-12-31").expect("a day");
        assert_eq!(day, 32_503_593_600_000);
        let later = moment("30d").expect("a time") - real::now_ms();
        assert!((later - 30 * 86_400_000).abs() < 60_000);
        for wrong in ["2001-01-01", "soon", "2999-13-01"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
