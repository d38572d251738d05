//! Recordings that a provider takes by their address and writes down later: put into its store,
//! begun once, waited for within the call, and read from a link. A task that was begun is never
//! begun again; what is lost after that is free, and nobody else is asked.

use super::call::{TranscriptionCall, Way};
use crate::call::{Begun, Call};
use bytes::Bytes;
use tokio::time::Instant;
use tollgate_upstream::transcription::{RecordingStanding, TranscriptionTasks, TranscriptionUsage};
use tollgate_upstream::video::Asking;
use tollgate_upstream::{
    Blame, Fault, Outgoing, ReplyBody, SpooledFile, WholeReply, is_encoded, open_link, send_to_link,
};

/// A transcript of a recording in which nobody speaks.
const SILENCE: &[u8] = br#"{"transcripts":[]}"#;
/// The largest answer about a store or a task.
const TASK: usize = 1 << 20;

impl TranscriptionCall {
    /// A transcript from a provider with tasks.
    pub(super) async fn by_task(
        &self,
        call: &mut Call,
        way: &Way<'_>,
        tasks: &'static dyn TranscriptionTasks,
    ) -> Result<Begun, Fault> {
        let address = self.put(call, way, tasks).await.map_err(unbegun)?;
        let begin = tasks.begin(way.provider, &way.ask, &address).ok_or_else(Fault::unreachable)?;
        // From here on it costs.
        let reply = call.till.client.send_fresh(way.provider, begin).await?;
        let begun = self.answered(call, way, reply, call.deadline).await?;
        let over = match tasks.standing(&begun).map_err(once)? {
            RecordingStanding::Open(task) => self.wait(call, way, tasks, &task).await?,
            over => over,
        };
        call.first_byte_at = Some(call.till.world.now_ms());
        let (reply, report) = match over {
            RecordingStanding::Done { link, report } => (self.behind(call, way, &link).await.map_err(once)?, report),
            RecordingStanding::Silent | RecordingStanding::Open(_) => {
                (SpooledFile::in_memory(Bytes::from_static(SILENCE)), TranscriptionUsage::default())
            }
        };
        let shape = way.maker.shape(self.asked.request.format).ok_or_else(Fault::garbage)?;
        self.rewritten(call, way, shape, &reply, Some(report)).await.map_err(once)
    }

    /// Puts the file into the provider's store. Nothing of it costs.
    async fn put(&self, call: &Call, way: &Way<'_>, tasks: &'static dyn TranscriptionTasks) -> Result<String, Fault> {
        let request = tasks.place(way.provider, &way.ask).ok_or_else(Fault::unreachable)?;
        let reply = call.till.client.send(way.provider, request).await?;
        let place = self.answered(call, way, reply, call.deadline).await?;
        let upload = tasks.upload(&way.ask, &place)?;
        let clients = (&call.till.client, &self.outside);
        let stored = send_to_link(clients, &asking(call, way), upload.request).await?;
        match stored.status().is_success() {
            true => Ok(upload.address),
            false => Err(Fault::no_file(stored.status().as_u16())),
        }
    }

    /// Asks about a task until it is over or the time is. A question that fails decides nothing;
    /// the time passes all the same.
    async fn wait(
        &self,
        call: &Call,
        way: &Way<'_>,
        tasks: &'static dyn TranscriptionTasks,
        task: &str,
    ) -> Result<RecordingStanding, Fault> {
        let settings = &way.provider.settings;
        let until = call.deadline.min(Instant::now() + settings.first_byte);
        let pause = settings.poll_every.unwrap_or(tasks.poll_every());
        loop {
            tokio::time::sleep(pause).await;
            if Instant::now() >= until {
                return Err(once(Fault::late()));
            }
            let request = tasks.poll(way.provider, task).ok_or_else(|| once(Fault::garbage()))?;
            let Ok(reply) = self.question(call, way, request, until).await else { continue };
            match tasks.standing(&reply) {
                Ok(RecordingStanding::Open(_)) => {}
                Err(fault) => return Err(once(fault)),
                over => return over,
            }
        }
    }

    async fn question(
        &self,
        call: &Call,
        way: &Way<'_>,
        request: Outgoing,
        until: Instant,
    ) -> Result<WholeReply, Fault> {
        let reply = call.till.client.send(way.provider, request).await?;
        self.answered(call, way, reply, until).await
    }

    /// All of a short answer, or why it is none.
    async fn answered(
        &self,
        call: &Call,
        way: &Way<'_>,
        reply: http::Response<tollgate_upstream::IncomingBody>,
        until: Instant,
    ) -> Result<WholeReply, Fault> {
        if !reply.status().is_success() {
            return Err(way.maker.fault(&call.till.client.refused(way.provider, reply).await));
        }
        if is_encoded(reply.headers()) {
            return Err(Fault { maybe_charged: true, ..Fault::encoded() });
        }
        let (head, body) = reply.into_parts();
        let body = ReplyBody::new(body, way.provider.settings.idle).whole(TASK, until).await?;
        Ok(WholeReply { status: 200, headers: head.headers, body })
    }

    /// The transcript behind a link; asked for once more when it does not come.
    async fn behind(&self, call: &Call, way: &Way<'_>, link: &str) -> Result<SpooledFile, Fault> {
        match self.fetched(call, way, link).await {
            Err(fault) if fault.blame != Blame::Caller => self.fetched(call, way, link).await,
            fetched => fetched,
        }
    }

    async fn fetched(&self, call: &Call, way: &Way<'_>, link: &str) -> Result<SpooledFile, Fault> {
        let body = open_link((&call.till.client, &self.outside), &asking(call, way), link).await?;
        self.spooled(call, body, way.provider.settings.max_reply_bytes).await
    }
}

fn asking<'a>(call: &Call, way: &Way<'a>) -> Asking<'a> {
    Asking { provider: way.provider, now: call.till.world.now_ms() / 1_000 }
}

/// Nothing was begun, so another route may be tried.
fn unbegun(fault: Fault) -> Fault {
    match fault.blame {
        Blame::Caller => fault,
        _ => Fault { maybe_charged: false, try_other: true, ..fault },
    }
}

/// The task exists, so it is not begun elsewhere.
fn once(fault: Fault) -> Fault {
    Fault { try_other: false, ..fault }
}
