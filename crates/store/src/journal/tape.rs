//! The file of one segment. In a simulation the disk it lies on is notified of every sync, so that
//! it knows what a power cut leaves.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::owner::private;
use crate::world::Options;

/// What the file was when a sync began, where that matters: on a simulated disk.
#[derive(Default)]
pub(super) struct Seen {
    #[cfg(feature = "testing")]
    bytes: Option<crate::testing::SeenFile>,
}

pub(super) struct Tape {
    file: File,
    #[cfg(feature = "testing")]
    disk: Option<(crate::testing::Disk, &'static str)>,
    /// The disk has no space for a longer file than this.
    #[cfg(test)]
    pub full_at: Option<u64>,
}

impl Tape {
    pub fn open(dir: &Path, name: &'static str, options: &Options) -> io::Result<Self> {
        let file = private().read(true).write(true).create(true).truncate(false).open(dir.join(name))?;
        preallocate(&file, options.journal_segment)?;
        Ok(Self {
            file,
            #[cfg(feature = "testing")]
            disk: options.simulated.as_ref().map(|simulated| (simulated.disk.clone(), name)),
            #[cfg(test)]
            full_at: None,
        })
    }

    pub fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        #[cfg(feature = "testing")]
        if self.disk.as_ref().is_some_and(|(disk, _)| disk.loses(bytes)) {
            return Ok(());
        }
        #[cfg(test)]
        if self.full_at.is_some_and(|full| at + bytes.len() as u64 > full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(bytes, at)
    }

    pub fn cut(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// What is synced by a sync that begins now.
    #[cfg_attr(not(feature = "testing"), expect(clippy::unused_self, reason = "a real disk knows it by itself"))]
    pub fn seen(&self) -> Seen {
        Seen {
            #[cfg(feature = "testing")]
            bytes: self.disk.as_ref().map(|(disk, name)| disk.see(name)),
        }
    }

    /// Syncs all of it; of one that began earlier, what it was then.
    #[cfg_attr(not(feature = "testing"), expect(unused_variables, reason = "a real disk knows it by itself"))]
    pub fn sync(&self, seen: Option<&Seen>) -> io::Result<()> {
        self.file.sync_data()?;
        #[cfg(feature = "testing")]
        if let Some((disk, name)) = &self.disk {
            match seen.and_then(|seen| seen.bytes.as_ref()) {
                Some(seen) => disk.synced_as(seen),
                None => disk.synced(name),
            }
        }
        Ok(())
    }

    pub fn read(&self) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        let mut bytes = vec![0u8; usize::try_from(len).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Takes the space now, with real zeros: a file with holes would still fail on a full disk.
fn preallocate(file: &File, size: u64) -> io::Result<()> {
    let zeros = vec![0u8; 64 << 10];
    let mut at = file.metadata()?.len();
    while at < size {
        let step = (size - at).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..step], at)?;
        at += step as u64;
    }
    Ok(())
}

#[cfg(test)]
impl Tape {
    /// One that refuses every write.
    pub fn unwritable(path: &Path) -> Self {
        let file = File::open(path).expect("a file");
        Self {
            file,
            #[cfg(feature = "testing")]
            disk: None,
            full_at: None,
        }
    }
}
