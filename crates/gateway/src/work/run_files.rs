//! Files of workflow runs: what customers uploaded for them, and what their steps made. A name says
//! whose a file is, what it is and how long it plays, so nothing else has to be remembered.

use crate::door::spool::FileWatch;
use crate::secrets::Secrets;
use crate::settings::RunSettings;
use crate::work::files::{
    CountedFiles, FileRoom, FileStore, Missing, NotStored, StoredFile, SweptFiles, Uncopied, signed_query,
};
use object_store::GetRange;
use sha2::{Digest as _, Sha256};
use tollgate_media::audio::{AudioMeter, Container};
use tollgate_media::image::picture_kind;
use tollgate_store::{AccountId, CallId};
use tollgate_upstream::{Client, SpooledFile};

/// What links of ours are signed for.
pub const RUN_FILE_LINK: &str = "workflow file";
/// Letters of a name that say whose the file is.
const OWNER: usize = 16;
/// How long a link opens, in seconds.
const LINK_LIFE: i64 = 24 * 3_600;

/// Endings and what they stand for.
const KINDS: [(&str, &str); 18] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("avif", "image/avif"),
    ("heic", "image/heic"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
    ("aac", "audio/aac"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
    ("m4a", "audio/mp4"),
    ("weba", "audio/webm"),
    ("mka", "audio/x-matroska"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mkv", "video/x-matroska"),
    ("bin", "application/octet-stream"),
];

/// Where files of runs are stored.
#[derive(Debug)]
pub struct RunFiles(CountedFiles);

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFileName<'n> {
    owner: &'n str,
    pub millis: Option<u64>,
    pub ending: &'static str,
    pub mime: &'static str,
}

impl<'n> RunFileName<'n> {
    /// Reads a name of ours.
    pub fn read(name: &'n str) -> Option<RunFileName<'n>> {
        let mut parts = name.strip_prefix("asset_")?.split('_');
        let (id, owner, millis, ending) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (ending, mime) = KINDS.into_iter().find(|(known, _)| *known == ending)?;
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let good = owner.len() == OWNER && owner.bytes().all(hex) && parts.next().is_none();
        let digits = (1..=9).contains(&millis.len()) && millis.bytes().all(|byte| byte.is_ascii_digit());
        let known = format!("call_{id}").parse::<CallId>().is_ok();
        let millis = millis.parse::<u64>().ok()?;
        (good && digits && known).then_some(RunFileName {
            owner,
            millis: Some(millis).filter(|ms| *ms > 0),
            ending,
            mime,
        })
    }

    pub fn belongs_to(&self, account: AccountId) -> bool {
        self.owner == owner(account)
    }

    /// A picture, audio or video.
    pub fn is_media(&self) -> bool {
        !self.mime.starts_with("application/")
    }

    pub fn has_video(&self) -> bool {
        self.mime.starts_with("video/")
    }
}

/// Says whose a file is to us, and nothing to others.
fn owner(account: AccountId) -> String {
    let hash = Sha256::digest([b"workflow file owner ".as_slice(), &account.0].concat());
    hash.iter().take(OWNER / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Looks at a file while it passes: what it is, and how long it plays.
#[derive(Default)]
pub struct RunFileWatch {
    first: Vec<u8>,
    meter: AudioMeter,
}

impl FileWatch for RunFileWatch {
    fn piece(&mut self, bytes: &[u8]) {
        let room = 64usize.saturating_sub(self.first.len());
        self.first.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.meter.feed(bytes);
    }
}

impl RunFileWatch {
    /// The name of the file that passed. `id` is one that nobody has used.
    pub fn name(self, id: CallId, account: AccountId) -> String {
        let (ending, millis) = match (picture_kind(&self.first), self.meter.finish()) {
            (Some(kind), _) => (kind.extension(), 0),
            (None, Ok(measured)) => {
                let ending = match (measured.container, measured.video) {
                    (Container::Wav, _) => "wav",
                    (Container::Mp3, _) => "mp3",
                    (Container::Adts, _) => "aac",
                    (Container::Flac, _) => "flac",
                    (Container::Ogg, _) => "ogg",
                    (Container::Mp4, false) => "m4a",
                    (Container::Mp4, true) => "mp4",
                    (Container::WebM, false) => "weba",
                    (Container::WebM, true) => "webm",
                    (Container::Matroska, false) => "mka",
                    (Container::Matroska, true) => "mkv",
                };
                (ending, measured.length.millis())
            }
            // Pictures without a sound have no length that we measure.
            (None, Err(_)) if self.first.get(4..8) == Some(b"ftyp") => ("mp4", 0),
            (None, Err(_)) => ("bin", 0),
        };
        let id = id.to_string();
        let id = id.strip_prefix("call_").unwrap_or(&id);
        format!("asset_{id}_{}_{}_{ending}", owner(account), millis.min(999_999_999))
    }
}

impl RunFiles {
    /// The files of these settings; `None` where none are stored.
    pub fn open(settings: &RunSettings, disk_reserve: u64, client: &Client) -> std::io::Result<Option<RunFiles>> {
        let Some(place) = &settings.copy_to else { return Ok(None) };
        let own = |name: &str| RunFileName::read(name).is_some();
        let files = FileStore::open(place, Some(settings.keep), own, client)?;
        let RunSettings { account_bytes, total_bytes, .. } = *settings;
        let room = FileRoom { account_bytes, total_bytes, disk_reserve };
        Ok(Some(RunFiles(CountedFiles::new(files, room, |name| RunFileName::read(name).map(|read| read.owner)))))
    }

    pub async fn put(
        &self,
        name: &str,
        file: SpooledFile,
        now_ms: i64,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<(), NotStored> {
        self.0.put(name, file, now_ms, cut).await
    }

    /// Whether there is room for anything more of this account.
    pub async fn has_room(&self, account: AccountId, now_ms: i64) -> bool {
        self.0.has_room(&owner(account), now_ms).await
    }

    pub async fn get(&self, name: &str, range: Option<GetRange>) -> Result<StoredFile, Missing> {
        self.0.files.get(name, range).await
    }

    pub async fn sweep(&self, now_ms: i64) -> SweptFiles {
        self.0.sweep(now_ms).await
    }

    /// A link that opens for a day.
    pub fn link(secrets: &Secrets, base: &str, name: &str, now_ms: i64) -> String {
        let query = signed_query(secrets, RUN_FILE_LINK, name, now_ms.div_euclid(1000) + LINK_LIFE);
        format!("{base}/v1/workflows/files/{name}?{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is_and_what() {
        let (account, id) = (AccountId([7; 16]), CallId([9; 16]));
        let mut watch = RunFileWatch::default();
        watch.piece(b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0");
        watch.piece(&[0; 16_000]);
        let name = watch.name(id, account);
        assert!(name.len() <= 70, "{name}");
        let read = RunFileName::read(&name).expect("a name");
        assert_eq!((read.millis, read.mime, read.has_video()), (Some(1_000), "audio/wav", false));
        assert!(read.belongs_to(account) && !read.belongs_to(AccountId([8; 16])));
        let other = name.replace("_wav", "_svg");
        let above = format!("../{name}");
        for bad in [other.as_str(), &above, "asset_1", "asset_x_y_z_png", "", "asset_1_0123456789abcdef_0_png"] {
            assert_eq!(RunFileName::read(bad), None, "{bad}");
        }
    }
}
