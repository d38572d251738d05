//! Random lives of two customers against a model so simple that it is plainly right.

use crate::common::{Customer, House};
use proptest::prelude::*;
use tollgate_store::{CallId, CreditKind, Pot};

#[derive(Clone, Debug)]
enum Step {
    Credit { who: usize, trial: bool, amount: i64 },
    Hold { who: usize, amount: i64, paid_only: bool },
    Extend { which: usize, amount: i64, again: bool },
    Close { which: usize, charge: i64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..2usize, any::<bool>(), -60..120i64).prop_map(|(who, trial, amount)| Step::Credit { who, trial, amount }),
        5 => (0..2usize, 0..90i64, prop::bool::weighted(0.2))
            .prop_map(|(who, amount, paid_only)| Step::Hold { who, amount, paid_only }),
        4 => (any::<prop::sample::Index>(), 0..90i64, prop::bool::weighted(0.3))
            .prop_map(|(i, amount, again)| Step::Extend { which: i.index(1 << 16), amount, again }),
        5 => (any::<prop::sample::Index>(), 0..120i64).prop_map(|(i, charge)| Step::Close { which: i.index(1 << 16), charge }),
        1 => Just(Step::Restart),
    ]
}

#[derive(Clone, Copy)]
struct ModelHold {
    who: usize,
    call: CallId,
    trial: i64,
    paid: i64,
    paid_only: bool,
    /// How often it was extended.
    steps: u32,
}

#[derive(Default)]
struct Model {
    /// Available trial and paid money of each customer.
    pots: [(i64, i64); 2],
    open: Vec<ModelHold>,
}

impl Model {
    /// What the account can give: trial first.
    fn take(&mut self, who: usize, amount: i64, paid_only: bool) -> (i64, i64) {
        let (trial, paid) = &mut self.pots[who];
        let from_trial = if paid_only { 0 } else { amount.min(*trial) };
        let from_paid = (amount - from_trial).min(*paid);
        *trial -= from_trial;
        *paid -= from_paid;
        (from_trial, from_paid)
    }

    fn give(&mut self, who: usize, trial: i64, paid: i64) {
        self.pots[who].0 += trial;
        self.pots[who].1 += paid;
    }

    fn close(&mut self, hold: &ModelHold, charge: i64) -> (i64, i64) {
        let (mut trial, mut paid) = (hold.trial, hold.paid);
        let more = self.take(hold.who, (charge - trial - paid).max(0), hold.paid_only);
        trial += more.0;
        paid += more.1;
        let from_trial = charge.min(trial);
        let from_paid = (charge - from_trial).min(paid);
        self.give(hold.who, trial - from_trial, paid - from_paid);
        (from_trial + from_paid, charge - from_trial - from_paid)
    }
}

async fn live(steps: Vec<Step>) {
    let mut h = House::open("sqlite").await;
    let customers: [Customer; 2] = [h.customer(0, 0).await, h.customer(0, 0).await];
    let mut model = Model::default();
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Credit { who, trial, amount } => {
                let kind = if amount > 0 { CreditKind::TopUp } else { CreditKind::Adjust };
                let pot = if trial { Pot::Trial } else { Pot::Paid };
                let available = if trial { model.pots[who].0 } else { model.pots[who].1 };
                let done = h.credit(&customers[who], &format!("step {n}"), kind, pot, amount).await;
                assert_eq!(done.is_ok(), amount != 0 && available + amount >= 0);
                if done.is_ok() {
                    model.give(who, if trial { amount } else { 0 }, if trial { 0 } else { amount });
                }
            }
            Step::Hold { who, amount, paid_only } => {
                let mut wish = h.wish(&customers[who], amount);
                wish.paid_only = paid_only;
                let before = model.pots[who];
                let (trial, paid) = model.take(who, amount, paid_only);
                match h.hold(wish).await {
                    Ok(held) => {
                        assert_eq!((held.trial.nano(), held.paid.nano()), (trial, paid));
                        assert_eq!(trial + paid, amount);
                        model.open.push(ModelHold { who, call: held.call, trial, paid, paid_only, steps: 0 });
                    }
                    Err(_) => {
                        assert!(trial + paid < amount, "a hold that fits was refused");
                        model.pots[who] = before;
                    }
                }
            }
            Step::Extend { which, amount, again } => {
                if model.open.is_empty() {
                    continue;
                }
                let which = which % model.open.len();
                let ModelHold { who, call, trial, paid, paid_only, steps } = model.open[which];
                if again && steps > 0 {
                    let held = h.extend(h.more(&customers[who], call, steps, amount)).await.expect("done before");
                    assert_eq!(held, (trial, paid));
                    continue;
                }
                let before = model.pots[who];
                let more = model.take(who, amount, paid_only);
                match h.extend(h.more(&customers[who], call, steps + 1, amount)).await {
                    Ok(held) => {
                        assert_eq!((held, more.0 + more.1), ((trial + more.0, paid + more.1), amount));
                        model.open[which] =
                            ModelHold { who, call, trial: held.0, paid: held.1, paid_only, steps: steps + 1 };
                    }
                    Err(_) => {
                        assert!(more.0 + more.1 < amount, "an extension that fits was refused");
                        model.pots[who] = before;
                    }
                }
            }
            Step::Close { which, charge } => {
                if model.open.is_empty() {
                    continue;
                }
                let hold = model.open.swap_remove(which % model.open.len());
                let wanted = model.close(&hold, charge);
                let closing = h.store.close(h.ending(&customers[hold.who], hold.call, charge));
                let closed = closing.known().expect("SQLite knows at once");
                assert_eq!((closed.captured.nano(), closed.write_off.nano()), wanted);
            }
            Step::Restart => {
                h = h.reopen().await;
                for hold in std::mem::take(&mut model.open) {
                    model.close(&hold, 0);
                }
            }
        }
        for (who, customer) in customers.iter().enumerate() {
            let (trial, paid, ..) = h.pots(customer).await;
            assert_eq!((trial, paid), model.pots[who], "after step {n}");
        }
    }
    let h = h.reopen().await;
    h.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_agrees_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(live(steps));
    }
}
