//! Checks AWS Signature Version 4 as Amazon documents it.

use http::request::Parts;
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::bedrock::{AWS_ACCESS, AWS_SECRET};
use super::header;

/// Whether this request was signed with the simulator's pair, for Bedrock.
pub(super) fn is_good(parts: &Parts, path: &str, body: &[u8]) -> bool {
    check(parts, path, body).is_some()
}

fn check(parts: &Parts, path: &str, body: &[u8]) -> Option<()> {
    let value = header(parts, "authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field = |name: &str| value.split(", ").find_map(|part| part.strip_prefix(name));
    let (credential, names, signature) = (field("Credential=")?, field("SignedHeaders=")?, field("Signature=")?);
    let (access, scope) = credential.split_once('/')?;
    let moment = header(parts, "x-amz-date")?;
    let [day, region, "bedrock", "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else { return None };
    if access != AWS_ACCESS || !moment.starts_with(day) || moment.len() != 16 {
        return None;
    }
    for needed in ["host", "x-amz-date"] {
        names.split(';').find(|name| *name == needed)?;
    }
    let mut lines = String::new();
    for name in names.split(';') {
        lines.push_str(&format!("{name}:{}\n", header(parts, name)?));
    }
    // What is encoded in the path is encoded again.
    let path = path.replace('%', "%25").replace(':', "%3A");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sum = |text: &[u8]| hex(digest(&SHA256, text).as_ref());
    let request = format!("{}\n{path}\n\n{lines}\n{names}\n{}", parts.method, sum(body));
    let text = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{}", sum(request.as_bytes()));
    let sign =
        |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec();
    let day_key = sign(format!("AWS4{AWS_SECRET}").as_bytes(), day);
    let key = sign(&sign(&sign(&day_key, region), "bedrock"), "aws4_request");
    (hex(&sign(&key, &text)) == signature).then_some(())
}
