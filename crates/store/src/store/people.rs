//! The verbs of people: who they are, what they prove it with, what they may do. Every change
//! writes its row into the log in the same transaction.

use super::trials::put_grant;
use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::{AccountId, PersonId};
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, SqlValue, may, must, values};
use crate::person::{
    AccountMember, AccountRole, CredentialKind, HouseRole, Membership, NewMailToken, NewPerson, PasswordHash,
    PersonRecord, StoredCredential, TokenPurpose, UsedCode, folded_email,
};
use crate::trial_grant::NewTrialGrant;

/// People of one page, and memberships of one person, at most.
const MOST: i64 = 1_000;

const PUT_CREDENTIAL: &str = "INSERT INTO credential (person_id, kind, number, secret, parameters, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6)";
const PUT_HOUSE_ROLE: &str = "INSERT INTO house_role (person_id, role, created_at) VALUES ($1, $2, $3) \
     ON CONFLICT (person_id) DO UPDATE SET role = excluded.role";
const PUT_MEMBERSHIP: &str = "INSERT INTO membership (account_id, person_id, role, created_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (account_id, person_id) DO UPDATE SET role = excluded.role";
/// Unless the last owner would be gone.
const CHANGE_MEMBERSHIP: &str = "UPDATE membership SET role = $3 WHERE account_id = $1 AND person_id = $2 AND role = $4 AND ($3 = 'owner' \
     OR role <> 'owner' OR EXISTS (SELECT 1 FROM membership m JOIN person p ON p.id = m.person_id WHERE m.account_id = $1 \
     AND m.person_id <> $2 AND m.role = 'owner' AND p.disabled_at IS NULL))";
const DROP_MEMBERSHIP: &str = "DELETE FROM membership WHERE account_id = $1 AND person_id = $2 AND role = $3 AND (role <> 'owner' \
     OR EXISTS (SELECT 1 FROM membership m JOIN person p ON p.id = m.person_id WHERE m.account_id = $1 \
     AND m.person_id <> $2 AND m.role = 'owner' AND p.disabled_at IS NULL))";
const END_SESSIONS: &str = "DELETE FROM session WHERE person_id = $1";
/// `changed_at` as [`LATER`](crate::person::statement::LATER) has it.
const END_CONSOLE_KEYS: &str = "UPDATE key SET expires_at = $1, changed_at = greatest(tollgate_now(), changed_at + 1) \
     WHERE person_id = $2 AND origin = 'console' AND expires_at > $1";
pub(super) const USE_TOKEN: &str = "DELETE FROM mail_token WHERE hash = $1 AND purpose = $2 AND expires_at > $3";

/// What is written about somebody new once their id is known.
pub(super) type LinkStatements = Box<dyn FnOnce(PersonId, i64) -> Vec<PersonStatement> + Send>;

impl Store {
    pub(super) async fn write_people(&self, write: Vec<PersonStatement>) -> Result<Option<usize>, StoreError> {
        on_engine!(self, e => e.write_people(write).await)
    }

    pub(super) async fn people_rows(
        &self,
        sql: &'static str,
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        on_engine!(self, e => e.people_rows(sql, values).await)
    }

    pub(super) fn people_now(&self) -> i64 {
        on_engine!(self, e => e.now())
    }

    /// Makes a person, with whatever belongs to that in one transaction. `None`: the e-mail is
    /// somebody's already, and nothing was done.
    pub async fn create_person(&self, new: NewPerson, done: Attribution) -> Result<Option<PersonRecord>, StoreError> {
        self.create_person_with(new, done, Vec::new(), None).await
    }

    /// The same after what must come first.
    pub(super) async fn create_person_with(
        &self,
        new: NewPerson,
        done: Attribution,
        first: Vec<PersonStatement>,
        link: Option<LinkStatements>,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let (id, now) = (on_engine!(self, e => e.people_ids().person()), self.people_now());
        let mut write = first;
        let link = link.into_iter().flat_map(|link| link(id, now));
        write.push(must(
            "INSERT INTO person (id, email, folded, name, locale, zone, wished_account, created_at, verified_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
            values![
                id.0,
                new.email.trim(),
                folded_email(&new.email),
                &new.name,
                &new.locale,
                &new.time_zone,
                new.wished_account.as_ref(),
                now,
                new.verified.then_some(now),
            ],
        ));
        if let Some(password) = &new.password {
            write.push(put_password(id, password, now));
        }
        if let Some(role) = new.house_role {
            write.push(may(PUT_HOUSE_ROLE, values![id.0, role.word(), now]));
        }
        if let Some(one) = &new.membership {
            write.push(may(PUT_MEMBERSHIP, values![one.account.0, id.0, one.role.word(), now]));
        }
        write.extend(link);
        write.extend(new.token.map(|token| put_token(&token, Some(id), now)));
        write.extend(new.mail.map(|sealed| self.put_mail(sealed, now)));
        let detail = serde_json::json!({ "house_role": new.house_role, "membership": new.membership });
        write.push(noted(now, &done, "person.create", &id.to_string(), &detail.to_string()));
        if self.write_people(write).await?.is_some() {
            return Ok(None);
        }
        self.person(id).await
    }

    pub async fn person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError> {
        const SQL: &str = "SELECT p.id, p.email, p.name, p.locale, p.zone, p.wished_account, p.created_at, p.verified_at, \
             p.disabled_at, h.role FROM person p LEFT JOIN house_role h ON h.person_id = p.id WHERE p.id = $1";
        self.one_person(SQL, values![id.0]).await
    }

    pub async fn person_by_email(&self, email: &str) -> Result<Option<PersonRecord>, StoreError> {
        const SQL: &str = "SELECT p.id, p.email, p.name, p.locale, p.zone, p.wished_account, p.created_at, p.verified_at, \
             p.disabled_at, h.role FROM person p LEFT JOIN house_role h ON h.person_id = p.id WHERE p.folded = $1";
        self.one_person(SQL, values![folded_email(email)]).await
    }

    async fn one_person(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Option<PersonRecord>, StoreError> {
        let rows = self.people_rows(sql, values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut person = person(row, 0)?;
        person.memberships = self.memberships(person.id).await?;
        Ok(Some(person))
    }

    pub(super) async fn memberships(&self, person: PersonId) -> Result<Vec<Membership>, StoreError> {
        // Nobody is in an account that is closed.
        const SQL: &str = "SELECT m.account_id, m.role FROM membership m JOIN account a ON a.id = m.account_id \
             WHERE m.person_id = $1 AND a.ended_at IS NULL ORDER BY m.account_id LIMIT $2";
        let rows = self.people_rows(SQL, values![person.0, MOST]).await?;
        let one = |row: &SqlRow| Ok(Membership { account: AccountId(row.id(0)?), role: row.word(1)? });
        rows.iter().map(one).collect()
    }

    /// What a person is in an account.
    pub async fn role_in(&self, account: AccountId, person: PersonId) -> Result<Option<AccountRole>, StoreError> {
        let all = self.memberships(person).await?;
        Ok(all.into_iter().find(|one| one.account == account).map(|one| one.role))
    }

    /// All people, the oldest first.
    pub async fn people(&self, after: Option<PersonId>, limit: u32) -> Result<Vec<PersonRecord>, StoreError> {
        const SQL: &str = "SELECT p.id, p.email, p.name, p.locale, p.zone, p.wished_account, p.created_at, p.verified_at, \
             p.disabled_at, h.role FROM person p LEFT JOIN house_role h ON h.person_id = p.id \
             WHERE p.id > $1 ORDER BY p.id LIMIT $2";
        const THEIRS: &str = "SELECT person_id, account_id, role FROM membership WHERE person_id > $1 AND person_id <= $2 \
             ORDER BY person_id, account_id LIMIT $3";
        let after = after.map_or([0; 16], |id| id.0);
        let rows = self.people_rows(SQL, values![after, i64::from(limit).min(MOST)]).await?;
        let mut people: Vec<PersonRecord> = rows.iter().map(|row| person(row, 0)).collect::<Result<_, _>>()?;
        let Some(last) = people.last().map(|last| last.id) else { return Ok(people) };
        for row in self.people_rows(THEIRS, values![after, last.0, 100 * MOST]).await? {
            let id = PersonId(row.id(0)?);
            if let Some(one) = people.iter_mut().find(|one| one.id == id) {
                one.memberships.push(Membership { account: AccountId(row.id(1)?), role: row.word(2)? });
            }
        }
        Ok(people)
    }

    /// Whether somebody operates the house.
    pub async fn has_operator(&self) -> Result<bool, StoreError> {
        const SQL: &str = "SELECT h.person_id FROM house_role h JOIN person p ON p.id = h.person_id \
             WHERE h.role = 'operator' AND p.disabled_at IS NULL LIMIT 1";
        Ok(!self.people_rows(SQL, Vec::new()).await?.is_empty())
    }

    /// The first operator, by the token that was printed. `None`: the token is nothing, or there is
    /// an operator, or the e-mail is somebody's.
    pub async fn create_first_operator(
        &self,
        token: [u8; 32],
        new: NewPerson,
        done: Attribution,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let now = self.people_now();
        // Whoever comes second finds the token gone, with all others of its kind.
        let first = vec![
            must(USE_TOKEN, values![token, TokenPurpose::FirstOperator.word(), now]),
            may("DELETE FROM mail_token WHERE purpose = $1", values![TokenPurpose::FirstOperator.word()]),
        ];
        if self.has_operator().await? {
            return Ok(None);
        }
        self.create_person_with(NewPerson { house_role: Some(HouseRole::Operator), ..new }, done, first, None).await
    }

    /// A token that belongs to a person or, with none, to nobody yet.
    pub async fn create_token(&self, token: NewMailToken, person: Option<PersonId>) -> Result<(), StoreError> {
        self.write_people(vec![put_token(&token, person, self.people_now())]).await.map(drop)
    }

    /// A one-time link for somebody, made by an operator.
    pub async fn link_person(
        &self,
        token: NewMailToken,
        person: &PersonRecord,
        done: Attribution,
    ) -> Result<(), StoreError> {
        let now = self.people_now();
        let write = vec![
            put_token(&token, Some(person.id), now),
            noted(now, &done, "person.link", &person.id.to_string(), token.purpose.word()),
        ];
        self.write_people(write).await.map(drop)
    }

    /// A token and the mail with it, together or not at all. Older ones of the same purpose end.
    pub async fn mail_token(&self, token: NewMailToken, person: PersonId, sealed: Vec<u8>) -> Result<(), StoreError> {
        let now = self.people_now();
        let older = "DELETE FROM mail_token WHERE person_id = $1 AND purpose = $2";
        let write = vec![
            may(older, values![person.0, token.purpose.word()]),
            put_token(&token, Some(person), now),
            self.put_mail(sealed, now),
        ];
        self.write_people(write).await.map(drop)
    }

    /// Whose token it is, while it is one.
    pub async fn token_owner(&self, hash: [u8; 32], purpose: TokenPurpose) -> Result<Option<PersonRecord>, StoreError> {
        const SQL: &str = "SELECT person_id FROM mail_token WHERE hash = $1 AND purpose = $2 AND expires_at > $3";
        let rows = self.people_rows(SQL, values![hash, purpose.word(), self.people_now()]).await?;
        match rows.first().map(|row| row.opt_id(0)).transpose()?.flatten() {
            Some(id) => self.person(PersonId(id)).await,
            None => Ok(None),
        }
    }

    /// The e-mail is theirs; they own the account that was made for them, if any, and are granted
    /// trial credit, if limits allow it. `false`: no such token any more.
    pub async fn verify_email(
        &self,
        token: [u8; 32],
        person: &PersonRecord,
        owns: Option<AccountId>,
        trial: Option<NewTrialGrant>,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let mut write = vec![
            must(USE_TOKEN, values![token, TokenPurpose::Verify.word(), now]),
            may(
                "UPDATE person SET verified_at = coalesce(verified_at, $2), wished_account = NULL WHERE id = $1",
                values![person.id.0, now],
            ),
        ];
        if let Some(account) = owns {
            write.push(may(PUT_MEMBERSHIP, values![account.0, person.id.0, AccountRole::Owner.word(), now]));
        }
        write.extend(trial.map(|trial| put_grant(&trial, person.id, now)));
        write.push(noted(now, &done, "person.verify", &person.id.to_string(), ""));
        Ok(self.write_people(write).await?.is_none())
    }

    pub async fn credentials(&self, person: PersonId) -> Result<Vec<StoredCredential>, StoreError> {
        const SQL: &str =
            "SELECT kind, secret, parameters, used_at FROM credential WHERE person_id = $1 ORDER BY kind, number";
        let rows = self.people_rows(SQL, values![person.0]).await?;
        let one = |row: &SqlRow| {
            let kind = CredentialKind::of(&row.text(0)?).ok_or_else(|| StoreError::broken("a strange credential"))?;
            Ok(StoredCredential { kind, secret: row.bytes(1)?, parameters: row.text(2)?, used_at: row.opt_int(3)? })
        };
        rows.iter().map(one).collect()
    }

    /// A new password; all sessions end. With a token, which is used up, the e-mail is theirs.
    /// `false`: the token or the code is used up, and nothing was done.
    pub async fn set_password(
        &self,
        person: &PersonRecord,
        password: PasswordHash,
        token: Option<[u8; 32]>,
        code: Option<UsedCode>,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let mut write = Vec::new();
        if let Some(token) = token {
            write.push(must(USE_TOKEN, values![token, TokenPurpose::Reset.word(), now]));
            let verified = "UPDATE person SET verified_at = coalesce(verified_at, $2) WHERE id = $1";
            write.push(may(verified, values![person.id.0, now]));
        }
        write.extend(code.map(|code| use_code(person.id, code)));
        let kind = CredentialKind::Password.word();
        write.push(may("DELETE FROM credential WHERE person_id = $1 AND kind = $2", values![person.id.0, kind]));
        write.push(put_password(person.id, &password, now));
        write.extend(end_all_sessions(person.id, now));
        write.push(noted(now, &done, "person.password", &person.id.to_string(), ""));
        Ok(self.write_people(write).await?.is_none())
    }

    /// The same password, hashed as passwords are hashed today.
    pub async fn rehash_password(&self, person: PersonId, password: PasswordHash) -> Result<(), StoreError> {
        let sql = "UPDATE credential SET secret = $2, parameters = $3 WHERE person_id = $1 AND kind = 'password'";
        let values = values![person.0, &*password.secret, password.parameters];
        self.write_people(vec![may(sql, values)]).await.map(drop)
    }

    /// A second factor that waits for its first code.
    pub async fn propose_totp(&self, person: PersonId, sealed: Vec<u8>) -> Result<(), StoreError> {
        let kind = CredentialKind::TotpNew.word();
        let write = vec![
            may("DELETE FROM credential WHERE person_id = $1 AND kind = $2", values![person.0, kind]),
            may(PUT_CREDENTIAL, values![person.0, kind, 0, &*sealed, "", self.people_now()]),
        ];
        self.write_people(write).await.map(drop)
    }

    /// Its first code was right: from now on it is asked for. `false`: there is none to confirm.
    pub async fn confirm_totp(
        &self,
        person: &PersonRecord,
        step: i64,
        recovery: &[[u8; 32]],
    ) -> Result<bool, StoreError> {
        let (now, id) = (self.people_now(), person.id.0);
        let done = Attribution::by(person.actor(), String::new());
        let mut write = vec![
            may("DELETE FROM credential WHERE person_id = $1 AND kind IN ('totp', 'recovery')", values![id]),
            must(
                "UPDATE credential SET kind = 'totp', used_at = $2 WHERE person_id = $1 AND kind = 'totp_new'",
                values![id, step],
            ),
        ];
        write.extend(put_recovery(person.id, recovery, now));
        write.push(noted(now, &done, "person.totp_on", &person.id.to_string(), ""));
        Ok(self.write_people(write).await?.is_none())
    }

    pub async fn drop_totp(&self, person: &PersonRecord, done: Attribution) -> Result<bool, StoreError> {
        let (now, id) = (self.people_now(), person.id.0);
        let write = vec![
            must("DELETE FROM credential WHERE person_id = $1 AND kind = 'totp'", values![id]),
            may("DELETE FROM credential WHERE person_id = $1 AND kind = 'recovery'", values![id]),
            noted(now, &done, "person.totp_off", &person.id.to_string(), ""),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// New recovery codes; those before them end.
    pub async fn renew_recovery(&self, person: &PersonRecord, recovery: &[[u8; 32]]) -> Result<(), StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let clear = "DELETE FROM credential WHERE person_id = $1 AND kind = 'recovery'";
        let mut write = vec![may(clear, values![person.id.0])];
        write.extend(put_recovery(person.id, recovery, now));
        write.push(noted(now, &done, "person.recovery_codes", &person.id.to_string(), ""));
        self.write_people(write).await.map(drop)
    }

    /// Who is in an account, in the order they came.
    pub async fn members(&self, account: AccountId) -> Result<Vec<AccountMember>, StoreError> {
        const SQL: &str = "SELECT p.id, p.email, p.name, m.role, m.created_at, \
             (SELECT max(s.seen_at) FROM session s WHERE s.person_id = p.id) FROM membership m \
             JOIN person p ON p.id = m.person_id WHERE m.account_id = $1 ORDER BY m.created_at, p.id LIMIT $2";
        let rows = self.people_rows(SQL, values![account.0, MOST]).await?;
        let one = |row: &SqlRow| {
            let (email, name, role) = (row.text(1)?, row.text(2)?, row.word(3)?);
            let (since, seen_at) = (row.int(4)?, row.opt_int(5)?);
            Ok(AccountMember { person: PersonId(row.id(0)?), email, name, role, since, seen_at })
        };
        rows.iter().map(one).collect()
    }

    /// Another role in an account, or none. Their sessions end, so that what they may do next is
    /// asked of a new one. A conflict: the last owner stays.
    pub async fn change_membership(
        &self,
        account: AccountId,
        person: PersonId,
        role: Option<AccountRole>,
        done: Attribution,
    ) -> Result<(), StoreError> {
        self.change_membership_if(account, person, role, done, None).await
    }

    /// The same, unless it is another version than was seen.
    pub async fn change_membership_if(
        &self,
        account: AccountId,
        person: PersonId,
        role: Option<AccountRole>,
        done: Attribution,
        seen: Option<String>,
    ) -> Result<(), StoreError> {
        let now = self.people_now();
        let there = self.memberships(person).await?.into_iter().find(|one| one.account == account);
        let there = there.ok_or_else(|| StoreError::NotFound(person.to_string()))?;
        if seen.is_some_and(|seen| seen != there.version(person)) {
            return Err(StoreError::Stale(person.to_string()));
        }
        // Whoever changed it in between is found in the same transaction.
        let was = there.role.word();
        let change = match role {
            Some(role) => must(CHANGE_MEMBERSHIP, values![account.0, person.0, role.word(), was]),
            None => must(DROP_MEMBERSHIP, values![account.0, person.0, was]),
        };
        let detail = serde_json::json!({ "person": person, "before": there.role, "after": role });
        let mut write = vec![change];
        match role {
            Some(_) => write.extend(end_all_sessions(person, now)),
            None => write.push(end_console_keys(person, now)),
        }
        write.push(noted_in(Some(account), now, &done, "membership.change", &account.to_string(), &detail.to_string()));
        match self.write_people(write).await? {
            None => Ok(()),
            Some(_) if self.memberships(person).await?.iter().all(|one| *one != there) => {
                Err(StoreError::Stale(person.to_string()))
            }
            Some(_) => Err(StoreError::Conflict("an account has at least one owner".into())),
        }
    }

    /// Puts a person into an account, or changes what they are in it.
    pub async fn put_membership(
        &self,
        account: AccountId,
        person: PersonId,
        role: AccountRole,
        done: Attribution,
    ) -> Result<(), StoreError> {
        if self.memberships(person).await?.iter().any(|one| one.account == account) {
            return self.change_membership(account, person, Some(role), done).await;
        }
        self.not_closed(account).await?;
        let now = self.people_now();
        let detail = serde_json::json!({ "person": person, "before": null, "after": role });
        let mut write = vec![may(PUT_MEMBERSHIP, values![account.0, person.0, role.word(), now])];
        write.extend(end_all_sessions(person, now));
        write.push(noted_in(Some(account), now, &done, "membership.change", &account.to_string(), &detail.to_string()));
        self.write_people(write).await.map(drop)
    }

    /// Another role in the house, or none; locks a person out, or lets them in again. Sessions end.
    /// `None`: no such person.
    pub async fn change_person(
        &self,
        id: PersonId,
        house_role: Option<Option<HouseRole>>,
        disabled: Option<bool>,
        done: Attribution,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let Some(before) = self.person(id).await? else { return Ok(None) };
        let now = self.people_now();
        let mut write = Vec::new();
        match house_role {
            Some(Some(role)) => write.push(may(PUT_HOUSE_ROLE, values![id.0, role.word(), now])),
            Some(None) => write.push(may("DELETE FROM house_role WHERE person_id = $1", values![id.0])),
            None => {}
        }
        if let Some(disabled) = disabled {
            let sql = "UPDATE person SET disabled_at = $2 WHERE id = $1";
            write.push(may(sql, values![id.0, disabled.then_some(before.disabled_at.unwrap_or(now))]));
        }
        write.extend(end_all_sessions(id, now));
        let after = house_role.unwrap_or(before.house_role);
        let detail = serde_json::json!({
            "before": { "house_role": before.house_role, "disabled": before.disabled_at.is_some() },
            "after": { "house_role": after, "disabled": disabled.unwrap_or(before.disabled_at.is_some()) },
        });
        write.push(noted(now, &done, "person.update", &id.to_string(), &detail.to_string()));
        self.write_people(write).await?;
        self.person(id).await
    }
}

/// Signs somebody out everywhere; the key of their playground ends with that.
pub(super) fn end_all_sessions(person: PersonId, now: i64) -> [PersonStatement; 2] {
    [may(END_SESSIONS, values![person.0]), end_console_keys(person, now)]
}

pub(super) fn end_console_keys(person: PersonId, now: i64) -> PersonStatement {
    may(END_CONSOLE_KEYS, values![now, person.0])
}

/// The row that says what was done, who did it and why.
pub(super) fn noted(at: i64, done: &Attribution, action: &str, subject: &str, detail: &str) -> PersonStatement {
    noted_in(None, at, done, action, subject, detail)
}

/// The same about something in an account, whose own log shows it too.
pub(super) fn noted_in(
    account: Option<AccountId>,
    at: i64,
    done: &Attribution,
    action: &str,
    subject: &str,
    detail: &str,
) -> PersonStatement {
    let sql = "INSERT INTO operator_event (at, actor, action, subject, reason, detail, account_id) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    may(sql, values![at, &done.actor, action, subject, &done.reason, detail, account.map(|id| id.0)])
}

pub(super) fn put_password(person: PersonId, password: &PasswordHash, now: i64) -> PersonStatement {
    let kind = CredentialKind::Password.word();
    may(PUT_CREDENTIAL, values![person.0, kind, 0, &*password.secret, &password.parameters, now])
}

fn put_recovery(person: PersonId, codes: &[[u8; 32]], now: i64) -> impl Iterator<Item = PersonStatement> {
    let kind = CredentialKind::Recovery.word();
    (0i64..).zip(codes).map(move |(number, hash)| may(PUT_CREDENTIAL, values![person.0, kind, number, *hash, "", now]))
}

fn put_token(token: &NewMailToken, person: Option<PersonId>, now: i64) -> PersonStatement {
    let sql = "INSERT INTO mail_token (hash, purpose, person_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
    may(sql, values![token.hash, token.purpose.word(), person.map(|id| id.0), now, token.expires_at])
}

/// A code is used once: a step is later than the last one, a recovery code is there no longer.
pub(super) fn use_code(person: PersonId, code: UsedCode) -> PersonStatement {
    match code {
        UsedCode::Totp(step) => must(
            "UPDATE credential SET used_at = $2 WHERE person_id = $1 AND kind = 'totp' AND coalesce(used_at, -1) < $2",
            values![person.0, step],
        ),
        UsedCode::Recovery(hash) => must(
            "DELETE FROM credential WHERE person_id = $1 AND kind = 'recovery' AND secret = $2",
            values![person.0, hash],
        ),
    }
}

/// A row of person and house role, without memberships.
pub(super) fn person(row: &SqlRow, at: usize) -> Result<PersonRecord, StoreError> {
    Ok(PersonRecord {
        id: PersonId(row.id(at)?),
        email: row.text(at + 1)?,
        name: row.text(at + 2)?,
        locale: row.text(at + 3)?,
        time_zone: row.text(at + 4)?,
        wished_account: row.opt_text(at + 5)?,
        created_at: row.int(at + 6)?,
        verified_at: row.opt_int(at + 7)?,
        disabled_at: row.opt_int(at + 8)?,
        house_role: row.opt_text(at + 9)?.and_then(|word| word.parse().ok()),
        memberships: Vec::new(),
    })
}
