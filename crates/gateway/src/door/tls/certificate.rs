//! When a certificate ends. Only that is read of it here; rustls hands out the rest unread.

/// The tags of DER that stand on the way.
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// The last second at which a certificate holds, since 1970. `None`: it is no certificate.
pub fn ends(der: &[u8]) -> Option<i64> {
    let (certificate, _) = take(der, SEQUENCE)?;
    let (signed, _) = take(certificate, SEQUENCE)?;
    let signed = take(signed, VERSION).map_or(signed, |(_, rest)| rest);
    let (_serial, rest) = take(signed, INTEGER)?;
    let (_algorithm, rest) = take(rest, SEQUENCE)?;
    let (_issuer, rest) = take(rest, SEQUENCE)?;
    let (validity, _) = take(rest, SEQUENCE)?;
    let (_, _begins, rest) = any(validity)?;
    let (tag, ends, _) = any(rest)?;
    seconds(tag, std::str::from_utf8(ends).ok()?)
}

/// The contents of the first element, if it has this tag, and what follows it.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = any(der)?;
    (found == tag).then_some((contents, rest))
}

fn any(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDhhmmssZ`, or the same with four digits of the year. Two digits mean 1950 to 2049.
fn seconds(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year: i64 = digits[..2].parse().ok()?;
            (if year < 50 { 2_000 + year } else { 1_900 + year }, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (digits[..4].parse().ok()?, &digits[4..]),
        _ => return None,
    };
    let part = |at: usize| rest[at..at + 2].parse::<i64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then_some(days(year, month, day) * 86_400 + part(4)? * 3_600 + part(6)? * 60 + part(8)?)
}

/// Days from 1970-01-01 to a date. Years begin in March, so that a leap day is the last of its
/// year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20240229120000Z", Some(1_709_208_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20241329120000Z", None),
            (GENERALIZED_TIME, "20240229120000", None),
            (UTC_TIME, "20240229120000Z", None),
            (UTC_TIME, "2402291200ééZ", None),
            (SEQUENCE, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text), expected, "{tag} {text}");
        }
    }

    #[test]
    fn what_is_cut_short_or_something_else_has_no_end() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made").cert;
        let der = certificate.der();
        // The library's own default, far away.
        assert_eq!(ends(der), Some(67_090_118_400));
        for cut in 0..der.len() {
            assert_eq!(ends(&der[..cut]), None, "{cut} bytes");
        }
        assert_eq!(ends(b"-----BEGIN CERTIFICATE-----"), None);
        assert_eq!(ends(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0]), None);
    }
}
