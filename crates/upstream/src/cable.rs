//! The connection under the client: the network; in a simulation, memory. Without the `testing`
//! feature there is one kind only, and nothing is decided at run time.

use crate::reach::Resolver;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the other end of a connection to an address; an error is a refused one.
#[cfg(feature = "testing")]
pub type Dial = std::sync::Arc<dyn Fn(&Uri) -> io::Result<tokio::io::DuplexStream> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Connector {
    Net(Timed<HttpsConnector<HttpConnector<Resolver>>>),
    #[cfg(feature = "testing")]
    Memory(Dial),
}

#[cfg_attr(feature = "testing", expect(clippy::large_enum_variant, reason = "the small one is for simulations"))]
pub(crate) enum Cable {
    Net(MaybeHttpsStream<TokioIo<TcpStream>>),
    #[cfg(feature = "testing")]
    Memory(TokioIo<tokio::io::DuplexStream>),
}

impl Cable {
    /// The socket, where nothing lies between it and the bytes.
    pub fn plain(&self) -> Option<&TcpStream> {
        match self {
            Cable::Net(MaybeHttpsStream::Http(io)) => Some(io.inner()),
            _ => None,
        }
    }
}

/// The end that the client holds.
macro_rules! end {
    ($self:ident, $end:ident => $body:expr) => {
        match $self.get_mut() {
            Cable::Net($end) => $body,
            #[cfg(feature = "testing")]
            Cable::Memory($end) => $body,
        }
    };
}

impl Service<Uri> for Connector {
    type Response = Cable;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Cable, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Connector::Net(net) => net.inner.poll_ready(cx),
            #[cfg(feature = "testing")]
            Connector::Memory(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Connector::Net(net) => {
                let connecting = tokio::time::timeout(net.limit, net.inner.call(uri));
                Box::pin(async move { Ok(Cable::Net(connecting.await??)) })
            }
            #[cfg(feature = "testing")]
            Connector::Memory(dial) => {
                let dialled = dial(&uri);
                Box::pin(async move { Ok(Cable::Memory(TokioIo::new(dialled?))) })
            }
        }
    }
}

/// Bounds the whole making of a connection: the TCP connector's own limit ends before TLS.
#[derive(Clone, Debug)]
pub(crate) struct Timed<C> {
    pub inner: C,
    pub limit: Duration,
}

impl Read for Cable {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        end!(self, end => Pin::new(end).poll_read(cx, into))
    }
}

impl Write for Cable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        end!(self, end => Pin::new(end).poll_write(cx, from))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        end!(self, end => Pin::new(end).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        end!(self, end => Pin::new(end).poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Cable::Net(net) => net.is_write_vectored(),
            #[cfg(feature = "testing")]
            Cable::Memory(memory) => memory.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        end!(self, end => Pin::new(end).poll_write_vectored(cx, from))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
