//! The verbs of whoever watches.

use std::collections::HashMap;

use tollgate_catalog::Money;

use super::{Engine, Store};
use crate::call::Ending;
use crate::error::StoreError;
use crate::ids::{AccountId, AlertEventId, CallId, KeyId, RunId, TaskId};
use crate::live::{
    LIVE_ROWS, LIVE_TASKS, LiveAlert, LiveCall, LiveCalls, LiveChange, LiveHouse, LiveJob, LiveKey, LivePause,
    LivePlace, LiveRun, LiveStanding, LiveState, LiveTask, LiveTraffic,
};
use crate::margin::first_id;
use crate::person::statement::{SqlRow, SqlValue, values};
use crate::task::TaskState;

/// Refused calls are looked for among those that began this long ago.
const REFUSED_MS: i64 = 30_000;
/// So many refused calls of an account are shown of that time.
const REFUSED: i64 = 50;

// Each is asked for every account of a list: `{account}` is its id, `{now}` the time that changes
// of keys are dated by, and values begin at `$2`.
const STANDING: &str = "SELECT s.trial_available, s.paid_available, s.trial_held, s.paid_held, s.closed_at, n.threshold, n.low_at \
     FROM account s LEFT JOIN balance_notice n ON n.account_id = s.id WHERE s.id = {account}";
const KEYS: &str = "SELECT k.id, k.changed_at, k.name, k.prefix, k.expires_at, k.revoked_at FROM key k \
     WHERE k.account_id = {account} AND k.changed_at > {now} - 120000 ORDER BY k.changed_at DESC LIMIT $2";
const TASKS: &str = "SELECT t.call_id, t.key_id, t.model, CAST(t.state AS bigint), CAST(t.progress AS bigint), t.created_at, \
     t.ended_at, t.failure_code FROM task t WHERE t.account_id = {account} AND NOT t.hidden ORDER BY t.call_id DESC LIMIT $2";
const RUNS: &str = "SELECT r.id, r.key_id, r.slug, r.status, r.changed_at, r.ended_at FROM workflow_run r \
     WHERE r.account_id = {account} ORDER BY r.id DESC LIMIT $2";
/// 1 is how a refused call ends.
const REFUSALS: &str = "SELECT u.call_id, u.key_id, u.at, u.ended_at, u.endpoint, u.model, u.reason, CAST(u.status AS bigint) \
     FROM usage u WHERE u.account_id = {account} AND u.call_id >= $2 AND u.ending = 1 ORDER BY u.call_id DESC LIMIT $3";

impl Store {
    /// Where the ledgers of these accounts end now.
    pub async fn live_places(&self, accounts: &[AccountId]) -> Result<Vec<LivePlace>, StoreError> {
        on_engine!(self, e => e.live_places(accounts).await)
    }

    /// What ended since, for each of these accounts.
    pub async fn live_calls(&self, places: &[LivePlace]) -> Result<Vec<LiveCalls>, StoreError> {
        on_engine!(self, e => e.live_calls(places).await)
    }

    /// These accounts as they are now.
    pub async fn live_states(&self, accounts: &[AccountId]) -> Result<HashMap<AccountId, LiveState>, StoreError> {
        let mut states: HashMap<AccountId, LiveState> =
            accounts.iter().map(|account| (*account, LiveState::default())).collect();
        let from = first_id(self.people_now() - REFUSED_MS);
        for row in self.live_rows(STANDING, accounts, Vec::new()).await? {
            of(&mut states, &row)?.standing = Some(standing(&row)?);
        }
        for row in self.live_rows(KEYS, accounts, values![LIVE_ROWS]).await? {
            of(&mut states, &row)?.keys.push(key(&row)?);
        }
        for row in self.live_rows(TASKS, accounts, values![LIVE_TASKS]).await? {
            of(&mut states, &row)?.tasks.push(task(&row)?);
        }
        for row in self.live_rows(RUNS, accounts, values![LIVE_TASKS]).await? {
            of(&mut states, &row)?.runs.push(run(&row)?);
        }
        for row in self.live_rows(REFUSALS, accounts, values![from, REFUSED]).await? {
            of(&mut states, &row)?.refused.push(refusal(&row)?);
        }
        Ok(states)
    }

    async fn live_rows(
        &self,
        sql: &'static str,
        accounts: &[AccountId],
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        on_engine!(self, e => e.live_rows(sql, accounts, values).await)
    }

    /// The newest of what operators see change.
    pub async fn live_house(&self) -> Result<LiveHouse, StoreError> {
        const CHANGES: &str =
            "SELECT seq, at, actor, action, subject, account_id FROM operator_event ORDER BY seq DESC LIMIT $1";
        const PAUSES: &str = "SELECT seq, at, kind, model, CASE WHEN paused THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END, \
             actor, reason FROM social_change ORDER BY seq DESC LIMIT $1";
        const ALERTS: &str = "SELECT e.id, e.at, r.name, e.subject, e.what, e.message FROM alert_event e \
             LEFT JOIN alert_rule r ON r.id = e.rule_id ORDER BY e.at DESC, e.id DESC LIMIT $1";
        const JOBS: &str =
            "SELECT id, kind, state, done, total FROM operator_job ORDER BY started_at DESC, id DESC LIMIT $1";
        let rows = async |sql: &'static str| self.people_rows(sql, values![LIVE_ROWS]).await;
        Ok(LiveHouse {
            changes: rows(CHANGES).await?.iter().map(change).collect::<Result<_, _>>()?,
            pauses: rows(PAUSES).await?.iter().map(pause).collect::<Result<_, _>>()?,
            alerts: rows(ALERTS).await?.iter().map(alert).collect::<Result<_, _>>()?,
            jobs: rows(JOBS).await?.iter().map(job).collect::<Result<_, _>>()?,
        })
    }

    /// Where the ledger of all accounts ends now. On PostgreSQL an entry before it may not be
    /// committed yet.
    pub async fn live_end(&self) -> Result<i64, StoreError> {
        let rows = self.people_rows("SELECT coalesce(max(seq), 0) FROM entry", Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// How many calls ended between two places of the ledger of all accounts.
    pub async fn live_traffic(&self, after: i64, to: i64) -> Result<LiveTraffic, StoreError> {
        const SQL: &str = "SELECT count(*), count(CASE WHEN kind = 1 THEN 1 END), \
             CAST(coalesce(sum(take_trial + take_paid), 0) AS bigint) \
             FROM entry WHERE seq > $1 AND seq <= $2 AND kind IN (1, 2, 3)";
        let rows = self.people_rows(SQL, values![after, to]).await?;
        let Some(row) = rows.first() else { return Ok(LiveTraffic::default()) };
        Ok(LiveTraffic { ended: row.int(0)?, charged: row.int(1)?, charge: Money::from_nano(row.int(2)?) })
    }
}

/// The account that a row is about, which stands first in it.
fn of<'a>(states: &'a mut HashMap<AccountId, LiveState>, row: &SqlRow) -> Result<&'a mut LiveState, StoreError> {
    Ok(states.entry(AccountId(row.id(0)?)).or_default())
}

fn standing(row: &SqlRow) -> Result<LiveStanding, StoreError> {
    let money = |at| row.int(at).map(Money::from_nano);
    Ok(LiveStanding {
        trial_available: money(1)?,
        paid_available: money(2)?,
        trial_held: money(3)?,
        paid_held: money(4)?,
        suspended_at: row.opt_int(5)?,
        threshold: row.opt_int(6)?.filter(|threshold| *threshold > 0).map(Money::from_nano),
        low_since: row.opt_int(7)?,
    })
}

fn key(row: &SqlRow) -> Result<LiveKey, StoreError> {
    Ok(LiveKey {
        key: KeyId(row.id(1)?),
        changed_at: row.int(2)?,
        name: row.text(3)?,
        prefix: row.text(4)?,
        expires_at: row.opt_int(5)?,
        revoked_at: row.opt_int(6)?,
    })
}

fn task(row: &SqlRow) -> Result<LiveTask, StoreError> {
    Ok(LiveTask {
        task: TaskId(row.id(1)?),
        key: KeyId(row.id(2)?),
        model: row.text(3)?,
        state: TaskState::from_code(i16::try_from(row.int(4)?).unwrap_or(i16::MAX)),
        progress: row.opt_int(5)?,
        created_at: row.int(6)?,
        ended_at: row.opt_int(7)?,
        failure: row.opt_text(8)?,
    })
}

fn run(row: &SqlRow) -> Result<LiveRun, StoreError> {
    Ok(LiveRun {
        run: RunId(row.id(1)?),
        key: KeyId(row.id(2)?),
        workflow: row.text(3)?,
        status: row.text(4)?,
        changed_at: row.int(5)?,
        ended_at: row.opt_int(6)?,
    })
}

fn refusal(row: &SqlRow) -> Result<LiveCall, StoreError> {
    Ok(LiveCall {
        entry: None,
        refunded_now: false,
        call: CallId(row.id(1)?),
        key: KeyId(row.id(2)?),
        started_at: row.int(3)?,
        ended_at: row.int(4)?,
        endpoint: row.text(5)?,
        model: row.text(6)?,
        ending: Ending::Refused,
        reason: row.text(7)?,
        status: row.int(8)?,
        charge: Money::ZERO,
        refunded: Money::ZERO,
        estimated: false,
    })
}

fn change(row: &SqlRow) -> Result<LiveChange, StoreError> {
    Ok(LiveChange {
        seq: row.int(0)?,
        at: row.int(1)?,
        actor: row.text(2)?,
        action: row.text(3)?,
        subject: row.text(4)?,
        account: row.opt_id(5)?.map(AccountId),
    })
}

fn pause(row: &SqlRow) -> Result<LivePause, StoreError> {
    Ok(LivePause {
        seq: row.int(0)?,
        at: row.int(1)?,
        kind: row.text(2)?,
        name: row.text(3)?,
        paused: row.int(4)? != 0,
        actor: row.text(5)?,
        reason: row.text(6)?,
    })
}

fn alert(row: &SqlRow) -> Result<LiveAlert, StoreError> {
    Ok(LiveAlert {
        event: AlertEventId(row.id(0)?),
        at: row.int(1)?,
        rule: row.opt_text(2)?,
        subject: row.text(3)?,
        what: row.text(4)?,
        message: row.text(5)?,
    })
}

fn job(row: &SqlRow) -> Result<LiveJob, StoreError> {
    Ok(LiveJob { job: row.text(0)?, kind: row.text(1)?, state: row.text(2)?, done: row.int(3)?, total: row.int(4)? })
}
