//! TLS on the listening port: the files of its certificate and its key.

use super::ConfigSource;
use std::path::PathBuf;
use tollgate_catalog::form::Form;

/// Two PEM files. Their contents are read at a start and whenever they change.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, and those between it and an authority that clients trust.
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl TlsFiles {
    /// Both or none.
    pub(super) fn read(form: &mut Form<'_>, source: &ConfigSource) -> Option<TlsFiles> {
        match (form.opt_text("tls_cert"), form.opt_text("tls_key")) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert: source.beside(&cert), key: source.beside(&key) }),
            (Some(_), None) => {
                form.mistake("tls_cert", "needs the key beside it, in tls_key");
                None
            }
            (None, Some(_)) => {
                form.mistake("tls_key", "needs the certificate beside it, in tls_cert");
                None
            }
            (None, None) => None,
        }
    }
}
