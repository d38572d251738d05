//! Usage reported in seconds instead of tokens: `{"type":"duration","seconds":12.34}`.

use super::MOST;
use crate::json::Scan;

/// Milliseconds of a transcription's report, rounded up; `None` when it is no such report, negative
/// or absurd.
pub fn read_duration_ms(text: &[u8]) -> Option<u64> {
    let mut scan = Scan::new(text);
    let mut seconds = None;
    let mut kind = false;
    scan.object(|key, scan| {
        let value = scan.value()?;
        match key.raw() {
            b"type" => kind = value == b"\"duration\"",
            b"seconds" => seconds = milliseconds(value),
            _ => {}
        }
        Ok::<(), crate::json::BrokenJson>(())
    })
    .ok()?;
    scan.end().ok()?;
    seconds.filter(|_| kind)
}

/// A plain decimal number in thousandths; exponents are refused.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole = crate::json::whole_number(whole.as_bytes()).filter(|seconds| *seconds <= MOST)?;
    let thousandths = part.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let more = part.bytes().skip(3).any(|digit| digit != b'0');
    Some(whole * 1000 + thousandths + u64::from(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds() {
        let read = |seconds: &str| read_duration_ms(format!(r#"{{"type":"duration","seconds":{seconds}}}"#).as_bytes());
        assert_eq!(read("12"), Some(12_000));
        assert_eq!(read("12.5"), Some(12_500));
        assert_eq!(read("0.0001"), Some(1));
        assert_eq!(read("3.1400"), Some(3_140));
        for odd in ["-1", "1e3", "\"5\"", "null", "99999999999", "true"] {
            assert_eq!(read(odd), None, "{odd}");
        }
        assert_eq!(read_duration_ms(br#"{"type":"tokens","seconds":5}"#), None);
        assert_eq!(read_duration_ms(b"[]"), None);
    }
}
