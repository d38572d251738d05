//! An audit of everything in two halves, each on a thread of its own: one follows the entries, the
//! other the usage log and its sums. What both say about an account is added up at the end, so it
//! does not matter who saw what.

use super::{Auditor, Running};

impl Auditor {
    /// The other half of this audit, which has seen nothing yet.
    pub fn other_half(&self) -> Self {
        Self { key: self.key, ..Self::default() }
    }

    /// Takes over what the half that followed the usage log has seen.
    pub fn join(&mut self, mut log: Self) {
        log.prove();
        let Self { report, accounts, prices, summed_until, folded, folds, .. } = log;
        self.report.usage_rows += report.usage_rows;
        self.report.unhashed_rows += report.unhashed_rows;
        self.report.unhashed_until_ms = self.report.unhashed_until_ms.max(report.unhashed_until_ms);
        for breach in report.breaches {
            for row in breach.rows {
                self.breach(breach.invariant, row);
            }
        }
        for (id, of_log) in accounts {
            let running = self.accounts.entry(id).or_default();
            let Running { sums, hashes, quarters, .. } = of_log;
            running.sums.join(&sums);
            running.hashes = running.hashes.wrapping_add(hashes);
            running.quarters.join(&quarters);
        }
        self.prices.extend(prices);
        self.summed_until = summed_until;
        self.folded = folded;
        self.folds = folds;
    }
}
