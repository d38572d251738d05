//! Letters by SMTP, to a server of the test that speaks it: over STARTTLS with a password, with
//! refusals for now and for good, and with a server that hangs.

use super::{Browser, person};
use crate::house::{House, Plan};

use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};

/// What the server does with the next letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Takes,
    /// `451`: come back later.
    Busy,
    /// `550`: never.
    Refuses,
    /// Takes the letter, and breaks off before it says so.
    Vanishes,
}

#[derive(Default)]
struct Seen {
    mood: Mood,
    letters: Vec<String>,
    /// Commands, in their order; passwords among them.
    lines: Vec<String>,
}

struct MailServer {
    port: u16,
    seen: Arc<Mutex<Seen>>,
    serving: tokio::task::JoinHandle<()>,
    /// The authority of its certificate, as PEM.
    authority: String,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl MailServer {
    async fn new() -> MailServer {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noted = seen.clone();
        #[expect(clippy::disallowed_methods, reason = "a server of the test, aborted when it is dropped")]
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), noted.clone());
                tokio::spawn(async move {
                    let mut plain = BufReader::new(stream);
                    if talk(&mut plain, &seen, false, true).await == Some(true) {
                        let Ok(tls) = acceptor.accept(plain.into_inner()).await else { return };
                        talk(&mut BufReader::new(tls), &seen, true, false).await;
                    }
                });
            }
        });
        MailServer { port, seen, serving, authority: made.cert.pem() }
    }

    fn mood(&self, mood: Mood) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).mood = mood;
    }

    fn letters(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).letters.clone()
    }

    fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).lines.clone()
    }
}

/// One conversation; whether the other side wants TLS now.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    seen: &Mutex<Seen>,
    encrypted: bool,
    greets: bool,
) -> Option<bool> {
    let note = |line: &str| seen.lock().unwrap_or_else(PoisonError::into_inner).lines.push(line.to_owned());
    if greets {
        stream.write_all(b"220 test ESMTP\r\n").await.ok()?;
    }
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return Some(false);
        }
        let line = line.trim_end().to_owned();
        note(&line);
        let mood = seen.lock().unwrap_or_else(PoisonError::into_inner).mood;
        let reply: &[u8] = match line.split(' ').next().unwrap_or_default().to_ascii_uppercase().as_str() {
            "EHLO" if encrypted => b"250-test\r\n250 AUTH PLAIN\r\n",
            "EHLO" => b"250-test\r\n250 STARTTLS\r\n",
            "STARTTLS" => {
                stream.write_all(b"220 go\r\n").await.ok()?;
                return Some(true);
            }
            "AUTH" if line.ends_with("AHBvc3QAbGV0dGVycw==") => b"235 welcome\r\n",
            "AUTH" => b"535 no\r\n",
            "RCPT" if mood == Mood::Busy => b"451 later\r\n",
            "RCPT" if mood == Mood::Refuses => b"550 nobody here\r\n",
            "DATA" => {
                stream.write_all(b"354 go\r\n").await.ok()?;
                let mut letter = String::new();
                while !letter.ends_with("\r\n.\r\n") {
                    if stream.read_line(&mut letter).await.ok()? == 0 {
                        return Some(false);
                    }
                }
                seen.lock().unwrap_or_else(PoisonError::into_inner).letters.push(letter);
                if mood == Mood::Vanishes {
                    return Some(false);
                }
                b"250 taken\r\n"
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n").await.ok()?;
                return Some(false);
            }
            _ => b"250 fine\r\n",
        };
        stream.write_all(reply).await.ok()?;
    }
}

async fn house(server: &MailServer, password: &str) -> House {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let (authority, secret) = (folder.join("ca.pem"), folder.join("password"));
    std::fs::write(&authority, &server.authority).expect("written");
    std::fs::write(&secret, password).expect("written");
    let config = format!(
        "[people]\nenabled = true\nsign_up = \"open\"\n[people.mail]\nsmtp = \"localhost\"\nport = {}\n\
         username = \"post\"\npassword_file = \"{}\"\nca_file = \"{}\"\nfrom = \"Gate <gate@example.com>\"\n",
        server.port,
        secret.display(),
        authority.display()
    );
    House::with(Plan { config, ..Plan::default() }).await
}

async fn forgot(house: &House) {
    let asked = Browser::new(house).post("/api/password/forgot", json!({ "email": "ada@example.com" })).await;
    assert_eq!(asked.status, 200, "{}", asked.body);
}

/// Until so many tries came to this.
async fn tried(house: &House, outcome: &'static str, count: u64) {
    let meter = &house.running().app.metrics.people;
    let wait = async {
        while meter.letters(outcome) < count {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(300), wait).await.expect(outcome);
}

pub async fn letters_go_by_starttls_with_a_password_and_again_after_a_refusal_for_now() {
    let server = MailServer::new().await;
    let house = house(&server, "letters\n").await;
    person(&house, "ada@example.com", None, None).await;
    server.mood(Mood::Busy);
    forgot(&house).await;
    tried(&house, "put_off", 1).await;
    assert!(server.letters().is_empty());
    server.mood(Mood::Takes);
    let app = &house.running().app;
    assert_eq!(app.store.mail_waiting().await.expect("read"), 1);
    house.later(31_000).await;
    app.people.ring();
    tried(&house, "sent", 1).await;
    let letters = server.letters();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].contains("To: ada@example.com") && letters[0].contains("From: "), "{}", letters[0]);
    let lines = server.lines();
    let at = |word: &str| lines.iter().position(|line| line.starts_with(word)).expect(word);
    assert!(at("STARTTLS") < at("AUTH") && at("AUTH") < at("MAIL"), "{lines:?}");
    // Once: the row is gone, and another look sends nothing.
    app.people.ring();
    house.later(62_000).await;
    app.people.ring();
    assert_eq!(tollgate_gateway::workers::mail::send_due(app).await.expect("looked"), 0);
    assert_eq!(server.letters().len(), 1);
    house.quiet().await;
}

pub async fn a_letter_that_is_refused_for_good_is_given_up() {
    let server = MailServer::new().await;
    let house = house(&server, "letters").await;
    person(&house, "ada@example.com", None, None).await;
    server.mood(Mood::Refuses);
    forgot(&house).await;
    tried(&house, "refused", 1).await;
    let app = &house.running().app;
    while app.store.mail_waiting().await.expect("read") > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(server.letters().is_empty());
}

/// Whether it came is not known: it is sent again, under the same name, and given up in a day.
pub async fn the_mail_server_breaks_off_or_is_down() {
    let server = MailServer::new().await;
    let house = house(&server, "letters").await;
    person(&house, "ada@example.com", None, None).await;
    let app = house.running().app.clone();
    server.mood(Mood::Vanishes);
    forgot(&house).await;
    tried(&house, "put_off", 1).await;
    house.later(31_000).await;
    app.people.ring();
    tried(&house, "put_off", 2).await;
    let named = |letter: &String| letter.lines().find(|line| line.starts_with("Message-ID")).map(str::to_owned);
    let letters = server.letters();
    assert_eq!(letters.len(), 2);
    assert_eq!(named(&letters[0]), named(&letters[1]), "whoever gets both sees that they are one");
    drop(server);
    house.later(200_000).await;
    app.people.ring();
    tried(&house, "put_off", 3).await;
    house.later(25 * 3_600_000).await;
    app.people.ring();
    tried(&house, "given_up", 1).await;
    while app.store.mail_waiting().await.expect("read") > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// A wrong password of ours is for the operator to mend: letters wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_of_ours_sends_nothing() {
    let server = MailServer::new().await;
    let house = house(&server, "wrong").await;
    person(&house, "ada@example.com", None, None).await;
    forgot(&house).await;
    tried(&house, "put_off", 1).await;
    assert!(server.letters().is_empty() && server.lines().iter().all(|line| !line.starts_with("MAIL")));
    assert_eq!(house.running().app.store.mail_waiting().await.expect("read"), 1);
}
