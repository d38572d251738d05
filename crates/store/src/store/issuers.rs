//! The verbs of issuers of OpenID Connect: who somebody is there. A link is by issuer and subject,
//! never by e-mail, and every way through an issuer ends once.

use super::Store;
use super::people::{LinkStatements, noted, use_code};
use crate::error::StoreError;
use crate::ids::{AccountId, PersonId};
use crate::operator::Attribution;
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};
use crate::person::{
    AccountRole, HouseRole, IssuerLink, IssuerSubject, NewPerson, NewSession, PersonRecord, UsedCode, UsedWay,
    folded_email,
};

/// Issuers of one person.
const MOST: i64 = 20;

const PUT_LINK: &str = "INSERT INTO issuer_link (issuer, subject, person_id, email, created_at, used_at) \
     VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING";
/// One of each issuer, unless that subject is somebody's.
const ADD_LINK: &str = "INSERT INTO issuer_link (issuer, subject, person_id, email, created_at, used_at) \
     SELECT $1, $2, $3, $4, $5, $5 WHERE NOT EXISTS (SELECT 1 FROM issuer_link WHERE person_id = $3 AND issuer = $1) \
     AND (SELECT count(*) FROM issuer_link WHERE person_id = $3) < $6 ON CONFLICT DO NOTHING";
/// Unless no way in would be left.
const DROP_LINK: &str = "DELETE FROM issuer_link WHERE person_id = $1 AND issuer = $2 AND \
     (EXISTS (SELECT 1 FROM credential WHERE person_id = $1 AND kind = 'password') \
     OR EXISTS (SELECT 1 FROM issuer_link l WHERE l.person_id = $1 AND l.issuer <> $2) \
     OR EXISTS (SELECT 1 FROM passkey WHERE person_id = $1 AND rp_id = $3))";
const USE_LINK: &str = "UPDATE issuer_link SET used_at = $4 WHERE issuer = $1 AND subject = $2 AND person_id = $3";
const USE_WAY: &str = "INSERT INTO issuer_way (hash, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const TAKE_INVITES: &str = "INSERT INTO membership (account_id, person_id, role, created_at) \
     SELECT account_id, $1, role, $2 FROM invite WHERE folded = $3 AND account_id IS NOT NULL AND expires_at > $2 \
     ON CONFLICT DO NOTHING";
const DROP_INVITES: &str = "DELETE FROM invite WHERE folded = $1 AND account_id IS NOT NULL";

pub(super) fn use_way(way: UsedWay) -> PersonStatement {
    must(USE_WAY, values![way.hash, way.expires_at])
}

impl Store {
    pub async fn person_by_link(&self, issuer: &str, subject: &str) -> Result<Option<PersonRecord>, StoreError> {
        const SQL: &str = "SELECT person_id FROM issuer_link WHERE issuer = $1 AND subject = $2";
        match self.people_rows(SQL, values![issuer, subject]).await?.first() {
            Some(row) => self.person(PersonId(row.id(0)?)).await,
            None => Ok(None),
        }
    }

    pub async fn issuer_links(&self, person: PersonId) -> Result<Vec<IssuerLink>, StoreError> {
        const SQL: &str = "SELECT issuer, subject, email, created_at, used_at FROM issuer_link WHERE person_id = $1 \
             ORDER BY issuer LIMIT $2";
        let one = |row: &SqlRow| {
            let is =
                IssuerSubject { issuer: row.text(0)?, subject: row.text(1)?, email: row.text(2)?, house_role: None };
            Ok(IssuerLink { is, created_at: row.int(3)?, used_at: row.int(4)? })
        };
        self.people_rows(SQL, values![person.0, MOST]).await?.iter().map(one).collect()
    }

    /// Somebody who is signed in is also this at an issuer. `false`: the way was used, the subject
    /// is somebody's, or they have one there.
    pub async fn link_issuer(
        &self,
        person: &PersonRecord,
        is: &IssuerSubject,
        way: UsedWay,
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let add = values![&is.issuer, &is.subject, person.id.0, &is.email, now, MOST];
        let write = vec![
            use_way(way),
            must(ADD_LINK, add),
            noted(now, &done, "person.issuer_link", &person.id.to_string(), &is.issuer),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// `false`: there is no such link, or no way in would be left. Passkeys are one where they
    /// were made for `rp_id`.
    pub async fn unlink_issuer(&self, person: &PersonRecord, issuer: &str, rp_id: &str) -> Result<bool, StoreError> {
        let now = self.people_now();
        let done = Attribution::by(person.actor(), String::new());
        let write = vec![
            must(DROP_LINK, values![person.id.0, issuer, rp_id]),
            noted(now, &done, "person.issuer_unlink", &person.id.to_string(), issuer),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// Somebody new, whom an issuer vouches for. Open invites of their e-mail into accounts are
    /// theirs; where they are `invited_only`, there must be one. Invites into the house are not
    /// taken: those need their own token. `None`: the e-mail or the subject is somebody's, or there
    /// is no invite.
    pub async fn create_linked_person(
        &self,
        new: NewPerson,
        is: IssuerSubject,
        invited_only: bool,
    ) -> Result<Option<PersonRecord>, StoreError> {
        let (folded, email) = (folded_email(&new.email), new.email.clone());
        let issuer = is.issuer.clone();
        let link: LinkStatements = Box::new(move |id, now| {
            let take = values![id.0, now, &folded];
            vec![
                must(PUT_LINK, values![&is.issuer, &is.subject, id.0, &is.email, now]),
                if invited_only { must(TAKE_INVITES, take) } else { may(TAKE_INVITES, take) },
                may(DROP_INVITES, values![&folded]),
            ]
        });
        let done = Attribution::by(email, format!("signed up by {issuer}"));
        self.create_person_with(new, done, Vec::new(), Some(link)).await
    }

    /// They own the account that was made for them, or have no wish for one any more.
    pub async fn fulfil_wish(&self, person: PersonId, owns: Option<AccountId>) -> Result<(), StoreError> {
        const OWN: &str = "INSERT INTO membership (account_id, person_id, role, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING";
        let now = self.people_now();
        let mut write = Vec::new();
        if let Some(account) = owns {
            write.push(may(OWN, values![account.0, person.0, AccountRole::Owner.word(), now]));
        }
        write.push(may("UPDATE person SET wished_account = NULL WHERE id = $1", values![person.0]));
        self.write_people(write).await.map(drop)
    }

    /// Begins a session that an issuer vouches for. `false`: the way or the code was used, or the
    /// link is gone.
    pub async fn begin_session_by_issuer(
        &self,
        new: NewSession,
        is: &IssuerSubject,
        (way, code): (UsedWay, Option<UsedCode>),
        signed_by: &PersonRecord,
    ) -> Result<bool, StoreError> {
        let mut write = self.vouched(new.person, is, way, code);
        write.push(may("DELETE FROM issuer_way WHERE expires_at <= $1", values![self.people_now()]));
        self.begin(new, signed_by, write).await
    }

    /// Another value for a session whose person an issuer has just asked again who they are.
    pub async fn strengthen_by_issuer(
        &self,
        (old, new): ([u8; 32], [u8; 32]),
        person: PersonId,
        is: &IssuerSubject,
        (way, code): (UsedWay, Option<UsedCode>),
    ) -> Result<bool, StoreError> {
        let now = self.people_now();
        let mut write = self.vouched(person, is, way, code);
        // What they may do is what the issuer says now.
        let sql = "UPDATE session SET hash = $2, strong_at = $3, seen_at = $3, issuer_role = $5 \
                   WHERE hash = $1 AND person_id = $4";
        write.push(must(sql, values![old, new, now, person.0, is.house_role.map(HouseRole::word)]));
        Ok(self.write_people(write).await?.is_none())
    }

    fn vouched(
        &self,
        person: PersonId,
        is: &IssuerSubject,
        way: UsedWay,
        code: Option<UsedCode>,
    ) -> Vec<PersonStatement> {
        let mut write =
            vec![use_way(way), must(USE_LINK, values![&is.issuer, &is.subject, person.0, self.people_now()])];
        write.extend(code.map(|code| use_code(person, code)));
        write
    }
}
