//! The verbs of passkeys. A ceremony ends once, in the transaction of what it is for; a counter
//! that does not grow stops it there, whichever replica saw it first.

use super::issuers::use_way;
use super::people::{end_all_sessions, noted};
use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::{PasskeyId, PersonId};
use crate::operator::Attribution;
use crate::person::passkey::{AddedPasskey, NewPasskey, PasskeyRecord, PasskeyUse, UsedPasskey};
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};
use crate::person::{NewSession, PersonRecord, UsedWay};

/// Passkeys of one person.
pub const MOST_PASSKEYS: i64 = 20;

const ADD: &str = "INSERT INTO passkey (credential_id, id, person_id, rp_id, name, public_key, sign_count, transports, \
     backup_eligible, backed_up, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 \
     WHERE (SELECT count(*) FROM passkey WHERE person_id = $3) < $12 ON CONFLICT DO NOTHING";
/// Counters grow; one that stays at nothing does not count.
const USE: &str = "UPDATE passkey SET sign_count = $3, backed_up = $4, used_at = $5 WHERE id = $1 AND person_id = $2 \
     AND (sign_count < $3 OR (sign_count = 0 AND $3 = 0))";
/// Unless no way in would be left. One of another domain is none.
const DROP: &str = "DELETE FROM passkey WHERE id = $1 AND person_id = $2 AND (rp_id <> $3 \
     OR EXISTS (SELECT 1 FROM credential WHERE person_id = $2 AND kind = 'password') \
     OR EXISTS (SELECT 1 FROM issuer_link WHERE person_id = $2) \
     OR EXISTS (SELECT 1 FROM passkey k WHERE k.person_id = $2 AND k.id <> $1 AND k.rp_id = $3))";
const STRENGTHEN: &str =
    "UPDATE session SET hash = $2, strong_at = $3, seen_at = $3 WHERE hash = $1 AND person_id = $4";

fn signed(person: &PersonRecord) -> Attribution {
    Attribution { person: Some(person.id), ..Attribution::by(person.actor(), String::new()) }
}

fn use_passkey(used: UsedPasskey, now: i64) -> PersonStatement {
    must(USE, values![used.id.0, used.person.0, used.sign_count, i64::from(used.backed_up), now])
}

fn outcome(stopped: Option<usize>) -> PasskeyUse {
    match stopped {
        None => PasskeyUse::Done,
        Some(0) => PasskeyUse::WayUsed,
        Some(1) => PasskeyUse::CounterBack,
        Some(_) => PasskeyUse::NoSession,
    }
}

impl Store {
    /// The oldest first.
    pub async fn passkeys(&self, person: PersonId) -> Result<Vec<PasskeyRecord>, StoreError> {
        const SQL: &str = "SELECT id, name, person_id, credential_id, public_key, rp_id, sign_count, transports, \
             backup_eligible, backed_up, created_at, used_at, suspected_at FROM passkey WHERE person_id = $1 \
             ORDER BY created_at, id LIMIT $2";
        self.people_rows(SQL, values![person.0, MOST_PASSKEYS]).await?.iter().map(passkey).collect()
    }

    pub async fn passkey_by_credential(&self, credential_id: &[u8]) -> Result<Option<PasskeyRecord>, StoreError> {
        const SQL: &str = "SELECT id, name, person_id, credential_id, public_key, rp_id, sign_count, transports, \
             backup_eligible, backed_up, created_at, used_at, suspected_at FROM passkey WHERE credential_id = $1";
        self.people_rows(SQL, values![credential_id]).await?.first().map(passkey).transpose()
    }

    /// One more passkey for somebody who is signed in, and the letter about it.
    pub async fn add_passkey(
        &self,
        person: &PersonRecord,
        new: NewPasskey,
        way: UsedWay,
        mail: Option<Vec<u8>>,
    ) -> Result<AddedPasskey, StoreError> {
        let (id, now) = (on_engine!(self, e => e.people_ids().passkey()), self.people_now());
        let add = values![
            &*new.credential_id,
            id.0,
            person.id.0,
            &new.rp_id,
            &new.name,
            &*new.public_key,
            new.sign_count,
            new.transports.join(","),
            i64::from(new.backup_eligible),
            i64::from(new.backed_up),
            now,
            MOST_PASSKEYS,
        ];
        let mut write = vec![
            use_way(way),
            must(ADD, add),
            may("DELETE FROM issuer_way WHERE expires_at <= $1", values![now]),
            noted(now, &signed(person), "person.passkey_add", &person.id.to_string(), &id.to_string()),
        ];
        write.extend(mail.map(|sealed| self.put_mail(sealed, now)));
        match self.write_people(write).await? {
            Some(0) => return Ok(AddedPasskey::WayUsed),
            Some(_) if self.passkey_by_credential(&new.credential_id).await?.is_some() => {
                return Ok(AddedPasskey::Known);
            }
            Some(_) => return Ok(AddedPasskey::Full),
            None => {}
        }
        let made = self.passkeys(person.id).await?.into_iter().find(|one| one.id == id);
        // It may have been removed a moment later.
        Ok(made.map_or(AddedPasskey::Known, |made| AddedPasskey::Added(Box::new(made))))
    }

    /// `false`: they have no such passkey.
    pub async fn rename_passkey(&self, person: &PersonRecord, id: PasskeyId, name: &str) -> Result<bool, StoreError> {
        let now = self.people_now();
        let sql = "UPDATE passkey SET name = $3 WHERE id = $1 AND person_id = $2";
        let write = vec![
            must(sql, values![id.0, person.id.0, name]),
            noted(now, &signed(person), "person.passkey_rename", &person.id.to_string(), &id.to_string()),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// `false`: they have no such passkey, or no way in would be left.
    pub async fn remove_passkey(
        &self,
        person: &PersonRecord,
        id: PasskeyId,
        rp_id: &str,
        mail: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let mut write = vec![
            must(DROP, values![id.0, person.id.0, rp_id]),
            noted(now, &signed(person), "person.passkey_remove", &person.id.to_string(), &id.to_string()),
        ];
        write.extend(mail.map(|sealed| self.put_mail(sealed, now)));
        Ok(self.write_people(write).await?.is_none())
    }

    /// All passkeys of a person, by an operator. Sessions end with them: whoever has a lost device
    /// may be signed in on it.
    pub async fn remove_passkeys(&self, person: PersonId, done: Attribution) -> Result<(), StoreError> {
        let now = self.people_now();
        let mut write = vec![may("DELETE FROM passkey WHERE person_id = $1", values![person.0])];
        write.extend(end_all_sessions(person, now));
        write.push(noted(now, &done, "person.passkeys_remove", &person.to_string(), ""));
        self.write_people(write).await.map(drop)
    }

    /// Begins a session by a passkey.
    pub async fn begin_session_by_passkey(
        &self,
        new: NewSession,
        used: UsedPasskey,
        way: UsedWay,
        signed_by: &PersonRecord,
    ) -> Result<PasskeyUse, StoreError> {
        let now = self.people_now();
        let forget = may("DELETE FROM issuer_way WHERE expires_at <= $1", values![now]);
        let write = vec![use_way(way), use_passkey(used, now), forget];
        self.begin_after(new, signed_by, write).await.map(outcome)
    }

    /// Another value for a session whose person has just shown a passkey.
    pub async fn strengthen_by_passkey(
        &self,
        (old, new): ([u8; 32], [u8; 32]),
        used: UsedPasskey,
        way: UsedWay,
    ) -> Result<PasskeyUse, StoreError> {
        let now = self.people_now();
        let write = vec![
            use_way(way),
            use_passkey(used, now),
            must(STRENGTHEN, values![old, new, now, used.person.0]),
            may("DELETE FROM issuer_way WHERE expires_at <= $1", values![now]),
        ];
        self.write_people(write).await.map(outcome)
    }

    /// Its counter went back: noted once, whatever comes after. `false`: it was before.
    pub async fn suspect_passkey(&self, person: &PersonRecord, id: PasskeyId) -> Result<bool, StoreError> {
        let now = self.people_now();
        let sql = "UPDATE passkey SET suspected_at = $2 WHERE id = $1 AND suspected_at IS NULL";
        let write = vec![
            must(sql, values![id.0, now]),
            noted(now, &signed(person), "person.passkey_suspected", &person.id.to_string(), &id.to_string()),
        ];
        Ok(self.write_people(write).await?.is_none())
    }
}

fn passkey(row: &SqlRow) -> Result<PasskeyRecord, StoreError> {
    let transports = row.text(7)?;
    Ok(PasskeyRecord {
        id: PasskeyId(row.id(0)?),
        name: row.text(1)?,
        person: PersonId(row.id(2)?),
        credential_id: row.bytes(3)?,
        public_key: row.bytes(4)?,
        rp_id: row.text(5)?,
        sign_count: row.int(6)?,
        transports: transports.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        backup_eligible: row.int(8)? != 0,
        backed_up: row.int(9)? != 0,
        created_at: row.int(10)?,
        used_at: row.opt_int(11)?,
        suspected_at: row.opt_int(12)?,
    })
}
