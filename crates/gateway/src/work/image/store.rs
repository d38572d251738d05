//! Pictures of our own, for callers who want a link from a maker that has none, and long results
//! that an Idempotency-Key may ask for again. They are stored for a while, with room for so many
//! bytes of each account and of all together; pictures are reached by links that we sign. Names say
//! whose a file is, so what is taken is counted again after a start.

use crate::refusal::Refusal;
use crate::secrets::Secrets;
use crate::settings::ImageSettings;
use crate::work::files::{
    CountedFiles, FileRoom, FileStore, Missing, NotStored, StoredFile, SweptFiles, Uncopied, opens, signed_query,
};
use object_store::GetRange;
use sha2::{Digest as _, Sha256};
use tollgate_media::image::PictureKind;
use tollgate_store::{AccountId, CallId};
use tollgate_upstream::{Client, SpooledFile};

const PURPOSE: &str = "picture link";
/// Letters of a name that say whose the picture is.
const OWNER: usize = 16;
/// How names of results end.
const REPLY: &str = ".reply";

/// Where pictures are stored.
#[derive(Debug)]
pub struct PictureStore(CountedFiles);

/// The name of a file: its call, its place, its owner, its kind.
fn file_name(call: &str, place: u64, account: AccountId, kind: PictureKind) -> String {
    format!("{call}-{place}-{}.{}", owner(account), kind.extension())
}

/// Says whose a picture is to us, and nothing to others.
fn owner(account: AccountId) -> String {
    let hash = Sha256::digest([b"picture owner ".as_slice(), &account.0].concat());
    hash.iter().take(OWNER / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a result that its Idempotency-Key asks for again: no link leads there.
fn reply_name(call: &str, account: AccountId) -> String {
    format!("{call}-{}{REPLY}", owner(account))
}

/// Whose a file is that has a name of ours, of either kind.
fn owner_in(name: &str) -> Option<&str> {
    match name.strip_suffix(REPLY) {
        Some(stem) => {
            stem.rsplit_once('-').filter(|(call, owner)| is_call(call) && is_owner(owner)).map(|(_, owner)| owner)
        }
        None => read_name(name).map(|(owner, _)| owner),
    }
}

fn is_owner(text: &str) -> bool {
    text.len() == OWNER && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_call(text: &str) -> bool {
    text.parse::<CallId>().is_ok_and(|known| known.to_string() == text)
}

/// Owner and kind of a picture that has a name of ours.
fn read_name(name: &str) -> Option<(&str, PictureKind)> {
    let (stem, end) = name.rsplit_once('.')?;
    let kind = PictureKind::OF_PIXELS.into_iter().find(|kind| kind.extension() == end)?;
    let (stem, owner) = stem.rsplit_once('-')?;
    let (call, place) = stem.rsplit_once('-')?;
    let placed = !place.is_empty() && place.len() <= 4 && place.bytes().all(|byte| byte.is_ascii_digit());
    (placed && is_owner(owner) && is_call(call)).then_some((owner, kind))
}

impl PictureStore {
    /// The files of these settings; `None` where no pictures are stored.
    pub fn open(settings: &ImageSettings, disk_reserve: u64, client: &Client) -> std::io::Result<Option<PictureStore>> {
        let Some(place) = &settings.copy_to else { return Ok(None) };
        let files = FileStore::open(place, Some(settings.keep), |name| owner_in(name).is_some(), client)?;
        let ImageSettings { account_bytes, total_bytes, .. } = *settings;
        let room = FileRoom { account_bytes, total_bytes, disk_reserve };
        Ok(Some(PictureStore(CountedFiles::new(files, room, owner_in))))
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
        let name = file_name(call, place, account, kind);
        self.0.put(&name, picture, now_ms, cut).await.map(|()| name)
    }

    /// Whether there is room for anything more of this account.
    pub async fn has_room(&self, account: AccountId, now_ms: i64) -> bool {
        self.0.has_room(&owner(account), now_ms).await
    }

    /// Puts a result there that may be asked for again; its name.
    pub async fn put_reply(
        &self,
        call: &str,
        account: AccountId,
        reply: SpooledFile,
        now_ms: i64,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<String, NotStored> {
        let name = reply_name(call, account);
        self.0.put(&name, reply, now_ms, cut).await.map(|()| name)
    }

    /// Such a result.
    pub async fn reply(&self, name: &str) -> Result<StoredFile, Missing> {
        self.0.files.get(name, None).await
    }

    /// Takes away what is past its time, and counts what is left.
    pub async fn sweep(&self, now_ms: i64) -> SweptFiles {
        self.0.sweep(now_ms).await
    }

    /// A link that opens as long as the picture is stored.
    pub fn link(&self, secrets: &Secrets, base: &str, name: &str, now_ms: i64) -> String {
        let expires_at = self.0.files.ends(now_ms).unwrap_or(0);
        format!("{base}/v1/images/files/{name}?{}", signed_query(secrets, PURPOSE, name, expires_at))
    }

    /// A picture that a link of ours leads to.
    pub async fn get(&self, name: &str, range: Option<GetRange>) -> Result<(StoredFile, PictureKind), Missing> {
        let (_, kind) = read_name(name).ok_or(Missing::Gone)?;
        Ok((self.0.files.get(name, range).await?, kind))
    }
}

/// Whether a link of ours opens this picture now.
pub fn check(secrets: &Secrets, name: &str, query: &str, now: i64) -> Result<(), Refusal> {
    opens(secrets, PURPOSE, name, query, now)
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
        let result = reply_name(&call, ACCOUNT);
        assert_eq!(
            (owner_in(&name), owner_in(&result)),
            (Some(owner(ACCOUNT).as_str()), Some(owner(ACCOUNT).as_str()))
        );
        assert_eq!((read_name(&result), owner_in(".reply"), owner_in("a-b.reply")), (None, None, None));
        for bad in [other.as_str(), &above, &unowned, "", "a.jpg", "-1-0123456789abcdef.png"] {
            assert_eq!(read_name(bad), None, "{bad}");
        }
    }
}
