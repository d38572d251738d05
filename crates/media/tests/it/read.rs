//! Readers of embeddings, rerank and decisions against mutated input: nothing panics, and what
//! comes out is JSON again.

use bytes::Bytes;
use proptest::prelude::*;
use tollgate_media::decide::{DecisionForm, DecisionReply, DecisionRequest};
use tollgate_media::embed::{EmbedCaller, EmbedReply, EmbedRequest, VectorFlow, VectorShape, VectorTarget};
use tollgate_media::rerank::{RankShape, Ranking, RerankAnswer, RerankRequest};

const SEEDS: &[&str] = &[
    r#"{"model":"m","input":["a","b\n"],"dimensions":4,"encoding_format":"base64"}"#,
    r#"{"model":"m","input":[[1,2],[3]]}"#,
    r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"},{"text":"b"}]},"outputDimensionality":3}]}"#,
    r#"{"content":{"parts":[{"text":"a"}]}}"#,
    r#"{"model":"m","query":"q","documents":["a",{"text":"b"}],"top_n":1,"return_documents":true}"#,
    r#"{"model":"m","state":{"a":["x"]},"questions":{"a":{"type":"noul","criteria":{"true":"t"}},"b":{"type":"choice","criteria":{"x":null}},"c":{"type":"score","criteria":["l",{"h":1}]}}}"#,
    r#"{"model":"m","input":"x","questions":[{"type":"predicate","instructions":"?"},{"type":"choice","instructions":"?","choices":[{"value":true},{"value":"b"}]},{"type":"score","instructions":"?","levels":[{"label":"l"},{"label":"h"}]}]}"#,
    r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1e-3]},{"embedding":"AACAPw==","index":1}],"model":"u","usage":{"prompt_tokens":3,"total_tokens":3}}"#,
    r#"{"embeddings":[{"values":[1,2]},{"values":[3]}]}"#,
    r#"{"embeddings":{"float":[[1,2],[3]]},"meta":{"billed_units":{"input_tokens":3}}}"#,
    r#"{"results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":3}}"#,
    r#"{"model":"u","answers":{"a":{"type":"noul","noul":0.5}},"usage":{"input_tokens":3,"output_tokens":1}}"#,
    r#"{"model":"u","answers":[{"type":"predicate","probability":0.5},{"type":"refusal"},{"type":"refusal"}],"usage":{"input_tokens":3}}"#,
];

const RANKS: RankShape =
    RankShape { results: &["results"], tokens: &[&["usage", "total_tokens"]], units: &[], report: "usage" };

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}

/// A seed with bytes of another one put into it, and some taken out.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let seed = prop::sample::select(SEEDS);
    (seed.clone(), seed, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..40, 0usize..40).prop_map(
        |(one, other, at, from, taken, put)| {
            let (at, from) = (at.index(one.len()), from.index(other.len()));
            let mut out = one.as_bytes()[..at].to_vec();
            out.extend_from_slice(&other.as_bytes()[from..other.len().min(from + put)]);
            out.extend_from_slice(&one.as_bytes()[one.len().min(at + taken)..]);
            out
        },
    )
}

fn requests(body: &Bytes) -> Result<(), TestCaseError> {
    for read in [
        EmbedRequest::openai(body.clone()),
        EmbedRequest::gemini(body.clone(), "m", true),
        EmbedRequest::gemini(body.clone(), "m", false),
    ]
    .into_iter()
    .flatten()
    {
        prop_assert!(read.tally.tokens <= read.tally.most() && read.tally.most() <= read.tally.believable());
        prop_assert!(is_json(&read.own_body("another")));
        let tree = read.tree().expect("it was read");
        prop_assert_eq!(read.inputs(&tree, 0..read.tally.texts).len(), read.tally.texts);
    }
    for form in [DecisionForm::SystemOne, DecisionForm::Decisions] {
        let Ok(read) = DecisionRequest::read(form, body.clone()) else { continue };
        prop_assert!(read.counted(10) <= read.most(10) && read.most(10) <= read.believable(10));
        for to in [DecisionForm::SystemOne, DecisionForm::Decisions] {
            if read.fits(to).is_ok() {
                let sent = read.body(to, "another").expect("it fits");
                prop_assert!(is_json(&sent.text), "{}", String::from_utf8_lossy(&sent.text));
            }
        }
    }
    if let Ok(read) = RerankRequest::read(body.clone()) {
        prop_assert!(read.wanted() <= read.documents && read.search_units() > 0);
    }
    Ok(())
}

fn replies(body: &Bytes, cut: usize) -> Result<(), TestCaseError> {
    for base64 in [false, true] {
        if let Ok(read) = EmbedReply::read(body, base64) {
            prop_assert!(is_json(&read.written(body.clone(), "another", 9)));
        }
        for shape in [&VectorShape::OPENAI, &VectorShape::GEMINI, &VectorShape::COHERE] {
            let caller = EmbedCaller::OpenAi { base64 };
            let target = || VectorTarget { caller, model: "m".to_owned(), texts: 2, counted: 9 };
            let flowed = |pieces: &[&[u8]]| {
                let mut flow = VectorFlow::new(shape, target());
                let mut out = Vec::new();
                for piece in pieces {
                    out.extend_from_slice(&flow.feed(piece)?);
                }
                flow.end_reply(2)?;
                out.extend_from_slice(&flow.end()?);
                Ok::<_, tollgate_media::embed::NotVectors>(out)
            };
            let (whole, halves) = (flowed(&[body]), flowed(&[&body[..cut], &body[cut..]]));
            prop_assert_eq!(&whole, &halves, "however it is cut");
            if let Ok(out) = whole {
                prop_assert!(is_json(&out), "{}", String::from_utf8_lossy(&out));
            }
        }
    }
    let asked = RerankRequest::read(Bytes::from_static(SEEDS[4].as_bytes())).expect("a seed");
    if let Ok(ranking) = Ranking::read(&RANKS, body, &asked) {
        let written = RerankAnswer { id: "i", model: "m", tokens: 1 }.written(&asked, &ranking);
        prop_assert!(is_json(&written));
    }
    for (form, seed) in [(DecisionForm::SystemOne, SEEDS[5]), (DecisionForm::Decisions, SEEDS[6])] {
        let asked = DecisionRequest::read(form, Bytes::from_static(seed.as_bytes())).expect("a seed");
        for from in [DecisionForm::SystemOne, DecisionForm::Decisions] {
            if let Ok(read) = DecisionReply::read(from, body.clone(), &asked, "m", 7) {
                prop_assert!(is_json(&read.body), "{}", String::from_utf8_lossy(&read.body));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_comes_in_is_read_or_refused(body in mutated(), cut in any::<prop::sample::Index>()) {
        let body = Bytes::from(body);
        requests(&body)?;
        replies(&body, cut.index(body.len() + 1))?;
    }
}

#[test]
fn the_seeds_are_understood() {
    for seed in SEEDS {
        let body = Bytes::from_static(seed.as_bytes());
        requests(&body).unwrap_or_else(|failed| panic!("{seed}: {failed}"));
        replies(&body, seed.len() / 2).unwrap_or_else(|failed| panic!("{seed}: {failed}"));
    }
}
