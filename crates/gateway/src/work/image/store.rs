//! Pictures of our own, for callers who want a link from a maker that has none. They are stored for
//! a while, with room for so many bytes of each account and of all together, and reached by links
//! that we sign. Names say whose a file is, so what is taken is counted again after a start.

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
        let files = FileStore::open(place, Some(settings.keep), |name| read_name(name).is_some(), client)?;
        let ImageSettings { account_bytes, total_bytes, .. } = *settings;
        let room = FileRoom { account_bytes, total_bytes, disk_reserve };
        Ok(Some(PictureStore(CountedFiles::new(files, room, |name| read_name(name).map(|(owner, _)| owner)))))
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
        for bad in [other.as_str(), &above, &unowned, "", "a.jpg", "-1-0123456789abcdef.png"] {
            assert_eq!(read_name(bad), None, "{bad}");
        }
    }
}
