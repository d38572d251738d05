//! The page of metrics, as Prometheus text: what was counted, and the gauges of the ledger as they
//! are now.

use crate::app::App;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use tollgate_store::{ClockStanding, ClockState, Gauges, TaskState};

/// The whole page.
pub fn page(app: &App) -> String {
    let mut page = String::with_capacity(8 << 10);
    let running = app.running.load(Ordering::Relaxed);
    ledger(&mut page, &app.store.gauges());
    clock(&mut page, &app.store.clock_state());
    plain(&mut page, "calls_running", "gauge", "Calls between hold and close", running);
    plain(&mut page, "body_bytes", "gauge", "Bytes of request bodies in flight", app.bodies.used());
    plain(&mut page, "spool_bytes", "gauge", "Bytes of uploads on disk", app.spool.budget.used());
    let age = app.metrics.audit_age(app.world.steady_ms());
    plain(&mut page, "audit_age_seconds", "gauge", "Time since the ledger was last audited", age);
    tasks(&mut page, app);
    app.metrics.write(&mut page);
    page
}

/// Open video tasks of all replicas, as this one last counted them.
fn tasks(page: &mut String, app: &App) {
    let states = app.tasks.by_state();
    let now = app.world.now_ms();
    let (open, oldest) = ("tollgate_tasks_open", "tollgate_oldest_task_ms");
    let _ = writeln!(page, "# HELP {open} Open video tasks by state.\n# TYPE {open} gauge");
    let shown = TaskState::ALL.into_iter().filter(|state| !state.is_final()).map(TaskState::name);
    let shown = shown.map(|name| (name, states.get(name).copied().unwrap_or((0, now))));
    for (state, (count, _)) in shown.clone() {
        let _ = writeln!(page, "{open}{{state=\"{state}\"}} {count}");
    }
    let _ = writeln!(page, "# HELP {oldest} Age of the oldest open task by state.\n# TYPE {oldest} gauge");
    for (state, (_, at)) in shown {
        let _ = writeln!(page, "{oldest}{{state=\"{state}\"}} {}", now.saturating_sub(at).max(0));
    }
}

/// The clock, and what is believed of it.
fn clock(page: &mut String, clock: &ClockState) {
    let refused = u8::from(clock.state == ClockStanding::Refused);
    plain(page, "clock_refused", "gauge", "1 while the clock is wrong and not used", refused);
    let unconfirmed = u8::from(clock.state == ClockStanding::Unconfirmed);
    plain(page, "clock_unconfirmed", "gauge", "1 while nothing expires by the clock", unconfirmed);
    let ahead = clock.wall_ms.saturating_sub(clock.now_ms);
    plain(page, "clock_ahead_ms", "gauge", "The clock against the time that is used", ahead);
    plain(page, "clock_refusals_total", "counter", "Jumps of the clock that were refused", clock.refusals);
    let own = clock.own_clock_ahead_ms;
    plain(page, "own_clock_ahead_ms", "gauge", "This machine's clock against the database's (PostgreSQL)", own);
}

fn ledger(page: &mut String, gauges: &Gauges) {
    let name = "tollgate_open_holds";
    let _ = writeln!(page, "# HELP {name} Holds of calls without a terminal entry, by age.\n# TYPE {name} gauge");
    for (age, count) in ["10s", "1m", "10m", "1h", "older"].into_iter().zip(gauges.open_by_age) {
        let _ = writeln!(page, "{name}{{age=\"{age}\"}} {count}");
    }
    let name = "tollgate_estimated_rows_total";
    let _ = writeln!(page, "# HELP {name} Charged by our own count, by provider.\n# TYPE {name} counter");
    for (provider, count) in &gauges.estimated {
        let _ = writeln!(page, "{name}{{provider=\"{provider}\"}} {count}");
    }
    plain(page, "oldest_open_hold_ms", "gauge", "Age of the oldest open hold", gauges.oldest_open_ms);
    plain(
        page,
        "settle_lag_ms",
        "gauge",
        "Age of the oldest operation that is not in the database yet",
        gauges.settle_lag_ms,
    );
    plain(page, "ledger_queue", "gauge", "Ledger operations waiting for the next group", gauges.queue_len);
    plain(page, "ledger_drift", "gauge", "Broken invariants found by the last audit", gauges.breaches);
    plain(page, "ledger_down", "gauge", "1 while the ledger's database cannot be written", u8::from(gauges.down));
    plain(page, "store_queries_total", "counter", "Questions to the database beside the groups", gauges.queries);
    plain(page, "ledger_commits_total", "counter", "Groups committed", gauges.commits);
    plain(page, "ledger_operations_total", "counter", "Operations committed", gauges.committed_ops);
    plain(
        page,
        "journal_bytes",
        "gauge",
        "Bytes of holds and ends in the journal that the database does not have yet",
        gauges.journal_bytes,
    );
    plain(
        page,
        "write_off_nano_usd_total",
        "counter",
        "Cost above what accounts could pay",
        gauges.write_off_total.nano(),
    );
    plain(
        page,
        "refusals_dropped_total",
        "counter",
        "Usage rows of refusals left out under pressure",
        gauges.refusals_dropped,
    );
    plain(
        page,
        "refusals_summed_total",
        "counter",
        "Refused calls that share a usage row with others of their key and minute",
        gauges.refusals_summed,
    );
    plain(page, "ledger_largest_group", "gauge", "Most operations in one group", gauges.largest_group);
    plain(page, "ledger_retries_total", "counter", "Groups that had to be tried again", gauges.retries);
    plain(page, "late_closes_total", "counter", "Closes whose hold was closed before", gauges.late_closes);
}

fn plain(page: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    // OpenMetrics names a family without the suffix of its samples.
    let family = name.strip_suffix("_total").unwrap_or(name);
    let _ =
        writeln!(page, "# HELP tollgate_{family} {help}.\n# TYPE tollgate_{family} {kind}\ntollgate_{name} {value}");
}
