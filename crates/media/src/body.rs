//! A JSON body read in one pass over its bytes. A member that stands twice is refused, because two
//! readers could understand it differently; what is not asked for is passed over.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::json::{Scan, whole_number};

/// Longest name of a model.
const MOST_NAME: usize = 256;

/// Shows each member of a body; `member` must read its value.
pub(crate) fn each_member<'a>(
    body: &'a [u8],
    mut member: impl FnMut(&[u8], &mut Scan<'a>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if std::str::from_utf8(body).is_err() {
        return Err(Problem::not_json("The body is not valid UTF-8."));
    }
    let mut scan = Scan::new(body);
    if scan.peek() != Some(b'{') {
        // What is not JSON at all is refused as that.
        scan.skip().and_then(|()| scan.end())?;
        return Err(Problem::not_json("The body must be a JSON object."));
    }
    let mut keys: Vec<Cow<'a, [u8]>> = Vec::with_capacity(8);
    let read = scan.object(|key, scan| {
        let key = key.bytes();
        member(&key, scan)?;
        keys.push(key);
        Ok::<(), Problem>(())
    });
    read.and_then(|()| Ok(scan.end()?)).map_err(|problem| first_mistake(body, problem))?;
    keys.sort_unstable();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        let name = String::from_utf8_lossy(&pair[0]);
        let name = &name[..name.floor_char_boundary(64)];
        return Err(Problem::new(Code::InvalidRequest, name, format!("`{name}` is given more than once.")));
    }
    Ok(())
}

/// Members by which servers of common formats read something else than is counted here, or ask
/// other models.
const UNCOUNTED: &[&str] = &[
    "messages",
    "texts",
    "inputs",
    "documents",
    "image",
    "images",
    "video",
    "videos",
    "audio",
    "files",
    "file_ids",
    "models",
    "plugins",
    "extra_body",
];

/// A member that is passed on as it is, unless it could cost what nobody has priced. `place`: where
/// all that is read stands.
pub(crate) fn passed_on(key: &[u8], scan: &mut Scan<'_>, place: &str) -> Result<(), Problem> {
    match UNCOUNTED.iter().find(|name| name.as_bytes() == key) {
        Some(name) if scan.peek() != Some(b'n') => {
            let text = format!("`{name}` has no price here: all that is read stands in `{place}`.");
            Err(Problem::unsupported(name, text))
        }
        _ => Ok(scan.skip()?),
    }
}

/// A wrong member may only be the place where the text breaks off: then the text is the mistake.
fn first_mistake(body: &[u8], problem: Problem) -> Problem {
    let mut scan = Scan::new(body);
    match scan.skip().and_then(|()| scan.end()) {
        Ok(()) => problem,
        Err(broken) => broken.into(),
    }
}

/// The name of a model, and where it stands.
pub(crate) fn model(scan: &mut Scan<'_>) -> Result<(String, Range<usize>), Problem> {
    let wrong = || Problem::wrong("model", "a string of 1 to 256 bytes");
    if scan.peek() != Some(b'"') {
        return Err(wrong());
    }
    let start = scan.at();
    let name = scan.string()?.text().into_owned();
    if name.is_empty() || name.len() > MOST_NAME {
        return Err(wrong());
    }
    Ok((name, start..scan.at()))
}

/// A whole number within bounds; null counts as absent.
pub(crate) fn whole(scan: &mut Scan<'_>, param: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
    match scan.value()? {
        b"null" => Ok(None),
        text => match whole_number(text).filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let wanted = format!("a whole number from {} to {}", bounds.start(), bounds.end());
                Err(Problem::wrong(param, &wanted))
            }
        },
    }
}
