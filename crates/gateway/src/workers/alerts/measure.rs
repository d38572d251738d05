//! What each kind of rule measures: a few rows by their keys, or sums by quarter of an hour.

use crate::alerts::judge::{AlertBound, AlertReading};
use crate::app::App;
use tollgate_catalog::Money;
use tollgate_store::{AccountId, AlertCondition, StoreError};

/// What replicas say of themselves.
pub const DISK: &str = "disk";
pub const CERTIFICATE: &str = "certificate";
/// What the last full audit found, of whichever replica.
pub const DRIFT: &str = "drift";
pub const LEDGER: &str = "ledger";

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// A replica that says nothing for so long is not there.
const FRESH_MS: i64 = 10 * MINUTE_MS;
/// Far away.
const NEVER: i64 = i64::MAX / 4;
/// The subject of what concerns all.
const HOUSE: &str = "house";

pub async fn readings(app: &App, condition: &AlertCondition) -> Result<Vec<AlertReading>, StoreError> {
    match condition {
        AlertCondition::Balance { accounts, amount_nano_usd } => balances(app, accounts, *amount_nano_usd).await,
        AlertCondition::Spend { accounts, amount_nano_usd, window_minutes } => {
            spend(app, accounts, (*amount_nano_usd, *window_minutes)).await
        }
        AlertCondition::Faults { model, provider, percent, count, window_minutes } => {
            let of = (model.as_deref().unwrap_or(""), provider.as_deref().unwrap_or(""));
            faults(app, of, (*percent, *count, *window_minutes)).await
        }
        AlertCondition::UnknownTasks { count, minutes } => {
            let found = app.store.unknown_tasks(app.world.now_ms() - minutes * MINUTE_MS, 1_000).await?;
            let says = format!("{found} tasks are in an unknown state for more than {minutes} minutes");
            Ok(vec![of_house(found, AlertBound::AtLeast(*count), says)])
        }
        AlertCondition::Drift { minutes } => drift(app, *minutes).await,
        AlertCondition::Disk { bytes } => {
            let facts = app.store.alert_facts(DISK, app.world.now_ms() - FRESH_MS).await?;
            let of = |fact: tollgate_store::AlertFact| AlertReading {
                says: format!(
                    "the disk of replica {} has {} bytes free; the bound is {bytes}",
                    fact.replica, fact.value
                ),
                subject: fact.replica,
                value: fact.value,
                bound: AlertBound::Below(*bytes),
            };
            Ok(facts.into_iter().map(of).collect())
        }
        AlertCondition::Certificate { days } => {
            let now = app.world.now_ms();
            let facts = app.store.alert_facts(CERTIFICATE, now - FRESH_MS).await?;
            let of = |fact: tollgate_store::AlertFact| AlertReading {
                says: format!("the certificate of replica {} ends in {}", fact.replica, in_days(fact.value - now)),
                subject: fact.replica,
                value: fact.value.saturating_sub(now),
                bound: AlertBound::Below(days * DAY_MS),
            };
            Ok(facts.into_iter().map(of).collect())
        }
        AlertCondition::KeyEnd { accounts, days } => key_ends(app, accounts, *days).await,
    }
}

fn of_house(value: i64, bound: AlertBound, says: String) -> AlertReading {
    AlertReading { subject: HOUSE.to_owned(), value, bound, says }
}

async fn balances(app: &App, accounts: &[AccountId], bound: i64) -> Result<Vec<AlertReading>, StoreError> {
    let mut all = Vec::with_capacity(accounts.len());
    for account in accounts {
        let Some(value) = app.store.balance_of(*account).await? else { continue };
        let (has, least) = (Money::from_nano(value), Money::from_nano(bound));
        all.push(AlertReading {
            subject: account.to_string(),
            value,
            bound: AlertBound::Below(bound),
            says: format!("the balance of {account} is {has} USD; the bound is {least} USD"),
        });
    }
    Ok(all)
}

async fn spend(app: &App, accounts: &[AccountId], of: (i64, i64)) -> Result<Vec<AlertReading>, StoreError> {
    let (bound, minutes) = of;
    let since = app.world.now_ms() - minutes * MINUTE_MS;
    let whose: Vec<Option<AccountId>> = match accounts {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut all = Vec::with_capacity(whose.len());
    for account in whose {
        let value = app.store.charged_since(account, since).await?;
        let subject = account.map_or_else(|| HOUSE.to_owned(), |account| account.to_string());
        let (spent, most) = (Money::from_nano(value), Money::from_nano(bound));
        all.push(AlertReading {
            says: format!("{subject} was charged {spent} USD in {minutes} minutes; the bound is {most} USD"),
            subject,
            value,
            bound: AlertBound::AtLeast(bound),
        });
    }
    Ok(all)
}

/// The share in hundredths of a percent; nothing, where too few failed.
async fn faults(app: &App, of: (&str, &str), bounds: (i64, i64, i64)) -> Result<Vec<AlertReading>, StoreError> {
    let ((model, provider), (percent, count, minutes)) = (of, bounds);
    let since = app.world.now_ms() - minutes * MINUTE_MS;
    let (calls, good) = app.store.tried_since(model, provider, since).await?;
    let bad = calls.saturating_sub(good);
    let share = if calls == 0 { 0 } else { bad.saturating_mul(10_000) / calls };
    let subject = match (model, provider) {
        ("", "") => HOUSE.to_owned(),
        (model, "") => model.to_owned(),
        ("", provider) => provider.to_owned(),
        (model, provider) => format!("{provider}/{model}"),
    };
    Ok(vec![AlertReading {
        says: format!("{bad} of {calls} calls of {subject} failed in {minutes} minutes; the bound is {percent} %"),
        subject,
        value: if bad >= count { share } else { 0 },
        bound: AlertBound::AtLeast(percent * 100),
    }])
}

async fn drift(app: &App, minutes: i64) -> Result<Vec<AlertReading>, StoreError> {
    let facts = app.store.alert_facts(DRIFT, 0).await?;
    // The first audit of a new house is under way.
    let Some(last) = facts.into_iter().find(|fact| fact.replica == LEDGER) else { return Ok(Vec::new()) };
    let age = (app.world.now_ms() - last.at) / MINUTE_MS;
    let (value, says) = match (last.value, age > minutes) {
        (0, true) => (1, format!("the ledger was last audited {age} minutes ago")),
        (0, false) => (0, "the ledger was audited, and every number adds up".to_owned()),
        (found, _) => (found, format!("the audit of the ledger found {found} differences: `tollgate ledger verify`")),
    };
    Ok(vec![of_house(value, AlertBound::AtLeast(1), says)])
}

async fn key_ends(app: &App, accounts: &[AccountId], days: i64) -> Result<Vec<AlertReading>, StoreError> {
    let now = app.world.now_ms();
    let whose: Vec<Option<AccountId>> = match accounts {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let mut all = Vec::with_capacity(whose.len());
    for account in whose {
        let left = app.store.next_key_end(account).await?.map_or(NEVER, |end| end - now);
        let subject = account.map_or_else(|| "operators".to_owned(), |account| account.to_string());
        let says = match left {
            NEVER => format!("no key of {subject} has an end"),
            left => format!("the next key of {subject} ends in {}", in_days(left)),
        };
        all.push(AlertReading { subject, value: left, bound: AlertBound::Below(days * DAY_MS), says });
    }
    Ok(all)
}

fn in_days(left_ms: i64) -> String {
    let (days, hours) = (left_ms.div_euclid(DAY_MS), left_ms.rem_euclid(DAY_MS) / 3_600_000);
    format!("{days} days and {hours} hours")
}
