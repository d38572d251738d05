//! `[people.trial]` in tollgate.toml: credit that people get by themselves when they verify their
//! e-mail. Without the table nobody gets any. Whoever wants more of it than one person should have
//! makes many addresses, so there is a bound on everything.

use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_catalog::form::Form;
use tollgate_store::TrialLimits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialSettings {
    /// For each person, once.
    pub amount: Money,
    /// What is left of it goes after this time; `None`: it stays.
    pub expires: Option<Duration>,
    /// Domains of mail that get any, and those inside them; none are all.
    pub allowed_domains: Vec<String>,
    pub blocked_domains: Vec<String>,
    pub limits: TrialLimits,
}

const USD: i64 = 1_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

impl TrialSettings {
    pub fn read(form: &mut Form<'_>) -> Option<TrialSettings> {
        let mut table = form.opt_table("trial")?;
        let amount: Money = table.parsed_or("amount_usd", Money::from_nano(USD));
        if !(1..=1_000 * USD).contains(&amount.nano()) {
            table.mistake("amount_usd", "must be above 0 and at most 1000");
        }
        let expires = table.duration_or("expires", 30 * DAY);
        if expires > 3_650 * DAY {
            table.mistake("expires", "must be at most ten years; 0s: never");
        }
        let day: Money = table.parsed_or("usd_per_day", Money::from_nano(50 * USD));
        let total: Money = table.parsed_or("usd_in_all", Money::from_nano(1_000 * USD));
        let settings = TrialSettings {
            amount,
            expires: Some(expires).filter(|time| !time.is_zero()),
            allowed_domains: domains(&mut table, "allowed_domains"),
            blocked_domains: domains(&mut table, "blocked_domains"),
            limits: TrialLimits {
                per_block: table.int_or("per_network_per_day", 2, 1..=1_000_000),
                day: day.nano(),
                total: total.nano(),
            },
        };
        table.finish();
        Some(settings)
    }

    /// Whether addresses of this domain get any.
    pub fn takes_domain(&self, domain: &str) -> bool {
        let inside = |all: &[String]| {
            all.iter().any(|one| {
                domain == one || domain.strip_suffix(one.as_str()).is_some_and(|before| before.ends_with('.'))
            })
        };
        (self.allowed_domains.is_empty() || inside(&self.allowed_domains)) && !inside(&self.blocked_domains)
    }
}

fn domains(table: &mut Form<'_>, name: &str) -> Vec<String> {
    let all = table.texts(name);
    let plain = |text: &String| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b))
    };
    if !all.iter().all(plain) {
        table.mistake(name, "must be domains in small letters, such as \"example.com\"");
    }
    all
}
