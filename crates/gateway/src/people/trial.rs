//! Who gets trial credit: one mailbox once, however its address is written, and few of one network.

use crate::settings::TrialSettings;
use sha2::{Digest as _, Sha256};
use std::net::IpAddr;
use tollgate_store::{AccountId, NewTrialGrant, folded_email};

/// Domains that lead to the same mailboxes, and what they ignore in a name. What stands behind a
/// `+` is ignored of all domains.
struct MailProvider {
    domains: &'static [&'static str],
    ignored: &'static [char],
    /// What follows one of these is a tag.
    tags: &'static [char],
}

const PROVIDERS: [MailProvider; 6] = [
    MailProvider { domains: &["gmail.com", "googlemail.com"], ignored: &['.'], tags: &['+'] },
    MailProvider {
        domains: &["proton.me", "protonmail.com", "protonmail.ch", "pm.me"],
        ignored: &['.', '-', '_'],
        tags: &['+'],
    },
    MailProvider {
        domains: &["yandex.ru", "yandex.com", "ya.ru", "yandex.by", "yandex.kz", "yandex.com.tr"],
        ignored: &['.', '-'],
        tags: &['+'],
    },
    MailProvider { domains: &["icloud.com", "me.com", "mac.com"], ignored: &[], tags: &['+'] },
    MailProvider { domains: &["fastmail.com", "fastmail.fm"], ignored: &[], tags: &['+'] },
    MailProvider { domains: &["yahoo.com", "ymail.com", "rocketmail.com"], ignored: &[], tags: &['+', '-'] },
];

/// The mailbox that an address leads to, as one text for all ways to write it; `None`: it has no
/// domain.
pub fn mailbox(email: &str) -> Option<(String, String)> {
    let folded = folded_email(email);
    let (name, domain) = folded.rsplit_once('@')?;
    let domain = domain.trim_end_matches('.');
    // At this provider anything in front of a domain of one's own is the same mailbox.
    let (name, domain) = match domain.strip_suffix(".fastmail.com") {
        Some(own) => (own, "fastmail.com"),
        None => (name, domain),
    };
    let known = PROVIDERS.iter().find(|provider| provider.domains.contains(&domain));
    let (ignored, tags) = known.map_or((&[][..], &['+'][..]), |known| (known.ignored, known.tags));
    let name = name.trim_matches('"');
    let name = match name.find(tags) {
        // A tag alone is no name.
        None | Some(0) => name,
        Some(at) => &name[..at],
    };
    let name: String = name.chars().filter(|letter| !ignored.contains(letter)).collect();
    let domain = known.map_or(domain, |known| known.domains[0]);
    (!name.is_empty() && !domain.is_empty()).then(|| (name, domain.to_owned()))
}

/// The network an address belongs to: whoever has one address of it has many.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(four) => {
            let [a, b, c, _] = four.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(six) => {
            let [a, b, c, ..] = six.segments();
            format!("{a:x}:{b:x}:{c:x}::/48")
        }
    }
}

fn hashed(what: &str, text: &str) -> [u8; 32] {
    Sha256::new().chain_update(what).chain_update("\n").chain_update(text).finalize().into()
}

/// What somebody with this address is to be given; `None`: nothing, whatever the limits say.
pub fn grant(
    settings: Option<&TrialSettings>,
    email: &str,
    address: IpAddr,
    account: Option<AccountId>,
    now: i64,
) -> Option<NewTrialGrant> {
    let (settings, account) = (settings?, account?);
    let (name, domain) = mailbox(email)?;
    // As it was written too: a domain that is not wanted may be another name of one that is.
    let written = folded_email(email);
    let written = written.rsplit_once('@').map_or("", |(_, domain)| domain.trim_end_matches('.'));
    if !settings.takes_domain(&domain) || !settings.takes_domain(written) {
        return None;
    }
    let life = settings.expires.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    Some(NewTrialGrant {
        account,
        amount: settings.amount,
        expires_at: life.map(|life| now.saturating_add(life)),
        address_hash: hashed("mailbox", &format!("{name}@{domain}")),
        block_hash: hashed("network", &network(address)),
        limits: settings.limits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mailbox_has_one_name() {
        for (address, name) in [
            ("Ada@Example.com", "ada@example.com"),
            ("ada+one@example.com", "ada@example.com"),
            ("a.d.a@example.com", "a.d.a@example.com"),
            ("ada@example.com.", "ada@example.com"),
            ("A.d.a+x+y@googlemail.com", "ada@gmail.com"),
            ("ada@gmail.com", "ada@gmail.com"),
            ("a-d_a@pm.me", "ada@proton.me"),
            ("a.da@ya.ru", "ada@yandex.ru"),
            ("ada@mac.com", "ada@icloud.com"),
            ("anything@ada.fastmail.com", "ada@fastmail.com"),
            ("ada-shop@yahoo.com", "ada@yahoo.com"),
            ("+ada@example.com", "+ada@example.com"),
        ] {
            let found = mailbox(address).map(|(name, domain)| format!("{name}@{domain}"));
            assert_eq!(found.as_deref(), Some(name), "{address}");
        }
        assert_eq!(mailbox("nobody"), None);
    }

    #[test]
    fn neighbours_are_one_network() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("192.0.2.1"), of("192.0.2.200"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.200"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:ffff::9"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    }

    #[test]
    fn domains_are_allowed_and_blocked_with_what_is_inside_them() {
        let settings = |allowed: &[&str], blocked: &[&str]| TrialSettings {
            amount: tollgate_catalog::Money::from_nano(1),
            expires: None,
            allowed_domains: allowed.iter().map(|one| (*one).to_owned()).collect(),
            blocked_domains: blocked.iter().map(|one| (*one).to_owned()).collect(),
            limits: tollgate_store::TrialLimits { per_block: 1, day: 1, total: 1 },
        };
        let given = |settings: &TrialSettings, email: &str| {
            let address = "192.0.2.1".parse().expect("an address");
            grant(Some(settings), email, address, Some(AccountId([1; 16])), 0).is_some()
        };
        let some = settings(&["example.com"], &[]);
        assert!(given(&some, "a@example.com") && given(&some, "a@mail.example.com"));
        assert!(!given(&some, "a@badexample.com") && !given(&some, "a@example.org"));
        let most = settings(&[], &["googlemail.com", "throwaway.example"]);
        assert!(given(&most, "a@gmail.com") && !given(&most, "a@googlemail.com"));
        assert!(!given(&most, "a@x.throwaway.example"));
    }
}
