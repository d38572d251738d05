//! Events written as chat chunks.
//!
//! Held here, because clients insist: one id, time and model for all chunks; a chunk with the role
//! first; id and name of a call once, its index counted from 0; one finish per choice; usage only
//! when it was asked for, in a chunk of its own; `[DONE]` last and nothing after it.

use super::answer_out::{finish, write_cite, write_image, write_place};
use super::details::write_thought;
use crate::hub::{CallKind, Citation, Event, Finish, Thought, Voice, fitting_id, tier_in};
use tollgate_wire::Dialect;
use tollgate_wire::json::Object;
use tollgate_wire::usage::{Usage, UsageShape};

#[derive(Debug)]
pub(crate) struct ChatWriter {
    /// `data: {"id":…,"model":…,"choices":[{"index":`
    head: Vec<u8>,
    wants_usage: bool,
    tier: Option<String>,
    /// The client declared `functions`: it reads one call, as `function_call`.
    old: bool,
    choices: Vec<Choice>,
    ended: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    begun: bool,
    finished: bool,
    calls: bool,
    thoughts: u64,
    custom: u32,
    /// Citations written.
    cites: u64,
}

impl ChatWriter {
    pub fn new(voice: &Voice, old: bool) -> Self {
        let mut head = b"data: ".to_vec();
        let mut object = Object::begin(&mut head);
        object.text("id", &voice.prefixed("chatcmpl-"));
        object.text("object", "chat.completion.chunk");
        object.number("created", voice.created);
        object.text("model", &voice.model);
        object.key("choices");
        ChatWriter { head, wants_usage: voice.wants_usage, tier: None, old, choices: Vec::new(), ended: false }
    }

    pub fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        debug_assert!(!self.ended, "nothing follows [DONE]");
        if let Event::Tier(tier) = event {
            self.tier = tier_in(Dialect::Chat, tier).map(str::to_owned);
        }
        let Some(choice) = event.choice() else { return };
        let at = choice as usize;
        if self.choices.len() <= at {
            self.choices.resize(at + 1, Choice::default());
        }
        if self.choices[at].finished {
            return;
        }
        if !std::mem::replace(&mut self.choices[at].begun, true) {
            self.delta(choice, out, |delta| {
                delta.text("role", "assistant");
                delta.text("content", "");
            });
        }
        self.block(event, choice, out);
    }

    fn block(&mut self, event: &Event<'_>, choice: u32, out: &mut Vec<u8>) {
        let at = choice as usize;
        match event {
            Event::Text { text, .. } => self.delta(choice, out, |delta| delta.text("content", text)),
            Event::Refusal { text, .. } => self.delta(choice, out, |delta| delta.text("refusal", text)),
            Event::Thought { text, summary, .. } => {
                let index = self.choices[at].thoughts;
                self.delta(choice, out, |delta| {
                    delta.text("reasoning_content", text);
                    delta.array("reasoning_details", |list| {
                        let thought = Thought { text: text.as_ref().into(), summary: *summary, ..Thought::default() };
                        write_thought(list, &thought, index);
                    });
                });
            }
            Event::ThoughtEnd { seal, redacted, .. } => {
                let index = self.choices[at].thoughts;
                self.choices[at].thoughts += 1;
                if let Some(seal) = seal {
                    let signs = seal.origin == crate::hub::SealMaker::Anthropic && !redacted;
                    self.delta(choice, out, |delta| {
                        delta.array("reasoning_details", |list| {
                            if signs {
                                list.object(|one| {
                                    one.text("type", "reasoning.text");
                                    one.text("signature", &seal.data);
                                    one.text("format", seal.origin.format());
                                    one.text("id", crate::hub::MARK);
                                    one.number("index", index);
                                });
                            } else {
                                let seal = Some(crate::hub::owned_seal(seal));
                                let thought = Thought { seal, redacted: *redacted, ..Thought::default() };
                                write_thought(list, &thought, index);
                            }
                        });
                    });
                }
            }
            Event::CallOpen { call, .. } | Event::CallArgs { call, .. } if self.old && *call > 0 => {}
            Event::CallOpen { name, .. } if self.old => {
                self.choices[at].calls = true;
                self.delta(choice, out, |delta| {
                    delta.object("function_call", |one| {
                        one.text("name", name);
                        one.text("arguments", "");
                    });
                });
            }
            Event::CallArgs { text, .. } if self.old => {
                self.delta(choice, out, |delta| delta.object("function_call", |one| one.text("arguments", text)));
            }
            Event::CallOpen { call, id, name, kind, .. } => {
                self.choices[at].calls = true;
                self.open_call(choice, *call, &fitting_id(Dialect::Chat, id), name, *kind, out);
            }
            Event::CallArgs { call, text, .. } => {
                let custom = self.choices[at].custom & (1 << (call % 32)) != 0;
                self.delta(choice, out, |delta| {
                    delta.array("tool_calls", |list| {
                        list.object(|one| {
                            one.number("index", u64::from(*call));
                            let (kind, name) = if custom { ("custom", "input") } else { ("function", "arguments") };
                            one.object(kind, |inner| inner.text(name, text));
                        });
                    });
                });
            }
            Event::Cite { citation, .. } => {
                let place = self.choices[at].cites;
                self.choices[at].cites += u64::from(matches!(citation, Citation::Url { .. }));
                self.delta(choice, out, |delta| match citation {
                    Citation::Url { .. } => delta.array("annotations", |list| write_cite(list, citation, Some(place))),
                    Citation::Foreign { .. } => delta.array("citations", |list| write_place(list, citation)),
                });
            }
            Event::Image { mime, base64, .. } => self.delta(choice, out, |delta| {
                delta.array("images", |list| list.object(|one| write_image(one, mime, base64)));
            }),
            Event::Audio { raw, .. } => self.delta(choice, out, |delta| delta.raw("audio", raw)),
            Event::Logprobs { raw, .. } => self.chunk(out, |one| {
                one.number("index", u64::from(choice));
                one.raw("delta", "{}");
                one.object("logprobs", |logprobs| {
                    logprobs.raw("content", raw);
                    logprobs.null("refusal");
                });
                one.null("finish_reason");
            }),
            Event::Finish { finish, .. } => self.finish(choice, Some(finish), out),
            _ => {}
        }
    }

    fn finish(&mut self, choice: u32, ended: Option<&Finish<'_>>, out: &mut Vec<u8>) {
        let state = &mut self.choices[choice as usize];
        state.finished = true;
        let (calls, old) = (state.calls, self.old);
        self.chunk(out, |one| {
            one.number("index", u64::from(choice));
            one.raw("delta", "{}");
            one.null("logprobs");
            finish(one, ended, calls, old);
        });
    }

    fn open_call(&mut self, choice: u32, call: u32, id: &str, name: &str, kind: CallKind, out: &mut Vec<u8>) {
        let custom = kind == CallKind::Custom;
        if custom {
            self.choices[choice as usize].custom |= 1 << (call % 32);
        }
        self.delta(choice, out, |delta| {
            delta.array("tool_calls", |list| {
                list.object(|one| {
                    one.number("index", u64::from(call));
                    one.text("id", id);
                    let (kind, args) = if custom { ("custom", "input") } else { ("function", "arguments") };
                    one.text("type", kind);
                    one.object(kind, |inner| {
                        inner.text("name", name);
                        inner.text(args, "");
                    });
                });
            });
        });
    }

    fn delta(&self, choice: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        let state = self.choices[choice as usize];
        debug_assert!(state.begun && !state.finished, "a delta stands between the role and the finish");
        self.chunk(out, |one| {
            one.number("index", u64::from(choice));
            one.object("delta", write);
            one.null("logprobs");
            one.null("finish_reason");
        });
    }

    fn chunk(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(&self.head);
        out.push(b'[');
        let mut one = Object::begin(out);
        write(&mut one);
        one.end();
        out.push(b']');
        self.tier(out);
        out.extend_from_slice(if self.wants_usage { b",\"usage\":null}\n\n" } else { b"}\n\n" });
    }

    fn tier(&self, out: &mut Vec<u8>) {
        if let Some(tier) = &self.tier {
            // One of a few plain words.
            for part in [",\"service_tier\":\"", tier, "\""] {
                out.extend_from_slice(part.as_bytes());
            }
        }
    }

    /// Usage, when asked for, and the end.
    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        debug_assert!(!self.ended, "one [DONE]");
        self.ended = true;
        // An end without a reason: clients that read a choice to its finish would wait for it for
        // ever.
        for at in 0..self.choices.len() {
            if self.choices[at].begun && !self.choices[at].finished {
                self.finish(at as u32, None, out);
            }
        }
        if let Some(usage) = usage.filter(|_| self.wants_usage) {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"[]");
            self.tier(out);
            out.extend_from_slice(b",\"usage\":");
            usage.write(UsageShape::Chat, out);
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}
