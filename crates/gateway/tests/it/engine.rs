//! The two databases, for tests whose point is the same on both.

use tempfile::TempDir;
use tollgate_store::testing::{PostgresServer, make_database};

/// A place for the ledger; a private server, if it took one, lives as long as this.
pub struct Engine {
    pub url: String,
    pub name: &'static str,
    _server: Option<(PostgresServer, TempDir)>,
}

impl Engine {
    /// SQLite, then PostgreSQL: the server named by `TOLLGATE_TEST_PG`, or one of our own.
    #[expect(clippy::disallowed_methods, reason = "the test run says where its server is")]
    pub async fn both() -> [Engine; 2] {
        let sqlite = Engine { url: "sqlite".to_owned(), name: "sqlite", _server: None };
        let mut bytes = [0u8; 8];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").expect("random"), &mut bytes)
            .expect("bytes");
        let name = format!("gateway_{:016x}", u64::from_le_bytes(bytes));
        let (url, server) = match std::env::var("TOLLGATE_TEST_PG") {
            Ok(url) => {
                make_database(&url, &name).await.expect("a database");
                let (server, _) = url.rsplit_once('/').expect("the address names a database");
                (format!("{server}/{name}"), None)
            }
            Err(_) => {
                let dir = tempfile::tempdir().expect("a folder");
                let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
                (server.database(&name).await.expect("a database"), Some((server, dir)))
            }
        };
        [sqlite, Engine { url, name: "postgres", _server: server }]
    }
}
