//! Embeddings as OpenAI makes them, and everybody who copied it.

use crate::chat::{bearer, post};
use crate::embed::{EmbedAsk, EmbedSent, Embeddings};
use crate::{Outgoing, Provider};
use bytes::Bytes;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, MOST_INPUTS, VectorShape};
use tollgate_wire::json::{Array, EditChange, EditKey, Object, quoted};
use tollgate_wire::{Dropped, Problem};

/// Embeddings at a path of the maker's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiEmbeddings {
    pub path: &'static str,
    /// Texts in one request.
    pub most: usize,
    /// It packs vectors as base64 when it is asked to.
    pub packs: bool,
}

impl OpenAiEmbeddings {
    pub const OWN: OpenAiEmbeddings = OpenAiEmbeddings { path: "/embeddings", most: MOST_INPUTS, packs: true };
}

impl Embeddings for OpenAiEmbeddings {
    fn shape(&self) -> &'static VectorShape {
        &VectorShape::OPENAI
    }

    fn most_inputs(&self) -> usize {
        self.most
    }

    fn speaks(&self, caller: EmbedCaller) -> bool {
        matches!(caller, EmbedCaller::OpenAi { .. })
    }

    fn takes(&self, _: &EmbedRequest) -> Result<(), Problem> {
        Ok(())
    }

    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
        let EmbedAsk { request, model, .. } = ask;
        let as_floats = request.caller == EmbedCaller::OpenAi { base64: true } && (ask.floats_only || !self.packs);
        match request.caller {
            EmbedCaller::OpenAi { .. } if ask.is_whole() && !as_floats => {
                Ok(EmbedSent { body: request.own_body(model), dropped: Dropped::default() })
            }
            EmbedCaller::OpenAi { .. } => edited(ask, as_floats),
            EmbedCaller::Gemini { .. } => translated(ask),
        }
    }

    fn request(&self, provider: &Provider, _model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join(self.path).ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }
}

/// The client's own body for some of its texts.
fn edited(ask: &EmbedAsk<'_>, as_floats: bool) -> Result<EmbedSent, Problem> {
    let tree = ask.request.tree()?;
    let body = tree.edited(|path, _| match path {
        [EditKey::Name("model")] => put(&quoted(ask.model)),
        [EditKey::Name("encoding_format")] if as_floats => put(b"\"float\""),
        [EditKey::Name("input")] if !ask.is_whole() => {
            let mut list = Vec::new();
            let mut array = Array::begin(&mut list);
            ask.request.inputs(&tree, ask.range.clone()).iter().for_each(|one| array.raw(one.node.raw));
            array.end();
            put(&list)
        }
        _ => EditChange::Keep,
    });
    Ok(EmbedSent { body: Bytes::from(body), dropped: Dropped::default() })
}

fn put(json: &[u8]) -> EditChange<'static> {
    EditChange::Put(String::from_utf8_lossy(json).into_owned().into())
}

fn translated(ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
    let tree = ask.request.tree()?;
    let inputs = ask.request.inputs(&tree, ask.range.clone());
    let mut body = Vec::new();
    let mut object = Object::begin(&mut body);
    object.text("model", ask.model);
    object.array("input", |list| inputs.iter().for_each(|one| list.text(&one.text)));
    if let Some(dimensions) = ask.request.dimensions {
        object.number("dimensions", dimensions);
    }
    object.text("encoding_format", "float");
    object.end();
    // What else Gemini's format says of a text has no place in this one.
    Ok(EmbedSent { body: Bytes::from(body), dropped: ask.request.unsaid(&tree, |_| false) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(maker: &OpenAiEmbeddings, request: &EmbedRequest, range: std::ops::Range<usize>) -> String {
        let ask = EmbedAsk { request, model: "up", range, floats_only: false };
        String::from_utf8(maker.body(&ask).unwrap().body.to_vec()).unwrap()
    }

    #[test]
    fn a_request_passes_whole_or_in_parts() {
        let text = r#"{"model":"m","input":["a","b","c"],"user":"u","encoding_format":"base64"}"#;
        let request = EmbedRequest::openai(Bytes::from(text)).unwrap();
        let own = OpenAiEmbeddings::OWN;
        assert_eq!(body(&own, &request, 0..3), text.replace("\"m\"", "\"up\""));
        let part = r#"{"model":"up","input":["b","c"],"user":"u","encoding_format":"base64"}"#;
        assert_eq!(body(&own, &request, 1..3), part);
        let floats = OpenAiEmbeddings { packs: false, ..own };
        assert_eq!(body(&floats, &request, 1..3), part.replace("base64", "float"));
        let ids = EmbedRequest::openai(Bytes::from(r#"{"model":"m","input":[[1,2],[3]]}"#)).unwrap();
        assert_eq!(body(&own, &ids, 1..2), r#"{"model":"up","input":[[3]]}"#);
    }

    #[test]
    fn a_batch_of_gemini_is_a_list() {
        let text = r#"{"requests":[{"content":{"parts":[{"text":"a"},{"text":"b"}]},"taskType":"CLUSTERING","outputDimensionality":8},{"content":{"parts":[{"text":"c"}]},"outputDimensionality":8}]}"#;
        let request = EmbedRequest::gemini(Bytes::from(text), "m", true).unwrap();
        let ask = EmbedAsk { request: &request, model: "up", range: 0..2, floats_only: false };
        let sent = OpenAiEmbeddings::OWN.body(&ask).unwrap();
        assert_eq!(sent.body, r#"{"model":"up","input":["ab","c"],"dimensions":8,"encoding_format":"float"}"#);
        assert_eq!(sent.dropped.to_string(), "taskType");
    }
}
