//! The price list as one kind of viewer sees it: every record written once per catalog, and route
//! health, which changes every minute, put into the finished text. Compressed forms are made when
//! somebody first wants them.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderValue;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tollgate_catalog::{Model, RouteHealth};

/// What a body of fewer bytes would save is not worth the headers.
const WORTH: usize = 1_024;
/// Three quarters of the best, at a fraction of its time.
const GZIP_LEVEL: u32 = 6;
const BROTLI_QUALITY: u32 = 5;
const BROTLI_WINDOW: u32 = 22;

/// A list without health.
pub struct PricePage {
    /// Up to `"data":[`, the records with commas between them, and `]}`.
    text: Bytes,
    /// By name.
    records: Vec<(Arc<Model>, Range<usize>)>,
    with_health: Mutex<Option<Arc<PriceBody>>>,
}

/// A list as it goes out.
pub struct PriceBody {
    generation: u64,
    pub body: Bytes,
    /// The same on every replica that shows the same.
    pub etag: String,
    gzip: OnceLock<Bytes>,
    brotli: OnceLock<Bytes>,
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Brotli,
}

impl Packing {
    /// The best that a client takes, by its `Accept-Encoding`.
    pub fn accepted(header: &str) -> Packing {
        let takes = |name: &str| {
            header.split(',').any(|part| {
                let mut words = part.split(';').map(str::trim);
                let named = words.next().is_some_and(|word| word.eq_ignore_ascii_case(name));
                named && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
            })
        };
        match () {
            () if takes("br") => Packing::Brotli,
            () if takes("gzip") => Packing::Gzip,
            () => Packing::Plain,
        }
    }

    /// Its name in headers; none for a body as it is.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Packing::Plain => None,
            Packing::Gzip => Some("gzip"),
            Packing::Brotli => Some("br"),
        }
    }
}

impl PricePage {
    /// `head` is a list whose last member is an empty `data`.
    pub fn new(head: &[u8], records: Vec<(Arc<Model>, Vec<u8>)>) -> PricePage {
        let head = head.strip_suffix(b"]}").unwrap_or(head);
        let size = records.iter().map(|(_, record)| record.len() + 1).sum::<usize>();
        let mut text = BytesMut::with_capacity(head.len() + size + 2);
        text.put_slice(head);
        let mut spans = Vec::with_capacity(records.len());
        for (at, (model, record)) in records.into_iter().enumerate() {
            if at > 0 {
                text.put_u8(b',');
            }
            spans.push((model, text.len()..text.len() + record.len()));
            text.put_slice(&record);
        }
        text.put_slice(b"]}");
        PricePage { text: text.freeze(), records: spans, with_health: Mutex::default() }
    }

    /// About how much memory it takes with all its forms.
    pub fn weight(&self) -> usize {
        self.text.len() * 5 / 2
    }

    /// The whole list with these figures; made once for each generation of them.
    pub fn whole(&self, generation: u64, health: &HashMap<String, RouteHealth>) -> Arc<PriceBody> {
        let mut last = self.with_health.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = last.as_ref().filter(|body| body.generation == generation) {
            return body.clone();
        }
        let body = if health.is_empty() { self.text.clone() } else { self.listed(self.records.iter(), health, b"]}") };
        let body = Arc::new(PriceBody::new(generation, body));
        *last = Some(body.clone());
        body
    }

    /// The list of those records only that are wanted.
    pub fn some(
        &self,
        health: &HashMap<String, RouteHealth>,
        wanted: impl Fn(&Model) -> bool,
        limit: Option<usize>,
    ) -> PriceBody {
        let chosen = self.records.iter().filter(|(model, _)| wanted(model));
        let body = match limit {
            None => self.listed(chosen, health, b"]}"),
            Some(limit) => {
                let more = chosen.clone().nth(limit).is_some();
                let end: &[u8] = if more { b"],\"has_more\":true}" } else { b"],\"has_more\":false}" };
                self.listed(chosen.take(limit), health, end)
            }
        };
        PriceBody::new(0, body)
    }

    /// One record; none where the viewer does not see the model.
    pub fn one(&self, model: &str, health: &HashMap<String, RouteHealth>) -> Option<PriceBody> {
        let at = self.records.binary_search_by(|(own, _)| own.name.as_str().cmp(model)).ok()?;
        let mut body = BytesMut::new();
        self.put(&mut body, &self.records[at], health);
        Some(PriceBody::new(0, body.freeze()))
    }

    /// The records as they are written, without health.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|(_, span)| &self.text[span.clone()])
    }

    fn listed<'r>(
        &self,
        records: impl Iterator<Item = &'r (Arc<Model>, Range<usize>)>,
        health: &HashMap<String, RouteHealth>,
        end: &[u8],
    ) -> Bytes {
        let head = self.records.first().map_or(self.text.len() - 2, |(_, span)| span.start);
        let mut body = BytesMut::with_capacity(self.text.len() + health.len() * 128 + end.len());
        body.put_slice(&self.text[..head]);
        for (at, record) in records.enumerate() {
            if at > 0 {
                body.put_u8(b',');
            }
            self.put(&mut body, record, health);
        }
        body.put_slice(end);
        body.freeze()
    }

    /// A record, with its health as the last member.
    fn put(
        &self,
        body: &mut BytesMut,
        (model, span): &(Arc<Model>, Range<usize>),
        health: &HashMap<String, RouteHealth>,
    ) {
        let record = &self.text[span.clone()];
        let figure = health.get(&model.name).and_then(|figure| serde_json::to_vec(figure).ok());
        match (record.strip_suffix(b"}"), figure) {
            (Some(open), Some(figure)) => {
                body.put_slice(open);
                body.put_slice(b",\"route_health\":");
                body.put_slice(&figure);
                body.put_u8(b'}');
            }
            _ => body.put_slice(record),
        }
    }
}

impl PriceBody {
    pub fn new(generation: u64, body: Bytes) -> PriceBody {
        let digest = Sha256::digest(&body);
        let etag = digest[..12].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        PriceBody { generation, body, etag, gzip: OnceLock::new(), brotli: OnceLock::new() }
    }

    /// The packing that is worth it.
    pub fn packing(&self, accepted: Packing) -> Packing {
        if self.body.len() < WORTH { Packing::Plain } else { accepted }
    }

    /// The body in this form, if it has been made or need not be.
    pub fn ready(&self, packing: Packing) -> Option<Bytes> {
        match packing {
            Packing::Plain => Some(self.body.clone()),
            Packing::Gzip => self.gzip.get().cloned(),
            Packing::Brotli => self.brotli.get().cloned(),
        }
    }

    /// Makes the form; whoever asks meanwhile waits. Takes a while: not for a thread that serves.
    pub fn pack(&self, packing: Packing) -> Bytes {
        match packing {
            Packing::Plain => self.body.clone(),
            Packing::Gzip => self.gzip.get_or_init(|| gzip(&self.body)).clone(),
            Packing::Brotli => self.brotli.get_or_init(|| brotli(&self.body)).clone(),
        }
    }

    /// A form of a body has a name of its own.
    pub fn tag(&self, packing: Packing) -> Option<HeaderValue> {
        let form = packing.name().map(|name| format!("-{name}")).unwrap_or_default();
        HeaderValue::try_from(format!("\"{}{form}\"", self.etag)).ok()
    }

    /// Whether a client that names these tags has it already, in whichever form.
    pub fn known_by(&self, tag: &str) -> bool {
        let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
        let plain = tag.strip_suffix("-gzip").or_else(|| tag.strip_suffix("-br")).unwrap_or(tag);
        tag == "*" || plain == self.etag
    }
}

fn gzip(body: &[u8]) -> Bytes {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    // Memory takes every byte.
    let _ = writer.write_all(body);
    writer.finish().unwrap_or_default().into()
}

fn brotli(body: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut out, 64 << 10, BROTLI_QUALITY, BROTLI_WINDOW);
    let _ = writer.write_all(body);
    drop(writer);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_form_that_a_client_takes() {
        for (header, packing) in [
            ("", Packing::Plain),
            ("identity", Packing::Plain),
            ("gzip", Packing::Gzip),
            ("gzip, deflate, br", Packing::Brotli),
            ("GZIP;q=0.5, br;q=0", Packing::Gzip),
            ("br; q=0, gzip; q=0.0", Packing::Plain),
        ] {
            assert_eq!(Packing::accepted(header), packing, "{header}");
        }
    }

    #[test]
    fn a_tag_is_known_in_every_form() {
        let body = PriceBody::new(0, Bytes::from_static(b"{}"));
        for tag in [format!("\"{}\"", body.etag), format!("W/\"{}-gzip\"", body.etag), format!(" \"{}-br\"", body.etag)]
        {
            assert!(body.known_by(&tag), "{tag}");
        }
        assert!(body.known_by("*") && !body.known_by("\"other\"") && !body.known_by(""));
    }
}
