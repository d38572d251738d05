//! Reading numbers and texts that providers write as they please.

use super::{Alike, Likeness, Sought, VideoMaker};
use serde_json::Value;

/// Seconds as milliseconds, from a number or a text such as `"5.1"`, without passing through
/// floating point where it can be avoided.
pub(crate) fn millis(value: &Value) -> Option<u64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let plain =
        !whole.is_empty() && whole.len() <= 9 && [whole, part].iter().all(|t| t.bytes().all(|b| b.is_ascii_digit()));
    if !plain {
        return None;
    }
    let thousandths = format!("{part:0<3}");
    let millis: u64 = thousandths[..3].parse().ok()?;
    // A rest below a millisecond counts as one.
    let rest = thousandths[3..].bytes().any(|b| b != b'0');
    Some(whole.parse::<u64>().ok()? * 1000 + millis + u64::from(rest))
}

/// What a maker bills, as milliseconds. A finished video has a length: none reported, or zero,
/// tells nothing, and is no free video.
pub(crate) fn billed(value: &Value) -> Option<u64> {
    millis(value).filter(|millis| *millis > 0)
}

/// The same for what a maker counts.
pub(crate) fn counted(value: &Value) -> Option<u64> {
    count(value).filter(|count| *count > 0)
}

/// The whole seconds a maker sells, as milliseconds, where it tells the length of the file, which a
/// frame makes a little longer or shorter. A file of no length tells nothing.
pub(crate) fn sold_seconds(value: &Value) -> Option<u64> {
    millis(value).map(|millis| (millis + 500) / 1000 * 1000).filter(|millis| *millis > 0)
}

/// A count, from a number or a text.
pub(crate) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| millis(value).filter(|m| m % 1000 == 0).map(|m| m / 1000)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// An id, from a text or a number.
pub(crate) fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() && text.len() <= 512 => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A maker's text as callers may read it: safe, and without the request id some put behind every
/// sentence.
pub(crate) fn text(text: &str, most: usize) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.rfind("request id:").map_or(text, |at| text[..at].trim_end_matches([' ', '(', '[']));
    crate::safe_text(words, most)
}

/// Percent.
pub(crate) fn percent(value: &Value) -> Option<u8> {
    count(value).map(|percent| u8::try_from(percent.min(100)).unwrap_or(100))
}

/// The number of the page after the one a cursor led to. Only a page that leaves nothing behind it
/// is the last: makers may give fewer entries than were asked for, and count their totals as they
/// like.
pub(crate) fn next_page(cursor: Option<&str>, items: &[Value], since: i64) -> Option<String> {
    let page = cursor.and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    (!is_past(items, since)).then(|| (page + 1).to_string())
}

/// Whether a page of a newest-first list leaves nothing to look for behind it: it is empty, or all
/// of it is older.
pub(crate) fn is_past(items: &[Value], since: i64) -> bool {
    items.iter().all(|item| made_at(item).is_some_and(|at| at < since))
}

/// When an entry was made, in Unix seconds; `None` where it tells none, or something that is no
/// such time.
pub(crate) fn made_at(entry: &Value) -> Option<i64> {
    let seconds = i64::try_from(count(&entry["created_at"])?).ok()?;
    (1_000_000_000..100_000_000_000).contains(&seconds).then_some(seconds)
}

/// A length, size, resolution or ratio: its unit and its numbers. `None` where it is written in no
/// known way.
pub(crate) fn measure(value: &Value) -> Option<(char, [u64; 2])> {
    if let Some(millis) = millis(value) {
        return Some(('s', [millis, 0]));
    }
    let text = value.as_str()?.trim().to_ascii_lowercase().replace('*', "x");
    let pair = |unit: char| text.split_once(unit).and_then(|(a, b)| Some((unit, [a.parse().ok()?, b.parse().ok()?])));
    let lines = match text.as_str() {
        "2k" => Some(1440),
        "4k" => Some(2160),
        _ => text.strip_suffix('p').and_then(|lines| lines.parse().ok()),
    };
    let seconds =
        || text.strip_suffix('s').and_then(|text| millis(&Value::from(text))).map(|millis| ('s', [millis, 0]));
    lines.map(|lines| ('p', [lines, 0])).or_else(|| pair('x')).or_else(|| pair(':')).or_else(seconds)
}

/// The entries of a list that may be the task sought. One without an id can be nobody's, and may be
/// ours.
pub(crate) fn alike(video: &dyn VideoMaker, sought: &Sought<'_>, entries: &[Value]) -> Vec<Alike> {
    let read = |entry: &Value| match (video.likeness(sought, entry), id(&entry["id"])) {
        (Likeness::None, _) => None,
        (likeness, Some(id)) => Some(Alike { id, likeness, entry: entry.clone() }),
        (_, None) => Some(Alike { id: String::new(), likeness: Likeness::Unclear, entry: entry.clone() }),
    };
    entries.iter().filter_map(read).collect()
}

/// Entries of a page that is asked for.
pub(crate) const PAGE: u64 = 100;

/// A text that may stand in a path: ids come from outside and must not lead elsewhere.
pub(crate) fn path_part(text: &str) -> Option<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b':');
    (!text.is_empty() && text != "." && text != ".." && text.bytes().all(plain)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_in_any_spelling() {
        for (value, expected) in [
            (json!(5), Some(5000)),
            (json!(5.0), Some(5000)),
            (json!(13.24), Some(13_240)),
            (json!("5.1"), Some(5100)),
            (json!(" 7 "), Some(7000)),
            (json!("6.6204"), Some(6621)),
            (json!("5.0000"), Some(5000)),
            (json!(-1), None),
            (json!("1e3"), None),
            (json!(""), None),
            (json!(null), None),
            (json!("99999999999"), None),
        ] {
            assert_eq!(millis(&value), expected, "{value}");
        }
    }

    #[test]
    fn measures_in_any_spelling() {
        for (value, expected) in [
            (json!(5), Some(('s', [5000, 0]))),
            (json!("5"), Some(('s', [5000, 0]))),
            (json!("5s"), Some(('s', [5000, 0]))),
            (json!("720x1280"), Some(('x', [720, 1280]))),
            (json!("720*1280"), Some(('x', [720, 1280]))),
            (json!("768P"), Some(('p', [768, 0]))),
            (json!("2K"), Some(('p', [1440, 0]))),
            (json!("16:9"), Some((':', [16, 9]))),
            (json!("adaptive"), None),
            (json!("p"), None),
            (json!(""), None),
            (json!(null), None),
            (json!({"width": 720}), None),
        ] {
            assert_eq!(measure(&value), expected, "{value}");
        }
    }

    #[test]
    fn times_that_are_none() {
        for (value, expected) in [
            (json!(1_763_200_000), Some(1_763_200_000)),
            (json!("1763200000"), Some(1_763_200_000)),
            (json!(1_763_200_000_000_i64), None),
            (json!("2025-11-15T10:00:00Z"), None),
            (json!(0), None),
            (json!(-1), None),
            (json!(null), None),
        ] {
            assert_eq!(made_at(&json!({ "created_at": value })), expected, "{value}");
        }
    }

    #[test]
    fn the_length_of_a_file_is_the_nearest_second() {
        for (value, expected) in [
            (json!("5.1"), Some(5000)),
            (json!(4.96), Some(5000)),
            (json!("5.5"), Some(6000)),
            (json!("15"), Some(15_000)),
            (json!("0.4"), None),
            (json!(0), None),
            (json!(""), None),
            (json!(null), None),
        ] {
            assert_eq!(sold_seconds(&value), expected, "{value}");
        }
    }

    #[test]
    fn texts_lose_their_request_ids() {
        assert_eq!(text("The size is wrong. Request id: 0217180678", 100), "The size is wrong.");
        assert_eq!(text("Bad (request id: 7f)", 100), "Bad");
        assert_eq!(text("See https://x.example/y", 100), "See [link]");
    }

    #[test]
    fn counts_and_ids() {
        assert_eq!([count(&json!(108_000)), count(&json!("108000")), count(&json!(108_000.0))], [Some(108_000); 3]);
        assert_eq!([count(&json!(-1)), count(&json!(1.5)), count(&json!([]))], [None; 3]);
        assert_eq!((id(&json!(123)), id(&json!("a")), id(&json!(""))), (Some("123".into()), Some("a".into()), None));
        assert_eq!(path_part("cgt-20260810181347-b9645"), Some("cgt-20260810181347-b9645"));
        for bad in ["", "..", "a/b", "a?b", "a b", "a%2fb"] {
            assert_eq!(path_part(bad), None, "{bad}");
        }
    }
}
