//! Rerank: the score of a document is the share of the question's words that are in it.

use serde_json::{Value, json};

use super::read::{count, known, text, texts};
use super::{Asked, Form};
use crate::ask::words;
use crate::refusal::Refusal;

pub(super) fn read(form: Form, model: &str, body: &Value) -> Result<Asked, Refusal> {
    let fields = body.as_object().cloned().unwrap_or_default();
    let cohere = form == Form::CohereRerank;
    known(
        &fields,
        if cohere {
            "model query documents top_n max_tokens_per_doc"
        } else {
            "model query documents top_n return_documents"
        },
    )?;
    if model.is_empty() {
        return Err(Refusal::missing("model"));
    }
    let query = text(fields.get("query").unwrap_or(&Value::Null), "query")?;
    let documents = texts(fields.get("documents").unwrap_or(&Value::Null), "documents", 10_000)?;
    let most = count(&fields, "top_n")?.and_then(|most| usize::try_from(most).ok()).unwrap_or(documents.len());
    let asked: Vec<&str> = query.split_whitespace().filter(|word| !word.contains("sim:")).collect();
    let score = |document: &String| {
        let found = asked.iter().filter(|word| document.contains(**word)).count();
        // Thousandths, so that the order does not depend on rounding.
        (found * 1_000) / asked.len().max(1)
    };
    let mut scored: Vec<(usize, usize)> = documents.iter().map(score).enumerate().collect();
    scored.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    let result = |(index, score): &(usize, usize)| {
        let score = f64::from(u32::try_from(*score).unwrap_or(0)) / 1_000.0;
        json!({"index": index, "relevance_score": score})
    };
    let results: Vec<Value> = scored.iter().take(most).map(result).collect();
    let tokens: u64 = documents.iter().map(|one| words(one) + words(&query)).sum();
    // A long document is cut, and each piece counts as one.
    let pieces: u64 = documents.iter().map(|one| (words(one) + words(&query)).div_ceil(500)).sum();
    let units = pieces.div_ceil(100);
    let reply = if cohere {
        let meta = json!({"api_version": {"version": "2"}, "billed_units": {"search_units": units}});
        json!({"id": "sim-rerank", "results": results, "meta": meta})
    } else {
        json!({"model": model, "object": "list", "usage": {"total_tokens": tokens}, "results": results})
    };
    Ok(Asked { model: model.to_string(), last: query, tokens, reply })
}
