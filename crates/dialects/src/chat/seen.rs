//! One pass over the JSON of a streamed chunk: what it says and where.

use super::part::{OutputTally, UsageSeen};
use std::ops::Range;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::{BrokenJson, Scan};

/// What one chunk says.
#[derive(Default)]
pub(crate) struct SeenInChunk {
    pub id: Option<Range<usize>>,
    pub created: Option<Range<usize>>,
    pub model: Option<Range<usize>>,
    /// How many choices; `None` when the member is missing.
    pub choices: Option<usize>,
    pub usage: UsageSeen,
    /// A string of noise that hides how long the text is.
    pub padding: Option<Range<usize>>,
    error: Option<UpstreamError>,
    /// `"type":"error"` or `"object":"error"`: the whole object is an error.
    flat_error: bool,
}

impl SeenInChunk {
    pub fn scan(&mut self, data: &[u8], tally: &mut OutputTally) -> Result<(), BrokenJson> {
        let mut scan = Scan::new(data);
        scan.object(|key, scan| {
            match key.raw() {
                b"choices" if scan.peek() == Some(b'[') => {
                    let mut count = 0;
                    scan.array(|scan| {
                        count += 1;
                        tally.choice(scan, &mut self.usage)
                    })?;
                    self.choices = Some(count);
                }
                b"usage" => self.usage.scan(scan)?,
                b"id" => self.id = Some(scan.span()?),
                b"created" => self.created = Some(scan.span()?),
                b"model" => self.model = Some(scan.span()?),
                b"error" if matches!(scan.peek(), Some(b'{' | b'"')) => self.error = Some(UpstreamError::scan(scan)?),
                b"base_resp" => self.error = UpstreamError::base_resp(scan)?.or(self.error.take()),
                b"obfuscation" if scan.peek() == Some(b'"') => self.padding = Some(scan.span()?),
                b"type" | b"object" => self.flat_error |= scan.value()? == b"\"error\"",
                _ => scan.skip()?,
            }
            Ok::<(), BrokenJson>(())
        })?;
        scan.end()
    }

    /// The error it is or carries.
    pub fn error(&mut self, data: &[u8]) -> Option<UpstreamError> {
        if self.flat_error && self.error.is_none() && self.choices.is_none() {
            return Some(UpstreamError::read(data).unwrap_or_default());
        }
        self.error.take()
    }
}
