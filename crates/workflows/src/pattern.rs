//! The patterns of the schema, each with a function that decides the same. A schema with another
//! pattern is refused, so that the file and this table cannot part in silence.

type Matches = fn(&str) -> bool;

const PATTERNS: &[(&str, Matches)] = &[
    ("^[a-z0-9]+(?:-[a-z0-9]+)*$", slug),
    ("^[a-z]{2}(?:-[a-z]{2})?$", locale),
    ("^[a-z][a-z0-9_]*$", name),
    ("^CA-[0-9]{3}$", requirement),
    ("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", date),
    ("^[0-9a-f]{7,40}$", commit),
    ("^[0-9a-f]{64}$", digest),
    ("^/.*$", path),
];

/// The function of a pattern.
pub(crate) fn matcher(pattern: &str) -> Option<Matches> {
    PATTERNS.iter().find(|(known, _)| *known == pattern).map(|(_, matches)| *matches)
}

fn low(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn slug(text: &str) -> bool {
    text.split('-').all(|part| !part.is_empty() && part.bytes().all(low))
}

fn locale(text: &str) -> bool {
    let two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.split_once('-') {
        Some((language, region)) => two(language) && two(region),
        None => two(text),
    }
}

fn name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(|byte| low(byte) || byte == b'_')
}

fn requirement(text: &str) -> bool {
    text.strip_prefix("CA-").is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn date(text: &str) -> bool {
    let digit_or_dash = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(digit_or_dash)
}

fn commit(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(hex)
}

fn digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(hex)
}

/// A dot matches everything but a line break.
fn path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_takes_and_refuses() {
        let sixty_four = "0123456789abcdef".repeat(4);
        let long = "a".repeat(40);
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "^[a-z0-9]+(?:-[a-z0-9]+)*$",
                &["a", "0", "a-b", "a1-2b-c"],
                &["", "-", "a-", "-a", "a--b", "A", "a_b", "é"],
            ),
            ("^[a-z]{2}(?:-[a-z]{2})?$", &["en", "de-at"], &["", "e", "eng", "EN", "de-", "de-AT", "de-a", "de-at-x"]),
            ("^[a-z][a-z0-9_]*$", &["a", "a_1", "abc"], &["", "1a", "_a", "A", "a-b", "aé"]),
            ("^CA-[0-9]{3}$", &["CA-000", "CA-123"], &["", "CA-12", "CA-1234", "ca-123", "CA_123", "CA-12a"]),
            (
                "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                &["2026-11-16"],
                &["", "2026-1-16", "2026-11-166", "2026/11/16", "x026-11-16"],
            ),
            ("^[0-9a-f]{7,40}$", &["0123456", &long], &["", "012345", "0123456g", "ABCDEF0", &sixty_four]),
            ("^[0-9a-f]{64}$", &[&sixty_four], &["", &long, &sixty_four[1..], "g"]),
            ("^/.*$", &["/", "/v1/x"], &["", "v1", "/a\nb"]),
        ];
        assert_eq!(cases.len(), PATTERNS.len());
        for (pattern, taken, refused) in cases {
            let matches = matcher(pattern).unwrap();
            taken.iter().for_each(|text| assert!(matches(text), "{pattern} {text}"));
            refused.iter().for_each(|text| assert!(!matches(text), "{pattern} {text}"));
        }
        assert!(matcher(".*").is_none());
    }
}
