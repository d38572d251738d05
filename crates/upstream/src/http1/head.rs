//! The head of a reply: its status and headers, and where its body ends. What could be read in two
//! ways is refused.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use tollgate_wire::http1::{Chunks, content_length, lists_word};

/// Most headers of a reply.
const MOST_HEADERS: usize = 100;
/// Longest head.
pub(crate) const LONGEST: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub framing: Framing,
    /// The connection can carry another request after this reply.
    pub stays: bool,
}

/// What of a request decides how its reply is read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub method: Method,
    /// The protocol that the connection was asked to change to. Nobody else may be answered with
    /// status 101.
    pub protocol: Option<HeaderValue>,
}

/// Where a body ends.
#[derive(Debug)]
pub(crate) enum Framing {
    /// So many bytes from here.
    Length(u64),
    Chunked(Chunks),
    /// With the connection.
    UntilClosed,
}

/// Not the head of an HTTP/1 reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadHead;

/// Reads the head at the start of `bytes` and says how long it is; `None` when there is more to
/// come. A head of 1xx says only that the reply will follow; its `ResponseHead` is `None`. Only 101
/// is a reply itself, where it was asked for.
pub(crate) fn read(bytes: &Bytes, asked: &Asked) -> Result<Option<(usize, Option<ResponseHead>)>, BadHead> {
    let mut space = [const { std::mem::MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut space) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return Ok(None),
        _ => return Err(BadHead),
    };
    let status = StatusCode::from_u16(parsed.code.unwrap_or(0)).map_err(|_| BadHead)?;
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    if status.is_informational() && !switches {
        return Ok(Some((length, None)));
    }
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| BadHead)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).map_err(|_| BadHead)?;
        headers.append(name, value);
    }
    if switches {
        return match is_switch(&headers, version, asked) {
            true => {
                Ok(Some((length, Some(ResponseHead { status, headers, framing: Framing::UntilClosed, stays: false }))))
            }
            false => Err(BadHead),
        };
    }
    let without_body = asked.method == Method::HEAD || matches!(status.as_u16(), 204 | 304);
    let (framing, certain) = if without_body { (Framing::Length(0), true) } else { framing(&headers, version)? };
    let stays = certain && version == Version::HTTP_11 && !says(&headers, &CONNECTION, "close");
    Ok(Some((length, Some(ResponseHead { status, headers, framing, stays }))))
}

/// Whether a reply changes to the protocol that was asked for, and says so as it must (RFC 9110,
/// 7.8).
fn is_switch(headers: &HeaderMap, version: Version, asked: &Asked) -> bool {
    let Some(protocol) = asked.protocol.as_ref().and_then(|protocol| protocol.to_str().ok()) else { return false };
    version == Version::HTTP_11 && says(headers, &CONNECTION, "upgrade") && says(headers, &UPGRADE, protocol.trim())
}

/// Where the body ends, and whether everybody would agree.
fn framing(headers: &HeaderMap, version: Version) -> Result<(Framing, bool), BadHead> {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let length = content_length(lengths).map_err(|_| BadHead)?;
    if headers.contains_key(TRANSFER_ENCODING) {
        let last = headers.get_all(TRANSFER_ENCODING).iter().next_back().and_then(|value| value.to_str().ok());
        let coding = last.and_then(|list| list.rsplit(',').next()).map_or("", str::trim);
        // Of a length beside it nothing is believed, least of all where the next reply begins.
        return match coding.eq_ignore_ascii_case("chunked") && version == Version::HTTP_11 {
            true => Ok((Framing::Chunked(Chunks::new()), length.is_none())),
            false => Ok((Framing::UntilClosed, false)),
        };
    }
    Ok(match length {
        Some(length) => (Framing::Length(length), true),
        None => (Framing::UntilClosed, false),
    })
}

fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    lists_word(headers.get_all(name).iter().map(HeaderValue::as_bytes), word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(head: &str) -> String {
        outcome_to(head, &Method::POST)
    }

    fn outcome_to(head: &str, asked: &Method) -> String {
        outcome_of(head, &Asked { method: asked.clone(), protocol: None })
    }

    fn outcome_of(head: &str, asked: &Asked) -> String {
        match read(&Bytes::from(head.to_owned()), asked) {
            Err(BadHead) => "bad".into(),
            Ok(None) => "more".into(),
            Ok(Some((length, None))) => format!("wait, {length}"),
            Ok(Some((length, Some(head)))) => {
                assert!(length > 0);
                let framing = match head.framing {
                    Framing::Length(length) => length.to_string(),
                    Framing::Chunked(_) => "chunked".into(),
                    Framing::UntilClosed => "until closed".into(),
                };
                format!("{} {framing}{}", head.status.as_u16(), if head.stays { ", stays" } else { "" })
            }
        }
    }

    #[test]
    fn where_a_body_ends() {
        let table = [
            ("200 OK\r\nContent-Length: 5", "200 5, stays"),
            ("200 OK\r\ncontent-length: 5\r\nContent-Length: 5", "200 5, stays"),
            ("200 OK\r\nContent-Length: 5, 5", "200 5, stays"),
            ("200 OK\r\nContent-Length: 5\r\nContent-Length: 6", "bad"),
            ("200 OK\r\nContent-Length: +5", "bad"),
            ("200 OK\r\nContent-Length: ", "bad"),
            ("200 OK\r\nContent-Length: 99999999999999999999", "bad"),
            ("200 OK\r\nTransfer-Encoding: chunked", "200 chunked, stays"),
            ("200 OK\r\nTransfer-Encoding: gzip, Chunked", "200 chunked, stays"),
            ("200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", "200 chunked"),
            ("200 OK\r\nTransfer-Encoding: chunked, gzip", "200 until closed"),
            ("200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5", "200 until closed"),
            ("200 OK", "200 until closed"),
            ("204 No Content", "204 0, stays"),
            ("304 Not Modified\r\nContent-Length: 9", "304 0, stays"),
            ("200 OK\r\nContent-Length: 5\r\nConnection: Close", "200 5"),
            ("200 OK\r\nContent-Length: 5\r\nConnection: a, close", "200 5"),
            ("101 Switching Protocols", "bad"),
            ("200 OK\r\nBad Header: x", "bad"),
            ("200 OK\r\nA: b\r\n c", "bad"),
            ("099 Odd", "bad"),
        ];
        for (head, expected) in table {
            assert_eq!(outcome(&format!("HTTP/1.1 {head}\r\n\r\n")), expected, "{head:?}");
        }
        assert_eq!(outcome("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"), "200 5");
        assert_eq!(outcome("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), "200 until closed");
        assert_eq!(outcome("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "wait, 25");
        assert_eq!(outcome("HTTP/1.1 200 OK\r\nContent-Le"), "more");
        assert_eq!(outcome("garbage\r\n\r\n"), "bad");
        assert_eq!(outcome_to("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &Method::HEAD), "200 0, stays");
    }

    #[test]
    fn a_protocol_is_changed_to_where_it_was_asked_for() {
        let asked = Asked { method: Method::GET, protocol: Some(HeaderValue::from_static("websocket")) };
        let table = [
            ("101 S\r\nConnection: Upgrade\r\nUpgrade: websocket", "101 until closed"),
            ("101 S\r\nconnection: keep-alive, upgrade\r\nupgrade: WebSocket", "101 until closed"),
            ("101 S\r\nConnection: Upgrade\r\nUpgrade: h2c", "bad"),
            ("101 S\r\nConnection: Upgrade", "bad"),
            ("101 S\r\nUpgrade: websocket", "bad"),
            ("401 No\r\nContent-Length: 5", "401 5, stays"),
            ("100 Continue", "wait, 25"),
        ];
        for (head, expected) in table {
            assert_eq!(outcome_of(&format!("HTTP/1.1 {head}\r\n\r\n"), &asked), expected, "{head:?}");
        }
        let right = "101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(outcome_of(&format!("HTTP/1.0 {right}"), &asked), "bad");
        assert_eq!(outcome(&format!("HTTP/1.1 {right}")), "bad", "nobody asked");
    }

    #[test]
    fn a_head_has_an_end() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(LONGEST));
        assert_eq!(outcome(&long), "bad");
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(outcome(&many), "bad");
    }
}
