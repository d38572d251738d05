//! One-time tokens and recovery codes: what is handed out, and the hash that is stored of it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

pub const RECOVERY_CODES: usize = 10;
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A token as it is mailed or printed.
pub struct OneTimeToken {
    pub text: String,
    pub hash: [u8; 32],
}

impl OneTimeToken {
    /// 256 random bits.
    pub fn new(fill: impl FnOnce(&mut [u8])) -> OneTimeToken {
        let mut random = [0; 32];
        fill(&mut random);
        let text = BASE64_URL_SAFE_NO_PAD.encode(random);
        OneTimeToken { hash: token_hash(&text), text }
    }
}

pub fn token_hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.trim().as_bytes()).into()
}

/// Four times four letters and digits, 80 random bits: too many to be guessed from a hash.
pub fn recovery_code(fill: impl FnOnce(&mut [u8])) -> String {
    let mut random = [0; 16];
    fill(&mut random);
    let letters: Vec<char> = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect();
    letters.chunks(4).map(|four| four.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

/// However it was typed.
pub fn recovery_hash(code: &str) -> [u8; 32] {
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    Sha256::digest(plain.to_ascii_lowercase().as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_however_it_is_typed() {
        let code = recovery_code(|bytes| bytes.copy_from_slice(b"ABCDEFGHIJKLMNOP"));
        assert_eq!(code.len(), 19);
        let typed = code.to_ascii_uppercase().replace('-', " ");
        assert_eq!(recovery_hash(&code), recovery_hash(&typed));
    }
}
