//! Music as work: how a route is asked for a song, and when its answer has begun.

use super::asked::AskedMusic;
use super::flow::{MusicFlow, used};
use crate::call::{Begun, Call, Meter, Passed, Priced, StoredPieces, WholeAnswer, Work};
use crate::sale::Serving;
use crate::work::audio::{AudioAnswer, sent};
use crate::work::long_replies::LongReplies;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_media::music::{SettledSong, song_link};
use tollgate_upstream::{Fault, IncomingBody, MusicAsk, MusicMaker, Provider, ReplyBody, WholeReply};
use tollgate_wire::Problem;

/// The call.
pub struct MusicCall {
    pub asked: AskedMusic,
    pub replies: Arc<LongReplies>,
}

/// Longest answer with a link.
const LINK: usize = 1 << 20;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Work for MusicCall {
    fn priced(&self) -> &dyn Priced {
        &self.asked
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    /// A song that was begun is made, and billed, for whoever left.
    fn goes_on(&self, _: &Serving, _: &Model) -> bool {
        true
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let (Ok(song), Some(maker)) = (self.asked.settle(&call.model), provider.kind.music) else {
            return Err(Fault::refusal(Problem::unsupported("model", "This route makes no music.")));
        };
        let id = call.id.to_string();
        let ask = MusicAsk { song: &song, model: &route.upstream_model, call_id: &id };
        let request = maker.request(provider, &ask).ok_or_else(Fault::unreachable)?;
        let (headers, body) = sent(call, provider, request, |reply| maker.fault(reply)).await?;
        let created = call.till.world.now_ms().div_euclid(1000);
        if song.link {
            let answer = linked(call, provider, maker, &song, (headers, body), created).await?;
            return Ok(Begun::Whole(WholeAnswer { content_type: JSON, body: answer, completion: None }));
        }
        let mut answer = AudioAnswer::new(call, provider, body, maker.reader(&headers));
        let audio = answer.first(song.format).await?;
        call.first_byte_at = Some(call.till.world.now_ms());
        call.meter = used(&song, 0, true, None);
        let AudioAnswer { body, reader, left, .. } = answer;
        let mut flow = MusicFlow::new(reader, song, created);
        let first = flow.write(&audio);
        let passed = Passed { content_type: JSON, first, body, rewrite: Box::new(flow), left };
        self.replies.kept(call, Begun::Passing(Box::new(passed))).await
    }

    async fn stored(&self, name: &str) -> Option<StoredPieces> {
        self.replies.stored(name).await
    }
}

/// The result with the provider's own link, which is signed and ends.
async fn linked(
    call: &mut Call,
    provider: &Provider,
    maker: &dyn MusicMaker,
    song: &SettledSong,
    (headers, body): (HeaderMap, IncomingBody),
    created: i64,
) -> Result<Bytes, Fault> {
    let body = ReplyBody::new(body, provider.settings.idle).whole(LINK, call.deadline).await?;
    let (link, millis) = maker.link(&WholeReply { status: 200, headers, body })?;
    call.first_byte_at = Some(call.till.world.now_ms());
    call.meter = used(song, millis.div_ceil(1000), millis == 0, None);
    Ok(song_link(created, &link, millis, song.format))
}
