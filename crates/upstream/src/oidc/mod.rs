//! An issuer of OpenID Connect: where it is asked (discovery), with which keys it signs, and what
//! it says of whoever comes back from it with a code.
//!
//! Everything it answers has a bound in size and time. What it says of itself is remembered for an
//! hour; keys are read anew for a name that is not known, once a minute at most. Its tokens are in
//! no message.

mod github;
mod keys;
mod token;

use crate::outgoing::outgoing;
use crate::{Client, Secret, read_whole};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
pub use github::PUBLIC as GITHUB;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};
use keys::IssuerKeys;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
pub use token::IssuerClaims;
use token::{ExpectedToken, RawToken, claims_of};
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

const PATIENCE: Duration = Duration::from_secs(10);
const MOST_REPLY: usize = 256 << 10;
const HOUR_MS: i64 = 3_600_000;
/// Keys of a name that is not known are asked for this often at most.
const KEYS_AGAIN_MS: i64 = 60_000;
/// An issuer that failed is left alone for this long, from when it was asked.
const LEFT_ALONE_MS: i64 = 15_000;

/// Why somebody could not be known by an issuer. What it answered is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    #[error("the issuer cannot be reached, or does not answer in time")]
    Away,
    #[error("the issuer says of itself what cannot be used: {0}")]
    Unfit(&'static str),
    #[error("the issuer does not take the code")]
    Code,
    #[error("the ID token of the issuer is refused: {0}")]
    Token(&'static str),
}

/// What an issuer speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IssuerKind {
    /// OpenID Connect: it says of itself where it is asked, and signs what it says of people.
    #[default]
    OpenId,
    GitHub,
}

/// An issuer, as the settings name it.
#[derive(Debug)]
pub struct Issuer {
    kind: IssuerKind,
    pub url: String,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    groups: Option<String>,
    state: Mutex<IssuerState>,
}

#[derive(Debug, Default)]
struct IssuerState {
    found: Option<(Arc<Discovered>, i64)>,
    keys: Option<(Arc<IssuerKeys>, i64)>,
    failed_at: Option<i64>,
}

/// What it says of itself.
#[derive(Debug)]
struct Discovered {
    authorize: Url,
    token: Uri,
    /// None: it signs nothing.
    keys: Option<Uri>,
    userinfo: Option<Uri>,
    /// It names itself beside a code.
    names_itself: bool,
    /// It takes a secret in the form only.
    by_form: bool,
}

/// What belongs to one way through an issuer.
#[derive(Clone, Copy, Debug)]
pub struct IssuerWay<'a> {
    pub redirect_uri: &'a str,
    pub state: &'a str,
    pub nonce: &'a str,
    /// Of PKCE, known to us alone until the code is exchanged.
    pub verifier: &'a str,
    /// They must show the issuer anew who they are.
    pub again: bool,
}

impl Issuer {
    /// An issuer is reached by https; one on this machine may be tried out without.
    pub fn new(
        url: &str,
        client_id: &str,
        client_secret: Option<Secret>,
        scopes: Vec<String>,
    ) -> Result<Issuer, &'static str> {
        let read = Url::parse(url).map_err(|_| "must be the address of an issuer: https://login.example.com")?;
        if !safe(&read, &read) || read.query().is_some() || read.fragment().is_some() {
            return Err("must begin with https:// and have neither a query nor a user");
        }
        let (url, client_id) = (url.to_owned(), client_id.to_owned());
        let kind = IssuerKind::OpenId;
        Ok(Issuer { kind, url, client_id, client_secret, scopes, groups: None, state: Mutex::default() })
    }

    /// The same, which also says in which groups somebody is: those in this claim.
    pub fn with_groups_in(self, claim: Option<String>) -> Issuer {
        Issuer { groups: claim, ..self }
    }

    /// The same, which speaks so.
    pub fn of_kind(self, kind: IssuerKind) -> Issuer {
        Issuer { kind, ..self }
    }

    /// Where a browser is sent.
    pub async fn begin(&self, client: &Client, way: &IssuerWay<'_>, now: i64) -> Result<String, IssuerFault> {
        let found = self.discovered(client, now).await?;
        let mut url = found.authorize.clone();
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, way.verifier.as_bytes()));
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("response_type", "code").append_pair("client_id", &self.client_id);
            query.append_pair("redirect_uri", way.redirect_uri).append_pair("scope", &self.scopes.join(" "));
            query.append_pair("state", way.state);
            query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
            if self.kind == IssuerKind::OpenId {
                query.append_pair("nonce", way.nonce);
                if way.again {
                    query.append_pair("prompt", "login").append_pair("max_age", "0");
                }
            }
        }
        Ok(url.into())
    }

    /// Who came back with a code. `named` is the issuer that the answer named.
    pub async fn end(
        &self,
        client: &Client,
        way: &IssuerWay<'_>,
        (code, named): (&str, Option<&str>),
        now: i64,
    ) -> Result<IssuerClaims, IssuerFault> {
        let found = self.discovered(client, now).await?;
        // RFC 9207: an answer of another issuer is not carried to this one.
        let own = |named: &str| match self.kind {
            IssuerKind::OpenId => named == self.url,
            IssuerKind::GitHub => github::is_named(&self.url, named),
        };
        if named.is_some_and(|named| !own(named)) || (found.names_itself && named.is_none()) {
            return Err(IssuerFault::Token("the answer comes from another issuer"));
        }
        let tokens = self.exchange(client, &found, way, code).await?;
        if self.kind == IssuerKind::GitHub {
            // A code that it does not take is an answer like any other.
            let access = tokens.get("access_token").and_then(Value::as_str).ok_or(IssuerFault::Code)?;
            return github::who(client, &self.url, access, self.groups.is_some()).await;
        }
        let text = tokens.get("id_token").and_then(Value::as_str).ok_or(IssuerFault::Token("there is none"))?;
        let token = RawToken::read(text).ok_or(IssuerFault::Token("form or algorithm"))?;
        let keys = self.keys(client, &found, token.key_id.as_deref(), now).await?;
        let (issuer, client_id, groups) = (self.url.as_str(), self.client_id.as_str(), self.groups.as_deref());
        let expected = ExpectedToken { issuer, client_id, nonce: way.nonce, now: now.div_euclid(1_000), groups };
        let claims = token.checked(&keys, &expected).map_err(IssuerFault::Token)?;
        let lacks = claims.email.is_none() || (groups.is_some() && claims.groups.is_empty());
        match (&found.userinfo, tokens.get("access_token").and_then(Value::as_str)) {
            (Some(userinfo), Some(access)) if lacks => asked_for(client, userinfo, access, (claims, groups)).await,
            _ => Ok(claims),
        }
    }

    async fn exchange(
        &self,
        client: &Client,
        found: &Discovered,
        way: &IssuerWay<'_>,
        code: &str,
    ) -> Result<Value, IssuerFault> {
        let secret = self.client_secret.as_ref().map(Secret::expose);
        let form = {
            let mut form = Serializer::new(String::new());
            form.append_pair("grant_type", "authorization_code").append_pair("code", code);
            form.append_pair("redirect_uri", way.redirect_uri).append_pair("code_verifier", way.verifier);
            if found.by_form || secret.is_none() {
                form.append_pair("client_id", &self.client_id);
                secret.map(|secret| form.append_pair("client_secret", secret));
            }
            Bytes::from(form.finish())
        };
        let mut request = outgoing(Method::POST, found.token.clone(), "application/json", form);
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        if let Some(secret) = secret.filter(|_| !found.by_form) {
            let coded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = BASE64_STANDARD.encode(format!("{}:{}", coded(&self.client_id), coded(secret)));
            let mut value = HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| IssuerFault::Away)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        match answered(client, request).await? {
            (200, Some(tokens)) => Ok(tokens),
            (status, _) if status >= 500 => Err(IssuerFault::Away),
            _ => Err(IssuerFault::Code),
        }
    }

    /// What the issuer says of itself. Whoever comes while it is asked waits for the answer.
    async fn discovered(&self, client: &Client, now: i64) -> Result<Arc<Discovered>, IssuerFault> {
        if self.kind == IssuerKind::GitHub {
            return github::places(&self.url).map(Arc::new);
        }
        let mut state = self.state.lock().await;
        if let Some((found, _)) = state.found.as_ref().filter(|(_, at)| recent(*at, HOUR_MS, now)) {
            return Ok(found.clone());
        }
        if state.failed_at.is_some_and(|at| recent(at, LEFT_ALONE_MS, now)) {
            return Err(IssuerFault::Away);
        }
        let url = format!("{}/.well-known/openid-configuration", self.url.trim_end_matches('/'));
        let read = match get(client, &url).await {
            Ok(value) => self.read_discovery(&value),
            Err(fault) => Err(fault),
        };
        state.failed_at = read.is_err().then_some(now);
        let found = Arc::new(read?);
        state.found = Some((found.clone(), now));
        Ok(found)
    }

    fn read_discovery(&self, value: &Value) -> Result<Discovered, IssuerFault> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if text("issuer") != Some(self.url.as_str()) {
            return Err(IssuerFault::Unfit("it names another issuer"));
        }
        let own = Url::parse(&self.url).map_err(|_| IssuerFault::Unfit("its address"))?;
        let address = |name: &'static str| {
            let url = text(name).and_then(|text| Url::parse(text).ok()).filter(|url| safe(url, &own));
            url.ok_or(IssuerFault::Unfit(name))
        };
        let uri = |name| address(name)?.as_str().parse::<Uri>().map_err(|_| IssuerFault::Unfit(name));
        let methods = value.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
        let takes = |word: &str| methods.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(word)));
        let named = value.get("authorization_response_iss_parameter_supported");
        Ok(Discovered {
            authorize: address("authorization_endpoint")?,
            token: uri("token_endpoint")?,
            keys: Some(uri("jwks_uri")?),
            userinfo: uri("userinfo_endpoint").ok(),
            names_itself: named.and_then(Value::as_bool).unwrap_or(false),
            by_form: takes("client_secret_post") && !takes("client_secret_basic"),
        })
    }

    async fn keys(
        &self,
        client: &Client,
        found: &Discovered,
        id: Option<&str>,
        now: i64,
    ) -> Result<Arc<IssuerKeys>, IssuerFault> {
        let mut state = self.state.lock().await;
        if let Some((keys, at)) = &state.keys {
            let known = keys.has(id) && recent(*at, HOUR_MS, now);
            // A name that nobody knows is no reason to ask again and again.
            if known || recent(*at, KEYS_AGAIN_MS, now) {
                return Ok(keys.clone());
            }
        }
        let place = found.keys.as_ref().ok_or(IssuerFault::Unfit("jwks_uri"))?;
        let read = get(client, &place.to_string()).await;
        match (read, &state.keys) {
            (Ok(set), _) => {
                let keys = Arc::new(IssuerKeys::read(&set));
                state.keys = Some((keys.clone(), now));
                Ok(keys)
            }
            (Err(_), Some((keys, _))) if keys.has(id) => Ok(keys.clone()),
            (Err(fault), _) => Err(fault),
        }
    }
}

fn recent(at: i64, within: i64, now: i64) -> bool {
    (0..within).contains(&now.saturating_sub(at))
}

/// By https, or without where the issuer itself is one of this machine.
fn safe(url: &Url, issuer: &Url) -> bool {
    let here = |url: &Url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(four)) => four.is_loopback(),
        Some(url::Host::Ipv6(six)) => six.is_loopback(),
        None => false,
    };
    let plain = url.scheme() == "http" && here(url) && issuer.scheme() == "http" && here(issuer);
    let bare = url.username().is_empty() && url.password().is_none() && url.host().is_some();
    bare && (url.scheme() == "https" || plain)
}

async fn answered(client: &Client, request: crate::Outgoing) -> Result<(u16, Option<Value>), IssuerFault> {
    let work = async {
        let reply = client.ask(request, PATIENCE).await.map_err(|_| IssuerFault::Away)?;
        let status = reply.status().as_u16();
        let body = read_whole(reply.into_body(), MOST_REPLY, PATIENCE).await.map_err(|_| IssuerFault::Away)?;
        Ok((status, serde_json::from_slice(&body).ok()))
    };
    tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(IssuerFault::Away))
}

async fn get(client: &Client, url: &str) -> Result<Value, IssuerFault> {
    let uri = url.parse().map_err(|_| IssuerFault::Unfit("an address"))?;
    match answered(client, outgoing(Method::GET, uri, "application/json", Bytes::new())).await? {
        (200, Some(value)) => Ok(value),
        (200, None) => Err(IssuerFault::Unfit("no JSON")),
        _ => Err(IssuerFault::Away),
    }
}

/// What the issuer says beside the token, of the same person: where the token does not say it.
async fn asked_for(
    client: &Client,
    userinfo: &Uri,
    access: &str,
    (claims, groups): (IssuerClaims, Option<&str>),
) -> Result<IssuerClaims, IssuerFault> {
    let mut request = outgoing(Method::GET, userinfo.clone(), "application/json", Bytes::new());
    let mut value = HeaderValue::try_from(format!("Bearer {access}")).map_err(|_| IssuerFault::Away)?;
    value.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, value);
    let (200, Some(said)) = answered(client, request).await? else { return Err(IssuerFault::Away) };
    let said = claims_of(&said, groups).filter(|said| said.subject == claims.subject);
    let said = said.ok_or(IssuerFault::Token("userinfo speaks of somebody else"))?;
    let (email, email_verified) = match claims.email {
        Some(email) => (Some(email), claims.email_verified),
        None => (said.email, said.email_verified),
    };
    let (name, groups) =
        (claims.name.or(said.name), if claims.groups.is_empty() { said.groups } else { claims.groups });
    Ok(IssuerClaims { email, email_verified, name, groups, ..claims })
}
