//! Text of somebody else's, cut to a length at which it may be repeated: in an error, a warning, a
//! list or a log.

use std::borrow::Cow;

/// Longest message of an error, and longest name of a field in one.
pub const MESSAGE: usize = 4_096;
pub const NAME: usize = 256;

/// The text with at most so many bytes; where something was left off, it ends with `…`. No
/// character is cut.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone_and_what_does_not_is_cut_between_characters() {
        for (text, most, cut_to) in [
            ("", 0, ""),
            ("abc", 3, "abc"),
            ("abcdef", 5, "ab…"),
            ("ééé", 6, "ééé"),
            ("éééé", 6, "é…"),
            ("€€€€", 10, "€€…"),
            ("abcdef", 3, "…"),
        ] {
            assert_eq!(cut(text, most), cut_to, "{text} {most}");
            assert!(cut(text, most).len() <= most.max('…'.len_utf8()));
        }
    }
}
