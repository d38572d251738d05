//! A spooled file goes to a plain socket from where the system has it in its cache, and not through
//! memory of ours. What is not in the cache is read on a blocking thread, as for a connection with
//! TLS: nobody waits for a disk here.

use std::fs::File;
use std::io;
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// Sent at once, as far as the socket takes it.
#[cfg(target_os = "linux")]
const SENT: u64 = 512 << 10;

/// Sends on from `at`, up to so many bytes. How many the socket took; `None` where they have to be
/// read.
#[cfg(target_os = "linux")]
pub(super) fn poll_send(
    cx: &mut Context<'_>,
    (file, at, left): (&File, u64, u64),
    to: &TcpStream,
) -> Poll<io::Result<Option<u64>>> {
    use std::task::ready;
    use tokio::io::Interest;
    let wanted = left.min(SENT);
    if wanted == 0 || !is_cached(file, at) || !is_cached(file, at + wanted - 1) {
        return Poll::Ready(Ok(None));
    }
    loop {
        ready!(to.poll_write_ready(cx))?;
        let mut from = at;
        let sending = || Ok(rustix::fs::sendfile(to, file, Some(&mut from), usize::try_from(wanted).unwrap_or(0))?);
        match to.try_io(Interest::WRITABLE, sending) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The file has no more: reading it tells why.
            Ok(0) => return Poll::Ready(Ok(None)),
            sent => return Poll::Ready(sent.map(|sent| Some(sent as u64))),
        }
    }
}

/// Whether a byte can be had without waiting. Files are written and read from their beginning to
/// their end, so that what lies between two such bytes is there too, or nearly all of it.
#[cfg(target_os = "linux")]
fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let into = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, into, at, rustix::io::ReadWriteFlags::NOWAIT) == Ok(1)
}

/// Other systems have it in another form, or not at all.
#[cfg(not(target_os = "linux"))]
pub(super) fn poll_send(_: &mut Context<'_>, _: (&File, u64, u64), _: &TcpStream) -> Poll<io::Result<Option<u64>>> {
    Poll::Ready(Ok(None))
}
