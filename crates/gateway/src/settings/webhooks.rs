//! Addresses that customers want to hear of finished tasks at: which of them may be notified.

use super::WebhookSettings;
use crate::refusal::Refusal;
use http::Uri;
use std::net::IpAddr;
use tollgate_upstream::{is_inside_name, is_public};
use tollgate_wire::error::Code;

const LONGEST_URL: usize = 2048;

/// The value of `webhook_url`, if it may be notified. Names are looked up when it is, and again
/// each time.
pub fn webhook_address(url: &str, settings: &WebhookSettings) -> Result<String, Refusal> {
    public_address("webhook_url", url, settings)
}

/// The same for a field of another name.
pub fn public_address(field: &str, url: &str, settings: &WebhookSettings) -> Result<String, Refusal> {
    let bad = |why: &str| Err(Refusal::about(Code::InvalidParameter, field, format!("`{field}` {why}.")));
    let Ok(uri) = url.parse::<Uri>() else { return bad("is not an address") };
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
        return bad("must begin with https:// and name a host");
    };
    if url.len() > LONGEST_URL || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return bad("must be shorter than 2048 characters and carry no user or password");
    }
    if scheme != "https" && !(settings.private && scheme == "http") {
        return bad("must begin with https://");
    }
    let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let inside = literal.is_some_and(|address| !is_public(address)) || (literal.is_none() && is_inside_name(host));
    if inside && !settings.private {
        return bad("must lead to a public address");
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::VideoSettings;

    #[test]
    fn which_addresses_may_be_notified() {
        let strict = VideoSettings::default().webhooks;
        let open = WebhookSettings { private: true, ..strict.clone() };
        for (url, outside, inside) in [
            ("https://example.com/hook?x=1", true, true),
            ("https://example.com:8443/hook", true, true),
            ("http://example.com/hook", false, true),
            ("https://127.0.0.1/hook", false, true),
            ("http://127.0.0.1:9/hook", false, true),
            ("https://localhost/hook", false, true),
            ("https://[::1]/hook", false, true),
            ("https://169.254.169.254/latest", false, true),
            ("https://user:pass@example.com/", false, false),
            ("ftp://example.com/", false, false),
            ("/hook", false, false),
            ("", false, false),
            ("not an address", false, false),
        ] {
            assert_eq!(webhook_address(url, &strict).is_ok(), outside, "{url}");
            assert_eq!(webhook_address(url, &open).is_ok(), inside, "{url}");
        }
        assert!(webhook_address(&format!("https://example.com/{}", "a".repeat(3000)), &strict).is_err());
    }
}
