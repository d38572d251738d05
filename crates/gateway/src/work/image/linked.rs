//! Pictures whose maker hands over base64 and whose caller wants links: taken out of the answer as
//! bytes while it arrives, put into our own store, and handed over by links of ours. A picture that
//! finds no room there is handed over as `b64_json` after all: it is made, and paid. So is a
//! drawing, because a browser runs what is written in one: none is served at an address of ours.

use super::answer::Gathered;
use super::call::{Making, broke};
use super::gather::PicturesPart;
use super::store::PictureStore;
use crate::door::spool::{FileWatch, Spooling};
use crate::work::files::{NotStored, Uncopied};
use crate::work::spooled_answer::{self, no_room};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_media::image::{
    Base64Encoder, ENOUGH_OF_TEXT, PictureKind, PicturePart, PictureRecords, PictureTally, ResultStyle, made_kind,
};
use tollgate_upstream::{Fault, ReplyBody, SpooledFile};

/// The longest that putting one picture there takes.
const LONGEST: Duration = Duration::from_secs(60);

/// Where the pictures of a call go.
pub(super) struct OwnLinks<'a> {
    pub store: &'a PictureStore,
    /// Where the caller reaches us.
    pub base: &'a str,
    /// Pictures so far.
    pub made: AtomicU64,
}

/// The first bytes of a picture, which say what it is.
#[derive(Default)]
struct Beginning(Vec<u8>);

impl FileWatch for Beginning {
    fn piece(&mut self, bytes: &[u8]) {
        let room = ENOUGH_OF_TEXT.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// A picture, and what became of its prompt.
struct TakenPicture {
    file: SpooledFile,
    kind: PictureKind,
    prompt: String,
}

/// Pictures of one answer as they come out of it.
#[derive(Default)]
struct Taking {
    records: PictureRecords,
    open: Option<Spooling<Beginning>>,
    all: Vec<TakenPicture>,
}

impl Making<'_> {
    /// The pictures of one answer, handed over by links of ours.
    pub(super) async fn linked(
        &self,
        links: &OwnLinks<'_>,
        mut body: ReplyBody,
        n: u64,
    ) -> Result<PicturesPart, Fault> {
        let mut flow = self.flow_as(ResultStyle::Letters, n);
        let mut left = self.most_bytes(n);
        let mut taking = Taking::default();
        while let Some(piece) = body.chunk().await? {
            self.hears();
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.deadline {
                return Err(Fault::idle());
            }
            flow.feed(&piece).map_err(broke)?;
            if flow.took_back() {
                // What was taken was a draft.
                taking = Taking::default();
            }
            if flow.out_len() > 64 << 10 {
                self.take(&mut taking, &flow.take()).await?;
            }
        }
        let (rest, _, tally, out) = flow.finish().map_err(broke)?;
        self.take(&mut taking, &out).await?;
        let mut writer = self.writer();
        writer.learn(&rest);
        let mut gathered = Gathered::new(writer, tally, Bytes::new());
        let mut lost = None;
        for picture in taking.all {
            let place = gathered.places;
            match self.entry(links, picture, place, &mut gathered.tally).await {
                Ok(entry) => gathered.add(entry, 1),
                // Those before it are stored already, and are handed over.
                Err(fault) => {
                    gathered.tally.delivered = gathered.tally.delivered.saturating_sub(1);
                    gathered.tally.broken += 1;
                    lost = Some(fault);
                }
            }
        }
        let mut found = self.found(&rest).await;
        if let Ok(found) = &mut found {
            found.failure = lost.or(found.failure.take());
        }
        Ok(self.part(gathered, found).await)
    }

    /// The next letters of the answer.
    async fn take(&self, taking: &mut Taking, text: &[u8]) -> Result<(), Fault> {
        for part in taking.records.feed(text) {
            match part {
                PicturePart::Bytes(bytes) => {
                    if taking.open.is_none() {
                        taking.open = Some(self.spooling_as(Beginning::default()).await?);
                    }
                    if let Some(file) = &mut taking.open {
                        file.push(&bytes.into()).await.map_err(no_room)?;
                    }
                }
                PicturePart::End { whole, prompt } => {
                    let Some(file) = taking.open.take().filter(|_| whole) else { continue };
                    let file = file.finish().await.map_err(no_room)?;
                    if let Some(kind) = made_kind(&file.watch.0) {
                        taking.all.push(TakenPicture { file: file.file, kind, prompt });
                    }
                }
            }
        }
        Ok(())
    }

    /// The entry of a picture, which stands at this place: a link of ours, or the picture itself.
    async fn entry(
        &self,
        links: &OwnLinks<'_>,
        picture: TakenPicture,
        place: u64,
        tally: &mut PictureTally,
    ) -> Result<SpooledFile, Fault> {
        let kind = picture.kind;
        let mut writer = self.writer();
        if kind != PictureKind::Svg
            && let Some(url) = self.link(links, &picture).await
        {
            let mut out = Vec::new();
            writer.open(&mut out, Some(kind));
            writer.close(&mut out, &url, Some(picture.prompt.as_bytes()));
            return Ok(SpooledFile::in_memory(out.into()));
        }
        let TakenPicture { file, prompt, .. } = picture;
        let mut spool = self.spooling().await?;
        let (mut out, mut encoder) = (Vec::new(), Base64Encoder::default());
        writer.open(&mut out, Some(kind));
        let mut pieces = Box::pin(spooled_answer::pieces(file));
        while let Some(piece) = pieces.next().await {
            encoder.feed(&piece?, &mut out);
            spool.push(&Bytes::from(std::mem::take(&mut out))).await.map_err(no_room)?;
        }
        encoder.finish(&mut out);
        writer.close(&mut out, "", Some(prompt.as_bytes()));
        spool.push(&out.into()).await.map_err(no_room)?;
        let file = spool.finish().await.map_err(no_room)?.file;
        let why = match kind {
            PictureKind::Svg => "The gateway has no links to drawings: it is in `b64_json`.",
            _ => "The gateway could not keep the picture: it is in `b64_json`.",
        };
        tally.warn(place, why);
        Ok(file)
    }

    /// A link to a picture that is stored now; none where that cannot be.
    async fn link(&self, links: &OwnLinks<'_>, picture: &TakenPicture) -> Option<String> {
        let number = links.made.fetch_add(1, Ordering::Relaxed);
        let now = self.till.world.now_ms();
        let until = self.deadline.min(Instant::now() + LONGEST);
        let cut = async {
            tokio::time::sleep_until(until).await;
            Uncopied::TooSlow
        };
        let stored = (picture.file.clone(), picture.kind);
        match links.store.put((&self.call_id, number), self.account, stored, now, cut).await {
            Ok(name) => return Some(links.store.link(&self.desk.secrets, links.base, &name, now)),
            Err(NotStored::Full) => tracing::info!(call = %self.call_id, "there is no room to keep a picture"),
            Err(NotStored::Trouble(why)) => tracing::warn!(call = %self.call_id, %why, "a picture could not be stored"),
        }
        None
    }
}
