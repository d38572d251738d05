//! TLS to the database, as `sslmode` and `sslrootcert` in its address ask for it, in the words of
//! libpq. The driver knows how to ask for TLS but not how to speak it: that is rustls, with the one
//! crypto provider of the house.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, client};

use super::trust::Unnamed;
use crate::error::StoreError;

/// How much of the other side must be proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Nothing: who listens in cannot read, but anybody can answer.
    None,
    /// A certificate of an authority we trust.
    Authority,
    /// And it must be for the name in the address.
    Name,
}

/// Makes TLS connections; `None` = never.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    pub const OFF: Self = Self(None);

    /// `roots`: a file of certificates; the authorities of the public web when there is none.
    pub fn new(proof: Proof, roots: Option<&str>) -> Result<Self, StoreError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(StoreError::broken)?;
        let config = match proof {
            Proof::Name => builder.with_root_certificates(trusted(roots)?).with_no_client_auth(),
            Proof::Authority => {
                let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted(roots)?), provider);
                let chain = chain.build().map_err(StoreError::broken)?;
                let verifier = Arc::new(Unnamed::chain(chain));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            Proof::None => {
                let verifier = Arc::new(Unnamed::anybody(&provider));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
        };
        Ok(Self(Some(Arc::new(config))))
    }
}

fn trusted(file: Option<&str>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file.filter(|file| *file != "system") else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let bad = |why: &dyn std::fmt::Display| StoreError::broken(format!("sslrootcert {file}: {why}"));
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| bad(&e))? {
        roots.add(certificate.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
    }
    if roots.is_empty() { Err(bad(&"no certificate in it")) } else { Ok(roots) }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, io::Error> {
        let name = ServerName::try_from(domain).map_err(io::Error::other)?.to_owned();
        Ok(Connect(self.0.clone().map(|config| (TlsConnector::from(config), name))))
    }
}

pub(super) struct Connect(Option<(TlsConnector, ServerName<'static>)>);

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<EncryptedStream<S>, io::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let Some((connector, name)) = self.0 else { return Err(io::Error::other("TLS is switched off")) };
            connector.connect(name, stream).await.map(EncryptedStream)
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
