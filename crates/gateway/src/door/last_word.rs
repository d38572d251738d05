//! What the door itself says to a client, after which it closes the connection.

use http::StatusCode;
use tollgate_wire::error::{self, Code, ErrorFormat};

/// A whole reply of HTTP/1.1 with an error; `headers` are further lines of its head.
pub fn last_word(status: StatusCode, headers: &[&str], code: Code, text: &str) -> Vec<u8> {
    let body = error::body(ErrorFormat::OpenAi, code, text, None, "");
    let mut reply = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
    for header in headers {
        reply.push_str(header);
        reply.push_str("\r\n");
    }
    reply.push_str(&format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()));
    let mut reply = reply.into_bytes();
    reply.extend_from_slice(&body);
    reply
}
