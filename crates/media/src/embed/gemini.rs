//! Requests in Gemini's format: the path names the model, each request may name it again.

use super::request::{EmbedCaller, EmbedRequest, MOST_INPUTS};
use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, quoted};

/// What has another name in our price list than in Google's documents.
pub(super) const DIMENSIONS: (&str, &str) = ("outputDimensionality", "output_dimensionality");

impl EmbedRequest {
    /// Reads the body of `:embedContent`, or of `:batchEmbedContents`.
    pub fn gemini(body: Bytes, model: &str, batch: bool) -> Result<EmbedRequest, Problem> {
        let text = std::str::from_utf8(&body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let root = Node::read(text)?;
        if !root.is_map() {
            return Err(Problem::not_json("The body must be a JSON object."));
        }
        let mut read = EmbedRequest::new(EmbedCaller::Gemini { batch }, model.to_owned(), body.clone());
        if !batch {
            read.request(&root, "")?;
            return Ok(read);
        }
        let requests = root.get("requests").ok_or_else(|| Problem::missing("requests"))?;
        if requests.items().is_empty() || requests.items().len() > MOST_INPUTS {
            return Err(Problem::wrong("requests", &format!("a list of 1 to {MOST_INPUTS} requests")));
        }
        for (at, request) in requests.items().iter().enumerate() {
            read.request(request, &format!("requests[{at}]."))?;
        }
        Ok(read)
    }

    /// One text; `before` is what the names of its fields begin with.
    fn request(&mut self, request: &Node<'_>, before: &str) -> Result<(), Problem> {
        let place = format!("{before}content");
        let content = request.get("content").ok_or_else(|| Problem::missing(&place))?;
        let mut raw = Vec::new();
        for (at, part) in parts(content).iter().enumerate() {
            let here = format!("{place}.parts[{at}]");
            // Pictures and sound have no count and no price here.
            let text = part.text_of("text").filter(|_| part.members().len() == 1);
            let text = text.ok_or_else(|| Problem::wrong(&here, "a part with nothing but `text`"))?;
            raw.extend_from_slice(&quoted(text)[1..]);
            raw.pop();
        }
        if raw.is_empty() {
            return Err(Problem::wrong(&place, "a content with text in its `parts`"));
        }
        self.tally.text(&raw);
        let wanted = request.either(DIMENSIONS.0, DIMENSIONS.1);
        let place = format!("{before}{}", DIMENSIONS.0);
        let number = wanted.map(|node| node.number().filter(|number| (1..=65_536).contains(number)));
        match number {
            Some(None) => return Err(Problem::wrong(&place, "a whole number from 1 to 65536")),
            Some(given) if self.tally.texts == 1 => self.dimensions = given,
            given if self.tally.texts > 1 && given.flatten() != self.dimensions => {
                return Err(Problem::wrong(&place, "the same in all requests"));
            }
            _ => {}
        }
        self.same_model(request, before)
    }

    /// A request that names another model than the path would be answered by the wrong one.
    fn same_model(&self, request: &Node<'_>, before: &str) -> Result<(), Problem> {
        match request.get("model").map(|node| node.text().map_or("", |name| name)) {
            Some(name) if name.strip_prefix("models/").unwrap_or(name) != self.model => {
                Err(Problem::wrong(&format!("{before}model"), "the model of the path"))
            }
            _ => Ok(()),
        }
    }
}

/// The parts of a content; a text alone is one, too, as Google's own SDKs allow.
pub(super) fn parts<'n, 'a>(content: &'n Node<'a>) -> &'n [Node<'a>] {
    match content.get("parts") {
        Some(list) if list.is_list() => list.items(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, batch: bool) -> Result<EmbedRequest, Problem> {
        EmbedRequest::gemini(Bytes::from(body.to_owned()), "gemini-e", batch)
    }

    #[test]
    fn a_request_and_a_batch_are_counted() {
        let one = read(r#"{"content":{"parts":[{"text":"hello"}]},"outputDimensionality":64}"#, false).unwrap();
        assert_eq!((one.tally.texts, one.dimensions), (1, Some(64)));
        let batch = r#"{"requests":[{"model":"models/gemini-e","content":{"parts":[{"text":"a"},{"text":"b"}]}},{"content":{"parts":[{"text":"c"}]}}]}"#;
        assert_eq!(read(batch, true).unwrap().tally.texts, 2);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let content = r#""content":{"parts":[{"text":"a"}]}"#;
        for (body, batch, param) in [
            ("{}".to_owned(), false, "content"),
            ("{}".to_owned(), true, "requests"),
            (r#"{"requests":[]}"#.to_owned(), true, "requests"),
            (r#"{"requests":[{}]}"#.to_owned(), true, "requests[0].content"),
            (r#"{"content":{"parts":[]}}"#.to_owned(), false, "content"),
            (r#"{"content":{"parts":[{"inlineData":{}}]}}"#.to_owned(), false, "content.parts[0]"),
            (format!(r#"{{{content},"outputDimensionality":0}}"#), false, "outputDimensionality"),
            (format!(r#"{{{content},"model":"models/other"}}"#), false, "model"),
            (
                format!(r#"{{"requests":[{{{content}}},{{{content},"outputDimensionality":3}}]}}"#),
                true,
                "requests[1].outputDimensionality",
            ),
        ] {
            assert_eq!(read(&body, batch).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
        assert_eq!(read("[", false).unwrap_err().code, tollgate_wire::error::Code::InvalidJson);
    }
}
