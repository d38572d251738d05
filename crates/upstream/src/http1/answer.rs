//! The body of a reply, read from its connection as it is asked for. All that one read brings is one piece, however many
//! chunks it was sent in. Read to its end, the connection goes back to the pool; dropped before, it is closed.

use super::connection::{Connection, closed};
use super::head::Framing;
use super::pool::Place;
use bytes::Bytes;
use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

/// A body that is still coming.
pub struct Answer {
    framing: Framing,
    /// What came together with the head.
    first: Bytes,
    /// `None` once there is nothing more to read.
    from: Option<Box<Connection>>,
    /// Where the connection goes afterwards, if it can be used again.
    back: Option<Place>,
}

impl Answer {
    pub(crate) fn new(framing: Framing, first: Bytes, from: Box<Connection>, back: Option<Place>) -> Answer {
        let mut answer = Answer { framing, first, from: Some(from), back };
        if answer.framing.is_done() {
            let all_read = answer.first.is_empty();
            answer.end(all_read);
        }
        answer
    }

    /// The next piece; `None` at the end.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if !self.first.is_empty() && self.from.is_some() {
                let first = std::mem::take(&mut self.first);
                let taken = self.framing.take(&first);
                match self.took(taken, first.len()) {
                    Ok(data) if data.is_empty() => continue,
                    outcome => return Poll::Ready(Some(outcome)),
                }
            }
            let Some(from) = &mut self.from else { return Poll::Ready(None) };
            let mut taken = Ok(Taken::default());
            let read = ready!(from.poll_read(cx, |bytes| taken = self.framing.take(bytes)));
            match read {
                Ok(0) => {
                    let ends = matches!(self.framing, Framing::UntilClosed);
                    self.end(false);
                    return Poll::Ready((!ends).then(|| Err(closed())));
                }
                Ok(length) => match self.took(taken, length) {
                    Ok(data) if data.is_empty() => {}
                    outcome => return Poll::Ready(Some(outcome)),
                },
                Err(error) => {
                    self.end(false);
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn took(&mut self, taken: io::Result<Taken>, length: usize) -> io::Result<Bytes> {
        match taken {
            Ok(taken) => {
                if self.framing.is_done() {
                    self.end(taken.used == length);
                }
                Ok(taken.data)
            }
            Err(error) => {
                self.end(false);
                Err(error)
            }
        }
    }

    /// The reply is over. A connection on which something came that nobody asked for is closed.
    fn end(&mut self, quiet: bool) {
        if let (Some(connection), Some(place), true) = (self.from.take(), self.back.take(), quiet) {
            place.put_back(connection);
        }
    }

    /// True when nothing more can come.
    pub fn is_end(&self) -> bool {
        self.from.is_none()
    }

    /// At least so many bytes are still to come.
    pub fn expected(&self) -> u64 {
        match self.framing {
            Framing::Length(left) => left,
            _ => 0,
        }
    }
}

/// What a piece of a connection holds of the body.
#[derive(Default)]
struct Taken {
    data: Bytes,
    used: usize,
}

impl Framing {
    fn is_done(&self) -> bool {
        match self {
            Framing::Length(left) => *left == 0,
            Framing::Chunked(chunks) => chunks.is_done(),
            Framing::UntilClosed => false,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<Taken> {
        match self {
            Framing::UntilClosed => Ok(Taken { data: Bytes::copy_from_slice(bytes), used: bytes.len() }),
            Framing::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                Ok(Taken { data: Bytes::copy_from_slice(&bytes[..used]), used })
            }
            Framing::Chunked(chunks) => {
                let bad = |_| io::Error::from(io::ErrorKind::InvalidData);
                let mut used = 0;
                let Some(first) = chunks.next(bytes, &mut used).map_err(bad)? else {
                    return Ok(Taken { data: Bytes::new(), used });
                };
                let first = &bytes[first];
                let Some(second) = chunks.next(bytes, &mut used).map_err(bad)? else {
                    return Ok(Taken { data: Bytes::copy_from_slice(first), used });
                };
                let mut all = Vec::with_capacity(bytes.len());
                all.extend_from_slice(first);
                all.extend_from_slice(&bytes[second]);
                while let Some(piece) = chunks.next(bytes, &mut used).map_err(bad)? {
                    all.extend_from_slice(&bytes[piece]);
                }
                Ok(Taken { data: all.into(), used })
            }
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("framing", &self.framing).field("ended", &self.is_end()).finish_non_exhaustive()
    }
}
