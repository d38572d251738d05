//! A reply that is too long for the database: it lies where its work put it, and what is stored
//! under its Idempotency-Key is its name.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_store::StoredReply;

/// What a name of a reply is stored as. No answer of ours has this type.
const KIND: &str = "application/vnd.tollgate.elsewhere";

/// The name of a reply, as it is stored.
pub fn write(name: &str, content_type: &str) -> StoredReply {
    let body = json!({ "name": name, "content_type": content_type });
    StoredReply { status: 200, content_type: KIND.to_owned(), body: Bytes::from(body.to_string()) }
}

/// Name and type of a reply that lies elsewhere; `None` where it is all here.
pub fn read(stored: &StoredReply) -> Option<(String, String)> {
    if stored.content_type != KIND {
        return None;
    }
    let body: Value = serde_json::from_slice(&stored.body).ok()?;
    Some((body["name"].as_str()?.to_owned(), body["content_type"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written_and_an_answer_is_none() {
        let stored = write("a-b.reply", "application/json");
        assert_eq!(read(&stored), Some(("a-b.reply".to_owned(), "application/json".to_owned())));
        assert_eq!(read(&StoredReply { content_type: "application/json".to_owned(), ..stored }), None);
    }
}
