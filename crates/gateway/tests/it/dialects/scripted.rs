//! A provider that answers what a test has written down, in that order: for answers that the
//! simulator has no scenario for.

use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// An answer, of status 200 unless it is a refusal.
pub struct Written {
    status: u16,
    kind: &'static str,
    body: String,
    /// Bytes that are announced and never come: the connection ends before them.
    missing: usize,
    /// From this place on it is written when somebody says so.
    held_back: Option<(usize, Arc<Notify>)>,
}

impl Written {
    pub fn json(body: impl ToString) -> Written {
        Written { status: 200, kind: "application/json", body: body.to_string(), missing: 0, held_back: None }
    }

    pub fn events(body: impl Into<String>) -> Written {
        Written { status: 200, kind: "text/event-stream", body: body.into(), missing: 0, held_back: None }
    }

    pub fn refusal(status: u16, body: impl ToString) -> Written {
        Written { status, ..Written::json(body) }
    }

    /// What follows the first occurrence of this waits for its signal.
    pub fn waits_after(self, text: &str, signal: Arc<Notify>) -> Written {
        let place = self.body.find(text).expect("such a text") + text.len();
        Written { held_back: Some((place, signal)), ..self }
    }

    pub fn cut(self) -> Written {
        Written { missing: 7, ..self }
    }
}

pub struct Scripted {
    url: String,
}

impl Scripted {
    pub async fn start(answers: Vec<Written>) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        #[expect(clippy::disallowed_methods, reason = "a server of one test, which ends with it")]
        tokio::spawn(async move {
            for answer in answers {
                let Ok((socket, _)) = listener.accept().await else { return };
                answer_one(socket, answer).await;
            }
        });
        Scripted { url }
    }

    /// Settings of this provider, of a kind, under the name `script`.
    pub fn config(&self, kind: &str) -> String {
        format!("[provider.script]\nkind = \"{kind}\"\nbase_url = \"{}\"\n", self.url)
    }
}

async fn answer_one(mut socket: TcpStream, answer: Written) {
    let mut read = Vec::new();
    let (head, length) = loop {
        let mut piece = [0; 4096];
        let len = socket.read(&mut piece).await.expect("a request");
        assert!(len > 0, "half a request");
        read.extend_from_slice(&piece[..len]);
        if let Some(head) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&read[..head]).to_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |n| n.trim().parse().expect("a length"));
            break (head + 4, length);
        }
    };
    while read.len() < head + length {
        let mut piece = vec![0; 65_536];
        let len = socket.read(&mut piece).await.expect("a body");
        assert!(len > 0, "half a body");
        read.extend_from_slice(&piece[..len]);
    }
    let Written { status, kind, body, missing, held_back } = answer;
    let length = body.len() + missing;
    let head = format!(
        "HTTP/1.1 {status} Written\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.expect("written");
    let (place, signal) = held_back.map_or((0, None), |(place, signal)| (place, Some(signal)));
    socket.write_all(&body.as_bytes()[..place]).await.expect("written");
    if let Some(signal) = signal {
        signal.notified().await;
    }
    socket.write_all(&body.as_bytes()[place..]).await.expect("written");
}
