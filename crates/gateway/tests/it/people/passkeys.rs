//! Passkeys: added, shown, proved again with, removed; by every algorithm, on both databases.

use super::authenticator::{Algorithm, Saying, SoftPasskey};
use super::factors::code_of;
use super::{Answer, GOOD, answer, letters, person, test};
use crate::engine::Engine;
use crate::house::{House, Plan, second};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate_store::{HouseRole, PersonRecord};

const HOUR: i64 = 3_600_000;
const ALL: &str = "/api/session/passkeys";

const CONFIG: &str = "public_url = \"https://gate.example.com\"\n[people]\nenabled = true\nsign_up = \"open\"\n\
    [people.mail]\nfolder = \"mail\"\n[people.passkeys]\nrp_name = \"Gate\"\n";

pub async fn house(database: &str) -> House {
    house_of(database, CONFIG).await
}

async fn house_of(database: &str, config: &str) -> House {
    // PostgreSQL has a clock of its own.
    let now = (database == "sqlite").then_some(1_800_000_000_000);
    House::with(Plan { config: config.to_owned(), database: database.to_owned(), now, ..Plan::default() }).await
}

/// A browser with all its cookies, on a page of ours, at one of the replicas.
pub struct Pocket<'a> {
    pub house: &'a House,
    base: String,
    pub cookies: BTreeMap<String, String>,
}

impl<'a> Pocket<'a> {
    pub fn new(house: &'a House) -> Pocket<'a> {
        Pocket { house, base: house.url(""), cookies: BTreeMap::new() }
    }

    /// The same browser, sent to another replica.
    fn at(&self, base: String) -> Pocket<'a> {
        Pocket { house: self.house, base, cookies: self.cookies.clone() }
    }

    pub async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let all: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = self.house.http.request(method.parse().expect("a method"), format!("{}{path}", self.base));
        let request = request.header("sec-fetch-site", "same-origin").header("cookie", all.join("; "));
        let request = body.iter().fold(request, |request, body| request.json(body));
        let reply = request.send().await.expect("a reply");
        for set in reply.headers().get_all("set-cookie") {
            let text = set.to_str().expect("text");
            for word in ["HttpOnly", "SameSite=Lax", "Path=/", "Secure", "__Host-"] {
                assert!(text.contains(word), "{word}: {text}");
            }
            let (name, value) = text.split(';').next().and_then(|pair| pair.split_once('=')).expect("a pair");
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer(reply).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, Some(body)).await
    }

    pub async fn begin(&mut self, what: &str) -> Value {
        let begun = self.post(&format!("{ALL}{what}/start"), json!({})).await;
        assert_eq!(begun.status, 200, "{what}: {}", begun.body);
        begun.body
    }

    pub async fn add(&mut self, name: &str, passkey: &mut SoftPasskey) -> Answer {
        let said = passkey.create(&self.begin("").await);
        self.post(ALL, json!({ "name": name, "credential": said.made() })).await
    }

    pub async fn sign_in(&mut self, passkey: &mut SoftPasskey) -> Answer {
        let said = passkey.get(&self.begin("/sign-in").await);
        self.show("/sign-in", &said, passkey).await
    }

    pub async fn step_up(&mut self, passkey: &mut SoftPasskey) -> Answer {
        let said = passkey.get(&self.begin("/step-up").await);
        self.show("/step-up", &said, passkey).await
    }

    pub async fn show(&mut self, what: &str, said: &Saying, by: &SoftPasskey) -> Answer {
        self.post(&format!("{ALL}{what}"), json!({ "credential": said.shown(by) })).await
    }

    pub async fn list(&mut self) -> Vec<Value> {
        let listed = self.ask("GET", ALL, None).await;
        assert_eq!(listed.status, 200, "{}", listed.body);
        listed.body["data"].as_array().cloned().expect("a list")
    }
}

/// Somebody who is signed in by a password.
pub async fn at_desk<'a>(house: &'a House, email: &str, role: Option<HouseRole>) -> (Pocket<'a>, PersonRecord) {
    let person = person(house, email, role, None).await;
    let mut pocket = Pocket::new(house);
    let signed = pocket.post("/api/session", json!({ "email": email, "password": GOOD })).await;
    assert_eq!(signed.status, 200, "{}", signed.body);
    (pocket, person)
}

/// What the log says was done, the newest first.
async fn log(operator: &mut Pocket<'_>) -> Vec<String> {
    let log = operator.ask("GET", "/api/admin/audit?limit=100", None).await.body;
    let all = log["data"].as_array().expect("a log").iter();
    all.filter_map(|row| row["action"].as_str()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn added_shown_proved_again_and_removed() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let shown = Pocket::new(&house).ask("GET", "/api/sign-up", None).await.body;
        assert_eq!(shown["passkeys"], true);
        let (mut ada, who) = at_desk(&house, "ada@example.com", Some(HouseRole::Operator)).await;
        for algorithm in [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256] {
            let mut passkey = SoftPasskey::new(algorithm);
            passkey.synced = algorithm != Algorithm::Rs256;
            let added = ada.add(&format!("{algorithm:?}"), &mut passkey).await;
            assert_eq!(added.status, 200, "{algorithm:?}: {}", added.body);
            assert_eq!((&added.body["used_at_ms"], &added.body["usable"]), (&json!(null), &json!(true)));
            assert_eq!(added.body["transports"], json!(["internal", "hybrid"]), "known words, each once");
            assert_eq!(passkey.handle, who.id.0);
            // Without an e-mail, without a second factor; and it is strong.
            let mut phone = Pocket::new(&house);
            let signed = phone.sign_in(&mut passkey).await;
            assert_eq!(signed.status, 200, "{algorithm:?}: {}", signed.body);
            assert_eq!(signed.body["person"]["person_id"], json!(who.id));
            assert_eq!(signed.body["strong"], true);
            assert!(!phone.cookies.contains_key("__Host-tollgate-passkey"), "the ceremony has ended");
        }
        let listed = ada.list().await;
        assert_eq!(listed.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["Es256", "EdDsa", "Rs256"]);
        assert_eq!(listed.iter().map(|one| &one["backed_up"]).collect::<Vec<_>>(), [true, true, false]);
        assert!(listed.iter().all(|one| one["used_at_ms"].is_i64() && one["suspected_at_ms"].is_null()), "{listed:?}");
        assert!(!json!(listed).to_string().contains("public_key"), "{listed:?}");
        assert_eq!(ada.ask("GET", "/api/session", None).await.body["passkeys"], 3);

        // Names are theirs to choose.
        let path = format!("{ALL}/{}", listed[0]["passkey_id"].as_str().expect("an id"));
        assert_eq!(ada.ask("PATCH", &path, Some(json!({ "name": " My phone " }))).await.status, 200);
        assert_eq!(ada.list().await[0]["name"], "My phone");
        assert_eq!(ada.ask("PATCH", &path, Some(json!({ "name": "" }))).await.body["error"]["param"], "name");
        // Coming and going is a matter for who has just proved who they are.
        house.later(11 * 60_000).await;
        assert_eq!(ada.post(&format!("{ALL}/start"), json!({})).await.code, "step_up_required");
        assert_eq!(ada.ask("DELETE", &path, None).await.code, "step_up_required");
        let fresh = ada.post("/api/session/step-up", json!({ "password": GOOD })).await;
        assert_eq!(fresh.status, 200, "{}", fresh.body);
        assert_eq!(ada.ask("DELETE", &path, None).await.status, 200);
        assert_eq!(ada.ask("DELETE", &path, None).await.status, 404);
        assert_eq!(ada.list().await.len(), 2);
        // Three came and one went, and each time its owner heard of it.
        let letters = letters(&house, 4).await;
        let subjects = letters.iter().filter(|letter| letter.contains("A passkey was added")).count();
        assert_eq!((letters.len(), subjects), (4, 3), "{letters:?}");
        let log = log(&mut ada).await;
        let count = |word: &str| log.iter().filter(|one| *one == word).count();
        assert_eq!(
            [count("person.passkey_add"), count("person.passkey_rename"), count("person.passkey_remove")],
            [3, 1, 1],
            "{log:?}"
        );
        let page = house.http.get(house.url("/metrics")).send().await.expect("a page").text().await.expect("text");
        assert!(page.contains("tollgate_sign_ins_total{by=\"passkey\",ending=\"passed\"} 3"), "{page}");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_up_by_a_passkey_needs_neither_password_nor_code() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, _) = at_desk(&house, "ada@example.com", None).await;
        assert_eq!(ada.post(&format!("{ALL}/step-up/start"), json!({})).await.status, 409, "there is none yet");
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        assert_eq!(ada.add("phone", &mut passkey).await.status, 200);
        let proposed = ada.post("/api/session/totp", json!({})).await.body;
        let code = code_of(proposed["secret"].as_str().expect("a secret"), house.running().app.world.now_ms());
        assert_eq!(ada.post("/api/session/totp/confirm", json!({ "code": code })).await.status, 200);
        house.later(11 * 60_000).await;
        assert_eq!(ada.post("/api/session/totp/recovery-codes", json!({})).await.code, "step_up_required");
        let before = ada.cookies.clone();
        let options = ada.begin("/step-up").await;
        let allowed = &options["publicKey"]["allowCredentials"];
        assert_eq!(allowed[0]["id"], super::authenticator::packed(&passkey.id), "{options}");
        // A browser may leave out whose it is: that is known here.
        let said = Saying { handle: None, ..passkey.get(&options) };
        let strong = ada.show("/step-up", &said, &passkey).await;
        assert_eq!((strong.status, &strong.body["strong"]), (200, &json!(true)), "{}", strong.body);
        let (name, _) = before.iter().find(|(name, _)| *name == "__Host-tollgate").expect("a session");
        assert_ne!(ada.cookies[name], before[name], "another value");
        assert_eq!(ada.post("/api/session/totp/recovery-codes", json!({})).await.status, 200);
        let mut old = Pocket::new(&house);
        old.cookies = before;
        assert_eq!(old.ask("GET", "/api/session", None).await.code, "not_signed_in");
        // Whoever signs in by it is asked for no code: it is both factors.
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.body["strong"], true);
        house.quiet().await;
    }
}

/// Two replicas, one answer, sent to both at once and again: one session.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_over_all_replicas() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
        let other = if engine.name == "postgres" {
            let data = house.dir.join("second/data");
            std::fs::create_dir_all(&data).expect("a folder");
            std::fs::copy(house.dir.join("data/secrets.key"), data.join("secrets.key")).expect("copied");
            Some(second(&house).await)
        } else {
            None
        };
        let there = other.as_ref().map_or_else(|| house.url(""), |other| format!("http://{}", other.address));
        // Authenticators that do not count are the common ones: nothing but the challenge is once.
        let mut passkey = SoftPasskey::new(Algorithm::EdDsa);
        let said = passkey.create(&ada.begin("").await);
        let wish = json!({ "name": "phone", "credential": said.made() });
        let mut twin = ada.at(there.clone());
        let (one, two) = tokio::join!(ada.post(ALL, wish.clone()), twin.post(ALL, wish));
        let mut both = [one.status, two.status];
        both.sort_unstable();
        assert_eq!(both, [200, 403], "{}: {} {}", engine.name, one.body, two.body);
        // Two rounds: five attempts that fail are free, and no more than four fail here.
        for round in 0..2 {
            let mut phone = Pocket::new(&house);
            let said = Saying { count: 0, ..passkey.get(&phone.begin("/sign-in").await) };
            let body = json!({ "credential": said.shown(&passkey) });
            let mut twin = phone.at(there.clone());
            let mut late = phone.at(there.clone());
            let path = format!("{ALL}/sign-in");
            let (one, two) = tokio::join!(phone.post(&path, body.clone()), twin.post(&path, body.clone()));
            let mut both = [one.status, two.status];
            both.sort_unstable();
            assert_eq!(both, [200, 403], "{} {round}: {} {}", engine.name, one.body, two.body);
            let again = late.post(&path, body).await;
            assert_eq!((again.status, again.code.as_str()), (403, "token_invalid"), "{}", again.body);
        }
        let stored = house.running().app.store.passkeys(who.id).await.expect("read");
        assert_eq!((stored.len(), stored[0].suspected_at), (1, None), "a repetition is no copy");
        assert_eq!(house.running().app.store.sessions(who.id).await.expect("read").len(), 3);
        if let Some(other) = other {
            other.stop().await;
        }
        house.quiet().await;
    }
}

/// A copy of a passkey counts for itself. What was there first goes on; the rest is in the log,
/// once.
pub async fn the_counter_of_a_passkey_goes_back() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, _) = at_desk(&house, "ada@example.com", Some(HouseRole::Operator)).await;
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        assert_eq!(ada.add("key", &mut passkey).await.status, 200);
        passkey.count = 7;
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.status, 200, "8");
        for count in [8, 3, 0, 7] {
            let mut thief = Pocket::new(&house);
            let said = Saying { count, ..passkey.get(&thief.begin("/sign-in").await) };
            let refused = thief.show("/sign-in", &said, &passkey).await;
            assert_eq!((refused.status, refused.code.as_str()), (401, "sign_in_failed"), "{}", refused.body);
            assert!(refused.body["error"]["message"].as_str().is_some_and(|text| text.contains("counter")));
            assert!(!thief.cookies.contains_key("__Host-tollgate"));
        }
        let listed = ada.list().await;
        assert!(listed[0]["suspected_at_ms"].is_i64(), "{listed:?}");
        let noted = log(&mut ada).await.iter().filter(|one| *one == "person.passkey_suspected").count();
        assert_eq!(noted, 1, "{}", engine.name);
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.status, 200, "the right one goes on");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_in_stays_and_there_is_a_most() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let app = &house.running().app;
        // Somebody who has no password: by a one-time link.
        let new = tollgate_store::NewPerson {
            email: "bob@example.com".to_owned(),
            name: "Bob".to_owned(),
            locale: "zh".to_owned(),
            time_zone: String::new(),
            verified: true,
            wished_account: None,
            password: None,
            house_role: None,
            membership: None,
            token: None,
            mail: None,
        };
        let who = app.store.create_person(new, test()).await.expect("made").expect("a person");
        let token = tollgate_gateway::people::tokens::OneTimeToken::new(|bytes| bytes.fill(5));
        let purpose = tollgate_store::TokenPurpose::SignIn;
        let expires_at = app.world.now_ms() + HOUR;
        let stored = tollgate_store::NewMailToken { hash: token.hash, purpose, expires_at };
        app.store.link_person(stored, &who, test()).await.expect("a link");
        let mut bob = Pocket::new(&house);
        assert_eq!(bob.post("/api/session/link", json!({ "token": token.text })).await.status, 200);
        let mut first = SoftPasskey::new(Algorithm::EdDsa);
        assert_eq!(bob.add("first", &mut first).await.status, 200);
        let id = |one: &Value| format!("{ALL}/{}", one["passkey_id"].as_str().expect("an id"));
        let oldest = id(&bob.list().await[0]);
        let last = bob.ask("DELETE", &oldest, None).await;
        assert_eq!((last.status, last.code.as_str()), (409, "conflict"), "{}", last.body);
        let mut second = SoftPasskey::new(Algorithm::EdDsa);
        assert_eq!(bob.add("second", &mut second).await.status, 200);
        assert_eq!(bob.ask("DELETE", &oldest, None).await.status, 200);
        assert_eq!(Pocket::new(&house).sign_in(&mut first).await.code, "sign_in_failed", "it is gone");
        assert_eq!(Pocket::new(&house).sign_in(&mut second).await.status, 200);
        // Twenty at most. What comes and goes too fast waits, because each sends a letter.
        let mut hour = 0;
        while bob.list().await.len() < 20 {
            let mut more = SoftPasskey::new(Algorithm::EdDsa);
            let added = bob.add("more", &mut more).await;
            if added.status == 429 {
                hour += 2;
                house.later(hour * HOUR).await;
                assert_eq!(bob.step_up(&mut second).await.status, 200);
                continue;
            }
            assert_eq!(added.status, 200, "{}", added.body);
        }
        // By the clock of PostgreSQL a minute may pass by itself.
        assert!(hour > 0 || engine.name == "postgres", "nobody waited");
        assert_eq!(bob.post(&format!("{ALL}/start"), json!({})).await.code, "conflict");
        // Also for whoever began before there were so many.
        let made = app.store.passkeys(who.id).await.expect("read").len();
        assert_eq!(made, 20);
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_remove_them_and_who_is_locked_out_stays_out() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut operator, _) = at_desk(&house, "op@example.com", Some(HouseRole::Operator)).await;
        let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        assert_eq!(ada.add("phone", &mut passkey).await.status, 200);
        let lock = |disabled: bool| json!({ "disabled": disabled, "reason": "asked for" });
        let path = format!("/api/admin/people/{}", who.id);
        assert_eq!(operator.ask("PATCH", &path, Some(lock(true))).await.status, 200);
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.code, "sign_in_failed");
        assert_eq!(operator.ask("PATCH", &path, Some(lock(false))).await.status, 200);
        let mut phone = Pocket::new(&house);
        assert_eq!(phone.sign_in(&mut passkey).await.status, 200);
        let remove = format!("{path}/passkeys/remove");
        assert_eq!(operator.post(&remove, json!({})).await.body["error"]["param"], "reason");
        assert_eq!(operator.post(&remove, json!({ "reason": "lost her phone" })).await.status, 200);
        assert_eq!(phone.ask("GET", "/api/session", None).await.code, "not_signed_in");
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.code, "sign_in_failed");
        assert!(log(&mut operator).await.contains(&"person.passkeys_remove".to_owned()));
        house.later(11 * 60_000).await;
        assert_eq!(operator.post(&remove, json!({ "reason": "again" })).await.code, "step_up_required");
        // A passkey that is gone can be added again.
        let signed = ada.post("/api/session", json!({ "email": "ada@example.com", "password": GOOD })).await;
        assert_eq!(signed.status, 200, "{}", signed.body);
        assert_eq!(ada.add("phone", &mut passkey).await.status, 200);
        house.quiet().await;
    }
}

/// The first answer is the same for everybody, and guesses wait.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_who_is_here_and_guesses_wait() {
    let house = house("sqlite").await;
    let (mut ada, _) = at_desk(&house, "ada@example.com", None).await;
    let mut passkey = SoftPasskey::new(Algorithm::Es256);
    assert_eq!(ada.add("phone", &mut passkey).await.status, 200);
    let mut seen = Vec::new();
    for mut browser in [Pocket::new(&house), ada.at(house.url(""))] {
        let mut options = browser.begin("/sign-in").await;
        options["publicKey"]["challenge"] = json!(null);
        seen.push(options);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0]["publicKey"]["allowCredentials"], json!([]));
    // Whether a passkey is unknown, or known and not theirs, the answer is the same.
    let mut unknown = SoftPasskey::new(Algorithm::Es256);
    unknown.handle = passkey.handle.clone();
    let mut refusals = Vec::new();
    for forged in [false, true] {
        let mut thief = Pocket::new(&house);
        let mut said = unknown.get(&thief.begin("/sign-in").await);
        if forged {
            said.id = passkey.id.clone();
        }
        let refused = thief.show("/sign-in", &said, &unknown).await;
        refusals.push((refused.status, refused.body));
    }
    assert_eq!(refusals[0], refusals[1]);
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let mut thief = Pocket::new(&house);
        let said = Saying { id: passkey.id.clone(), ..unknown.get(&thief.begin("/sign-in").await) };
        statuses.push(thief.show("/sign-in", &said, &unknown).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 401, 429, 429], "the first was above");
    house.later(2 * HOUR).await;
    assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.status, 200, "its owner comes in");
    // Beginning leaves nothing behind: no row, whoever begins.
    let before = house.running().app.people.waits.len();
    for _ in 0..500 {
        Pocket::new(&house).begin("/sign-in").await;
    }
    assert_eq!(house.running().app.people.waits.len(), before);
    let file = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the file");
    let ended: i64 = file.query_row("SELECT count(*) FROM issuer_way", [], |row| row.get(0)).expect("a number");
    assert!(ended <= 2, "those that ended: {ended}");
}

/// Without the table there is nothing; under another domain they are shown, and let nobody in.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_there_is_nothing_and_a_move_leaves_them_behind() {
    let off = CONFIG.replace("rp_name = \"Gate\"", "enabled = false");
    let house = house_of("sqlite", &off).await;
    let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
    for (method, path) in [
        ("POST", "/sign-in/start"),
        ("POST", "/step-up/start"),
        ("POST", "/start"),
        ("GET", ""),
        ("DELETE", "/pkey_00000000000000000000000000"),
    ] {
        assert_eq!(ada.ask(method, &format!("{ALL}{path}"), None).await.status, 404, "{path}");
    }
    assert_eq!(ada.ask("GET", "/api/sign-up", None).await.body["passkeys"], false);
    drop(ada);
    drop(house);
    let _ = who;
    let house = self::house("sqlite").await;
    let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
    let mut passkey = SoftPasskey::new(Algorithm::Es256);
    let made = ada.begin("").await;
    let credential = passkey.create(&made);
    let new = tollgate_store::NewPasskey {
        name: "old".to_owned(),
        credential_id: passkey.id.clone(),
        public_key: credential.cose.clone(),
        rp_id: "old.example.com".to_owned(),
        sign_count: 0,
        transports: Vec::new(),
        backup_eligible: false,
        backed_up: false,
    };
    let way = tollgate_store::UsedWay { hash: [1; 32], expires_at: i64::MAX };
    house.running().app.store.add_passkey(&who, new, way, None).await.expect("added");
    assert_eq!(ada.list().await[0]["usable"], false);
    assert_eq!(ada.ask("GET", "/api/session", None).await.body["passkeys"], 0);
    assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.code, "sign_in_failed");
    assert_eq!(ada.post(&format!("{ALL}/step-up/start"), json!({})).await.status, 409);
}
