//! What of an answer has no form in its client's dialect: blocks of tools that ran at the provider,
//! sound, places in documents. A request's fields are seen to by `policy.rs`; an answer is not
//! refused for what it holds, so here everything is recorded, as `answer.` and the provider's own
//! name for it.

use super::event::{Citation, Event, Stop};
use super::names::ToolNames;
use super::tier::{is_usual, tier_in};
use tollgate_wire::Dialect;
use tollgate_wire::Dropped;

#[derive(Debug)]
pub(crate) struct Lost {
    from: Dialect,
    to: Dialect,
    /// The client reads one call of an answer.
    old: bool,
    pub dropped: Dropped,
}

impl Lost {
    pub fn new(from: Dialect, to: Dialect, names: &ToolNames) -> Self {
        Lost { from, to, old: names.is_old(), dropped: Dropped::default() }
    }

    /// Looks at an event on its way to the writer, which leaves out what is recorded here.
    pub fn see(&mut self, event: &Event<'_>) {
        let one_choice = matches!(self.to, Dialect::Anthropic | Dialect::Responses);
        let what = match event {
            Event::Rest(rest) => return rest.report(&mut |inside, name| self.record(inside, name)),
            Event::Lost { what } => what,
            Event::Foreign { what, .. } => what,
            Event::CallOpen { call, .. } if self.old && *call > 0 => "tool_calls",
            Event::Audio { .. } if self.to != Dialect::Chat => "audio",
            // Chat has no such item, and Anthropic's is half of a pair.
            Event::Search { .. } if matches!(self.to, Dialect::Chat | Dialect::Anthropic) => "web_search",
            Event::Image { .. } if self.to == Dialect::Anthropic => "image",
            Event::Searches { what, .. } if matches!(self.to, Dialect::Chat | Dialect::Gemini) => what,
            Event::Cite { citation: Citation::Foreign { origin, .. }, .. }
                if self.to != Dialect::Chat && *origin != self.to =>
            {
                "citations"
            }
            Event::Cite { citation: Citation::Url { quote, index, .. }, .. } if self.to != Dialect::Anthropic => {
                return self.source(quote, index);
            }
            // A citation of Anthropic's is of a whole block, and the text before it has left.
            Event::Cite { citation: Citation::Url { from, to, .. }, .. } if self.from != Dialect::Gemini => {
                return self.record_unplaced(*from, *to);
            }
            Event::Tier(tier) if tier_in(self.to, tier).is_none() && !is_usual(tier) => match self.from {
                Dialect::Anthropic => "usage.service_tier",
                _ => "service_tier",
            },
            Event::Logprobs { .. } if self.to == Dialect::Anthropic => "logprobs",
            Event::Finish { finish, .. } => match (finish.stop, self.to) {
                (Stop::Pause, Dialect::Responses) | (Stop::Malformed, Dialect::Anthropic) => &finish.native,
                (_, Dialect::Responses) if finish.details.is_some() => "stop_details",
                // Chat's own servers that name it have another word.
                (_, to) if finish.sequence.is_some() && to != Dialect::Anthropic => match self.from {
                    Dialect::Chat => "stop_reason",
                    _ => "stop_sequence",
                },
                _ => return,
            },
            _ if one_choice && event.choice().is_some_and(|choice| choice > 0) => "choices",
            _ => return,
        };
        self.record("", what);
    }

    /// What only Anthropic's citations say of a page. Gemini's quote is of the answer itself.
    fn source(&mut self, quote: &str, index: &str) {
        if !quote.is_empty() && self.from == Dialect::Anthropic {
            self.record("", "cited_text");
        }
        if !index.is_empty() {
            self.record("", "encrypted_index");
        }
    }

    fn record_unplaced(&mut self, from: Option<u64>, to: Option<u64>) {
        for name in [from.map(|_| "start_index"), to.map(|_| "end_index")].into_iter().flatten() {
            self.record("", name);
        }
    }

    /// Most of it comes with every chunk of a stream: reported once, without making its name again.
    fn record(&mut self, inside: &str, name: &str) {
        let dot = if inside.is_empty() { "" } else { "." };
        let known = |field: &String| {
            let rest = field.strip_prefix("answer.").and_then(|field| field.strip_prefix(inside)?.strip_prefix(dot));
            rest == Some(name)
        };
        if !self.dropped.fields().iter().any(known) {
            self.dropped.add(&format!("answer.{inside}{dot}{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dialect_has_no_form_for() {
        let events = [
            Event::Foreign { choice: 0, origin: Dialect::Anthropic, what: "server_tool_use".into(), raw: "{}".into() },
            Event::Lost { what: "container".into() },
            Event::Audio { choice: 0, raw: "{}".into() },
            Event::Image { choice: 0, mime: "image/png".into(), base64: "".into() },
            Event::Cite {
                choice: 0,
                citation: Citation::Foreign { origin: Dialect::Anthropic, raw: "{}".into(), place: None },
            },
            Event::Text { choice: 1, text: "b".into() },
            Event::Text { choice: 0, text: "a".into() },
        ];
        for (to, dropped) in [
            (Dialect::Chat, "answer.server_tool_use,answer.container"),
            (Dialect::Anthropic, "answer.server_tool_use,answer.container,answer.audio,answer.image,answer.choices"),
            (
                Dialect::Responses,
                "answer.server_tool_use,answer.container,answer.audio,answer.citations,answer.choices",
            ),
            (Dialect::Gemini, "answer.server_tool_use,answer.container,answer.audio,answer.citations"),
        ] {
            let mut lost = Lost::new(Dialect::Anthropic, to, &ToolNames::default());
            events.iter().for_each(|event| lost.see(event));
            assert_eq!(lost.dropped.to_string(), dropped, "{to:?}");
        }
    }
}
