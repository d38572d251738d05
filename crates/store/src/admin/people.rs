//! What operators ask of a store about people.

use serde_json::{Value, json};

use super::{AdminCommand, value};
use crate::account::limits::Change;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    pub(super) async fn execute_about_people(&self, command: AdminCommand) -> Result<Value, StoreError> {
        let missing = |what: String| StoreError::NotFound(what);
        match command {
            AdminCommand::PersonCreate { new, done } => {
                let made = self.create_person(*new, done).await?;
                value(made.ok_or_else(|| StoreError::Conflict("somebody has this e-mail already".into()))?)
            }
            AdminCommand::PersonList { after, limit } => value(self.people(after, limit).await?),
            AdminCommand::PersonShow { person } => {
                value(self.person(person).await?.ok_or_else(|| missing(person.to_string()))?)
            }
            AdminCommand::PersonChange { person, house_role, disabled, done } => {
                let house_role = match house_role {
                    Change::Keep => None,
                    Change::Lift => Some(None),
                    Change::Set(role) => Some(Some(role)),
                };
                let changed = self.change_person(person, house_role, disabled, done).await?;
                value(changed.ok_or_else(|| missing(person.to_string()))?)
            }
            AdminCommand::PersonLink { email, token, done } => {
                let person = self.person_by_email(&email).await?.ok_or_else(|| missing(email))?;
                self.link_person(token, &person, done).await?;
                value(person)
            }
            AdminCommand::PersonSignOut { person, done } => {
                let found = self.person(person).await?.ok_or_else(|| missing(person.to_string()))?;
                self.end_sessions(person, None, done).await?;
                value(found)
            }
            AdminCommand::PersonPasskeysRemove { person, done } => {
                let found = self.person(person).await?.ok_or_else(|| missing(person.to_string()))?;
                self.remove_passkeys(person, done).await?;
                value(found)
            }
            AdminCommand::MembershipPut { account, person, role, done } => {
                self.account(account).await?.ok_or_else(|| missing(account.to_string()))?;
                self.person(person).await?.ok_or_else(|| missing(person.to_string()))?;
                self.put_membership(account, person, role, done).await?;
                value(self.person(person).await?)
            }
            AdminCommand::InviteCreate { new, done } => value(self.create_invite(new, done).await?),
            AdminCommand::InviteList => value(self.invites(None).await?),
            AdminCommand::InviteRevoke { invite, done } => {
                if !self.revoke_invite(invite, None, done).await? {
                    return Err(missing(invite.to_string()));
                }
                Ok(json!({ "invite_id": invite, "revoked": true }))
            }
            _ => Err(StoreError::broken("not a command about people")),
        }
    }
}
