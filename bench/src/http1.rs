//! Just enough HTTP/1 to count replies cheaply: load generator and upstream share one core, so
//! their own cost decides how much of the subject's core can be filled.

use std::time::Instant;

use anyhow::{Context, bail};

/// Where the head of a message ends (after the blank line), if it is all there.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|place| place + 4)
}

/// The value of `content-length` in a head.
pub fn content_length(head: &[u8]) -> Option<usize> {
    let line = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    });
    std::str::from_utf8(line?).ok()?.trim().parse().ok()
}

/// Reads one reply after another from the pieces of a connection.
#[derive(Default)]
pub struct Reply {
    head: Vec<u8>,
    body: Body,
    /// Server-sent events seen so far.
    pub events: u64,
    pub first_event: Option<Instant>,
    last_was_newline: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Body {
    #[default]
    Head,
    Left(usize),
    /// Inside the line with the size of a chunk; the size so far.
    Size(usize, bool),
    /// So many bytes of data and its line end are left.
    Chunk(usize),
    /// The empty line after the last chunk.
    End(u8),
}

impl Reply {
    /// True when the reply is complete. A reply never shares a piece with the next one: there is no
    /// pipelining.
    pub fn feed(&mut self, piece: &[u8]) -> anyhow::Result<bool> {
        let mut rest = piece;
        if self.body == Body::Head {
            let before = self.head.len();
            self.head.extend_from_slice(piece);
            let Some(end) = head_end(&self.head) else {
                return Ok(false);
            };
            rest = &piece[end - before..];
            self.head.truncate(end);
            self.body = self.framing()?;
        }
        while !rest.is_empty() {
            rest = self.step(rest)?;
        }
        Ok(matches!(self.body, Body::Left(0) | Body::End(0)))
    }

    fn framing(&self) -> anyhow::Result<Body> {
        if !self.head.starts_with(b"HTTP/1.1 200") {
            let head = String::from_utf8_lossy(&self.head);
            bail!("answered {}", head.lines().next().unwrap_or_default());
        }
        Ok(content_length(&self.head).map_or(Body::Size(0, true), Body::Left))
    }

    fn step<'a>(&mut self, rest: &'a [u8]) -> anyhow::Result<&'a [u8]> {
        match self.body {
            Body::Head => bail!("body before head"),
            Body::Left(left) => {
                let left = left.checked_sub(rest.len()).context("more than the announced length")?;
                self.body = Body::Left(left);
                Ok(&[])
            }
            Body::Size(size, digits) => {
                self.body = match rest[0] {
                    b'\n' if size == 0 => Body::End(2),
                    b'\n' => Body::Chunk(size + 2),
                    byte if digits => match (byte as char).to_digit(16) {
                        Some(digit) => Body::Size(size * 16 + digit as usize, true),
                        None => Body::Size(size, false),
                    },
                    _ => Body::Size(size, false),
                };
                Ok(&rest[1..])
            }
            Body::Chunk(left) => {
                let taken = rest.len().min(left);
                let data = rest.len().min(left.saturating_sub(2));
                self.count(&rest[..data]);
                self.body = if left == taken { Body::Size(0, true) } else { Body::Chunk(left - taken) };
                Ok(&rest[taken..])
            }
            Body::End(left) => {
                self.body = Body::End(left.checked_sub(1).context("more after the last chunk")?);
                Ok(&rest[1..])
            }
        }
    }

    /// Counts pairs of line ends. What a byte costs here is taken from the core that fills the
    /// subject's: megabytes of audio or base64 must not be looked at one by one.
    fn count(&mut self, data: &[u8]) {
        let mut next = 0;
        for at in memchr::memchr_iter(b'\n', data) {
            let second = self.last_was_newline && at == next;
            self.events += u64::from(second);
            self.last_was_newline = !second;
            next = at + 1;
        }
        self.last_was_newline &= next == data.len();
        if self.events > 0 && self.first_event.is_none() {
            self.first_event = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_replies_split_anywhere() {
        let plain: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let events: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
            9\r\ndata: a\n\n\r\n12\r\ndata: b\n\ndata: c\n\n\r\n0\r\n\r\n";
        for (message, count) in [(plain, 0), (events, 3)] {
            for size in 1..message.len() {
                let mut reply = Reply::default();
                let pieces: Vec<_> = message.chunks(size).collect();
                let (last, earlier) = pieces.split_last().unwrap();
                assert!(earlier.iter().all(|piece| !reply.feed(piece).unwrap()), "{size}");
                assert!(reply.feed(last).unwrap(), "{size}");
                assert_eq!(reply.events, count);
            }
        }
        assert!(Reply::default().feed(b"HTTP/1.1 402 Payment Required\r\n\r\n").is_err());
    }
}
