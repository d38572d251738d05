//! The verbs of sums over the usage log, and of the log as a whole.

use serde_json::Value;

use super::{Engine, Store};
use crate::call::UsageRow;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::sums::{FILL_STEP, MOST_GROUPS, SumAsk, SumQuery, SumViewer, UsageFilter, Wanted};

/// Rows of the log that are read at a time while all of them are written out.
pub const USAGE_EXPORT_PAGE: u32 = 500;
/// Steps of adding rows from before there were sums that a question waits for on the command line.
const STEPS_WAITED: usize = 200;

/// Rows of the usage log in the order of accounts and, of each, of calls.
#[derive(Clone, Debug)]
pub struct ExportPage {
    pub filter: UsageFilter,
    /// Of calls that began from here to before there.
    pub from_ms: i64,
    pub to_ms: i64,
    /// The last row of the page before.
    pub after: Option<(AccountId, CallId)>,
    pub limit: u32,
}

pub(crate) fn too_many_groups() -> StoreError {
    StoreError::Conflict(format!(
        "there are more than {MOST_GROUPS} groups: ask for a shorter time, fewer things to group by, or one model or key"
    ))
}

/// `zones`: days of its zone are being added up because it was asked.
pub(crate) fn too_much_read(query: &SumQuery, zones: bool) -> StoreError {
    let mut less = vec!["a shorter time from `from` to `to`"];
    if zones && !query.shifts().is_empty() {
        less.insert(0, "the same again in some minutes, when the days of its zone are added up");
    }
    if query.unit.is_some() && !query.of_the_house() {
        less.push("weeks, months or days of UTC");
    }
    if query.filter.account.is_none() && !query.of_the_house() {
        less.push("one `account`, or no account, key and group");
    }
    StoreError::Conflict(format!("it takes more than {} sums: ask for {}", query.most_read, less.join("; ")))
}

impl Store {
    /// Answers a question about sums of the usage log. While rows from before there were sums are
    /// still being added, there is no answer: it would be too small.
    pub async fn usage_sums(&self, query: &SumQuery) -> Result<Value, StoreError> {
        if !on_engine!(self, e => e.sums_complete().await)? {
            return Err(StoreError::away("the usage log is still being added up, which is done once; ask again later"));
        }
        let narrowed = self.of_its_account(query).await?;
        let query = narrowed.as_ref().unwrap_or(query);
        let groups = on_engine!(self, e => e.usage_sums(query).await)?;
        if groups.len() > MOST_GROUPS {
            return Err(too_many_groups());
        }
        Ok(query.report(groups))
    }

    /// A question about one key is one about the account it is of.
    async fn of_its_account(&self, query: &SumQuery) -> Result<Option<SumQuery>, StoreError> {
        let of = query.filter.wanted.iter().find_map(|(column, wanted)| match wanted {
            Wanted::Id(id) if *column == "key_id" => Some(KeyId(*id)),
            _ => None,
        });
        let (Some(key), None) = (of, query.filter.account) else { return Ok(None) };
        Ok(self.key(key).await?.map(|key| {
            let mut narrowed = query.clone();
            narrowed.filter.account = Some(key.account);
            narrowed
        }))
    }

    /// Adds up one day that is over, or finds out which are. `true`: there may be more to do.
    pub async fn fold_sums(&self) -> Result<bool, StoreError> {
        on_engine!(self, e => e.fold_sums().await)
    }

    /// How PostgreSQL answers a question; nothing on the embedded engine.
    #[cfg(feature = "testing")]
    pub async fn explain_sums(&self, query: &SumQuery) -> Result<Vec<String>, StoreError> {
        let narrowed = self.of_its_account(query).await?;
        let query = narrowed.as_ref().unwrap_or(query);
        match &self.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(engine) => engine.explain_sums(query).await,
        }
    }

    /// A page of the usage log, for whoever writes all of it out.
    pub async fn usage_export(&self, page: ExportPage) -> Result<Vec<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage_export(page).await)
    }

    /// Adds so many of the rows from before there were sums. `true`: there are more.
    pub async fn fill_sums(&self, most: u32) -> Result<bool, StoreError> {
        on_engine!(self, e => e.fill_sums(most.max(1).into()).await)
    }

    /// An operator's question. Without a server nobody else adds up what is left to add.
    pub(crate) async fn answer_sums(&self, asked: &SumAsk) -> Result<Value, StoreError> {
        let now = on_engine!(self, e => e.now());
        let query = asked.checked(SumViewer::Operator, now).map_err(|wrong| StoreError::Conflict(wrong.to_string()))?;
        for _ in 0..STEPS_WAITED {
            if !self.fill_sums(FILL_STEP).await? && !self.fold_sums().await? {
                break;
            }
        }
        self.usage_sums(&query).await
    }
}
