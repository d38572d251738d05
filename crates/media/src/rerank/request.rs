//! A request to put documents into order, checked.

use crate::TextTally;
use crate::body::{each_member, model, whole};
use bytes::Bytes;
use std::borrow::Cow;
use tollgate_wire::json::{self, Node, Object, Scan};
use tollgate_wire::{Dropped, Problem};

/// Documents in one request.
pub const MOST_DOCUMENTS: usize = 2_048;
/// Documents that one call is sold for, where calls are what is sold.
pub const SEARCH_UNIT: usize = 100;
/// Tokens of a document and the question that count as one document.
const PIECE_TOKENS: u64 = 500;
/// Documents that are sent back have no more bytes than this.
const MOST_SENT_BACK: u64 = 1 << 20;

/// What every maker is asked, or the gateway does itself.
const COMMON: &[&str] = &["model", "query", "documents", "top_n", "return_documents"];

/// A checked request.
#[derive(Clone, Debug)]
pub struct RerankRequest {
    pub model: String,
    /// What the provider reads: each document, and the question once more with each of them.
    pub tally: TextTally,
    pub documents: usize,
    /// Results that are wanted.
    pub top_n: Option<usize>,
    pub return_documents: bool,
    /// Tokens of a document that are read.
    pub max_tokens_per_doc: Option<u64>,
    body: Bytes,
}

impl RerankRequest {
    pub fn read(body: Bytes) -> Result<RerankRequest, Problem> {
        let mut read = RerankRequest {
            model: String::new(),
            tally: TextTally::default(),
            documents: 0,
            top_n: None,
            return_documents: false,
            max_tokens_per_doc: None,
            body: body.clone(),
        };
        let mut query = TextTally::default();
        let mut listed = false;
        each_member(&body, |key, scan| {
            match key {
                b"model" => read.model = model(scan)?.0,
                b"query" => text(scan, "query", &mut query)?,
                b"documents" => {
                    listed = true;
                    read.list(scan)?;
                }
                b"top_n" => {
                    let most = whole(scan, "top_n", 1..=1_000_000)?;
                    read.top_n = most.and_then(|most| usize::try_from(most).ok());
                }
                b"return_documents" => read.return_documents = flag(scan)?,
                b"max_tokens_per_doc" => {
                    read.max_tokens_per_doc = whole(scan, "max_tokens_per_doc", 1..=1_000_000)?;
                }
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        for (missing, name) in [(read.model.is_empty(), "model"), (query.texts == 0, "query"), (!listed, "documents")] {
            if missing {
                return Err(Problem::missing(name));
            }
        }
        if read.return_documents && read.tally.bytes > MOST_SENT_BACK {
            let why =
                "`return_documents`: documents of more than 1 MiB are not sent back; `index` says which is which.";
            return Err(Problem::unsupported("return_documents", why));
        }
        let times = read.documents as u64;
        read.tally.tokens = read.tally.tokens.saturating_add(query.tokens.saturating_mul(times));
        read.tally.bytes = read.tally.bytes.saturating_add(query.bytes.saturating_mul(times));
        read.tally.longest = read.tally.longest.saturating_add(query.tokens);
        Ok(read)
    }

    fn list(&mut self, scan: &mut Scan<'_>) -> Result<(), Problem> {
        if scan.peek() != Some(b'[') {
            return Err(Problem::wrong("documents", "a list"));
        }
        scan.array(|scan| {
            let place = || format!("documents[{}]", self.documents);
            if self.documents == MOST_DOCUMENTS {
                return Err(Problem::wrong("documents", &format!("a list of at most {MOST_DOCUMENTS} documents")));
            }
            match scan.peek() {
                Some(b'"') => text(scan, &place(), &mut self.tally)?,
                Some(b'{') => {
                    let before = self.tally.texts;
                    scan.object(|key, scan| match key.is("text") {
                        true => text(scan, &format!("{}.text", place()), &mut self.tally),
                        // A picture has no count and no price here.
                        false => Err(not_text(&place())),
                    })?;
                    if self.tally.texts != before + 1 {
                        return Err(not_text(&place()));
                    }
                }
                _ => return Err(not_text(&place())),
            }
            self.documents += 1;
            Ok(())
        })?;
        if self.documents == 0 { Err(Problem::wrong("documents", "a list that is not empty")) } else { Ok(()) }
    }

    /// Results that the client is given at most.
    pub fn wanted(&self) -> usize {
        self.top_n.unwrap_or(usize::MAX).min(self.documents)
    }

    /// Calls that it counts as at least, where calls are what is sold.
    pub fn search_units(&self) -> u64 {
        self.documents.div_ceil(SEARCH_UNIT) as u64
    }

    /// Calls that it counts as at most: a long document is cut into pieces, and each counts as a
    /// document.
    pub fn most_search_units(&self) -> u64 {
        let documents = self.documents as u64;
        let pieces = documents.saturating_add(self.tally.most().saturating_sub(documents) / PIECE_TOKENS);
        pieces.div_ceil(SEARCH_UNIT as u64)
    }

    /// A scalar of the request by dotted path.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        json::attr(&self.body, path)
    }

    /// Writes `query` and `documents`, each a plain text.
    pub fn write_texts(&self, object: &mut Object<'_>) -> Result<(), Problem> {
        let tree = self.tree()?;
        if let Some(query) = tree.get("query") {
            object.raw("query", query.raw);
        }
        object.array("documents", |list| documents(&tree).for_each(|one| list.raw(one.raw)));
        Ok(())
    }

    /// Fields of the request that are neither common to all makers nor among those that a maker has
    /// `said`.
    pub fn unsaid(&self, said: &[&str]) -> Result<Dropped, Problem> {
        let tree = self.tree()?;
        let mut dropped = Dropped::default();
        let given = tree.members().iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_ref());
        given.filter(|name| !COMMON.contains(name) && !said.contains(name)).for_each(|name| dropped.add(name));
        Ok(dropped)
    }

    /// The document at this place, as JSON text.
    pub(super) fn texts<'n>(&self, tree: &'n Node<'_>) -> Vec<&'n str> {
        documents(tree).map(|one| one.raw).collect()
    }

    pub(super) fn tree(&self) -> Result<Node<'_>, Problem> {
        Ok(Node::read(std::str::from_utf8(&self.body).unwrap_or_default())?)
    }
}

fn documents<'n, 'a>(tree: &'n Node<'a>) -> impl Iterator<Item = &'n Node<'a>> {
    let list = tree.get("documents").map_or(&[][..], Node::items);
    list.iter().map(|one| one.get("text").unwrap_or(one))
}

fn not_text(place: &str) -> Problem {
    Problem::wrong(place, "a string, or an object with nothing but `text`")
}

fn text(scan: &mut Scan<'_>, place: &str, tally: &mut TextTally) -> Result<(), Problem> {
    let wrong = || Problem::wrong(place, "a string that is not empty");
    if scan.peek() != Some(b'"') {
        return Err(wrong());
    }
    let text = scan.string()?;
    if text.is_empty() {
        return Err(wrong());
    }
    tally.text(text.raw());
    Ok(())
}

fn flag(scan: &mut Scan<'_>) -> Result<bool, Problem> {
    match scan.value()? {
        b"true" => Ok(true),
        b"false" | b"null" => Ok(false),
        _ => Err(Problem::wrong("return_documents", "true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<RerankRequest, Problem> {
        RerankRequest::read(Bytes::from(body.to_owned()))
    }

    #[test]
    fn the_question_is_read_with_every_document() {
        let one =
            read(r#"{"model":"m","query":"one two","documents":["three",{"text":"four five"}],"top_n":1}"#).unwrap();
        let counted = tollgate_wire::count::tokens;
        let tokens = counted("three") + counted("four five") + 2 * counted("one two");
        assert_eq!((one.documents, one.tally.tokens, one.wanted(), one.search_units()), (2, tokens, 1, 1));
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        one.write_texts(&mut object).unwrap();
        object.end();
        assert_eq!(out, br#"{"query":"one two","documents":["three","four five"]}"#);
        let many = format!(r#"{{"model":"m","query":"q","documents":["a"{}]}}"#, r#","a""#.repeat(100));
        assert_eq!(read(&many).unwrap().search_units(), 2);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = format!("[{}\"x\"]", "\"x\",".repeat(MOST_DOCUMENTS));
        let long = format!("[\"{}\"]", "x".repeat(2 << 20));
        for (rest, param) in [
            (r#""documents":["a"]"#, "query"),
            (r#""query":"q""#, "documents"),
            (r#""query":"","documents":["a"]"#, "query"),
            (r#""query":"q","documents":[]"#, "documents"),
            (r#""query":"q","documents":"a""#, "documents"),
            (r#""query":"q","documents":["a",""]"#, "documents[1]"),
            (r#""query":"q","documents":[7]"#, "documents[0]"),
            (r#""query":"q","documents":[{}]"#, "documents[0]"),
            (r#""query":"q","documents":[{"image":"x"}]"#, "documents[0]"),
            (r#""query":"q","documents":["a"],"top_n":0"#, "top_n"),
            (r#""query":"q","documents":["a"],"return_documents":1"#, "return_documents"),
            (&format!(r#""query":"q","documents":{many}"#), "documents"),
            (&format!(r#""query":"q","documents":{long},"return_documents":true"#), "return_documents"),
        ] {
            let body = format!(r#"{{"model":"m",{rest}}}"#);
            assert_eq!(read(&body).unwrap_err().param.as_deref(), Some(param), "{}", &body[..body.len().min(80)]);
        }
        assert_eq!(read(r#"{"query":"q","documents":["a"]}"#).unwrap_err().param.as_deref(), Some("model"));
    }
}
