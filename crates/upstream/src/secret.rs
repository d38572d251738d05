//! A provider's credential. It can be put into a request and nowhere else.

use http::HeaderValue;
use ring::digest::{SHA256, digest};
use std::fmt;

/// A value that is never printed, logged or serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Blanks and line ends around the value are dropped, as files often end with one.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into().trim().to_owned())
    }

    /// An access key and its secret.
    pub fn pair(access: &str, secret: &str) -> Self {
        Secret(format!("{}|{}", access.trim(), secret.trim()))
    }

    /// The halves of a pair; `None` for a single key.
    pub(crate) fn halves(&self) -> Option<(&str, &str)> {
        self.0.split_once('|')
    }

    /// It is a signed token (JWT), not a key.
    pub(crate) fn is_token(&self) -> bool {
        self.0.starts_with("eyJ") && self.0.split('.').count() == 3
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For adaptors whose provider takes the key in another way; goes into a request and nowhere
    /// else.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Sixteen digits by which the key can be known again and from which it cannot be had. Of a
    /// pair the first half counts, which names the account.
    pub(crate) fn print(&self, pair: bool) -> String {
        let whole = self.0.as_str();
        let part = whole.split_once('|').map_or(whole, |(access, _)| if pair { access } else { whole });
        digest(&SHA256, part.as_bytes()).as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The value alone, marked sensitive; `None` when it cannot stand in a header.
    pub(crate) fn bare(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(self.0.as_str()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `Bearer …`, marked sensitive; `None` when the value cannot stand in a header.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_names_a_key_and_tells_nothing_of_it() {
        let print = |value: &str, pair| Secret::new(value).print(pair);
        // The first digits of SHA-256, as any other implementation gives them.
        assert_eq!(print("abc", false), "ba7816bf8f01cfea");
        assert_eq!(print("abc|first", true), print("abc|second", true), "the secret of a pair may be exchanged");
        assert_eq!(print("abc|first", true), "ba7816bf8f01cfea");
        assert_ne!(print("abc|first", false), print("abc|second", false), "of a single key all counts");
    }

    #[test]
    fn never_printed() {
        let secret = Secret::new(" sk-very-secret\n");
        let header = secret.bearer().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(!format!("{header:?}").contains("very"));
        assert_eq!(header.as_bytes(), b"Bearer sk-very-secret");
        assert!(Secret::new("a\nb").bearer().is_none());
    }
}
