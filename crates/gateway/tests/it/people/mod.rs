//! People: sessions, roles, mail, second factors and waits, over real sockets.

mod access;
mod authenticator;
mod closing;
mod csrf;
mod exports;
mod factors;
mod github;
mod github_server;
mod guessing;
mod issuer_server;
pub mod issuers;
mod keys;
pub mod mail;
mod members;
mod members_see;
pub mod passkeys;
mod passkeys_hostile;
pub mod sessions;
pub mod smtp;
pub mod trial;
mod views;

use crate::house::{House, Plan};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::{AccountId, AccountRole, Attribution, HouseRole, Membership, NewPerson, PersonRecord};

pub const GOOD: &str = "a lamp and nine stairs";
const CONFIG: &str = "[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nfolder = \"mail\"\n";

pub async fn house(database: &str) -> House {
    House::with(Plan { config: CONFIG.to_owned(), database: database.to_owned(), ..Plan::default() }).await
}

/// The same, where no time passes by itself.
pub async fn house_without_time(database: &str) -> House {
    let now = Some(1_800_000_000_000);
    House::with(Plan { config: CONFIG.to_owned(), database: database.to_owned(), now, ..Plan::default() }).await
}

pub fn test() -> Attribution {
    Attribution::by("test".to_owned(), "a test".to_owned())
}

/// Somebody at a browser: one cookie, and the page they are on.
pub struct Browser<'a> {
    pub house: &'a House,
    pub cookie: Option<String>,
}

/// Status, code of the error, and the whole body.
pub struct Answer {
    pub status: u16,
    pub code: String,
    pub body: Value,
    pub retry_after: Option<u32>,
}

impl<'a> Browser<'a> {
    pub fn new(house: &'a House) -> Browser<'a> {
        Browser { house, cookie: None }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method: Method = method.parse().expect("a method");
        let request = self.house.http.request(method, self.house.url(path));
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    /// From our own page.
    pub async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method, path).header("sec-fetch-site", "same-origin");
        let request = body.iter().fold(request, |request, body| request.json(body));
        let reply = request.send().await.expect("a reply");
        if let Some(set) = reply.headers().get("set-cookie") {
            let text = set.to_str().expect("text");
            assert!(text.contains("HttpOnly") && text.contains("SameSite=Lax") && text.contains("Path=/"), "{text}");
            self.cookie = text.split(';').next().map(str::to_owned).filter(|pair| !pair.ends_with('='));
        }
        answer(reply).await
    }

    /// The same with headers.
    pub async fn ask_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let request = self.request(method, path).header("sec-fetch-site", "same-origin");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = body.iter().fold(request, |request, body| request.json(body));
        answer(request.send().await.expect("a reply")).await
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, Some(body)).await
    }

    pub async fn sign_in(&mut self, email: &str, password: &str) -> Answer {
        self.post("/api/session", json!({ "email": email, "password": password })).await
    }
}

pub async fn answer(reply: reqwest::Response) -> Answer {
    let status = reply.status().as_u16();
    let retry_after = reply.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    // A stream of events has no end that is worth waiting for.
    let endless = reply.headers().get("content-type").is_some_and(|value| value == "text/event-stream");
    let body: Value = if endless { Value::Null } else { reply.json().await.unwrap_or_default() };
    let code = body["error"]["code"].as_str().unwrap_or_default().to_owned();
    Answer { status, code, body, retry_after }
}

/// A person with a password.
pub async fn person(
    house: &House,
    email: &str,
    house_role: Option<HouseRole>,
    membership: Option<(AccountId, AccountRole)>,
) -> PersonRecord {
    let app = &house.running().app;
    let hash = app.people.passwords.hash(GOOD.to_owned(), |salt| app.world.fill(salt)).await.expect("hashed");
    let new = NewPerson {
        email: email.to_owned(),
        name: String::new(),
        locale: "en".to_owned(),
        time_zone: String::new(),
        verified: true,
        wished_account: None,
        password: Some(hash),
        house_role,
        membership: membership.map(|(account, role)| Membership { account, role }),
        token: None,
        mail: None,
    };
    app.store.create_person(new, test()).await.expect("made").expect("a new e-mail")
}

/// Somebody who is signed in.
pub async fn signed_in<'a>(
    house: &'a House,
    email: &str,
    house_role: Option<HouseRole>,
    membership: Option<(AccountId, AccountRole)>,
) -> Browser<'a> {
    person(house, email, house_role, membership).await;
    let mut browser = Browser::new(house);
    let answer = browser.sign_in(email, GOOD).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    browser
}

/// The mail in the folder, the oldest first, once there is so much of it.
pub async fn letters(house: &House, count: usize) -> Vec<String> {
    let folder = house.dir.join("mail");
    let read = || {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path());
        let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "eml")).collect();
        files.sort();
        files
    };
    let wait = async {
        while read().len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(300), wait).await.expect("mail");
    read().iter().map(|path| std::fs::read_to_string(path).expect("text")).collect()
}

/// The token in a letter. Its text is quoted, with soft ends of lines, or base64 where it is
/// Chinese.
pub fn token_in(letter: &str) -> String {
    let mut plain = letter.replace("=\r\n", "").replace("=3D", "=");
    for part in letter.split("\r\n\r\n") {
        let packed: String = part.split("\r\n--").next().unwrap_or_default().split_whitespace().collect();
        if let Ok(bytes) = BASE64_STANDARD.decode(packed) {
            plain.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    let (_, after) = plain.split_once("#token=").expect("a token");
    after.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect()
}
