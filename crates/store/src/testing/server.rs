//! A private PostgreSQL server in a temporary directory, for tests on machines that have the
//! programs installed.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs until it is dropped. Durability is off unless asked for: it lives for one test.
pub struct PostgresServer {
    programs: PathBuf,
    dir: PathBuf,
    user: Option<(u32, u32)>,
    url: String,
}

impl PostgresServer {
    /// `Err` says what is missing.
    pub fn start(dir: &Path) -> Result<Self, String> {
        Self::start_with(dir, None, false)
    }

    /// With real syncs, for measuring.
    pub fn start_durable(dir: &Path) -> Result<Self, String> {
        Self::start_with(dir, None, true)
    }

    /// A server that takes encrypted connections only, with this certificate and key (PEM).
    pub fn start_with_tls(dir: &Path, certificate: &str, key: &str) -> Result<Self, String> {
        Self::start_with(dir, Some((certificate, key)), false)
    }

    fn start_with(dir: &Path, tls: Option<(&str, &str)>, durable: bool) -> Result<Self, String> {
        let programs = find_programs().ok_or("no PostgreSQL programs on this machine")?;
        // The server refuses to run as root.
        let root = std::fs::metadata("/proc/self").map_err(|e| e.to_string())?.uid() == 0;
        let user = if root { Some(other_user().ok_or("no user to run the server as")?) } else { None };
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        if let Some((uid, gid)) = user {
            chown(dir, Some(uid), Some(gid)).map_err(|e| e.to_string())?;
        }
        let port = free_port().map_err(|e| e.to_string())?;
        let url = format!("postgres://tollgate@127.0.0.1:{port}");
        let server = Self { programs, dir: dir.join("data"), user, url };
        let data = server.dir.display().to_string();
        server.run("initdb", &["-D", &data, "-U", "tollgate", "--auth=trust", "-E", "UTF8", "--no-sync"])?;
        let mut settings = format!("-p {port} -k {} -c listen_addresses=127.0.0.1", dir.display());
        if !durable {
            settings.push_str(" -c fsync=off");
        }
        if let Some((certificate, key)) = tls {
            server.keep("server.crt", certificate)?;
            server.keep("server.key", key)?;
            server.keep("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n")?;
            settings.push_str(" -c ssl=on");
        }
        server.run("pg_ctl", &["-D", &data, "-w", "-o", &settings, "-l", &format!("{data}/log"), "start"])?;
        Ok(server)
    }

    /// Writes a file of the server, for its eyes only.
    fn keep(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.dir.join(name);
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(|e| e.to_string())?;
        match self.user {
            Some((uid, gid)) => chown(&path, Some(uid), Some(gid)).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }

    /// Address of a database of this server; `postgres` exists.
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.url)
    }

    /// Makes an empty database and returns its address.
    pub async fn database(&self, name: &str) -> Result<String, tokio_postgres::Error> {
        make_database(&self.url("postgres"), name).await?;
        Ok(self.url(name))
    }

    /// Stops the server at once, as a crash would.
    pub fn stop(&self) -> Result<(), String> {
        self.run("pg_ctl", &["-D", &self.dir.display().to_string(), "-m", "immediate", "-w", "stop"])
    }

    /// Starts a stopped server again, on the same port.
    pub fn restart(&self) -> Result<(), String> {
        let data = self.dir.display().to_string();
        self.run("pg_ctl", &["-D", &data, "-w", "-l", &format!("{data}/log"), "restart"])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        let status = command.status().map_err(|e| format!("{program}: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("{program} ended with {status}")) }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // It may have been stopped by the test already.
        let _ = self.stop();
    }
}

/// Makes an empty database on the server at `url` (which names an existing database).
pub async fn make_database(url: &str, name: &str) -> Result<(), tokio_postgres::Error> {
    run_sql(url, &format!("CREATE DATABASE {name}")).await
}

/// Changes a database past the store, to break it on purpose.
pub async fn run_sql(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let work = async move { client.batch_execute(sql).await };
    let (connection, work) = tokio::join!(connection, work);
    work.and(connection)
}

fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versions.map(|v| v.path().join("bin")).collect();
    places.sort();
    places.extend(["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"].map(PathBuf::from));
    places.into_iter().find(|p| p.join("initdb").exists() && p.join("pg_ctl").exists())
}

fn other_user() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    ["postgres", "nobody"].iter().find_map(|wanted| {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(wanted)).then_some(())?;
            Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
        })
    })
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
