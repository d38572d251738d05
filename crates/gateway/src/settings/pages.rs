//! Which web pages may call this gateway from a browser, as the operator writes it.

use http::Uri;
use std::str::FromStr;

/// The pages that may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    All,
    /// Their origins; none closes the gateway to browsers.
    These(Vec<Origin>),
}

/// `https://app.example.com`, as a browser names a page's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Origin, &'static str> {
        if text == "*" {
            return Ok(Origin(text.to_owned()));
        }
        let uri = text.parse::<Uri>().ok();
        let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
        let written = parts.filter(|(scheme, authority)| {
            let default = match *scheme {
                "https" => 443,
                "http" => 80,
                _ => return false,
            };
            let host = authority.as_str();
            authority.port_u16() != Some(default) && !host.contains('@') && text == format!("{scheme}://{host}")
        });
        if written.is_none() || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(
                "is not an origin such as https://app.example.com, in small letters, without a path or final slash",
            );
        }
        Ok(Origin(text.to_owned()))
    }
}

impl Origin {
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Pages {
    pub fn of(origins: Vec<Origin>) -> Pages {
        if origins.iter().any(|origin| origin.0 == "*") { Pages::All } else { Pages::These(origins) }
    }
}
