//! The verbs of alerts: rules, places, what fires and what fired.

use super::people::noted;
use super::{Engine, Store};
use crate::alert::{
    AlertChange, AlertCondition, AlertDelivery, AlertEvent, AlertFact, AlertFiring, AlertMove, AlertNews, AlertPlace,
    AlertRule, AlertSilence, DAY_MS, MOST_A_DAY, MOST_ALERT_PLACES, MOST_ALERT_RULES, MOST_WAITING, NewAlertPlace,
    NewAlertRule, SealedAlertPlace, named,
};
use crate::error::StoreError;
use crate::ids::{AlertEventId, AlertPlaceId, AlertRuleId};
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};

const RULES: &str = "SELECT id, name, condition, places, enabled, silenced_until, silence_reason, created_at, changed_at \
     FROM alert_rule ORDER BY id";
const RULE: &str = "SELECT id, name, condition, places, enabled, silenced_until, silence_reason, created_at, changed_at \
     FROM alert_rule WHERE id = $1";
const PUT_EVENT: &str =
    "INSERT INTO alert_event (id, rule_id, subject, what, at, message, sent) VALUES ($1, $2, $3, $4, $5, $6, $7)";
/// A place that is gone meanwhile gets nothing.
const PUT_DELIVERY: &str = "INSERT INTO alert_delivery (id, event_id, place_id, news, created_at, due_at, tries) \
     SELECT $1, $2, $3, $4, $5, $6, 0 WHERE EXISTS (SELECT 1 FROM alert_place WHERE id = $3) \
     AND (SELECT count(*) FROM alert_delivery WHERE due_at IS NOT NULL AND place_id IS NOT NULL) < $7 \
     AND (SELECT count(*) FROM alert_delivery WHERE due_at IS NOT NULL AND place_id = $3) < $8";
/// Rows of what fired that are there at most, and how long.
const MOST_EVENTS: i64 = 1_000;
const REMEMBERED_MS: i64 = 30 * DAY_MS;
/// News that wait for one place: one that is down for long does not hide the others.
const EACH_WAITING: i64 = 20;

fn no_rule(rule: AlertRuleId) -> StoreError {
    StoreError::NotFound(rule.to_string())
}

impl Store {
    pub async fn create_alert_place(&self, new: NewAlertPlace, done: Attribution) -> Result<AlertPlace, StoreError> {
        named(&new.name)?;
        let (id, now) = (on_engine!(self, e => e.people_ids().alert_place()), self.people_now());
        let sql = "INSERT INTO alert_place (id, name, kind, shown, sealed, created_at) SELECT $1, $2, $3, $4, $5, $6 \
             WHERE (SELECT count(*) FROM alert_place) < $7";
        let kind = new.kind.word();
        let write = vec![
            must(sql, values![id.0, &new.name, kind, &new.shown, &*new.sealed, now, MOST_ALERT_PLACES]),
            noted(now, &done, "alert_place.create", &id.to_string(), &format!("{kind} {}", new.shown)),
        ];
        if self.write_people(write).await?.is_some() {
            return Err(StoreError::Conflict(format!("there are {MOST_ALERT_PLACES} places already")));
        }
        Ok(AlertPlace { id, name: new.name, kind: new.kind, shown: new.shown, created_at: now })
    }

    pub async fn alert_places(&self) -> Result<Vec<AlertPlace>, StoreError> {
        const SQL: &str = "SELECT id, name, kind, shown, created_at FROM alert_place ORDER BY id";
        self.people_rows(SQL, Vec::new()).await?.iter().map(place).collect()
    }

    pub async fn alert_place(&self, id: AlertPlaceId) -> Result<Option<SealedAlertPlace>, StoreError> {
        const SQL: &str = "SELECT id, name, kind, shown, created_at, sealed FROM alert_place WHERE id = $1";
        let sealed = |row: &SqlRow| Ok(SealedAlertPlace { place: place(row)?, sealed: row.bytes(5)? });
        self.people_rows(SQL, values![id.0]).await?.first().map(sealed).transpose()
    }

    /// Rules that name it go on without it.
    pub async fn remove_alert_place(&self, id: AlertPlaceId, done: Attribution) -> Result<(), StoreError> {
        let write = vec![
            must("DELETE FROM alert_place WHERE id = $1", values![id.0]),
            may(
                "UPDATE alert_delivery SET due_at = NULL, outcome = 'given_up' WHERE place_id = $1 AND due_at IS NOT NULL",
                values![id.0],
            ),
            noted(self.people_now(), &done, "alert_place.remove", &id.to_string(), ""),
        ];
        match self.write_people(write).await? {
            None => Ok(()),
            Some(_) => Err(StoreError::NotFound(id.to_string())),
        }
    }

    pub async fn create_alert_rule(&self, new: NewAlertRule, done: Attribution) -> Result<AlertRule, StoreError> {
        new.checked()?;
        self.known_places(&new.places).await?;
        let (id, now) = (on_engine!(self, e => e.people_ids().alert_rule()), self.people_now());
        let (condition, places) = (text(&new.condition)?, text(&new.places)?);
        let sql = "INSERT INTO alert_rule (id, name, condition, places, enabled, created_at, changed_at) \
             SELECT $1, $2, $3, $4, 1, $5, $5 WHERE (SELECT count(*) FROM alert_rule) < $6";
        let write = vec![
            must(sql, values![id.0, &new.name, &condition, &places, now, MOST_ALERT_RULES]),
            noted(now, &done, "alert_rule.create", &id.to_string(), &condition),
        ];
        if self.write_people(write).await?.is_some() {
            return Err(StoreError::Conflict(format!("there are {MOST_ALERT_RULES} rules already")));
        }
        self.alert_rule(id).await?.ok_or_else(|| no_rule(id))
    }

    async fn known_places(&self, places: &[AlertPlaceId]) -> Result<(), StoreError> {
        let known = self.alert_places().await?;
        match places.iter().find(|place| !known.iter().any(|one| one.id == **place)) {
            None => Ok(()),
            Some(unknown) => Err(StoreError::NotFound(unknown.to_string())),
        }
    }

    pub async fn alert_rules(&self) -> Result<Vec<AlertRule>, StoreError> {
        self.people_rows(RULES, Vec::new()).await?.iter().map(rule).collect()
    }

    pub async fn alert_rule(&self, id: AlertRuleId) -> Result<Option<AlertRule>, StoreError> {
        self.people_rows(RULE, values![id.0]).await?.first().map(rule).transpose()
    }

    /// What is watched anew begins anew: what fired by the rule before it is forgotten.
    pub async fn change_alert_rule(
        &self,
        id: AlertRuleId,
        change: AlertChange,
        done: Attribution,
    ) -> Result<AlertRule, StoreError> {
        let before = self.alert_rule(id).await?.ok_or_else(|| no_rule(id))?;
        let anew =
            change.condition.as_ref().is_some_and(|one| *one != before.condition) || change.enabled == Some(false);
        let after = NewAlertRule {
            name: change.name.unwrap_or(before.name),
            condition: change.condition.unwrap_or(before.condition),
            places: change.places.clone().unwrap_or(before.places),
        };
        after.checked()?;
        if let Some(places) = &change.places {
            self.known_places(places).await?;
        }
        let (now, enabled) = (self.people_now(), i64::from(change.enabled.unwrap_or(before.enabled)));
        let (condition, places) = (text(&after.condition)?, text(&after.places)?);
        let sql = "UPDATE alert_rule SET name = $2, condition = $3, places = $4, enabled = $5, changed_at = $6 \
             WHERE id = $1 AND changed_at = $7";
        let mut write =
            vec![must(sql, values![id.0, &after.name, &condition, &places, enabled, now, before.changed_at])];
        if anew {
            write.push(may("DELETE FROM alert_state WHERE rule_id = $1", values![id.0]));
        }
        write.push(noted(now, &done, "alert_rule.change", &id.to_string(), &condition));
        if self.write_people(write).await?.is_some() {
            return Err(StoreError::Conflict("somebody else changed the rule meanwhile".into()));
        }
        self.alert_rule(id).await?.ok_or_else(|| no_rule(id))
    }

    pub async fn remove_alert_rule(&self, id: AlertRuleId, done: Attribution) -> Result<(), StoreError> {
        let write = vec![
            must("DELETE FROM alert_rule WHERE id = $1", values![id.0]),
            may("DELETE FROM alert_state WHERE rule_id = $1", values![id.0]),
            noted(self.people_now(), &done, "alert_rule.remove", &id.to_string(), ""),
        ];
        match self.write_people(write).await? {
            None => Ok(()),
            Some(_) => Err(no_rule(id)),
        }
    }

    pub async fn silence_alert_rule(
        &self,
        id: AlertRuleId,
        silence: AlertSilence,
        done: Attribution,
    ) -> Result<AlertRule, StoreError> {
        let sql = "UPDATE alert_rule SET silenced_until = $2, silence_reason = $3 WHERE id = $1";
        let reason = silence.until_ms.map(|_| done.reason.clone());
        let detail = silence.until_ms.map_or_else(String::new, |until| until.to_string());
        let write = vec![
            must(sql, values![id.0, silence.until_ms, reason]),
            noted(self.people_now(), &done, "alert_rule.silence", &id.to_string(), &detail),
        ];
        match self.write_people(write).await? {
            None => self.alert_rule(id).await?.ok_or_else(|| no_rule(id)),
            Some(_) => Err(no_rule(id)),
        }
    }

    /// Everything that fires now.
    pub async fn alerts_firing(&self) -> Result<Vec<AlertFiring>, StoreError> {
        const SQL: &str =
            "SELECT rule_id, subject, since, notified_at, message FROM alert_state ORDER BY since, rule_id, subject";
        let firing = |row: &SqlRow| {
            let (rule_id, subject) = (AlertRuleId(row.id(0)?), row.text(1)?);
            Ok(AlertFiring {
                rule_id,
                subject,
                since: row.int(2)?,
                notified_at: row.opt_int(3)?,
                message: row.text(4)?,
            })
        };
        self.people_rows(SQL, Vec::new()).await?.iter().map(firing).collect()
    }

    /// What fired and ceased to, newest first, each with its places.
    pub async fn alert_events(&self, before: Option<AlertEventId>, limit: u32) -> Result<Vec<AlertEvent>, StoreError> {
        const SQL: &str = "SELECT id, rule_id, subject, what, at, message, sent FROM alert_event WHERE id < $1 \
             ORDER BY id DESC LIMIT $2";
        const PLACES: &str =
            "SELECT place_id, tries, status, outcome FROM alert_delivery WHERE event_id = $1 ORDER BY id";
        let before = before.map_or([255; 16], |id| id.0);
        let mut events = Vec::new();
        for row in self.people_rows(SQL, values![before, i64::from(limit)]).await? {
            let id = AlertEventId(row.id(0)?);
            let of = |row: &SqlRow| {
                let outcome = row.opt_text(3)?.unwrap_or_else(|| "waiting".to_owned());
                let place_id = row.opt_id(0)?.map(AlertPlaceId);
                Ok(AlertDelivery { place_id, tries: row.int(1)?, status: row.opt_int(2)?, outcome })
            };
            let deliveries = self.people_rows(PLACES, values![id.0]).await?;
            events.push(AlertEvent {
                id,
                rule_id: AlertRuleId(row.id(1)?),
                subject: row.text(2)?,
                what: word(&row, 3)?,
                at: row.int(4)?,
                message: row.text(5)?,
                sent: row.int(6)? != 0,
                deliveries: deliveries.iter().map(of).collect::<Result<_, StoreError>>()?,
            });
        }
        Ok(events)
    }

    /// Takes the turn of looking, unless somebody did within this time.
    pub async fn take_alert_turn(&self, name: &str, every_ms: i64) -> Result<bool, StoreError> {
        let sql = "INSERT INTO alert_turn (name, at) VALUES ($1, $2) ON CONFLICT (name) \
             DO UPDATE SET at = excluded.at WHERE alert_turn.at <= $3";
        let now = self.people_now();
        Ok(self.write_people(vec![must(sql, values![name, now, now.saturating_sub(every_ms)])]).await?.is_none())
    }

    /// A rule begins to fire for a subject, or ceases to, or still does after a day; what is to be
    /// sent is written with it. `false`: somebody else has written it.
    pub async fn move_alert(
        &self,
        rule: &AlertRule,
        what: AlertMove,
        subject: &str,
        message: &str,
        was: Option<&AlertFiring>,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let heard = was.and_then(|was| was.notified_at);
        let wanted = match what {
            // Whoever did not hear of the beginning need not hear of the end.
            AlertMove::Cleared => heard.is_some(),
            AlertMove::Firing | AlertMove::Reminder | AlertMove::Test => true,
        };
        let send = wanted && !rule.is_silent_at(now) && self.alerts_sent(rule.id, now - DAY_MS).await? < MOST_A_DAY;
        let notified = send.then_some(now);
        let first = match (what, was) {
            (AlertMove::Cleared, Some(was)) => must(
                "DELETE FROM alert_state WHERE rule_id = $1 AND subject = $2 AND since = $3",
                values![rule.id.0, subject, was.since],
            ),
            // It fires, and nobody has heard of it, or not for a day.
            (_, Some(was)) => {
                if !send {
                    return Ok(false);
                }
                let sql = "UPDATE alert_state SET notified_at = $4, message = $5 WHERE rule_id = $1 AND subject = $2 \
                     AND since = $3 AND coalesce(notified_at, 0) = $6";
                let before = was.notified_at.unwrap_or(0);
                must(sql, values![rule.id.0, subject, was.since, now, message, before])
            }
            (_, None) => must(
                "INSERT INTO alert_state (rule_id, subject, since, notified_at, message) \
                 SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM alert_rule WHERE id = $1) ON CONFLICT DO NOTHING",
                values![rule.id.0, subject, now, notified, message],
            ),
        };
        let event = on_engine!(self, e => e.people_ids().alert_event());
        let put = values![event.0, rule.id.0, subject, what.word(), now, message, i64::from(send)];
        let mut write = vec![first, may(PUT_EVENT, put)];
        if send {
            let kind = rule.condition.kind().to_owned();
            let news = AlertNews {
                what,
                rule: rule.name.clone(),
                kind,
                subject: subject.to_owned(),
                message: message.to_owned(),
                at_ms: now,
            };
            write.extend(self.put_deliveries(event, &rule.places, &text(&news)?, now));
        }
        Ok(self.write_people(write).await?.is_none())
    }

    fn put_deliveries(
        &self,
        event: AlertEventId,
        places: &[AlertPlaceId],
        news: &str,
        now: i64,
    ) -> Vec<PersonStatement> {
        let put = |place: &AlertPlaceId| {
            let id = on_engine!(self, e => e.people_ids().alert_event());
            may(PUT_DELIVERY, values![id.0, event.0, place.0, news, now, now, MOST_WAITING, EACH_WAITING])
        };
        places.iter().map(put).collect()
    }

    async fn alerts_sent(&self, rule: AlertRuleId, since: i64) -> Result<i64, StoreError> {
        const SQL: &str = "SELECT count(*) FROM alert_event WHERE rule_id = $1 AND at > $2 AND sent = 1";
        self.people_rows(SQL, values![rule.0, since]).await?.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Erases what fired long ago, and of much the oldest; what was sent goes with it.
    pub async fn forget_alerts(&self) -> Result<(), StoreError> {
        let now = self.people_now();
        let old = "DELETE FROM alert_event WHERE at < $1";
        let many =
            "DELETE FROM alert_event WHERE id IN (SELECT id FROM alert_event ORDER BY id DESC LIMIT 10000 OFFSET $1)";
        let sent = "DELETE FROM alert_delivery WHERE due_at IS NULL AND created_at < $1";
        let facts = "DELETE FROM alert_fact WHERE at < $1 AND name <> 'drift'";
        let write = vec![
            may(old, values![now - REMEMBERED_MS]),
            may(many, values![MOST_EVENTS]),
            may(sent, values![now - REMEMBERED_MS]),
            may(
                "DELETE FROM alert_delivery WHERE due_at IS NULL AND id IN (SELECT id FROM alert_delivery ORDER BY id DESC LIMIT 10000 OFFSET $1)",
                values![20 * MOST_EVENTS],
            ),
            may(facts, values![now - 7 * DAY_MS]),
        ];
        self.write_people(write).await.map(drop)
    }

    /// What a replica sees of itself.
    pub async fn put_alert_fact(&self, name: &str, replica: &str, value: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO alert_fact (name, replica, value, at) VALUES ($1, $2, $3, $4) ON CONFLICT (name, replica) \
             DO UPDATE SET value = excluded.value, at = excluded.at";
        self.write_people(vec![may(sql, values![name, replica, value, self.people_now()])]).await.map(drop)
    }

    /// What replicas saw of themselves since then.
    pub async fn alert_facts(&self, name: &str, since: i64) -> Result<Vec<AlertFact>, StoreError> {
        const SQL: &str =
            "SELECT replica, value, at FROM alert_fact WHERE name = $1 AND at >= $2 ORDER BY replica LIMIT 100";
        let fact = |row: &SqlRow| Ok(AlertFact { replica: row.text(0)?, value: row.int(1)?, at: row.int(2)? });
        self.people_rows(SQL, values![name, since]).await?.iter().map(fact).collect()
    }
}

fn text(of: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(of).map_err(StoreError::broken)
}

fn word<T: std::str::FromStr>(row: &SqlRow, at: usize) -> Result<T, StoreError> {
    row.word(at)
}

fn place(row: &SqlRow) -> Result<AlertPlace, StoreError> {
    Ok(AlertPlace {
        id: AlertPlaceId(row.id(0)?),
        name: row.text(1)?,
        kind: word(row, 2)?,
        shown: row.text(3)?,
        created_at: row.int(4)?,
    })
}

fn rule(row: &SqlRow) -> Result<AlertRule, StoreError> {
    let condition: AlertCondition = serde_json::from_str(&row.text(2)?).map_err(StoreError::broken)?;
    Ok(AlertRule {
        id: AlertRuleId(row.id(0)?),
        name: row.text(1)?,
        condition,
        places: serde_json::from_str(&row.text(3)?).map_err(StoreError::broken)?,
        enabled: row.int(4)? != 0,
        silenced_until: row.opt_int(5)?,
        silence_reason: row.opt_text(6)?,
        created_at: row.int(7)?,
        changed_at: row.int(8)?,
    })
}
