//! The provider of the experiment: prebuilt replies, no parsing, one thread. Each event of a stream
//! is one write, and streams take turns, as events of real providers arrive one by one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use crate::media::{self, Media};
use crate::replies::{self, Events, MODELS, STREAM_HEAD, Wish};
use crate::timer::Timer;
use crate::tongue::Tongue;
use crate::{http1, live};

/// The stream that is there in every dialect.
const SPOKEN: (&str, u64) = ("bench-0-200", 200);

/// Of an upload, read at once.
const PIECE: usize = 64 << 10;

struct Shelf {
    replies: HashMap<Wish, (Bytes, Events)>,
    /// The same stream in the dialects that are not chat's.
    spoken: HashMap<Tongue, Events>,
    media: HashMap<Media, Bytes>,
    /// Tasks that were created.
    tasks: AtomicU64,
    timer: Timer,
}

impl Shelf {
    fn filled() -> Self {
        let wish = |model: &str| Wish::named(model.trim_start_matches("bench-"));
        let built = MODELS.iter().filter_map(|model| Some((wish(model)?, (replies::whole(model), Events::of(model)))));
        let (model, count) = SPOKEN;
        let spoken = Tongue::ALL.into_iter().map(|tongue| (tongue, tongue.events(model, count)));
        let media = Media::ALL.into_iter().map(|media| (media, media.reply()));
        Self {
            replies: built.collect(),
            spoken: spoken.collect(),
            media: media.collect(),
            tasks: AtomicU64::new(0),
            timer: Timer::start(),
        }
    }
}

pub fn run(listen: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await.context("listening")?;
        let shelf = Arc::new(Shelf::filled());
        let tracker = TaskTracker::new();
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let shelf = Arc::clone(&shelf);
            tracker.spawn(async move {
                // A connection that breaks is seen by whoever broke it.
                let _ = serve(socket, &shelf).await;
            });
        }
    })
}

async fn serve(mut socket: TcpStream, shelf: &Shelf) -> anyhow::Result<()> {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        let Some(end) = http1::head_end(&buffer) else {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        if live::is_asked(&buffer) {
            return live::provide(socket, &buffer[..end]).await;
        }
        let gets = buffer.starts_with(b"GET ");
        let length =
            http1::content_length(&buffer[..end]).or(gets.then_some(0)).context("a request without a length")?;
        if let Some(media) = Media::asked(&buffer[..end]) {
            let mut left = (end + length).saturating_sub(buffer.len());
            buffer.clear();
            while left > 0 {
                let room = left.min(PIECE);
                let read = (&mut socket).take(room as u64).read_buf(&mut buffer).await?;
                if read == 0 {
                    return Ok(());
                }
                left -= read;
                buffer.clear();
            }
            if media == Media::Video && !gets {
                socket.write_all(&media::created(shelf.tasks.fetch_add(1, Ordering::Relaxed))).await?;
            } else {
                socket.write_all(&shelf.media[&media]).await?;
            }
            continue;
        }
        while buffer.len() < end + length {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        answer(&mut socket, shelf, &buffer[..end], &buffer[end..end + length]).await?;
        buffer.drain(..end + length);
    }
}

async fn answer(socket: &mut TcpStream, shelf: &Shelf, head: &[u8], body: &[u8]) -> anyhow::Result<()> {
    let tongue = Tongue::asked(head);
    let wish = Wish::of(tongue, head, body).context("a request without a bench model")?;
    let (whole, events) = shelf.replies.get(&wish).context("no such model")?;
    let events = if tongue == Tongue::Chat { events } else { &shelf.spoken[&tongue] };
    match wish {
        Wish::Whole { think_ms } => {
            think(shelf, think_ms).await;
            socket.write_all(whole).await?;
        }
        Wish::Stream { think_ms, events: count, pause_ms } => {
            think(shelf, think_ms).await;
            socket.write_all(STREAM_HEAD).await?;
            for event in &events.opening {
                socket.write_all(event).await?;
            }
            for at in 0..count {
                socket.write_all(events.token(at)).await?;
                if pause_ms == 0 {
                    tokio::task::yield_now().await;
                } else {
                    shelf.timer.sleep(Duration::from_millis(pause_ms)).await;
                }
            }
            socket.write_all(&events.finish).await?;
            if replies::wants_usage(body) {
                socket.write_all(&events.usage).await?;
            }
            socket.write_all(&events.done).await?;
        }
        Wish::Idle => {
            socket.write_all(STREAM_HEAD).await?;
            socket.write_all(events.token(0)).await?;
            // Until the peer closes.
            while socket.read(&mut [0; 64]).await? > 0 {}
        }
    }
    Ok(())
}

async fn think(shelf: &Shelf, millis: u64) {
    if millis > 0 {
        shelf.timer.sleep(Duration::from_millis(millis)).await;
    }
}
