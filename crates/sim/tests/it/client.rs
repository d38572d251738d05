//! A client that keeps every byte: each HTTP chunk apart, and how the connection ended.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_sim::{Sim, SimSettings};

pub async fn sim() -> Sim {
    Sim::start(SimSettings::default()).await.expect("a free port")
}

/// How the connection ended, as the client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The message was complete.
    Whole,
    /// The socket was closed in mid-message.
    Closed,
    Reset,
    /// Nothing came for a while.
    Silent,
}

#[derive(Debug)]
pub struct Answer {
    pub head: String,
    /// HTTP chunks as they were framed, or the whole body as one.
    pub chunks: Vec<Vec<u8>>,
    pub end: End,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head[9..12].parse().expect("a status")
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("utf-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).expect("JSON")
    }

    /// Data of plainly framed events, `[DONE]` included.
    pub fn events(&self) -> Vec<String> {
        let text = self.text();
        let blocks = text.split("\n\n").filter(|block| !block.is_empty());
        blocks.map(|block| block.strip_prefix("data: ").expect("data").to_string()).collect()
    }

    /// The JSON chunks, without `[DONE]`.
    pub fn parsed(&self) -> Vec<Value> {
        let events = self.events();
        let chunks = events.iter().filter(|event| *event != "[DONE]");
        chunks.map(|event| serde_json::from_str(event).expect("JSON")).collect()
    }

    pub fn said(&self) -> String {
        let deltas = self.parsed();
        deltas.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    }
}

pub fn ask(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

pub fn streamed(model: &str, text: &str) -> Value {
    let mut body = ask(model, text);
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    body
}

pub async fn post(sim: &Sim, body: &Value) -> Answer {
    read(send(sim, body).await).await
}

pub async fn send(sim: &Sim, body: &Value) -> TcpStream {
    let body = body.to_string();
    request(sim, "POST", "/v1/chat/completions", &body).await
}

pub async fn get(sim: &Sim, path: &str) -> Answer {
    read(request(sim, "GET", path, "").await).await
}

pub async fn request(sim: &Sim, method: &str, path: &str, body: &str) -> TcpStream {
    request_with(sim, method, path, "", body).await
}

/// With more headers, each ended by CRLF.
pub async fn request_with(sim: &Sim, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connect");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: sim\r\nuser-agent: test/1\r\nauthorization: Bearer k\r\n{headers}content-length: {length}\r\n\r\n"
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.expect("write");
    socket
}

/// Reads one answer to its end, or until nothing has come for three seconds.
pub async fn read(mut socket: TcpStream) -> Answer {
    let mut raw = Vec::new();
    loop {
        if let Some(answer) = parse(&raw, End::Whole) {
            return answer;
        }
        let mut piece = vec![0; 64 << 10];
        let end = match timeout(Duration::from_secs(3), socket.read(&mut piece)).await {
            Err(_) => End::Silent,
            Ok(Err(_)) => End::Reset,
            Ok(Ok(0)) => End::Closed,
            Ok(Ok(length)) => {
                raw.extend_from_slice(&piece[..length]);
                continue;
            }
        };
        return parse(&raw, end).unwrap_or(Answer { head: String::new(), chunks: vec![], end });
    }
}

/// None while the message is not complete; with an `end` other than `Whole`, what there is.
fn parse(raw: &[u8], end: End) -> Option<Answer> {
    let split = raw.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&raw[..split]).to_lowercase();
    let mut rest = &raw[split + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let whole = rest.len() == length.parse::<usize>().expect("a length");
        let answer = Answer { head, chunks: vec![rest.to_vec()], end };
        return (whole || end != End::Whole).then_some(answer);
    }
    let mut chunks = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        if size == 0 {
            return Some(Answer { head, chunks, end: End::Whole });
        }
        if rest.len() < line + 2 + size + 2 {
            break;
        }
        chunks.push(rest[line + 2..line + 2 + size].to_vec());
        rest = &rest[line + 4 + size..];
    }
    (end != End::Whole).then_some(Answer { head, chunks, end })
}
