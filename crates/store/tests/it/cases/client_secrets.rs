//! Client secrets: found by their hash until they expire, so many at a time, erased afterwards.

use tollgate_store::{ClientSecret, ClientSecretLimits, ClientSecretsFull, NewClientSecret};

use crate::common::{Customer, House};

const LIMITS: ClientSecretLimits = ClientSecretLimits { account: 5, key: 3 };

fn secret(customer: &Customer, number: u8, expires_at: i64) -> NewClientSecret {
    NewClientSecret {
        hash: [number; 32],
        account: customer.account,
        key: customer.key,
        model: "m".to_owned(),
        session: format!("{{\"n\":{number}}}"),
        expires_at,
        uses: None,
    }
}

pub async fn a_client_secret_stands_for_its_key_until_it_expires(h: House) {
    let c = h.customer(0, 100).await;
    let (now, key_hash) = (h.clock.now(), h.store.keys(c.account).await.expect("keys")[0].hash);
    for number in 1..=3 {
        let new = secret(&c, number, now + 1_000 * i64::from(number));
        assert_eq!(h.store.create_client_secret(new, LIMITS).await.expect("asked"), Ok(()));
    }
    let found = h.store.client_secret([2; 32]).await.expect("asked");
    let (model, session) = ("m".to_owned(), "{\"n\":2}".to_owned());
    let expected = ClientSecret { key_hash, model, session, expires_at: now + 2_000, uses_left: None };
    assert_eq!(found, Some(expected));
    assert_eq!(h.store.client_secret([9; 32]).await.expect("asked"), None);
    let full = h.store.create_client_secret(secret(&c, 4, now + 9_000), LIMITS).await.expect("asked");
    assert_eq!(full, Err(ClientSecretsFull::Key));
    // Those that have expired count no more, whether or not they are erased, and open nothing.
    h.clock.advance(2_000);
    assert_eq!(h.store.client_secret([2; 32]).await.expect("asked"), None);
    for number in 4..=5 {
        let new = secret(&c, number, now + 9_000);
        assert_eq!(h.store.create_client_secret(new, LIMITS).await.expect("asked"), Ok(()));
    }
    h.store.sweep(h.clock.now()).await.expect("swept");
    assert!(h.store.client_secret([3; 32]).await.expect("asked").is_some(), "it has not expired");
    // A hash that is free again can be used again: the row is gone.
    let again = h.store.create_client_secret(secret(&c, 1, now + 9_000), ClientSecretLimits { key: 9, ..LIMITS }).await;
    assert_eq!(again.expect("erased"), Ok(()));
    h.close().await;
}

/// Both counts are exact, however many ask at once.
pub async fn client_secrets_have_a_number(h: House) {
    let (c, other) = (h.customer(0, 100).await, h.customer(0, 100).await);
    let ends = h.clock.now() + 60_000;
    let limits = ClientSecretLimits { account: 20, key: 15 };
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (store, new) = (h.store.clone(), secret(&c, number, ends));
        asked.spawn(async move { store.create_client_secret(new, limits).await.expect("asked") });
    }
    let outcomes = asked.join_all().await;
    assert_eq!(outcomes.iter().filter(|one| one.is_ok()).count(), 15);
    assert!(outcomes.iter().filter_map(|one| one.err()).all(|full| full == ClientSecretsFull::Key));
    // Another key of the account has what is left of the account's number.
    let second = Customer { account: c.account, key: h.key(c.account, None).await.id };
    for number in 100..106 {
        let made = h.store.create_client_secret(secret(&second, number, ends), limits).await.expect("asked");
        assert_eq!(made, if number < 105 { Ok(()) } else { Err(ClientSecretsFull::Account) }, "{number}");
    }
    assert_eq!(h.store.create_client_secret(secret(&other, 200, ends), limits).await.expect("asked"), Ok(()));
    h.close().await;
}

/// So many sessions and not one more, however many ask at once.
pub async fn a_client_secret_may_have_a_number_of_uses(h: House) {
    let c = h.customer(0, 100).await;
    let ends = h.clock.now() + 60_000;
    for (number, uses) in [(1, Some(7)), (2, None), (3, Some(2))] {
        let new = NewClientSecret { uses, ..secret(&c, number, ends) };
        assert_eq!(h.store.create_client_secret(new, LIMITS).await.expect("asked"), Ok(()));
    }
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let store = h.store.clone();
        asked.spawn(async move { store.use_client_secret([1; 32]).await.expect("asked") });
    }
    assert_eq!(asked.join_all().await.into_iter().filter(|used| *used).count(), 7);
    let left = async |hash| h.store.client_secret(hash).await.expect("asked").expect("it has not expired").uses_left;
    assert_eq!((left([1; 32]).await, left([2; 32]).await, left([3; 32]).await), (Some(0), None, Some(2)));
    // Those without a number have nothing to count, and those that have expired open nothing.
    assert!(!h.store.use_client_secret([2; 32]).await.expect("asked"));
    h.clock.advance(60_000);
    assert!(!h.store.use_client_secret([3; 32]).await.expect("asked"));
    h.close().await;
}
