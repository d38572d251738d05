//! The time on PostgreSQL is the database's, so that replicas agree on it whatever their own clocks
//! say. It is asked with every beat; in between the steady clock counts on. What is believed of it
//! is stored in the database, for the next start and for `tollgate_now()`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::PostgresEngine;
use super::connect::PgConnector;
use crate::clock::{BOUND_MS, Clock, ClockState, Saved};
use crate::error::StoreError;
use crate::world::{Clocks, NowMs, Options};

const ASKED: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const STORED: &str = "SELECT name, value FROM meta WHERE name IN ('clock_now', 'clock_sure', 'clock_ran')";
/// A ledger from before the time was stored knows that of its last entries.
const LAST: &str = "SELECT max(last_at) FROM account WHERE last_at > 0";
/// `$5`: a test has a clock in the database's place, and `tollgate_now()` goes on as it is.
const KEEP: &str = "INSERT INTO meta (name, value) VALUES ('clock_now', $1::bigint), ('clock_sure', $2::bigint), ('clock_ran', $3::bigint), \
     ('clock_base', CASE WHEN $5::boolean THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint ELSE $1::bigint END), \
     ('clock_correction', CASE WHEN $5 THEN 0 ELSE $4::bigint END) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The database's clock as this replica knows it, and its own for comparison.
pub(super) struct DatabaseClock {
    /// From the steady clock to the database's, as last asked.
    offset: Arc<AtomicI64>,
    wall: NowMs,
    own: NowMs,
    steady: NowMs,
    is_by_hand: bool,
    /// It was reported that the own clock is wrong.
    warned: AtomicBool,
}

impl DatabaseClock {
    pub fn new(world: &Clocks) -> Self {
        let offset = Arc::new(AtomicI64::new(0));
        let (counted, steady) = (offset.clone(), world.steady_ms.clone());
        let counting: NowMs = Arc::new(move || steady().saturating_add(counted.load(Ordering::Relaxed)));
        Self {
            offset,
            wall: world.database_ms.clone().unwrap_or(counting),
            own: world.now_ms.clone(),
            steady: world.steady_ms.clone(),
            is_by_hand: world.database_ms.is_some(),
            warned: AtomicBool::new(false),
        }
    }

    /// The clock of a ledger as it was left, and a world that goes by it.
    pub async fn start(
        &self,
        connector: &PgConnector,
        options: &Options,
        world: &Clocks,
    ) -> Result<(Arc<Clock>, Clocks), StoreError> {
        let link = connector.reader().await?;
        let before = (self.steady)();
        self.heard(link.client.query_one(ASKED, &[]).await?.try_get(0)?, before);
        let stored = link.client.query(STORED, &[]).await?;
        let stored = stored.iter().map(|r| Ok((r.try_get(0)?, r.try_get(1)?)));
        let stored = stored.collect::<Result<HashMap<String, i64>, tokio_postgres::Error>>()?;
        let value = |name: &str| stored.get(name).copied();
        let saved = match (value("clock_now"), value("clock_sure"), value("clock_ran")) {
            (Some(now), Some(sure), Some(ran)) => Some(Saved { now, sure, ran }),
            _ => {
                let last: Option<i64> = link.client.query_one(LAST, &[]).await?.try_get(0)?;
                last.map(|at| Saved { now: at, sure: at, ran: 0 })
            }
        };
        let steady = (self.steady.clone(), world.wall_lasts);
        let clock = Clock::start(self.wall.clone(), steady, options.clock_confirm, saved);
        let trusted = clock.clone();
        Ok((clock, Clocks { now_ms: Arc::new(move || trusted.now()), ..world.clone() }))
    }

    /// What the database's clock said to a question that was asked at `before`.
    fn heard(&self, at: i64, before: i64) {
        let asked = before.midpoint((self.steady)());
        self.offset.store(at.saturating_sub(asked), Ordering::Relaxed);
    }

    fn own_ahead(&self) -> i64 {
        (self.own)().saturating_sub((self.wall)())
    }

    /// A replica whose own clock is wrong says so, once.
    fn compare(&self) {
        let ahead = self.own_ahead();
        let wrong = ahead.unsigned_abs() > BOUND_MS.unsigned_abs();
        if self.warned.swap(wrong, Ordering::Relaxed) == wrong {
            return;
        }
        if wrong {
            tracing::error!(
                ahead_ms = ahead,
                "this machine's clock differs from the database's, which is used instead"
            );
        } else {
            tracing::warn!(ahead_ms = ahead, "this machine's clock agrees with the database's again");
        }
    }
}

impl PostgresEngine {
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    pub fn clock_state(&self) -> ClockState {
        ClockState { own_clock_ahead_ms: self.database.own_ahead(), ..self.clock.state() }
    }

    pub async fn accept_clock(&self) -> Result<ClockState, StoreError> {
        self.ask_time().await?;
        self.clock.accept();
        self.save_time().await?;
        Ok(self.clock_state())
    }

    /// Asks what time it is and writes down what of it is believed.
    pub(super) async fn keep_time(&self) -> Result<(), StoreError> {
        self.ask_time().await?;
        self.database.compare();
        self.save_time().await
    }

    async fn ask_time(&self) -> Result<(), StoreError> {
        let before = self.steady();
        let rows = self.rows(ASKED, &[]).await?;
        if let Some(row) = rows.first() {
            self.database.heard(row.try_get(0)?, before);
        }
        Ok(())
    }

    async fn save_time(&self) -> Result<(), StoreError> {
        let (Saved { now, sure, ran }, correction) = (self.clock.saved(), self.clock.correction());
        self.rows(KEEP, &[&now, &sure, &ran, &correction, &self.database.is_by_hand]).await?;
        Ok(())
    }
}
