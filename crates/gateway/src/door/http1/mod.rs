//! HTTP/1.1 with clients. One task serves a connection: it reads the head of a request, lets it be
//! answered, and sends the reply. No other task and no queue is between the socket and whoever
//! answers, and a connection on which nothing moves has no buffer (docs/decisions/0039).
//!
//! A client that leaves is noticed while its request is answered, and the answering is dropped: the
//! call settles as one whose client left. A body is read when it is asked for. What a request did
//! not read of it is thrown away if that is little; otherwise the reply says that it is the last.

mod channel;
mod date;
mod head;
mod reply;
mod takeover;

pub use takeover::ConnectionClaim;

use super::connections::Seat;
use super::last_word::last_word;
use super::protocol::BegunStream;
use super::unread;
use axum::body::Body;
use channel::Channel;
use head::{BadRequest, RequestHead, says};
use http::{Request, Response, StatusCode, header};
use reply::{ReplyEnd, ReplyTo, Sending};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use takeover::HandOver;
use tokio_util::sync::CancellationToken;
use tollgate_wire::error::Code;

/// What becomes of a connection after a request.
enum After {
    Again,
    Close,
    /// It is closed without a word: its client has left, or must see that something is missing.
    Drop,
    HandOver(HandOver),
}

/// Serves a connection until it ends. After a stop it takes no further request.
pub async fn serve<F>(
    begun: BegunStream,
    seat: &Arc<Seat>,
    stop: &CancellationToken,
    answer: impl Fn(Request<Body>) -> F,
) where
    F: Future<Output = Response<Body>>,
{
    let channel = Arc::new(Channel::new(begun));
    loop {
        let head = match next_head(&channel, stop).await {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(bad) => {
                seat.linger();
                let refused = last_word(bad.status, &[], Code::InvalidRequest, bad.text);
                if channel.say(&refused).await.is_err() {
                    return;
                }
                break;
            }
        };
        let Some(_under_way) = seat.begin(false) else {
            // The connection was asked to go; its task ends here.
            return std::future::pending().await;
        };
        match exchange(&channel, head, seat, stop, &answer).await {
            After::Again => {}
            After::Close => break,
            After::Drop => return,
            After::HandOver(to) => {
                seat.hand_over();
                if let Some(channel) = Arc::into_inner(channel) {
                    to.give(channel.into_stream());
                }
                return;
            }
        }
    }
    channel.close().await;
}

/// The next request. After a stop only one that has already begun to come.
async fn next_head(channel: &Channel, stop: &CancellationToken) -> Result<Option<RequestHead>, BadRequest> {
    let mut stopped = pin!(stop.cancelled());
    poll_fn(|cx| {
        let head = channel.poll_head(cx);
        let over = head.is_pending() && stopped.as_mut().poll(cx).is_ready() && channel.is_silent();
        if over { Poll::Ready(Ok(None)) } else { head }
    })
    .await
}

/// One request and its reply.
async fn exchange<F>(
    channel: &Arc<Channel>,
    head: RequestHead,
    seat: &Seat,
    stop: &CancellationToken,
    answer: impl Fn(Request<Body>) -> F,
) -> After
where
    F: Future<Output = Response<Body>>,
{
    let RequestHead { request, body, stays, expects, upgrades } = head;
    let mut to = ReplyTo { method: request.method().clone(), version: request.version(), stays };
    let mut request = request.map(|()| channel.begin_body(body, expects));
    let hand_over = upgrades.then(|| {
        let (hand_over, claim) = takeover::claim();
        request.extensions_mut().insert(claim);
        hand_over
    });
    let answered = {
        let mut answering = pin!(answer(request));
        poll_fn(|cx| match answering.as_mut().poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending => channel.poll_gone(cx).map(|()| None),
        })
        .await
    };
    let Some(reply) = answered else { return After::Drop };
    to.stays &= settle(channel, reply.status(), seat).await && !stop.is_cancelled();
    to.stays &= !says(reply.headers(), &header::CONNECTION, "close");
    let switches = reply.status() == StatusCode::SWITCHING_PROTOCOLS;
    let mut sending = Sending::new(reply, &to);
    match (poll_fn(|cx| sending.poll(cx, channel)).await, hand_over) {
        (Ok(ReplyEnd::Broken) | Err(_), _) => After::Drop,
        (Ok(_), hand_over) if switches => hand_over.map_or(After::Drop, After::HandOver),
        (Ok(ReplyEnd::Last), _) => After::Close,
        (Ok(ReplyEnd::Whole), _) if channel.is_at_end() => After::Again,
        (Ok(ReplyEnd::Whole), _) => {
            seat.linger();
            After::Close
        }
    }
}

/// Whether nothing is left of the request that would be in the way of the next one.
async fn settle(channel: &Arc<Channel>, status: StatusCode, seat: &Seat) -> bool {
    let Some(unread) = channel.unread() else { return true };
    // Reading would tell a client that waits to send what nobody wants; and one that was too slow
    // will not be quick now.
    let worth_it = !channel.client_waits() && status != StatusCode::REQUEST_TIMEOUT;
    let settled = worth_it && unread::small_and_whole(unread).await;
    if !settled {
        seat.linger();
    }
    settled
}
