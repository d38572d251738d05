//! `/api/account/members` and `/api/account/invites`: who is in an account. Whoever is in several
//! names one in the header `Tollgate-Account`.

use super::sessions::{EMAIL, done};
use super::verb::{PersonRequest, PersonVerb};
use super::{DAY_MS, link};
use crate::endpoints::admin::field::{FieldKind, VerbField, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::letter::{Letter, LetterAbout};
use crate::people::tokens::OneTimeToken;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use futures_util::FutureExt as _;
use http::Method;
use serde_json::{Value, json};
use tollgate_store::{AccountMember, AccountRole, InviteId, InvitedInto, Membership, NewInvite, PersonId, StoreError};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: members", rows, schemas };

pub(in crate::endpoints) const INVITE_MS: i64 = 7 * DAY_MS;
const ROLE: VerbField =
    must("role", FieldKind::Word(&["owner", "member", "viewer"]), "What they may do in the account");
const PERSON: VerbField = must("person", FieldKind::Id("pers_"), "The person");

fn rows() -> Vec<Row> {
    let (members, member) = ("/api/account/members", "/api/account/members/{person}");
    let invites = "/api/account/invites";
    let rows = vec![
        LIST.get(members, Access::Session, "Who is in the account").gives(named("List")),
        CHANGE.once(&Method::PATCH, member, "Another role for a member; one owner stays").gives(named("Done")),
        REMOVE.once(&Method::DELETE, member, "Takes a member out; anybody may leave").gives(named("Done")),
        INVITES.get(invites, Access::Session, "Open invites into the account").gives(named("List")),
        INVITE.once(&Method::POST, invites, "Invites somebody by mail").gives(named("Invite")),
        REVOKE.once(&Method::DELETE, "/api/account/invites/{invite}", "Takes an invite back").gives(named("Done")),
    ];
    rows.into_iter().map(|row| row.with(account_header)).collect()
}

pub(super) fn account_header() -> Vec<Value> {
    let schema = json!({ "type": "string", "pattern": "^acct_" });
    let about = "The account; may be left out by whoever is in one only";
    vec![json!({ "name": "Tollgate-Account", "in": "header", "schema": schema, "description": about })]
}

fn schemas() -> Value {
    json!({
        "Invite": { "type": "object", "required": ["invite_id", "email", "expires_at_ms"], "properties": {
            "invite_id": { "type": "string" },
            "email": { "type": "string" },
            "expires_at_ms": { "type": "integer" },
            "link": { "type": ["string", "null"], "description": "Where there is no mail: to be handed over" },
        } },
    })
}

fn list(data: impl serde::Serialize) -> Value {
    json!({ "object": "list", "data": data })
}

static LIST: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let account = asked.person()?.account(&asked.parts, AccountRole::Viewer)?;
            let shown = |member: &AccountMember| {
                let version = Membership { account, role: member.role }.version(member.person);
                let mut shown = json!(member);
                shown["etag"] = json!(format!("\"{version}\""));
                shown
            };
            let data: Vec<Value> = asked.app.store.members(account).await?.iter().map(shown).collect();
            Ok(list(data).into())
        }
        .boxed()
    },
};

static CHANGE: PersonVerb = PersonVerb {
    fields: &[PERSON, ROLE],
    answer: |asked| {
        async move {
            let own = asked.strong()?;
            let account = own.account(&asked.parts, AccountRole::Owner)?;
            let (person, role) = (person_in(asked)?, asked.get("role")?);
            let (store, seen) = (&asked.app.store, asked.seen());
            store.change_membership_if(account, person, Some(role), own.done(), seen).await.map_err(refused)?;
            Ok(done())
        }
        .boxed()
    },
};

static REMOVE: PersonVerb = PersonVerb {
    fields: &[PERSON],
    answer: |asked| {
        async move {
            let (own, person) = (asked.person()?, person_in(asked)?);
            let least = if person == own.id { AccountRole::Viewer } else { AccountRole::Owner };
            let account = own.account(&asked.parts, least)?;
            own.must_be_strong()?;
            asked.app.store.change_membership(account, person, None, own.done()).await.map_err(refused)?;
            Ok(done())
        }
        .boxed()
    },
};

static INVITES: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let account = asked.person()?.account(&asked.parts, AccountRole::Owner)?;
            Ok(list(asked.app.store.invites(Some(account)).await?).into())
        }
        .boxed()
    },
};

static INVITE: PersonVerb = PersonVerb {
    fields: &[EMAIL, ROLE],
    answer: |asked| {
        async move {
            let (own, app) = (asked.strong()?, &asked.app);
            let account_id = own.account(&asked.parts, AccountRole::Owner)?;
            let (email, role) = (super::email("email", &asked.text("email")?)?, asked.get("role")?);
            app.people.waits.begin(GuardedAct::Invite, &account_id.to_string(), asked.address(), asked.now())?;
            super::room_for_mail(app).await?;
            let place = app.store.account(account_id).await?.map(|account| account.name).unwrap_or_default();
            let token = OneTimeToken::new(|bytes| asked.fill(bytes));
            let letter = Letter {
                about: LetterAbout::Invite,
                to: email.clone(),
                locale: own.record.locale.clone(),
                link: link(app, "invite", &token.text),
                place: format!("{place} ({})", own.record.email),
            };
            let mail = app.people.sealed(&letter, |bytes| asked.fill(bytes));
            let handed_over = mail.is_none().then_some(letter.link).flatten();
            let into = InvitedInto::Account { account_id, role };
            let expires_at = asked.now() + INVITE_MS;
            let new = NewInvite { hash: token.hash, email, into, expires_at, mail };
            let invite = app.store.create_invite(new, own.done()).await.map_err(refused)?;
            app.people.ring();
            let mut shown = json!(invite);
            shown["link"] = json!(handed_over);
            Ok(shown.into())
        }
        .boxed()
    },
};

static REVOKE: PersonVerb = PersonVerb {
    fields: &[must("invite", FieldKind::Id("inv_"), "The invite")],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            let account = own.account(&asked.parts, AccountRole::Owner)?;
            let missing = || Refusal::about(Code::NotFound, "invite", "There is no such invite.");
            let id: InviteId = asked.text("invite")?.parse().map_err(|_| missing())?;
            if !asked.app.store.revoke_invite(id, Some(account), own.done()).await? {
                return Err(missing());
            }
            Ok(done())
        }
        .boxed()
    },
};

fn person_in(asked: &PersonRequest) -> Result<PersonId, Refusal> {
    let missing = || Refusal::about(Code::NotFound, "person", "There is no such person in the account.");
    asked.text("person")?.parse().map_err(|_| missing())
}

fn refused(error: StoreError) -> Refusal {
    match error {
        StoreError::NotFound(_) => Refusal::about(Code::NotFound, "person", "There is no such person in the account."),
        StoreError::Stale(_) => {
            let why = "The member was changed since it was read. Nothing was changed; read it again.";
            Refusal::about(Code::PreconditionFailed, "If-Match", why)
        }
        StoreError::Conflict(why) => Refusal::new(Code::Conflict, format!("Not done: {why}.")),
        other => other.into(),
    }
}
