//! Where the tests find PostgreSQL: the server named by `TOLLGATE_TEST_PG`, or one of their own.

use crate::process::{children, signal};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tollgate_store::testing::{PostgresServer, make_database};

pub enum Server {
    Given(String),
    Own(Own),
}

/// A server that belongs to one test, which may kill it.
pub struct Own {
    server: PostgresServer,
    data: PathBuf,
    _dir: TempDir,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the test run says where its server is")]
    pub fn find() -> Server {
        match std::env::var("TOLLGATE_TEST_PG") {
            Ok(url) => Server::Given(url),
            Err(_) => Server::Own(Own::start()),
        }
    }

    /// The address of a new, empty database.
    pub async fn database(&self, name: &str) -> String {
        let name = format!("{name}_{}", std::process::id());
        match self {
            Server::Own(own) => own.database(&name).await,
            Server::Given(url) => {
                make_database(url, &name).await.expect("a database");
                let (server, _) = url.rsplit_once('/').expect("the address names a database");
                format!("{server}/{name}")
            }
        }
    }
}

impl Own {
    pub fn start() -> Own {
        let dir = tempfile::tempdir().expect("a folder");
        let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
        Own { server, data: dir.path().join("data"), _dir: dir }
    }

    pub async fn database(&self, name: &str) -> String {
        self.server.database(name).await.expect("a database")
    }

    /// `kill -9` for the server and every process that serves a connection.
    pub fn kill(&self) {
        signal("KILL", &self.processes());
    }

    /// It stands still: connections stay open and nobody answers.
    pub fn pause(&self) {
        signal("STOP", &self.processes());
    }

    pub fn go_on(&self) {
        signal("CONT", &self.processes());
    }

    fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.data.join("postmaster.pid")).expect("a running server");
        let main: u32 = text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process id");
        let mut all = vec![main];
        all.extend(children(main));
        all
    }

    /// Starts it again on what the dead one left, at the same address.
    pub async fn restart(&self) {
        for _ in 0..480 {
            if self.server.restart().is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("the server does not start again");
    }
}
