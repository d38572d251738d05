//! Durations and sizes as people write them: "30s", "1h30m", "250ms"; "1MiB", "64KB", "512".

use std::time::Duration;

/// Numbers with units, added up: `ms`, `s`, `m`, `h`, `d`. A bare `0` is no time at all.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration such as \"30s\", \"250ms\" or \"1h30m\"");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(bad)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let scale = match &after[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        total = number.checked_mul(scale).and_then(|ms| total.checked_add(ms)).ok_or_else(bad)?;
        rest = &after[end..];
    }
    if text.is_empty() {
        return Err(bad());
    }
    Ok(Duration::from_millis(total))
}

/// A whole number of bytes, with `B`, `KB`/`MB`/`GB` (thousands) or `KiB`/`MiB`/`GiB` (1024s).
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is not a size such as \"1MiB\", \"64KB\" or \"512\"");
    let (number, unit) = split_number(text).ok_or_else(bad)?;
    let scale = match unit.trim_start() {
        "" | "B" => 1,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(bad()),
    };
    number.checked_mul(scale).ok_or_else(bad)
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}
