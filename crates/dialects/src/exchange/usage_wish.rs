//! Whether a chat client asks for the usage of its stream, and how its request is made to ask for
//! it: every call must be metered.

use super::facts::flag;
use std::ops::Range;
use tollgate_wire::Problem;
use tollgate_wire::json::Scan;

/// What `stream_options` says about usage, and the place where it can be made to ask for it.
pub(super) enum Wish {
    Absent,
    Null(Range<usize>),
    /// An empty object: between its braces.
    Empty(Range<usize>),
    /// Members but not this one: after the opening brace.
    Without(Range<usize>),
    /// `false` or `null`: the value.
    Refuses(Range<usize>),
    Asks,
}

impl Wish {
    pub fn read(scan: &mut Scan<'_>) -> Result<Wish, Problem> {
        let first = scan.peek();
        let start = scan.at();
        if first != Some(b'{') {
            return match scan.value()? {
                b"null" => Ok(Wish::Null(start..scan.at())),
                _ => Err(Problem::wrong("stream_options", "an object")),
            };
        }
        let mut members = 0;
        let mut usage = None;
        scan.object(|key, scan| {
            members += 1;
            if !key.is("include_usage") {
                return Ok(scan.skip()?);
            }
            if usage.is_some() {
                return Err(Problem::wrong("stream_options.include_usage", "given once"));
            }
            scan.peek();
            let from = scan.at();
            let asks = flag(scan, "stream_options.include_usage")?;
            usage = Some(if asks { Wish::Asks } else { Wish::Refuses(from..scan.at()) });
            Ok(())
        })?;
        let inside = start + 1..start + 1;
        Ok(usage.unwrap_or(if members == 0 { Wish::Empty(inside) } else { Wish::Without(inside) }))
    }

    pub fn asks(&self) -> bool {
        matches!(self, Wish::Asks)
    }

    /// What must be written where so that the provider reports usage; `close` is the request's
    /// closing brace.
    pub fn edit(self, close: usize) -> Option<(Range<usize>, &'static str)> {
        match self {
            Wish::Absent => Some((close..close, r#","stream_options":{"include_usage":true}"#)),
            Wish::Null(place) => Some((place, r#"{"include_usage":true}"#)),
            Wish::Empty(place) => Some((place, r#""include_usage":true"#)),
            Wish::Without(place) => Some((place, r#""include_usage":true,"#)),
            Wish::Refuses(place) => Some((place, "true")),
            Wish::Asks => None,
        }
    }
}
