//! Pictures of our own, for callers who want a link from a maker that has none. They are stored for
//! a while, with room for so many bytes of each account and of all together, and reached by links
//! that we sign. Names say whose a file is, so what is taken is counted again after a start.

use crate::door::spool::has_room;
use crate::refusal::Refusal;
use crate::secrets::Secrets;
use crate::settings::ImageSettings;
use crate::work::files::{FileStore, Missing, StoredFile, SweptFiles, Uncopied};
use crate::work::spooled_answer;
use object_store::GetRange;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;
use tollgate_media::image::PictureKind;
use tollgate_store::{AccountId, CallId};
use tollgate_upstream::{Client, SpooledFile};
use tollgate_wire::error::Code;

const PURPOSE: &str = "picture link";
/// Letters of a name that say whose the picture is.
const OWNER: usize = 16;

/// Where pictures are stored.
#[derive(Debug)]
pub struct PictureStore {
    files: FileStore,
    account_bytes: u64,
    total_bytes: u64,
    /// The disk must have so much left beside it.
    disk_reserve: u64,
    taken: Mutex<Taken>,
    /// What lay there at the start is counted before anything is added.
    counted: OnceCell<()>,
}

/// Bytes that are taken.
#[derive(Debug, Default)]
struct Taken {
    total: u64,
    owners: HashMap<String, u64>,
    /// What was put there since the last count began: whether all of it is there by now.
    recent: HashMap<String, (u64, bool)>,
}

impl Taken {
    fn add(&mut self, owner: &str, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        *self.owners.entry(owner.to_owned()).or_default() += bytes;
    }
}

/// Why a picture is not on the files.
#[derive(Debug)]
pub enum NotStored {
    /// There is no room for it, for this account or for anybody.
    Full,
    Trouble(Uncopied),
}

/// The name of a file: its call, its place, its owner, its kind.
fn file_name(call: &str, place: u64, account: AccountId, kind: PictureKind) -> String {
    format!("{call}-{place}-{}.{}", owner(account), kind.extension())
}

/// Says whose a picture is to us, and nothing to others.
fn owner(account: AccountId) -> String {
    let hash = Sha256::digest([b"picture owner ".as_slice(), &account.0].concat());
    hash.iter().take(OWNER / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Owner and kind of a file that has a name of ours.
fn read_name(name: &str) -> Option<(&str, PictureKind)> {
    let (stem, end) = name.rsplit_once('.')?;
    let kind = PictureKind::ALL.into_iter().find(|kind| kind.extension() == end)?;
    let (stem, owner) = stem.rsplit_once('-')?;
    let (call, place) = stem.rsplit_once('-')?;
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let good = owner.len() == OWNER && owner.bytes().all(hex);
    let good = good && !place.is_empty() && place.len() <= 4 && place.bytes().all(|byte| byte.is_ascii_digit());
    let known = call.parse::<CallId>().is_ok_and(|known| known.to_string() == call);
    (good && known).then_some((owner, kind))
}

impl PictureStore {
    /// The files of these settings; `None` where no pictures are stored.
    pub fn open(settings: &ImageSettings, disk_reserve: u64, client: &Client) -> std::io::Result<Option<PictureStore>> {
        let Some(place) = &settings.copy_to else { return Ok(None) };
        let own = |name: &str| read_name(name).is_some();
        Ok(Some(PictureStore {
            files: FileStore::open(place, Some(settings.keep), own, client)?,
            account_bytes: settings.account_bytes,
            total_bytes: settings.total_bytes,
            disk_reserve,
            taken: Mutex::default(),
            counted: OnceCell::new(),
        }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a picture there; its name.
    pub async fn put(
        &self,
        (call, place): (&str, u64),
        account: AccountId,
        (picture, kind): (SpooledFile, PictureKind),
        now_ms: i64,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<String, NotStored> {
        self.counted.get_or_init(async || drop(self.sweep(now_ms).await)).await;
        let (name, bytes) = (file_name(call, place, account, kind), picture.length());
        if self.files.folder().is_some_and(|folder| !has_room(folder, self.disk_reserve, bytes)) {
            return Err(NotStored::Full);
        }
        self.take(&owner(account), &name, bytes)?;
        let pieces = Box::pin(spooled_answer::pieces(picture));
        let put = self.files.put(&name, pieces, cut).await;
        let mut taken = self.taken();
        match put {
            Ok(()) => {
                if let Some((_, done)) = taken.recent.get_mut(&name) {
                    *done = true;
                }
                Ok(name)
            }
            Err(why) => {
                taken.recent.remove(&name);
                taken.total = taken.total.saturating_sub(bytes);
                if let Some(own) = taken.owners.get_mut(&owner(account)) {
                    *own = own.saturating_sub(bytes);
                }
                Err(NotStored::Trouble(why))
            }
        }
    }

    /// Takes room, if there is some.
    fn take(&self, owner: &str, name: &str, bytes: u64) -> Result<(), NotStored> {
        let mut taken = self.taken();
        let own = taken.owners.get(owner).copied().unwrap_or(0);
        let fits = |used: u64, most: u64| used.checked_add(bytes).is_some_and(|all| all <= most);
        if !fits(own, self.account_bytes) || !fits(taken.total, self.total_bytes) {
            return Err(NotStored::Full);
        }
        taken.add(owner, bytes);
        taken.recent.insert(name.to_owned(), (bytes, false));
        Ok(())
    }

    /// Takes away what is past its time, and counts what is left: other processes put files there
    /// too.
    pub async fn sweep(&self, now_ms: i64) -> SweptFiles {
        self.taken().recent.retain(|_, (_, done)| !*done);
        let mut left: HashMap<String, u64> = HashMap::new();
        let swept = self
            .files
            .sweep(now_ms, &mut |name, bytes| {
                let whole = name.split('#').next().unwrap_or(name);
                // What is being put there counts once, by its name.
                if self.taken().recent.contains_key(whole) {
                    return;
                }
                if let Some((owner, _)) = read_name(whole) {
                    *left.entry(owner.to_owned()).or_default() += bytes;
                }
            })
            .await;
        let mut taken = self.taken();
        let mut counted = Taken { recent: std::mem::take(&mut taken.recent), ..Taken::default() };
        left.iter().for_each(|(owner, bytes)| counted.add(owner, *bytes));
        let recent: Vec<(String, u64)> = counted
            .recent
            .iter()
            .filter_map(|(name, (bytes, _))| Some((read_name(name)?.0.to_owned(), *bytes)))
            .collect();
        recent.iter().for_each(|(owner, bytes)| counted.add(owner, *bytes));
        *taken = counted;
        swept
    }

    /// A link that opens as long as the picture is stored.
    pub fn link(&self, secrets: &Secrets, base: &str, name: &str, now_ms: i64) -> String {
        let expires_at = self.files.ends(now_ms).unwrap_or(0);
        let signature = secrets.sign(PURPOSE, &format!("{name} {expires_at}"));
        format!("{base}/v1/images/files/{name}?Expires={expires_at}&Signature={signature}")
    }

    /// A picture that a link of ours leads to.
    pub async fn get(&self, name: &str, range: Option<GetRange>) -> Result<(StoredFile, PictureKind), Missing> {
        let (_, kind) = read_name(name).ok_or(Missing::Gone)?;
        Ok((self.files.get(name, range).await?, kind))
    }
}

/// Whether a link of ours opens this picture now.
pub fn check(secrets: &Secrets, name: &str, query: &str, now: i64) -> Result<(), Refusal> {
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == wanted).map(|(_, value)| value)
    };
    let expires_at = value("Expires").and_then(|text| text.parse::<i64>().ok());
    let signature = value("Signature").unwrap_or_default();
    let signed = |at: i64| secrets.has_signed(PURPOSE, &format!("{name} {at}"), signature);
    match expires_at.filter(|at| signed(*at)) {
        None => Err(Refusal::about(Code::LinkInvalid, "Signature", "This link was not signed by this gateway.")),
        Some(at) if at <= now => Err(ended()),
        Some(_) => Ok(()),
    }
}

/// The picture is gone.
pub fn ended() -> Refusal {
    Refusal::about(Code::LinkInvalid, "Expires", "This link has ended, and its picture is stored no longer.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId([7; 16]);

    #[test]
    fn only_names_of_ours_are_read() {
        let call = CallId([9; 16]).to_string();
        let name = file_name(&call, 3, ACCOUNT, PictureKind::Jpeg);
        assert_eq!(read_name(&name), Some((owner(ACCOUNT).as_str(), PictureKind::Jpeg)));
        let other = name.replace(".jpg", ".svg");
        let above = format!("../{name}");
        let unowned = format!("{call}-3.jpg");
        for bad in [other.as_str(), &above, &unowned, "", "a.jpg", "-1-0123456789abcdef.png"] {
            assert_eq!(read_name(bad), None, "{bad}");
        }
    }
}
