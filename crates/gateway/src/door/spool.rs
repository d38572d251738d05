//! Files of uploads while they arrive: in memory while they are small, then in a temporary file
//! without a name (mode 0600), which is gone with the last who reads it and with the process.
//!
//! What lies on disk has a budget of its own, with a part for each account, and leaves alone what
//! the ledger needs. Watching and writing of large files is done on blocking threads, in large
//! steps: pieces are gathered for them as they came, and not copied.

use super::bodies::{Bodies, BodyShare, SMALL, Whose};
use super::passing::{ForwardedFile, PASSING, PassWay, too_long};
use crate::refusal::Refusal;
use bytes::{Bytes, BytesMut};
use std::fs::{File, Permissions};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate_upstream::{PassingUpload, SpooledFile};
use tollgate_wire::error::Code;

/// Files up to this size stay in memory.
pub const IN_MEMORY: usize = 1 << 20;
/// Written at once, where there is memory for it; otherwise what counts as small.
const WRITE: usize = 256 << 10;
/// Disk is asked for in steps of this size.
const STEP: usize = 8 << 20;

/// The disk that uploads may use.
pub struct SpoolDisk {
    pub dir: PathBuf,
    /// What must stay free.
    pub left_alone: u64,
    pub budget: Arc<Bodies>,
    /// The memory of bodies, for files that are small.
    pub bodies: Arc<Bodies>,
}

/// Sees a file pass, piece by piece.
pub trait FileWatch: Send + 'static {
    fn piece(&mut self, bytes: &[u8]);
}

/// Nobody watches.
impl FileWatch for () {
    fn piece(&mut self, _: &[u8]) {}
}

/// How a file is taken.
#[derive(Clone, Copy, Debug)]
pub struct SpoolTerms {
    /// For whom it is counted; none while it is small.
    pub whose: Option<Whose>,
    /// The most bytes that it may have.
    pub most: u64,
    /// Up to here it stays in memory.
    pub in_memory: usize,
}

/// A file on disk, with who looks at it.
struct OnDisk<W> {
    file: File,
    watch: W,
    /// Bytes to be written, as they came.
    gathered: Vec<Bytes>,
    /// How many they are, and how many there may be.
    waiting: usize,
    most: usize,
    room: BodyShare,
}

/// A file while it arrives.
pub struct Spooling<W> {
    disk: Arc<SpoolDisk>,
    terms: SpoolTerms,
    length: u64,
    /// Memory for what is held.
    room: BodyShare,
    held: BytesMut,
    /// Until it goes to disk.
    watch: Option<W>,
    on_disk: Option<OnDisk<W>>,
}

/// A file that is there.
pub struct Spooled<W> {
    pub file: SpooledFile,
    pub watch: W,
}

impl SpoolDisk {
    pub async fn begin<W: FileWatch>(self: &Arc<Self>, terms: SpoolTerms, watch: W) -> Result<Spooling<W>, Refusal> {
        let room = self.bodies.room(terms.whose.unwrap_or(Whose::Penniless), 0).await?;
        let (disk, held) = (self.clone(), BytesMut::new());
        Ok(Spooling { disk, terms, length: 0, room, held, watch: Some(watch), on_disk: None })
    }
}

/// What is free on the disk of a folder, if it says so.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    rustix::fs::statvfs(dir).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Whether the disk of a folder has so many bytes beside what is left alone.
pub fn has_room(dir: &Path, left_alone: u64, bytes: u64) -> bool {
    match rustix::fs::statvfs(dir) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize) >= left_alone.saturating_add(bytes),
        Err(error) => {
            tracing::warn!(%error, "the disk does not say how much is free");
            true
        }
    }
}

impl<W: FileWatch> Spooling<W> {
    /// From now on it is known for whom it is counted.
    pub fn belongs_to(&mut self, whose: Whose) {
        self.terms.whose = Some(whose);
    }

    /// The next piece of the file. Where there is no room for it, it is not lost with that: see
    /// [`Self::given_back`].
    pub async fn push(&mut self, piece: &Bytes) -> Result<(), Refusal> {
        self.length += piece.len() as u64;
        too_long(self.length, self.terms.most)?;
        if self.watch.is_some() {
            let length = self.held.len() + piece.len();
            let stays = length <= self.terms.in_memory && self.makes_room(length);
            if let Some(watch) = self.watch.as_mut().filter(|_| stays) {
                watch.piece(piece);
                self.held.extend_from_slice(piece);
                return Ok(());
            }
            if let Err(refused) = self.go_to_disk().await {
                self.held.extend_from_slice(piece);
                return Err(refused);
            }
        }
        let Some(on_disk) = &mut self.on_disk else { return Err(lost()) };
        on_disk.waiting += piece.len();
        on_disk.gathered.push(piece.clone());
        if on_disk.waiting >= on_disk.most { self.write().await } else { Ok(()) }
    }

    /// From now on it passes; the same again where it is on disk already, or where there is no
    /// memory for what is under way.
    pub async fn pass(mut self, way: PassWay, upload: Box<PassingUpload>) -> Result<ForwardedFile<W>, Spooling<W>> {
        let fits = self.watch.is_some() && self.makes_room(PASSING);
        let Some(watch) = self.watch.take_if(|_| fits) else { return Err(self) };
        let start = self.held.freeze();
        let mut file = ForwardedFile::new(way, upload, watch, (self.length, self.terms.most), self.room);
        file.start(start).await;
        Ok(file)
    }

    /// Whether there is memory for so many bytes at once; where there is none the disk will do.
    fn makes_room(&mut self, length: usize) -> bool {
        if length > SMALL && self.room.bytes() <= SMALL {
            self.room.belongs_to(self.terms.whose.unwrap_or(Whose::Penniless));
        }
        self.room.grow_now(length).is_ok()
    }

    async fn go_to_disk(&mut self) -> Result<(), Refusal> {
        let room = self.disk.budget.room(self.terms.whose.unwrap_or(Whose::Penniless), 0).await?;
        let Some(watch) = self.watch.take() else { return Ok(()) };
        let (dir, held) = (self.disk.dir.clone(), std::mem::take(&mut self.held).freeze());
        let made = tokio::task::spawn_blocking(move || {
            let mut file = tempfile::tempfile_in(dir)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.write_all(&held)?;
            Ok(file)
        });
        let file = made.await.map_err(|_| lost()).and_then(|made| made.map_err(|error| no_room(&error)))?;
        self.room.shrink(WRITE);
        let most = if self.makes_room(WRITE) { WRITE } else { SMALL };
        self.room.shrink(most);
        self.on_disk = Some(OnDisk { file, watch, gathered: Vec::new(), waiting: 0, most, room });
        Ok(())
    }

    /// Disk for all of the file so far.
    async fn disk_room(&mut self) -> Result<(), Refusal> {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let Some(OnDisk { room, .. }) = &mut self.on_disk else { return Ok(()) };
        if length <= room.bytes() {
            return Ok(());
        }
        let most = usize::try_from(self.terms.most).unwrap_or(usize::MAX);
        let to = length.div_ceil(STEP).saturating_mul(STEP).min(most);
        if !has_room(&self.disk.dir, self.disk.left_alone, (to - room.bytes()) as u64) {
            tracing::warn!("the disk is nearly full: an upload was refused");
            return Err(full());
        }
        if room.bytes() <= SMALL {
            room.belongs_to(self.terms.whose.unwrap_or(Whose::Penniless));
        }
        room.grow(to).await
    }

    /// Writes what was gathered.
    async fn write(&mut self) -> Result<(), Refusal> {
        self.disk_room().await?;
        let Some(mut on_disk) = self.on_disk.take() else { return Err(lost()) };
        let written = tokio::task::spawn_blocking(move || on_disk.write().map(|()| on_disk));
        let on_disk = written.await.map_err(|_| lost())?.map_err(|error| no_room(&error))?;
        self.on_disk = Some(on_disk);
        Ok(())
    }

    /// All that came is written, where it goes to disk.
    pub async fn flush(&mut self) -> Result<(), Refusal> {
        if self.on_disk.as_ref().is_some_and(|on_disk| on_disk.waiting > 0) { self.write().await } else { Ok(()) }
    }

    /// What came until there was no room for more: a file, and what follows it. `None` where it is
    /// lost, because the disk does not work.
    pub fn given_back(self) -> Option<(SpooledFile, Vec<Bytes>)> {
        if self.watch.is_some() {
            return Some((SpooledFile::in_memory(self.room.keep(self.held.freeze())), Vec::new()));
        }
        let OnDisk { file, gathered, waiting, room, .. } = self.on_disk?;
        Some((SpooledFile::on_disk(file, self.length.saturating_sub(waiting as u64), room), gathered))
    }

    /// That was all of it.
    pub async fn finish(mut self) -> Result<Spooled<W>, Refusal> {
        if let Some(watch) = self.watch.take() {
            let file = SpooledFile::in_memory(self.room.keep(self.held.freeze()));
            return Ok(Spooled { file, watch });
        }
        self.flush().await?;
        let OnDisk { file, watch, room, .. } = self.on_disk.ok_or_else(lost)?;
        Ok(Spooled { file: SpooledFile::on_disk(file, self.length, room), watch })
    }
}

impl<W: FileWatch> OnDisk<W> {
    /// Shows and writes what was gathered, all at once.
    fn write(&mut self) -> io::Result<()> {
        let pieces = std::mem::take(&mut self.gathered);
        self.waiting = 0;
        pieces.iter().for_each(|piece| self.watch.piece(piece));
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn full() -> Refusal {
    Refusal::new(Code::StorageFull, "The gateway's disk has no room for this upload at the moment.")
}

fn no_room(error: &io::Error) -> Refusal {
    tracing::error!(%error, "an upload could not be written to disk");
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) { full() } else { lost() }
}

fn lost() -> Refusal {
    Refusal::new(Code::Internal, "The upload could not be stored; nothing is charged for this request.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tollgate_store::AccountId;

    const ONE: Whose = Whose::Account(AccountId([1; 16]));
    const MIB: usize = 1 << 20;

    fn disk(dir: &std::path::Path, budget: usize, left_alone: u64) -> Arc<SpoolDisk> {
        let (budget, bodies) = (Bodies::new(budget, 4 * MIB), Bodies::new(64 * MIB, 8 * MIB));
        Arc::new(SpoolDisk { dir: dir.to_owned(), left_alone, budget, bodies })
    }

    fn terms(most: usize) -> SpoolTerms {
        SpoolTerms { whose: Some(ONE), most: most as u64, in_memory: IN_MEMORY }
    }

    /// Counts what it sees.
    struct Seen(usize);

    impl FileWatch for Seen {
        fn piece(&mut self, bytes: &[u8]) {
            self.0 += bytes.len();
        }
    }

    async fn spooled(disk: &Arc<SpoolDisk>, length: usize, piece: usize) -> Result<Spooled<Seen>, Refusal> {
        let mut file = disk.begin(terms(64 * MIB), Seen(0)).await?;
        for from in (0..length).step_by(piece) {
            let bytes: Vec<u8> = (from..length.min(from + piece)).map(|at| (at % 251) as u8).collect();
            file.push(&Bytes::from(bytes)).await?;
        }
        file.finish().await
    }

    #[tokio::test]
    async fn a_file_is_the_same_in_memory_and_on_disk_and_is_read_as_often_as_one_likes() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = disk(dir.path(), 64 * MIB, 0);
        for (length, on_disk) in [(0, false), (1, false), (MIB, false), (MIB + 1, true), (5 * MIB + 7, true)] {
            for piece in [1_000, 70_000, 3 * MIB] {
                let done = spooled(&disk, length, piece).await.expect("a file");
                let whole: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
                assert_eq!((done.file.length(), done.watch.0), (length as u64, length));
                assert_eq!(done.file.bytes().is_none(), on_disk, "{length}");
                assert_eq!(disk.budget.used() > 0, on_disk);
                assert!(disk.bodies.used() <= if on_disk { 0 } else { length });
                for _ in 0..2 {
                    let (mut pieces, mut read) = (done.file.pieces(), Vec::new());
                    while let Some(piece) = poll_fn(|cx| pieces.poll_piece(cx)).await {
                        read.extend_from_slice(&piece.expect("a piece"));
                    }
                    assert!(read == whole, "{length} in {piece}");
                }
                drop(done);
                assert_eq!((disk.budget.used(), disk.bodies.used()), (0, 0), "all is given back");
            }
        }
    }

    #[tokio::test]
    async fn a_file_on_disk_has_no_name_and_is_nobody_elses() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = disk(dir.path(), 64 * MIB, 0);
        let mut file = disk.begin(terms(8 * MIB), ()).await.expect("a file");
        file.push(&Bytes::from(vec![0; 2 * MIB])).await.expect("room");
        let on_disk = file.on_disk.as_ref().expect("on disk");
        let mode = on_disk.file.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_too_large_or_finds_no_room_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let code = |refused: Result<(), Refusal>| refused.err().map(|refusal| refusal.code);
        let small = disk(dir.path(), 16 * MIB, 0);
        let mut file = small.begin(terms(2 * MIB), ()).await.expect("a file");
        file.push(&Bytes::from(vec![0; 2 * MIB])).await.expect("room");
        assert_eq!(code(file.push(&Bytes::from_static(b"x")).await), Some(Code::BodyTooLarge));
        // One account has a part of the disk: here the largest upload.
        let mut more = small.begin(terms(16 * MIB), ()).await.expect("a file");
        let refused = more.push(&Bytes::from(vec![0; 3 * MIB])).await;
        assert_eq!(code(refused), Some(Code::RateLimitExceeded));
        // What the ledger needs is left alone.
        let tight = disk(dir.path(), 64 * MIB, u64::MAX / 2);
        let mut file = tight.begin(terms(16 * MIB), ()).await.expect("a file");
        assert_eq!(code(file.push(&Bytes::from(vec![0; 2 * MIB])).await), Some(Code::StorageFull));
        let gone = disk(&dir.path().join("not-there"), 64 * MIB, 0);
        let mut file = gone.begin(terms(16 * MIB), ()).await.expect("a file");
        assert_eq!(code(file.push(&Bytes::from(vec![0; 2 * MIB])).await), Some(Code::Internal));
    }

    #[tokio::test]
    async fn where_there_is_no_memory_the_disk_will_do() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = disk(dir.path(), 64 * MIB, 0);
        let taken = disk.bodies.room_now(ONE, 16 * MIB).expect("all that the account may have");
        let done = spooled(&disk, MIB / 2, 10_000).await.expect("a file");
        assert!(done.file.bytes().is_none());
        drop(taken);
        assert!(spooled(&disk, MIB / 2, 10_000).await.expect("a file").file.bytes().is_some());
    }
}
