//! Generated calls that only read text: vectors of texts and of tokens, in both formats and in
//! parts, documents put into order, questions decided. What is held for and what is charged is
//! computed here once more: from the simulator's bill, which is words, or from our own count.

use super::generated_media::{Upload, Wish, nano};
use crate::generated::Seed;
use crate::house::counted;
use serde_json::{Value, json};

/// Prices that do not come out even, in micro-USD.
pub const CATALOG: &str = r#"
[model."vectors"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_003, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."vectors-in-parts"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
embedding = { batch = 3, floats_only = true }
price = { input = 19_999, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."flat-vectors"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
billing_unit = "per_call"
price = { per_call = 2_503 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."order"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
price = { input = 777_777, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."order-by-call"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
billing_unit = "per_call"
price = { per_call = 2_003 }
route = [{ provider = "sim-cohere", upstream_model = "sim-plain" }]

[model."judge"]
type = "decision"
supported_endpoint_types = ["system-one"]
price = { input = 42_001, output = 300_007 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."judge-one"]
type = "decision"
supported_endpoint_types = ["system-one"]
price = { input = 42_001, output = 300_007 }
route = [{ provider = "sim-systemone", upstream_model = "sim-plain" }]
"#;

/// The providers of these that no other test needs.
pub const PROVIDERS: &str = "[provider.sim-cohere]\nkind = \"cohere\"\nbase_url = \"{host}/cohere\"\n\
    [provider.sim-systemone]\nkind = \"system-one\"\nbase_url = \"{host}\"\n";

/// What each of the above is seen as, at least.
pub const SORTS: [&str; 15] = [
    "one text",
    "texts",
    "tokens of one text",
    "tokens of texts",
    "texts in parts",
    "flat-vectors",
    "Gemini's text",
    "Gemini's texts",
    "no vectors",
    "order",
    "order-by-call",
    "pieces",
    "judge",
    "judge-one",
    "own count",
];

const WORDS: [&str; 10] = ["the", "gate", "opens", "for", "every", "coin", "straße", "東京の天気", "😀", "9.81"];

fn count(number: usize) -> i128 {
    i128::try_from(number).expect("small")
}

/// What the simulator counts.
fn words(text: &str) -> i128 {
    count(text.split_whitespace().count())
}

/// What a provider may read at most, by docs/billing.md.
#[derive(Clone, Copy, Default)]
struct Read {
    texts: i128,
    /// Our own count of them.
    tokens: i128,
    bytes: i128,
}

impl Read {
    fn text(self, text: &str) -> Read {
        self.times(text, 1)
    }

    /// The same text beside so many others.
    fn beside(self, text: &str, times: usize) -> Read {
        Read { texts: self.texts, ..self.times(text, count(times)) }
    }

    fn times(self, text: &str, times: i128) -> Read {
        let tokens = i128::from(counted(text).max(1));
        Read {
            texts: self.texts + times,
            tokens: self.tokens + tokens * times,
            bytes: self.bytes + count(text.len()) * times,
        }
    }

    fn ids(self, number: usize) -> Read {
        Read { texts: self.texts + 1, tokens: self.tokens + count(number), bytes: self.bytes + 2 * count(number) }
    }

    /// Our own count, or two bytes to a token where that is more, and two tokens around each text.
    fn most(self) -> i128 {
        self.tokens.max((self.bytes + 1) / 2) + 2 * self.texts
    }
}

/// How a call goes: as it should, without a report, or not at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    Well,
    Unreported,
    Wrong,
}

impl Goes {
    fn of(seed: &mut Seed) -> Goes {
        match seed.below(12) {
            0 => Goes::Wrong,
            1 | 2 => Goes::Unreported,
            _ => Goes::Well,
        }
    }

    /// What a text says besides.
    fn marker(self) -> &'static str {
        match self {
            Goes::Well => "",
            Goes::Unreported => " [[sim:no_usage]]",
            Goes::Wrong => " [[sim:error500]]",
        }
    }

    /// Of what is reported and our own count, what is charged.
    fn charged(self, reported: i64, own: i64) -> i64 {
        match self {
            Goes::Well => reported,
            Goes::Unreported => own,
            Goes::Wrong => 0,
        }
    }
}

fn small(seed: &mut Seed, limit: u64) -> usize {
    usize::try_from(seed.below(limit)).expect("small")
}

fn text(seed: &mut Seed, most: u64) -> String {
    let number = 1 + seed.below(most);
    (0..number).map(|_| seed.one(&WORDS)).collect::<Vec<_>>().join(" ")
}

fn texts(seed: &mut Seed, number: usize, goes: Goes) -> Vec<String> {
    let mut all: Vec<String> = (0..number).map(|_| text(seed, 12)).collect();
    // The simulator goes by the last of them.
    if let Some(last) = all.last_mut() {
        last.push_str(goes.marker());
    }
    all
}

fn wish(path: &'static str, body: Value, hold: i64, charge: i64, sort: &str) -> Wish {
    Wish { path, body, upload: Upload::None, hold, charge, sort: sort.to_owned() }
}

pub fn vectors(seed: &mut Seed) -> Wish {
    let form = seed.below(8);
    // Tokens carry no marker.
    let goes = if (2..4).contains(&form) { Goes::Well } else { Goes::of(seed) };
    let number = if matches!(form, 0 | 2 | 6) { 1 } else { 1 + small(seed, 8) };
    let given = texts(seed, number, goes);
    let mut read = given.iter().fold(Read::default(), |read, one| read.text(one));
    let mut reported: i128 = given.iter().map(|one| words(one)).sum();
    let (mut path, mut model, mut price) = ("/v1/embeddings", "vectors", 1_000_003);
    let (input, sort) = match form {
        0 => (json!(given[0]), "one text"),
        1 => (json!(given), "texts"),
        2 | 3 => {
            let lists: Vec<Vec<u64>> =
                (0..number).map(|_| (0..=seed.below(30)).map(|_| seed.below(100_000)).collect()).collect();
            read = lists.iter().fold(Read::default(), |read, one| read.ids(one.len()));
            reported = read.tokens;
            if form == 2 { (json!(lists[0]), "tokens of one text") } else { (json!(lists), "tokens of texts") }
        }
        4 => {
            (model, price) = ("vectors-in-parts", 19_999);
            (json!(given), "texts in parts")
        }
        5 => {
            model = "flat-vectors";
            (json!(given), "flat-vectors")
        }
        6 => {
            path = "/v1beta/models/vectors:embedContent";
            (Value::Null, "Gemini's text")
        }
        _ => {
            path = "/v1beta/models/vectors:batchEmbedContents";
            (Value::Null, "Gemini's texts")
        }
    };
    let mut requests: Vec<Value> =
        given.iter().map(|one| json!({ "content": { "parts": [{ "text": one }] } })).collect();
    let body = match form {
        6 => requests.remove(0),
        7 => json!({ "requests": requests }),
        _ => {
            let format = seed.one(&["float", "base64"]);
            json!({ "model": model, "input": input, "encoding_format": format, "dimensions": 1 + seed.below(16) })
        }
    };
    let tokens = |number: i128| nano(price, number, 1_000_000);
    let (hold, charge) = match model {
        "flat-vectors" => (nano(2_503, 1, 1), goes.charged(nano(2_503, 1, 1), nano(2_503, 1, 1))),
        _ => (tokens(read.most()), goes.charged(tokens(reported), tokens(read.tokens))),
    };
    let sort = match goes {
        Goes::Wrong => "no vectors",
        Goes::Unreported if model != "flat-vectors" => "own count",
        _ => sort,
    };
    wish(path, body, hold, charge, sort)
}

pub fn order(seed: &mut Seed) -> Wish {
    let goes = Goes::of(seed);
    let query = format!("{}{}", text(seed, 6), goes.marker());
    let by_call = seed.below(2) == 0;
    // On both sides of a hundred, and now and then of a document that counts as several.
    let number = seed.one(&[1, 2, 7, 20, 99, 100, 101]);
    let long = by_call && seed.below(3) == 0;
    let documents: Vec<String> = (0..number).map(|_| text(seed, if long { 1_200 } else { 8 })).collect();
    let read = documents.iter().fold(Read::default(), |read, one| read.text(one)).beside(&query, number);
    let each = |one: &String| words(one) + words(&query);
    let mut body = json!({ "query": query, "documents": documents });
    if seed.below(2) == 0 {
        body["top_n"] = json!(1 + seed.below(120));
    }
    let path = seed.one(&["/v1/rerank", "/v2/rerank"]);
    let hundreds = |pieces: i128| (pieces + 99) / 100;
    let (model, hold, reported, own) = if by_call {
        let calls = |number: i128| nano(2_003, number, 1);
        let all = count(number);
        // A piece for each 500 tokens that may be read.
        let most = calls(hundreds(all + (read.most() - all) / 500));
        let pieces = documents.iter().map(|one| (each(one) + 499) / 500).sum();
        ("order-by-call", most, calls(hundreds(pieces)), calls(hundreds(all)))
    } else {
        let tokens = |number: i128| nano(777_777, number, 1_000_000);
        let said = documents.iter().map(each).sum();
        ("order", tokens(read.most()), tokens(said), tokens(read.tokens))
    };
    body["model"] = json!(model);
    let sort = match goes {
        Goes::Wrong => "no order",
        Goes::Unreported => "own count",
        Goes::Well if by_call && reported > own => "pieces",
        Goes::Well => model,
    };
    wish(path, body, hold, goes.charged(reported, own), sort)
}

/// All text below a value, with the names of its members.
fn read_of(value: &Value, read: Read) -> Read {
    match value {
        Value::String(text) => read.text(text),
        Value::Array(all) => all.iter().fold(read, |read, one| read_of(one, read)),
        Value::Object(members) => members.iter().fold(read, |read, (name, value)| read_of(value, read.text(name))),
        other => read.text(&other.to_string()),
    }
}

pub fn decision(seed: &mut Seed) -> Wish {
    let goes = Goes::of(seed);
    let said = format!("{}{}", text(seed, 60), goes.marker());
    let number = 1 + small(seed, 5);
    let one = seed.below(2) == 0;
    let labels = |seed: &mut Seed| (0..2 + small(seed, 4)).map(|at| format!("label {at}")).collect::<Vec<_>>();
    let mut questions = if one { json!({}) } else { json!([]) };
    for at in 0..number {
        let (kind, asked, labels) = (seed.below(3), text(seed, 9), labels(seed));
        let question = match (kind, one) {
            (0, true) => json!({ "type": "noul", "instructions": asked }),
            (0, false) => json!({ "type": "predicate", "instructions": asked }),
            (1, true) => {
                let criteria: Value = labels.iter().map(|label| (label.clone(), json!(asked))).collect();
                json!({ "type": "choice", "criteria": criteria })
            }
            (1, false) => {
                let choices: Vec<Value> = labels.iter().map(|label| json!({ "value": label })).collect();
                json!({ "type": "choice", "instructions": asked, "choices": choices })
            }
            (_, true) => json!({ "type": "score", "instructions": asked, "criteria": labels }),
            (_, false) => {
                let levels: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
                json!({ "type": "score", "instructions": asked, "levels": levels })
            }
        };
        match &mut questions {
            Value::Array(all) => all.push(question),
            all => all[format!("question {at}")] = question,
        }
    }
    let read = read_of(&questions, read_of(&json!(said), Read::default()));
    let cost = |input: i128, output: i128| nano(42_001 * input + 300_007 * output, 1, 1_000_000);
    let asked = count(number);
    // What stands around it, and 1,024 tokens for each answer.
    let hold = cost(read.most() + 512 + 16 * asked, 1_024 * asked);
    // The simulator adds as much as the model does, and writes a token for each answer.
    let reported = cost(260 + 8 * asked + words(&said) + words(&questions.to_string()), asked);
    let charge = goes.charged(reported, cost(read.tokens, 0));
    let (path, model, name) = match one {
        true => ("/v1/systemone", "judge-one", "state"),
        false => ("/v1/decisions", "judge", "input"),
    };
    let sort = match goes {
        Goes::Wrong => "no decision",
        Goes::Unreported => "own count",
        Goes::Well => model,
    };
    wish(path, json!({ "model": model, name: said, "questions": questions }), hold, charge, sort)
}
