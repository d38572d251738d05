//! A provider's credential. It can be put into a request and nowhere else.

use http::HeaderValue;
use std::fmt;

/// A value that is never printed, logged or serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Blanks and line ends around the value are dropped, as files often end with one.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into().trim().to_owned())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For adaptors whose provider takes the key in another way; goes into a request and nowhere else.
    pub(crate) fn expose(&self) -> &str {
        &self.0
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
    fn never_printed() {
        let secret = Secret::new(" sk-very-secret\n");
        let header = secret.bearer().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(!format!("{header:?}").contains("very"));
        assert_eq!(header.as_bytes(), b"Bearer sk-very-secret");
        assert!(Secret::new("a\nb").bearer().is_none());
    }
}
