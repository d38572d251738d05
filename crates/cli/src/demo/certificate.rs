//! `demo --tls`: a certificate of an authority that exists for this certificate only. The key of
//! the authority is forgotten as soon as it has signed, so whoever trusts it trusts this demo and
//! nobody else.

use crate::real;
use anyhow::Context as _;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate_gateway::door::tls::TlsPair;
use tollgate_gateway::settings::{ConfigSource, TlsFiles};

const DAYS: i64 = 365;
/// One that ends sooner is made anew.
const SOON: i64 = 7 * 86_400;

/// Lays a certificate over the configuration, the one of an earlier start if it still holds. Says
/// which file clients have to trust.
pub fn lay(source: &mut ConfigSource, data_dir: &Path, listen: IpAddr) -> anyhow::Result<PathBuf> {
    let dir = data_dir.join("tls");
    let files = TlsFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
    let authority = dir.join("ca.pem");
    let names = names(listen);
    if !(authority.exists() && holds(&files, &names)) {
        std::fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let [ca, cert, key] = made(&names)?;
        for (path, text) in [(&authority, ca), (&files.cert, cert), (&files.key, key)] {
            std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
    }
    let environment = Arc::make_mut(&mut source.environment);
    environment.insert("TOLLGATE__TLS_CERT".to_owned(), "tls/cert.pem".to_owned());
    environment.insert("TOLLGATE__TLS_KEY".to_owned(), "tls/key.pem".to_owned());
    std::fs::canonicalize(&authority).with_context(|| authority.display().to_string())
}

pub fn how_to_trust(authority: &Path) -> String {
    let file = authority.display();
    format!(
        "Its certificate is its own. Clients trust it by this file:\n\n  \
         curl --cacert {file}\n  \
         export NODE_EXTRA_CA_CERTS={file}   # Node\n  \
         export SSL_CERT_FILE={file}         # Python, Go, OpenSSL, `tollgate video`, `tollgate mcp`\n\n"
    )
}

/// This machine, and where the demo listens.
fn names(listen: IpAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    let own = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    names.extend(own.map(|address| address.to_string()));
    if !listen.is_unspecified() && !own.contains(&listen) {
        names.push(listen.to_string());
    }
    names
}

/// The names stand above the certificate, where PEM allows for words.
fn heading(names: &[String]) -> String {
    format!("tollgate demo: {}\n", names.join(" "))
}

fn holds(files: &TlsFiles, names: &[String]) -> bool {
    let named = std::fs::read_to_string(&files.cert).is_ok_and(|text| text.starts_with(&heading(names)));
    named && TlsPair::read(files).is_ok_and(|pair| pair.ends > real::now_ms() / 1_000 + SOON)
}

/// The certificate of the authority, the demo's, and the demo's key.
fn made(names: &[String]) -> anyhow::Result<[String; 3]> {
    let key = KeyPair::generate().context("a key")?;
    let mut ca = dated(CertificateParams::new(Vec::new()).context("an authority")?)?;
    ca.distinguished_name.push(DnType::CommonName, "Tollgate demo authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = CertifiedIssuer::self_signed(ca, key).context("an authority")?;
    let key = KeyPair::generate().context("a key")?;
    let mut own = dated(CertificateParams::new(names.to_vec()).context("names")?)?;
    own.distinguished_name.push(DnType::CommonName, "Tollgate demo");
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    own.use_authority_key_identifier_extension = true;
    let own = own.signed_by(&key, &ca).context("a certificate")?;
    Ok([ca.pem(), heading(names) + &own.pem(), key.serialize_pem()])
}

/// From yesterday on, for clocks that are not quite right.
fn dated(mut params: CertificateParams) -> anyhow::Result<CertificateParams> {
    let now = Timestamp::from_millisecond(real::now_ms()).context("the time")?.to_zoned(TimeZone::UTC).date();
    let date = |date: jiff::civil::Date| -> anyhow::Result<_> {
        Ok(rcgen::date_time_ymd(date.year().into(), u8::try_from(date.month())?, u8::try_from(date.day())?))
    };
    params.not_before = date(now.checked_sub(1.day()).context("yesterday")?)?;
    params.not_after = date(now.checked_add(DAYS.days()).context("next year")?)?;
    Ok(params)
}
