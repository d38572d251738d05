//! A scalar of a body by dotted path (`service_tier`, `reasoning.effort`).

use super::{BrokenJson, Scan};
use std::borrow::Cow;

/// Text without quotes, numbers and booleans as written. Scans the body: not free.
pub fn attr<'b>(body: &'b [u8], path: &str) -> Option<Cow<'b, str>> {
    let mut found = None;
    look_up(&mut Scan::new(body), path, &mut found).ok()?;
    found
}

fn look_up<'a>(scan: &mut Scan<'a>, path: &str, found: &mut Option<Cow<'a, str>>) -> Result<(), BrokenJson> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    scan.object(|key, scan| {
        if !key.is(name) {
            return scan.skip();
        }
        match (rest, scan.peek()) {
            (Some(rest), Some(b'{')) => look_up(scan, rest, found),
            (None, Some(b'"')) => {
                *found = Some(scan.string()?.text());
                Ok(())
            }
            (None, Some(b'-' | b'0'..=b'9' | b't' | b'f')) => {
                *found = Some(String::from_utf8_lossy(scan.value()?));
                Ok(())
            }
            _ => scan.skip(),
        }
    })
}
