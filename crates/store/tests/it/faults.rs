//! Rows of the table of faults (docs/faults.md) that only the store can show. A row that names a
//! case of this house must find it here or among the tests of several replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{House, idem, options, reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tollgate_store::testing::{PostgresServer, fill_disk, free_disk};
use tollgate_store::{Ending, HoldRefused, Options};

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        const CASES: &[&str] = &[$(stringify!($case)),+];
        mod each {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case().await;
            })+
        }
    };
}

cases!(the_outcome_of_a_commit_is_unknown, a_commit_that_finds_the_disk_full);

#[test]
fn every_row_of_this_house_has_its_case() {
    let page = std::fs::read_to_string("../../docs/faults.md").expect("docs/faults.md");
    let read = |name: &str| std::fs::read_to_string(name).expect("the tests of several replicas");
    let replicas = read("tests/it/replicas.rs") + &read("tests/it/upgrades.rs");
    let ours: Vec<&str> = page.split("`store::").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(ours.len() >= 4, "{ours:?}");
    for name in &ours {
        // Defined, and called.
        let elsewhere = replicas.matches(&format!("{name}(")).count() >= 2;
        assert!(CASES.contains(name) || elsewhere, "no case for {name}");
    }
    for case in CASES {
        assert!(ours.contains(case), "{case} is in no row");
    }
}

/// A line to the database that can lose the answers: what is asked arrives, what is said does not.
struct Line {
    url: String,
    deaf: Arc<AtomicBool>,
    cut: Arc<tokio::sync::Notify>,
    _task: JoinSet<()>,
}

impl Line {
    async fn lay(url: &str) -> Self {
        let (head, rest) = url.split_once('@').expect("a user");
        let (server, database) = rest.split_once('/').expect("a database");
        let server = server.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("{head}@{}/{database}", listener.local_addr().expect("an address"));
        let (deaf, cut) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
        let mut task = JoinSet::new();
        let (is_deaf, is_cut) = (deaf.clone(), cut.clone());
        task.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&server).await else { continue };
                let (is_deaf, is_cut) = (is_deaf.clone(), is_cut.clone());
                lines.spawn(async move {
                    tokio::select! {
                        () = carry(near, far, is_deaf) => {}
                        () = is_cut.notified() => {}
                    }
                });
            }
        });
        Self { url, deaf, cut, _task: task }
    }
}

async fn carry(near: TcpStream, far: TcpStream, deaf: Arc<AtomicBool>) {
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let asked = async move {
        let _ = tokio::io::copy(&mut near_read, &mut far_write).await;
    };
    let said = async move {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = far_read.read(&mut bytes).await {
            if !deaf.load(Ordering::SeqCst) && near_write.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(asked, said);
}

async fn the_outcome_of_a_commit_is_unknown() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let url = server.database("unknown").await.expect("a database");
    let line = Line::lay(&url).await;
    let h =
        Arc::new(House::open_with(&line.url, Options { hold_deadline: Duration::from_secs(10), ..options() }).await);
    let c = h.customer(0, 1_000).await;
    let witness = House::open(&url).await;
    // The connection for holds is made with the first one.
    let first = h.held(&c, 1).await;
    h.store.close(h.ending(&c, first, 0)).await.expect("closed");
    line.deaf.store(true, Ordering::SeqCst);
    let wish = h.wish(&c, 100);
    let asking = h.clone();
    let mut hold = JoinSet::new();
    hold.spawn(async move { asking.hold(wish).await });
    // It is committed, and the asker does not know.
    while witness.pots(&c).await != (0, 900, 0, 100) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(hold.try_join_next().is_none(), "nobody got an answer");
    line.deaf.store(false, Ordering::SeqCst);
    line.cut.notify_waiters();
    let held = hold.join_next().await.expect("the task").expect("no panic").expect("the same hold, found again");
    assert_eq!(witness.pots(&c).await, (0, 900, 0, 100), "held once");
    let closed = h.store.close(h.ending(&c, held.call, 60)).await.expect("closed");
    assert_eq!((closed.captured.nano(), closed.applied), (60, true));
    let row = witness.store.usage_of(c.account, held.call).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.charge.nano()), (Ending::Answered, 60));
    assert_eq!(witness.pots(&c).await, (0, 940, 0, 0));
    witness.close().await;
    Arc::into_inner(h).expect("the task is done").close().await;
}

async fn a_commit_that_finds_the_disk_full() {
    let unsynced = Options { hold_deadline: Duration::from_secs(2), journal_sync_fails: true, ..options() };
    let h = House::open_with("sqlite", unsynced).await;
    let c = h.customer(0, 1_000).await;
    for _ in 0..10 {
        let call = h.held(&c, 1).await;
        h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    }
    let keyed = || tollgate_store::Hold { idem: Some(idem(1, 1)), ..h.wish(&c, 1) };
    let answered = h.hold(keyed()).await.expect("held").call;
    let stored = tollgate_store::Close { reply: Some(reply("stored")), ..h.ending(&c, answered, 0) };
    h.store.close(stored).await.expect("closed");
    let running = h.held(&c, 100).await;
    let all = h.store.verify().await.expect("audited").entries;
    fill_disk(&h.place.data_dir);
    assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)));
    assert!(!h.store.ready(), "the alarm");
    assert!(matches!(h.store.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)), "at once");
    let again = h.store.hold(keyed()).await;
    assert!(
        matches!(again, Err(HoldRefused::IdemDone { call, reply: Some(_) }) if call == answered),
        "it needs no hold"
    );
    let closing = h.store.close(h.ending(&c, running, 60));
    assert_eq!(h.pots(&c).await.1, 930, "balances stay readable");
    assert_eq!(h.store.usage(Some(c.account), Default::default()).await.expect("reading").len(), 11, "so does the log");
    assert!(h.store.verify_changed().await.is_err(), "the audit waits for the ledger");
    // A crash now loses nothing: the close is in space that was set aside.
    free_disk(&h.place.data_dir);
    assert_eq!(closing.await.expect("closed in the end").captured.nano(), 60);
    assert!(h.store.ready());
    let report = h.store.verify_changed().await.expect("audited");
    assert!(report.entries < all, "and goes on from where it was: {report:?}, {all} before");
    // The hold that was not made durable is given back by its caller, here by the sweep.
    h.clock.advance(61_000);
    h.store.sweep(h.clock.now()).await.expect("a sweep");
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0));
    h.close().await;
}
