//! Hands letters over: to an SMTP server, or into a folder, a file each.

use super::letter::Letter;
use crate::settings::{MailSettings, MailSink, MailTls};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A server that does not answer for so long is asked again later.
const PATIENCE: Duration = Duration::from_secs(30);

/// Letters that were handed over and still wait in the store; more are forgotten, and may come
/// twice.
const MOST_HANDED_OVER: usize = 10_000;

pub struct Post {
    sender: Option<Sender>,
    handed_over: Mutex<HashSet<[u8; 16]>>,
}

struct Sender {
    from: String,
    way: Way,
}

enum Way {
    Folder(PathBuf),
    Smtp(Box<AsyncSmtpTransport<Tokio1Executor>>),
    /// The settings name a server that cannot be used; why is in the log.
    Nothing,
}

/// Why a letter was not handed over. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    #[error("the letter has an address that mail cannot go to")]
    Address,
    #[error("the server refused it for good: {0}")]
    Refused(String),
    #[error("{0}")]
    Later(String),
}

impl Post {
    pub fn new(settings: Option<&MailSettings>) -> Post {
        let sender = |settings: &MailSettings| {
            let way = match &settings.to {
                MailSink::Folder(folder) => Way::Folder(folder.clone()),
                MailSink::Smtp { .. } => match smtp(&settings.to) {
                    Ok(transport) => Way::Smtp(Box::new(transport)),
                    Err(error) => {
                        tracing::error!(%error, "[people.mail]: the server cannot be used");
                        Way::Nothing
                    }
                },
            };
            Sender { from: settings.from.clone(), way }
        };
        Post { sender: settings.map(sender), handed_over: Mutex::default() }
    }

    /// Whether there is a way at all.
    pub fn sends(&self) -> bool {
        self.sender.is_some()
    }

    /// A server took it. Until the store knows that, it is remembered here.
    pub fn handed_over(&self, id: [u8; 16]) {
        let mut all = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_HANDED_OVER {
            all.insert(id);
        }
    }

    pub fn was_handed_over(&self, id: [u8; 16]) -> bool {
        self.handed_over.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    pub fn forget(&self, id: [u8; 16]) {
        self.handed_over.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// `id` is the same when it is handed over again.
    pub async fn send(&self, id: &str, letter: &Letter, now_ms: i64) -> Result<(), NotSent> {
        let Some(sender) = &self.sender else { return Err(NotSent::Later("there is no [people.mail]".to_owned())) };
        let message = message(&sender.from, id, letter, now_ms).ok_or(NotSent::Address)?;
        match &sender.way {
            Way::Folder(folder) => {
                let (folder, name, bytes) = (folder.clone(), format!("{id}.eml"), message.formatted());
                let written = tokio::task::spawn_blocking(move || write(&folder, &name, &bytes)).await;
                written.map_err(|_| later("the folder"))?.map_err(|error| NotSent::Later(error.to_string()))
            }
            Way::Smtp(transport) => {
                let sent = tokio::time::timeout(PATIENCE, transport.send(message)).await;
                let sent = sent.map_err(|_| later("the server does not answer"))?;
                sent.map(drop).map_err(|error| match error.is_permanent() && !is_ours(&error) {
                    true => NotSent::Refused(reason(&error)),
                    false => NotSent::Later(reason(&error)),
                })
            }
            Way::Nothing => Err(later("the server cannot be used")),
        }
    }
}

fn later(why: &str) -> NotSent {
    NotSent::Later(why.to_owned())
}

/// The server does not take us: that is for the operator to mend, and no letter is given up for it.
fn is_ours(error: &lettre::transport::smtp::Error) -> bool {
    error.status().is_some_and(|code| ["530", "534", "535", "538"].contains(&code.to_string().as_str()))
}

/// The number of a server's answer; its words may repeat what it was sent.
fn reason(error: &lettre::transport::smtp::Error) -> String {
    match error.status() {
        Some(code) => format!("answer {code}"),
        None if error.is_timeout() => "no answer in time".to_owned(),
        None if error.is_tls() => "TLS failed".to_owned(),
        None => "the connection failed".to_owned(),
    }
}

fn smtp(to: &MailSink) -> Result<AsyncSmtpTransport<Tokio1Executor>, lettre::transport::smtp::Error> {
    let MailSink::Smtp { host, port, tls, username, password, authority } = to else {
        return Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous("localhost").build());
    };
    let builder = match tls {
        MailTls::StartTls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host)?,
        MailTls::Tls => AsyncSmtpTransport::<Tokio1Executor>::relay(host)?,
        MailTls::None => AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host),
    };
    let builder = match (authority, tls) {
        (Some(pem), MailTls::StartTls | MailTls::Tls) => {
            let trusted = Certificate::from_pem(pem.as_bytes())?;
            let parameters = TlsParameters::builder(host.clone()).add_root_certificate(trusted).build()?;
            builder.tls(if *tls == MailTls::Tls { Tls::Wrapper(parameters) } else { Tls::Required(parameters) })
        }
        _ => builder,
    };
    let builder = builder.port(*port).timeout(Some(PATIENCE));
    let credentials = username.clone().zip(password.clone());
    Ok(match credentials {
        Some((username, password)) => builder.credentials(Credentials::new(username, password.0)).build(),
        None => builder.build(),
    })
}

fn message(from: &str, id: &str, letter: &Letter, now_ms: i64) -> Option<Message> {
    let from: Mailbox = from.parse().ok()?;
    let domain = from.email.domain().to_owned();
    let to = Mailbox::new(None, letter.to.parse().ok()?);
    let written = letter.written();
    let date = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms.max(0).unsigned_abs());
    let builder = Message::builder().from(from).to(to).date(date).message_id(Some(format!("<{id}@{domain}>")));
    builder.subject(written.subject).multipart(MultiPart::alternative_plain_html(written.text, written.html)).ok()
}

/// Whole or not at all, and for its owner alone.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let fresh = folder.join(format!("{name}.new"));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, folder.join(name))
}

/// Whether mail can go to an address, as far as its text says.
pub fn is_address(text: &str) -> bool {
    text.len() <= 254 && text.parse::<lettre::Address>().is_ok_and(|address| address.domain().contains('.'))
}
