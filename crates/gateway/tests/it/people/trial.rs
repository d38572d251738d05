//! Trial credit for a verified e-mail: once for a person and for a mailbox, few of one network, so
//! much a day and in all; never twice, whoever asks how often.

use super::{Browser, GOOD, test};
use crate::engine::Engine;
use crate::house::{House, Plan};
use serde_json::json;
use tollgate_gateway::people::tokens::OneTimeToken;
use tollgate_store::{
    AccountId, EventPage, NewMailToken, NewPerson, NewTrialGrant, PersonRecord, TokenPurpose, TrialLimits,
};

const USD: i64 = 1_000_000_000;

async fn house(database: &str, trial: &str) -> House {
    let config = format!(
        "trusted_proxies = [\"127.0.0.1/32\"]\n[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nfolder = \"mail\"\n{trial}"
    );
    House::with(Plan { config, database: database.to_owned(), ..Plan::default() }).await
}

const TRIAL: &str = "[people.trial]\namount_usd = \"2\"\nper_network_per_day = 3\nusd_per_day = \"100\"\nusd_in_all = \"100\"\nblocked_domains = [\"throwaway.example\"]\n";

/// Somebody who has signed up and has not verified their e-mail yet.
async fn signed_up(house: &House, email: &str) -> (PersonRecord, String) {
    let app = &house.running().app;
    let token = OneTimeToken::new(|bytes| app.world.fill(bytes));
    let hash = app.people.passwords.hash(GOOD.to_owned(), |salt| app.world.fill(salt)).await.expect("hashed");
    let expires_at = app.world.now_ms() + 3_600_000;
    let new = NewPerson {
        email: email.to_owned(),
        name: String::new(),
        locale: "en".to_owned(),
        time_zone: String::new(),
        verified: false,
        wished_account: Some(email.to_owned()),
        password: Some(hash),
        house_role: None,
        membership: None,
        token: Some(NewMailToken { hash: token.hash, purpose: TokenPurpose::Verify, expires_at }),
        mail: None,
    };
    let person = app.store.create_person(new, test()).await.expect("made").expect("a new e-mail");
    (person, token.text)
}

async fn verify(house: &House, token: &str, address: &str) -> u16 {
    let request = Browser::new(house).request("POST", "/api/email/verify");
    let request = request.header("sec-fetch-site", "same-origin").header("x-forwarded-for", address);
    let body = json!({ "token": token, "password": GOOD });
    request.json(&body).send().await.expect("a reply").status().as_u16()
}

async fn trial_of(house: &House, person: &PersonRecord) -> i64 {
    let account = house.running().app.store.account(AccountId(person.id.0)).await.expect("read");
    account.map_or(0, |account| account.trial_available.nano())
}

/// Signs up and verifies from an address, and says what was given.
async fn given(house: &House, email: &str, address: &str) -> i64 {
    let (person, token) = signed_up(house, email).await;
    assert_eq!(verify(house, &token, address).await, 200, "{email}");
    trial_of(house, &person).await
}

#[tokio::test(flavor = "multi_thread")]
async fn credit_is_given_with_the_verified_e_mail_and_shown_as_what_it_is() {
    for engine in Engine::both().await {
        let house = house(&engine.url, TRIAL).await;
        let (person, token) = signed_up(&house, "ada@example.com").await;
        assert_eq!(trial_of(&house, &person).await, 0, "an address that somebody typed gets nothing");
        assert_eq!(verify(&house, &token, "192.0.2.1").await, 200);
        assert_eq!(trial_of(&house, &person).await, 2 * USD, "{}", engine.name);
        let store = &house.running().app.store;
        let account = AccountId(person.id.0);
        let events = store.events(account, EventPage { before: None, limit: 10 }).await.expect("read");
        assert_eq!(events.len(), 1);
        assert_eq!(
            (events[0].kind.as_str(), events[0].reference.clone()),
            ("trial_credit", format!("trial:{}", person.id))
        );
        assert_eq!(events[0].expires_at.map(|at| at > house.running().app.world.now_ms()), Some(true));
        assert!(!store.account(account).await.expect("read").expect("it").topped_up, "it is no top-up");
        // A second look at everything changes nothing.
        store.credit_trials().await.expect("done");
        assert_eq!(trial_of(&house, &person).await, 2 * USD);
        assert_eq!(verify(&house, &token, "192.0.2.1").await, 403, "a token is used once");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_any_where_it_is_not_set() {
    let house = house("sqlite", "").await;
    assert_eq!(given(&house, "ada@example.com", "192.0.2.1").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_mailbox_gets_it_once_however_it_is_written() {
    for engine in Engine::both().await {
        let house = house(&engine.url, TRIAL).await;
        assert_eq!(given(&house, "ada.lovelace@gmail.com", "192.0.2.1").await, 2 * USD);
        let others = [
            "ada.lovelace+1@gmail.com",
            "adalovelace@gmail.com",
            "a.d.a.lovelace@googlemail.com",
            "Ada.Love.Lace+shop@GoogleMail.com",
        ];
        for (number, email) in others.into_iter().enumerate() {
            assert_eq!(given(&house, email, &format!("198.51.{number}.1")).await, 0, "{email}");
        }
        assert_eq!(given(&house, "grace@example.com", "203.0.113.1").await, 2 * USD, "somebody else");
        assert_eq!(given(&house, "grace+again@example.com", "203.0.113.1").await, 0);
        assert_eq!(given(&house, "x@throwaway.example", "198.18.0.1").await, 0, "a blocked domain");
        assert_eq!(given(&house, "x@sub.throwaway.example", "198.18.1.1").await, 0);
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_accounts_of_one_network_get_few() {
    for engine in Engine::both().await {
        let house = house(&engine.url, TRIAL).await;
        let mut sum = 0;
        for number in 0..6 {
            sum += given(&house, &format!("p{number}@example.com"), &format!("192.0.2.{number}")).await;
        }
        assert_eq!(sum, 3 * 2 * USD, "{}", engine.name);
        for number in 0..5 {
            let address = format!("2001:db8:7:{number}::1");
            sum += given(&house, &format!("six{number}@example.com"), &address).await;
        }
        assert_eq!(sum, 6 * 2 * USD, "a /48 is one network");
        house.clock.pass(86_400_000);
        assert_eq!(given(&house, "tomorrow@example.com", "192.0.2.9").await, 2 * USD, "another day");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_so_much_a_day_and_in_all() {
    let bounds =
        "[people.trial]\namount_usd = \"2\"\nper_network_per_day = 100\nusd_per_day = \"5\"\nusd_in_all = \"7\"\n";
    for engine in Engine::both().await {
        let house = house(&engine.url, bounds).await;
        let mut sums = Vec::new();
        for day in 0..3 {
            let mut sum = 0;
            for number in 0..3 {
                sum += given(&house, &format!("d{day}p{number}@example.com"), "192.0.2.1").await / USD;
            }
            sums.push(sum);
            house.clock.pass(86_400_000);
        }
        assert_eq!(sums, [4, 2, 0], "{}: two a day, and three in all", engine.name);
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_in_parallel_gives_it_once() {
    for engine in Engine::both().await {
        let house = house(&engine.url, TRIAL).await;
        let (person, token) = signed_up(&house, "ada@example.com").await;
        let all = (0..8).map(|number| {
            let (house, token, address) = (&house, token.clone(), format!("192.0.{number}.1"));
            async move { verify(house, &token, &address).await }
        });
        let statuses = futures_util::future::join_all(all).await;
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(trial_of(&house, &person).await, 2 * USD, "{}", engine.name);
        // And many people at once: the bound of a network is exact.
        let mut people = Vec::new();
        for number in 0..6 {
            people.push(signed_up(&house, &format!("p{number}@example.com")).await);
        }
        let all = people.iter().map(|(_, token)| verify(&house, token, "203.0.113.5"));
        assert!(futures_util::future::join_all(all).await.iter().all(|status| *status == 200));
        let mut sum = 0;
        for (person, _) in &people {
            sum += trial_of(&house, person).await;
        }
        assert_eq!(sum, 3 * 2 * USD, "{}", engine.name);
        house.quiet().await;
    }
}

/// Whoever is forgotten and comes back has had theirs.
#[tokio::test(flavor = "multi_thread")]
async fn coming_back_under_the_same_address_gives_nothing_more() {
    let house = house("sqlite", TRIAL).await;
    let (person, token) = signed_up(&house, "ada@example.com").await;
    assert_eq!(verify(&house, &token, "192.0.2.1").await, 200);
    assert_eq!(trial_of(&house, &person).await, 2 * USD);
    let file = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the file");
    file.busy_timeout(std::time::Duration::from_secs(30)).expect("set");
    for table in ["credential", "membership", "session", "mail_token"] {
        file.execute(&format!("DELETE FROM {table} WHERE person_id = ?1"), [person.id.0]).expect("deleted");
    }
    assert_eq!(file.execute("DELETE FROM person WHERE id = ?1", [person.id.0]).expect("deleted"), 1);
    drop(file);
    assert_eq!(given(&house, "ada@example.com", "198.51.100.1").await, 0);
    assert_eq!(given(&house, "ada+back@example.com", "198.51.100.1").await, 0);
}

/// The grant is written, and whoever wrote it died before the credit.
pub async fn trial_credit_is_made_up_for() {
    for engine in Engine::both().await {
        let mut house = house(&engine.url, TRIAL).await;
        let (person, token) = signed_up(&house, "ada@example.com").await;
        let store = house.running().app.store.clone();
        let new = tollgate_store::NewAccount {
            id: Some(AccountId(person.id.0)),
            name: "ada".to_owned(),
            ..Default::default()
        };
        let account = store.create_account(new).await.expect("an account").id;
        let limits = TrialLimits { per_block: 1, day: 10 * USD, total: 10 * USD };
        let grant = NewTrialGrant {
            account,
            amount: tollgate_catalog::Money::from_nano(2 * USD),
            expires_at: None,
            address_hash: [1; 32],
            block_hash: [2; 32],
            limits,
        };
        let hash = tollgate_gateway::people::tokens::token_hash(&token);
        assert!(store.verify_email(hash, &person, Some(account), Some(grant)).await.expect("written"));
        drop(store);
        house.restart().await;
        while trial_of(&house, &person).await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let store = &house.running().app.store;
        // Several at once, as replicas would, and again afterwards.
        let all = (0..4).map(|_| store.credit_trials());
        assert!(futures_util::future::join_all(all).await.iter().all(Result::is_ok));
        assert_eq!(trial_of(&house, &person).await, 2 * USD, "{}", engine.name);
        assert_eq!(store.trial_sums().await.expect("read").0, 1);
    }
}

/// Whoever closes an account that has nothing but trial credit, and comes back when it is
/// forgotten, gets no more of it.
#[tokio::test(flavor = "multi_thread")]
async fn closing_an_account_gives_no_second_trial() {
    let house = house("sqlite", TRIAL).await;
    let (person, token) = signed_up(&house, "ada@example.com").await;
    assert_eq!(verify(&house, &token, "192.0.2.1").await, 200);
    assert_eq!(trial_of(&house, &person).await, 2 * USD);
    let mut ada = Browser::new(&house);
    assert_eq!(ada.sign_in("ada@example.com", GOOD).await.status, 200);
    let body = json!({ "confirm": AccountId(person.id.0), "give_up_nano_usd": 2 * USD });
    let closed = ada.post("/api/account/close", body).await;
    assert_eq!(closed.status, 200, "{}", closed.body);
    house.later(tollgate_store::CLOSE_GRACE_MS + 60_000).await;
    let app = &house.running().app;
    let before = app.world.now_ms() - tollgate_store::CLOSE_GRACE_MS;
    assert_eq!(app.store.erase_closed(before).await.expect("erased"), 1);
    assert_eq!(trial_of(&house, &person).await, 0, "taken off");
    assert_eq!(given(&house, "ada+new@example.com", "198.51.100.7").await, 0, "one mailbox, once");
}
