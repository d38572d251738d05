//! Fetches a picture, a document or another file from an address that a caller wrote down.
//!
//! Nothing about it is believed. The client connects only where it may (`reach.rs`), to the very
//! address that was looked up, and each redirect is judged like the first address. Size and time
//! are bounded while the bytes come, and what the file is, its first bytes say (`sniff.rs`). What
//! went wrong is reported without names, addresses or words of the server: a caller must not learn
//! from it what there is inside.

use crate::outgoing::outgoing;
use crate::reach::is_inside_name;
use crate::sniff::media_type;
use crate::{Client, Fault, Outgoing, ReplyBody, is_encoded};
use bytes::{Bytes, BytesMut};
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tollgate_wire::error::Code;
use url::{Host, Url};

const MOST_REDIRECTS: usize = 3;
const LONGEST_URL: usize = 8 << 10;

/// An address that may be asked for.
#[derive(Clone, Debug)]
pub struct Address(Url);

/// A file, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedFile {
    pub mime: &'static str,
    pub bytes: Bytes,
}

/// Why there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfetched {
    NotAnAddress,
    /// It carries a user or a password.
    Personal,
    /// It is written out, and leads inside.
    Inside,
    Unreachable,
    TooManyRedirects,
    Status(u16),
    /// It came compressed, which nobody had asked for.
    Encoded,
    /// It alone is larger than a file may be.
    TooLarge,
    /// With what was fetched before it is too much.
    TooMuch,
    /// Neither a picture nor a document.
    NotMedia,
    Late,
}

/// How many bytes may still come, over several files that are fetched at once.
#[derive(Debug)]
pub struct ByteBudget(AtomicUsize);

impl ByteBudget {
    pub fn new(bytes: usize) -> ByteBudget {
        ByteBudget(AtomicUsize::new(bytes))
    }

    fn take(&self, bytes: usize) -> Result<(), Unfetched> {
        let took = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        took.map(|_| ()).map_err(|_| Unfetched::TooMuch)
    }
}

impl Client {
    /// Reads an address. Where its name leads is seen when it is looked up.
    pub fn address(&self, text: &str) -> Result<Address, Unfetched> {
        if text.len() > LONGEST_URL {
            return Err(Unfetched::NotAnAddress);
        }
        self.judged(Url::parse(text).map_err(|_| Unfetched::NotAnAddress)?)
    }

    /// Whether an address that somebody else will open leads to a place on the web outside: what
    /// this client would not reach by itself is not for others to reach either. Names are not
    /// looked up.
    pub fn leads_outside(&self, text: &str) -> Result<(), Unfetched> {
        let url = Url::parse(text).map_err(|_| Unfetched::NotAnAddress)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Unfetched::NotAnAddress);
        }
        let inside = match url.host().ok_or(Unfetched::NotAnAddress)? {
            Host::Domain(name) => is_inside_name(name) && !self.lets_inside_names(),
            Host::Ipv4(_) | Host::Ipv6(_) => !self.may_go_to(url.host_str().unwrap_or_default()),
        };
        if inside { Err(Unfetched::Inside) } else { Ok(()) }
    }

    fn judged(&self, mut url: Url) -> Result<Address, Unfetched> {
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Unfetched::NotAnAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Unfetched::Personal);
        }
        let host = url.host_str().ok_or(Unfetched::NotAnAddress)?;
        if !self.may_go_to(host) {
            return Err(Unfetched::Inside);
        }
        Ok(Address(url))
    }

    /// Fetches a picture or document of at most `limit` bytes within this time, redirects included.
    pub async fn fetch(
        &self,
        address: &Address,
        limit: usize,
        room: &ByteBudget,
        patience: Duration,
    ) -> Result<FetchedFile, Unfetched> {
        let bytes = self.fetch_kind(address, limit, room, patience, &PICTURES).await?;
        let mime = media_type(&bytes).ok_or(Unfetched::NotMedia)?;
        Ok(FetchedFile { mime, bytes })
    }

    /// Fetches a file of any kind: what it is, whoever asked for it finds out.
    pub async fn fetch_any(
        &self,
        address: &Address,
        limit: usize,
        room: &ByteBudget,
        patience: Duration,
    ) -> Result<Bytes, Unfetched> {
        self.fetch_kind(address, limit, room, patience, &ANY).await
    }

    async fn fetch_kind(
        &self,
        address: &Address,
        limit: usize,
        room: &ByteBudget,
        patience: Duration,
        kind: &FileKind,
    ) -> Result<Bytes, Unfetched> {
        let fetching = self.follow(address, limit, room, patience, kind);
        tokio::time::timeout(patience, fetching).await.unwrap_or(Err(Unfetched::Late))
    }

    async fn follow(
        &self,
        address: &Address,
        limit: usize,
        room: &ByteBudget,
        patience: Duration,
        kind: &FileKind,
    ) -> Result<Bytes, Unfetched> {
        let mut address = address.clone();
        for _ in 0..=MOST_REDIRECTS {
            let reply = self.ask(request(&address, kind)?, patience).await.map_err(|fault| cause(&fault))?;
            let (head, body) = reply.into_parts();
            if let Some(next) = elsewhere(head.status, &head.headers) {
                let next = address.0.join(next).map_err(|_| Unfetched::NotAnAddress)?;
                // That a redirect leads inside is not the caller's to know.
                address = self.judged(next).map_err(|_| Unfetched::Unreachable)?;
                continue;
            }
            if head.status != StatusCode::OK {
                return Err(Unfetched::Status(head.status.as_u16()));
            }
            if is_encoded(&head.headers) {
                return Err(Unfetched::Encoded);
            }
            return read(ReplyBody::new(body, patience), limit, room, kind).await;
        }
        Err(Unfetched::TooManyRedirects)
    }
}

/// What is fetched: as it is asked for, and whether these may be its first bytes.
struct FileKind {
    accept: &'static str,
    begins: fn(&[u8]) -> bool,
}

const PICTURES: FileKind = FileKind { accept: "image/*, application/pdf", begins: |bytes| media_type(bytes).is_some() };
const ANY: FileKind = FileKind { accept: "*/*", begins: |_| true };

fn request(address: &Address, kind: &FileKind) -> Result<Outgoing, Unfetched> {
    let uri = address.0.as_str().parse().map_err(|_| Unfetched::NotAnAddress)?;
    Ok(outgoing(Method::GET, uri, kind.accept, Bytes::new()))
}

fn elsewhere(status: StatusCode, headers: &HeaderMap) -> Option<&str> {
    let moved = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    headers.get(LOCATION).filter(|_| moved).and_then(|value| value.to_str().ok())
}

async fn read(mut body: ReplyBody, limit: usize, room: &ByteBudget, kind: &FileKind) -> Result<Bytes, Unfetched> {
    let mut all = BytesMut::new();
    while let Some(chunk) = body.chunk().await.map_err(|fault| cause(&fault))? {
        let expected = usize::try_from(body.expected()).unwrap_or(usize::MAX);
        if all.len().saturating_add(chunk.len()).saturating_add(expected) > limit {
            return Err(Unfetched::TooLarge);
        }
        room.take(chunk.len())?;
        // What is not a picture from its first bytes on is not read to its end.
        if all.is_empty() && chunk.len() >= 16 && !(kind.begins)(&chunk) {
            return Err(Unfetched::NotMedia);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all.freeze())
}

fn cause(fault: &Fault) -> Unfetched {
    if fault.code == Code::UpstreamTimeout { Unfetched::Late } else { Unfetched::Unreachable }
}
