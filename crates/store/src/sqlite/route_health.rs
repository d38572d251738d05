//! Route health on the embedded engine: added to by the one writer.

use rusqlite::params;

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::route_health::{CountedRoute, RouteCounts};

/// What the writer is asked to write.
pub(super) enum RouteHealthOp {
    Add { quarter: i64, counted: Vec<(CountedRoute, RouteCounts)> },
    Forget { before: i64 },
}

impl SqliteEngine {
    pub async fn add_route_health(
        &self,
        quarter: i64,
        counted: &[(CountedRoute, RouteCounts)],
    ) -> Result<(), StoreError> {
        let op = RouteHealthOp::Add { quarter, counted: counted.to_vec() };
        self.ask(|reply| Op::RouteHealth(Box::new(op), reply)).await
    }

    pub async fn route_health(&self, from: i64, to: i64) -> Result<Vec<(CountedRoute, RouteCounts)>, StoreError> {
        // There is no sum of bits: the different sets are joined here.
        let sql = "SELECT model, provider, upstream_model, sum(calls), sum(good), group_concat(DISTINCT accounts), \
                   sum(first_byte_ms), max(last_at), sum(probes), sum(good_probes), max(probed_at) \
                   FROM route_health WHERE quarter >= ?1 AND quarter < ?2 GROUP BY model, provider, upstream_model";
        let one = |r: &rusqlite::Row<'_>| {
            let route = CountedRoute { model: r.get(0)?, provider: r.get(1)?, upstream_model: r.get(2)? };
            let sets: String = r.get(5)?;
            let accounts = sets.split(',').filter_map(|set| set.parse::<i64>().ok()).fold(0, |all, set| all | set);
            let (calls, good) = (r.get(3)?, r.get(4)?);
            let (first_byte_ms, last_at) = (r.get(6)?, r.get(7)?);
            let (probes, good_probes, probed_at) = (r.get(8)?, r.get(9)?, r.get(10)?);
            let counts = RouteCounts { calls, good, accounts, first_byte_ms, last_at, probes, good_probes, probed_at };
            Ok((route, counts))
        };
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let rows = statement.query_map(params![from, to], one)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    pub async fn forget_route_health(&self, before: i64) -> Result<(), StoreError> {
        self.ask(|reply| Op::RouteHealth(Box::new(RouteHealthOp::Forget { before }), reply)).await
    }
}

impl Apply<'_> {
    pub(super) fn route_health(&mut self, op: &RouteHealthOp) -> rusqlite::Result<()> {
        match op {
            RouteHealthOp::Add { quarter, counted } => {
                let sql = "INSERT INTO route_health \
                           (quarter, model, provider, upstream_model, calls, good, accounts, first_byte_ms, last_at, \
                           probes, good_probes, probed_at) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
                           ON CONFLICT (quarter, model, provider, upstream_model) DO UPDATE SET \
                           calls = calls + excluded.calls, good = good + excluded.good, \
                           accounts = accounts | excluded.accounts, \
                           first_byte_ms = first_byte_ms + excluded.first_byte_ms, \
                           last_at = max(last_at, excluded.last_at), probes = probes + excluded.probes, \
                           good_probes = good_probes + excluded.good_probes, \
                           probed_at = max(probed_at, excluded.probed_at)";
                let mut add = self.statement(sql)?;
                for (route, n) in counted {
                    let CountedRoute { model, provider, upstream_model } = route;
                    add.execute(params![
                        quarter,
                        model,
                        provider,
                        upstream_model,
                        n.calls,
                        n.good,
                        n.accounts,
                        n.first_byte_ms,
                        n.last_at,
                        n.probes,
                        n.good_probes,
                        n.probed_at
                    ])?;
                }
            }
            RouteHealthOp::Forget { before } => {
                self.statement("DELETE FROM route_health WHERE quarter < ?1")?.execute(params![before])?;
            }
        }
        Ok(())
    }
}
