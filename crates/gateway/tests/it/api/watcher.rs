//! Reads a stream of server-sent events as a browser does.

use crate::house::House;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use std::time::Duration;

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug)]
pub struct SeenEvent {
    pub kind: String,
    pub id: Option<String>,
    pub data: Value,
}

pub struct LiveReader {
    reply: Response,
    /// What came and is not read.
    rest: String,
    /// All that came.
    pub text: String,
    pub seen: Vec<SeenEvent>,
    pub last_id: Option<String>,
}

pub async fn open(request: RequestBuilder) -> LiveReader {
    let reply = request.send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let header = |name: &str| reply.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(
        (header("content-type").as_str(), header("cache-control").as_str()),
        ("text/event-stream", "private, no-store")
    );
    LiveReader { reply, rest: String::new(), text: String::new(), seen: Vec::new(), last_id: None }
}

pub async fn open_at(house: &House, url: &str, key: &str) -> LiveReader {
    open(house.http.get(url).bearer_auth(key)).await
}

impl LiveReader {
    /// The next event; nothing at the end.
    pub async fn next(&mut self) -> Option<SeenEvent> {
        loop {
            while let Some((one, rest)) = self.rest.split_once("\n\n") {
                let (one, rest) = (one.to_owned(), rest.to_owned());
                self.rest = rest;
                if let Some(event) = read(&one) {
                    self.last_id = event.id.clone().or(self.last_id.take());
                    self.seen.push(event.clone());
                    return Some(event);
                }
            }
            let piece = tokio::time::timeout(PATIENCE, self.reply.chunk()).await.expect("a piece in time");
            let piece = piece.ok().flatten()?;
            let text = std::str::from_utf8(&piece).expect("text");
            self.rest.push_str(text);
            self.text.push_str(text);
        }
    }

    /// The next event of a kind that is this one.
    pub async fn find(&mut self, kind: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no {kind} came: {:?}", self.seen));
            if event.kind == kind && is(&event.data) {
                return event.data;
            }
        }
    }

    /// The same, if it has come before too.
    pub async fn find_any(&mut self, kind: &str, is: impl Fn(&Value) -> bool) -> Value {
        let seen = self.seen.iter().find(|event| event.kind == kind && is(&event.data)).cloned();
        match seen {
            Some(event) => event.data,
            None => self.find(kind, is).await,
        }
    }

    /// Why it ended. Nothing comes after that.
    pub async fn end(&mut self) -> String {
        let end = self.find("end", |_| true).await;
        assert!(self.next().await.is_none(), "the stream goes on: {:?}", self.seen);
        end["reason"].as_str().expect("a reason").to_owned()
    }
}

/// Comments alone are no event.
fn read(text: &str) -> Option<SeenEvent> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data = field("data: ")?;
    let data: Value = serde_json::from_str(&data).expect("JSON");
    let kind = field("event: ").expect("a name");
    assert_eq!(data["type"], kind.as_str());
    Some(SeenEvent { kind, id: field("id: "), data })
}
