//! Keys that are not sent as they are: requests signed for a moment, and tokens that a service
//! account is given for an hour. The client does it last, when the request is whole.

mod service_account;
mod sigv4;

pub(crate) use service_account::ServiceAccount;
pub(crate) use sigv4::AwsKey;

use crate::{BadProvider, BaseUrl, Client, Fault, Outgoing, Payload, Secret};
use http::header::AUTHORIZATION;
use std::sync::Arc;

/// What a kind of provider takes in the place of a plain key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// The key itself, in a header.
    #[default]
    Plain,
    /// A signature of each request by a pair of keys (AWS Signature Version 4); a single key is
    /// sent as it is.
    SigV4 { service: &'static str },
    /// A token for an hour, for which the JSON file of a service account is exchanged.
    ServiceAccount,
}

/// Whoever signs the requests of one provider.
#[derive(Clone, Debug)]
pub(crate) enum Signer {
    Aws(AwsKey),
    Google(Arc<ServiceAccount>),
}

impl Signer {
    /// `None` where the key is sent as it is.
    pub fn new(signing: Signing, secret: Option<&Secret>, base: &BaseUrl) -> Result<Option<Signer>, BadProvider> {
        match (signing, secret) {
            (Signing::Plain, _) | (_, None) => Ok(None),
            (Signing::SigV4 { service }, Some(secret)) => {
                Ok(secret.halves().map(|(access, secret)| Signer::Aws(AwsKey::new(access, secret, service, base))))
            }
            (Signing::ServiceAccount, Some(secret)) => {
                Ok(Some(Signer::Google(Arc::new(ServiceAccount::read(secret.expose())?))))
            }
        }
    }

    /// The request with its signature; `now` in milliseconds since 1970.
    pub async fn sign(&self, client: &Client, mut request: Outgoing, now: i64) -> Result<Outgoing, Fault> {
        match self {
            Signer::Aws(key) => {
                let Payload::Whole(body) = request.body() else { return Err(Fault::unreachable()) };
                let body = body.clone();
                key.sign(&mut request, &body, now).ok_or_else(Fault::unreachable)?;
            }
            Signer::Google(account) => {
                let token = account.token(client, now).await?;
                request.headers_mut().insert(AUTHORIZATION, token);
            }
        }
        Ok(request)
    }
}
