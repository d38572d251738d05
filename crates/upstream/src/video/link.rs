//! A link to a finished file, and when it ends, read off the signature it carries.

/// Where the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLink {
    pub url: String,
    /// Unix seconds, where the link itself says.
    pub expires_at: Option<i64>,
    /// It carries the `Expires` parameter callers are promised, so it may be handed out as it is.
    pub carries_expires: bool,
    /// It opens only with the provider's key, so the bytes must pass through the gateway.
    pub needs_key: bool,
}

impl FileLink {
    /// `None` unless it is an http(s) link.
    pub(crate) fn read(url: &str) -> Option<FileLink> {
        if !(url.starts_with("https://") || url.starts_with("http://")) || url.len() > 8192 {
            return None;
        }
        let value = |name: &str| parameter(url, name);
        let plain = value("Expires").and_then(|text| text.parse::<i64>().ok());
        let signed = |date: &str, span: &str| Some(stamp(value(date)?)? + value(span)?.parse::<i64>().ok()?);
        let expires_at = plain
            .or_else(|| signed("X-Tos-Date", "X-Tos-Expires"))
            .or_else(|| signed("X-Amz-Date", "X-Amz-Expires"))
            .or_else(|| signed("X-Goog-Date", "X-Goog-Expires"));
        Some(FileLink { url: url.to_owned(), expires_at, carries_expires: plain.is_some(), needs_key: false })
    }
}

fn parameter<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next()?;
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// `20260810T181347Z` as unix seconds.
fn stamp(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if text.len() != 16 || digits.len() != 14 || !text.ends_with('Z') {
        return None;
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = part(8, 10)? * 3600 + part(10, 12)? * 60 + part(12, 14)?;
    Some(days(year, month, day) * 86_400 + seconds)
}

/// Days since 1970 of a day in the calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (url, expires_at, carries) in [
            ("https://h/v.mp4?Expires=1800000000&OSSAccessKeyId=a&Signature=b", Some(1_800_000_000), true),
            ("https://h/v.mp4?X-Tos-Date=20260810T181347Z&X-Tos-Expires=86400", Some(1_786_385_627 + 86_400), false),
            ("https://h/v.mp4?X-Amz-Expires=60&X-Amz-Date=19700101T000000Z#Expires=7", Some(60), false),
            ("https://h/v.mp4?X-Tos-Date=2026-08-10&X-Tos-Expires=1", None, false),
            ("https://h/Expires=5/v.mp4", None, false),
            ("https://h/v.mp4?Expires=soon", None, false),
        ] {
            let link = FileLink::read(url).expect("a link");
            assert_eq!((link.expires_at, link.carries_expires), (expires_at, carries), "{url}");
        }
        assert!(FileLink::read("ftp://h/v.mp4").is_none() && FileLink::read("").is_none());
    }

    #[test]
    fn the_calendar() {
        for (date, day) in [((1970, 1, 1), 0), ((2000, 2, 29), 11_016), ((2000, 3, 1), 11_017), ((2026, 8, 10), 20_675)]
        {
            assert_eq!(days(date.0, date.1, date.2), day);
        }
    }
}
