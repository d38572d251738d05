//! GitHub, which speaks OAuth 2 and has no ID token: whoever comes back with a code is asked for by
//! the token that the code is exchanged for, and is what GitHub then says over its own connection.
//! The way there and back is that of every issuer.
//!
//! The subject is the number of the user, which stays; name and e-mails change.

use super::token::{IssuerClaims, claims_of};
use super::{Discovered, IssuerFault, answered};
use crate::Client;
use crate::outgoing::outgoing;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Method, Uri};
use serde_json::{Value, json};
use url::Url;

const VERSION: HeaderName = HeaderName::from_static("x-github-api-version");
/// The place that is meant where nobody names another.
pub const PUBLIC: &str = "https://github.com";

/// Where it is asked; it is not asked for that.
pub(super) fn places(url: &str) -> Result<Discovered, IssuerFault> {
    let url = url.trim_end_matches('/');
    let unfit = |_| IssuerFault::Unfit("its address");
    let authorize = Url::parse(&format!("{url}/login/oauth/authorize")).map_err(unfit)?;
    let token = format!("{url}/login/oauth/access_token").parse().map_err(|_| IssuerFault::Unfit("its address"))?;
    Ok(Discovered { authorize, token, keys: None, userinfo: None, names_itself: false, by_form: true })
}

/// Whether an answer names this place; GitHub calls itself by more than its address.
pub(super) fn is_named(url: &str, named: &str) -> bool {
    named == url || named.strip_suffix("/login/oauth") == Some(url)
}

/// Where its API is: apart for the public one, below its own address for one of a company.
fn api(url: &str, path: &str) -> String {
    match url.trim_end_matches('/') {
        PUBLIC => format!("https://api.github.com{path}"),
        own => format!("{own}/api/v3{path}"),
    }
}

/// Who has this token. `groups`: also which organisations and teams they are in.
pub(super) async fn who(client: &Client, url: &str, access: &str, groups: bool) -> Result<IssuerClaims, IssuerFault> {
    let ask = async |path: &str| asked(client, &api(url, path), access).await;
    let user = ask("/user").await?.ok_or(IssuerFault::Code)?;
    let id = user.get("id").and_then(Value::as_u64).filter(|id| *id > 0).ok_or(IssuerFault::Token("no user"))?;
    // Whoever did not let us read them has none.
    let emails = ask("/user/emails").await?.unwrap_or_default();
    let primary = emails.as_array().into_iter().flatten().find(|one| one["primary"] == true);
    let name = user.get("name").filter(|name| name.is_string()).or_else(|| user.get("login"));
    let mut names = Vec::new();
    if groups {
        let orgs = ask("/user/orgs?per_page=100").await?.unwrap_or_default();
        let teams = ask("/user/teams?per_page=100").await?.unwrap_or_default();
        names.extend(orgs.as_array().into_iter().flatten().filter_map(|org| org["login"].as_str()).map(str::to_owned));
        let team =
            |team: &Value| Some(format!("{}/{}", team["organization"]["login"].as_str()?, team["slug"].as_str()?));
        names.extend(teams.as_array().into_iter().flatten().filter_map(team));
    }
    let claims = json!({
        "sub": id.to_string(), "name": name, "groups": names,
        "email": primary.map(|one| &one["email"]), "email_verified": primary.map(|one| &one["verified"]),
    });
    claims_of(&claims, groups.then_some("groups")).ok_or(IssuerFault::Token("no user"))
}

/// What it answers; nothing where it has no such thing for us.
async fn asked(client: &Client, url: &str, access: &str) -> Result<Option<Value>, IssuerFault> {
    let uri: Uri = url.parse().map_err(|_| IssuerFault::Unfit("an address"))?;
    let mut request = outgoing(Method::GET, uri, "application/vnd.github+json", Bytes::new());
    let mut value = HeaderValue::try_from(format!("Bearer {access}")).map_err(|_| IssuerFault::Away)?;
    value.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, value);
    request.headers_mut().insert(VERSION, HeaderValue::from_static("2022-11-28"));
    match answered(client, request).await? {
        (200, Some(value)) => Ok(Some(value)),
        (200, None) => Err(IssuerFault::Unfit("no JSON")),
        (401, _) => Err(IssuerFault::Code),
        (404, _) => Ok(None),
        // Also 403 and 429: too many questions.
        _ => Err(IssuerFault::Away),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_one_has_its_api_apart() {
        assert_eq!(api(PUBLIC, "/user"), "https://api.github.com/user");
        assert_eq!(api("https://git.example.com/", "/user"), "https://git.example.com/api/v3/user");
        let found = places("https://git.example.com").expect("places");
        assert_eq!(found.authorize.as_str(), "https://git.example.com/login/oauth/authorize");
        assert_eq!(found.token.to_string(), "https://git.example.com/login/oauth/access_token");
    }

    #[test]
    fn another_issuer_is_not_this_one() {
        assert!(is_named(PUBLIC, PUBLIC) && is_named(PUBLIC, "https://github.com/login/oauth"));
        for other in ["", "https://evil.example", "https://evil.example/login/oauth", "/login/oauth"] {
            assert!(!is_named(PUBLIC, other), "{other}");
        }
    }
}
