//! The head of a request: what is asked, and where its body ends. What two readers could read in
//! two ways is refused, because one of them may be a proxy in front of us: a request must not hide
//! inside another.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use std::mem::MaybeUninit;
use tollgate_wire::http1::{Chunks, content_length, lists_word};

/// Most headers of a request, and its longest head.
const MOST_HEADERS: usize = 100;
pub(super) const LONGEST: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct RequestHead {
    pub request: Request<()>,
    pub body: BodyLeft,
    /// The connection can be used again afterwards.
    pub stays: bool,
    /// The client waits for a word before it sends the body.
    pub expects: bool,
    /// It asks for another protocol on this connection.
    pub upgrades: bool,
}

/// What of a body is still to come.
#[derive(Debug)]
pub(super) enum BodyLeft {
    Length(u64),
    Chunked(Chunks),
    /// Nobody can say: it broke off, or was not what it said.
    Unknown,
}

impl BodyLeft {
    pub const NONE: BodyLeft = BodyLeft::Length(0);

    pub fn is_over(&self) -> bool {
        match self {
            BodyLeft::Length(left) => *left == 0,
            BodyLeft::Chunked(chunks) => chunks.is_done(),
            BodyLeft::Unknown => false,
        }
    }
}

/// A request that is answered by the door itself, after which the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadRequest {
    pub status: StatusCode,
    pub text: &'static str,
}

const fn bad(text: &'static str) -> BadRequest {
    BadRequest { status: StatusCode::BAD_REQUEST, text }
}

const TOO_LONG: BadRequest = BadRequest {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    text: "The head of the request is too long: at most 64 KiB and 100 headers are taken.",
};

/// Reads the head at the start of `bytes`, and says how long it is. `None`: more of it has to come.
pub(super) fn read(bytes: &Bytes) -> Result<Option<(usize, RequestHead)>, BadRequest> {
    let mut space = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(bytes, &mut space) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST => length,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Err(_) => return Err(bad("This is not a request of HTTP/1.1.")),
    };
    let method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes())
        .map_err(|_| bad("The method of the request is not valid."))?;
    let target = bytes.slice_ref(parsed.path.unwrap_or_default().as_bytes());
    let uri = Uri::from_maybe_shared(target).map_err(|_| bad("The path of the request is not valid."))?;
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut headers = HeaderMap::with_capacity(parsed.headers.len() + 1);
    let mut named = Named::default();
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value));
        let (Ok(name), Ok(value)) = (name, value) else { return Err(bad("A header of the request is not valid.")) };
        named.note(&name);
        headers.append(name, value);
    }
    let head = RequestHead::new(method, uri, version, headers, named)?;
    Ok(Some((length, head)))
}

/// Which headers there are of those that say how a request goes on: most have few of them, and
/// what is not there is not looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    hosts: u8,
    body: bool,
    connection: bool,
    expects: bool,
}

impl Named {
    fn note(&mut self, name: &HeaderName) {
        match *name {
            HOST => self.hosts = self.hosts.saturating_add(1),
            CONTENT_LENGTH | TRANSFER_ENCODING => self.body = true,
            CONNECTION => self.connection = true,
            EXPECT => self.expects = true,
            _ => {}
        }
    }
}

impl RequestHead {
    fn new(
        method: Method,
        uri: Uri,
        version: Version,
        headers: HeaderMap,
        named: Named,
    ) -> Result<RequestHead, BadRequest> {
        if named.hosts > 1 {
            return Err(bad("The request has more than one `Host` header."));
        }
        let body = if named.body { body(&headers, version)? } else { BodyLeft::NONE };
        let modern = version == Version::HTTP_11;
        let connection = |word| named.connection && says(&headers, &CONNECTION, word);
        let stays = if modern { !connection("close") } else { connection("keep-alive") };
        let upgrades = modern && connection("upgrade") && headers.contains_key(UPGRADE);
        let expects = modern && named.expects && !body.is_over() && says(&headers, &EXPECT, "100-continue");
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut(), *request.version_mut()) = (method, uri, version);
        *request.headers_mut() = headers;
        Ok(RequestHead { request, body, stays, expects, upgrades })
    }
}

/// Where the body ends. A length beside chunks is how requests are smuggled.
fn body(headers: &HeaderMap, version: Version) -> Result<BodyLeft, BadRequest> {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let length = content_length(lengths).map_err(|_| bad("`Content-Length` must be one number."))?;
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(BodyLeft::Length(length.unwrap_or(0))) };
    if length.is_some() {
        return Err(bad("The request has a `Content-Length` and a `Transfer-Encoding`; send one of them."));
    }
    if version != Version::HTTP_11 {
        return Err(bad("`Transfer-Encoding` needs HTTP/1.1."));
    }
    if codings.next().is_some() || !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") {
        let text = "The only `Transfer-Encoding` that is taken is `chunked`.";
        return Err(BadRequest { status: StatusCode::NOT_IMPLEMENTED, text });
    }
    Ok(BodyLeft::Chunked(Chunks::new()))
}

pub(super) fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    lists_word(headers.get_all(name).iter().map(HeaderValue::as_bytes), word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(head: &str) -> String {
        match read(&Bytes::from(head.to_owned())) {
            Err(bad) => bad.status.as_u16().to_string(),
            Ok(None) => "more".into(),
            Ok(Some((_, head))) => {
                let body = match head.body {
                    BodyLeft::Length(length) => length.to_string(),
                    BodyLeft::Chunked(_) => "chunked".into(),
                    BodyLeft::Unknown => "unknown".into(),
                };
                let marks = [(head.stays, ", stays"), (head.expects, ", expects"), (head.upgrades, ", upgrades")];
                body + &marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect::<String>()
            }
        }
    }

    #[test]
    fn where_a_request_ends_and_whether_its_connection_stays() {
        for (head, expected) in [
            ("1.1\r\nHost: a", "0, stays"),
            ("1.1", "0, stays"),
            ("1.1\r\nConnection: Close", "0"),
            ("1.1\r\nConnection: te, close", "0"),
            ("1.0", "0"),
            ("1.0\r\nConnection: Keep-Alive", "0, stays"),
            ("1.1\r\nContent-Length: 5", "5, stays"),
            ("1.1\r\nContent-Length: 5\r\nContent-Length: 5", "5, stays"),
            ("1.1\r\nContent-Length: 5\r\nContent-Length: 6", "400"),
            ("1.1\r\nContent-Length: 5, 6", "400"),
            ("1.1\r\nContent-Length: -5", "400"),
            ("1.1\r\nContent-Length: +5", "400"),
            ("1.1\r\nContent-Length:", "400"),
            ("1.1\r\nContent-Length: 99999999999999999999", "400"),
            ("1.1\r\nContent-Length : 5", "400"),
            ("1.1\r\nTransfer-Encoding: chunked", "chunked, stays"),
            ("1.1\r\nTransfer-Encoding: CHUNKED", "chunked, stays"),
            ("1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", "400"),
            ("1.1\r\nContent-Length: 5\r\nTransfer-Encoding: identity", "400"),
            ("1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "501"),
            ("1.1\r\nTransfer-Encoding: gzip, chunked", "501"),
            ("1.1\r\nTransfer-Encoding: chunked, identity", "501"),
            ("1.1\r\nTransfer-Encoding: \u{b}chunked", "400"),
            ("1.1\r\nTransfer-Encoding: xchunked", "501"),
            ("1.0\r\nTransfer-Encoding: chunked", "400"),
            ("1.1\r\nHost: a\r\nHost: b", "400"),
            ("1.1\r\nA: b\r\n c", "400"),
            ("1.1\r\nA b: c", "400"),
            ("1.1\r\nA: b\0c", "400"),
            ("1.1\r\nExpect: 100-continue\r\nContent-Length: 5", "5, stays, expects"),
            ("1.1\r\nExpect: 100-continue", "0, stays"),
            ("1.0\r\nExpect: 100-continue\r\nContent-Length: 5", "5"),
            ("1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket", "0, stays, upgrades"),
            ("1.1\r\nUpgrade: websocket", "0, stays"),
            ("1.0\r\nConnection: upgrade\r\nUpgrade: websocket", "0"),
            ("2.0", "400"),
            ("1.2", "400"),
        ] {
            assert_eq!(outcome(&format!("POST /v1 HTTP/{head}\r\n\r\n")), expected, "{head:?}");
        }
        for (head, expected) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n", "more"),
            ("GET", "more"),
            ("GET /a b HTTP/1.1\r\n\r\n", "400"),
            ("GET  HTTP/1.1\r\n\r\n", "400"),
            ("G\u{e9}T / HTTP/1.1\r\n\r\n", "400"),
            ("GET http://a/b HTTP/1.1\r\n\r\n", "0, stays"),
            ("OPTIONS * HTTP/1.1\r\n\r\n", "0, stays"),
            ("\u{16}\u{3}\u{1}", "400"),
            ("garbage\r\n\r\n", "400"),
        ] {
            assert_eq!(outcome(head), expected, "{head:?}");
        }
    }

    proptest::proptest! {
        /// Whatever comes, it is a request, a refusal, or not all of it yet; and a head that is
        /// whole is read alike however much follows it.
        #[test]
        fn anything_may_come(start in "(GET|POST|X) /[a-z?]{0,9} HTTP/1\\.[01]\r\n", lines in "([A-Za-z-]{1,9}: ?[ -~]{0,9}\r?\n){0,5}", rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            let head = Bytes::from([start.as_bytes(), lines.as_bytes(), b"\r\n"].concat());
            let more = Bytes::from([&head[..], &rest].concat());
            let length = |bytes: &Bytes| read(bytes).map(|read| read.map(|(length, _)| length));
            proptest::prop_assert_eq!(length(&head), length(&more));
            if let Ok(Some(length)) = length(&head) {
                proptest::prop_assert_eq!(length, head.len());
                for cut in 0..head.len() {
                    proptest::prop_assert!(!matches!(read(&head.slice(..cut)), Ok(Some(_))));
                }
            }
            let _ = read(&Bytes::from(rest));
        }
    }

    #[test]
    fn a_head_has_an_end() {
        let long = |bytes: usize| format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(bytes));
        assert_eq!(outcome(&long(LONGEST - 100)), "more");
        assert_eq!(outcome(&long(LONGEST)), "431");
        assert_eq!(outcome(&(long(LONGEST) + "\r\n\r\n")), "431");
        let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(outcome(&many(MOST_HEADERS)), "0, stays");
        assert_eq!(outcome(&many(MOST_HEADERS + 1)), "431");
    }
}
