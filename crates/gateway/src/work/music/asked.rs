//! A request for music, settled by the rules of its model, and what it costs at most.

use crate::call::{Need, Priced};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::music::ENDPOINT_TYPE;
use std::borrow::Cow;
use tollgate_catalog::Model;
use tollgate_media::music::{MusicRequest, MusicRules, SettledSong};
use tollgate_store::Counters;
use tollgate_wire::error::Code;

pub struct AskedMusic {
    request: MusicRequest,
    /// As the model in the catalog has it, for prices that go by what is asked.
    settled: Option<SettledSong>,
}

impl AskedMusic {
    pub fn of(serving: &Serving, request: MusicRequest) -> AskedMusic {
        let model = serving.catalog.model(&request.model);
        let settled = model.and_then(|model| settle(model, &request).ok());
        AskedMusic { request, settled }
    }

    /// The request with everything decided that this model decides.
    pub fn settle(&self, model: &Model) -> Result<SettledSong, Refusal> {
        settle(model, &self.request)
    }
}

fn settle(model: &Model, request: &MusicRequest) -> Result<SettledSong, Refusal> {
    let Some(table) = &model.music else {
        let text = format!("The model `{}` makes no music.", model.name);
        return Err(Refusal::about(Code::UnsupportedValue, "model", text));
    };
    let rules = MusicRules {
        formats: &table.formats,
        default_format: model.default_response_format.as_deref(),
        most_prompt: table.max_prompt,
        most_lyrics: table.max_lyrics,
        instrumental: table.instrumental,
        seconds: table.seconds,
        links: table.links,
    };
    Ok(rules.settle(request)?)
}

impl Priced for AskedMusic {
    fn model(&self) -> &str {
        &self.request.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    /// A song, or as many seconds as were asked for.
    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let song = self.settle(model)?;
        let most = Counters { calls: 1, seconds: song.seconds.unwrap_or(0), ..Counters::default() };
        Ok(Need { most, exact: true, sized_by: "duration", ..Need::default() })
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let song = self.settled.as_ref()?;
        let flag = |on: bool| Some(Cow::Borrowed(if on { "true" } else { "false" }));
        match path {
            "response_format" => Some(Cow::Borrowed(song.format.name())),
            "output" => Some(Cow::Borrowed(if song.link { "url" } else { "b64_json" })),
            "instrumental" => flag(song.instrumental),
            "lyrics" => flag(song.lyrics.is_some()),
            "lyrics_optimizer" => flag(song.writes_lyrics),
            "duration" => song.seconds.map(|seconds| Cow::Owned(seconds.to_string())),
            _ => None,
        }
    }
}
