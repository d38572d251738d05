//! Why a provider did not answer, in plain words: by status and by what it says. Its own words are
//! not repeated, since some repeat the key.

use tollgate_upstream::{Fault, WholeReply};

pub const NO_PATH: &str = "wrong address:";

/// Why no answer came.
pub fn unsent(fault: &Fault) -> String {
    match fault.sent {
        false => format!("{NO_PATH} nobody answers there, or the network is down"),
        true => fault.message.clone(),
    }
}

const NO_CREDIT: &[&str] =
    &["insufficient_quota", "insufficient balance", "insufficient_balance", "arrearage", "credit balance", "no credit"];
const NO_MODEL: &[&str] =
    &["model_not_found", "not found", "does not exist", "not exist", "unknown model", "not supported", "invalid model"];

/// By status and by what the provider says.
pub fn why(reply: &WholeReply, fault: &Fault) -> String {
    let text = String::from_utf8_lossy(&reply.body).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let status = reply.status;
    let reason = match status {
        402 => "no credit: the account at the provider has no money",
        400 | 403 | 429 if says(NO_CREDIT) => "no credit: the account at the provider has no money",
        401 => "wrong key: the provider does not know it",
        403 => "wrong key: it may not do this",
        400 if text.contains("api key") || text.contains("api_key") => "wrong key: the provider does not know it",
        400 | 404 | 422 if text.contains("model") && says(NO_MODEL) => {
            "unknown model: the provider has none of this name"
        }
        404 | 405 | 300..=399 => "wrong address: there is nothing at this path",
        429 => "asked too often: the key works, try again later",
        500..=599 => "the provider failed",
        _ => return format!("HTTP {status}: {}", fault.message),
    };
    format!("{reason} (HTTP {status})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn reasons_are_in_plain_words_and_repeat_no_key() {
        let fault = Fault::garbage();
        let rows = [
            (401, r#"{"error":{"message":"Incorrect API key provided: sk-12345"}}"#, "wrong key"),
            (402, "{}", "no credit"),
            (429, r#"{"error":{"code":"insufficient_quota","message":"You exceeded"}}"#, "no credit"),
            (429, r#"{"error":{"message":"slow down"}}"#, "asked too often"),
            (404, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, "unknown model"),
            (404, "<html>404 page</html>", "wrong address"),
            (400, r#"{"error":{"message":"API key not valid. sk-12345"}}"#, "wrong key"),
            (400, r#"{"code":"Arrearage","message":"overdue"}"#, "no credit"),
            (503, "", "the provider failed"),
        ];
        for (status, body, begins) in rows {
            let reply = WholeReply { status, headers: http::HeaderMap::new(), body: Bytes::from(body) };
            let said = why(&reply, &fault);
            assert!(said.starts_with(begins), "{status} {body}: {said}");
            assert!(!said.contains("12345"), "{said}");
        }
    }
}
