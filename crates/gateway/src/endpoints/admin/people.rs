//! `/api/admin/people` and `/api/admin/invites`: who signs in, and what they may do in the house.

use super::field::{FieldKind, VerbField, may, may_be_null, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{ACCOUNT, REASON, TEXT, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::people::{email, link, members::INVITE_MS};
use crate::endpoints::row::{Family, Row};
use crate::people::letter::{Letter, LetterAbout};
use crate::people::tokens::OneTimeToken;
use crate::refusal::Refusal;
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{
    AccountId, AccountRole, Change, HouseRole, InvitedInto, Membership, NewInvite, NewMailToken, NewPerson,
    TokenPurpose,
};

pub const FAMILY: Family = Family { tag: "operators: people", rows, schemas };

/// A link that an operator hands over.
const LINK_MS: i64 = 24 * 3_600_000;

const PERSON: VerbField = must("person", FieldKind::Id("pers_"), "The person");
const EMAIL: VerbField = must("email", FieldKind::Text(254), "The e-mail of the person");
const HOUSE: FieldKind = FieldKind::Word(&["operator", "auditor"]);
const ROLE: FieldKind = FieldKind::Word(&["owner", "member", "viewer"]);

fn rows() -> Vec<Row> {
    let (all, one) = ("/api/admin/people", "/api/admin/people/{person}");
    let invites = "/api/admin/invites";
    vec![
        CREATE.post(all, "A new person, and a one-time link to sign in with").gives(named("Person")),
        LIST.get(all, "All people, the oldest first").gives(named("PersonPage")),
        SHOW.get(one, "One person, with roles and memberships").gives(named("Person")),
        CHANGE.patch(one, "Changes a role in the house; locks a person out or lets them in").gives(named("Person")),
        LINK.post("/api/admin/people/links", "A one-time link to sign in with, for a person").gives(named("Person")),
        SIGN_OUT.post("/api/admin/people/{person}/sign-out", "Ends all sessions of a person").gives(named("Person")),
        PASSKEYS
            .post("/api/admin/people/{person}/passkeys/remove", "Removes all passkeys of a person; sessions end")
            .gives(named("Person")),
        MEMBER
            .put("/api/admin/accounts/{account}/members/{person}", "Puts a person into an account, with a role")
            .gives(named("Person")),
        INVITE.post(invites, "Invites somebody into the house").gives(named("Invite")),
        INVITES.get(invites, "Open invites into the house").gives(named("List")),
        REVOKE.post("/api/admin/invites/{invite}/revoke", "Takes an invite back").gives(named("Revoked")),
    ]
}

fn schemas() -> Value {
    json!({
        "Person": record("A person; times in milliseconds", &["person_id", "email"]),
        "PersonPage": page("Person", "next_after", &json!({ "type": ["string", "null"] })),
        "Revoked": record("An invite that was taken back", &["invite_id", "revoked"]),
    })
}

/// A token for a link, and what the answer shows of it.
fn sign_in_link(asked: &OperatorRequest<'_>) -> (NewMailToken, ShownAs) {
    let token = OneTimeToken::new(|bytes| asked.app.world.fill(bytes));
    let to = link(asked.app, "sign-in", &token.text);
    let expires_at = asked.app.world.now_ms() + LINK_MS;
    let shown = ShownAs::With(Box::new(move |mut person| {
        person["token"] = json!(token.text);
        person["link"] = json!(to);
        person
    }));
    (NewMailToken { hash: token.hash, purpose: TokenPurpose::SignIn, expires_at }, shown)
}

static CREATE: OperatorVerb = OperatorVerb {
    command: "person_create",
    fields: &[
        EMAIL,
        may("name", TEXT, "For people"),
        may("house_role", HOUSE, "What they may do in the house; nothing unless said"),
        may("account", FieldKind::Id("acct_"), "An account they are in"),
        may("role", ROLE, "What they may do in that account; owner unless said otherwise"),
        REASON,
    ],
    plan: |asked| {
        asked.strong()?;
        let account: Option<AccountId> = asked.may("account")?;
        let role: Option<AccountRole> = asked.may("role")?;
        if role.is_some() && account.is_none() {
            return Err(wrong("role", "of an account, and there is no `account`"));
        }
        let membership = account.map(|account| Membership { account, role: role.unwrap_or(AccountRole::Owner) });
        let (token, shown) = sign_in_link(asked);
        let new = NewPerson {
            email: email("email", &asked.get::<String>("email")?)?,
            name: asked.may("name")?.unwrap_or_default(),
            locale: "en".to_owned(),
            time_zone: String::new(),
            verified: true,
            wished_account: None,
            password: None,
            house_role: asked.may("house_role")?,
            membership,
            token: Some(token),
            mail: None,
        };
        let command = AdminCommand::PersonCreate { new: Box::new(new), done: asked.done()? };
        Ok(PlannedCommand::from(command).shown(shown))
    },
};

static LIST: OperatorVerb = OperatorVerb {
    command: "person_list",
    fields: &[may("after", FieldKind::Id("pers_"), "`next_after` of the page before"), super::PAGE],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let page = AnswerPage { limit, by: "person_id", next: "next_after", after: None };
        let command = AdminCommand::PersonList { after: asked.may("after")?, limit: limit + 1 };
        Ok(PlannedCommand::from(command).shown(ShownAs::Page(page)))
    },
};

static SHOW: OperatorVerb = OperatorVerb {
    command: "person_show",
    fields: &[PERSON],
    plan: |asked| Ok(AdminCommand::PersonShow { person: asked.get("person")? }.into()),
};

static CHANGE: OperatorVerb = OperatorVerb {
    command: "person_change",
    fields: &[
        PERSON,
        may_be_null("house_role", HOUSE, "`null`: none any more"),
        may("disabled", FieldKind::Flag, "`true`: cannot sign in"),
        REASON,
    ],
    plan: |asked| {
        asked.strong()?;
        let house_role: Change<HouseRole> = asked.change("house_role")?;
        let (person, disabled, done) = (asked.get("person")?, asked.may("disabled")?, asked.done()?);
        Ok(AdminCommand::PersonChange { person, house_role, disabled, done }.into())
    },
};

static LINK: OperatorVerb = OperatorVerb {
    command: "person_link",
    fields: &[EMAIL, REASON],
    plan: |asked| {
        asked.strong()?;
        let (token, shown) = sign_in_link(asked);
        let command = AdminCommand::PersonLink { email: asked.get("email")?, token, done: asked.done()? };
        Ok(PlannedCommand::from(command).shown(shown))
    },
};

static SIGN_OUT: OperatorVerb = OperatorVerb {
    command: "person_sign_out",
    fields: &[PERSON, REASON],
    plan: |asked| Ok(AdminCommand::PersonSignOut { person: asked.get("person")?, done: asked.done()? }.into()),
};

/// For somebody who has lost a device. What is left, or a one-time link, lets them in again.
static PASSKEYS: OperatorVerb = OperatorVerb {
    command: "person_passkeys_remove",
    fields: &[PERSON, REASON],
    plan: |asked| {
        asked.strong()?;
        Ok(AdminCommand::PersonPasskeysRemove { person: asked.get("person")?, done: asked.done()? }.into())
    },
};

static MEMBER: OperatorVerb = OperatorVerb {
    command: "membership_put",
    fields: &[ACCOUNT, PERSON, must("role", ROLE, "What they may do in the account"), REASON],
    plan: |asked| {
        asked.strong()?;
        let (account, person) = (asked.get("account")?, asked.get("person")?);
        Ok(AdminCommand::MembershipPut { account, person, role: asked.get("role")?, done: asked.done()? }.into())
    },
};

static INVITE: OperatorVerb = OperatorVerb {
    command: "invite_create",
    fields: &[EMAIL, must("house_role", HOUSE, "What they may do in the house"), REASON],
    plan: |asked| {
        asked.strong()?;
        let app = asked.app;
        let (email, house_role) = (email("email", &asked.get::<String>("email")?)?, asked.get("house_role")?);
        let token = OneTimeToken::new(|bytes| app.world.fill(bytes));
        let letter = Letter {
            about: LetterAbout::Invite,
            to: email.clone(),
            locale: "en".to_owned(),
            link: link(app, "invite", &token.text),
            place: HouseRole::word(house_role).to_owned(),
        };
        let mail = app.people.sealed(&letter, |bytes| app.world.fill(bytes));
        let handed_over = mail.is_none().then_some(letter.link).flatten();
        let expires_at = app.world.now_ms() + INVITE_MS;
        let new = NewInvite { hash: token.hash, email, into: InvitedInto::House { house_role }, expires_at, mail };
        let shown = ShownAs::With(Box::new(move |mut invite| {
            invite["link"] = json!(handed_over);
            invite
        }));
        let command = AdminCommand::InviteCreate { new, done: asked.done()? };
        Ok(PlannedCommand::from(command).shown(shown).then(Then::Mail))
    },
};

static INVITES: OperatorVerb = OperatorVerb {
    command: "invite_list",
    fields: &[],
    plan: |_| Ok(PlannedCommand::from(AdminCommand::InviteList).shown(ShownAs::List)),
};

static REVOKE: OperatorVerb = OperatorVerb {
    command: "invite_revoke",
    fields: &[must("invite", FieldKind::Id("inv_"), "The invite"), REASON],
    plan: |asked| Ok(AdminCommand::InviteRevoke { invite: asked.get("invite")?, done: asked.done()? }.into()),
};

impl OperatorRequest<'_> {
    /// The same for sums above what the settings say, and for sums that are not said.
    pub(super) fn strong_above(&self, amount: Option<Money>) -> Result<(), Refusal> {
        let most = self.app.settings.people.step_up_above.nano();
        if amount.is_some_and(|amount| amount.nano().saturating_abs() <= most) { Ok(()) } else { self.strong() }
    }
}
