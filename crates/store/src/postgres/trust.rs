//! Whom to believe when the name in a certificate does not count: `sslmode=require` (anybody) and
//! `verify-ca` (whoever has a certificate of a trusted authority). The handshake itself is always
//! checked.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

#[derive(Debug)]
pub(super) enum Unnamed {
    Chain(Arc<WebPkiServerVerifier>),
    Anybody(WebPkiSupportedAlgorithms),
}

impl Unnamed {
    pub fn chain(verifier: Arc<WebPkiServerVerifier>) -> Self {
        Self::Chain(verifier)
    }

    pub fn anybody(provider: &CryptoProvider) -> Self {
        Self::Anybody(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Unnamed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Self::Chain(chain) = self else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last, after the chain and the dates.
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Chain(chain) => chain.verify_tls12_signature(message, cert, dss),
            Self::Anybody(algorithms) => verify_tls12_signature(message, cert, dss, algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Chain(chain) => chain.verify_tls13_signature(message, cert, dss),
            Self::Anybody(algorithms) => verify_tls13_signature(message, cert, dss, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::Chain(chain) => chain.supported_verify_schemes(),
            Self::Anybody(algorithms) => algorithms.supported_schemes(),
        }
    }
}
