//! What signing in needs beside the store: passwords, passkeys, second factors, waits against
//! guessing, and mail. Endpoints put it together; nothing here knows HTTP.

mod common;
pub mod issuers;
pub mod letter;
pub mod passkeys;
pub mod passwords;
pub mod post;
pub mod tokens;
pub mod totp;
pub mod trial;
pub mod waits;

use crate::people_meter::PeopleMeter;
use crate::secrets::Secrets;
use crate::settings::PeopleSettings;
use issuers::IssuerDesk;
use letter::Letter;
use passkeys::PasskeyDesk;
use passwords::Passwords;
use post::Post;
use std::sync::Arc;
use tokio::sync::Notify;
use waits::GuardedWaits;

/// Mail that waits at most; more is refused, or waits to be written.
pub const MOST_MAIL: i64 = 10_000;

/// The desk of people: what is shared by all who sign in.
pub struct PeopleDesk {
    pub passwords: Passwords,
    pub waits: GuardedWaits,
    pub post: Post,
    pub issuers: IssuerDesk,
    pub passkeys: PasskeyDesk,
    secrets: Arc<Secrets>,
    /// Mail was queued.
    bell: Notify,
}

impl PeopleDesk {
    pub fn new(settings: &PeopleSettings, secrets: Arc<Secrets>, meter: PeopleMeter) -> PeopleDesk {
        let post = Post::new(settings.mail.as_ref());
        PeopleDesk {
            passwords: Passwords::default(),
            waits: GuardedWaits::counting(meter),
            post,
            issuers: IssuerDesk::new(&settings.issuers, secrets.clone()),
            passkeys: PasskeyDesk::new(settings.passkeys.as_ref(), secrets.clone()),
            secrets,
            bell: Notify::new(),
        }
    }

    /// A letter as it waits in the store: sealed, because there is a token in it. `None`: there is
    /// no mail here.
    pub fn sealed(&self, letter: &Letter, fill: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
        if !self.post.sends() {
            return None;
        }
        let text = serde_json::to_vec(letter).ok()?;
        self.secrets.seal("mail", "", &text, fill)
    }

    pub fn opened(&self, sealed: &[u8]) -> Option<Letter> {
        serde_json::from_slice(&self.secrets.open_sealed("mail", "", sealed)?).ok()
    }

    /// Somebody's second factor as it is stored.
    pub fn seal_totp(&self, whose: &str, secret: &[u8], fill: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
        self.secrets.seal("totp", whose, secret, fill)
    }

    pub fn open_totp(&self, whose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.secrets.open_sealed("totp", whose, sealed)
    }

    /// Mail that was queued is sent at once.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}
