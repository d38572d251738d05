//! What came together becomes our answer: whole while it is small, else piece by piece.

use super::call::{HELD, Making, broke, metered, no_picture};
use crate::call::{Begun, Call, Meter, Rewrite, WholeAnswer};
use crate::work::spooled_answer;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use std::borrow::Cow;
use tollgate_media::image::{PictureFlow, PictureTally, ResultWriter};
use tollgate_upstream::{Fault, ImageMaker, SpooledFile};
use tollgate_wire::HiddenCosts;

/// Entries of the result, and what is known of them.
pub(super) struct Gathered {
    pub writer: ResultWriter,
    pub tally: PictureTally,
    /// Texts of entries, each of one or several with commas between them.
    pub entries: Vec<SpooledFile>,
    /// How many entries these are.
    pub places: u64,
}

impl Gathered {
    pub fn new(writer: ResultWriter, tally: PictureTally, entries: Bytes) -> Gathered {
        let mut gathered = Gathered { writer, tally, entries: Vec::new(), places: 0 };
        gathered.add(SpooledFile::in_memory(entries), gathered.writer.entries());
        gathered
    }

    /// So many more entries.
    pub fn add(&mut self, entries: SpooledFile, places: u64) {
        if entries.length() > 0 {
            self.entries.push(entries);
            self.places += places;
        }
    }

    /// What another request for the same call brought: its pictures stand behind these.
    pub fn append(&mut self, part: Gathered) {
        self.tally.delivered += part.tally.delivered;
        self.tally.broken += part.tally.broken;
        self.tally.surplus += part.tally.surplus;
        for (place, text) in part.tally.warnings {
            self.tally.warn(self.places + place, &text);
        }
        self.entries.extend(part.entries);
        self.places += part.places;
    }
}

impl Making<'_> {
    /// What of a report is not for the client.
    pub fn hidden(&self) -> Option<HiddenCosts> {
        self.provider.settings.quirks.hidden_costs()
    }

    /// All pictures are there and counted.
    pub fn answer(&self, call: &mut Call, gathered: Gathered) -> Result<Begun, Fault> {
        let Gathered { writer, tally, entries, .. } = gathered;
        if tally.delivered == 0 {
            return Err(no_picture());
        }
        if tally.surplus > 0 {
            tracing::info!(call = %call.id, provider = self.provider.name, surplus = tally.surplus, "a provider made more pictures than it was asked for");
        }
        call.meter = metered(&tally);
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        writer.begin(&mut begin);
        writer.end(&mut end, &shown(&tally, self.hidden().as_ref()));
        let between = self.style().between();
        let length: u64 = entries.iter().map(SpooledFile::length).sum();
        let memory: Option<Vec<&Bytes>> = entries.iter().map(SpooledFile::bytes).collect();
        if let Some(memory) = memory.filter(|_| length <= HELD as u64) {
            let mut body = BytesMut::from(begin.as_slice());
            for (at, entry) in memory.into_iter().enumerate() {
                body.extend_from_slice(if at > 0 { between } else { b"" });
                body.extend_from_slice(entry);
            }
            body.extend_from_slice(&end);
            let content_type = self.content_type();
            return Ok(Begun::Whole(WholeAnswer { content_type, body: body.freeze(), completion: None }));
        }
        Ok(spooled_answer::passing(self.content_type(), begin.into(), all(entries, between, end.into())))
    }
}

/// A tally as its client sees it.
fn shown<'t>(tally: &'t PictureTally, hidden: Option<&HiddenCosts>) -> Cow<'t, PictureTally> {
    let usage = hidden.zip(tally.usage.as_deref()).and_then(|(hidden, usage)| hidden.report(usage));
    match usage {
        None => Cow::Borrowed(tally),
        usage => Cow::Owned(PictureTally { usage, ..tally.clone() }),
    }
}

/// Entries from where they lie, with what stands between and behind them.
fn all(
    entries: Vec<SpooledFile>,
    between: &'static [u8],
    end: Bytes,
) -> impl Stream<Item = Result<Bytes, Fault>> + Send {
    let texts = stream::iter(entries.into_iter().enumerate()).flat_map(move |(at, entry)| {
        let comma = (at > 0 && !between.is_empty()).then_some(Ok(Bytes::from_static(between)));
        stream::iter(comma).chain(spooled_answer::pieces(entry))
    });
    texts.chain(stream::iter([Ok(end)]))
}

/// A provider's answer that is rewritten while it passes.
pub(super) struct PassedFlow {
    flow: Option<PictureFlow>,
    maker: &'static dyn ImageMaker,
    api: String,
    tally: PictureTally,
    hidden: Option<HiddenCosts>,
}

impl PassedFlow {
    pub fn new(
        flow: PictureFlow,
        maker: &'static dyn ImageMaker,
        api: String,
        hidden: Option<HiddenCosts>,
    ) -> PassedFlow {
        PassedFlow { flow: Some(flow), maker, api, tally: PictureTally::default(), hidden }
    }
}

impl Rewrite for PassedFlow {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        let flow = self.flow.as_mut().ok_or_else(Fault::cut)?;
        flow.pass(piece).map_err(broke)
    }

    fn rest(&mut self) -> Bytes {
        self.flow.as_mut().map(PictureFlow::take).unwrap_or_default()
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let flow = self.flow.take().ok_or_else(Fault::cut)?;
        self.tally = flow.tally().clone();
        let (rest, mut writer, mut tally, mut out) = flow.finish().map_err(broke)?;
        if let Ok(found) = self.maker.read(&self.api, &rest) {
            tally.usage = found.usage;
            // Beside large pictures there are no links but strays: they are handed over as they
            // are.
            let links = writer.has_links();
            for (url, prompt) in found.links {
                if links && tally.delivered < tally.asked {
                    writer.link(&mut out, &url, &prompt);
                    tally.delivered += 1;
                }
            }
        }
        self.tally = tally;
        if self.tally.delivered == 0 {
            return Err(no_picture());
        }
        writer.end(&mut out, &shown(&self.tally, self.hidden.as_ref()));
        Ok(out.into())
    }

    fn meter(&mut self) -> Option<Meter> {
        Some(metered(&self.tally))
    }

    fn goes_on(&self) -> bool {
        true
    }
}
