//! Grounding and log probabilities: Gemini's shapes and chat's.

use crate::hub::{Citation, Event, Sink};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Node, Object};

/// Grounding supports and citation sources of a candidate. Gemini counts bytes, everybody else
/// characters.
pub(super) fn read(candidate: &Node<'_>, choice: u32, text: &str, sink: &mut Sink<'_>) {
    if let Some(grounding) = candidate.either("groundingMetadata", "grounding_metadata") {
        supports(grounding, choice, text, sink);
    }
    let sources = candidate
        .either("citationMetadata", "citation_metadata")
        .and_then(|metadata| metadata.either("citationSources", "citations"))
        .map_or(&[][..], Node::items);
    for source in sources {
        let citation = match source.text_of("uri") {
            Some(url) => Citation::Url {
                url: url.clone(),
                title: source.text_of("title").cloned().unwrap_or_default(),
                from: place(source, "startIndex", text, sink).or(Some(0)),
                to: place(source, "endIndex", text, sink),
                quote: Cow::Borrowed(""),
                index: Cow::Borrowed(""),
            },
            None => Citation::Foreign { origin: Dialect::Gemini, raw: Cow::Borrowed(source.raw), place: None },
        };
        sink(Event::Cite { choice, citation });
    }
    // After the citations, which belong to the text before.
    let grounding = candidate.either("groundingMetadata", "grounding_metadata");
    let queries = grounding.and_then(|grounding| grounding.either(QUERIES[0], QUERIES[1]));
    for query in queries.map_or(&[][..], Node::items) {
        sink(Event::Search { choice, query: query.text().cloned().unwrap_or_default() });
    }
}

const QUERIES: [&str; 2] = ["webSearchQueries", "web_search_queries"];
const CHUNKS: [&str; 2] = ["groundingChunks", "grounding_chunks"];
const SUPPORTS: [&str; 2] = ["groundingSupports", "grounding_supports"];

fn supports(grounding: &Node<'_>, choice: u32, text: &str, sink: &mut Sink<'_>) {
    let chunks = grounding.either(CHUNKS[0], CHUNKS[1]).map_or(&[][..], Node::items);
    let supports = grounding.either(SUPPORTS[0], SUPPORTS[1]).map_or(&[][..], Node::items);
    let mut named = vec![false; chunks.len()];
    for support in supports {
        let segment = support.get("segment");
        let indices = support.either("groundingChunkIndices", "grounding_chunk_indices").map_or(&[][..], Node::items);
        for index in indices {
            let at = index.number().and_then(|at| usize::try_from(at).ok()).filter(|at| *at < chunks.len());
            let Some(at) = at else {
                sink(Event::Lost { what: Cow::Borrowed("groundingMetadata.groundingChunkIndices") });
                continue;
            };
            named[at] = true;
            let citation = match (source(&chunks[at]), segment) {
                (Citation::Url { url, title, .. }, Some(segment)) => Citation::Url {
                    url,
                    title,
                    from: place(segment, "startIndex", text, sink).or(Some(0)),
                    to: place(segment, "endIndex", text, sink),
                    quote: segment.text_of("text").cloned().unwrap_or_default(),
                    index: Cow::Borrowed(""),
                },
                (other, _) => other,
            };
            sink(Event::Cite { choice, citation });
        }
    }
    // Sources of the answer as a whole.
    for (chunk, _) in chunks.iter().zip(named).filter(|(_, named)| !named) {
        sink(Event::Cite { choice, citation: source(chunk) });
    }
}

/// A place in the text, in characters. One in text that is not buffered is reported.
fn place(node: &Node<'_>, name: &'static str, text: &str, sink: &mut Sink<'_>) -> Option<u64> {
    let byte = node.get(name).and_then(Node::number)?;
    let place = characters(text, byte);
    if place.is_none() {
        sink(Event::Lost { what: Cow::Borrowed(name) });
    }
    place
}

/// A page of the web is a link; a map, a file store and the like are theirs alone.
fn source<'a>(chunk: &Node<'a>) -> Citation<'a> {
    match chunk.get("web") {
        Some(web) => Citation::Url {
            url: web.text_of("uri").cloned().unwrap_or_default(),
            title: web.text_of("title").cloned().unwrap_or_default(),
            from: None,
            to: None,
            quote: Cow::Borrowed(""),
            index: Cow::Borrowed(""),
        },
        None => Citation::Foreign { origin: Dialect::Gemini, raw: Cow::Borrowed(chunk.raw), place: None },
    }
}

/// Characters before a byte of the text; `None` beyond it.
fn characters(text: &str, byte: u64) -> Option<u64> {
    let byte = usize::try_from(byte).ok().filter(|byte| *byte <= text.len())?;
    Some(text[..text.floor_char_boundary(byte)].chars().count() as u64)
}

/// Bytes before a character of the text.
pub(super) fn bytes_before(text: &str, characters: u64) -> u64 {
    text.chars().take(usize::try_from(characters).unwrap_or(usize::MAX)).map(|letter| letter.len_utf8() as u64).sum()
}

/// `logprobsResult` as chat's list of entries.
pub(super) fn logprobs(node: &Node<'_>) -> Option<String> {
    let chosen = node.either("chosenCandidates", "chosen_candidates")?.items();
    let top = node.either("topCandidates", "top_candidates").map_or(&[][..], Node::items);
    let mut out = Vec::new();
    let mut list = Array::begin(&mut out);
    let entry = |one: &mut Object<'_>, node: &Node<'_>| {
        one.text("token", node.str_of("token"));
        one.raw("logprob", node.either("logProbability", "log_probability").and_then(Node::decimal).unwrap_or("0"));
        let bytes: Vec<String> = node.str_of("token").bytes().map(|byte| byte.to_string()).collect();
        one.raw("bytes", &format!("[{}]", bytes.join(",")));
    };
    for (at, chosen) in chosen.iter().enumerate() {
        list.object(|one| {
            entry(one, chosen);
            one.array("top_logprobs", |others| {
                for other in top.get(at).and_then(|top| top.get("candidates")).map_or(&[][..], Node::items) {
                    others.object(|one| entry(one, other));
                }
            });
        });
    }
    list.end();
    (!chosen.is_empty()).then(|| String::from_utf8(out).ok()).flatten()
}

/// Chat's entries as `logprobsResult`.
pub(super) fn write_logprobs(object: &mut Object<'_>, lists: &[String]) {
    let nodes: Vec<Node<'_>> = lists.iter().filter_map(|raw| Node::read(raw).ok()).collect();
    let entries = || nodes.iter().flat_map(Node::items);
    let entry = |one: &mut Object<'_>, node: &Node<'_>| {
        one.text("token", node.str_of("token"));
        one.raw("logProbability", node.get("logprob").and_then(Node::decimal).unwrap_or("0"));
    };
    object.object("logprobsResult", |result| {
        result.array("chosenCandidates", |list| entries().for_each(|node| list.object(|one| entry(one, node))));
        result.array("topCandidates", |list| {
            for node in entries() {
                list.object(|one| {
                    one.array("candidates", |inner| {
                        let top = node.get("top_logprobs").map_or(&[][..], Node::items);
                        top.iter().for_each(|other| inner.object(|one| entry(one, other)));
                    });
                });
            }
        });
    });
}
