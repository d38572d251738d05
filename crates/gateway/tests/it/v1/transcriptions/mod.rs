//! POST /v1/audio/transcriptions and /v1/audio/translations.

mod faults;
mod files;
mod formats;
pub mod long_files;
pub mod passing;
pub mod providers;
mod streams;
mod uploads;

use crate::house::{House, Plan};
use bytes::Bytes;
use reqwest::{RequestBuilder, Response};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tollgate_store::UsageRow;

/// A second costs 6,000,000 nano-USD: 50/3 tokens at 360 USD per million.
pub const SECOND: i64 = 6_000_000;

pub const CATALOG: &str = r#"
[model."whisper"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { response_formats = ["json", "text", "srt", "vtt", "verbose_json"], max_bytes = "25MiB", translations = true }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]

[model."gpt-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { stream = true }
route = [{ provider = "sim", upstream_model = "gpt-4o-sim" }]

[model."short-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
max_duration_seconds = 30
transcription = { max_bytes = "25MiB" }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]

[model."bigmodel-streaming"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
accepted_upload_formats = ["wav", "ogg"]
transcription = { wav_16_bit = true }
route = [{ provider = "sim", upstream_model = "gpt-4o-sim" }]

[model."two-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
route = [
  { provider = "nobody", upstream_model = "whisper-sim", priority = 1 },
  { provider = "sim", upstream_model = "whisper-sim", priority = 2 },
]

[model."flat-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "per_call"
price = { per_call = 1_000 }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]
"#;

pub async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// A wav file of so many milliseconds of silence: 16 bits, one channel, 8 kHz.
pub fn wav(millis: u32) -> Vec<u8> {
    wav_of(1, 1, 8_000, 16, millis * 8)
}

/// A wav file with this format tag, channels, rate, bits and so many samples of each channel.
pub fn wav_of(tag: u16, channels: u16, rate: u32, bits: u16, samples: u32) -> Vec<u8> {
    let block = channels * bits / 8;
    let data = samples * u32::from(block);
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0");
    file.extend([tag.to_le_bytes(), channels.to_le_bytes()].concat());
    file.extend([rate.to_le_bytes(), (rate * u32::from(block)).to_le_bytes()].concat());
    file.extend([block.to_le_bytes(), bits.to_le_bytes()].concat());
    file.extend(b"data");
    file.extend(data.to_le_bytes());
    file.resize(file.len() + data as usize, 0);
    file
}

pub const KIND: &str = "multipart/form-data; boundary=a-b";

/// A form with these fields; the file stands where its name is `file`.
pub fn form(fields: &[(&str, &str)], name: &str, file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, text) in fields {
        out.extend(b"--a-b\r\n");
        if *field == "file" {
            let head = format!(
                "Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
            );
            out.extend(head.as_bytes());
            out.extend(file);
        } else {
            out.extend(format!("Content-Disposition: form-data; name=\"{field}\"\r\n\r\n{text}").as_bytes());
        }
        out.extend(b"\r\n");
    }
    out.extend(b"--a-b--\r\n");
    out
}

pub fn post(house: &House, path: &str, kind: &str, body: Vec<u8>) -> RequestBuilder {
    house.http.post(house.url(path)).bearer_auth(&house.key).header("content-type", kind).body(body)
}

/// Asks for a transcript with these fields beside the model.
pub async fn transcribe(house: &House, model: &str, more: &[(&str, &str)], file: &[u8]) -> Response {
    let fields = [&[("model", model), ("file", "")][..], more].concat();
    let body = form(&fields, "blob", file);
    post(house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply")
}

/// The row of a reply's call.
pub async fn row_of(house: &House, reply: &Response) -> UsageRow {
    house.row(crate::house::call_id(reply)).await
}

/// The fields and the file of a request that the simulator got from us.
pub fn sent(body: &[u8]) -> (Vec<(String, String)>, String, Vec<u8>) {
    let place = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
    let line = place(body, b"\r\n").expect("a line");
    let mark = [b"\r\n", &body[..line]].concat();
    let (mut fields, mut file, mut name) = (Vec::new(), Vec::new(), String::new());
    let mut rest = &body[line..];
    while let Some(head_end) = place(rest, b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&rest[..head_end]).into_owned();
        rest = &rest[head_end + 4..];
        let end = place(rest, &mark).expect("a boundary");
        let of = |key: &str| Some(head.split_once(&format!("; {key}=\""))?.1.split_once('"')?.0.to_owned());
        match of("filename") {
            Some(file_name) => (name, file) = (file_name, rest[..end].to_vec()),
            None => fields.push((of("name").expect("a name"), String::from_utf8_lossy(&rest[..end]).into_owned())),
        }
        rest = &rest[end + mark.len()..];
    }
    (fields, name, file)
}

/// A body that a test sends piece by piece.
struct Slow(mpsc::Receiver<Bytes>);

impl futures_core::Stream for Slow {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

/// A recording of so many seconds that arrives as the test wants.
pub struct Upload {
    pieces: mpsc::Sender<Bytes>,
    reply: JoinSet<reqwest::Result<Response>>,
    rest: Bytes,
}

impl Upload {
    pub fn begin(house: &House, model: &str, millis: u32) -> Upload {
        let body = Bytes::from(form(&[("model", model), ("file", "")], "a.wav", &wav(millis)));
        let (pieces, receive) = mpsc::channel(1);
        let request = house.http.post(house.url("/v1/audio/transcriptions")).bearer_auth(&house.key);
        let request = request.header("content-type", KIND).body(reqwest::Body::wrap_stream(Slow(receive)));
        let mut reply = JoinSet::new();
        reply.spawn(request.send());
        Upload { pieces, reply, rest: body }
    }

    /// Sends so much more, as far as somebody reads it; whether that was all.
    pub async fn try_send(&mut self, bytes: usize) -> bool {
        let mut now = self.rest.split_to(bytes.min(self.rest.len()));
        while !now.is_empty() {
            let piece = now.split_to(now.len().min(64 << 10));
            if self.pieces.send(piece).await.is_err() {
                return false;
            }
        }
        true
    }

    pub async fn send(&mut self, bytes: usize) {
        assert!(self.try_send(bytes).await, "somebody reads");
    }

    /// The reply to what was sent.
    pub async fn reply(self) -> reqwest::Result<Response> {
        let Upload { pieces, mut reply, .. } = self;
        drop(pieces);
        reply.join_next().await.expect("a task").expect("it ends")
    }

    pub async fn finish(mut self) -> Response {
        self.send(usize::MAX).await;
        self.reply().await.expect("a reply")
    }

    /// The client goes away.
    pub async fn leave(mut self) {
        self.reply.shutdown().await;
    }

    /// Waits until so much is on disk.
    pub async fn spooled(&self, house: &House, least: usize) {
        while house.running().app.spool.budget.used() < least {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
