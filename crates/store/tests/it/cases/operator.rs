//! Admin keys, the rows that say who made and revoked them, and moves of workflows.

use tollgate_store::{Attribution, NewAdminKey, WorkflowMove, WorkflowVerb, hash_secret};

use crate::common::House;

fn done(actor: &str, reason: &str) -> Attribution {
    Attribution::by(actor.to_owned(), reason.to_owned())
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
    assert!(revoked.revoked_at.is_some() && !revoked.works_at(0) && !revoked.works_at(i64::MAX));
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

pub async fn the_newest_move_says_how_far_a_workflow_is(h: House) {
    let moved = |slug: &str, verb, at| WorkflowMove {
        slug: slug.to_owned(),
        verb,
        at,
        actor: "ada".to_owned(),
        reason: format!("because of {at}"),
        evidence: format!("{{\"n\":{at}}}"),
    };
    assert!(h.store.workflow_states().await.expect("read").is_empty());
    let rows = [
        moved("clip", WorkflowVerb::Lock, 1),
        moved("b-side", WorkflowVerb::Lock, 2),
        moved("clip", WorkflowVerb::Unlock, 3),
    ];
    for row in &rows {
        h.store.move_workflow(row.clone()).await.expect("written");
    }
    let new = NewAdminKey { name: "clip".to_owned(), expires_at: None, done: done("eve", "no workflow") };
    h.store.create_admin_key(new, "ak-secret-one").await.expect("made");
    assert_eq!(h.store.workflow_states().await.expect("read"), [rows[1].clone(), rows[2].clone()]);
    assert_eq!(h.store.workflow_moves("clip".into(), 9).await.expect("read"), [rows[2].clone(), rows[0].clone()]);
    assert_eq!(h.store.workflow_moves("clip".into(), 1).await.expect("read"), [rows[2].clone()]);
    assert!(h.store.workflow_moves("none".into(), 9).await.expect("read").is_empty());
    let log = h.store.operator_events(9).await.expect("read");
    let actions: Vec<&str> = log.iter().map(|one| one.action.as_str()).collect();
    assert_eq!(actions, ["admin_key.create", "workflow.unlock", "workflow.lock", "workflow.lock"]);
    h.close().await;
}
