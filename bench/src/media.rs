//! Calls that are no conversations, beside the bare proxy: speech and pictures that pass,
//! recordings that are sent, embeddings and social data next to chat calls. What is compared is
//! bytes per second of the subject's CPU; for the last two, CPU per call.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::bars::{Bar, mebibytes};
use crate::children::{self, Held};
use crate::compare::Figure;
use crate::experiment::{Figures, measure};
use crate::polls;
use crate::replies::{asked, posted};
use crate::report::{median, per_core_second};
use crate::subject::{Kind, Place, Subject};

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Media {
    Speech,
    Image,
    Upload,
    Embedding,
    /// A question about social data.
    Social,
    /// The creation of a video task, which never ends: see `polls`.
    Video,
}

/// Of a file that is spoken.
const SPOKEN: usize = 4 << 20;
/// Of a picture, before base64.
const PICTURE: usize = 3 << 20;
/// Of a recording.
const RECORDING: usize = 25 << 20;
/// Uploads at once, for the memory figure.
const AT_ONCE: usize = 100;
/// Numbers in a vector.
const DIMENSIONS: usize = 256;

const BOUNDARY: &str = "7f3a9c0de1b24856a7f3a9c0de1b2485";

impl Media {
    pub const ALL: [Self; 6] = [Self::Speech, Self::Image, Self::Upload, Self::Embedding, Self::Social, Self::Video];
    /// Those that are compared with the proxy.
    const ROUNDS: [Self; 5] = [Self::Speech, Self::Image, Self::Upload, Self::Embedding, Self::Social];

    pub fn name(self) -> &'static str {
        match self {
            Self::Speech => "speech",
            Self::Image => "image",
            Self::Upload => "upload",
            Self::Embedding => "embedding",
            Self::Social => "social",
            Self::Video => "video",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Speech => "/v1/audio/speech",
            Self::Image => "/v1/images/generations",
            Self::Upload => "/v1/audio/transcriptions",
            Self::Embedding => "/v1/embeddings",
            Self::Social => "/v1/social/bench/search",
            Self::Video => "/v1/videos",
        }
    }

    /// The kind that a request is for.
    pub fn asked(head: &[u8]) -> Option<Self> {
        // Of social data only the last part of the path is the same for client and provider. A task
        // is asked for below the path of its creation.
        if head.starts_with(b"GET ") {
            let path = head[4..].split(|byte| matches!(byte, b' ' | b'?')).next()?;
            let asks = |media: &Self| match media {
                Self::Social => path.ends_with(b"/bench/search"),
                media => path.starts_with(media.path().as_bytes()),
            };
            return [Self::Social, Self::Video].into_iter().find(asks);
        }
        Self::ALL.into_iter().find(|media| {
            let start = format!("POST {} ", media.path());
            head.starts_with(start.as_bytes())
        })
    }

    /// Its model in the catalog, without the route.
    pub fn model(self) -> String {
        let (kind, unit, price) = match self {
            Self::Social => return SOCIAL.to_owned(),
            Self::Video => ("openai-video", "per_second", "video_second = 1_000"),
            Self::Speech => ("audio-speech", "characters", "input = 1_000_000"),
            Self::Image => ("image-generation", "per_call", "per_call = 1_000"),
            Self::Upload => ("audio-transcription", "audio_duration", "input = 1_000_000"),
            Self::Embedding => ("embeddings", "tokens", "input = 150_000\noutput = 0"),
        };
        let more = match self {
            Self::Speech => "speech = { voices = [\"alloy\"], formats = [\"mp3\"], max_characters = 4_096 }\n",
            Self::Image => "image = { base64_only = true }\n",
            Self::Upload => "transcription = { max_bytes = \"32MiB\" }\n",
            Self::Video => "video = { variant = \"sora\" }\n",
            Self::Embedding | Self::Social => "",
        };
        let name = self.name();
        format!(
            "[model.\"bench-{name}\"]\nsupported_endpoint_types = [\"{kind}\"]\nbilling_unit = \"{unit}\"\n{more}\
             [model.\"bench-{name}\".price]\n{price}\n\
             [[model.\"bench-{name}\".route]]\nprovider = \"bench\"\nupstream_model = \"bench-{name}\"\n\n"
        )
    }

    /// A whole HTTP request.
    pub fn request(self, target: SocketAddr, key: &str) -> Bytes {
        let model = format!("bench-{}", self.name());
        let body = match self {
            Self::Speech => json!({"model": model, "input": "The bridge is open.", "voice": "alloy"}),
            Self::Image => json!({"model": model, "prompt": "A bridge at dawn."}),
            Self::Embedding => json!({"model": model, "input": crate::replies::QUESTION}),
            Self::Video => json!({"model": model, "prompt": "A bridge at dawn.", "seconds": "4"}),
            Self::Upload => return upload(target, key, &model),
            Self::Social => return asked(target, key, &format!("{}?keyword=bridge", self.path())),
        };
        posted(target, key, self.path(), &body.to_string())
    }

    /// What the provider says to it; of a task, whenever it is asked about it.
    pub fn reply(self) -> Bytes {
        let head = |kind: &str, length: usize| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n").into_bytes()
        };
        let (kind, body) = match self {
            Self::Speech => ("audio/mpeg", mp3(SPOKEN)),
            Self::Image => {
                let picture = base64(&png(PICTURE));
                ("application/json", json!({"created": 1, "data": [{"b64_json": picture}]}).to_string().into_bytes())
            }
            Self::Upload => ("application/json", json!({"text": "The bridge is open."}).to_string().into_bytes()),
            Self::Social => {
                let entry = json!({"id": "1", "title": "The bridge is open.", "author": {"name": "gate"}, "likes": 17});
                let list = vec![entry; 10];
                let body = json!({"code": 200, "request_id": "bench", "message": "ok", "data": {"list": list}});
                ("application/json", body.to_string().into_bytes())
            }
            Self::Video => ("application/json", task("video_0", "in_progress").into_bytes()),
            Self::Embedding => {
                let vector: Vec<f64> =
                    (0..DIMENSIONS).map(|at| f64::from(u8::try_from(at % 251).unwrap_or(0)) / 997.0).collect();
                let usage = json!({"prompt_tokens": 20, "total_tokens": 20});
                let data = json!([{"object": "embedding", "index": 0, "embedding": vector}]);
                let body = json!({"object": "list", "data": data, "model": "bench-embedding", "usage": usage});
                ("application/json", body.to_string().into_bytes())
            }
        };
        [head(kind, body.len()), body].concat().into()
    }

    /// Bytes that pass in a call, the way that they are many.
    fn bytes(self) -> f64 {
        match self {
            Self::Speech => SPOKEN as f64,
            Self::Image => (PICTURE * 4 / 3) as f64,
            Self::Upload => RECORDING as f64,
            Self::Embedding | Self::Social | Self::Video => 0.0,
        }
    }

    fn connections(self) -> &'static str {
        match self {
            Self::Speech | Self::Image => "16",
            Self::Upload => "4",
            Self::Embedding | Self::Social | Self::Video => "64",
        }
    }
}

/// One cell of social data, made up.
const SOCIAL: &str = r#"
[social.bench]
order = 1
name_en = "Bench"
name_zh = "Bench"
provider = "source"
[social.bench.search]
price = { per_call = 2_000 }
[[social.bench.search.route]]
path = "/bench/search"
cost = 1_000
[social.bench.search.answer]
evidence = "documented"
items = ["/list"]
[[social.bench.search.param]]
name = "keyword"
type = "string"
required = true
max_length = 100
en = "Words to search for."
zh = "Words to search for."

"#;

/// A video task as its provider tells of it.
fn task(id: &str, status: &str) -> String {
    let facts = json!({"id": id, "object": "video", "created_at": 1_767_225_600, "status": status, "progress": 10});
    facts.to_string()
}

/// The reply to a creation: each task has a name of its own.
pub fn created(number: u64) -> Bytes {
    let body = task(&format!("video_{number}"), "queued");
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").into()
}

fn upload(target: SocketAddr, key: &str, model: &str) -> Bytes {
    let before = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n\
         --{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\
         content-type: audio/mpeg\r\n\r\n"
    );
    let after = format!("\r\n--{BOUNDARY}--\r\n");
    let recording = mp3(RECORDING);
    let length = before.len() + recording.len() + after.len();
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: {target}\r\nauthorization: Bearer {key}\r\n\
         content-type: multipart/form-data; boundary={BOUNDARY}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), before.as_bytes(), &recording, after.as_bytes()].concat().into()
}

/// Frames of silence, 128 kbit/s at 44.1 kHz, up to about this size.
fn mp3(size: usize) -> Vec<u8> {
    let mut frame = vec![0u8; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0x64]);
    frame.repeat(size / frame.len())
}

/// The beginning of a picture, and as many bytes as one would have. Nobody decodes it.
fn png(size: usize) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0\x08\x06\0\0\0\x7f\x1d\x2b\x83".to_vec();
    let end = b"\0\0\0\0IEND\xaeB`\x82";
    let mut state = 1u32;
    while picture.len() + end.len() < size {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        picture.push(u8::try_from(state >> 24).unwrap_or(0));
    }
    picture.extend_from_slice(end);
    picture
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let all = group.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// What was measured.
pub struct MediaFigures {
    rounds: BTreeMap<(Media, Kind), Vec<Figures>>,
    /// Plain chat calls of the same tollgate, one for each round.
    chat: Vec<Figures>,
    /// Resident memory of tollgate at rest, and at its most with many uploads, in KiB.
    idle: u64,
    uploading: u64,
    /// Microseconds of CPU that a question about an open video task takes.
    poll: f64,
}

impl MediaFigures {
    pub fn measured(place: &Place, rounds: usize, seconds: f64) -> anyhow::Result<Self> {
        let (idle, uploading) = memory(place)?;
        let poll = polls::measured(place, seconds)?;
        let kinds = [Kind::Direct, Kind::Proxy, Kind::Tollgate];
        let subjects = kinds.map(|kind| Subject::start(kind, place, "media"));
        let subjects = subjects.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let mut all = Self { rounds: BTreeMap::new(), chat: Vec::new(), idle, uploading, poll };
        for round in 0..=rounds {
            for media in Media::ROUNDS {
                for subject in &subjects {
                    eprintln!("round {round} of {rounds}: {} {}", media.name(), subject.kind.name());
                    let load = ["--media", media.name(), "--connections", media.connections()];
                    let figures = measure(subject, &load, seconds, place)?;
                    ensure!(figures.requests > 0.0, "{}: no call came to its end", media.name());
                    // The first round fills pools and caches.
                    if round > 0 {
                        all.rounds.entry((media, subject.kind)).or_default().push(figures);
                    }
                }
            }
            let tollgate = subjects.last().context("tollgate")?;
            let figures = measure(tollgate, &["--model", "bench-0-0", "--connections", "64"], seconds, place)?;
            if round > 0 {
                all.chat.push(figures);
            }
        }
        Ok(all)
    }

    /// Bytes per second of CPU, to the proxy's of the same round.
    fn to_proxy(&self, media: Media) -> f64 {
        median(self.to_proxies(media))
    }

    fn to_proxies(&self, media: Media) -> Vec<f64> {
        let rate = |figures: &Figures| per_core_second(figures, figures.requests * media.bytes());
        let pairs = self.rounds[&(media, Kind::Tollgate)].iter().zip(&self.rounds[&(media, Kind::Proxy)]);
        pairs.map(|(own, proxy)| rate(own) / rate(proxy)).collect()
    }

    /// CPU of a call of this kind, to that of a chat call of the same round.
    fn to_chat(&self, media: Media) -> Vec<f64> {
        let cost = |figures: &Figures| figures.cpu_seconds / figures.requests;
        let pairs = self.rounds[&(media, Kind::Tollgate)].iter().zip(&self.chat);
        pairs.map(|(own, chat)| cost(own) / cost(chat)).collect()
    }

    pub fn print(&self) {
        println!("\nMedia, closed loop");
        println!("{:>10} {:>10} {:>12} {:>12} {:>10} {:>16}", "", "", "calls/s", "CPU µs/call", "MB/s", "MB/core-s");
        for ((media, kind), rounds) in &self.rounds {
            let calls = median(rounds.iter().map(|figures| figures.requests / figures.seconds).collect());
            let megabytes = calls * media.bytes() / 1e6;
            let core = |figures: &Figures| per_core_second(figures, figures.requests * media.bytes() / 1e6);
            let core = median(rounds.iter().map(core).collect());
            let cost = median(rounds.iter().map(|figures| figures.cpu_seconds / figures.requests * 1e6).collect());
            let (media, kind) = (media.name(), kind.name());
            println!("{media:>10} {kind:>10} {calls:>12.1} {cost:>12.1} {megabytes:>10.0} {core:>16.0}");
        }
        let above = mebibytes(self.uploading.saturating_sub(self.idle));
        println!("{AT_ONCE} uploads of {} MB at once: {above:.1} MiB above idle", RECORDING >> 20);
        println!("a question about an open video task: {:.1} µs of CPU", self.poll);
    }

    pub fn figures(&self) -> Vec<Figure> {
        let passed = [Media::Speech, Media::Image, Media::Upload].map(|media| {
            let name = format!("bytes of {} per core second, to the proxy's", media.name());
            Figure::higher(name, self.to_proxies(media))
        });
        let above = self.uploading.saturating_sub(self.idle) as f64;
        let memory = Figure::lower("memory of 100 uploads above idle, KiB", vec![above]);
        let vectors = Figure::lower("CPU of an embeddings call, to a chat call's", self.to_chat(Media::Embedding));
        let social = Figure::lower("CPU of a social call, to a chat call's", self.to_chat(Media::Social));
        let polls = Figure::lower("CPU of a question about a video task, µs", vec![self.poll]);
        passed.into_iter().chain([vectors, social, polls, memory]).collect()
    }

    pub fn bars(&self) -> Vec<Bar> {
        let at_least = |name: &str, got, limit| Bar { name: name.to_owned(), limit, at_least: true, got, unit: "×" };
        let above = mebibytes(self.uploading.saturating_sub(self.idle));
        let at_most = |name: &str, got, limit, unit| Bar { name: name.to_owned(), limit, at_least: false, got, unit };
        vec![
            at_least("bytes of speech per core second, to the proxy's", self.to_proxy(Media::Speech), 0.8),
            at_least("bytes of pictures per core second, to the proxy's", self.to_proxy(Media::Image), 0.8),
            at_least("bytes of a 25 MB upload per core second, to the proxy's", self.to_proxy(Media::Upload), 0.6),
            at_most("CPU of an embeddings call, to a chat call's", median(self.to_chat(Media::Embedding)), 1.15, "×"),
            at_most("CPU of a social call, to a chat call's", median(self.to_chat(Media::Social)), 1.5, "×"),
            at_most("memory of 100 uploads of 25 MB, above idle", above, 100.0, " MiB"),
        ]
    }

    pub fn json(&self) -> Value {
        let one = |((media, kind), rounds): (&(Media, Kind), &Vec<Figures>)| {
            let rounds: Vec<_> = rounds.iter().map(Figures::json).collect();
            json!({"media": media.name(), "subject": kind.name(), "rounds": rounds})
        };
        let rounds: Vec<_> = self.rounds.iter().map(one).collect();
        let chat: Vec<_> = self.chat.iter().map(Figures::json).collect();
        json!({
            "rounds": rounds, "chat": chat, "idle_kib": self.idle, "uploading_kib": self.uploading, "poll_us": self.poll,
        })
    }
}

/// Memory of a fresh tollgate at rest, and while many uploads have all but their last byte there.
fn memory(place: &Place) -> anyhow::Result<(u64, u64)> {
    let subject = Subject::start(Kind::Tollgate, place, "uploads")?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    let rss = || anyhow::Ok(subject.sample()?.context("no process")?.rss_kib);
    let idle = rss()?;
    let (target, count) = (subject.addr.to_string(), AT_ONCE.to_string());
    let common = ["load", "--target", &target, "--key", &subject.key, "--media", "upload"];
    let arguments = [&common[..], &["--connections", &count, "--hold"]].concat();
    let _held: Held = children::Held::start(&place.bench, &arguments, place.load_core)?;
    Ok((idle, rss()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_path() {
        let target = SocketAddr::from(([127, 0, 0, 1], 1));
        for media in Media::ALL {
            let request = media.request(target, "k");
            assert_eq!(Media::asked(&request), Some(media));
            let end = crate::http1::head_end(&request).expect("a head");
            let length = crate::http1::content_length(&request[..end]);
            assert_eq!(length.unwrap_or(0), request.len() - end);
            let mut reply = crate::http1::Reply::default();
            assert!(reply.feed(&media.reply()).expect("a reply"), "{media:?}");
        }
        assert_eq!(Media::asked(b"POST /v1/chat/completions HTTP/1.1\r\n"), None);
        assert_eq!(Media::asked(b"GET /social/bench/search?keyword=a HTTP/1.1\r\n"), Some(Media::Social));
        assert_eq!(Media::asked(b"GET /v1/videos/video_7 HTTP/1.1\r\n"), Some(Media::Video));
        assert_eq!(Media::asked(b"GET /v1/models HTTP/1.1\r\n"), None);
    }

    #[test]
    fn base64_is_written_as_others_read_it() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
