//! One child process: started, looked at, ended. It never outlives the value.

use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub const TOLLGATE: &str = env!("CARGO_BIN_EXE_tollgate");

/// Longer than anything takes, also on a machine that does a lot beside the tests: what takes
/// longer hangs.
pub const HANG: Duration = Duration::from_secs(120);

pub struct Process {
    child: Child,
    /// Everything it writes to standard error, of all its lives when a restart uses the same file.
    pub log: PathBuf,
}

/// `tollgate` with nothing of the environment of whoever runs the tests.
pub fn tollgate(arguments: &[&str]) -> Command {
    executable(Path::new(TOLLGATE), arguments)
}

/// The same for an executable of another version.
pub fn executable(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    // A demo begins as quickly as it can; what needs its workflows verified says so.
    command.args(arguments).env_clear().env("TOLLGATE_DEMO_DRAFTS", "true").stdin(Stdio::null());
    command
}

/// The same with so many file descriptors and no more.
pub fn limited(descriptors: u64, arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, TOLLGATE]).args(arguments).env_clear().stdin(Stdio::null());
    command
}

impl Process {
    pub fn start(mut command: Command, log: &Path) -> Process {
        let errors = OpenOptions::new().create(true).append(true).open(log).expect("a log file");
        let child = command.stdout(Stdio::piped()).stderr(errors).spawn().expect("the executable starts");
        Process { child, log: log.to_owned() }
    }

    /// The first line of standard output as JSON; the process goes on.
    pub fn first_line(&mut self) -> Value {
        let mut line = String::new();
        let out = self.child.stdout.as_mut().expect("standard output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}; log: {}", self.last_words()))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Time on processors so far. The system counts it in hundredths of a second.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        // The name may hold anything, so read behind its last bracket: there, time in user and
        // system mode are 12th and 13th.
        let behind = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let ticks: u64 = behind.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of ours")
    }

    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of its log, for the messages of failing tests.
    pub fn last_words(&self) -> String {
        let log = self.logged();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// `kill -9`: no warning, nothing is cleaned up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn terminate(&self) {
        signal("TERM", &[self.id()]);
    }

    pub async fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + HANG;
        while Instant::now() < until {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the process still runs; log: {}", self.last_words());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to processes; those already gone are none of our business.
pub fn signal(name: &str, processes: &[u32]) {
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let text = format!("kill -{name} {} 2>/dev/null", ids.join(" "));
    let _ = Command::new("sh").args(["-c", &text]).status().expect("a shell");
}

/// The children of a process, as the system sees them.
pub fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // pid (name) state parent …; the name may hold anything, so read behind its last
            // bracket.
            let (_, rest) = stat.rsplit_once(')')?;
            (rest.split_whitespace().nth(1)?.parse() == Ok(parent)).then_some(id)
        })
        .collect()
}

/// A port that is free now and that the system hands to nobody by itself: a process that is killed
/// finds it free again, and a client that knocks meanwhile cannot happen to be given it as its own.
pub fn free_port() -> u16 {
    // One of ours may be given out and not listened on yet.
    static GIVEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().expect("no test panics here");
    let start = 20_000 + u16::try_from(std::process::id() % 11_000).expect("small");
    let free = |port: &u16| !given.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (start..32_000).chain(20_000..start).find(free).expect("a free port");
    given.push(port);
    port
}
