//! The verbs of sessions. One that ended is gone: its row is deleted.

use super::people::{USE_TOKEN, end_all_sessions, end_console_keys, noted, noted_in, person, use_code};
use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::{AccountId, PersonId, SessionId};
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};
use crate::person::{
    AccountView, FoundSession, HouseRole, NewSession, PersonRecord, SessionRecord, TokenPurpose, UsedCode,
};

/// Sessions of one person; the oldest ends for one more.
const MOST: i64 = 50;
/// `changed_at` as [`LATER`](crate::person::statement::LATER) has it.
const END_KEYS_OF_SESSION: &str = "UPDATE key SET expires_at = $1, changed_at = greatest(tollgate_now(), changed_at + 1) \
     WHERE origin = 'console' AND expires_at > $1 AND person_id IN (SELECT person_id FROM session WHERE hash = $2)";

impl Store {
    /// Begins a session, for a second factor that was not used before. `false`: it was.
    pub async fn begin_session(
        &self,
        new: NewSession,
        code: Option<UsedCode>,
        signed_by: &PersonRecord,
    ) -> Result<bool, StoreError> {
        let write = code.map(|code| use_code(new.person, code)).into_iter().collect();
        self.begin(new, signed_by, write).await
    }

    /// Begins a session by a one-time token, which is used up. `false`: it was before.
    pub async fn begin_session_by_token(
        &self,
        new: NewSession,
        token: [u8; 32],
        signed_by: &PersonRecord,
    ) -> Result<bool, StoreError> {
        let used = must(USE_TOKEN, values![token, TokenPurpose::SignIn.word(), self.people_now()]);
        self.begin(new, signed_by, vec![used]).await
    }

    pub(super) async fn begin(
        &self,
        new: NewSession,
        signed_by: &PersonRecord,
        write: Vec<PersonStatement>,
    ) -> Result<bool, StoreError> {
        Ok(self.begin_after(new, signed_by, write).await?.is_none())
    }

    /// The same, and the number of the statement that stopped it.
    pub(super) async fn begin_after(
        &self,
        new: NewSession,
        signed_by: &PersonRecord,
        mut write: Vec<PersonStatement>,
    ) -> Result<Option<usize>, StoreError> {
        let (id, now) = (on_engine!(self, e => e.people_ids().session()), self.people_now());
        if let Some(old) = new.replaces {
            write.push(may(END_KEYS_OF_SESSION, values![now, old]));
            write.push(may("DELETE FROM session WHERE hash = $1", values![old]));
        }
        let strong_at = if new.strong { now } else { 0 };
        let sql = "INSERT INTO session (hash, id, person_id, created_at, seen_at, strong_at, address, agent, issuer_role) \
                   VALUES ($1, $2, $3, $4, $4, $7, $5, $6, $8)";
        let role = new.issuer_role.map(HouseRole::word);
        write.push(may(sql, values![new.hash, id.0, new.person.0, now, &new.address, &new.agent, strong_at, role]));
        let most = "DELETE FROM session WHERE person_id = $1 AND id NOT IN \
                    (SELECT id FROM session WHERE person_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)";
        write.push(may(most, values![new.person.0, MOST]));
        let done = Attribution::by(signed_by.actor(), String::new());
        let detail = match role {
            Some(role) => format!("{}, {role} by the issuer", new.address),
            None => new.address,
        };
        write.push(noted(now, &done, "session.begin", &id.to_string(), &detail));
        self.write_people(write).await
    }

    /// The session of a cookie's value. Whether its time is over is for the caller to say.
    pub async fn session(&self, hash: [u8; 32]) -> Result<Option<FoundSession>, StoreError> {
        const SQL: &str = "SELECT s.id, s.created_at, s.seen_at, s.strong_at, s.address, s.agent, p.id, p.email, p.name, \
             p.locale, p.zone, p.wished_account, p.created_at, p.verified_at, p.disabled_at, coalesce(h.role, s.issuer_role), s.views_account, s.views_until FROM session s \
             JOIN person p ON p.id = s.person_id LEFT JOIN house_role h ON h.person_id = p.id WHERE s.hash = $1";
        let rows = self.people_rows(SQL, values![hash]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (session, mut person) = (session(row)?, person(row, 6)?);
        person.memberships = self.memberships(person.id).await?;
        let viewing = match (row.opt_id(16)?, row.opt_int(17)?) {
            (Some(account), Some(until)) => Some(AccountView { account: AccountId(account), until }),
            _ => None,
        };
        Ok(Some(FoundSession { session, person, viewing }))
    }

    /// Those that are open, or have not been forgotten yet.
    pub async fn sessions_open(&self) -> Result<i64, StoreError> {
        self.people_rows("SELECT count(*) FROM session", Vec::new()).await?.first().map_or(Ok(0), |row| row.int(0))
    }

    /// It was used.
    pub async fn touch_session(&self, hash: [u8; 32]) -> Result<(), StoreError> {
        let sql = "UPDATE session SET seen_at = $2 WHERE hash = $1 AND seen_at < $2";
        self.write_people(vec![may(sql, values![hash, self.people_now()])]).await.map(drop)
    }

    /// Another value for the same session, whose person has just proved again who they are.
    /// `false`: the session or the code is gone.
    pub async fn strengthen_session(
        &self,
        old: [u8; 32],
        new: [u8; 32],
        person: PersonId,
        code: Option<UsedCode>,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let mut write: Vec<PersonStatement> = code.map(|code| use_code(person, code)).into_iter().collect();
        let sql = "UPDATE session SET hash = $2, strong_at = $3, seen_at = $3 WHERE hash = $1 AND person_id = $4";
        write.push(must(sql, values![old, new, now, person.0]));
        Ok(self.write_people(write).await?.is_none())
    }

    /// Somebody of the house looks at an account as its customers see it; both logs say so.
    /// `false`: the session is gone.
    pub async fn view_account(
        &self,
        hash: [u8; 32],
        session: SessionId,
        view: AccountView,
        done: Attribution,
    ) -> Result<bool, StoreError> {
        let (id, account) = (session.to_string(), view.account);
        let sql = "UPDATE session SET views_account = $2, views_until = $3 WHERE hash = $1";
        let write = vec![
            must(sql, values![hash, account.0, view.until]),
            noted_in(Some(account), self.people_now(), &done, "account.view", &account.to_string(), &id),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// They look at it no longer. `false`: they did not.
    pub async fn end_view(&self, hash: [u8; 32], account: AccountId, done: Attribution) -> Result<bool, StoreError> {
        let sql = "UPDATE session SET views_account = NULL, views_until = NULL WHERE hash = $1 AND views_account = $2";
        let write = vec![
            must(sql, values![hash, account.0]),
            noted_in(Some(account), self.people_now(), &done, "account.view_end", &account.to_string(), ""),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// The newest first.
    pub async fn sessions(&self, person: PersonId) -> Result<Vec<SessionRecord>, StoreError> {
        const SQL: &str = "SELECT id, created_at, seen_at, strong_at, address, agent FROM session WHERE person_id = $1 \
             ORDER BY created_at DESC, id DESC LIMIT $2";
        self.people_rows(SQL, values![person.0, MOST]).await?.iter().map(session).collect()
    }

    /// `false`: they have no such session.
    pub async fn end_session(
        &self,
        person: PersonId,
        session: SessionId,
        done: Attribution,
    ) -> Result<bool, StoreError> {
        let write = vec![
            must("DELETE FROM session WHERE id = $1 AND person_id = $2", values![session.0, person.0]),
            end_console_keys(person, self.people_now()),
            noted(self.people_now(), &done, "session.end", &session.to_string(), ""),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// All sessions of a person, but for one of them if it is named.
    pub async fn end_sessions(
        &self,
        person: PersonId,
        but: Option<SessionId>,
        done: Attribution,
    ) -> Result<(), StoreError> {
        let now = self.people_now();
        let others = "DELETE FROM session WHERE person_id = $1 AND id <> $2";
        let mut write: Vec<PersonStatement> = match but {
            Some(own) => vec![may(others, values![person.0, own.0]), end_console_keys(person, now)],
            None => end_all_sessions(person, now).into(),
        };
        write.push(noted(now, &done, "session.end_all", &person.to_string(), ""));
        self.write_people(write).await.map(drop)
    }

    /// Forgets sessions that began before a time, tokens and invites whose time is over, and people
    /// who never verified their e-mail and belong to nothing.
    pub async fn forget_people(
        &self,
        sure: i64,
        sessions_before: i64,
        unverified_before: i64,
    ) -> Result<(), StoreError> {
        let stale = "DELETE FROM person WHERE verified_at IS NULL AND created_at < $1 \
                     AND id NOT IN (SELECT person_id FROM membership) AND id NOT IN (SELECT person_id FROM house_role)";
        let write = vec![
            may("DELETE FROM session WHERE created_at < $1", values![sessions_before]),
            may("DELETE FROM mail_token WHERE expires_at <= $1", values![sure]),
            may("DELETE FROM invite WHERE expires_at <= $1", values![sure]),
            may(stale, values![unverified_before]),
            may("DELETE FROM credential WHERE person_id NOT IN (SELECT id FROM person)", Vec::new()),
            may("DELETE FROM issuer_link WHERE person_id NOT IN (SELECT id FROM person)", Vec::new()),
            may("DELETE FROM passkey WHERE person_id NOT IN (SELECT id FROM person)", Vec::new()),
            may("DELETE FROM issuer_way WHERE expires_at <= $1", values![sure]),
        ];
        self.write_people(write).await.map(drop)
    }
}

fn session(row: &SqlRow) -> Result<SessionRecord, StoreError> {
    Ok(SessionRecord {
        id: SessionId(row.id(0)?),
        created_at: row.int(1)?,
        seen_at: row.int(2)?,
        strong_at: row.int(3)?,
        address: row.text(4)?,
        agent: row.text(5)?,
    })
}
