//! Calls at a fixed rate, for latency. Each connection has a thread of its own and sleeps on the
//! kernel's timer, because the runtime's timer ticks in milliseconds and what is measured is a
//! tenth of one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::http1::Reply;
use crate::load::{Seen, Settings};

/// Waking this late is the timer's doing; later than this, the connection was busy and the wait
/// counts as latency.
const TIMER_SLACK: Duration = Duration::from_millis(1);

pub fn run(settings: &Settings, request: &[u8], rate: f64) -> anyhow::Result<Seen> {
    ensure!(rate > 0.0, "a rate above zero");
    let start = Instant::now() + Duration::from_millis(20);
    let calls = (settings.seconds * rate) as usize;
    let mut all = Seen::default();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..settings.connections)
            .map(|first| {
                let mine = (first..calls).step_by(settings.connections);
                let times = mine.map(move |call| start + Duration::from_secs_f64(call as f64 / rate));
                scope.spawn(move || caller(settings.target, request, times))
            })
            .collect();
        for caller in callers {
            all.merge(caller.join().unwrap_or_default());
        }
    });
    Ok(all)
}

fn caller(target: SocketAddr, request: &[u8], times: impl Iterator<Item = Instant>) -> Seen {
    let mut seen = Seen::default();
    let mut socket = None;
    for due in times {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if let Err(error) = call(&mut socket, target, request, due, &mut seen) {
            seen.failed(&error);
            socket = None;
        }
    }
    seen
}

fn call(
    socket: &mut Option<TcpStream>,
    target: SocketAddr,
    request: &[u8],
    due: Instant,
    seen: &mut Seen,
) -> anyhow::Result<()> {
    let socket = match socket {
        Some(socket) => socket,
        None => {
            let fresh = TcpStream::connect(target).context("connecting")?;
            fresh.set_nodelay(true)?;
            socket.insert(fresh)
        }
    };
    let now = Instant::now();
    let start = if now.saturating_duration_since(due) > TIMER_SLACK { due } else { now };
    socket.write_all(request)?;
    let mut reply = Reply::default();
    let mut piece = [0; 16 << 10];
    loop {
        let length = socket.read(&mut piece)?;
        ensure!(length > 0, "closed in mid-reply");
        if reply.feed(&piece[..length])? {
            seen.add(start, &reply);
            return Ok(());
        }
    }
}
