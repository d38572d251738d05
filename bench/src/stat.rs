//! CPU time and memory of a process, read from /proc.

use anyhow::Context;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// User and system time of all threads, those that ended included.
    pub cpu_seconds: f64,
    pub rss_kib: u64,
}

/// Ticks of /proc/PID/stat; 100 on every Linux this runs on.
const TICKS: f64 = 100.0;

impl Sample {
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the process is gone")?;
        // The name in parentheses may contain anything; fields are counted after it.
        let (_, fields) = stat.rsplit_once(") ").context("an odd stat line")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
        let cpu = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let rss = rss.and_then(|text| text.split_whitespace().next());
        Ok(Self {
            cpu_seconds: cpu.context("an odd stat line")? / TICKS,
            rss_kib: rss.and_then(|text| text.parse().ok()).context("no VmRSS")?,
        })
    }

    pub fn json(&self) -> Value {
        json!({"cpu_seconds": self.cpu_seconds, "rss_kib": self.rss_kib})
    }
}

/// CPU time of a process and of all its children, those that ended included.
pub fn family_cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let mut ticks = 0.0;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(one) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that is gone meanwhile is counted by its parent.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{one}/stat")) else { continue };
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<f64> = fields.split(' ').map(|text| text.parse().unwrap_or(0.0)).collect();
        let sum = |places: &[usize]| places.iter().filter_map(|place| fields.get(*place)).sum::<f64>();
        if one == pid {
            ticks += sum(&[11, 12, 13, 14]);
        } else if fields.get(1) == Some(&f64::from(pid)) {
            ticks += sum(&[11, 12]);
        }
    }
    Ok(ticks / TICKS)
}

/// Processes that wanted to run during the last minute.
pub fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
