//! Route health on PostgreSQL: every replica adds to the same rows.

use tokio_postgres::Row;

use super::PostgresEngine;
use super::records::SqlParam;
use crate::error::StoreError;
use crate::route_health::{CountedRoute, RouteCounts};

impl PostgresEngine {
    pub async fn add_route_health(
        &self,
        quarter: i64,
        counted: &[(CountedRoute, RouteCounts)],
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO route_health \
                   (quarter, model, provider, upstream_model, calls, good, accounts, first_byte_ms, last_at, \
                   probes, good_probes, probed_at) \
                   SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], \
                   $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]) \
                   ON CONFLICT (quarter, model, provider, upstream_model) DO UPDATE SET \
                   calls = route_health.calls + excluded.calls, good = route_health.good + excluded.good, \
                   accounts = route_health.accounts | excluded.accounts, \
                   first_byte_ms = route_health.first_byte_ms + excluded.first_byte_ms, \
                   last_at = greatest(route_health.last_at, excluded.last_at), \
                   probes = route_health.probes + excluded.probes, \
                   good_probes = route_health.good_probes + excluded.good_probes, \
                   probed_at = greatest(route_health.probed_at, excluded.probed_at)";
        let text =
            |of: fn(&CountedRoute) -> &str| -> Vec<&str> { counted.iter().map(|(route, _)| of(route)).collect() };
        let number =
            |of: fn(&RouteCounts) -> i64| -> Vec<i64> { counted.iter().map(|(_, counts)| of(counts)).collect() };
        let (models, providers) = (text(|route| &route.model), text(|route| &route.provider));
        let upstream = text(|route| &route.upstream_model);
        let (calls, good) = (number(|counts| counts.calls), number(|counts| counts.good));
        let (accounts, first_byte) = (number(|counts| counts.accounts), number(|counts| counts.first_byte_ms));
        let last_at = number(|counts| counts.last_at);
        let (probes, good_probes) = (number(|counts| counts.probes), number(|counts| counts.good_probes));
        let probed_at = number(|counts| counts.probed_at);
        let values: [SqlParam<'_>; 12] = [
            &quarter,
            &models,
            &providers,
            &upstream,
            &calls,
            &good,
            &accounts,
            &first_byte,
            &last_at,
            &probes,
            &good_probes,
            &probed_at,
        ];
        self.change(sql, &values).await?;
        Ok(())
    }

    pub async fn route_health(&self, from: i64, to: i64) -> Result<Vec<(CountedRoute, RouteCounts)>, StoreError> {
        let sql = "SELECT model, provider, upstream_model, sum(calls)::bigint, sum(good)::bigint, bit_or(accounts), \
                   sum(first_byte_ms)::bigint, max(last_at), sum(probes)::bigint, sum(good_probes)::bigint, \
                   max(probed_at) FROM route_health WHERE quarter >= $1 AND quarter < $2 GROUP BY model, provider, upstream_model";
        self.rows(sql, &[&from, &to]).await?.iter().map(summed).collect()
    }

    pub async fn forget_route_health(&self, before: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM route_health WHERE quarter < $1", &[&before]).await?;
        Ok(())
    }
}

fn summed(r: &Row) -> Result<(CountedRoute, RouteCounts), StoreError> {
    let route = CountedRoute { model: r.try_get(0)?, provider: r.try_get(1)?, upstream_model: r.try_get(2)? };
    let (calls, good, accounts) = (r.try_get(3)?, r.try_get(4)?, r.try_get(5)?);
    let (first_byte_ms, last_at) = (r.try_get(6)?, r.try_get(7)?);
    let (probes, good_probes, probed_at) = (r.try_get(8)?, r.try_get(9)?, r.try_get(10)?);
    let counts = RouteCounts { calls, good, accounts, first_byte_ms, last_at, probes, good_probes, probed_at };
    Ok((route, counts))
}
