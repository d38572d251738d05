//! Pictures from several requests, from tasks that are waited for, and from links: spooled until
//! all of them are there, so that what is charged is certain before the answer leaves.

use super::answer::Gathered;
use super::call::{Making, broke, no_picture};
use super::links::NotFetched;
use crate::work::spooled_answer::no_room;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::Instant;
use tollgate_media::image::{PictureFormat, PictureTally, ResultWriter, added_usage};
use tollgate_upstream::{Blame, Fault, PictureReply, SpooledFile};

/// Requests of one call that run at the same time.
const PARALLEL: usize = 4;
/// The largest answer about a task.
const TASK: usize = 1 << 20;
/// The longest link that is handed over.
const LONGEST_LINK: usize = 8 << 10;

/// What one of several requests brought.
pub(super) struct PicturesPart {
    pub gathered: Gathered,
    pub failure: Option<Fault>,
}

impl Making<'_> {
    /// One request for each picture. Each may fail alone.
    pub async fn several(&self) -> Result<Gathered, Fault> {
        let parts = stream::iter(0..self.plan.n).map(|_| self.single()).buffered(PARALLEL);
        let parts: Vec<Result<PicturesPart, Fault>> = parts.collect().await;
        let mut whole =
            Gathered::new(self.writer(), PictureTally { asked: self.plan.n, ..PictureTally::default() }, Bytes::new());
        let (mut worst, mut reports): (Option<Fault>, _) = (None, Vec::new());
        for part in parts {
            match part {
                Ok(PicturesPart { mut gathered, failure }) => {
                    reports.extend(gathered.tally.usage.take());
                    whole.append(gathered);
                    worst = worse(worst, failure);
                }
                Err(fault) => worst = worse(worst, Some(fault)),
            }
        }
        if whole.tally.delivered == 0 {
            return Err(worst.unwrap_or_else(no_picture));
        }
        whole.tally.usage = added_usage(&reports);
        Ok(whole)
    }

    pub fn writer(&self) -> ResultWriter {
        self.flow(0).into_writer()
    }

    /// One request for one picture, spooled as it comes.
    pub async fn single(&self) -> Result<PicturesPart, Fault> {
        let (mut body, _) = self.send(1, false).await?;
        if let Some(links) = &self.links {
            return self.linked(links, body, 1).await;
        }
        let mut flow = self.flow(1);
        let mut left = self.most_bytes(1);
        let mut spool = self.spooling().await?;
        while let Some(piece) = body.chunk().await? {
            self.hears();
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.deadline {
                return Err(Fault::idle());
            }
            flow.feed(&piece).map_err(broke)?;
            if flow.took_back() {
                // What lies there was a draft.
                spool = self.spooling().await?;
            }
            if flow.out_len() > 64 << 10 {
                spool.push(&flow.take()).await.map_err(no_room)?;
            }
        }
        let (rest, writer, tally, out) = flow.finish().map_err(broke)?;
        spool.push(&out.into()).await.map_err(no_room)?;
        let file = spool.finish().await.map_err(no_room)?.file;
        let mut gathered = Gathered::new(writer, tally, Bytes::new());
        gathered.add(file, gathered.writer.entries());
        let found = self.found(&rest).await;
        Ok(self.part(gathered, found).await)
    }

    /// What one request brought. One without a picture may have used something all the same.
    pub async fn part(&self, gathered: Gathered, found: Result<PictureReply, Fault>) -> PicturesPart {
        let (failure, usage) = match &found {
            Ok(found) => (found.failure.clone(), found.usage.clone()),
            Err(fault) => (Some(fault.clone()), None),
        };
        match self.gather(gathered, found).await {
            Ok(gathered) => PicturesPart { gathered, failure },
            Err(fault) => {
                let tally = PictureTally { usage, ..PictureTally::default() };
                PicturesPart { gathered: Gathered::new(self.writer(), tally, Bytes::new()), failure: Some(fault) }
            }
        }
    }

    /// What an answer holds besides letters; a task is waited for.
    pub async fn found(&self, rest: &Value) -> Result<PictureReply, Fault> {
        let found = self.maker.read(&self.table.api, rest)?;
        match found.task {
            Some(task) => self.wait(&task).await,
            None => Ok(found),
        }
    }

    /// Asks for a task until it is over or the time is. A question that fails decides nothing; the
    /// time passes all the same.
    async fn wait(&self, task: &str) -> Result<PictureReply, Fault> {
        let settings = &self.provider.settings;
        let until = self.deadline.min(Instant::now() + settings.first_byte);
        let pause = settings.poll_every.unwrap_or(self.maker.poll_every());
        loop {
            tokio::time::sleep(pause).await;
            if Instant::now() >= until {
                return Err(Fault { try_other: false, ..Fault::late() });
            }
            let Some(request) = self.maker.poll(&self.asking(), &self.job(self.plan.n, false), task) else {
                return Err(Fault::garbage());
            };
            let Ok((body, _)) = self.exchange(request, false).await else { continue };
            let Ok(bytes) = body.whole(TASK, until).await else { continue };
            let Ok(reply) = serde_json::from_slice::<Value>(&bytes) else { continue };
            match self.maker.read(&self.table.api, &reply) {
                Ok(found) if found.task.is_some() => {}
                // The task exists, so it is not begun elsewhere.
                Err(fault) if fault.blame == Blame::Provider => return Err(Fault { try_other: false, ..fault }),
                over => return over,
            }
        }
    }

    /// Adds what is there by link, and says why there is nothing.
    pub async fn gather(&self, mut gathered: Gathered, found: Result<PictureReply, Fault>) -> Result<Gathered, Fault> {
        let found = match found {
            Ok(found) => found,
            Err(fault) if gathered.tally.delivered == 0 => return Err(fault),
            Err(_) => PictureReply::default(),
        };
        gathered.tally.usage = found.usage;
        let mut lost = None;
        for (url, prompt) in found.links {
            let address = url.starts_with("https://") || url.starts_with("http://");
            if !address || url.len() > LONGEST_LINK {
                gathered.tally.broken += 1;
                continue;
            }
            if gathered.tally.delivered >= gathered.tally.asked {
                gathered.tally.surplus += 1;
                continue;
            }
            lost = self.add_link(&mut gathered, &url, &prompt).await.or(lost);
        }
        if gathered.tally.delivered == 0 {
            return Err(lost.or(found.failure).unwrap_or_else(no_picture));
        }
        Ok(gathered)
    }

    /// Adds what a link leads to, or the link; where neither is possible, what of it is our own
    /// fault.
    async fn add_link(&self, gathered: &mut Gathered, url: &str, prompt: &str) -> Option<Fault> {
        // Each entry stands alone: what comes between them is put there at the end.
        let mut writer = self.writer();
        if self.plan.format == PictureFormat::Base64 {
            match self.fetched(&mut writer, url, prompt).await {
                Ok(entry) => {
                    gathered.add(entry, 1);
                    gathered.tally.delivered += 1;
                    return None;
                }
                // There is no picture, or no place for its link: it is neither shown nor charged.
                Err(why) if matches!(why, NotFetched::Foreign) || !gathered.writer.has_links() => {
                    gathered.tally.broken += 1;
                    return if let NotFetched::NoRoom(fault) = why { Some(fault) } else { None };
                }
                Err(_) => {
                    gathered.tally.warn(gathered.places, "The picture could not be fetched: it is at its `url`.");
                }
            }
            writer = self.writer();
        }
        let mut out = Vec::new();
        writer.link(&mut out, url, prompt);
        gathered.add(SpooledFile::in_memory(out.into()), 1);
        gathered.tally.delivered += 1;
        None
    }
}

/// The fault that says most: one of the caller's own, then one after which something may have been
/// made. Whichever it is, once something may have been made, nobody makes it again.
fn worse(one: Option<Fault>, other: Option<Fault>) -> Option<Fault> {
    let weight = |fault: &Fault| (fault.blame == Blame::Caller, fault.may_have_begun());
    match (one, other) {
        (Some(one), Some(other)) => {
            let begun = one.may_have_begun() || other.may_have_begun();
            let first = if weight(&other) > weight(&one) { other } else { one };
            let maybe_charged = first.maybe_charged || begun;
            Some(Fault { try_other: first.try_other && !begun, maybe_charged, ..first })
        }
        (one, other) => one.or(other),
    }
}
