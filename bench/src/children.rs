//! Processes of the experiment: pinned to a core, ended when dropped.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// How long a part may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running part of the experiment.
pub struct Part {
    child: Child,
}

impl Part {
    /// Starts a server and waits until it accepts connections.
    pub fn server(
        executable: &Path,
        arguments: &[&str],
        core: Option<usize>,
        addr: SocketAddr,
    ) -> anyhow::Result<Self> {
        let child = pinned(executable, core).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut part = Self { child: child.with_context(|| format!("starting {}", executable.display()))? };
        let start = Instant::now();
        while TcpStream::connect(addr).is_err() {
            if let Some(status) = part.child.try_wait()? {
                bail!("{} {} ended with {status}", executable.display(), arguments.join(" "));
            }
            ensure!(start.elapsed() < Duration::from_secs(20), "{} does not listen", executable.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(part)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Part {
    /// Asked first: one that counts which way it goes (`scripts/dist`) writes that at its end.
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = Command::new("sh").args(["-c", "kill -TERM $0", &self.pid().to_string()]).status();
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs to its end and reads the one line of JSON it prints.
pub fn ask(executable: &Path, arguments: &[&str], core: Option<usize>) -> anyhow::Result<Value> {
    let output = pinned(executable, core).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{} {} failed", executable.display(), arguments.join(" "));
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {} prints", arguments.join(" ")))
}

/// A load that holds streams open until it is dropped.
pub struct Held {
    part: Part,
    // Closing its input tells it to end.
    _input: Option<ChildStdin>,
    _output: BufReader<ChildStdout>,
}

impl Held {
    pub fn start(executable: &Path, arguments: &[&str], core: Option<usize>) -> anyhow::Result<Self> {
        let mut command = pinned(executable, core);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let part = Part { child };
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(line.contains("open"), "the streams could not be opened");
        Ok(Self { part, _input: input, _output: output })
    }

    pub fn pid(&self) -> u32 {
        self.part.pid()
    }
}

fn pinned(executable: &Path, core: Option<usize>) -> Command {
    match core {
        None => Command::new(executable),
        Some(core) => {
            let mut command = Command::new("taskset");
            command.arg("-c").arg(core.to_string()).arg(executable);
            command
        }
    }
}

pub fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?)
}
