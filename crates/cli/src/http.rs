//! A small HTTP client for the commands that talk to a gateway as its customers do: with a key,
//! over the network.

use crate::args::GatewayArgs;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Money;

/// Larger than the largest answer a gateway passes on.
const MOST: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    key: String,
}

/// The certificates of a file. A bundle of a system may have some that rustls does not take.
fn trusted(file: &Path) -> anyhow::Result<RootCertStore> {
    let read = CertificateDer::pem_file_iter(file).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let certificates = read.map_err(|error| anyhow::anyhow!("--ca: {} cannot be read: {error}", file.display()))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        bail!("--ca: {} has no certificate in it (PEM is expected)", file.display());
    }
    Ok(roots)
}

pub struct HttpReply {
    pub status: StatusCode,
    /// What the gateway says that the call cost.
    pub charge: Money,
    pub body: Bytes,
}

impl Http {
    pub fn new(gateway: &GatewayArgs, key: &str) -> anyhow::Result<Http> {
        if key.is_empty() {
            bail!("set TOLLGATE_API_KEY to a key of the gateway");
        }
        let ring = rustls::crypto::ring::default_provider();
        let tls = match &gateway.ca {
            Some(file) => {
                let config = ClientConfig::builder_with_provider(Arc::new(ring))
                    .with_safe_default_protocol_versions()
                    .context("TLS")?
                    .with_root_certificates(trusted(file)?)
                    .with_no_client_auth();
                HttpsConnectorBuilder::new().with_tls_config(config)
            }
            None => HttpsConnectorBuilder::new().with_provider_and_webpki_roots(ring).context("TLS")?,
        };
        let client = Client::builder(TokioExecutor::new()).build(tls.https_or_http().enable_http1().build());
        Ok(Http { client, base: gateway.url.trim_end_matches('/').to_owned(), key: key.to_owned() })
    }

    /// Writes what a path answers into a file, piece by piece; says how many bytes. One that broke
    /// off has the ending `.part`.
    pub async fn save(&self, path: &str, file: &Path) -> anyhow::Result<u64> {
        let request = Request::builder()
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.key))
            .body(Full::default())
            .context("the address")?;
        let reply = self.client.request(request).await.context("the gateway cannot be reached")?;
        if !reply.status().is_success() {
            bail!("the file cannot be fetched (HTTP {})", reply.status().as_u16());
        }
        let part = file.with_extension("part");
        let mut written = 0;
        let mut out = std::fs::File::create(&part).with_context(|| part.display().to_string())?;
        let mut body = reply.into_body();
        while let Some(frame) = tokio::time::timeout(PATIENCE, body.frame()).await.context("the file stopped coming")? {
            let frame = frame.context("the file broke off")?;
            if let Some(piece) = frame.data_ref() {
                out.write_all(piece).with_context(|| part.display().to_string())?;
                written += piece.len() as u64;
            }
        }
        out.sync_all().with_context(|| part.display().to_string())?;
        std::fs::rename(&part, file).with_context(|| file.display().to_string())?;
        Ok(written)
    }

    /// A body makes it a POST.
    pub async fn send(&self, path: &str, body: Option<Bytes>) -> anyhow::Result<HttpReply> {
        self.send_as(path, body.map(|body| ("application/json", body)), None).await
    }

    /// A body of some type makes it a POST, which may be sent again under its Idempotency-Key.
    pub async fn send_as(
        &self,
        path: &str,
        body: Option<(&str, Bytes)>,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<HttpReply> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let (content_type, body) = body.unwrap_or(("application/json", Bytes::new()));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", content_type)
            .header("accept", "application/json, text/event-stream");
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::new(body)).context("the address")?;
        let work = async {
            let reply = self.client.request(request).await.context("the gateway cannot be reached")?;
            let status = reply.status();
            let charge =
                reply.headers().get("x-tollgate-charge-usd").and_then(|value| value.to_str().ok()?.parse().ok());
            let body = Limited::new(reply.into_body(), MOST).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the reply broke off: {error}"))?;
            Ok(HttpReply { status, charge: charge.unwrap_or(Money::ZERO), body: body.to_bytes() })
        };
        tokio::time::timeout(PATIENCE, work).await.context("the gateway did not answer in time")?
    }
}

impl HttpReply {
    /// What was answered; a refusal with its words and its code.
    pub fn json(&self) -> anyhow::Result<Value> {
        let value: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        if self.status.is_success() {
            return Ok(value);
        }
        let text = |name: &str| value["error"][name].as_str().unwrap_or("?").to_owned();
        bail!("{} ({})", text("message"), text("code"))
    }
}
