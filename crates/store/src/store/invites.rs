//! The verbs of invites: into an account, or into the house.

use super::people::{end_all_sessions, noted_in, put_password};
use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::{AccountId, InviteId};
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};
use crate::person::{
    HouseRole, InviteRecord, InvitedInto, Membership, NewInvite, NewPerson, PasswordHash, PersonRecord, folded_email,
};

/// Open invites of one account, and of the house.
const MOST: i64 = 200;

const USE_INVITE: &str = "DELETE FROM invite WHERE hash = $1 AND expires_at > $2";
/// An auditor who is invited as an operator becomes one; an operator stays one.
const RAISE_HOUSE_ROLE: &str = "INSERT INTO house_role (person_id, role, created_at) VALUES ($1, $2, $3) \
     ON CONFLICT (person_id) DO UPDATE SET role = CASE WHEN house_role.role = 'operator' THEN 'operator' ELSE excluded.role END";
/// An owner stays one.
const RAISE_MEMBERSHIP: &str = "INSERT INTO membership (account_id, person_id, role, created_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (account_id, person_id) DO UPDATE SET role = CASE WHEN membership.role = 'owner' THEN 'owner' ELSE excluded.role END";

impl Store {
    /// An invite and the mail with it, together or not at all. One for the same e-mail and place
    /// before it ends. A conflict: there are too many.
    pub async fn create_invite(&self, new: NewInvite, done: Attribution) -> Result<InviteRecord, StoreError> {
        let (id, now) = (on_engine!(self, e => e.people_ids().invite()), self.people_now());
        let (account, role) = match new.into {
            InvitedInto::Account { account_id, role } => (Some(account_id), role.word()),
            InvitedInto::House { house_role } => (None, house_role.word()),
        };
        // The house's own have no account; nobody's id is empty.
        let place: Vec<u8> = account.map_or_else(Vec::new, |account| account.0.to_vec());
        let folded = folded_email(&new.email);
        let (before, room) = match account {
            Some(_) => (
                "DELETE FROM invite WHERE folded = $1 AND account_id = $2",
                "INSERT INTO invite (id, hash, email, folded, account_id, role, invited_by, created_at, expires_at) \
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE (SELECT count(*) FROM invite WHERE account_id = $5) < $10",
            ),
            None => (
                "DELETE FROM invite WHERE folded = $1 AND account_id IS NULL",
                "INSERT INTO invite (id, hash, email, folded, role, invited_by, created_at, expires_at) \
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE (SELECT count(*) FROM invite WHERE account_id IS NULL) < $9",
            ),
        };
        let (email, by, ends) = (new.email.trim().to_owned(), done.actor.clone(), new.expires_at);
        let mut write: Vec<PersonStatement> = match account {
            Some(_) => vec![
                may(before, values![&folded, &*place]),
                must(room, values![id.0, new.hash, &email, &folded, &*place, role, &by, now, ends, MOST]),
            ],
            None => vec![
                may(before, values![&folded]),
                must(room, values![id.0, new.hash, &email, &folded, role, &by, now, ends, MOST]),
            ],
        };
        write.extend(new.mail.map(|sealed| self.put_mail(sealed, now)));
        let detail = serde_json::json!({ "email": email, "into": new.into });
        let subject = account.map_or_else(|| id.to_string(), |account| account.to_string());
        write.push(noted_in(account, now, &done, "invite.create", &subject, &detail.to_string()));
        if self.write_people(write).await?.is_some() {
            return Err(StoreError::Conflict(format!("{MOST} invites are open already")));
        }
        Ok(InviteRecord { id, email, into: new.into, invited_by: by, created_at: now, expires_at: ends })
    }

    /// Open invites into an account, or into the house.
    pub async fn invites(&self, account: Option<AccountId>) -> Result<Vec<InviteRecord>, StoreError> {
        const OF: &str = "SELECT id, email, account_id, role, invited_by, created_at, expires_at FROM invite \
             WHERE account_id = $1 AND expires_at > $2 ORDER BY id";
        const HOUSE: &str = "SELECT id, email, account_id, role, invited_by, created_at, expires_at FROM invite \
             WHERE account_id IS NULL AND expires_at > $1 ORDER BY id";
        let now = self.people_now();
        let rows = match account {
            Some(account) => self.people_rows(OF, values![account.0, now]).await?,
            None => self.people_rows(HOUSE, values![now]).await?,
        };
        rows.iter().map(invite).collect()
    }

    pub async fn invite_by_hash(&self, hash: [u8; 32]) -> Result<Option<InviteRecord>, StoreError> {
        const SQL: &str = "SELECT id, email, account_id, role, invited_by, created_at, expires_at FROM invite \
             WHERE hash = $1 AND expires_at > $2";
        self.people_rows(SQL, values![hash, self.people_now()]).await?.first().map(invite).transpose()
    }

    /// `false`: there is none such, into this account or the house.
    pub async fn revoke_invite(
        &self,
        id: InviteId,
        account: Option<AccountId>,
        done: Attribution,
    ) -> Result<bool, StoreError> {
        let revoke = match account {
            Some(account) => must("DELETE FROM invite WHERE id = $1 AND account_id = $2", values![id.0, account.0]),
            None => must("DELETE FROM invite WHERE id = $1 AND account_id IS NULL", values![id.0]),
        };
        let write = vec![revoke, noted_in(account, self.people_now(), &done, "invite.revoke", &id.to_string(), "")];
        Ok(self.write_people(write).await?.is_none())
    }

    /// Somebody who is known takes it; their sessions end. A password takes the place of whatever
    /// they had: of an e-mail that was never verified, anybody may have set it. `false`: it is no
    /// invite any more.
    pub async fn accept_invite(
        &self,
        hash: [u8; 32],
        invite: &InviteRecord,
        person: &PersonRecord,
        password: Option<PasswordHash>,
    ) -> Result<bool, StoreError> {
        let (now, id) = (self.people_now(), person.id.0);
        let done = Attribution::by(person.actor(), String::new());
        let (account, raise) = match invite.into {
            InvitedInto::Account { account_id, role } => {
                (Some(account_id), may(RAISE_MEMBERSHIP, values![account_id.0, id, role.word(), now]))
            }
            InvitedInto::House { house_role } => (None, may(RAISE_HOUSE_ROLE, values![id, house_role.word(), now])),
        };
        let detail = serde_json::json!({ "person": person.id, "into": invite.into });
        let mut write = vec![must(USE_INVITE, values![hash, now])];
        if let Some(password) = &password {
            write.push(may("DELETE FROM credential WHERE person_id = $1", values![id]));
            write.push(put_password(person.id, password, now));
        }
        write.extend([
            raise,
            // The mail came to them.
            may("UPDATE person SET verified_at = coalesce(verified_at, $2) WHERE id = $1", values![id, now]),
        ]);
        write.extend(end_all_sessions(person.id, now));
        write.extend([noted_in(account, now, &done, "invite.accept", &invite.id.to_string(), &detail.to_string())]);
        Ok(self.write_people(write).await?.is_none())
    }

    /// Somebody new takes it. `None`: it is none any more, or its e-mail is somebody's.
    pub async fn accept_invite_as(
        &self,
        hash: [u8; 32],
        invite: &InviteRecord,
        new: NewPerson,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let (membership, house_role): (Option<Membership>, Option<HouseRole>) = match invite.into {
            InvitedInto::Account { account_id, role } => (Some(Membership { account: account_id, role }), None),
            InvitedInto::House { house_role } => (None, Some(house_role)),
        };
        let done = Attribution::by(invite.email.clone(), format!("invited by {}", invite.invited_by));
        let first = vec![must(USE_INVITE, values![hash, self.people_now()])];
        let new = NewPerson { email: invite.email.clone(), verified: true, membership, house_role, ..new };
        self.create_person_with(new, done, first, None).await
    }
}

fn invite(row: &SqlRow) -> Result<InviteRecord, StoreError> {
    let into = match row.opt_id(2)? {
        Some(account) => InvitedInto::Account { account_id: AccountId(account), role: row.word(3)? },
        None => InvitedInto::House { house_role: row.word(3)? },
    };
    Ok(InviteRecord {
        id: InviteId(row.id(0)?),
        email: row.text(1)?,
        into,
        invited_by: row.text(4)?,
        created_at: row.int(5)?,
        expires_at: row.int(6)?,
    })
}
