//! Rerank of Cohere's second API.

use crate::chat::{bearer, post};
use crate::{Outgoing, Provider, Rerank, RerankSent};
use bytes::Bytes;
use tollgate_media::rerank::{RankShape, RerankRequest};
use tollgate_wire::Problem;
use tollgate_wire::json::Object;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CohereRerank;

const SHAPE: RankShape = RankShape {
    results: &["results"],
    tokens: &[&["meta", "billed_units", "input_tokens"]],
    units: &["meta", "billed_units", "search_units"],
    report: "meta",
};

impl Rerank for CohereRerank {
    fn shape(&self) -> &'static RankShape {
        &SHAPE
    }

    fn body(&self, request: &RerankRequest, model: &str) -> Result<RerankSent, Problem> {
        let mut body = Vec::new();
        let mut object = Object::begin(&mut body);
        object.text("model", model);
        request.write_texts(&mut object)?;
        object.number("top_n", request.wanted() as u64);
        if let Some(most) = request.max_tokens_per_doc {
            object.number("max_tokens_per_doc", most);
        }
        object.end();
        Ok(RerankSent { body: Bytes::from(body), dropped: request.unsaid(&["max_tokens_per_doc"])? })
    }

    fn request(&self, provider: &Provider, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join("/v2/rerank").ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }
}
