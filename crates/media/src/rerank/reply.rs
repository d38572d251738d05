//! What a provider says about documents, and how a client reads it.

use super::request::RerankRequest;
use bytes::Bytes;
use tollgate_wire::json::{self, Node, Object};

/// The reply has no order of the documents that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRanked;

/// Where a reply has its results and its report of tokens.
#[derive(Debug)]
pub struct RankShape {
    pub results: &'static [&'static str],
    /// The first of these that is there.
    pub tokens: &'static [&'static [&'static str]],
    /// Where the provider says how many searches it bills; empty where it does not.
    pub units: &'static [&'static str],
    /// The object that is stored as the provider's report.
    pub report: &'static str,
}

/// The results of a reply, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// Place of a document, and its score as it was written.
    results: Vec<(usize, String)>,
    pub tokens: Option<u64>,
    /// Searches that the provider bills, where that can be true.
    pub units: Option<u64>,
    pub raw_usage: Option<String>,
}

/// Longest report stored.
const MOST_RAW_USAGE: usize = 8 << 10;

fn at<'n, 'a>(root: &'n Node<'a>, path: &[&str]) -> Option<&'n Node<'a>> {
    path.iter().try_fold(root, |node, name| node.get(name))
}

impl Ranking {
    /// Reads a reply about the documents of this request.
    pub fn read(shape: &RankShape, body: &[u8], request: &RerankRequest) -> Result<Ranking, NotRanked> {
        let text = json::lossy(body);
        let root = Node::read(&text).map_err(|_| NotRanked)?;
        let list = at(&root, shape.results).filter(|node| node.is_list()).ok_or(NotRanked)?;
        let mut seen = vec![false; request.documents];
        let mut scored = Vec::with_capacity(list.items().len().min(request.documents));
        for one in list.items() {
            let place = one.get("index").and_then(Node::number).and_then(|place| usize::try_from(place).ok());
            let place = place.filter(|place| *place < request.documents).ok_or(NotRanked)?;
            let score = one.get("relevance_score").and_then(Node::decimal).ok_or(NotRanked)?;
            let number: f64 = score.parse().map_err(|_| NotRanked)?;
            if std::mem::replace(&mut seen[place], true) || !number.is_finite() {
                return Err(NotRanked);
            }
            scored.push((number, place, score));
        }
        if scored.is_empty() {
            return Err(NotRanked);
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        scored.truncate(request.wanted());
        let tokens = shape.tokens.iter().find_map(|path| at(&root, path)).and_then(Node::number);
        let units = at(&root, shape.units).filter(|_| !shape.units.is_empty()).and_then(Node::number);
        let billed = request.search_units()..=request.most_search_units();
        let report = root.get(shape.report).map(|node| node.raw).filter(|raw| raw.len() <= MOST_RAW_USAGE);
        Ok(Ranking {
            results: scored.into_iter().map(|(_, place, score)| (place, score.to_owned())).collect(),
            tokens: tokens.filter(|tokens| (1..=tollgate_wire::usage::MOST).contains(tokens)),
            units: units.filter(|units| billed.contains(units)),
            raw_usage: report.map(str::to_owned),
        })
    }
}

/// What a client gets besides the results.
#[derive(Debug)]
pub struct RerankAnswer<'a> {
    pub id: &'a str,
    /// The public name of the model.
    pub model: &'a str,
    /// Tokens that are charged for.
    pub tokens: u64,
}

impl RerankAnswer<'_> {
    /// The answer, in the common form of Cohere and Jina.
    pub fn written(&self, request: &RerankRequest, ranking: &Ranking) -> Bytes {
        let tree = if request.return_documents { request.tree().ok() } else { None };
        let documents = tree.as_ref().map(|tree| request.texts(tree));
        let mut out = Vec::with_capacity(128 + 64 * ranking.results.len());
        let mut object = Object::begin(&mut out);
        object.text("id", self.id);
        object.text("model", self.model);
        object.array("results", |list| {
            for (place, score) in &ranking.results {
                list.object(|one| {
                    one.number("index", *place as u64);
                    one.raw("relevance_score", score);
                    if let Some(text) = documents.as_ref().and_then(|all| all.get(*place)) {
                        one.object("document", |document| document.raw("text", text));
                    }
                });
            }
        });
        object.object("usage", |usage| {
            usage.number("prompt_tokens", self.tokens);
            usage.number("total_tokens", self.tokens);
        });
        object.object("meta", |meta| {
            meta.object("api_version", |version| version.text("version", "2"));
            meta.object("billed_units", |units| units.number("search_units", request.search_units()));
        });
        object.end();
        Bytes::from(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: RankShape =
        RankShape { results: &["results"], tokens: &[&["usage", "total_tokens"]], units: &[], report: "usage" };

    fn request(more: &str) -> RerankRequest {
        let body = format!(r#"{{"model":"m","query":"q","documents":["a",{{"text":"b"}},"c"]{more}}}"#);
        RerankRequest::read(Bytes::from(body)).unwrap()
    }

    #[test]
    fn the_best_comes_first_and_no_more_than_is_wanted() {
        let body = br#"{"results":[{"index":2,"relevance_score":0.10},{"index":1,"relevance_score":9e-1},{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":12}}"#;
        let request = request(r#","top_n":2,"return_documents":true"#);
        let ranking = Ranking::read(&SHAPE, body, &request).unwrap();
        assert_eq!(ranking.tokens, Some(12));
        let written = RerankAnswer { id: "call_1", model: "m", tokens: 12 }.written(&request, &ranking);
        let results = r#"[{"index":1,"relevance_score":9e-1,"document":{"text":"b"}},{"index":0,"relevance_score":0.5,"document":{"text":"a"}}]"#;
        let rest = r#""usage":{"prompt_tokens":12,"total_tokens":12},"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}"#;
        assert_eq!(written, format!(r#"{{"id":"call_1","model":"m","results":{results},{rest}}}"#));
    }

    #[test]
    fn what_is_about_other_documents_is_no_order() {
        for body in [
            "{}",
            "<html>",
            r#"{"results":[]}"#,
            r#"{"results":[{"index":3,"relevance_score":0.5}]}"#,
            r#"{"results":[{"index":0}]}"#,
            r#"{"results":[{"index":0,"relevance_score":"x"}]}"#,
            r#"{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}"#,
            r#"{"results":[{"index":0,"relevance_score":1e999}]}"#,
        ] {
            assert_eq!(Ranking::read(&SHAPE, body.as_bytes(), &request("")), Err(NotRanked), "{body}");
        }
    }
}
