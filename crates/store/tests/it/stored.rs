//! The file beside the ledger's in which the embedded engine keeps what customers store: given back
//! to the disk when it is erased, and erased also when the disk is full.

use crate::common::{Customer, House, options};
use std::path::Path;
use tollgate_store::testing::TestClock;
use tollgate_store::{DataLocation, Item, NoRoom, Options, Quota, StorageUsed, Store, StoredConversation};

const DAY: i64 = 86_400_000;

fn talk(id: &str, now: i64) -> StoredConversation {
    StoredConversation { id: id.into(), created_at: now, expires_at: now + DAY, metadata: "{}".into() }
}

fn large(bytes: usize) -> Vec<Item> {
    vec![Item { id: "i1".into(), json: format!("{{\"text\":\"{}\"}}", "x".repeat(bytes)) }]
}

fn size(dir: &Path, name: &str) -> u64 {
    std::fs::metadata(dir.join(name)).map_or(0, |file| file.len())
}

#[tokio::test]
async fn what_is_stored_leaves_the_ledgers_file_alone_and_the_disk_when_it_is_erased() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let (dir, now) = (h.place.data_dir.clone(), h.clock.now());
    let (ledger, log) = (size(&dir, "tollgate.db"), size(&dir, "tollgate.db-wal"));
    for n in 0..16 {
        let new = talk(&format!("conv_{n}"), now);
        h.store
            .create_conversation(c.account, new, large(2 << 20), Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room");
    }
    let grown = (size(&dir, "tollgate.db") + size(&dir, "tollgate.db-wal")).saturating_sub(ledger + log);
    assert!(grown < 1 << 20, "the ledger has grown by {grown} bytes");
    let all = |dir: &Path| size(dir, "kept.db") + size(dir, "kept.db-wal");
    assert!(all(&dir) > 32 << 20);
    for n in 0..8 {
        assert!(h.store.delete_conversation(c.account, &format!("conv_{n}")).await.expect("asked"));
    }
    h.clock.advance(DAY + 1);
    while h.store.forget_responses(h.clock.now()).await.expect("swept") > 0 {}
    assert!(all(&dir) < 6 << 20, "{} bytes are left of what was erased", all(&dir));
    assert_eq!(h.store.stored(c.account).await.expect("read"), StorageUsed::default());
    h.close().await;
}

/// A small disk, taken away with it.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`: whoever runs this says that nothing can be mounted here.
    fn mount(size: &str) -> Option<Disk> {
        #[expect(clippy::disallowed_methods, reason = "a setting of the test run")]
        let without = std::env::var_os("TOLLGATE_NO_MOUNT").is_some();
        if without {
            return None;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let done = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tollgate-test"])
            .arg(dir.path())
            .status()
            .expect("mount runs");
        assert!(done.success(), "a small disk could not be mounted; TOLLGATE_NO_MOUNT=1 goes without");
        Some(Disk(dir))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

async fn open(disk: &Disk, options: Options, clock: &TestClock, seed: u64) -> Store {
    let place = DataLocation { url: "sqlite".into(), data_dir: disk.0.path().join("data") };
    Store::open(place, options, clock.world(seed)).await.expect("the store opens").store
}

async fn fill(
    store: &Store,
    c: &Customer,
    now: i64,
    from: usize,
) -> Result<usize, (usize, Result<NoRoom, tollgate_store::StoreError>)> {
    for n in from..1_000 {
        let made =
            store.create_conversation(c.account, talk(&format!("conv_{n}"), now), large(1 << 20), Quota::UNLIMITED);
        match made.await {
            Ok(Ok(())) => {}
            Ok(Err(no_room)) => return Err((n, Ok(no_room))),
            Err(error) => return Err((n, Err(error))),
        }
    }
    Ok(1_000)
}

async fn customer(store: &Store) -> Customer {
    let account = store.create_account(tollgate_store::NewAccount::default()).await.expect("an account").id;
    Customer { account, key: tollgate_store::KeyId([0; 16]) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_keeps_room_for_the_ledger() {
    let Some(disk) = Disk::mount("64m") else { return };
    let clock = TestClock::default();
    let store = open(&disk, Options { disk_reserve: 24 << 20, ..options() }, &clock, 1).await;
    let c = customer(&store).await;
    let Err((stored, Ok(NoRoom::All))) = fill(&store, &c, clock.now(), 0).await else { panic!("it ends with no room") };
    assert!((8..40).contains(&stored), "{stored} MiB were stored");
    assert!(store.ready(), "the ledger goes on");
    customer(&store).await;
    assert!(store.delete_conversation(c.account, "conv_0").await.expect("asked"));
    store.shut().await;
}

/// Somebody else fills the disk to its last byte: what is stored can still be erased, and the
/// ledger has the space.
#[tokio::test(flavor = "multi_thread")]
async fn erasing_works_on_a_full_disk() {
    let Some(disk) = Disk::mount("48m") else { return };
    let clock = TestClock::default();
    let store = open(&disk, Options { disk_reserve: 1 << 20, ..options() }, &clock, 2).await;
    let c = customer(&store).await;
    for n in 0..8 {
        let new = talk(&format!("conv_{n}"), clock.now());
        store
            .create_conversation(c.account, new, large(1 << 20), Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room");
    }
    // To the last byte.
    let mut filler = std::fs::File::create(disk.0.path().join("filler")).expect("a file");
    for block in [1 << 20, 4 << 10, 1] {
        while std::io::Write::write_all(&mut filler, &vec![0u8; block]).is_ok() {}
    }
    let Err((more, _)) = fill(&store, &c, clock.now(), 8).await else { panic!("there is no room") };
    for n in 0..more {
        assert!(store.delete_conversation(c.account, &format!("conv_{n}")).await.expect("erased"), "conv_{n}");
    }
    assert_eq!(store.stored(c.account).await.expect("read"), StorageUsed::default());
    // The disk has it back, for whoever needs it.
    std::io::Write::write_all(&mut filler, &vec![0u8; 4 << 20]).expect("room on the disk");
    customer(&store).await;
    store.shut().await;
}
