//! What a question about an open video task costs: tasks are created that never end, and are asked
//! about once a second. How many questions there were is read from the gateway's own counters.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::experiment::measure;
use crate::media::Media;
use crate::subject::{Kind, Place, Subject};

/// For so many seconds at a time tasks are created, until there are enough.
const CREATING: f64 = 0.5;
const TASKS: f64 = 200.0;
/// Until each has been asked about once, and what the creations left to do is done.
const SETTLING: Duration = Duration::from_secs(3);
/// Fewer questions say nothing.
const LEAST: f64 = 100.0;
/// A machine that has not asked them by then asks none.
const PATIENCE: Duration = Duration::from_secs(60);
const COUNTED: &str = "tollgate_task_polls_total{";

/// Microseconds of the gateway's CPU.
pub fn measured(place: &Place, seconds: f64) -> anyhow::Result<f64> {
    let subject = Subject::start(Kind::Tollgate, place, "polls")?;
    eprintln!("questions about video tasks");
    let load = ["--media", Media::Video.name(), "--connections", "16"];
    let begun = Instant::now();
    let mut tasks = 0.0;
    while tasks < TASKS {
        tasks += measure(&subject, &load, CREATING, place)?.requests;
        ensure!(begun.elapsed() < PATIENCE, "there were {tasks} tasks only");
    }
    std::thread::sleep(SETTLING);
    let seen = || anyhow::Ok((cpu(&subject)?, polls(subject.addr)?));
    let (before, begun) = (seen()?, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs_f64(seconds.max(1.0) * 2.0));
        let after = seen()?;
        let (cpu, polls) = (after.0 - before.0, after.1 - before.1);
        if polls >= LEAST {
            return Ok(cpu / polls * 1e6);
        }
        ensure!(begun.elapsed() < PATIENCE, "there were {polls} questions only");
    }
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
    asked(&page)
}

/// The questions to all providers, by what a page of metrics says.
fn asked(page: &str) -> anyhow::Result<f64> {
    let counts = page.lines().filter(|line| line.starts_with(COUNTED)).map(|line| line.rsplit(' ').next());
    counts.map(|count| Ok(count.context("a count")?.parse::<f64>()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_to_all_providers_count() {
        let page = "HTTP/1.1 200 OK\r\n\r\n# HELP tollgate_task_polls_total Questions.\n\
            # TYPE tollgate_task_polls_total counter\n\
            tollgate_task_polls_total{provider=\"a b\",outcome=\"running\"} 120\n\
            tollgate_task_polls_total{provider=\"c\",outcome=\"failed\"} 3\n\
            tollgate_task_polls_late_total 7\n";
        let is = |page: &str, questions: f64| (asked(page).expect("numbers") - questions).abs() < 0.5;
        assert!(is(page, 123.0) && is("# EOF", 0.0));
        assert!(asked("tollgate_task_polls_total{provider=\"a\"} many").is_err());
    }
}
