//! The audit beside other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_store::{CreditKind, Pot};

use crate::common::House;

/// Whatever is committed while an audit begins and while it reads: its two halves see one ledger.
pub async fn audits_beside_calls_find_nothing(h: House) {
    let customers = [h.customer(0, 1_000_000_000).await, h.customer(50, 1_000_000_000).await];
    let (h, over) = (Arc::new(h), Arc::new(AtomicBool::new(false)));
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn({
        let (h, over) = (h.clone(), over.clone());
        async move {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                for c in &customers {
                    let call = h.held(c, 100).await;
                    h.store.close(h.ending(c, call, 60)).await.expect("closed");
                    if n % 3 == 0 {
                        let id = format!("back {call}");
                        let refund = CreditKind::Refund { call };
                        h.credit(c, &id, refund, Pot::Paid, 5).await.expect("refunded");
                    }
                    n += 1;
                }
            }
        }
    });
    // Ten audits that each saw more than the one before.
    let (mut grown, mut entries) = (0, 0);
    while grown < 10 {
        // It ends early only by a panic, and nothing would grow then.
        if let Some(ended) = calls.try_join_next() {
            ended.expect("the calls go on");
        }
        for report in [h.store.verify().await, h.store.verify_quietly().await] {
            let report = report.expect("the audit runs");
            assert_eq!(report.breaches, []);
            grown += u32::from(report.entries > entries);
            entries = report.entries;
        }
    }
    over.store(true, Ordering::Relaxed);
    calls.join_all().await;
    Arc::into_inner(h).expect("the calls are over").close().await;
}
