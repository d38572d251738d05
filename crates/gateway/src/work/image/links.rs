//! Pictures that a provider hands over by link, where the caller wants their data: fetched once,
//! once more after a failure, and made base64 while they arrive.

use super::call::Making;
use crate::door::bodies::Whose;
use crate::door::spool::{FileWatch, IN_MEMORY, SpoolTerms, Spooling};
use crate::work::spooled_answer::no_room;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tollgate_media::image::{Base64Encoder, ENOUGH_OF_TEXT, ResultWriter, begins_as_text, made_kind};
use tollgate_upstream::{Fault, SpooledFile, open_link};

/// The largest picture that is fetched.
const LARGEST: usize = 64 << 20;
/// The longest that one takes.
const LONGEST: Duration = Duration::from_secs(60);

/// Why there is no data.
pub(super) enum NotFetched {
    /// It did not come.
    Missing,
    /// It came, and is no picture.
    Foreign,
    /// It came, and we have no room for it.
    NoRoom(Fault),
}

impl Making<'_> {
    /// Where texts of entries are spooled.
    pub async fn spooling(&self) -> Result<Spooling<()>, Fault> {
        self.spooling_as(()).await
    }

    /// The same with somebody who sees it pass.
    pub async fn spooling_as<W: FileWatch>(&self, watch: W) -> Result<Spooling<W>, Fault> {
        let each = usize::try_from(self.plan.n.max(1)).unwrap_or(1);
        let terms = SpoolTerms {
            whose: Some(Whose::Account(self.account)),
            most: self.most_bytes(1).max(2 * LARGEST) as u64,
            in_memory: IN_MEMORY / each,
        };
        self.desk.spool.begin(terms, watch).await.map_err(no_room)
    }

    /// An entry with the data behind a link.
    pub async fn fetched(&self, writer: &mut ResultWriter, url: &str, prompt: &str) -> Result<SpooledFile, NotFetched> {
        let first = self.fetch(writer, url, prompt).await;
        match first {
            Err(NotFetched::Missing) => self.fetch(writer, url, prompt).await,
            other => other,
        }
    }

    async fn fetch(&self, writer: &mut ResultWriter, url: &str, prompt: &str) -> Result<SpooledFile, NotFetched> {
        let until = self.deadline.min(Instant::now() + LONGEST);
        match timeout_at(until, self.read_link(writer, url, prompt)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(NotFetched::Missing),
        }
    }

    async fn read_link(&self, writer: &mut ResultWriter, url: &str, prompt: &str) -> Result<SpooledFile, NotFetched> {
        let full = |refusal| NotFetched::NoRoom(no_room(refusal));
        let clients = (&self.till.client, &self.desk.outside);
        let mut body = open_link(clients, &self.asking(), url).await.map_err(|_| NotFetched::Missing)?;
        let mut spool = self.spooling().await.map_err(NotFetched::NoRoom)?;
        let (mut encoder, mut total, mut head) = (Base64Encoder::default(), 0, Vec::new());
        let mut out = Vec::new();
        let mut known = false;
        loop {
            let piece = body.chunk().await.map_err(|_| NotFetched::Missing)?;
            let ended = piece.is_none();
            let piece = piece.unwrap_or_default();
            total += piece.len();
            if total > LARGEST {
                return Err(NotFetched::Missing);
            }
            if !known {
                head.extend_from_slice(&piece);
                let enough = if begins_as_text(&head) { ENOUGH_OF_TEXT } else { 64 };
                if head.len() < enough && !ended {
                    continue;
                }
                let kind = made_kind(&head).ok_or(NotFetched::Foreign)?;
                known = true;
                writer.open(&mut out, Some(kind));
                encoder.feed(&std::mem::take(&mut head), &mut out);
            } else {
                encoder.feed(&piece, &mut out);
            }
            if ended {
                encoder.finish(&mut out);
                writer.close(&mut out, url, Some(&tollgate_wire::json::quoted(prompt)));
            }
            spool.push(&Bytes::from(std::mem::take(&mut out))).await.map_err(full)?;
            if ended {
                return spool.finish().await.map(|spooled| spooled.file).map_err(full);
            }
        }
    }
}
