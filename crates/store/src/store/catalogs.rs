//! The verbs of published catalogs. Publishing is one transaction: which one is on sale, its text,
//! its row and the row of the log.

use super::Store;
use crate::catalog_version::{CATALOG_TEXTS, CatalogVersion, NewCatalogVersion};
use crate::error::StoreError;
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, SqlValue, may, must, values};

impl Store {
    /// Number and hash of what is on sale; nothing was published yet.
    pub async fn catalog_head(&self) -> Result<Option<(i64, String)>, StoreError> {
        const SQL: &str = "SELECT number, hash FROM catalog_current WHERE id = 1";
        let rows = self.people_rows(SQL, Vec::new()).await?;
        rows.first().map(|row| Ok((row.int(0)?, row.text(1)?))).transpose()
    }

    /// The files of a catalog, as JSON.
    pub async fn catalog_text(&self, hash: &str) -> Result<Option<String>, StoreError> {
        const SQL: &str = "SELECT files FROM catalog_text WHERE hash = $1";
        let rows = self.people_rows(SQL, values![hash]).await?;
        rows.first().map(|row| row.text(0)).transpose()
    }

    /// What was published, newest first.
    pub async fn catalog_versions(&self, before: Option<i64>, limit: u32) -> Result<Vec<CatalogVersion>, StoreError> {
        const SQL: &str = "SELECT v.number, v.hash, v.pricing_version, v.models, v.at, v.actor, v.reason, v.request_id, \
             v.rolled_back_to, t.bytes FROM catalog_version v LEFT JOIN catalog_text t ON t.hash = v.hash \
             WHERE v.number < $1 ORDER BY v.number DESC LIMIT $2";
        self.versions(SQL, values![before.unwrap_or(i64::MAX), i64::from(limit)]).await
    }

    pub async fn catalog_version(&self, number: i64) -> Result<Option<CatalogVersion>, StoreError> {
        const SQL: &str = "SELECT v.number, v.hash, v.pricing_version, v.models, v.at, v.actor, v.reason, v.request_id, \
             v.rolled_back_to, t.bytes FROM catalog_version v LEFT JOIN catalog_text t ON t.hash = v.hash WHERE v.number = $1";
        Ok(self.versions(SQL, values![number]).await?.pop())
    }

    async fn versions(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<CatalogVersion>, StoreError> {
        self.people_rows(sql, values).await?.iter().map(version).collect()
    }

    /// Puts a catalog on sale for all replicas, if `seen` is the hash of what is on sale. Without
    /// it: if nothing was published yet. `None`: something else is on sale, and stays.
    pub async fn publish_catalog(
        &self,
        new: NewCatalogVersion,
        seen: Option<String>,
        done: Attribution,
    ) -> Result<Option<CatalogVersion>, StoreError> {
        const LAST: &str = "SELECT v.number, v.hash, v.pricing_version, v.models, v.at, v.actor, v.reason, v.request_id, \
             v.rolled_back_to, t.bytes FROM catalog_version v LEFT JOIN catalog_text t ON t.hash = v.hash \
             WHERE v.hash = $1 ORDER BY v.number DESC LIMIT 1";
        let now = self.people_now();
        let hash = new.hash.clone();
        let detail = serde_json::json!({
            "from": seen, "to": new.hash, "pricing_version": new.pricing_version, "rolled_back_to": new.rolled_back_to,
        });
        let write: Vec<PersonStatement> = vec![
            match seen {
                // Writes take turns, so the second of two finds what the first one did.
                Some(seen) => must(
                    "UPDATE catalog_current SET number = number + 1, hash = $1 WHERE id = 1 AND hash = $2",
                    values![&new.hash, seen],
                ),
                None => must(
                    "INSERT INTO catalog_current (id, number, hash) VALUES (1, 1, $1) ON CONFLICT DO NOTHING",
                    values![&new.hash],
                ),
            },
            may(
                "INSERT INTO catalog_text (hash, files, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                values![&new.hash, &new.files, i64::try_from(new.files.len()).unwrap_or(i64::MAX)],
            ),
            must(
                "INSERT INTO catalog_version (number, hash, pricing_version, models, at, actor, reason, request_id, \
                 rolled_back_to) SELECT number, $1, $2, $3, $4, $5, $6, $7, $8 FROM catalog_current WHERE id = 1",
                values![
                    &new.hash,
                    &new.pricing_version,
                    new.models,
                    now,
                    &done.actor,
                    &done.reason,
                    done.request.as_ref(),
                    new.rolled_back_to,
                ],
            ),
            may(
                "DELETE FROM catalog_text WHERE hash NOT IN (SELECT v.hash FROM catalog_version v, catalog_current c \
                 WHERE c.id = 1 AND v.number > c.number - $1)",
                values![CATALOG_TEXTS],
            ),
            may(
                "INSERT INTO operator_event (at, actor, action, subject, reason, detail, request_id) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                values![
                    now,
                    &done.actor,
                    if new.rolled_back_to.is_some() { "catalog.roll_back" } else { "catalog.publish" },
                    "catalog",
                    &done.reason,
                    detail.to_string(),
                    done.request.as_ref(),
                ],
            ),
        ];
        if self.write_people(write).await?.is_some() {
            return Ok(None);
        }
        Ok(self.versions(LAST, values![hash]).await?.pop())
    }
}

fn version(row: &SqlRow) -> Result<CatalogVersion, StoreError> {
    Ok(CatalogVersion {
        number: row.int(0)?,
        hash: row.text(1)?,
        pricing_version: row.text(2)?,
        models: row.int(3)?,
        at: row.int(4)?,
        actor: row.text(5)?,
        reason: row.text(6)?,
        request_id: row.opt_text(7)?,
        rolled_back_to: row.opt_int(8)?,
        bytes: row.opt_int(9)?,
    })
}
