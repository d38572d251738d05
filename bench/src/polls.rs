//! What a question about an open video task costs: tasks are created that never end, and are asked
//! about once a second. How many questions there were is read from the gateway's own counters.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::experiment::measure;
use crate::media::Media;
use crate::subject::{Kind, Place, Subject};

/// For so long tasks are created.
const CREATING: f64 = 0.5;
/// Until each has been asked about once, and what the creations left to do is done.
const SETTLING: Duration = Duration::from_secs(3);
/// Fewer say nothing.
const LEAST: f64 = 100.0;
const COUNTED: &str = "tollgate_task_polls_total{";

/// Microseconds of the gateway's CPU.
pub fn measured(place: &Place, seconds: f64) -> anyhow::Result<f64> {
    let subject = Subject::start(Kind::Tollgate, place, "polls")?;
    eprintln!("questions about video tasks");
    let load = ["--media", Media::Video.name(), "--connections", "16"];
    measure(&subject, &load, CREATING, place)?;
    std::thread::sleep(SETTLING);
    let seen = || anyhow::Ok((cpu(&subject)?, polls(subject.addr)?));
    let before = seen()?;
    std::thread::sleep(Duration::from_secs_f64(seconds.max(1.0) * 2.0));
    let after = seen()?;
    let (cpu, polls) = (after.0 - before.0, after.1 - before.1);
    ensure!(polls >= LEAST, "there were {polls} questions only");
    Ok(cpu / polls * 1e6)
}

fn cpu(subject: &Subject) -> anyhow::Result<f64> {
    Ok(subject.sample()?.context("no process")?.cpu_seconds)
}

/// All questions so far.
fn polls(gateway: SocketAddr) -> anyhow::Result<f64> {
    let mut socket = TcpStream::connect(gateway)?;
    socket.write_all(format!("GET /metrics HTTP/1.1\r\nhost: {gateway}\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut page = String::new();
    socket.read_to_string(&mut page)?;
    let counts = page.lines().filter(|line| line.starts_with(COUNTED)).map(|line| line.rsplit(' ').next());
    counts.map(|count| Ok(count.context("a count")?.parse::<f64>()?)).sum()
}
