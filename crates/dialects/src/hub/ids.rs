//! Identifiers that fit their target: made from what they stand for, never at random, so that a
//! call and its result, and the same history sent twice, get the same ones.

use std::borrow::Cow;
use tollgate_wire::Dialect;

/// Sixteen hex digits of a text (FNV-1a, twice as wide as collisions in one conversation need).
pub(crate) fn short_hash(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// Longest id of a tool call: OpenAI's two dialects differ.
const fn longest_id(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Chat => 40,
        Dialect::Anthropic | Dialect::Responses => 64,
        Dialect::Gemini => usize::MAX,
    }
}

/// The id of a tool call as `dialect` accepts it; the same when it fits. One that does not is cut
/// and ends with a hash of all of it.
pub(crate) fn fitting_id<'a>(dialect: Dialect, id: &'a str) -> Cow<'a, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let most = longest_id(dialect);
    let fits = match dialect {
        Dialect::Anthropic => !id.is_empty() && id.len() <= most && id.bytes().all(plain),
        Dialect::Chat | Dialect::Responses => !id.is_empty() && id.len() <= most,
        Dialect::Gemini => true,
    };
    if fits {
        return Cow::Borrowed(id);
    }
    let hash = short_hash(id);
    let head = id.chars().take(most - hash.len() - 1);
    let head: String = head.map(|c| if c.is_ascii() && plain(c as u8) { c } else { '_' }).collect();
    Cow::Owned(format!("{head}_{hash}"))
}

/// Who asks, as providers of OpenAI's dialects take it: what is longer is sent as a hash, the same
/// each time.
pub(crate) fn fitting_user(user: &str) -> Cow<'_, str> {
    const MOST: usize = 64;
    if user.chars().count() <= MOST { Cow::Borrowed(user) } else { Cow::Owned(format!("user_{}", short_hash(user))) }
}

/// An id for a call that came without one (Gemini), from its turn, its place there, name and
/// arguments. The turn of an answer is the call of ours that it answers: a model that does the same
/// again in the next turn does another thing.
pub(crate) fn made_id(turn: &str, part: usize, name: &str, args: &str) -> String {
    format!("call_{}", short_hash(&format!("{turn}/{part}/{name}/{args}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_stay_the_same() {
        assert_eq!(fitting_id(Dialect::Anthropic, "toolu_01-a"), "toolu_01-a");
        let alias = fitting_id(Dialect::Anthropic, "functions.Bash:0");
        assert!(alias.starts_with("functions_Bash_0_") && alias.len() <= 64, "{alias}");
        assert_eq!(alias, fitting_id(Dialect::Anthropic, "functions.Bash:0"));
        assert_ne!(alias, fitting_id(Dialect::Anthropic, "functions.Bash_0"));
        let long = "x".repeat(300);
        for (dialect, most) in [(Dialect::Chat, 40), (Dialect::Responses, 64), (Dialect::Anthropic, 64)] {
            assert_eq!(fitting_id(dialect, &long).len(), most);
            assert_eq!(fitting_id(dialect, &long[..most]), long[..most], "as long as it may be");
            let (one, other) = (format!("{long}1"), format!("{long}2"));
            assert_ne!(fitting_id(dialect, &one), fitting_id(dialect, &other));
            let alias = fitting_id(dialect, &one);
            assert_eq!(fitting_id(dialect, &alias), alias, "fits already");
        }
        assert_eq!(fitting_id(Dialect::Chat, "functions.Bash:0"), "functions.Bash:0");
        assert_ne!(made_id("0", 0, "f", "{}"), made_id("0", 1, "f", "{}"));
        assert_ne!(made_id("0", 0, "f", "{}"), made_id("1", 0, "f", "{}"));
    }
}
