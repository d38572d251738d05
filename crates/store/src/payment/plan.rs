//! What the truth about a payment does to its order: a pure function from an order, what the
//! payment provider says, and what the account has, to the next step. A step is the order as it is
//! afterwards and at most one ledger entry; both are one transaction. Steps are taken until there
//! is none, so whoever comes back after a crash goes on where it stopped.

use tollgate_catalog::Money;

use super::{OrderState, PayOrder};
use crate::account::{Credit, CreditKind, Pot};

/// How long after its credit an order is looked at now and then: banks take money back for months.
const WATCHED_MS: i64 = 120 * 86_400_000;
const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// What a payment provider says of a session and its payment, now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTruth {
    pub session: String,
    /// The order it was made for.
    pub reference: String,
    pub amount_minor: i64,
    pub currency: String,
    pub live: bool,
    pub payment: Option<String>,
    pub standing: PaymentStanding,
    pub refunded_minor: i64,
    pub disputed_minor: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentStanding {
    /// Nobody has paid yet.
    Open,
    /// Somebody has, and the money is on its way.
    OnItsWay,
    Paid,
    Failed,
    Expired,
}

/// The order afterwards, and what enters the ledger with it.
#[derive(Clone, Debug)]
pub(crate) struct OrderStep {
    pub after: PayOrder,
    pub credit: Option<Credit>,
}

impl PayOrder {
    /// Why what was said is not about this order.
    fn mismatch(&self, truth: &OrderTruth) -> Option<String> {
        if truth.reference != self.id.to_string() || self.session.as_ref().is_some_and(|own| *own != truth.session) {
            return Some("the payment belongs to another order".to_owned());
        }
        if truth.live != self.live {
            return Some("the payment is of another mode, test or live".to_owned());
        }
        if truth.currency != self.currency || truth.amount_minor != self.amount_minor {
            let (paid, currency) = (truth.amount_minor, &truth.currency);
            let ordered = self.amount_minor;
            return Some(format!("{paid} {currency} instead of {ordered} {} (smallest units)", self.currency));
        }
        None
    }

    /// How much of the credit must not be in the account any more.
    fn to_take_back(&self, truth: &OrderTruth) -> i64 {
        let gone = truth.refunded_minor.max(0).saturating_add(truth.disputed_minor.max(0)).min(self.amount_minor);
        let part = i128::from(self.credit.nano()) * i128::from(gone) / i128::from(self.amount_minor.max(1));
        i64::try_from(part).unwrap_or(i64::MAX).min(self.credit.nano())
    }

    /// What is done next, with so much free in the account's paid pot; `None`: nothing.
    pub(crate) fn next_step(&self, truth: &OrderTruth, available: Money, now: i64) -> Option<OrderStep> {
        let mut after = self.clone();
        if let Some(why) = self.mismatch(truth) {
            if self.credited_at.is_none() {
                (after.state, after.note) = (OrderState::Mismatch, why);
            }
            return self.stepped(after, None, now);
        }
        after.session = Some(truth.session.clone());
        after.payment = truth.payment.clone().or(after.payment);
        (after.refunded_minor, after.disputed_minor) = (truth.refunded_minor, truth.disputed_minor);
        if truth.standing != PaymentStanding::Paid {
            if self.credited_at.is_none() {
                (after.state, after.note) = unpaid(truth.standing);
            }
            return self.stepped(after, None, now);
        }
        let target = self.to_take_back(truth);
        after.note.clear();
        if self.credited_at.is_none() {
            // What went back before it was credited never enters.
            if target >= self.credit.nano() {
                after.state = taken_back(truth, self);
                return self.stepped(after, None, now);
            }
            (after.state, after.credited_at) = (OrderState::Credited, Some(now));
            let credit = self.credit_of(format!("order:{}", self.id), CreditKind::TopUp, self.credit, "paid");
            return self.stepped(after, Some(credit), now);
        }
        after.state = taken_back(truth, self);
        let credit = self.correct(&mut after, target, available);
        self.stepped(after, credit, now)
    }

    /// Brings what was taken back in line with what must be, and collects what is owed.
    fn correct(&self, after: &mut PayOrder, target: i64, available: Money) -> Option<Credit> {
        let (taken, owed, forgiven) = (self.taken.nano(), self.owed.nano(), self.forgiven.nano());
        let missing = target - (taken + owed + forgiven);
        let (mut owed, mut back) = (owed, 0);
        if missing >= 0 {
            owed += missing;
            back = owed.min(available.nano()).max(0);
            owed -= back;
        } else {
            let less = owed.min(-missing);
            owed -= less;
            let again = (-missing - less).min(taken);
            back -= again;
        }
        after.owed = Money::from_nano(owed);
        after.taken = Money::from_nano(taken + back);
        if back == 0 {
            return None;
        }
        after.moves += 1;
        let (name, why) = if back > 0 { ("back", "taken back: refund or dispute") } else { ("again", "dispute won") };
        let id = format!("order:{}:{name}:{}", self.id, after.moves);
        Some(self.credit_of(id, CreditKind::Adjust, Money::from_nano(-back), why))
    }

    fn credit_of(&self, id: String, kind: CreditKind, amount: Money, why: &str) -> Credit {
        let payment = self.session.as_deref().unwrap_or_default();
        let reason = format!("{} {payment}: {why}", self.provider);
        let actor = format!("payments:{}", self.provider);
        Credit { id, account: self.account, kind, pot: Pot::Paid, amount, expires_at: None, reason, actor }
    }

    /// The step to this order, if anything is different.
    fn stepped(&self, mut after: PayOrder, credit: Option<Credit>, now: i64) -> Option<OrderStep> {
        if credit.is_none() && after == *self {
            return None;
        }
        (after.version, after.looks, after.changed_at) = (self.version + 1, 0, now.max(self.changed_at));
        after.next_look_at = after.look_after(now);
        Some(OrderStep { after, credit })
    }

    /// When it is looked at next: soon after a change, less and less often afterwards.
    pub(crate) fn look_after(&self, now: i64) -> Option<i64> {
        let doubled = |first: i64, most: i64| first.saturating_mul(1 << self.looks.min(20)).min(most);
        match self.state {
            OrderState::New | OrderState::Pending | OrderState::Paid => {
                // A session that is over is heard of in a day at most.
                (now < self.expires_at.saturating_add(3 * DAY)).then(|| now.saturating_add(doubled(MINUTE, DAY)))
            }
            OrderState::Credited | OrderState::Refunded | OrderState::Disputed => {
                let wait = if self.owed.is_zero() { doubled(DAY, 16 * DAY) } else { doubled(MINUTE, 60 * MINUTE) };
                let watched = now < self.created_at.saturating_add(WATCHED_MS);
                (watched || !self.owed.is_zero()).then(|| now.saturating_add(wait))
            }
            OrderState::Expired | OrderState::Failed | OrderState::Mismatch => None,
        }
    }
}

fn unpaid(standing: PaymentStanding) -> (OrderState, String) {
    let (state, note) = match standing {
        PaymentStanding::OnItsWay => (OrderState::Pending, "the money is on its way"),
        PaymentStanding::Failed => (OrderState::Failed, "the payment failed"),
        PaymentStanding::Expired => (OrderState::Expired, ""),
        PaymentStanding::Open | PaymentStanding::Paid => (OrderState::Pending, ""),
    };
    (state, note.to_owned())
}

fn taken_back(truth: &OrderTruth, order: &PayOrder) -> OrderState {
    if truth.disputed_minor > 0 {
        OrderState::Disputed
    } else if truth.refunded_minor >= order.amount_minor {
        OrderState::Refunded
    } else {
        OrderState::Credited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AccountId, OrderId};
    use crate::payment::NewOrder;

    fn order() -> PayOrder {
        let new = NewOrder {
            account: AccountId([1; 16]),
            provider: "stripe".into(),
            amount_minor: 1_000,
            currency: "usd".into(),
            credit: Money::from_nano(10_000_000_000),
            live: false,
            expires_at: DAY,
            next_look_at: MINUTE,
            actor: "key_x".into(),
            idem: None,
        };
        new.made(OrderId([2; 16]), 0).expect("an order")
    }

    fn truth(standing: PaymentStanding) -> OrderTruth {
        OrderTruth {
            session: "cs_1".into(),
            reference: order().id.to_string(),
            amount_minor: 1_000,
            currency: "usd".into(),
            live: false,
            payment: Some("pi_1".into()),
            standing,
            refunded_minor: 0,
            disputed_minor: 0,
        }
    }

    /// All steps until there is none, with the balance that they leave.
    fn run(mut order: PayOrder, truth: &OrderTruth, balance: &mut i64) -> (PayOrder, Vec<(String, i64)>) {
        let mut entries = Vec::new();
        while let Some(step) = order.next_step(truth, Money::from_nano(*balance), 5) {
            if let Some(credit) = step.credit {
                *balance += credit.amount.nano();
                entries.push((credit.id.rsplit(':').nth(1).unwrap_or_default().to_owned(), credit.amount.nano()));
            }
            order = step.after;
            assert!(entries.len() < 9, "it never ends");
        }
        (order, entries)
    }

    #[test]
    fn a_paid_order_is_credited_once_whatever_is_said_afterwards() {
        let mut balance = 0;
        let (paid, entries) = run(order(), &truth(PaymentStanding::Paid), &mut balance);
        assert_eq!((entries.len(), balance, paid.state), (1, 10_000_000_000, OrderState::Credited));
        for standing in
            [PaymentStanding::Paid, PaymentStanding::Open, PaymentStanding::Failed, PaymentStanding::Expired]
        {
            let (again, entries) = run(paid.clone(), &truth(standing), &mut balance);
            assert_eq!((entries.len(), again.state), (0, OrderState::Credited), "{standing:?}");
        }
    }

    /// Late money still counts: an order that failed or expired is no end.
    #[test]
    fn what_failed_can_be_paid_afterwards() {
        for standing in [PaymentStanding::Failed, PaymentStanding::Expired, PaymentStanding::OnItsWay] {
            let mut balance = 0;
            let (unpaid, entries) = run(order(), &truth(standing), &mut balance);
            assert_eq!((entries.len(), balance), (0, 0));
            let (paid, _) = run(unpaid, &truth(PaymentStanding::Paid), &mut balance);
            assert_eq!((paid.state, balance), (OrderState::Credited, 10_000_000_000));
        }
    }

    #[test]
    fn what_was_not_ordered_is_not_credited() {
        let all: [fn(&mut OrderTruth); 5] = [
            |t| t.amount_minor = 999,
            |t| t.currency = "eur".into(),
            |t| t.live = true,
            |t| t.reference = OrderId([3; 16]).to_string(),
            |t| t.amount_minor = 1_001,
        ];
        for change in all {
            let (mut said, mut balance) = (truth(PaymentStanding::Paid), 0);
            change(&mut said);
            let (after, entries) = run(order(), &said, &mut balance);
            assert_eq!((after.state, entries.len(), balance), (OrderState::Mismatch, 0, 0));
        }
    }

    #[test]
    fn refunds_take_back_their_part_and_the_rest_is_owed() {
        let (mut said, mut balance) = (truth(PaymentStanding::Paid), 0);
        let (paid, _) = run(order(), &said, &mut balance);
        said.refunded_minor = 250;
        let (part, _) = run(paid, &said, &mut balance);
        assert_eq!((part.state, balance, part.taken.nano()), (OrderState::Credited, 7_500_000_000, 2_500_000_000));
        balance = 1_000_000_000;
        said.refunded_minor = 1_000;
        let (all, _) = run(part, &said, &mut balance);
        assert_eq!((all.state, balance, all.owed.nano()), (OrderState::Refunded, 0, 6_500_000_000));
        balance = 10_000_000_000;
        let (cleared, _) = run(all, &said, &mut balance);
        assert_eq!((balance, cleared.owed.nano(), cleared.taken.nano()), (3_500_000_000, 0, 10_000_000_000));
    }

    #[test]
    fn a_dispute_that_is_won_gives_back() {
        let (mut said, mut balance) = (truth(PaymentStanding::Paid), 0);
        let (paid, _) = run(order(), &said, &mut balance);
        balance -= 4_000_000_000;
        said.disputed_minor = 1_000;
        let (lost, _) = run(paid, &said, &mut balance);
        assert_eq!((lost.state, balance, lost.owed.nano()), (OrderState::Disputed, 0, 4_000_000_000));
        said.disputed_minor = 0;
        let (won, entries) = run(lost, &said, &mut balance);
        assert_eq!((won.state, balance), (OrderState::Credited, 6_000_000_000));
        assert_eq!(entries, [("again".to_owned(), 6_000_000_000)]);
    }

    #[test]
    fn what_was_refunded_before_it_was_heard_of_never_enters() {
        let (mut said, mut balance) = (truth(PaymentStanding::Paid), 0);
        said.refunded_minor = 1_000;
        let (after, entries) = run(order(), &said, &mut balance);
        assert_eq!((after.state, entries.len(), balance), (OrderState::Refunded, 0, 0));
    }
}
