//! What a provider says beside its tokens of what a call cost is the operator's affair. It is read
//! where the report of usage is, and taken out of what a client gets: one member of one object,
//! while every other byte stays as it is.

use crate::json::{Edit, Node, lossy, quoted, splice};
use crate::{ChatQuirks, Dropped};
use bytes::Bytes;

/// Where an answer or an event has its report: itself, Responses' events, Claude's first event.
const HOLDERS: [&str; 2] = ["response", "message"];
const REPORT: &str = "usage";

/// Members by which providers that we know say what a call cost them or whoever pays.
pub const COST_MEMBERS: [&str; 6] =
    ["cost", "cost_details", "market_cost", "is_byok", "estimated_cost", "cost_in_usd_ticks"];

/// Members of a report that have tokens in them: `cost_at` may lead through them.
const STANDARD: [&str; 4] =
    ["prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details"];

/// The members of one provider's reports that no client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenCosts(Vec<String>);

impl ChatQuirks {
    /// What is to be taken out of this provider's answers; nothing for nearly every provider.
    pub fn hidden_costs(&self) -> Option<HiddenCosts> {
        let mut names = self.hide.clone();
        let first = self.cost_at.as_deref().and_then(|path| path.split('.').next());
        names.extend(first.filter(|name| !STANDARD.contains(name)).map(str::to_owned));
        (!names.is_empty()).then_some(HiddenCosts(names))
    }
}

impl HiddenCosts {
    /// All that is known, for a report whose provider is not at hand.
    pub fn known() -> HiddenCosts {
        HiddenCosts(COST_MEMBERS.iter().map(|name| (*name).to_owned()).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|hidden| hidden == name)
    }

    /// A list of what a translation left out, without the names of what is hidden anyway.
    pub fn unnamed(&self, dropped: &Dropped) -> Dropped {
        let mut rest = Dropped::default();
        let named = |field: &&String| field.starts_with("answer.") && field.split('.').any(|part| self.has(part));
        dropped.fields().iter().filter(|field| !named(field)).for_each(|field| rest.add(field));
        rest
    }

    fn may_stand_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|name| text.windows(name.len()).any(|part| part == name.as_bytes()))
    }

    /// A report of usage by itself, or a list of several.
    pub fn report(&self, usage: &str) -> Option<String> {
        let node = Node::read(usage).ok()?;
        if node.items().is_empty() {
            return self.shorter(&node);
        }
        let of = |one: &Node<'_>| self.shorter(one).unwrap_or_else(|| one.raw.to_owned());
        let all: Vec<String> = node.items().iter().map(of).collect();
        Some(format!("[{}]", all.join(",")))
    }

    /// An object of usage without what is hidden; nothing where it has none of it.
    fn shorter(&self, usage: &Node<'_>) -> Option<String> {
        let members = usage.members();
        if !members.iter().any(|(name, _)| self.has(name)) {
            return None;
        }
        let mut out = String::from("{");
        for (name, value) in members.iter().filter(|(name, _)| !self.has(name)) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&String::from_utf8_lossy(&quoted(name)));
            out.push(':');
            out.push_str(value.raw);
        }
        out.push('}');
        Some(out)
    }

    /// A whole answer or the data of an event; nothing where it stays as it is.
    fn object(&self, json: &[u8]) -> Option<Vec<u8>> {
        if !self.may_stand_in(json) {
            return None;
        }
        let text = lossy(json);
        let whole = Node::read(&text).ok()?;
        let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        let mut look = |holder: &Node<'_>| {
            for (_, usage) in holder.members().iter().filter(|(name, _)| name == REPORT) {
                if let Some(new) = self.shorter(usage) {
                    let start = usage.raw.as_ptr().addr() - text.as_ptr().addr();
                    edits.push((start..start + usage.raw.len(), new));
                }
            }
        };
        look(&whole);
        for (_, inner) in whole.members().iter().filter(|(name, _)| HOLDERS.contains(&name.as_ref())) {
            look(inner);
        }
        edits.sort_by_key(|(place, _)| place.start);
        let edits: Vec<Edit<'_>> = edits.iter().map(|(place, new)| (place.clone(), new.as_bytes())).collect();
        (!edits.is_empty()).then(|| splice(text.as_bytes(), &edits))
    }

    /// A whole answer as its client gets it.
    pub fn answer(&self, body: Bytes) -> Bytes {
        self.object(&body).map_or(body, Bytes::from)
    }

    /// Whole events as their client gets them.
    pub fn events(&self, events: Bytes) -> Bytes {
        if !self.may_stand_in(&events) {
            return events;
        }
        let mut out = Vec::with_capacity(events.len());
        for line in events.split_inclusive(|byte| *byte == b'\n') {
            let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
            let (text, ending) = line.split_at(end);
            match text.strip_prefix(b"data:").and_then(|data| self.object(data)) {
                Some(data) => {
                    out.extend_from_slice(b"data:");
                    out.extend_from_slice(&data);
                    out.extend_from_slice(ending);
                }
                None => out.extend_from_slice(line),
            }
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(cost_at: Option<&str>, hide: &[&str]) -> Option<HiddenCosts> {
        let hide = hide.iter().map(|name| (*name).to_owned()).collect();
        ChatQuirks { cost_at: cost_at.map(str::to_owned), hide, ..ChatQuirks::default() }.hidden_costs()
    }

    #[test]
    fn a_cost_leaves_every_form_of_answer_and_nothing_else_does() {
        let costs = hidden(Some("cost"), &["cost_details", "is_byok"]).expect("something to hide");
        for (came, goes) in [
            (
                r#"{"id":"a","usage":{"prompt_tokens":1, "cost":0.95,"total_tokens":2,"is_byok":false,"cost_details":{"cost":1}} }"#,
                r#"{"id":"a","usage":{"prompt_tokens":1,"total_tokens":2} }"#,
            ),
            (r#"{"usage":{"cost":1}}"#, r#"{"usage":{}}"#),
            (
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":3,"cost":1e-7}},"n":1}"#,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":3}},"n":1}"#,
            ),
            (
                r#"{"type":"message_start","message":{"usage":{"cost":null,"input_tokens":3}}}"#,
                r#"{"type":"message_start","message":{"usage":{"input_tokens":3}}}"#,
            ),
            (r#"{"usage":{"\u0063ost":1,"a":"\u00e9"},"x":"cost"}"#, r#"{"usage":{"a":"\u00e9"},"x":"cost"}"#),
        ] {
            assert_eq!(costs.answer(Bytes::from(came)), goes);
            let events = format!("event: x\r\ndata: {came}\r\n\r\ndata: [DONE]\n\n");
            assert_eq!(costs.events(Bytes::from(events)), format!("event: x\r\ndata: {goes}\r\n\r\ndata: [DONE]\n\n"));
            assert_eq!(costs.events(Bytes::from(format!("data:{came}"))), format!("data:{goes}"));
        }
        for same in [
            r#"{"choices":[{"message":{"content":"the cost is 3","usage":{"cost":1}}}],"usage":null}"#,
            r#"{"cost":1,"metadata":{"cost":"2"}}"#,
            "no JSON, but a cost",
            r#"{"usage":{"costs":1}}"#,
        ] {
            assert_eq!(costs.answer(Bytes::from(same)), same);
            assert_eq!(costs.events(Bytes::from(format!("data: {same}\n\n"))), format!("data: {same}\n\n"));
        }
    }

    #[test]
    fn what_has_tokens_in_it_stays() {
        assert_eq!(hidden(None, &[]), None);
        assert_eq!(hidden(Some("prompt_tokens_details.cached_tokens"), &[]), None);
        let costs = hidden(Some("cost.total_cost"), &[]).expect("something to hide");
        assert_eq!(
            costs.answer(Bytes::from(r#"{"usage":{"cost":{"total_cost":1,"request_cost":2}}}"#)),
            r#"{"usage":{}}"#
        );
        let mut dropped = Dropped::default();
        for name in ["cost", "answer.usage.cost", "answer.usage.cost.total_cost", "answer.id"] {
            dropped.add(name);
        }
        assert_eq!(costs.unnamed(&dropped).to_string(), "cost,answer.id", "fields of a request stay");
        let known = HiddenCosts::known();
        assert_eq!(
            known.report(r#"{"total_tokens":1,"cost_in_usd_ticks":7}"#).as_deref(),
            Some(r#"{"total_tokens":1}"#)
        );
        assert_eq!(known.report(r#"{"total_tokens":1}"#), None);
        let both = r#"[{"input_tokens":3,"cost":0.1},{"output_tokens":2, "cost":0.95}]"#;
        assert_eq!(known.report(both).as_deref(), Some(r#"[{"input_tokens":3},{"output_tokens":2}]"#));
        let quirks = ChatQuirks { cost_at: Some("cost".into()), ..ChatQuirks::default() };
        assert_eq!(quirks.reported_cost(both).as_deref(), Some("0.95"));
    }
}
