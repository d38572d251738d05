//! Social data: query strings as clients send them, the supplier's envelope, and answers of
//! platforms, which are passed on as the text they came in. Ids above 2^53 are JSON numbers there,
//! so nothing is ever parsed into a double.

mod data;
mod envelope;
mod flow;
mod places;
mod query;

pub use data::{CheckedData, FoundValue, Outline};
pub use envelope::{Envelope, SupplierError, read_envelope, read_refused};
pub use flow::Flow;
pub use places::{Picked, PlaceLookup};
pub use query::{BadQuery, Pair, encode, pairs};

use bytes::Bytes;
use tollgate_wire::json::{BrokenJson, Object};

/// The envelope of an answer (specification 2.1) with `next`, the parameters of the next page,
/// where they are known. `data` is copied as text; an array becomes `{"items": […]}`; members of
/// `data` called like one of `drop` are left out.
pub fn write_result(
    platform: &str,
    capability: &str,
    data: &CheckedData,
    drop: &[String],
    next: &[(&str, String)],
) -> Bytes {
    let mut out = Vec::with_capacity(data.raw().len() + 256);
    let mut result = Object::begin(&mut out);
    result.text("object", "social.result");
    result.text("platform", platform);
    result.text("capability", capability);
    data.write_without(result.key("data"), drop);
    if !next.is_empty() {
        result.object("next", |object| next.iter().for_each(|(name, value)| object.text(name, value)));
    }
    result.end();
    Bytes::from(out)
}

/// The text is not JSON, or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson;

impl From<BrokenJson> for NotJson {
    fn from(_: BrokenJson) -> NotJson {
        NotJson
    }
}
