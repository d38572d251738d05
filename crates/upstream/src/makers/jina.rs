//! Rerank as Jina does it, and the many servers that copied it.

use crate::chat::{bearer, post};
use crate::{Outgoing, Provider, Rerank, RerankSent};
use bytes::Bytes;
use tollgate_media::rerank::{RankShape, RerankRequest};
use tollgate_wire::Problem;
use tollgate_wire::json::Object;

/// The base address ends in `/v1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JinaRerank;

const SHAPE: RankShape = RankShape {
    results: &["results"],
    tokens: &[&["usage", "total_tokens"], &["usage", "prompt_tokens"]],
    units: &["meta", "billed_units", "search_units"],
    report: "usage",
};

impl Rerank for JinaRerank {
    fn shape(&self) -> &'static RankShape {
        &SHAPE
    }

    fn body(&self, request: &RerankRequest, model: &str) -> Result<RerankSent, Problem> {
        let mut body = Vec::new();
        let mut object = Object::begin(&mut body);
        object.text("model", model);
        request.write_texts(&mut object)?;
        object.number("top_n", request.wanted() as u64);
        object.bool("return_documents", false);
        object.end();
        Ok(RerankSent { body: Bytes::from(body), dropped: request.unsaid(&[])? })
    }

    fn request(&self, provider: &Provider, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join("/rerank").ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }
}
