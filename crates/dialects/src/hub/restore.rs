//! What every answer goes through between its reader and its writer: the caller's own tool names
//! are put back, free text stands again where a function stood for it, and a call that was cut in
//! the middle is not passed off as a whole one.

use super::event::Event;
use super::lane::ObjectTracker;
use super::names::{FREE_TEXT, ToolNames};
use super::part::CallKind;
use std::borrow::Cow;
use tollgate_wire::json::Node;

/// What the arguments of calls that are put back may hold in all.
const MOST_HELD: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Restore {
    names: ToolNames,
    /// Calls of functions that stand for free text: choice, call, arguments so far.
    custom: Vec<(u32, u32, String)>,
    /// The call that is being written, and whether its arguments are whole.
    current: Option<(u32, u32, ObjectTracker)>,
    /// A call its provider ended in the middle of its arguments: at the limit, or where a filter
    /// stepped in, that is no end at all.
    cut: Option<(u32, u32)>,
    full: bool,
}

impl Restore {
    pub fn new(names: ToolNames) -> Self {
        Restore { names, ..Restore::default() }
    }

    /// More had to be buffered than is allowed.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn pass(&mut self, event: Event<'_>, next: &mut dyn FnMut(Event<'_>)) {
        if let Some((choice, call)) = self.cut {
            match &event {
                // None of these is output, which alone says that the call is over.
                Event::Usage(_) | Event::Searches { .. } | Event::Tier(_) => {}
                Event::Ping | Event::Lost { .. } | Event::Rest(_) => {}
                Event::Finish { finish, .. } if finish.stop.cuts() => self.cut = None,
                _ => {
                    self.cut = None;
                    self.close(choice, call, next);
                }
            }
        }
        match event {
            Event::CallOpen { choice, call, id, name, namespace, kind } => {
                self.current = (kind == CallKind::Function).then(|| (choice, call, ObjectTracker::default()));
                if self.names.is_custom(&name) {
                    self.custom.push((choice, call, String::new()));
                }
                let (own, space, custom) = self.names.back(&name);
                let kind = if custom == CallKind::Custom { custom } else { kind };
                let namespace = namespace.or(space.map(Cow::Borrowed));
                next(Event::CallOpen { choice, call, id, name: Cow::Borrowed(own), namespace, kind });
            }
            Event::CallArgs { choice, call, text } => {
                if let Some((_, _, whole)) = self.current.as_mut().filter(|one| (one.0, one.1) == (choice, call)) {
                    whole.feed(&text);
                }
                match self.waiting(choice, call) {
                    Some(args) if args.len() + text.len() <= MOST_HELD => args.push_str(&text),
                    Some(_) => self.full = true,
                    None => next(Event::CallArgs { choice, call, text }),
                }
            }
            Event::CallClose { choice, call } => {
                let open = self.current.take_if(|one| (one.0, one.1) == (choice, call));
                if open.is_some_and(|(_, _, whole)| !whole.is_whole()) {
                    self.cut = Some((choice, call));
                } else {
                    self.close(choice, call, next);
                }
            }
            other => next(other),
        }
    }

    fn close(&mut self, choice: u32, call: u32, next: &mut dyn FnMut(Event<'_>)) {
        if let Some(at) = self.custom.iter().position(|one| (one.0, one.1) == (choice, call)) {
            let (_, _, args) = self.custom.swap_remove(at);
            let node = Node::read(&args).ok();
            let text = node.as_ref().and_then(|node| node.text_of(FREE_TEXT)).cloned();
            next(Event::CallArgs { choice, call, text: text.unwrap_or(Cow::Borrowed(&args)) });
        }
        next(Event::CallClose { choice, call });
    }

    fn waiting(&mut self, choice: u32, call: u32) -> Option<&mut String> {
        self.custom.iter_mut().find(|one| (one.0, one.1) == (choice, call)).map(|one| &mut one.2)
    }
}
