//! Time-based codes (RFC 6238): six digits of half a minute, the one before and the one after let
//! pass. That each is used once is seen to by the store, which remembers the last step.

use super::passwords::same;
use ring::hmac;

const STEP_SECONDS: i64 = 30;
const DRIFT: i64 = 1;
pub const SECRET_BYTES: usize = 20;
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The step whose code this is, if it is one that counts now.
pub fn step_of(secret: &[u8], code: &str, now_ms: i64) -> Option<i64> {
    let now = now_ms.div_euclid(1_000).div_euclid(STEP_SECONDS);
    let given: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    // All three are looked at, whichever it is.
    let fits = |step: &i64| same(code_at(secret, *step).as_bytes(), given.as_bytes());
    let found: Vec<i64> = (now - DRIFT..=now + DRIFT).filter(fits).collect();
    found.last().copied()
}

pub fn code_at(secret: &[u8], step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let mac = hmac::sign(&key, &step.to_be_bytes());
    let mac = mac.as_ref();
    let at = usize::from(mac.last().copied().unwrap_or_default() & 15);
    let word = mac.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes);
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

/// As people type it in, and as applications take it.
pub fn base32(bytes: &[u8]) -> String {
    let (mut text, mut bits, mut held) = (String::new(), 0u32, 0u32);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(BASE32[((held >> bits) & 31) as usize]));
        }
    }
    if bits > 0 {
        text.push(char::from(BASE32[((held << (5 - bits)) & 31) as usize]));
    }
    text
}

/// What an application reads from a picture.
pub fn uri(email: &str, secret: &[u8]) -> String {
    let secret = base32(secret);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let written = |byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let email: String = email.bytes().map(written).collect();
    format!("otpauth://totp/Tollgate:{email}?secret={secret}&issuer=Tollgate&algorithm=SHA1&digits=6&period=30")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6238, of which the last six digits count.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = b"12345678901234567890";
        for (seconds, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")]
        {
            assert_eq!(code_at(secret, seconds / STEP_SECONDS), code);
            assert_eq!(step_of(secret, code, seconds * 1_000), Some(seconds / STEP_SECONDS));
            assert_eq!(step_of(secret, code, (seconds + 30) * 1_000), Some(seconds / STEP_SECONDS), "one late");
            assert_eq!(step_of(secret, code, (seconds + 61) * 1_000), None, "two late");
        }
        assert_eq!(base32(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(base32(b"f"), "MY");
    }
}
