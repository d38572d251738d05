//! The file of one segment. In a simulation the disk it lies on is notified of every sync, so that
//! it knows what a power cut leaves.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::owner::private;
use crate::world::Options;

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

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        #[cfg(feature = "testing")]
        if let Some((disk, name)) = &self.disk {
            disk.synced(name);
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
