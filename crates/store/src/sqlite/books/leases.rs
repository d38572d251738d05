//! The open tasks of the embedded engine in memory: when each is due and who may write to it. One
//! process owns the file, so leases need no row; after a restart everything is due as the file
//! says, and nobody holds anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{CallId, IdMap};
use crate::task::{TaskState, TaskStep};

/// Since when a task has been there, its fate is unknown, its provider does not know it, and it is
/// made; by the clock that does not jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) struct Since {
    pub begun: i64,
    pub unknown: Option<i64>,
    pub absent: Option<i64>,
    pub made: Option<i64>,
}

impl Since {
    /// The same as the file has it after this step.
    fn after(self, step: &TaskStep, now: i64) -> Since {
        Since {
            begun: self.begun,
            unknown: (step.state == TaskState::Unknown).then(|| self.unknown.unwrap_or(now)),
            absent: match step.word.absent() {
                None => self.absent,
                Some(absent) => absent.then(|| self.absent.unwrap_or(now)),
            },
            made: if step.word.is_made() { self.made.or(Some(now)) } else { self.made },
        }
    }
}

struct Lease {
    due_at: i64,
    fence: i64,
    /// Nobody may have it before it is due: somebody has it, or its provider is to be left alone.
    exclusive: bool,
    /// Where it was sent.
    provider: Option<Arc<str>>,
    since: Since,
}

#[derive(Default)]
pub(in crate::sqlite) struct Leases {
    open: IdMap<CallId, Lease>,
    due: BTreeSet<(i64, CallId)>,
}

impl Leases {
    /// A new task, in the hands of whoever began it.
    pub fn begin(&mut self, call: CallId, now: i64, due_at: i64) {
        let since = Since { begun: now, ..Since::default() };
        self.put(call, Lease { due_at, fence: 1, exclusive: true, provider: None, since });
    }

    /// A task as the file has it: the process that held it is gone.
    pub fn load(&mut self, call: CallId, due_at: i64, provider: Option<Arc<str>>, quiet: bool, since: Since) {
        self.put(call, Lease { due_at, fence: 0, exclusive: quiet, provider, since });
    }

    fn put(&mut self, call: CallId, lease: Lease) {
        self.end(call);
        self.due.insert((lease.due_at, call));
        self.open.insert(call, lease);
    }

    pub fn has(&self, call: CallId) -> bool {
        self.open.contains_key(&call)
    }

    /// How long ago each of it was.
    pub fn ages(&self, call: CallId, now: i64) -> [i64; 4] {
        let since = self.open.get(&call).map_or(Since { begun: now, ..Since::default() }, |lease| lease.since);
        let age = |at: Option<i64>| at.map_or(0, |at| now.saturating_sub(at).max(0));
        [Some(since.begun), since.unknown, since.absent, since.made].map(age)
    }

    pub fn holds(&self, call: CallId, fence: i64) -> bool {
        self.open.get(&call).is_some_and(|lease| lease.fence == fence)
    }

    /// Those that are due and not at one of these providers, the oldest first, each with its new
    /// fence.
    pub fn take_due(&mut self, now: i64, until: i64, limit: usize, except: &[String]) -> Vec<(CallId, i64)> {
        let open = &self.open;
        let wanted = |call: &CallId| {
            let provider = open.get(call).and_then(|lease| lease.provider.as_deref());
            provider.is_none_or(|name| except.iter().all(|one| one != name))
        };
        let due = self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, call)| *call);
        let due: Vec<CallId> = due.filter(wanted).take(limit).collect();
        due.into_iter().filter_map(|call| self.give(call, until).map(|fence| (call, fence))).collect()
    }

    /// One of them, unless somebody has it alone.
    pub fn take(&mut self, call: CallId, now: i64, until: i64) -> Option<i64> {
        let lease = self.open.get(&call)?;
        if lease.exclusive && lease.due_at > now {
            return None;
        }
        self.give(call, until)
    }

    fn give(&mut self, call: CallId, until: i64) -> Option<i64> {
        let lease = self.open.get(&call)?;
        let (fence, provider, since) = (lease.fence + 1, lease.provider.clone(), lease.since);
        self.put(call, Lease { due_at: until, fence, exclusive: true, provider, since });
        Some(fence)
    }

    /// Holds on to it for longer: it goes to this provider.
    pub fn keep(&mut self, call: CallId, fence: i64, until: i64, provider: &str) -> bool {
        let Some(since) = self.open.get(&call).filter(|lease| lease.fence == fence).map(|lease| lease.since) else {
            return false;
        };
        self.put(call, Lease { due_at: until, fence, exclusive: true, provider: Some(provider.into()), since });
        true
    }

    /// Nobody has it until it is due, and nobody can where its provider is to be left alone; the
    /// number of whoever had it is worth nothing any more. When it is due.
    pub fn release(&mut self, step: &TaskStep, now: i64) -> i64 {
        let (call, due_at) = (step.id.call(), now.saturating_add(step.after_ms));
        if let Some(lease) = self.open.get(&call) {
            let (fence, provider, since) = (lease.fence + 1, lease.provider.clone(), lease.since.after(step, now));
            self.put(call, Lease { due_at, fence, exclusive: step.quiet, provider, since });
        }
        due_at
    }

    pub fn end(&mut self, call: CallId) {
        if let Some(lease) = self.open.remove(&call) {
            self.due.remove(&(lease.due_at, call));
        }
    }
}
