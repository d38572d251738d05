//! The address of the database: `postgres://…`, with libpq's `sslmode` and `sslrootcert` read by us
//! and the rest by the driver. Messages never repeat it: it may carry a password.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Proof, Tls};
use crate::error::StoreError;

pub(super) struct ServerAddress {
    pub config: Config,
    /// Host, port and database, for messages.
    pub name: String,
    pub tls: Tls,
}

impl FromStr for ServerAddress {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        let (rest, asked) = split(url)?;
        let mut config =
            Config::from_str(&rest).map_err(|_| StoreError::broken("the database address is not valid"))?;
        config.application_name("tollgate").connect_timeout(Duration::from_secs(2));
        config.tcp_user_timeout(Duration::from_secs(5)).keepalives_idle(Duration::from_secs(10));
        let (mode, proof) = asked.meaning()?;
        config.ssl_mode(mode);
        let tls = match proof {
            Some(proof) => Tls::new(proof, asked.roots.as_deref())?,
            None => Tls::OFF,
        };
        let name = name(&config);
        Ok(Self { config, name, tls })
    }
}

/// `127.0.0.1:5432/tollgate`: what an operator needs to find the server, and nothing of the
/// password.
fn name(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        }
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    format!("{hosts}/{}", config.get_dbname().or(config.get_user()).unwrap_or_default())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    mode: Option<String>,
    roots: Option<String>,
}

impl Asked {
    fn meaning(&self) -> Result<(SslMode, Option<Proof>), StoreError> {
        // As libpq does: with a file of authorities at hand, what would be believed is checked
        // against it.
        let unnamed = if self.roots.is_some() { Proof::Authority } else { Proof::None };
        Ok(match self.mode.as_deref() {
            Some("disable") => (SslMode::Disable, None),
            None | Some("prefer") => (SslMode::Prefer, Some(unnamed)),
            Some("require") => (SslMode::Require, Some(unnamed)),
            Some("verify-ca") => (SslMode::Require, Some(Proof::Authority)),
            Some("verify-full") => (SslMode::Require, Some(Proof::Name)),
            Some(_) => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                return Err(StoreError::broken(format!("sslmode in the database address must be {known}")));
            }
        })
    }
}

/// Takes our parameters out of the address.
fn split(url: &str) -> Result<(String, Asked), StoreError> {
    let mut asked = Asked::default();
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), asked)) };
    let mut others = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => asked.mode = Some(mode.to_owned()),
            Some(("sslrootcert", file)) => asked.roots = Some(decoded(file)?),
            Some((name @ ("sslcert" | "sslkey" | "sslcrl"), _)) => {
                return Err(StoreError::broken(format!("{name} in the database address is not supported")));
            }
            _ => others.push(pair),
        }
    }
    let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    Ok((rest, asked))
}

/// `%2F` and its like, in a path.
fn decoded(text: &str) -> Result<String, StoreError> {
    let bad = || StoreError::broken("sslrootcert in the database address is not a path");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|d| char::from(d).to_digit(16)).ok_or_else(bad);
        let code = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(code).map_err(|_| bad())?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_server_and_no_password() {
        let named = |url: &str| url.parse::<ServerAddress>().expect("an address").name;
        assert_eq!(named("postgres://ada:secret@db.example:6432/books?sslmode=disable"), "db.example:6432/books");
        assert_eq!(named("postgres://ada:secret@db.example?sslmode=disable"), "db.example:5432/ada");
        assert_eq!(named("postgres://ada:secret@%2Frun%2Fpg/books?sslmode=disable"), "/run/pg/books");
    }

    #[test]
    fn our_parameters_are_taken_out() {
        let (rest, asked) =
            split("postgres://u:p@h/d?sslmode=verify-full&options=-c%20x&sslrootcert=%2Fa b").expect("read");
        assert_eq!(rest, "postgres://u:p@h/d?options=-c%20x");
        assert_eq!((asked.mode.as_deref(), asked.roots.as_deref()), (Some("verify-full"), Some("/a b")));
        assert_eq!(split("postgres://h/d").expect("read"), ("postgres://h/d".to_owned(), Asked::default()));
        assert_eq!(split("postgres://h/d?sslmode=disable").expect("read").0, "postgres://h/d");
        assert!(split("postgres://h/d?sslkey=k").is_err());
        assert!(split("postgres://h/d?sslrootcert=%2").is_err());
    }

    #[test]
    fn what_each_mode_asks_for() {
        let table = [
            (None, None, SslMode::Prefer, Some(Proof::None)),
            (Some("disable"), None, SslMode::Disable, None),
            (Some("prefer"), None, SslMode::Prefer, Some(Proof::None)),
            (Some("require"), None, SslMode::Require, Some(Proof::None)),
            (Some("require"), Some("file"), SslMode::Require, Some(Proof::Authority)),
            (Some("verify-ca"), None, SslMode::Require, Some(Proof::Authority)),
            (Some("verify-full"), Some("file"), SslMode::Require, Some(Proof::Name)),
        ];
        for (mode, roots, wanted, proof) in table {
            let asked = Asked { mode: mode.map(str::to_owned), roots: roots.map(str::to_owned) };
            assert_eq!(asked.meaning().expect("known"), (wanted, proof), "{asked:?}");
        }
        assert!(
            "postgres://u:secret@h/d?sslmode=allow"
                .parse::<ServerAddress>()
                .is_err_and(|e| !e.to_string().contains("secret"))
        );
    }
}
