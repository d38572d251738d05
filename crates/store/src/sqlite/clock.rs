//! The time on the embedded engine: what is saved of it, and the operator's word.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, params};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::clock::{Clock, ClockState, Saved};
use crate::error::StoreError;
use crate::world::{Clocks, Options};

/// How often the time is saved.
const EVERY_MS: i64 = 60_000;

/// The clock of a ledger as it was left, and a world that goes by it.
pub(super) fn start(conn: &Connection, options: &Options, world: &Clocks) -> Result<(Arc<Clock>, Clocks), StoreError> {
    let (now, steady) = (world.now_ms.clone(), (world.steady_ms.clone(), world.wall_lasts));
    let clock = Clock::start(now, steady, options.clock_confirm, saved(conn)?);
    let trusted = clock.clone();
    Ok((clock, Clocks { now_ms: Arc::new(move || trusted.now()), ..world.clone() }))
}

/// A ledger from before the time was saved knows that of its last entry.
fn saved(conn: &Connection) -> Result<Option<Saved>, StoreError> {
    let value = |name: &str| {
        conn.query_row("SELECT value FROM meta WHERE name = ?1", params![name], |r| r.get::<_, i64>(0)).optional()
    };
    let (now, sure, ran) = (value("clock_now")?, value("clock_sure")?, value("clock_ran")?);
    if let (Some(now), Some(sure), Some(ran)) = (now, sure, ran) {
        return Ok(Some(Saved { now, sure, ran }));
    }
    let last =
        conn.query_row("SELECT at FROM entry ORDER BY seq DESC LIMIT 1", [], |r| r.get::<_, i64>(0)).optional()?;
    Ok(last.map(|at| Saved { now: at, sure: at, ran: 0 }))
}

impl SqliteEngine {
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    pub fn clock_state(&self) -> ClockState {
        self.clock.state()
    }

    /// One process owns the file: there is nobody to tell that we live. The next start must know
    /// what time it was.
    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn beat(&self) -> Result<(), StoreError> {
        if self.steady().saturating_sub(self.clock_saved.load(Ordering::Relaxed)) >= EVERY_MS {
            self.save_clock();
        }
        Ok(())
    }

    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn accept_clock(&self) -> Result<ClockState, StoreError> {
        self.clock.accept();
        self.save_clock();
        Ok(self.clock.state())
    }

    fn save_clock(&self) {
        let saved = self.clock.saved();
        let mut books = lock(&self.shared.books);
        if !books.stop {
            books.push(Op::Clock(saved));
            self.clock_saved.store(self.steady(), Ordering::Relaxed);
            self.shared.nudge(books);
        }
    }
}

impl Apply<'_> {
    pub(super) fn clock(&mut self, saved: &Saved) -> rusqlite::Result<()> {
        let mut save = self.statement("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")?;
        for (name, value) in [("clock_now", saved.now), ("clock_sure", saved.sure), ("clock_ran", saved.ran)] {
            save.execute(params![name, value])?;
        }
        Ok(())
    }
}
