//! Tells the provider how often its tools may be used, where the request does not: what is held for
//! is then what can happen.

use super::{Hosted, Reads, hosted};
use bytes::Bytes;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::json::{BrokenJson, Edit, Scan, splice};

/// Anthropic's tools that take a limit.
const LIMITED: [&str; 2] = ["web_search", "web_fetch"];

/// The body with a limit of uses for the tools that run at the provider and have none. Chat
/// completions and Gemini have no field for one.
pub fn limit_uses(dialect: Dialect, body: Bytes, uses: u64) -> Bytes {
    let Some((list, total)) = found(dialect, &body) else { return body };
    let edits: Vec<(Range<usize>, String)> = match dialect {
        Dialect::Anthropic => list.iter().filter_map(|tool| of_tool(tool, uses)).collect(),
        Dialect::Responses if !list.is_empty() => match total {
            Total::Absent(at) => vec![(at..at, format!("\"max_tool_calls\":{uses},"))],
            Total::Null(place) => vec![(place, uses.to_string())],
            Total::Given => Vec::new(),
        },
        _ => Vec::new(),
    };
    if edits.is_empty() {
        return body;
    }
    let edits: Vec<Edit<'_>> = edits.iter().map(|(place, text)| (place.clone(), text.as_bytes())).collect();
    Bytes::from(splice(&body, &edits))
}

fn of_tool(tool: &Hosted, uses: u64) -> Option<(Range<usize>, String)> {
    if tool.most.is_some() || !LIMITED.contains(&tool.name.as_ref()) {
        return None;
    }
    let inside = tool.at + 1;
    Some(match &tool.open {
        Some(place) => (place.clone(), uses.to_string()),
        None => (inside..inside, format!("\"max_uses\":{uses},")),
    })
}

/// The limit of all tools together, and the place for one.
enum Total {
    Absent(usize),
    Null(Range<usize>),
    Given,
}

fn found(dialect: Dialect, body: &[u8]) -> Option<(Vec<Hosted>, Total)> {
    let mut reads = Reads::default();
    let mut scan = Scan::new(body);
    scan.peek();
    let mut total = Total::Absent(scan.at() + 1);
    let read = scan.object(|key, scan| {
        scan.peek();
        let at = scan.at();
        let raw = scan.value()?;
        if key.is("tools") {
            hosted(dialect, raw, at, &mut reads)?;
        } else if key.is("max_tool_calls") {
            total = if raw == b"null" { Total::Null(at..at + raw.len()) } else { Total::Given };
        }
        Ok::<(), BrokenJson>(())
    });
    read.ok().map(|()| (reads.hosted, total))
}
