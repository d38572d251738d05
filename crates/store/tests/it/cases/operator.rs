//! Admin keys, and the rows that say who made and revoked them.

use tollgate_store::{Attribution, NewAdminKey, hash_secret};

use crate::common::House;

fn done(actor: &str, reason: &str) -> Attribution {
    Attribution { actor: actor.to_owned(), reason: reason.to_owned() }
}

pub async fn admin_keys_are_hashes_with_a_log(h: House) {
    let new =
        |name: &str| NewAdminKey { name: name.to_owned(), expires_at: Some(99), done: done("ada", "night shift") };
    let key = h.store.create_admin_key(new("night"), "ak-secret-one").await.expect("made");
    assert_eq!((key.prefix.as_str(), key.name.as_str(), key.revoked_at), ("ak-secr", "night", None));
    assert!(key.actor().starts_with("night (adm_"));
    assert!(key.works_at(98) && !key.works_at(99));
    assert!(h.store.create_admin_key(new("again"), "ak-secret-one").await.is_err(), "a secret is used once");
    assert!(h.store.create_admin_key(new("  "), "ak-secret-two").await.is_err(), "a log must say somebody");
    let found = h.store.admin_key_by_hash(hash_secret("ak-secret-one")).await.expect("read");
    assert_eq!(found.as_ref(), Some(&key));
    assert!(h.store.admin_key_by_hash(hash_secret("ak-secret-two")).await.expect("read").is_none());
    assert_eq!(h.store.admin_keys().await.expect("read"), std::slice::from_ref(&key));

    let revoked = h.store.revoke_admin_key(key.id, done("bob", "left")).await.expect("revoked").expect("a key");
    assert!(revoked.revoked_at.is_some() && !revoked.works_at(i64::MAX));
    let again = h.store.revoke_admin_key(key.id, done("eve", "again")).await.expect("asked").expect("a key");
    assert_eq!(again.revoked_at, revoked.revoked_at);
    let unknown = "adm_00000000000000000000000000".parse().expect("an id");
    assert!(h.store.revoke_admin_key(unknown, done("bob", "?")).await.expect("asked").is_none());

    let log = h.store.operator_events(9).await.expect("read");
    let events: Vec<[&str; 4]> =
        log.iter().map(|one| [one.action.as_str(), &one.actor, &one.reason, &one.subject]).collect();
    let id = key.id.to_string();
    assert_eq!(events, [["admin_key.revoke", "bob", "left", &id], ["admin_key.create", "ada", "night shift", &id]]);
    assert_eq!(h.store.operator_events(1).await.expect("read").len(), 1);
    h.close().await;
}
