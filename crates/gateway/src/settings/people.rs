//! `[people]` in tollgate.toml: whether people sign in here, who may sign up, how they get mail,
//! and which issuers vouch for them.

use super::{ConfigSource, PasskeySettings, TrialSettings};
use std::fmt;
use std::path::PathBuf;
use tollgate_catalog::Money;
use tollgate_catalog::form::Form;
use tollgate_store::HouseRole;
use tollgate_upstream::{GITHUB, Issuer, IssuerKind, Secret};

/// Changes of money by an operator's session above this need a step-up.
const STEP_UP_USD: i64 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeopleSettings {
    pub enabled: bool,
    pub sign_up: SignUp,
    pub mail: Option<MailSettings>,
    /// Credit for who verifies an e-mail; `None`: there is none.
    pub trial: Option<TrialSettings>,
    /// What an operator's session moves above this needs a step-up.
    pub step_up_above: Money,
    /// The origin of our own pages, where it is known; else the host that a request names.
    pub origin: Option<String>,
    /// Browsers reach us by https: cookies are for that only.
    pub secure: bool,
    pub issuers: Vec<IssuerSettings>,
    /// `None`: nobody signs in by a passkey.
    pub passkeys: Option<PasskeySettings>,
}

/// An issuer of OpenID Connect, by the name that its paths have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerSettings {
    pub name: String,
    pub kind: IssuerKind,
    /// What stands on its button.
    pub label: String,
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// Who may become a person by it.
    pub sign_up: SignUp,
    /// The only domains of e-mails it is believed about; none: any.
    pub email_domains: Vec<String>,
    /// An e-mail counts when the issuer says that it is verified.
    pub require_email_verified: bool,
    /// The claim with the groups that somebody is in.
    pub groups: String,
    /// What whoever is in a group may do in the house.
    pub house_roles: Vec<(String, HouseRole)>,
}

impl IssuerSettings {
    /// Where groups are looked for; nowhere, where none is worth anything.
    pub fn groups_claim(&self) -> Option<String> {
        (!self.house_roles.is_empty()).then(|| self.groups.clone())
    }

    /// The highest role of somebody who is in these groups.
    pub fn house_role(&self, groups: &[String]) -> Option<HouseRole> {
        let of = |(group, role): &(String, HouseRole)| groups.contains(group).then_some(*role);
        self.house_roles.iter().filter_map(of).max()
    }
}

/// Who may become a person here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// Anybody who has an e-mail.
    Open,
    /// Whoever has an invite.
    Invite,
    /// Nobody; the command line makes people, and operators invite into the house.
    Closed,
}

impl SignUp {
    pub const fn word(self) -> &'static str {
        match self {
            SignUp::Open => "open",
            SignUp::Invite => "invite",
            SignUp::Closed => "closed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSettings {
    /// Whom mail comes from: `Tollgate <noreply@example.com>`.
    pub from: String,
    pub to: MailSink,
}

/// Where mail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailSink {
    /// A file for each, for demonstrations and tests.
    Folder(PathBuf),
    Smtp {
        host: String,
        port: u16,
        tls: MailTls,
        username: Option<String>,
        password: Option<MailPassword>,
        /// The authority (PEM) that its certificate is of, where that is one of the house.
        authority: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// Plain at first; what cannot be encrypted is not sent.
    StartTls,
    Tls,
    /// For a server on this machine.
    None,
}

/// Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct MailPassword(pub String);

impl fmt::Debug for MailPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

impl Default for PeopleSettings {
    fn default() -> PeopleSettings {
        PeopleSettings {
            enabled: false,
            sign_up: SignUp::Closed,
            mail: None,
            trial: None,
            step_up_above: Money::from_nano(STEP_UP_USD * 1_000_000_000),
            origin: None,
            secure: false,
            issuers: Vec::new(),
            passkeys: None,
        }
    }
}

impl PeopleSettings {
    pub fn read(form: &mut Form<'_>, source: &ConfigSource, public_url: Option<&str>) -> PeopleSettings {
        let default = PeopleSettings::default();
        let mut table = form.table("people");
        let choices = [("open", SignUp::Open), ("invite", SignUp::Invite), ("closed", SignUp::Closed)];
        let settings = PeopleSettings {
            enabled: table.flag_or("enabled", default.enabled),
            sign_up: table.choice_or("sign_up", default.sign_up, &choices),
            mail: mail(&mut table, source),
            trial: TrialSettings::read(&mut table),
            issuers: issuers(&mut table, source),
            passkeys: PasskeySettings::read(&mut table, public_url),
            step_up_above: Money::from_nano(
                table.int_or("step_up_above_usd", STEP_UP_USD, 0..=1_000_000_000).saturating_mul(1_000_000_000),
            ),
            ..default
        };
        if settings.sign_up != SignUp::Closed && settings.mail.is_none() {
            table.mistake("sign_up", "needs [people.mail]: an e-mail is verified before it counts");
        }
        table.finish();
        settings
    }

    /// The same where browsers reach us at this address.
    pub fn reached_at(self, public_url: Option<&str>, tls: bool) -> PeopleSettings {
        let secure = public_url.map_or(tls, |url| url.starts_with("https://"));
        PeopleSettings { origin: public_url.and_then(origin_of), secure, ..self }
    }
}

/// As browsers write the origin of pages at an address.
pub fn origin_of(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let host = authority.host().to_ascii_lowercase();
    let usual = if scheme == "https" { 443 } else { 80 };
    Some(match authority.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

/// Issuers that are known by name: label, address, and what they speak.
type Preset = (&'static str, &'static str, &'static str, IssuerKind);
const PRESETS: [Preset; 2] = [
    ("github", "GitHub", GITHUB, IssuerKind::GitHub),
    ("google", "Google", "https://accounts.google.com", IssuerKind::OpenId),
];

/// What is asked for: that somebody is known, and for roles also in which groups.
fn scopes(table: &mut Form<'_>, kind: IssuerKind, groups: bool) -> Vec<String> {
    let given = table.opt_texts("scopes");
    let (usual, must): (&[&str], &str) = match kind {
        IssuerKind::OpenId => (&["openid", "email", "profile"], "openid"),
        IssuerKind::GitHub if groups => (&["read:user", "user:email", "read:org"], "user:email"),
        IssuerKind::GitHub => (&["read:user", "user:email"], "user:email"),
    };
    let mut scopes = given.unwrap_or_else(|| usual.iter().map(|&scope| scope.to_owned()).collect());
    if !scopes.iter().any(|scope| scope == must) {
        scopes.insert(0, must.to_owned());
    }
    scopes
}

fn issuers(form: &mut Form<'_>, source: &ConfigSource) -> Vec<IssuerSettings> {
    let Some(mut all) = form.opt_table("oidc") else { return Vec::new() };
    let names: Vec<String> = all.keys().map(str::to_owned).collect();
    let mut found = Vec::new();
    for name in names {
        let mut table = all.table(&name);
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 40 || !name.chars().all(letters) {
            table.mistake_here("the name of an issuer stands in paths: a-z, 0-9 and -");
        }
        let choices = [("open", SignUp::Open), ("invite", SignUp::Invite), ("closed", SignUp::Closed)];
        let preset = table.choice_or("preset", None, &PRESETS.map(|preset| (preset.0, Some(preset))));
        let kind = preset.map_or(IssuerKind::OpenId, |(_, _, _, kind)| kind);
        let house_roles = house_roles(&mut table);
        let scopes = scopes(&mut table, kind, !house_roles.is_empty());
        let one = IssuerSettings {
            kind,
            label: table.text_or("label", preset.map_or(&name, |(_, label, _, _)| label)),
            issuer: match preset {
                Some((_, _, issuer, _)) => table.text_or("issuer", issuer),
                None => table.text("issuer"),
            },
            client_id: table.text("client_id"),
            client_secret: source.hidden(&mut table, "client_secret").map(Secret::new),
            scopes,
            sign_up: table.choice_or("sign_up", SignUp::Closed, &choices),
            email_domains: table.opt_texts("email_domains").unwrap_or_default(),
            require_email_verified: table.flag_or("require_email_verified", true),
            groups: table.text_or("groups_claim", "groups"),
            house_roles,
            name,
        };
        if kind == IssuerKind::GitHub && one.client_secret.is_none() {
            table
                .mistake_here("GitHub takes a code with a client_secret only: client_secret_env or client_secret_file");
        }
        if let Err(why) = Issuer::new(&one.issuer, &one.client_id, None, Vec::new()) {
            table.mistake("issuer", why);
        }
        table.finish();
        found.push(one);
    }
    all.finish();
    found
}

/// Groups of an issuer and what they are worth here.
fn house_roles(form: &mut Form<'_>) -> Vec<(String, HouseRole)> {
    let Some(mut table) = form.opt_table("house_roles") else { return Vec::new() };
    let choices = [HouseRole::Operator, HouseRole::Auditor].map(|role| (role.word(), role));
    let groups: Vec<String> = table.keys().map(str::to_owned).collect();
    let role = |group: String| table.choice(&group, &choices).map(|role| (group, role));
    let found = groups.into_iter().filter_map(role).collect();
    table.finish();
    found
}

fn mail(form: &mut Form<'_>, source: &ConfigSource) -> Option<MailSettings> {
    let mut table = form.opt_table("mail")?;
    let (folder, smtp) = (table.opt_text("folder"), table.opt_text("smtp"));
    let from = table.text_or("from", "Tollgate <tollgate@localhost>");
    if from.parse::<lettre::message::Mailbox>().is_err() {
        table.mistake("from", "must be an address: Tollgate <noreply@example.com>");
    }
    let tls_words = [("starttls", MailTls::StartTls), ("tls", MailTls::Tls), ("none", MailTls::None)];
    let to = match (folder, smtp) {
        (Some(folder), None) => Some(MailSink::Folder(source.beside(&folder))),
        (None, Some(host)) => {
            let tls = table.choice_or("tls", MailTls::StartTls, &tls_words);
            let usual = match tls {
                MailTls::StartTls => 587,
                MailTls::Tls => 465,
                MailTls::None => 25,
            };
            let port = table.int_or("port", usual, 1..=u16::MAX);
            let username = table.opt_text("username");
            let password = source.hidden(&mut table, "password").map(|text| MailPassword(text.trim_end().to_owned()));
            if username.is_some() && tls == MailTls::None {
                table.mistake("tls", "a password is not sent in the clear: use starttls or tls");
            }
            let authority =
                table.opt_text("ca_file").and_then(|file| match std::fs::read_to_string(source.beside(&file)) {
                    Ok(text) => Some(text),
                    Err(error) => {
                        table.mistake("ca_file", format!("cannot be read: {error}"));
                        None
                    }
                });
            Some(MailSink::Smtp { host, port, tls, username, password, authority })
        }
        _ => {
            table.mistake_here("give `folder` or `smtp`, one of them");
            None
        }
    };
    table.finish();
    Some(MailSettings { from, to: to? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path_and_no_usual_port() {
        for (url, origin) in [
            ("https://Gate.example.com/x", Some("https://gate.example.com")),
            ("https://gate.example.com:443", Some("https://gate.example.com")),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("gate.example.com", None),
        ] {
            assert_eq!(origin_of(url).as_deref(), origin, "{url}");
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(format!("{:?}", MailPassword("hunter2".to_owned())), "(set)");
    }
}
