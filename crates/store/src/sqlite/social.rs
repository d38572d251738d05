//! Social data on the embedded engine. One process owns the file, so a day's capacity is decided in
//! memory and written behind, like holds; pauses wait for their commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;

use rusqlite::{OptionalExtension, params};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::operator::pause::{PauseChange, PauseKind};
use crate::social::{SocialDay, SocialFull, SocialTake, SocialTurn, SocialVain, VAIN_COUNTS};

/// What the writer is asked to write.
pub(super) enum SocialOp {
    Change(PauseChange),
    Vain(SocialVain),
    /// What nobody asks for any more at this time.
    ForgetVain(i64),
    /// The counters as they are now.
    Day(SocialDay),
}

/// The counters of the days that were used since the start.
#[derive(Default)]
pub(super) struct Days(Mutex<HashMap<(i64, String), SocialDay>>);

/// Days cached in memory: a clock that jumps back finds its counters in the file.
const CACHED: usize = 256;
/// The most vain calls read at once.
const VAINS_READ: i64 = 100_000;

impl SqliteEngine {
    pub async fn change_pause(&self, change: PauseChange) -> Result<(), StoreError> {
        self.ask(|reply| Op::Social(Box::new(SocialOp::Change(change)), reply)).await
    }

    pub async fn pause_changes(&self, limit: u32) -> Result<Vec<PauseChange>, StoreError> {
        let sql = "SELECT kind, model, paused, at, actor, reason FROM social_change ORDER BY seq DESC LIMIT ?1";
        self.social_rows(sql, i64::from(limit)).await
    }

    pub async fn pause_states(&self) -> Result<Vec<PauseChange>, StoreError> {
        let sql = "SELECT kind, model, paused, at, actor, reason FROM social_change \
                   WHERE seq IN (SELECT max(seq) FROM social_change WHERE seq > ?1 GROUP BY kind, model) ORDER BY kind, model";
        self.social_rows(sql, 0).await
    }

    async fn social_rows(&self, sql: &'static str, number: i64) -> Result<Vec<PauseChange>, StoreError> {
        let change = |r: &rusqlite::Row<'_>| {
            let kind = PauseKind::of(&r.get::<_, String>(0)?);
            let (name, paused, at) = (r.get(1)?, r.get(2)?, r.get(3)?);
            Ok(PauseChange { kind, name, paused, at, actor: r.get(4)?, reason: r.get(5)? })
        };
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let rows = statement.query_map(params![number], change)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    pub async fn social_take(&self, take: SocialTake) -> Result<Result<(), SocialFull>, StoreError> {
        for platform in ["", &take.platform] {
            self.load_day(take.day, platform).await?;
        }
        let mut days = lock(&self.social.0);
        let keys = [(take.day, String::new()), (take.day, take.platform.clone())];
        let [all, own] = keys.each_ref().map(|key| days.get(key).cloned().unwrap_or_default());
        if let Err(full) = take.fits(&all, &own) {
            return Ok(Err(full));
        }
        for key in keys {
            if let Some(day) = days.get_mut(&key) {
                day.calls += 1;
                day.cost += take.cost;
                self.write_day(day.clone());
            }
        }
        Ok(Ok(()))
    }

    /// The cost of a call that turned out to be free; the call stays counted.
    pub async fn social_give_back(&self, take: SocialTake) -> Result<(), StoreError> {
        let mut days = lock(&self.social.0);
        for key in [(take.day, String::new()), (take.day, take.platform)] {
            if let Some(day) = days.get_mut(&key) {
                day.cost = (day.cost - take.cost).max(0);
                self.write_day(day.clone());
            }
        }
        Ok(())
    }

    pub async fn social_days(&self, day: i64) -> Result<Vec<SocialDay>, StoreError> {
        let sql = "SELECT day, platform, calls, cost FROM social_day WHERE day = ?1 ORDER BY platform";
        let mut found: Vec<SocialDay> = self
            .readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let rows = statement.query_map(params![day], row)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await?;
        // The file is a few milliseconds behind.
        for live in lock(&self.social.0).values().filter(|live| live.day == day) {
            match found.iter_mut().find(|one| one.platform == live.platform) {
                Some(one) => one.clone_from(live),
                None => found.push(live.clone()),
            }
        }
        found.retain(|one| one.calls > 0);
        found.sort_by(|a, b| a.platform.cmp(&b.platform));
        Ok(found)
    }

    async fn load_day(&self, day: i64, platform: &str) -> Result<(), StoreError> {
        let key = (day, platform.to_owned());
        if lock(&self.social.0).contains_key(&key) {
            return Ok(());
        }
        let name = platform.to_owned();
        let sql = "SELECT day, platform, calls, cost FROM social_day WHERE day = ?1 AND platform = ?2";
        let found = self.readers.read(move |c| Ok(c.query_row(sql, params![day, name], row).optional()?)).await?;
        let mut days = lock(&self.social.0);
        if days.len() >= CACHED {
            // What is forgotten was queued before; it is written long before its day can come
            // again.
            days.retain(|(cached, _), _| (*cached - day).abs() <= 1);
        }
        if let Entry::Vacant(vacant) = days.entry(key) {
            vacant.insert(found.unwrap_or(SocialDay { day, platform: platform.to_owned(), ..SocialDay::default() }));
        }
        Ok(())
    }

    /// Nobody waits for it: what a crash forgets is asked once more.
    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn social_vain(&self, vain: SocialVain) -> Result<(), StoreError> {
        self.write_social(SocialOp::Vain(vain));
        Ok(())
    }

    pub async fn social_vains(&self, since: i64) -> Result<Vec<SocialVain>, StoreError> {
        let sql =
            "SELECT call_id, question, account_id, at, until FROM social_vain WHERE at >= ?1 ORDER BY at DESC LIMIT ?2";
        let vain = |r: &rusqlite::Row<'_>| {
            let (call, account) = (CallId(r.get(0)?), AccountId(r.get(2)?));
            Ok(SocialVain { call, question: r.get(1)?, account, at: r.get(3)?, until: r.get(4)? })
        };
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let rows = statement.query_map(params![since, VAINS_READ], vain)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    pub(super) fn forget_vain(&self, now: i64) {
        self.write_social(SocialOp::ForgetVain(now));
    }

    /// One process owns the file, so its own pace is everybody's.
    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn social_turn(&self, _: &str, _: u32, _: u64) -> Result<SocialTurn, StoreError> {
        Ok(SocialTurn::Own)
    }

    fn write_day(&self, day: SocialDay) {
        self.write_social(SocialOp::Day(day));
    }

    fn write_social(&self, op: SocialOp) {
        let mut books = lock(&self.shared.books);
        books.push(Op::Social(Box::new(op), None));
        self.shared.ring(books);
    }
}

fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<SocialDay> {
    Ok(SocialDay { day: r.get(0)?, platform: r.get(1)?, calls: r.get(2)?, cost: r.get(3)? })
}

impl Apply<'_> {
    pub(super) fn social(&mut self, op: &SocialOp) -> rusqlite::Result<Result<(), StoreError>> {
        match op {
            SocialOp::Change(c) => {
                let sql = "INSERT INTO social_change (kind, model, paused, at, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                self.statement(sql)?.execute(params![c.kind.word(), c.name, c.paused, c.at, c.actor, c.reason])?;
                self.note(c.audit_row())?;
            }
            SocialOp::Vain(v) => {
                let sql = "INSERT OR IGNORE INTO social_vain (call_id, question, account_id, at, until) \
                           VALUES (?1, ?2, ?3, ?4, ?5)";
                self.statement(sql)?.execute(params![v.call.0, v.question, v.account.0, v.at, v.until])?;
            }
            SocialOp::ForgetVain(now) => {
                let sql = "DELETE FROM social_vain WHERE until <= ?1 AND at < ?1 - ?2";
                self.statement(sql)?.execute(params![now, VAIN_COUNTS])?;
            }
            SocialOp::Day(d) => {
                let sql = "INSERT INTO social_day (day, platform, calls, cost) VALUES (?1, ?2, ?3, ?4) \
                           ON CONFLICT (day, platform) DO UPDATE SET calls = excluded.calls, cost = excluded.cost";
                self.statement(sql)?.execute(params![d.day, d.platform, d.calls, d.cost])?;
            }
        }
        Ok(Ok(()))
    }
}
