//! A certificate and its key, from two PEM files to what rustls serves. Of the key nothing is ever
//! said but what is wrong with it.

use super::certificate;
use crate::settings::TlsFiles;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, ServerConfig};

/// More than the longest chain; what is larger is another file.
const MOST: u64 = 1 << 20;
/// What is spoken inside, the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What was read, ready to be served.
#[derive(Clone)]
pub struct TlsPair {
    pub(super) config: Arc<ServerConfig>,
    /// The last second of the certificate, since 1970.
    pub ends: i64,
}

/// What is wrong with a pair, by the name of the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct BadPair {
    pub field: &'static str,
    pub reason: String,
}

fn bad(field: &'static str, reason: impl Into<String>) -> BadPair {
    BadPair { field, reason: reason.into() }
}

impl TlsPair {
    pub fn read(files: &TlsFiles) -> Result<TlsPair, BadPair> {
        let chain = chain(&contents("tls_cert", &files.cert)?)?;
        let key = key(&contents("tls_key", &files.key)?)?;
        let Some(ends) = chain.first().and_then(|own| certificate::ends(own)) else {
            return Err(bad("tls_cert", "its first certificate cannot be read"));
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| bad("tls_cert", error.to_string()))?
            .with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            Error::InconsistentKeys(_) => bad("tls_key", "is not the key of the first certificate in tls_cert"),
            Error::InvalidCertificate(_) => bad("tls_cert", "its first certificate cannot be read"),
            _ => bad("tls_key", "is of a kind that is not served: it takes RSA, ECDSA (P-256, P-384) and Ed25519"),
        })?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // A request that comes with the first packet can be sent again by whoever recorded it.
        config.max_early_data_size = 0;
        Ok(TlsPair { config: Arc::new(config), ends })
    }
}

fn contents(field: &'static str, path: &Path) -> Result<Vec<u8>, BadPair> {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut text));
    match read {
        Ok(length) if length as u64 > MOST => Err(bad(field, "is larger than 1 MiB")),
        Ok(_) => Ok(text),
        Err(error) => Err(bad(field, format!("{} cannot be read: {error}", path.display()))),
    }
}

fn chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadPair> {
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(bad("tls_cert", "has no certificate in it (PEM is expected)")),
        Ok(chain) => Ok(chain),
        Err(_) => Err(bad("tls_cert", "is not well-formed PEM")),
    }
}

fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, BadPair> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            let encrypted = text.windows(b"ENCRYPTED".len()).any(|window| window == b"ENCRYPTED");
            let locked = "is encrypted: it has to be stored without a passphrase";
            bad("tls_key", if encrypted { locked } else { "has no private key in it (PEM is expected)" })
        }
        // The words of the library may quote the file.
        _ => bad("tls_key", "is not well-formed PEM"),
    })
}
