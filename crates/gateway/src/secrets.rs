//! The secrets that sign links and webhooks, and that seal second factors and mail of people. They
//! stand in a file, one per line: the first signs, all are believed, so that one is exchanged by
//! writing the new one above the old one and taking the old one away when what it signed has
//! ended. The running gateway takes a changed file over.
//!
//! Without a file one is made at the first start, in the data folder. Replicas share one file, or
//! each other's links do not open. The database knows the names of the secrets it was served with:
//! a file that was lost, or is another one, ends every webhook secret and signed link, and is not
//! replaced in silence.

use crate::cannot_start::CannotStart;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::{aead, hmac};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use tollgate_store::Store;

/// A line shorter than this is no secret.
const SHORTEST: usize = 32;

/// Neither printed nor sent.
pub struct Secrets(ArcSwap<SecretLines>);

/// What a file says: never empty, the one that signs first.
pub struct SecretLines(Vec<hmac::Key>);

impl SecretLines {
    /// Reads a file that must be there.
    pub fn open(path: &Path) -> io::Result<SecretLines> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        SecretLines::read(&text).ok_or_else(|| {
            let why = format!("{}: each line must be a secret of at least {SHORTEST} characters", path.display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }

    /// One secret per line; empty lines and lines with a `#` in front do not count.
    fn read(text: &str) -> Option<SecretLines> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<&str> = lines.collect();
        let good = !lines.is_empty() && lines.iter().all(|line| line.len() >= SHORTEST);
        let key = |line: &&str| hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes());
        good.then(|| SecretLines(lines.iter().map(key).collect()))
    }

    /// What the secrets are called, the one that signs first.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(name).collect()
    }
}

/// What becomes of secrets that the database does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// One process, one folder: the file belongs to the database.
    Refused,
    /// Replicas may have secrets of their own, though they should not.
    Reported,
    /// The operator says so.
    Welcome,
}

impl Secrets {
    /// Reads the file, or makes it where the database was never served with any.
    pub fn open(path: &Path, known: &[String], others: Others, fill: impl Fn(&mut [u8])) -> io::Result<Secrets> {
        let missing = !path.exists();
        if missing && !known.is_empty() {
            suspicious(path, "is missing, and this database was served with secrets before", others)?;
        }
        if missing {
            make(path, fill)?;
        }
        let lines = SecretLines::open(path)?;
        if !missing && !known.is_empty() && !lines.names().iter().any(|name| known.contains(name)) {
            suspicious(path, "has none of the secrets that this database was served with", others)?;
        }
        Ok(Secrets::of(lines))
    }

    /// Reads the file for this database, and has the database remember what is in it.
    pub async fn of_store(
        store: &Store,
        path: &Path,
        others: Others,
        fill: impl Fn(&mut [u8]),
    ) -> Result<Secrets, CannotStart> {
        let known = store.signing_secrets().await?;
        let secrets = Secrets::open(path, &known, others, fill)?;
        let names = secrets.0.load().names();
        if names.iter().any(|name| !known.contains(name)) {
            store.note_signing_secrets(names).await?;
        }
        Ok(secrets)
    }

    pub fn read(text: &str) -> Option<Secrets> {
        SecretLines::read(text).map(Secrets::of)
    }

    fn of(lines: SecretLines) -> Secrets {
        Secrets(ArcSwap::from_pointee(lines))
    }

    /// From now on these sign and are believed, and no others.
    pub fn take_over(&self, lines: SecretLines) {
        self.0.store(Arc::new(lines));
    }

    /// A signature that stands in an address. `purpose` keeps what is signed for one use from being
    /// used for another.
    pub fn sign(&self, purpose: &str, text: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&self.0.load().0[0], &labelled(purpose, text)))
    }

    /// Whether one of the secrets has signed this; takes the same time whatever is wrong with it.
    pub fn has_signed(&self, purpose: &str, text: &str, signature: &str) -> bool {
        let Ok(given) = BASE64_URL_SAFE_NO_PAD.decode(signature) else { return false };
        self.0.load().0.iter().any(|key| hmac::verify(key, &labelled(purpose, text), &given).is_ok())
    }

    /// A signature that also says which of the secrets made it, for what is stored longer than
    /// secrets may be.
    pub fn mark(&self, purpose: &str, text: &str) -> String {
        let lines = self.0.load();
        let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&lines.0[0], &labelled(purpose, text)));
        format!("{}.{signature}", name(&lines.0[0]))
    }

    /// Whether this text has this mark. `None`: the secret it was made with is not here, or it is
    /// no mark.
    pub fn has_mark(&self, purpose: &str, text: &str, mark: &str) -> Option<bool> {
        let (of, signature) = mark.split_once('.')?;
        let given = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let lines = self.0.load();
        let key = lines.0.iter().find(|key| name(key) == of)?;
        Some(hmac::verify(key, &labelled(purpose, text), &given).is_ok())
    }

    /// Hides what is stored, so that whoever reads the database alone reads nothing. `purpose` and
    /// `whose` must be the same when it is opened.
    pub fn seal(&self, purpose: &str, whose: &str, plain: &[u8], fill: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
        let mut nonce = [0; aead::NONCE_LEN];
        fill(&mut nonce);
        let mut text = plain.to_vec();
        let key = sealing_key(&self.0.load().0[0], purpose, whose)?;
        let nonce_value = aead::Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce_value, aead::Aad::empty(), &mut text).ok()?;
        Some([nonce.as_slice(), &text].concat())
    }

    /// What was sealed with one of the secrets.
    pub fn open_sealed(&self, purpose: &str, whose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_at_checked(aead::NONCE_LEN)?;
        let open = |key: &hmac::Key| {
            let mut text = text.to_vec();
            let nonce = aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
            let key = sealing_key(key, purpose, whose)?;
            key.open_in_place(nonce, aead::Aad::empty(), &mut text).ok().map(|plain| plain.to_vec())
        };
        self.0.load().0.iter().find_map(open)
    }

    /// Secrets for one customer and one use, made of ours, newest first: they can be shown without
    /// telling ours.
    pub fn derived(&self, purpose: &str, whose: &str) -> Vec<Derived> {
        let one = |key| hmac::sign(key, &labelled(purpose, whose)).as_ref().to_vec();
        self.0.load().0.iter().map(|key| Derived(one(key))).collect()
    }
}

/// All webhook secrets and signed links would end.
fn suspicious(path: &Path, what: &str, others: Others) -> io::Result<()> {
    let path = path.display();
    let text = format!(
        "{path} {what}: webhook secrets of customers and links that were handed out would end. Put the file back from the backup \
         (docs/operating.md), or share it between replicas (secrets_file)"
    );
    match others {
        Others::Welcome => tracing::warn!("{text}"),
        Others::Reported => tracing::error!("{text}"),
        Others::Refused => {
            let text = format!("{text}; to begin with new secrets: tollgate serve --new-secrets");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
    }
    Ok(())
}

/// Tells secrets apart without telling anything of them.
fn name(key: &hmac::Key) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&hmac::sign(key, &labelled("name of a secret", "")).as_ref()[..6])
}

/// A key for one purpose and one owner.
fn sealing_key(key: &hmac::Key, purpose: &str, whose: &str) -> Option<aead::LessSafeKey> {
    let bytes = hmac::sign(key, &labelled(&format!("seal {purpose}"), whose));
    aead::UnboundKey::new(&aead::CHACHA20_POLY1305, bytes.as_ref()).ok().map(aead::LessSafeKey::new)
}

/// Length first, so that no two pairs are one text.
fn labelled(purpose: &str, text: &str) -> Vec<u8> {
    format!("{}:{purpose}:{text}", purpose.len()).into_bytes()
}

/// A secret that a customer may see.
pub struct Derived(Vec<u8>);

impl Derived {
    /// As verifiers of webhooks take it.
    pub fn text(&self) -> String {
        format!("whsec_{}", BASE64_STANDARD.encode(&self.0))
    }

    pub fn sign(&self, text: &[u8]) -> String {
        BASE64_STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), text))
    }
}

/// Readable by its owner only; of processes that start together one makes it.
fn make(path: &Path, fill: impl Fn(&mut [u8])) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut random = [0; 32];
    fill(&mut random);
    let text = format!("{}\n", BASE64_URL_SAFE_NO_PAD.encode(random));
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // Its name too: the database will remember it, and a power cut must not leave the one
            // without the other.
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            dir.map_or(Ok(()), |dir| std::fs::File::open(dir)?.sync_all())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an-old-secret-of-thirty-two-characters";
    const NEW: &str = "a-new-secret-of-thirty-two-characters-";

    #[test]
    fn a_mark_can_be_checked_as_long_as_its_secret_is_there() {
        let read = |text: &str| Secrets::read(text).expect("secrets");
        let (old, both, new) = (read(OLD), read(&format!("{NEW}\n{OLD}")), read(NEW));
        let mark = old.mark("prompt", "a gate opens");
        for (secrets, purpose, text, expected) in [
            (&old, "prompt", "a gate opens", Some(true)),
            (&both, "prompt", "a gate opens", Some(true)),
            (&both, "prompt", "a gate shuts", Some(false)),
            (&both, "link", "a gate opens", Some(false)),
            (&new, "prompt", "a gate opens", None),
        ] {
            assert_eq!(secrets.has_mark(purpose, text, &mark), expected, "{purpose} {text}");
        }
        for none in ["", ".", "00112233445566778899aabbccddeeff", "a.b", &old.sign("prompt", "a gate opens")] {
            assert_eq!(old.has_mark("prompt", "a gate opens", none), None, "{none}");
        }
        assert_ne!(both.mark("prompt", "a"), old.mark("prompt", "a"), "the newest makes new ones");
    }

    #[test]
    fn the_first_signs_and_all_are_believed() {
        let old = Secrets::read(OLD).expect("secrets");
        let both = Secrets::read(&format!("# since today\n{NEW}\n\n{OLD}\n")).expect("secrets");
        let new = Secrets::read(NEW).expect("secrets");
        let signature = old.sign("link", "text");
        assert!(old.has_signed("link", "text", &signature));
        assert!(both.has_signed("link", "text", &signature), "while both stand there");
        assert!(!new.has_signed("link", "text", &signature), "the old one is gone");
        assert!(new.has_signed("link", "text", &both.sign("link", "text")), "the new one signs");
        for (purpose, text, given) in
            [("other", "text", &*signature), ("link", "text2", &signature), ("link", "text", ""), ("link", "text", "%")]
        {
            assert!(!old.has_signed(purpose, text, given));
        }
        let signed: Vec<String> = both.derived("webhook", "acct_1").iter().map(Derived::text).collect();
        assert_eq!(signed.len(), 2);
        assert_eq!(signed[1], old.derived("webhook", "acct_1")[0].text());
        assert_ne!(signed[1], old.derived("webhook", "acct_2")[0].text());
    }

    #[test]
    fn what_is_sealed_is_opened_by_the_same_purpose_and_owner_only() {
        let read = |text: &str| Secrets::read(text).expect("secrets");
        let (old, both, new) = (read(OLD), read(&format!("{NEW}\n{OLD}")), read(NEW));
        let sealed = old.seal("totp", "pers_1", b"plain", |nonce| nonce.fill(1)).expect("sealed");
        assert!(!sealed.windows(5).any(|some| some == b"plain"));
        assert_eq!(both.open_sealed("totp", "pers_1", &sealed).as_deref(), Some(b"plain".as_slice()));
        for (secrets, purpose, whose) in [(&new, "totp", "pers_1"), (&old, "mail", "pers_1"), (&old, "totp", "pers_2")]
        {
            assert_eq!(secrets.open_sealed(purpose, whose, &sealed), None);
        }
        assert_eq!(old.open_sealed("totp", "pers_1", &sealed[..20]), None);
    }

    #[test]
    fn a_new_file_counts_at_once() {
        let secrets = Secrets::read(OLD).expect("secrets");
        let old = secrets.sign("link", "text");
        secrets.take_over(SecretLines::read(&format!("{NEW}\n{OLD}")).expect("secrets"));
        let new = secrets.sign("link", "text");
        assert_ne!(old, new, "the new one signs");
        assert!(secrets.has_signed("link", "text", &old) && secrets.has_signed("link", "text", &new));
        secrets.take_over(SecretLines::read(NEW).expect("secrets"));
        assert!(!secrets.has_signed("link", "text", &old) && secrets.has_signed("link", "text", &new));
    }

    #[test]
    fn a_weak_secret_is_refused() {
        for text in ["", "\n# only a remark\n", "short", &format!("{NEW}\nshort")] {
            assert!(Secrets::read(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn the_first_start_makes_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("data/secrets.key");
        let made = Secrets::open(&path, &[], Others::Refused, |bytes| bytes.fill(7)).expect("made");
        let again = Secrets::open(&path, &[], Others::Refused, |bytes| bytes.fill(8)).expect("read");
        assert!(again.has_signed("a", "b", &made.sign("a", "b")));
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    /// A file that was lost, or is another one, is not replaced in silence, but for those who want
    /// that.
    #[test]
    fn secrets_that_the_database_does_not_know_are_refused_or_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("secrets.key");
        let open = |text: Option<&str>, known: &[&str], others| {
            let _ = std::fs::remove_file(&path);
            if let Some(text) = text {
                std::fs::write(&path, text).expect("written");
            }
            let known: Vec<String> =
                known.iter().flat_map(|text| SecretLines::read(text).expect("secrets").names()).collect();
            Secrets::open(&path, &known, others, |bytes| bytes.fill(7))
        };
        let both = format!("{NEW}\n{OLD}");
        for (text, known) in [(None, &[][..]), (Some(OLD), &[]), (Some(OLD), &[OLD]), (Some(&both), &[OLD])] {
            assert!(open(text, known, Others::Refused).is_ok(), "{text:?} {known:?}");
        }
        for (text, known) in [(None, &[OLD][..]), (Some(NEW), &[OLD])] {
            let error = open(text, known, Others::Refused).err().expect("refused").to_string();
            assert!(error.contains("secrets.key") && error.contains("--new-secrets"), "{error}");
            assert_eq!(path.exists(), text.is_some(), "none is made");
            assert!(open(text, known, Others::Reported).is_ok() && open(text, known, Others::Welcome).is_ok());
        }
    }
}
