//! Events written as a stream of GenerateContentResponse objects.
//!
//! Held here: each event is a whole object in one `data: ` line and nothing else, for Gemini's
//! clients bear no other line; calls leave whole; the reason of the finish comes once, in the last
//! object, with the usage. Without `alt=sse` the same objects are the elements of one JSON array.

use super::answer_out::{finish, grounding, signature, write_call, write_image};
use super::cites;
use crate::hub::{Citation, Event, Finish, NEXT_TEXT, Seal, SealMaker, ToolCall, Voice, owned_seal};
use std::borrow::Cow;
use tollgate_wire::json::{Array, Object};
use tollgate_wire::usage::{Usage, UsageShape};

/// Citations and searches of one answer, which are written at its end.
const MOST_CITES: usize = 4_096;
/// What calls that are not whole may hold in all.
const MOST_HELD: usize = 16 << 20;
/// Text buffered to give citations their places.
const MOST_TEXT: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct GeminiWriter {
    /// `"modelVersion":…,"responseId":…`
    tail: Vec<u8>,
    array: bool,
    begun: bool,
    choices: Vec<Choice>,
    held: usize,
    /// Citations come with places in the text, so the text is buffered.
    places: bool,
    text: usize,
    cites: usize,
    ended: bool,
}

#[derive(Debug, Default)]
struct Choice {
    calls: Vec<Option<ToolCall<'static>>>,
    seals: Vec<Seal<'static>>,
    cites: Vec<Citation<'static>>,
    searched: Vec<String>,
    text: String,
    refused: bool,
    finish: Option<Finish<'static>>,
}

impl GeminiWriter {
    /// `places`: whether the provider's citations say where in the text they belong.
    pub fn new(voice: &Voice, places: bool) -> Self {
        let mut tail = Vec::new();
        let mut object = Object::begin(&mut tail);
        object.text("modelVersion", &voice.model);
        object.text("responseId", &voice.prefixed(""));
        tail.remove(0);
        GeminiWriter {
            tail,
            array: voice.array,
            begun: false,
            choices: Vec::new(),
            held: 0,
            places,
            text: 0,
            cites: 0,
            ended: false,
        }
    }

    /// More had to be buffered for the end, or until a call is whole, than is allowed.
    pub fn is_full(&self) -> bool {
        self.held > MOST_HELD || self.cites > MOST_CITES
    }

    pub fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        debug_assert!(!self.ended, "nothing follows the last object");
        let Some(choice) = event.choice() else { return };
        let at = choice as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Choice::default);
        }
        match event {
            Event::Text { text, .. } => {
                let one = &mut self.choices[at];
                if self.places && self.text < MOST_TEXT {
                    self.text += text.len();
                    one.text.push_str(text);
                }
                let bound = one.seals.iter().position(|seal| seal.bound == NEXT_TEXT);
                let seal = bound.map(|bound| one.seals.remove(bound));
                self.part(choice, out, |part| {
                    part.text("text", text);
                    signature(part, seal.as_ref());
                });
            }
            Event::Refusal { text, .. } => {
                self.choices[at].refused = true;
                self.part(choice, out, |part| part.text("text", text));
            }
            Event::Thought { text, .. } => self.part(choice, out, |part| {
                part.text("text", text);
                part.bool("thought", true);
            }),
            Event::ThoughtEnd { seal: Some(seal), redacted, .. } => {
                if seal.origin == SealMaker::Gemini && !seal.bound.is_empty() {
                    self.choices[at].seals.push(owned_seal(seal));
                } else {
                    self.part(choice, out, |part| {
                        part.text("text", "");
                        part.bool("thought", true);
                        signature(part, Some(&*seal.with_signed(*redacted, "")));
                    });
                }
            }
            Event::CallOpen { id, name, kind, .. } => self.choices[at].calls.push(Some(ToolCall {
                id: Cow::Owned(id.to_string()),
                name: Cow::Owned(name.to_string()),
                namespace: None,
                kind: *kind,
                args: Cow::Borrowed(""),
                cached: false,
                rest: Vec::new(),
            })),
            Event::CallArgs { call, text, .. } => {
                self.held += text.len();
                let known = self.choices[at].calls.get_mut(*call as usize);
                if let Some(Some(call)) = known.filter(|_| self.held <= MOST_HELD) {
                    call.args.to_mut().push_str(text);
                }
            }
            Event::CallClose { call, .. } => self.call(choice, *call as usize, out),
            Event::Cite { citation, .. } => {
                self.cites += 1;
                if self.cites <= MOST_CITES {
                    self.choices[at].cites.push(citation.owned());
                }
            }
            Event::Search { query, .. } => {
                self.cites += 1;
                if self.cites <= MOST_CITES {
                    self.choices[at].searched.push(query.to_string());
                }
            }
            Event::Logprobs { raw, .. } => self.object(out, |body| {
                body.array("candidates", |list| {
                    list.object(|one| {
                        nothing(one);
                        one.number("index", u64::from(choice));
                        cites::write_logprobs(one, &[raw.to_string()]);
                    });
                });
            }),
            Event::Image { mime, base64, .. } => self.part(choice, out, |part| write_image(part, mime, base64)),
            Event::Finish { finish, .. } => {
                // Half a call is no call: an agent would run it.
                let cut = finish.stop.cuts();
                for call in (0..self.choices[at].calls.len()).filter(|_| !cut) {
                    self.call(choice, call, out);
                }
                self.choices[at].finish = Some(finish.owned());
            }
            _ => {}
        }
    }

    fn call(&mut self, choice: u32, call: usize, out: &mut Vec<u8>) {
        let one = &mut self.choices[choice as usize];
        let Some(call) = one.calls.get_mut(call).and_then(Option::take) else { return };
        self.held = self.held.saturating_sub(call.args.len());
        let bound = one.seals.iter().position(|seal| seal.bound == call.id);
        let seal = bound.map(|bound| one.seals.remove(bound));
        self.part(choice, out, |part| write_call(part, &call, seal.as_ref()));
    }

    fn part(&mut self, choice: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        self.object(out, |body| {
            body.array("candidates", |list| {
                list.object(|one| {
                    content(one, write);
                    one.number("index", u64::from(choice));
                });
            });
        });
    }

    fn object(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(match (self.array, self.begun) {
            (false, _) => b"data: ",
            (true, false) => b"[",
            (true, true) => b",\n",
        });
        self.begun = true;
        let mut body = Object::begin(out);
        write(&mut body);
        // An object is never empty here: there are candidates or there is usage.
        out.push(b',');
        out.extend_from_slice(&self.tail);
        out.push(b'}');
        if !self.array {
            out.extend_from_slice(b"\n\n");
        }
    }

    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        debug_assert!(!self.ended, "one last object");
        self.ended = true;
        let mut choices = std::mem::take(&mut self.choices);
        if choices.is_empty() {
            choices.push(Choice::default());
        }
        self.object(out, |body| {
            body.array("candidates", |list| {
                for (index, choice) in choices.iter().enumerate() {
                    list.object(|one| last(one, choice, index as u64));
                }
            });
            if let Some(usage) = usage {
                usage.write(UsageShape::Gemini, body.key("usageMetadata"));
            }
        });
        if self.array {
            out.extend_from_slice(b"]\n");
        }
    }

    /// The stream passed from elsewhere up to here.
    pub fn go_on(&mut self, begun: bool) {
        self.begun = begun;
    }

    /// An error in the middle of a stream: an event, or the array's last element.
    pub fn fail(&mut self, error: &[u8], out: &mut Vec<u8>) {
        match (self.array, self.begun) {
            (false, _) => out.extend_from_slice(b"data: "),
            (true, false) => out.push(b'['),
            (true, true) => out.extend_from_slice(b",\n"),
        }
        self.begun = true;
        out.extend_from_slice(error);
        out.extend_from_slice(if self.array { b"]\n" } else { b"\n\n" });
    }
}

fn content(one: &mut Object<'_>, write: impl FnOnce(&mut Object<'_>)) {
    one.object("content", |content| {
        content.array("parts", |list: &mut Array<'_>| list.object(write));
        content.text("role", "model");
    });
}

/// A content without parts.
fn nothing(one: &mut Object<'_>) {
    one.object("content", |content| {
        content.raw("parts", "[]");
        content.text("role", "model");
    });
}

/// The last object of a candidate.
fn last(one: &mut Object<'_>, choice: &Choice, index: u64) {
    // A signature whose text never came still goes back with the next turn.
    match choice.seals.first() {
        Some(seal) => content(one, |part| {
            part.text("text", "");
            signature(part, Some(seal));
        }),
        None => nothing(one),
    }
    finish(one, choice.finish.as_ref(), choice.refused);
    one.number("index", index);
    let searched: Vec<&str> = choice.searched.iter().map(String::as_str).collect();
    grounding(one, &choice.cites.iter().collect::<Vec<_>>(), &searched, &choice.text);
}
