//! Gemini Live: the same sessions as `GET /v1/realtime`, for clients of Google's interface. The
//! model is named in the first frame, so the connection becomes a WebSocket before anything is paid
//! for; what is refused after that is said in the reason of the close, as Google does.

use super::auth_tokens::LiveToken;
use super::upgrade::SocketRequest;
use super::{chat, reading};
use crate::app::App;
use crate::door::bodies::{BodyShare, Whose};
use crate::door::counted::Counted;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::who::client_secret::{RealtimeCaller, open_realtime};
use crate::work::realtime::Opening;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tollgate_media::realtime::{GeminiClient, LiveFrame, gemini_setup_model};
use tollgate_store::CallId;
use tollgate_wire::Dialect;

/// Every version that SDKs name; `Constrained` is what clients with an ephemeral token call it.
pub const ENDPOINTS: [&str; 6] = [
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    "/ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContent",
    "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContent",
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContentConstrained",
    "/ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContentConstrained",
    "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained",
];
/// The longest first frame, and how long it is waited for.
const SETUP_BYTES: usize = 1 << 20;
const SETUP_TIME: Duration = Duration::from_secs(30);
/// Most first frames are small.
const READ_AT_ONCE: usize = 8 << 10;
/// The last words are given so long.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The longest reason that fits into a close frame.
const REASON: usize = 123;

pub async fn open(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Gemini, id, || upgrade(&app, id, request)).await
}

async fn upgrade(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    // Whoever has no key is not even listened to.
    let RealtimeCaller { caller, bound } = open_realtime(&app.register(), &parts).await?;
    let token = bound.map(LiveToken::read).transpose()?;
    let socket = SocketRequest::read(app, &mut parts, "`GET` opens a WebSocket here.")?;
    let reply = socket.reply();
    let SocketRequest { connection, place, .. } = socket;
    let app = Arc::clone(app);
    app.tracker.clone().spawn(async move {
        let _place = place;
        let Some(io) = connection.stream().await else { return };
        let stopping = app.realtime.till.shutdown.stopping.clone();
        let whose = Whose::Account(caller.account.id);
        let io = Counted::new(io, app.bodies.clone(), whose, SETUP_BYTES);
        let listening = tokio::time::timeout(SETUP_TIME, first_frame(io));
        let (frame, room, io) = tokio::select! {
            () = stopping.cancelled() => return,
            heard = listening => match heard {
                Ok(Some(heard)) => heard,
                // Nobody who said anything.
                Ok(None) | Err(_) => return,
            },
        };
        let model = match gemini_setup_model(&frame) {
            Ok(model) => model,
            Err(fault) => return turn_away(io, CloseCode::Invalid, &fault.0).await,
        };
        let opening = async {
            let opening = opening(&app, caller, model, token).await?;
            app.realtime.open(id, opening).await
        };
        match reading::guarded(opening).await {
            Ok(session) => {
                // The session counts what it reads by itself.
                drop(room);
                session.run(io.again()).await;
            }
            Err(refusal) => {
                app.metrics.refused(refusal.code.code());
                let code = if refusal.code.status() >= 500 { CloseCode::Error } else { CloseCode::Policy };
                turn_away(io, code, &refusal.message).await;
            }
        }
    });
    Ok(reply)
}

/// A session with this model, as far as a token allows it.
async fn opening(app: &App, caller: Arc<Caller>, model: String, token: Option<LiveToken>) -> Result<Opening, Refusal> {
    let client = GeminiClient::new(None);
    let (client, longest) = match token {
        None => (client, None),
        Some(token) => {
            let longest = token.admits(app, &model).await?;
            (client.locked(token.locked), Some(longest))
        }
    };
    let form = Some(Box::new(client) as Box<_>);
    Ok(Opening { caller, model, transcription: false, configured: None, longest, form })
}

/// The first frame, with its room and the connection on which it came.
async fn first_frame<T: AsyncRead + AsyncWrite + Unpin>(
    io: Counted<T>,
) -> Option<(LiveFrame, Option<BodyShare>, Replay<T>)> {
    let io = Replay { io, seen: Vec::new(), at: 0, records: true };
    let limits = WebSocketConfig::default()
        .max_message_size(Some(SETUP_BYTES))
        .max_frame_size(Some(SETUP_BYTES))
        .read_buffer_size(READ_AT_ONCE);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
    let frame = loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => break LiveFrame::Text(text.as_str().to_owned()),
            Ok(Message::Binary(bytes)) => break LiveFrame::Binary(bytes),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_) | Message::Frame(_)) | Err(_) => return None,
        }
    };
    let Replay { io, seen, at, records } = socket.into_inner();
    let (io, room) = io.into_parts();
    Some((frame, room, Replay { io, seen, at, records }))
}

async fn turn_away<T: AsyncRead + AsyncWrite + Unpin>(io: Replay<T>, code: CloseCode, reason: &str) {
    let reason = &reason[..reason.floor_char_boundary(REASON)];
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let frame = CloseFrame { code, reason: reason.to_owned().into() };
    let saying = async {
        if socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    // A client that does not answer has had its time.
    let _late = tokio::time::timeout(LAST_WORDS, saying).await;
}

/// A connection whose first bytes are read twice: once for the name of the model, once by the
/// session.
struct Replay<T> {
    io: T,
    seen: Vec<u8>,
    at: usize,
    records: bool,
}

impl<T> Replay<T> {
    /// From its beginning.
    fn again(self) -> Replay<T> {
        Replay { records: false, at: 0, ..self }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Replay<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.records && this.at < this.seen.len() {
            let rest = &this.seen[this.at..];
            let taken = rest.len().min(buf.remaining());
            buf.put_slice(&rest[..taken]);
            this.at += taken;
            if this.at == this.seen.len() {
                (this.seen, this.at) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        if this.records {
            this.seen.extend_from_slice(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Replay<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::bodies::Bodies;
    use futures_util::SinkExt as _;

    #[tokio::test]
    async fn the_first_frame_is_there_again() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        for text in ["one", "two"] {
            client.send(Message::text(text)).await.expect("sent");
        }
        let bodies = Bodies::new(1 << 20, 1 << 20);
        let ours = Counted::new(ours, bodies.clone(), Whose::Penniless, SETUP_BYTES);
        let (frame, room, io) = first_frame(ours).await.expect("a frame");
        assert_eq!(frame, LiveFrame::Text("one".to_owned()));
        assert!(room.is_some() && bodies.used() > 0, "it is counted among all bodies");
        drop(room);
        assert_eq!(bodies.used(), 0);
        let mut again = WebSocketStream::from_raw_socket(io.again(), Role::Server, None).await;
        client.send(Message::text("three")).await.expect("sent");
        for text in ["one", "two", "three"] {
            assert_eq!(again.next().await.expect("a frame").expect("whole"), Message::text(text));
        }
    }
}
