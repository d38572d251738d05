//! The verbs: write, send, read. One exchange each; whether and when to repeat is the caller's
//! decision, never ours.

use super::{Alike, Asking, FileLink, Handle, Job, Sought, VideoMaker, VideoReport, VideoSearch, VideoStanding};
use crate::{Client, Fault, IncomingBody, Outgoing, ReplyBody, WholeReply, is_encoded};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, LOCATION, RANGE};
use http::{HeaderMap, Response};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_media::video::REMIX;

/// Longest answer about a task.
const REPLY: usize = 1 << 20;
/// Most pages of a provider's list that are read for one lost task.
const PAGES: usize = 50;
/// Longest reading of one.
const READING: Duration = Duration::from_secs(60);

/// Waits until one more request may be sent; `false`: not now.
pub type SendTurn<'a> = dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> + Sync + 'a;

/// Creates a task and gives the provider's id of it. Send once: a fault with `maybe_charged` means
/// that the task may exist.
pub async fn create(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    job: &Job<'_>,
) -> Result<String, Fault> {
    let request = video.create(asking, job).ok_or_else(Fault::unreachable)?;
    let reply = exchange_fresh(client, asking, request).await?;
    match job.plan.call {
        REMIX => video.remixed(job.plan.api(), &reply),
        _ => video.created(job.plan.api(), &reply),
    }
}

/// Asks how a task stands, and goes on to its file where the provider keeps the link there. A fault
/// decides nothing about the task. `turn` is waited for before a second request; that of the first
/// is the caller's.
pub async fn poll(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    task: &Handle<'_>,
    turn: &SendTurn<'_>,
) -> Result<VideoReport, Fault> {
    let request = video.poll(asking, task).ok_or_else(Fault::unreachable)?;
    let reply = exchange(client, asking, request).await?;
    let mut report = video.polled(task, &reply)?;
    if let Some(id) =
        report.file.as_deref().filter(|_| report.standing == VideoStanding::Succeeded && report.link.is_none())
    {
        if !turn().await {
            return Err(Fault::no_turn());
        }
        report.link = file(client, video, asking, id).await?;
    }
    Ok(report)
}

/// The link of a finished file; asked again, a fresh one.
pub async fn file(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    id: &str,
) -> Result<Option<FileLink>, Fault> {
    let Some(request) = video.file(asking, id) else { return Ok(None) };
    let reply = exchange(client, asking, request).await?;
    video.filed(&reply)
}

/// Looks for a task whose creation was not answered, page by page; `None` where the provider has no
/// way to. `turn` is waited for before each page but the first; without one the list is not read
/// further.
pub async fn find(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    sought: &Sought<'_>,
    turn: &SendTurn<'_>,
) -> Result<Option<VideoSearch>, Fault> {
    let mut cursor: Option<String> = None;
    let mut alike = Vec::new();
    for page in 0..PAGES {
        if page > 0 && !turn().await {
            break;
        }
        let Some(request) = video.find(asking, sought, cursor.as_deref()) else { return Ok(None) };
        let reply = exchange(client, asking, request).await?;
        let mut page = video.found(sought, cursor.as_deref(), &reply)?;
        if let Some(ours) = page.ours {
            return Ok(Some(VideoSearch::Exactly(ours)));
        }
        // New entries push others to the next page, where they are seen again.
        page.alike.retain(|one: &Alike| alike.iter().all(|other: &Alike| other.id != one.id));
        alike.append(&mut page.alike);
        cursor = page.next;
        if cursor.is_none() {
            let nothing = alike.is_empty();
            return Ok(Some(if nothing { VideoSearch::Nothing } else { VideoSearch::Perhaps { alike, whole: true } }));
        }
    }
    // There was more than we read: that it was not seen does not mean that it is not there.
    Ok(Some(VideoSearch::Perhaps { alike, whole: false }))
}

/// Asks the provider to drop a task. `Ok(false)` where it cannot or will not.
pub async fn cancel(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    task: &Handle<'_>,
) -> Result<bool, Fault> {
    let Some(request) = video.cancel(asking, task) else { return Ok(false) };
    Ok(exchange(client, asking, request).await?.is_ok())
}

/// Asks the provider to delete a task that has ended, and its video with it. `Ok(false)` where it
/// cannot or will not.
pub async fn forget(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    task: &Handle<'_>,
) -> Result<bool, Fault> {
    let Some(request) = video.forget(asking, task) else { return Ok(false) };
    Ok(exchange(client, asking, request).await?.is_ok())
}

/// Another video from a finished one; `None` where the provider has no such thing. As costly as
/// [`create`].
pub async fn remix(
    client: &Client,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    task: &Handle<'_>,
    prompt: &str,
) -> Result<Option<String>, Fault> {
    let Some(request) = video.remix(asking, task, prompt) else { return Ok(None) };
    let reply = exchange_fresh(client, asking, request).await?;
    video.remixed(task.api, &reply).map(Some)
}

/// A file that is being read.
#[derive(Debug)]
pub struct OpenFile {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: ReplyBody,
}

/// Two clients: one for providers, one for links that only they have written.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    pub client: &'a Client,
    /// Connects to public addresses only.
    pub public: &'a Client,
}

/// Opens the finished file; `range` is the value of a `Range` header. One redirect is followed,
/// without the key. A link that does not lead to the provider itself may only lead to a public
/// address, unless the provider is configured otherwise.
pub async fn fetch(
    reach: Reach<'_>,
    video: &dyn VideoMaker,
    asking: &Asking<'_>,
    task: &Handle<'_>,
    link: &FileLink,
    range: Option<&http::HeaderValue>,
) -> Result<OpenFile, Fault> {
    let mut request = video.content(asking, task, link).ok_or_else(Fault::garbage)?;
    for redirects in [1, 0] {
        if let Some(range) = range {
            request.headers_mut().insert(RANGE, range.clone());
        }
        let inside = asking.provider.settings.private_links || asking.is_own(&request.uri().to_string());
        let client = if inside { reach.client } else { reach.public };
        let (head, body) = client.send(asking.provider, request).await?.into_parts();
        let status = head.status.as_u16();
        let elsewhere = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        if redirects > 0
            && head.status.is_redirection()
            && let Some(next) = elsewhere.and_then(|url| asking.plain(url))
        {
            request = next;
            continue;
        }
        if is_encoded(&head.headers) {
            return Err(Fault::encoded());
        }
        if brings_a_file(status, &head.headers) || status == 416 {
            return Ok(OpenFile {
                status,
                headers: head.headers,
                body: ReplyBody::new(body, asking.provider.settings.idle),
            });
        }
        return Err(Fault::no_file(status));
    }
    Err(Fault { maybe_charged: false, ..Fault::garbage() })
}

/// 200 and 206 with something in it: a server that has no content to give says so with success,
/// too.
fn brings_a_file(status: u16, headers: &HeaderMap) -> bool {
    matches!(status, 200 | 206) && headers.get(CONTENT_LENGTH).is_none_or(|length| length != "0")
}

async fn exchange(client: &Client, asking: &Asking<'_>, request: Outgoing) -> Result<WholeReply, Fault> {
    read(asking, client.send(asking.provider, request).await?).await
}

/// For what makes something: a connection that breaks says nothing of whether it was made, so none
/// is used that may be closing already.
async fn exchange_fresh(client: &Client, asking: &Asking<'_>, request: Outgoing) -> Result<WholeReply, Fault> {
    read(asking, client.send_fresh(asking.provider, request).await?).await
}

async fn read(asking: &Asking<'_>, response: Response<IncomingBody>) -> Result<WholeReply, Fault> {
    let (head, body) = response.into_parts();
    let body = match is_encoded(&head.headers) {
        // What it has done cannot be read.
        true if head.status.is_success() => return Err(Fault { maybe_charged: true, ..Fault::encoded() }),
        // The status alone must do.
        true => Bytes::new(),
        false => ReplyBody::new(body, asking.provider.settings.idle).whole(REPLY, Instant::now() + READING).await?,
    };
    Ok(WholeReply { status: head.status.as_u16(), headers: head.headers, body })
}
