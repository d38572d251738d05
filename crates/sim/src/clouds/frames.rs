//! Amazon's framing of event streams.

use bytes::Bytes;
use serde_json::Value;

/// One frame; an exception where `exception` is true.
pub(super) fn frame(kind: &str, payload: &Value, exception: bool) -> Bytes {
    let (name, message) = if exception { (":exception-type", "exception") } else { (":event-type", "event") };
    let mut headers = Vec::new();
    for (name, value) in [(name, kind), (":content-type", "application/json"), (":message-type", message)] {
        headers.push(u8::try_from(name.len()).unwrap_or(0));
        headers.extend(name.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap_or(0).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let payload = payload.to_string();
    let number = |length: usize| u32::try_from(length).unwrap_or(0).to_be_bytes();
    let mut out = Vec::from(number(16 + headers.len() + payload.len()));
    out.extend(number(headers.len()));
    out.extend(check(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload.as_bytes());
    out.extend(check(&out).to_be_bytes());
    Bytes::from(out)
}

/// CRC-32, bit by bit.
fn check(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        assert_eq!(check(b"123456789"), 0xcbf4_3926);
    }
}
