//! The load generator: closed loop over many connections, paced (see `pace`), or streams held open.
//! Prints one line of JSON.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::http1::Reply;
use crate::media::Media;
use crate::tongue::Tongue;
use crate::{pace, replies};

#[derive(Args, Clone)]
pub struct Settings {
    #[arg(long)]
    pub target: SocketAddr,
    #[arg(long, default_value = "none")]
    pub key: String,
    #[arg(long, default_value = "bench-0-0")]
    pub model: String,
    #[arg(long)]
    pub stream: bool,
    /// What the client speaks; other than chat completions it asks for streams only.
    #[arg(long, value_enum, default_value_t = Tongue::Chat)]
    pub tongue: Tongue,
    /// Another kind of call than a conversation.
    #[arg(long, value_enum)]
    pub media: Option<Media>,
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Calls a second over all connections; without it each connection calls again at once.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Open the streams, say when each has its first event, and hold them until standard input
    /// closes.
    #[arg(long)]
    pub hold: bool,
}

/// What was seen, in microseconds.
#[derive(Default)]
pub struct Seen {
    pub latencies: Vec<u64>,
    pub firsts: Vec<u64>,
    pub events: u64,
    pub errors: u64,
    pub last_error: Option<String>,
}

impl Seen {
    pub fn add(&mut self, start: Instant, reply: &Reply) {
        self.latencies.push(micros(start.elapsed()));
        self.events += reply.events;
        if let Some(first) = reply.first_event {
            self.firsts.push(micros(first.saturating_duration_since(start)));
        }
    }

    /// Something that began then is over.
    pub fn took(&mut self, start: Instant) {
        self.latencies.push(micros(start.elapsed()));
    }

    pub fn failed(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.last_error = Some(format!("{error:#}"));
    }

    pub fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.firsts.extend(other.firsts);
        self.events += other.events;
        self.errors += other.errors;
        self.last_error = other.last_error.or(self.last_error.take());
    }

    pub fn json(mut self, seconds: f64) -> Value {
        json!({
            "requests": self.latencies.len(), "errors": self.errors, "last_error": self.last_error,
            "seconds": seconds, "events": self.events,
            "p50_us": percentile(&mut self.latencies, 50), "p99_us": percentile(&mut self.latencies, 99),
            "first_p50_us": percentile(&mut self.firsts, 50), "first_p99_us": percentile(&mut self.firsts, 99),
        })
    }
}

pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let Settings { target, key, model, .. } = settings;
    let request = match (settings.media, settings.tongue) {
        (Some(media), _) => media.request(*target, key),
        (None, Tongue::Chat) => replies::request(*target, key, model, settings.stream),
        (None, tongue) => tongue.request(*target, key, model),
    };
    let start = Instant::now();
    let seen = match settings.rate {
        Some(rate) => pace::run(settings, &request, rate)?,
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            if settings.hold && settings.media.is_some() {
                return runtime.block_on(hold_back(settings, &request));
            }
            if settings.hold {
                return runtime.block_on(hold(settings, &request));
            }
            runtime.block_on(closed_loop(settings, &request))
        }
    };
    println!("{}", seen.json(start.elapsed().as_secs_f64()));
    Ok(())
}

async fn closed_loop(settings: &Settings, request: &Bytes) -> Seen {
    let until = Instant::now() + Duration::from_secs_f64(settings.seconds);
    let mut callers = JoinSet::new();
    for _ in 0..settings.connections {
        callers.spawn(call_until(settings.target, request.clone(), until));
    }
    let mut all = Seen::default();
    for seen in callers.join_all().await {
        all.merge(seen);
    }
    all
}

async fn call_until(target: SocketAddr, request: Bytes, until: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut socket = None;
    while Instant::now() < until {
        match call(&mut socket, target, &request, &mut seen).await {
            Ok(()) => {}
            Err(error) => {
                seen.failed(&error);
                socket = None;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    seen
}

async fn call(
    socket: &mut Option<TcpStream>,
    target: SocketAddr,
    request: &[u8],
    seen: &mut Seen,
) -> anyhow::Result<()> {
    let socket = match socket {
        Some(socket) => socket,
        None => socket.insert(connect(target).await?),
    };
    let start = Instant::now();
    socket.write_all(request).await?;
    let mut reply = Reply::default();
    let mut piece = [0; 32 << 10];
    loop {
        let length = socket.read(&mut piece).await?;
        anyhow::ensure!(length > 0, "closed in mid-reply");
        if reply.feed(&piece[..length])? {
            seen.add(start, &reply);
            return Ok(());
        }
    }
}

async fn connect(target: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(target).await.context("connecting")?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Sends all of every request but its last byte, at once, and waits until standard input closes.
async fn hold_back(settings: &Settings, request: &Bytes) -> anyhow::Result<()> {
    let mut callers = JoinSet::new();
    for _ in 0..settings.connections {
        let (target, most) = (settings.target, request.slice(..request.len() - 1));
        callers.spawn(async move {
            let mut socket = connect(target).await?;
            socket.write_all(&most).await?;
            anyhow::Ok(socket)
        });
    }
    let mut open = Vec::new();
    while let Some(socket) = callers.join_next().await {
        open.push(socket??);
    }
    println!("{}", json!({"open": open.len()}));
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

async fn hold(settings: &Settings, request: &Bytes) -> anyhow::Result<()> {
    let mut open = Vec::new();
    for _ in 0..settings.connections {
        let mut socket = connect(settings.target).await?;
        socket.write_all(request).await?;
        let mut reply = Reply::default();
        let mut piece = [0; 4096];
        while reply.events == 0 {
            let length = socket.read(&mut piece).await?;
            anyhow::ensure!(length > 0, "closed before the first event");
            reply.feed(&piece[..length])?;
        }
        open.push(socket);
    }
    println!("{}", json!({"open": open.len()}));
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn percentile(values: &mut [u64], percent: usize) -> Option<u64> {
    let place = (values.len() * percent / 100).min(values.len().checked_sub(1)?);
    Some(*values.select_nth_unstable(place).1)
}
