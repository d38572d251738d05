//! Sums of the usage log on PostgreSQL: triggers of the log write them, the database adds them up
//! further.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresEngine;
use super::records::SqlParam;
use super::rows::{self, USAGE};
use crate::call::UsageRow;
use crate::call::counters::COUNTERS;
use crate::error::StoreError;
use crate::margin::first_id;
use crate::store::sums::ExportPage;
use crate::sums::{MOST_GROUPS, SUMS, SumColumn, SumGroup, SumQuery, UsageFilter, UsageSum, Wanted};

pub(super) type Owned = Box<dyn ToSql + Sync + Send>;

impl PostgresEngine {
    pub async fn fill_sums(&self, most: i64) -> Result<bool, StoreError> {
        if self.sums_complete().await? {
            return Ok(false);
        }
        let rows = self.change("SELECT tollgate_fill_sums($1)", &[&most]).await?;
        Ok(rows.first().map_or(Ok(false), |r| r.try_get(0))?)
    }

    pub async fn sums_complete(&self) -> Result<bool, StoreError> {
        Ok(self.rows("SELECT 1 FROM usage_backfill WHERE one = 1", &[]).await?.is_empty())
    }

    pub async fn usage_sums(&self, query: &SumQuery) -> Result<Vec<SumGroup>, StoreError> {
        self.catch_up().await;
        let mut values: Vec<Owned> = vec![Box::new(query.from), Box::new(query.to)];
        // Of one span of time there is nothing to tell apart, and a database that is not made to
        // expects the groups that there are: it adds up in memory instead of sorting all sums.
        let span = match query.spans.len() {
            0 | 1 => "1::integer".to_owned(),
            _ => {
                values.push(Box::new(query.spans.clone()));
                format!("width_bucket(q.quarter, ${}::bigint[])", values.len())
            }
        };
        let of = conditions("q", &query.filter, &mut values);
        let by: String = query.by.iter().map(|column| format!(", {}", column.sql())).collect();
        let sums: String =
            SUMS.iter().map(|column| format!(", least(sum(q.{column}), 9000000000000000000)::bigint")).collect();
        let join = if query.by.contains(&SumColumn::Groups) { "JOIN account a ON a.id = q.account_id" } else { "" };
        let sql = format!(
            "SELECT {span}{by}{sums} FROM usage_quarter q {join} \
             WHERE {of} q.quarter >= $1 AND q.quarter < $2 GROUP BY 1{by} HAVING sum(q.requests) <> 0 \
             LIMIT {}",
            MOST_GROUPS + 1
        );
        let values: Vec<SqlParam<'_>> = values.iter().map(|value| value.as_ref() as SqlParam<'_>).collect();
        self.rows(&sql, &values).await?.iter().map(|r| group(query, r)).collect()
    }

    pub async fn usage_export(&self, page: ExportPage) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        let (after, call) = page.after.map_or(([0; 16], [0; 16]), |(account, call)| (account.0, call.0));
        let mut values: Vec<Owned> = Vec::new();
        for id in [after, call, first_id(page.from_ms), first_id(page.to_ms)] {
            values.push(Box::new(id.to_vec()));
        }
        values.push(Box::new(i64::from(page.limit)));
        let of = conditions("u", &page.filter, &mut values);
        let sql = format!(
            "SELECT {USAGE}{COUNTERS}, NULL::text FROM usage u WHERE {of} (u.account_id, u.call_id) > ($1, $2) \
             AND u.call_id >= $3 AND u.call_id < $4 ORDER BY u.account_id, u.call_id LIMIT $5"
        );
        let values: Vec<SqlParam<'_>> = values.iter().map(|value| value.as_ref() as SqlParam<'_>).collect();
        self.rows(&sql, &values).await?.iter().map(rows::usage).collect()
    }
}

/// The conditions on a table, each with AND after it; their values are added.
pub(super) fn conditions(table: &str, filter: &UsageFilter, values: &mut Vec<Owned>) -> String {
    let mut text = String::new();
    if let Some(account) = filter.account {
        values.push(Box::new(account.0.to_vec()));
        text.push_str(&format!("{table}.account_id = ${} AND ", values.len()));
    }
    for (column, wanted) in &filter.wanted {
        values.push(match wanted {
            Wanted::Id(id) => Box::new(id.to_vec()),
            Wanted::Text(text) => Box::new(text.clone()),
            Wanted::Code(code) => Box::new(i16::try_from(*code).unwrap_or(-1)),
        });
        text.push_str(&format!("{table}.{column} = ${} AND ", values.len()));
    }
    text
}

fn group(query: &SumQuery, r: &Row) -> Result<SumGroup, StoreError> {
    let bucket: i32 = r.try_get(0)?;
    let mut of = Vec::with_capacity(query.by.len());
    for (place, column) in (1..).zip(&query.by) {
        of.push(match column {
            SumColumn::Key | SumColumn::Account => column.shown(r.try_get(place)?),
            SumColumn::Ending => column.shown(r.try_get::<_, i16>(place)?.to_string().as_bytes()),
            _ => column.shown(r.try_get::<_, &str>(place)?.as_bytes()),
        });
    }
    let mut sum = UsageSum::default();
    for (place, value) in (1 + query.by.len()..).zip(&mut sum.0) {
        *value = r.try_get(place)?;
    }
    Ok(SumGroup { span: usize::try_from(bucket - 1).unwrap_or(0), of, sum })
}
