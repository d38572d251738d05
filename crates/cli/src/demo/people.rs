//! The people of the demo: an operator and a customer, with new one-time links at each start.

use super::find_account;
use crate::people::{new_token, somebody, stored};
use serde::Serialize;
use tollgate_store::{AccountRole, Attribution, HouseRole, Membership, NewPerson, Store};

/// A link that signs in once.
#[derive(Serialize)]
pub struct DemoLink {
    role: &'static str,
    email: &'static str,
    token: String,
    link: String,
}

pub async fn links(store: &Store, base_url: &str) -> anyhow::Result<Vec<DemoLink>> {
    let account = find_account(store).await?;
    let membership = account.map(|account| Membership { account, role: AccountRole::Owner });
    let mut links = Vec::new();
    for (role, email, house_role, membership) in [
        ("operator", "operator@example.com", Some(HouseRole::Operator), None),
        ("customer", "customer@example.com", None, membership),
    ] {
        let done = Attribution::by("demo".to_owned(), "a start of the demo".to_owned());
        let person = match store.person_by_email(email).await? {
            Some(person) => Some(person),
            None => {
                let new = NewPerson { house_role, membership, ..somebody(email, role) };
                store.create_person(new, done.clone()).await?
            }
        };
        let Some(person) = person else { continue };
        let token = new_token();
        store.link_person(stored(&token), &person, done).await?;
        let link = format!("{base_url}/sign-in#token={}", token.text);
        links.push(DemoLink { role, email, token: token.text, link });
    }
    Ok(links)
}

/// For people.
pub fn shown(links: &[DemoLink]) -> String {
    let line = |one: &DemoLink| format!("\n  {} ({}): {}", one.role, one.email, one.link);
    let lines: String = links.iter().map(line).collect();
    format!("\n\nSign in, once each, with POST /api/session/link and the token after the #:{lines}")
}
